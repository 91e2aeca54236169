#include "tests/sequence_case.h"

/* Files of tokens: what nanoGPT and llm.c write, and what neither can have written. */

enum { TOKENS = 400, L = 16, HEADER = 256 };

static char folder[FOLDER_PATH];
static int32_t content[TOKENS]; /* below 50000 */
static uint16_t small[TOKENS];  /* the same */

static const char *path_of(const char *name)
{
	static char path[FOLDER_PATH + 32];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

/* With a header if `magic` is not 0. */
static void put(const char *name, int32_t magic, int32_t version, int32_t count, const void *data, size_t size)
{
	int32_t header[HEADER] = { magic, version, count };
	FILE *f = fopen(path_of(name), "wb");
	assert_non_null(f);
	assert_true(!magic || fwrite(header, sizeof header, 1, f) == 1);
	assert_true(fwrite(data, 1, size, f) == size && !fclose(f));
}

static int start(void **state)
{
	(void)state;
	fill_below(11, 50000, content, TOKENS);
	for (int i = 0; i < TOKENS; i++)
		small[i] = (uint16_t)content[i];
	int failed = folder_make(folder);
	if (!failed) {
		put("uint16", 0, 0, 0, small, sizeof small);
		put("int32", 0, 0, 0, content, sizeof content);
		put("gpt2", 20240520, 1, TOKENS, small, sizeof small);
		put("llama3", 20240801, 7, TOKENS, content, sizeof content);
	}
	return failed;
}

static int finish(void **state)
{
	(void)state;
	return folder_remove(folder);
}

static struct method tokens_of(const char *name, const char *options)
{
	char label[2 * FOLDER_PATH];
	snprintf(label, sizeof label, "tokens(file=%s%s)", path_of(name), options);
	return task_labelled(label);
}

static struct err check(const char *name, const char *options)
{
	struct method m = tokens_of(name, options);
	return task_of(&m)->check(&m, L, L);
}

static int most(void)
{
	int32_t most = 0;
	for (int i = 0; i < TOKENS; i++)
		most = content[i] > most ? content[i] : most;
	return most;
}

/* The last 20 tokens are `report`. */
static void assert_windows(const char *name, const char *options)
{
	struct method m = tokens_of(name, options);
	struct sequence s = sequence_new(L, 0x5a);
	assert_ok(task_of(&m)->check(&m, L, L));
	assert_int_equal(task_of(&m)->vocabulary(&m), most() + 1);
	for (uint64_t k = 0; k < 20; k++) {
		task_of(&m)->make(&m, L, 3, STREAM_REPORT, k, L, &s);
		int at = TOKENS - 20;
		while (at < TOKENS - L && content[at] != s.token[0])
			at++;
		assert_true(at < TOKENS - L);
		assert_memory_equal(s.token, content + at, L * sizeof *s.token);
		assert_memory_equal(s.target, content + at + 1, L * sizeof *s.target);
	}
	sequence_free(&s);
}

/* A header says the type, whatever the option does. */
static void test_formats(void **state)
{
	(void)state;
	assert_windows("uint16", "");
	assert_windows("int32", ",type=int32");
	assert_windows("gpt2", "");
	assert_windows("gpt2", ",type=int32");
	assert_windows("llama3", "");
}

static void test_vocabulary(void **state)
{
	(void)state;
	char place[2 * FOLDER_PATH];
	int at = 0;
	struct method m = tokens_of("uint16", ",vocabulary=50257");
	assert_ok(task_of(&m)->check(&m, L, L));
	assert_int_equal(task_of(&m)->vocabulary(&m), 50257);
	while (content[at] < 1000)
		at++;
	snprintf(place, sizeof place, "token %d is %d, and the vocabulary has 1000", at, content[at]);
	assert_err(check("uint16", ",vocabulary=1000"), ERR_USAGE, place);
	assert_err(check("uint16", ",vocabulary=60000.5"), ERR_USAGE, "not a whole number");
	int32_t other[100] = { [77] = 60000 };
	put("other", 0, 0, 0, other, sizeof other);
	snprintf(place, sizeof place, ",type=int32,held_file=%s", path_of("other"));
	m = tokens_of("int32", place);
	assert_int_equal(task_of(&m)->vocabulary(&m), 60001);
}

static void test_refused(void **state)
{
	(void)state;
	int32_t bad[TOKENS];
	memcpy(bad, content, sizeof bad);
	put("odd", 0, 0, 0, small, 101);
	put("short", 20240520, 1, TOKENS, small, sizeof small - 2);
	put("long", 20240801, 7, TOKENS - 1, content, sizeof content);
	put("new", 20240520, 2, TOKENS, small, sizeof small);
	bad[123] = -5;
	put("negative", 0, 0, 0, bad, sizeof bad);
	bad[123] = 1 << 24;
	put("large", 0, 0, 0, bad, sizeof bad);
	assert_err(check("odd", ""), ERR_USAGE, "101 bytes are no whole number of uint16");
	assert_err(check("uint16", ",vocabulary=50257,held=0.05"), ERR_USAGE, "stream tune has 10");
	assert_err(check("short", ""), ERR_USAGE, "its header says 400 tokens of uint16, and 798 bytes follow it");
	assert_err(check("long", ""), ERR_USAGE, "its header says 399 tokens of int32, and 1600 bytes follow it");
	assert_err(check("new", ""), ERR_USAGE, "header of version 2, where 1 is known");
	assert_err(check("int32", ""), ERR_USAGE, "every second uint16 is 0");
	assert_err(check("negative", ",type=int32"), ERR_USAGE, "token 123 is -5, out of range");
	assert_err(check("large", ",type=int32"), ERR_USAGE, "token 123 is 16777216, out of range");
	struct method none = method_default(task_named("tokens"));
	assert_err(task_of(&none)->check(&none, L, L), ERR_USAGE, "--tokens-file=PATH");
	assert_true(task_of(&none)->vocabulary(&none) > 1);
}

static void test_baseline(void **state)
{
	(void)state;
	struct method m = tokens_of("uint16", "");
	struct sequence s = sequence_new(L, 0x5a);
	double p[L];
	make(&m, L, 3, 0, L, &s);
	s.target[3] = content[5];
	task_of(&m)->references->probability(&m, &s, L, L, p);
	for (int t = 0; t < L; t++) {
		double count = 0;
		for (int i = 0; i < 360; i++)
			count += content[i] == s.target[t];
		assert_close(p[t], (count + 1) / (360 + most() + 1), 1e-15);
	}
	sequence_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_vocabulary),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_baseline),
	};
	return cmocka_run_group_tests_name("data tokens", tests, start, finish);
}
