#include "tests/hostile.h"
#include "tests/support.h"

#include "model/base/io.h"
#include "model/base/text.h"
#include "runs/study/grid.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Files from outside: the readers take every accept-* of tests/corpus and refuse every reject-*, and those made here,
 * which would be large to keep. What a target promises of both is in tests/hostile.h. */

#define CORPUS "tests/corpus"

/* What is being read, for the last words of a program that a BUG ends. */
static char feeding[200];

static void tell(int signal)
{
	(void)signal;
	if (write(STDERR_FILENO, feeding, strlen(feeding)) < 0)
		_exit(1);
}

static void feed(const struct target *t, const char *name, const void *data, size_t size)
{
	snprintf(feeding, sizeof feeding, "while reading %s/%s\n", t->name, name);
	bool accepted = !strncmp(name, "accept-", 7);
	assert_true(accepted || !strncmp(name, "reject-", 7));
	struct err e = target_feed(t, data, size);
	if ((e.code == ERR_NONE) != accepted)
		fail_msg("%s/%s: %s", t->name, name, e.code ? e.text : "was accepted");
}

static void feed_file(const struct target *t, const char *folder, const char *name)
{
	char *path = io_join(folder, name), *data;
	size_t size;
	assert_ok(io_read(path, &data, &size));
	feed(t, name, data, size);
	free(data);
	free(path);
}

static void test_corpus(void **state)
{
	const struct target *t = *state;
	char *folder = io_join(CORPUS, t->name);
	int files = 0;
	DIR *d = opendir(folder);
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.') {
			feed_file(t, folder, e->d_name);
			files++;
		}
	closedir(d);
	free(folder);
	assert_true(files > 3);
}

/* A safetensors file with this header and no data. */
static void feed_header(const char *name, struct text_builder *header)
{
	uint64_t length = header->size;
	char *file = TAKE(char, length + 8);
	memcpy(file, &length, 8);
	memcpy(file + 8, header->data, length);
	feed(&target_safetensors, name, file, length + 8);
	free(file);
	text_builder_free(header);
}

static void repeat(struct text_builder *b, const char *text, int times)
{
	for (int i = 0; i < times; i++)
		text_add(b, "%s", text);
}

#define EMPTY "\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}"

static void feed_tensors(const char *name, int count, const char *last)
{
	struct text_builder b = { 0 };
	for (int i = 0; i < count; i++)
		text_add(&b, "%s\"t%d\":{" EMPTY, i ? "," : "{", i);
	text_add(&b, ",\"last\":{%s}", last);
	feed_header(name, &b);
}

static void test_many_tensors(void **state)
{
	(void)state;
	feed_tensors("accept-10000-tensors", 10000, EMPTY);
	feed_tensors("reject-100000-tensors", 100000, "\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}");
}

static void test_long_names(void **state)
{
	(void)state;
	char *name = TAKE(char, 1000001);
	memset(name, 'n', 1000000);
	struct text_builder b = { 0 };
	text_add(&b, "{\"%s\":{" EMPTY "}", name);
	feed_header("accept-name-of-1-mb", &b);
	text_add(&b, "{\"%s\":{\"dtype\":\"F31\",\"shape\":[0],\"data_offsets\":[0,0]}}", name);
	feed_header("reject-name-of-1-mb", &b);
	text_add(&b, "%s = 1\n", name);
	feed(&target_config, "reject-name-of-1-mb", b.data, b.size);
	feed(&target_study, "reject-name-of-1-mb", b.data, b.size);
	b.size = 0;
	text_add(&b, "[%s]\n", name);
	feed(&target_config, "reject-section-of-1-mb", b.data, b.size);
	feed(&target_study, "reject-section-of-1-mb", b.data, b.size);
	b.size = 0;
	text_add(&b, "train\n--%s=1\n", name);
	feed(&target_options, "reject-name-of-1-mb", b.data, b.size);
	b.size = 0;
	text_add(&b, "train\n--encoding=%s\n", name);
	feed(&target_options, "reject-method-of-1-mb", b.data, b.size);
	text_builder_free(&b);
	free(name);
}

static void test_nesting(void **state)
{
	(void)state;
	struct text_builder b = { 0 };
	text_add(&b, "{\"a\":");
	repeat(&b, "[", 10000);
	repeat(&b, "]", 10000);
	text_add(&b, "}");
	feed(&target_records, "reject-10000-brackets", b.data, b.size);
	feed_header("reject-10000-brackets", &b);
	text_add(&b, "train\n--encoding=rope");
	repeat(&b, "(", 10000);
	repeat(&b, ")", 10000);
	feed(&target_options, "reject-10000-parentheses", b.data, b.size);
	text_builder_free(&b);
}

static void refuse_study(struct text_builder *b, const char *name, const char *why)
{
	struct study study;
	struct grid grid;
	feed(&target_study, name, b->data, b->size);
	struct err e = study_parse("a.study", b->data, &study);
	if (!e.code) {
		e = grid_build(&study, &grid);
		study_free(&study);
	}
	assert_err(e, ERR_USAGE, why);
	b->size = 0;
}

/* Each would take time and memory without end. */
static void test_large_studies(void **state)
{
	(void)state;
	struct text_builder b = { 0 };
	text_add(&b, "width = 8\nseed = 1");
	for (int i = 2; i < 100000; i++)
		text_add(&b, ",%d", i);
	refuse_study(&b, "reject-100000-values", "a.study:2: seed: more than 1000 values");
	for (int i = 1; i < 10000; i++)
		text_add(&b, "[width=%d]\n", i);
	refuse_study(&b, "reject-10000-sections", "a.study:33: more than 32 sections");
	for (int i = 0; i < 13; i++)
		text_add(&b, "%s = 1, 2\n", ((const char *const[]){ "layers", "width", "heads", "hidden", "rms_eps", "tied",
			 "train_length", "steps", "batch", "lr", "lr_floor", "warmup", "seed" })[i]);
	refuse_study(&b, "reject-8192-cells", "more than 4096 cells");
	for (int i = 1; i < 10000; i++)
		text_add(&b, "[order o%d]\n", i);
	refuse_study(&b, "reject-10000-claims", "a.study:201: more than 200 claims");
	text_builder_free(&b);
}

static void test_many_columns(void **state)
{
	(void)state;
	struct text_builder b = { 0 };
	repeat(&b, ",", 100000);
	text_add(&b, "\n");
	feed(&target_records, "reject-100000-fields", b.data, b.size);
	text_builder_free(&b);
}

#define CORPUS_OF(name) { "corpus of " #name, test_corpus, NULL, NULL, (void *)(uintptr_t)&target_##name }

int main(void)
{
	const struct CMUnitTest tests[] = {
		CORPUS_OF(safetensors),
		CORPUS_OF(tokens),
		CORPUS_OF(config),
		CORPUS_OF(study),
		CORPUS_OF(records),
		CORPUS_OF(options),
#ifndef ROPEWALK_DOUBLE /* those of the corpus are in float */
		CORPUS_OF(checkpoint),
#endif
		CORPUS_OF(logs),
		cmocka_unit_test(test_many_tensors),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_large_studies),
		cmocka_unit_test(test_many_columns),
	};
	signal(SIGABRT, tell);
	return cmocka_run_group_tests_name("runs corpus", tests, NULL, NULL);
}
