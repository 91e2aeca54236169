#include "tests/symbols_case.h"

#include <limits.h>

/* The task reverse: the symbols of s from the last to the first. */

static void draw(const struct method *m, enum stream stream, uint64_t index, int length, struct sequence *out)
{
	task_of(m)->make(m, 64, 101, stream, index, length, out);
}

/* The answer is s backwards, its evidence that very symbol of s. */
static void assert_reversed(const struct sequence *s, const struct reading *r, int length)
{
	int *source = malloc((size_t)r->n * sizeof *source);
	assert_non_null(source);
	for (int i = 0; i < r->n; i++) {
		source[i] = r->start + r->n - 1 - i;
		assert_int_equal(s->token[r->separator + 1 + i], s->token[source[i]]);
	}
	assert_answer(s, r, source, length);
	free(source);
}

static void test_with_gap(void **state)
{
	(void)state;
	static const int length[] = { 18, 19, 64, 257, 2048 };
	static const enum stream stream[] = { STREAM_TRAIN, STREAM_TUNE, STREAM_REPORT };
	struct method m = method_default(task_named("reverse"));
	for (int i = 0; i < 5; i++) {
		struct sequence s = sequence_new(length[i], 0x5a);
		for (uint64_t k = 0; k < 300; k++) {
			draw(&m, stream[k % 3], k, length[i], &s);
			struct reading r = read_symbols(&s, length[i]);
			assert_reversed(&s, &r, length[i]);
			assert_distinct(s.token + r.start, r.n);
			assert_true(r.n == 8 || (k % 3 == 0 && r.n >= 4 && r.n < 8));
			for (int t = 0; t < length[i]; t++)
				assert_true(s.position[t] == t);
		}
		sequence_free(&s);
	}
}

static void test_without(void **state)
{
	(void)state;
	static const int length[] = { 4, 5, 6, 9, 10, 64, 131, 2048 };
	struct method m = task_labelled("reverse(gap=off)");
	for (int i = 0; i < 8; i++) {
		int most = (length[i] - 2) / 2;
		struct sequence s = sequence_new(length[i], 0x5a);
		for (uint64_t k = 0; k < 60; k++) {
			draw(&m, k % 2 ? STREAM_TRAIN : STREAM_REPORT, k, length[i], &s);
			struct reading r = read_symbols(&s, length[i]);
			assert_reversed(&s, &r, length[i]);
			assert_true(r.start == 1 && r.separator == r.n + 1);
			assert_true(k % 2 ? r.n <= most : r.n == most);
		}
		sequence_free(&s);
	}
}

/* In a sequence the evidence moves two places away a token, from right before SEP on. */
static void test_distances(void **state)
{
	(void)state;
	struct method m = task_labelled("reverse(gap=off)");
	struct sequence s = sequence_new(64, 0x5a);
	draw(&m, STREAM_REPORT, 3, 64, &s);
	for (int i = 0; i < 31; i++)
		assert_int_equal(s.distance[32 + i], 1 + 2 * i);
	sequence_free(&s);
}

static void test_law(void **state)
{
	(void)state;
	enum { SAMPLES = 30000, ORDERED = SYMBOLS * (SYMBOLS - 1) };
	static int start[40], pair[ORDERED];
	struct method m = method_default(task_named("reverse"));
	struct sequence s = sequence_new(40, 0x5a);
	for (uint64_t k = 0; k < SAMPLES; k++) {
		draw(&m, STREAM_REPORT, k, 40, &s);
		struct reading r = read_symbols(&s, 40);
		int a = s.target[r.separator] - SYMBOL, b = s.target[r.separator + 1] - SYMBOL;
		start[r.start]++;
		pair[a * (SYMBOLS - 1) + b - (b > a)]++;
	}
	assert_drawn(start + 1, NULL, 23, "start of 8 symbols");
	assert_drawn(pair, NULL, ORDERED, "first two answers");
	sequence_free(&s);
}

static void test_solve(void **state)
{
	(void)state;
	struct method gap = method_default(task_named("reverse")), off = task_labelled("reverse(gap=0)");
	assert_solves(&gap, 64, 3000);
	assert_solves(&gap, 300, 300);
	struct method least = task_labelled("reverse(symbols=2)"), most = task_labelled("reverse(symbols=32)");
	assert_solves(&least, 6, 500);
	assert_solves(&most, 66, 500);
	assert_solves(&off, 65, 1000);
	assert_solves(&off, 400, 200);
}

static void test_solve_by_hand(void **state)
{
	(void)state;
	static const int32_t token[] = { 0, 70, 5, 9, 7, 80, 66, 1, 7, 9, 5, 77, 90 };
	static const int32_t damaged[] = { 0, 70, 5, 9, 7, 80, 66, 1, 33, 0, 98, 77, 90 };
	static const int32_t want[] = { -1, -1, -1, -1, -1, -1, -1, 7, 9, 5, -1, -1, -1 };
	int32_t target[13];
	struct method m = method_default(task_named("reverse"));
	task_of(&m)->solve(&m, token, 13, target);
	assert_memory_equal(target, want, sizeof want);
	/* From s alone, whatever stands behind SEP. */
	task_of(&m)->solve(&m, damaged, 13, target);
	assert_memory_equal(target, want, sizeof want);
}

