#ifndef ROPEWALK_TESTS_SEQUENCE_CASE_H
#define ROPEWALK_TESTS_SEQUENCE_CASE_H

/* Sequences of any task, for the tests of data. */

#include "tests/support.h"

#include "data/task.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static inline void set_option(struct method *m, const char *name, const char *text)
{
	int index = method_find(m->entry, name);
	assert_true(index >= 0);
	union option_value v;
	assert_int_equal(option_parse(&m->entry->options[index], text, &v).code, ERR_NONE);
	method_set(m, index, v);
}

static inline const struct entry *task_named(const char *name)
{
	for (int i = 0; task_at(i); i++)
		if (!strcmp(task_at(i)->name, name))
			return task_at(i);
	fail_msg("%s is not in the list", name);
	return NULL;
}

/* A file of tokens, whether they are bytes, uint16 (0 to 511) or int32 (0 to 66047), that stands until the program ends. */
enum { SAMPLE_BYTES = 100000 };
static char sample_folder[FOLDER_PATH];

static inline void sample_remove(void)
{
	folder_remove(sample_folder);
}

static inline const char *sample_file(void)
{
	static char path[FOLDER_PATH + 16];
	if (*path)
		return path;
	assert_int_equal(folder_make(sample_folder), 0);
	assert_int_equal(atexit(sample_remove), 0);
	snprintf(path, sizeof path, "%s/sample", sample_folder);
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	struct rng r = rng_at(1, STREAM_TRAIN, 0);
	for (int i = 0; i < SAMPLE_BYTES / 4; i++) {
		unsigned char token[4] = { (unsigned char)rng_below(&r, 256), (unsigned char)rng_below(&r, 2),
					   rng_below(&r, 4) == 0 };
		assert_int_equal(fwrite(token, sizeof token, 1, f), 1);
	}
	assert_int_equal(fclose(f), 0);
	return path;
}

/* By default, but those that read a file have one. */
static inline struct method task_ready(const struct entry *entry)
{
	struct method m = method_default(entry);
	if (method_find(entry, "file") < 0)
		return m;
	char label[FOLDER_PATH + 64];
	snprintf(label, sizeof label, "%s(file=%s,held=0.5)", entry->name, sample_file());
	assert_ok(method_parse("task", task_at, label, &m));
	return m;
}

/* A task by its label, "recall(pairs=3)". */
static inline struct method task_labelled(const char *label)
{
	struct method m;
	assert_ok(method_parse("task", task_at, label, &m));
	return m;
}

static inline const struct task_reference *reference_named(const struct method *m, const char *name)
{
	for (const struct task_reference *r = task_of(m)->references; r && r->name; r++)
		if (!strcmp(r->name, name))
			return r;
	fail_msg("no reference \"%s\"", name);
	return NULL;
}

/* Arrays exactly T long, so that the sanitizer sees a write past them; `junk` is what they hold before. */
static inline struct sequence sequence_new(int length, int junk)
{
	size_t n = (size_t)length;
	struct sequence s = { malloc(n * sizeof *s.token), malloc(n * sizeof *s.target), malloc(n * sizeof *s.group),
			      malloc(n * sizeof *s.distance), malloc(n * sizeof *s.position) };
	assert_true(s.token && s.target && s.group && s.distance && s.position);
	memset(s.token, junk, n * sizeof *s.token);
	memset(s.target, junk, n * sizeof *s.target);
	memset(s.group, junk, n * sizeof *s.group);
	memset(s.distance, junk, n * sizeof *s.distance);
	memset(s.position, junk, n * sizeof *s.position);
	return s;
}

static inline void sequence_free(struct sequence *s)
{
	free(s->token);
	free(s->target);
	free(s->group);
	free(s->distance);
	free(s->position);
}

static inline bool same_sequence(const struct sequence *a, const struct sequence *b, int length)
{
	size_t n = (size_t)length;
	return !memcmp(a->token, b->token, n * sizeof *a->token) &&
	       !memcmp(a->target, b->target, n * sizeof *a->target) &&
	       !memcmp(a->group, b->group, n * sizeof *a->group) &&
	       !memcmp(a->distance, b->distance, n * sizeof *a->distance) &&
	       !memcmp(a->position, b->position, n * sizeof *a->position);
}

static inline void make(const struct method *m, int train_length, uint64_t seed, uint64_t index, int length,
			struct sequence *out)
{
	assert_int_equal(task_of(m)->check(m, train_length, length).code, ERR_NONE);
	task_of(m)->make(m, train_length, seed, STREAM_REPORT, index, length, out);
}

/* Asserts that counts drawn with the given probabilities (NULL: all equal) stay below the point that chance passes
 * three times in 100,000 (Wilson and Hilferty 1931). Cells from the first with fewer than 5 expected are taken
 * together. */
static inline void assert_drawn(const int *count, const double *probability, int cells, const char *what)
{
	double total = 0, chi2 = 0, tail_expected = 0, tail_count = 0;
	for (int i = 0; i < cells; i++)
		total += count[i];
	int used = 0;
	for (int i = 0; i < cells; i++) {
		double expected = total * (probability ? probability[i] : 1.0 / cells);
		if (expected < 5 || tail_expected > 0) {
			tail_expected += expected;
			tail_count += count[i];
			continue;
		}
		chi2 += (count[i] - expected) * (count[i] - expected) / expected;
		used++;
	}
	if (tail_expected > 0) {
		chi2 += (tail_count - tail_expected) * (tail_count - tail_expected) / tail_expected;
		used++;
	}
	double df = used - 1, a = 2 / (9 * df), limit = df * pow(1 - a + 4 * sqrt(a), 3);
	if (!(used > 1 && chi2 < limit))
		fail_msg("%s: chi-square %g over %d cells, limit %g", what, chi2, used, limit);
}

#endif
