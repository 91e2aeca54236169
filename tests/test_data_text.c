#include "tests/sequence_case.h"

#include <sys/stat.h>
#include <unistd.h>

/* Text: windows of a file's bytes, where they may lie, and what the baselines count. */

enum { SIZE = 20000, L = 64 };

static char folder[FOLDER_PATH];
static unsigned char content[SIZE];

static const char *path_of(const char *name)
{
	static char path[FOLDER_PATH + 32];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static void put(const char *name, const void *data, size_t size)
{
	FILE *f = fopen(path_of(name), "wb");
	assert_non_null(f);
	assert_true(fwrite(data, 1, size, f) == size && !fclose(f));
}

static int start(void **state)
{
	(void)state;
	struct rng r = rng_at(7, STREAM_TRAIN, 0);
	for (int i = 0; i < SIZE; i++)
		content[i] = (unsigned char)rng_below(&r, 256);
	int failed = folder_make(folder);
	if (!failed)
		put("text", content, sizeof content);
	return failed;
}

static int finish(void **state)
{
	(void)state;
	return folder_remove(folder);
}

/* "TASK(file=FOLDER/NAME" and more options. */
static struct err parse(const char *task, const char *name, const char *options, struct method *out)
{
	char label[2 * FOLDER_PATH];
	snprintf(label, sizeof label, "%s(file=%s%s)", task, path_of(name), options);
	return method_parse("task", task_at, label, out);
}

static struct method text_of(const char *name, const char *options)
{
	struct method m;
	assert_ok(parse("text", name, options, &m));
	return m;
}

static struct err check(const struct method *m, int length)
{
	return task_of(m)->check(m, length, length);
}

static void window(const struct method *m, enum stream stream, uint64_t index, int length, struct sequence *s)
{
	assert_ok(check(m, length));
	task_of(m)->make(m, length, 5, stream, index, length, s);
}

/* Where the file has the window's targets; they are long enough to stand there once. */
static int place_of(const struct sequence *s, int length)
{
	for (int first = 0; first + length <= SIZE; first++) {
		int same = 0;
		while (same < length && s->target[same] == content[first + same])
			same++;
		if (same == length)
			return first;
	}
	fail_msg("a window that the file does not have");
	return -1;
}

/* ---- windows ---- */

/* Bytes as they are, whatever they are; the target of the last is the byte behind the window. */
static void test_windows(void **state)
{
	(void)state;
	static const enum stream stream[] = { STREAM_TRAIN, STREAM_TUNE, STREAM_REPORT };
	static const int first[] = { 0, 18000, 19000 }, last[] = { 18000, 19000, 20000 };
	struct method m = text_of("text", "");
	struct sequence s = sequence_new(L, 0x5a);
	assert_int_equal(task_of(&m)->vocabulary(&m), 256);
	for (int i = 0; i < 3; i++)
		for (uint64_t k = 0; k < 200; k++) {
			window(&m, stream[i], k, L, &s);
			int at = place_of(&s, L);
			assert_true(at - 1 >= first[i] && at + L <= last[i]);
			for (int t = 0; t < L; t++) {
				assert_int_equal(s.token[t], content[at - 1 + t]);
				assert_true(s.distance[t] == 1 && s.group[t] == 0 && s.position[t] == t);
			}
		}
	sequence_free(&s);
}

/* The first window that is trained on and the last come up, and nothing beyond them. */
static void test_all_is_trained_on(void **state)
{
	(void)state;
	enum { SMALL = 40, TRAINED = 20, LENGTH = 9 };
	put("small", content, SMALL);
	struct method m = text_of("small", ",held=0.5");
	int count[TRAINED - LENGTH] = { 0 };
	struct sequence s = sequence_new(LENGTH, 0x5a);
	for (uint64_t k = 0; k < 4000; k++) {
		window(&m, STREAM_TRAIN, k, LENGTH, &s);
		int at = place_of(&s, LENGTH) - 1;
		assert_true(at >= 0 && at < TRAINED - LENGTH);
		count[at]++;
	}
	assert_drawn(count, NULL, TRAINED - LENGTH, "where windows begin");
	sequence_free(&s);
}

/* BOS once, first; the first scored pair is (BOS, x0), and the targets are those of the window without it. */
static void test_bos(void **state)
{
	(void)state;
	struct method plain = text_of("text", ""), bos = text_of("text", ",bos=each");
	struct sequence a = sequence_new(L, 0x5a), b = sequence_new(L, 0x5a);
	assert_int_equal(task_of(&bos)->vocabulary(&bos), 257);
	for (uint64_t k = 0; k < 20; k++) {
		window(&plain, STREAM_REPORT, k, L, &a);
		window(&bos, STREAM_REPORT, k, L, &b);
		assert_memory_equal(a.target, b.target, L * sizeof *a.target);
		assert_memory_equal(a.token + 1, b.token + 1, (L - 1) * sizeof *a.token);
		assert_int_equal(b.token[0], 256);
	}
	sequence_free(&a);
	sequence_free(&b);
}

/* Longer windows end where shorter ones do, so that they give the same targets more context. */
static void test_ends_stay(void **state)
{
	(void)state;
	enum { LONG = 20000 / 20 / 8 };
	struct method m = text_of("text", "");
	struct sequence a = sequence_new(L, 0x5a), b = sequence_new(LONG, 0x5a);
	for (uint64_t k = 0; k < 50; k++) {
		window(&m, STREAM_REPORT, k, L, &a);
		window(&m, STREAM_REPORT, k, LONG, &b);
		assert_memory_equal(a.target, b.target + LONG - L, L * sizeof *a.target);
	}
	sequence_free(&a);
	sequence_free(&b);
}

static int by_size(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* However many there are, no stretch of the part is without a window's end for much longer than the mean. */
static void test_evenly_spread(void **state)
{
	(void)state;
	struct method m = text_of("text", "");
	struct sequence s = sequence_new(L, 0x5a);
	for (int count = 8; count <= 64; count += 7) {
		int end[64];
		for (int k = 0; k < count; k++) {
			window(&m, STREAM_REPORT, (uint64_t)k, L, &s);
			end[k] = place_of(&s, L) + L;
		}
		qsort(end, (size_t)count, sizeof *end, by_size);
		double mean = 875.0 / count; /* 1000 bytes less the first eighth */
		for (int k = 1; k < count; k++)
			assert_true(end[k] - end[k - 1] <= 2.7 * mean + 1 && end[k] > end[k - 1]);
		assert_true(end[0] - 19125 <= 2.7 * mean && 20000 - end[count - 1] <= 2.7 * mean);
	}
	sequence_free(&s);
}

static void test_held_file(void **state)
{
	(void)state;
	char options[FOLDER_PATH + 64];
	put("train", content, 300);
	put("held", content + 1000, 400);
	snprintf(options, sizeof options, ",held_file=%s", path_of("held"));
	struct method m = text_of("train", options);
	struct sequence s = sequence_new(L, 0x5a);
	for (uint64_t k = 0; k < 50; k++) {
		window(&m, STREAM_TRAIN, k, L, &s);
		assert_in_range(place_of(&s, L), 1, 300 - L);
		window(&m, STREAM_TUNE, k, L, &s);
		assert_in_range(place_of(&s, L), 1001, 1200 - L);
		window(&m, STREAM_REPORT, k, L, &s);
		assert_in_range(place_of(&s, L), 1201, 1400 - L);
	}
	sequence_free(&s);
	snprintf(options, sizeof options, ",held_file=%s,held=0.2", path_of("held"));
	m = text_of("train", options);
	assert_err(check(&m, L), ERR_USAGE, "held has no effect");
}

/* What is held out is not trained on: the same file, by whatever name, or a piece of it. */
static void test_held_file_is_trained_on(void **state)
{
	(void)state;
	static const struct {
		int first, size;
		bool refused;
	} held[] = { { 0, 600, true }, { 0, 300, true }, { 300, 300, true }, { 300, 301, false }, { 600, 300, false } };
	char options[FOLDER_PATH + 64];
	put("whole", content, 600);
	for (size_t i = 0; i < sizeof held / sizeof held[0]; i++) {
		put("piece", content + held[i].first, (size_t)held[i].size);
		snprintf(options, sizeof options, ",held_file=%s", path_of("piece"));
		struct method m = text_of("whole", options);
		if (held[i].refused)
			assert_err(check(&m, L), ERR_USAGE, "all of it stands in");
		else
			assert_ok(check(&m, L));
	}
	snprintf(options, sizeof options, ",held_file=%s", path_of("whole"));
	struct method m = text_of("whole", options);
	assert_err(check(&m, L), ERR_USAGE, "which is trained on");
}

/* ---- what is refused ---- */

static void test_lengths(void **state)
{
	(void)state;
	struct method m = text_of("text", "");
	assert_ok(check(&m, 999));
	assert_err(check(&m, 1000), ERR_USAGE, "takes 1001 tokens, and the held-out half of stream tune has 1000");
	m = text_of("text", ",held=0.9");
	assert_ok(check(&m, 1999));
	assert_err(check(&m, 2000), ERR_USAGE, "takes 2001 tokens, and the part that is trained on has 2000");
}

static void test_files(void **state)
{
	(void)state;
	struct method m;
	put("empty", "", 0);
	assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
	assert_err(parse("text", "empty", "", &m), ERR_USAGE, "it is empty");
	assert_err(parse("text", "pipe", "", &m), ERR_USAGE, "it is a pipe");
	assert_err(parse("text", ".", "", &m), ERR_USAGE, "it is a folder");
	assert_err(parse("text", "absent", "", &m), ERR_USAGE, "No such file");
	assert_err(parse("text", "absent", "", &m), ERR_USAGE, "make text");
	m = method_default(task_named("text"));
	assert_err(check(&m, L), ERR_USAGE, "--text-file=PATH");
	assert_int_equal(task_of(&m)->vocabulary(&m), 256);
}

/* The label says what was read; another content under the same name is refused by that label, and is another text. */
static void test_content_is_identity(void **state)
{
	(void)state;
	put("changing", content, 500);
	struct method m = text_of("changing", "");
	struct text_builder label = { 0 };
	method_label(&m, &label);
	struct method again = task_labelled(label.data);
	assert_string_equal(again.value[0].text, m.value[0].text);
	put("changing", content + 1, 500);
	assert_err(method_parse("task", task_at, label.data, &again), ERR_USAGE, "it has changed");
	struct method other = text_of("changing", "");
	assert_string_not_equal(other.value[0].text, m.value[0].text);
	text_builder_free(&label);
}

/* ---- baselines ---- */

static double count_of(const char *text, int size, const char *wanted, int length)
{
	int count = 0;
	for (int i = 0; i + length <= size; i++)
		count += !memcmp(text + i, wanted, (size_t)length);
	return count;
}

/* Witten and Bell's interpolation, counted anew for each number. */
static double follows(const char *text, int size, const char *history, int order, char next)
{
	double p = (count_of(text, size, &next, 1) + 1) / (size + 256.0);
	for (int k = 1; k <= order; k++) {
		char with[4] = { 0 };
		double total = 0, kinds = 0;
		memcpy(with, history + order - k, (size_t)k);
		for (int v = 0; v < 256; v++) {
			with[k] = (char)v;
			double count = count_of(text, size, with, k + 1);
			total += count;
			kinds += count > 0;
		}
		with[k] = next;
		p = total > 0 ? (count_of(text, size, with, k + 1) + kinds * p) / (total + kinds) : p;
	}
	return p;
}

static void test_baselines(void **state)
{
	(void)state;
	static const char text[] = "abracadabra abracadabra, simsalabim; hocus pocus fidibus. abba, baobab!";
	enum { TRAINED = 40, LENGTH = 12 };
	int size = (int)sizeof text - 1;
	put("words", text, (size_t)size);
	char options[32];
	snprintf(options, sizeof options, ",held=%.17g", (size - TRAINED + 0.5) / size);
	const char *bos[] = { "", ",bos=each" };
	for (int i = 0; i < 2; i++) {
		char both[64];
		snprintf(both, sizeof both, "%s%s", options, bos[i]);
		struct method m = text_of("words", both);
		const struct task_reference *r = task_of(&m)->references;
		struct sequence s = sequence_new(LENGTH, 0x5a);
		double p[LENGTH];
		window(&m, STREAM_REPORT, 0, LENGTH, &s);
		for (int order = 0; order < 3; order++) {
			r[order].probability(&m, &s, LENGTH, LENGTH, p);
			for (int t = 0; t < LENGTH; t++) {
				char history[2];
				int known = t + 1 - i < order ? t + 1 - i : order;
				for (int n = 0; n < known; n++)
					history[n] = (char)s.token[t + 1 - known + n];
				assert_close(p[t], follows(text, TRAINED, history, known, (char)s.target[t]), 1e-14);
			}
		}
		sequence_free(&s);
	}
}

static void test_no_floor(void **state)
{
	(void)state;
	struct method text = method_default(task_named("text")), tokens = method_default(task_named("tokens"));
	assert_true(isnan(task_of(&text)->floor(&text, L, 0)) && isnan(task_of(&tokens)->floor(&tokens, L, 0)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_all_is_trained_on),
		cmocka_unit_test(test_bos),
		cmocka_unit_test(test_ends_stay),
		cmocka_unit_test(test_evenly_spread),
		cmocka_unit_test(test_held_file),
		cmocka_unit_test(test_held_file_is_trained_on),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_content_is_identity),
		cmocka_unit_test(test_baselines),
		cmocka_unit_test(test_no_floor),
	};
	return cmocka_run_group_tests_name("data text", tests, start, finish);
}
