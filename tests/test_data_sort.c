#include "tests/symbols_case.h"

#include <limits.h>

/* The task sort: the symbols of s in ascending order. */

static void draw(const struct method *m, enum stream stream, uint64_t index, int length, struct sequence *out)
{
	task_of(m)->make(m, 64, 101, stream, index, length, out);
}

/* The answer ascends, and its evidence is every symbol of s once, equal ones in their order. */
static void assert_sorted(const struct sequence *s, const struct reading *r, int length)
{
	int *source = malloc((size_t)r->n * sizeof *source);
	bool *used = calloc((size_t)length, sizeof *used);
	assert_true(source && used);
	for (int i = 0; i < r->n; i++) {
		int t = r->separator + i;
		source[i] = t - s->distance[t];
		assert_true(source[i] >= r->start && source[i] < r->start + r->n && !used[source[i]]);
		used[source[i]] = true;
		if (i == 0)
			continue;
		assert_true(s->token[t + 1] >= s->token[t]);
		assert_true(s->token[t + 1] > s->token[t] || source[i] > source[i - 1]);
	}
	assert_answer(s, r, source, length);
	free(source);
	free(used);
}

static void test_with_gap(void **state)
{
	(void)state;
	static const int length[] = { 34, 35, 64, 257, 2048 };
	static const enum stream stream[] = { STREAM_TRAIN, STREAM_TUNE, STREAM_REPORT };
	struct method m = method_default(task_named("sort"));
	for (int i = 0; i < 5; i++) {
		struct sequence s = sequence_new(length[i], 0x5a);
		for (uint64_t k = 0; k < 300; k++) {
			draw(&m, stream[k % 3], k, length[i], &s);
			struct reading r = read_symbols(&s, length[i]);
			assert_sorted(&s, &r, length[i]);
			assert_distinct(s.token + r.start, r.n);
			assert_true(r.n == 16 || (k % 3 == 0 && r.n >= 4 && r.n < 16));
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
	struct method m = task_labelled("sort(gap=off)");
	for (int i = 0; i < 8; i++) {
		int most = (length[i] - 2) / 2;
		struct sequence s = sequence_new(length[i], 0x5a);
		for (uint64_t k = 0; k < 60; k++) {
			draw(&m, k % 2 ? STREAM_TRAIN : STREAM_REPORT, k, length[i], &s);
			struct reading r = read_symbols(&s, length[i]);
			assert_sorted(&s, &r, length[i]);
			assert_true(r.start == 1 && r.separator == r.n + 1);
			assert_true(k % 2 ? r.n <= most : r.n == most);
		}
		sequence_free(&s);
	}
}

/* The answers are a uniform subset: its least symbol is v with probability C(63 - v, 15) / C(64, 16). */
static void test_law(void **state)
{
	(void)state;
	enum { SAMPLES = 20000 };
	int least[SYMBOLS] = { 0 }, place[16] = { 0 };
	double p[SYMBOLS];
	struct method m = method_default(task_named("sort"));
	struct sequence s = sequence_new(64, 0x5a);
	for (uint64_t k = 0; k < SAMPLES; k++) {
		draw(&m, STREAM_REPORT, k, 64, &s);
		struct reading r = read_symbols(&s, 64);
		least[s.token[r.separator + 1] - SYMBOL]++;
		place[r.separator - s.distance[r.separator] - r.start]++;
	}
	p[0] = 16.0 / 64;
	for (int v = 1; v < SYMBOLS; v++)
		p[v] = v > 48 ? 0 : p[v - 1] * (49 - v) / (64 - v);
	assert_drawn(least, p, SYMBOLS, "least symbol");
	assert_drawn(place, NULL, 16, "place of the least symbol");
	sequence_free(&s);
}

static void test_solve(void **state)
{
	(void)state;
	struct method gap = method_default(task_named("sort")), off = task_labelled("sort(gap=0)");
	assert_solves(&gap, 64, 3000);
	assert_solves(&gap, 300, 300);
	struct method least = task_labelled("sort(symbols=2)"), most = task_labelled("sort(symbols=32)");
	assert_solves(&least, 6, 500);
	assert_solves(&most, 66, 500);
	assert_solves(&off, 65, 1000);
	assert_solves(&off, 400, 200);
}

static void test_solve_by_hand(void **state)
{
	(void)state;
	static const int32_t token[] = { 0, 70, 9, 5, 9, 80, 66, 1, 5, 9, 9, 77, 90 };
	static const int32_t damaged[] = { 0, 70, 9, 5, 9, 80, 66, 1, 33, 0, 98, 77, 90 };
	static const int32_t want[] = { -1, -1, -1, -1, -1, -1, -1, 5, 9, 9, -1, -1, -1 };
	int32_t target[13];
	struct method m = method_default(task_named("sort"));
	task_of(&m)->solve(&m, token, 13, target);
	assert_memory_equal(target, want, sizeof want);
	/* From s alone, whatever stands behind SEP. */
	task_of(&m)->solve(&m, damaged, 13, target);
	assert_memory_equal(target, want, sizeof want);
}

static void read_window(const char *label, struct sequence *s, int length, int train_length, double *p)
{
	struct method m = task_labelled(label);
	reference_named(&m, "the ideal reader of the last train_length tokens")
		->probability(&m, s, train_length, length, p);
}

/* s is 2 3 4 5. */
static void test_reader_by_hand(void **state)
{
	(void)state;
	int32_t token[] = { 0, 66, 2, 3, 4, 5, 67, 1, 2, 3, 4, 5, 68 };
	int32_t target[] = { -1, -1, -1, -1, -1, -1, -1, 2, 3, 4, 5, -1, -1 };
	uint8_t group[13] = { 0 };
	struct sequence s = { .token = token, .target = target, .group = group };
	double p[13];
	read_window("sort", &s, 13, 6, p);
	assert_true(p[7] == 1 && p[8] == 1 && p[9] == 1 && p[10] == 1);
	/* The next one unseen, those above it in sight: one of 61 wherever it is. */
	read_window("sort", &s, 13, 5, p);
	for (int i = 0; i < 4; i++)
		assert_close(p[7 + i], 1 / 61.0, 1e-15);
	/* Two unseen of 62, until 5 alone is left. */
	read_window("sort", &s, 13, 4, p);
	for (int i = 0; i < 4; i++)
		assert_close(p[7 + i], i < 3 ? 2 / 62.0 : 1 / 61.0, 1e-15);
	/* Nothing in sight: the least of four of 64, then of three of 63, of two of 62, of one of 61. */
	read_window("sort", &s, 13, 1, p);
	for (int i = 0; i < 4; i++)
		assert_close(p[7 + i], (4 - i) / (64.0 - i), 1e-15);
	target[7] = 4;
	read_window("sort", &s, 13, 1, p);
	assert_close(p[7], 60 / 64.0 * 59 / 63 * 4 / 62, 1e-15);
	/* The greatest that leaves room for three above it. */
	target[7] = SYMBOL + 61;
	read_window("sort", &s, 13, 1, p);
	assert_true(p[7] == 0);
}

/* One whole shuffle and the symbols 3 and 4 once more: the whole one needs no look. */
static void test_reader_of_shuffles(void **state)
{
	(void)state;
	enum { N = 66, LENGTH = 2 * N + 2, AT = N + 1 };
	struct sequence s = sequence_new(LENGTH, 0);
	double p[LENGTH];
	s.token[0] = BOS;
	s.token[AT] = SEP;
	for (int i = 0; i < N; i++) {
		s.token[1 + i] = i < 64 ? SYMBOL + i : i == 64 ? 4 : 3;
		s.token[AT + 1 + i] = i < 1 ? 2 : i < 5 ? 3 + (i - 1) / 2 : i;
	}
	for (int t = 0; t < LENGTH; t++)
		s.target[t] = t >= AT && t < AT + N ? s.token[t + 1] : -1;
	read_window("sort(gap=off)", &s, LENGTH, 1, p);
	const double want[] = { 1, 62 / 64.0, 2 / 63.0, 1, 1 / 62.0, 1, 1, 1, 1 };
	for (int i = 0; i < 9; i++)
		assert_close(p[AT + i], want[i], 1e-15);
	/* 3 in sight from SEP to the 2: then one of two is unseen, of 63. */
	read_window("sort(gap=off)", &s, LENGTH, 3, p);
	assert_close(p[AT + 1], 1 - 1 / 63.0, 1e-15);
	sequence_free(&s);
}

static void test_check(void **state)
{
	(void)state;
	struct method gap = method_default(task_named("sort")), off = task_labelled("sort(gap=off)");
	struct method most = task_labelled("sort(symbols=32)"), both = task_labelled("sort(gap=off,symbols=9)");
	assert_err(task_of(&gap)->check(&gap, 64, 33), ERR_USAGE, "sort: length 33 is too short");
	assert_err(task_of(&most)->check(&most, 64, 65), ERR_USAGE, "need 66");
	assert_err(task_of(&both)->check(&both, 64, 64), ERR_USAGE, "no effect");
	assert_err(task_of(&off)->check(&off, 64, 3), ERR_USAGE, "need 4");
	assert_ok(task_of(&gap)->check(&gap, 1, INT_MAX));
	assert_ok(task_of(&off)->check(&off, 1, 4));
	assert_true(task_of(&gap)->floor(&gap, 64, 0) == 1);
	assert_int_equal(task_of(&gap)->vocabulary(&gap), VOCABULARY);
	assert_null(task_of(&gap)->placed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_with_gap),	   cmocka_unit_test(test_without),
		cmocka_unit_test(test_law),		   cmocka_unit_test(test_solve),
		cmocka_unit_test(test_solve_by_hand),	   cmocka_unit_test(test_reader_by_hand),
		cmocka_unit_test(test_reader_of_shuffles), cmocka_unit_test(test_check),
	};
	return cmocka_run_group_tests_name("data sort", tests, NULL, NULL);
}