/* The next symbol stands one position before that of SEP and of each answered symbol; all else is where it was. */
static void test_coupled(void **state)
{
	(void)state;
	struct method coupled = task_labelled("reverse(coupled=on)"), plain = method_default(task_named("reverse"));
	struct sequence s = sequence_new(64, 0x5a), other = sequence_new(64, 0x5a);
	assert_true(task_placed(&coupled) && !task_placed(&plain));
	for (uint64_t k = 0; k < 50; k++) {
		draw(&coupled, STREAM_TRAIN, k, 64, &s);
		draw(&plain, STREAM_TRAIN, k, 64, &other);
		struct reading r = read_symbols(&s, 64);
		assert_memory_equal(s.token, other.token, 64 * sizeof *s.token);
		for (int t = 0; t < 64; t++) {
			if (s.target[t] >= 0)
				assert_true(s.position[t] == s.position[t - s.distance[t]] + 1);
			else
				assert_true(t == r.end - 1 || s.position[t] == t);
		}
		assert_true(s.position[r.end - 1] == r.start);
	}
	sequence_free(&s);
	sequence_free(&other);
}

static void assert_reader(int train_length, const double *want)
{
	static int32_t token[] = { 0, 66, 2, 3, 4, 5, 67, 1, 5, 4, 3, 2, 68 };
	static int32_t target[] = { -1, -1, -1, -1, -1, -1, -1, 5, 4, 3, 2, -1, -1 };
	uint8_t group[13] = { 0 };
	double p[13];
	struct method m = method_default(task_named("reverse"));
	struct sequence s = { .token = token, .target = target, .group = group };
	const struct task_reference *r = reference_named(&m, "the ideal reader of the last train_length tokens");
	r->probability(&m, &s, train_length, 13, p);
	for (int t = 0; t < 13; t++)
		assert_close(p[t], t >= 7 && t < 11 ? want[t - 7] : 0, 1e-15);
}

static void test_reader_by_hand(void **state)
{
	(void)state;
	assert_reader(9, (const double[]){ 1, 1, 1, 1 });
	/* At the last symbol the reader sees 3 4 5 of s: the first is one of 61. */
	assert_reader(8, (const double[]){ 1, 1, 1, 1 / 61.0 });
	/* One place less: 4 and 5 of s, and the 3 answered. */
	assert_reader(7, (const double[]){ 1, 1, 1, 1 / 61.0 });
	assert_reader(3, (const double[]){ 1, 1 / 63.0, 1 / 62.0, 1 / 61.0 });
	assert_reader(2, (const double[]){ 1 / 64.0, 1 / 63.0, 1 / 62.0, 1 / 62.0 });
	assert_reader(1, (const double[]){ 1 / 64.0, 1 / 63.0, 1 / 63.0, 1 / 63.0 });
}

static void test_check(void **state)
{
	(void)state;
	struct method gap = method_default(task_named("reverse")), off = task_labelled("reverse(gap=off)");
	struct method most = task_labelled("reverse(symbols=32)"), both = task_labelled("reverse(gap=off,symbols=9)");
	assert_err(task_of(&gap)->check(&gap, 64, 17), ERR_USAGE, "reverse: length 17 is too short");
	assert_err(task_of(&gap)->check(&gap, 64, 17), ERR_USAGE, "reverse(gap=off)");
	assert_err(task_of(&most)->check(&most, 64, 65), ERR_USAGE, "need 66");
	assert_err(task_of(&both)->check(&both, 64, 64), ERR_USAGE, "no effect");
	assert_err(task_of(&off)->check(&off, 64, INT_MIN), ERR_USAGE, "need 4");
	assert_ok(task_of(&gap)->check(&gap, 1, 18));
	assert_ok(task_of(&off)->check(&off, 1, 4));
	assert_ok(task_of(&off)->check(&off, 1, INT_MAX));
	assert_true(task_of(&gap)->floor(&gap, 64, 0) == 1);
	assert_int_equal(task_of(&gap)->vocabulary(&gap), VOCABULARY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_with_gap),      cmocka_unit_test(test_without),
		cmocka_unit_test(test_distances),     cmocka_unit_test(test_law),
		cmocka_unit_test(test_solve),	      cmocka_unit_test(test_solve_by_hand),
		cmocka_unit_test(test_coupled),	      cmocka_unit_test(test_reader_by_hand),
		cmocka_unit_test(test_check),
	};
	return cmocka_run_group_tests_name("data reverse", tests, NULL, NULL);
}
