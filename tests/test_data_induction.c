#include "tests/symbols_case.h"

#include <limits.h>

/* The task induction: a segment, and somewhere behind it the same again. */

struct segment {
	int start, again, n;
};

/* From the tokens: BOS, fillers, n symbols, fillers, the same n symbols, fillers. */
static struct segment read_segments(const struct sequence *s, int length)
{
	struct segment g = { .start = 1 };
	assert_int_equal(s->token[0], BOS);
	while (g.start < length && !symbol(s->token[g.start]))
		g.start++;
	for (g.again = g.start + 1; g.again < length && s->token[g.again] != s->token[g.start]; g.again++)
		g.n += symbol(s->token[g.again]);
	g.n++;
	assert_true(g.again + g.n <= length);
	assert_distinct(s->token + g.start, g.n);
	assert_memory_equal(s->token + g.start, s->token + g.again, (size_t)g.n * sizeof *s->token);
	assert_fillers(s, 1, g.start);
	assert_fillers(s, g.start + g.n, g.again);
	assert_fillers(s, g.again + g.n, length);
	return g;
}

/* Scored is the return but for its first symbol: the next token, which followed the same symbol before. */
static void assert_scored(const struct sequence *s, const struct segment *g, int length)
{
	for (int t = 0; t < length; t++) {
		bool scored = t >= g->again && t < g->again + g->n - 1;
		assert_int_equal(s->target[t], scored ? s->token[t + 1] : -1);
		assert_int_equal(s->distance[t], scored ? g->again - g->start - 1 : 0);
		assert_true(s->position[t] == t);
		if (!scored)
			continue;
		int evidence = t - s->distance[t];
		assert_int_equal(s->token[evidence], s->target[t]);
		assert_int_equal(s->token[evidence - 1], s->token[t]);
		assert_int_equal(s->group[t], 0);
	}
}

static void draw(const struct method *m, enum stream stream, uint64_t index, int length, struct sequence *out)
{
	task_of(m)->make(m, 64, 101, stream, index, length, out);
}

static void assert_sequences(const char *label, int least, int most, int length)
{
	static const enum stream stream[] = { STREAM_TRAIN, STREAM_TUNE, STREAM_REPORT };
	struct method m = task_labelled(label);
	struct sequence s = sequence_new(length, 0x5a);
	for (uint64_t k = 0; k < 300; k++) {
		draw(&m, stream[k % 3], k, length, &s);
		struct segment g = read_segments(&s, length);
		assert_scored(&s, &g, length);
		assert_true(k % 3 ? g.n == most : g.n >= least && g.n <= most);
	}
	sequence_free(&s);
}

static void test_sequences(void **state)
{
	(void)state;
	assert_sequences("induction", 4, 16, 33);
	assert_sequences("induction", 4, 16, 34);
	assert_sequences("induction", 4, 16, 64);
	assert_sequences("induction", 4, 16, 2048);
	assert_sequences("induction(segment=2)", 2, 2, 5);
	assert_sequences("induction(segment=7)", 2, 7, 100);
	assert_sequences("induction(segment=32)", 8, 32, 65);
	assert_sequences("induction(segment=32)", 8, 32, 300);
}

/* At length 36 the segment starts at 1 .. 4, each as often, and returns at any of the places left. */
static void test_law(void **state)
{
	(void)state;
	enum { SAMPLES = 30000 };
	static int place[4 * 4], n[13], pair[SYMBOLS * (SYMBOLS - 1)], filler[32];
	double want[4 * 4] = { 0 };
	struct method m = method_default(task_named("induction"));
	struct sequence s = sequence_new(36, 0x5a);
	for (uint64_t k = 0; k < SAMPLES; k++) {
		draw(&m, STREAM_REPORT, k, 36, &s);
		struct segment g = read_segments(&s, 36);
		int a = s.token[g.start] - SYMBOL, b = s.token[g.start + 1] - SYMBOL;
		place[(g.start - 1) * 4 + g.again - g.start - 16]++;
		pair[a * (SYMBOLS - 1) + b - (b > a)]++;
		for (int t = g.again + 16; t < 36; t++)
			filler[s.token[t] - FILLER]++;
		draw(&m, STREAM_TRAIN, k, 36, &s);
		n[read_segments(&s, 36).n - 4]++;
	}
	int used = 0;
	for (int start = 0; start < 4; start++)
		for (int gap = 0; gap < 4 - start; gap++) {
			want[used] = 1.0 / 4 / (4 - start);
			place[used++] = place[start * 4 + gap];
		}
	assert_drawn(place, want, used, "places of the segment and of its return");
	assert_drawn(n, NULL, 13, "symbols in training");
	assert_drawn(pair, NULL, SYMBOLS * (SYMBOLS - 1), "first two symbols");
	assert_drawn(filler, NULL, 32, "fillers");
	sequence_free(&s);
}

static void test_solve(void **state)
{
	(void)state;
	struct method m = method_default(task_named("induction")), least = task_labelled("induction(segment=2)");
	assert_solves(&m, 33, 1000);
	assert_solves(&m, 64, 3000);
	assert_solves(&m, 300, 300);
	assert_solves(&least, 5, 500);
	assert_solves(&least, 9, 2000);
}

static void assert_solved(const int32_t *token, const int32_t *want, int length)
{
	int32_t target[12];
	struct method m = method_default(task_named("induction"));
	task_of(&m)->solve(&m, token, length, target);
	assert_memory_equal(target, want, (size_t)length * sizeof *target);
}

static void test_solve_by_hand(void **state)
{
	(void)state;
	assert_solved((const int32_t[]){ 0, 70, 5, 9, 7, 80, 80, 5, 9, 7, 77, 70 },
		      (const int32_t[]){ -1, -1, -1, -1, -1, -1, -1, 9, 7, -1, -1, -1 }, 12);
	/* Returning at once, and with the same filler behind both. */
	assert_solved((const int32_t[]){ 0, 5, 9, 7, 5, 9, 7, 66 },
		      (const int32_t[]){ -1, -1, -1, -1, 9, 7, -1, -1 }, 8);
	assert_solved((const int32_t[]){ 0, 5, 9, 66, 5, 9, 66, 66 },
		      (const int32_t[]){ -1, -1, -1, -1, 9, -1, -1, -1 }, 8);
}

static void test_filler(void **state)
{
	(void)state;
	struct method m = method_default(task_named("induction"));
	struct sequence s = sequence_new(64, 0x5a);
	for (uint64_t k = 0; k < 200; k++) {
		draw(&m, STREAM_REPORT, k, 64, &s);
		struct segment g = read_segments(&s, 64);
		for (int t = 1; t < 64; t++) {
			bool inside = (t > g.start && t < g.start + g.n) || (t > g.again && t < g.again + g.n);
			bool at_once = t == g.again && g.again == g.start + g.n;
			assert_int_equal(task_of(&m)->may_insert(&m, &s, 64, t), !inside && !at_once);
		}
	}
	sequence_free(&s);
}

static void assert_reader(int train_length, const double *want)
{
	static int32_t token[] = { 0, 66, 2, 3, 4, 5, 67, 2, 3, 4, 5, 67, 68 };
	static int32_t target[] = { -1, -1, -1, -1, -1, -1, -1, 3, 4, 5, -1, -1, -1 };
	uint8_t group[13] = { 0 };
	double p[13];
	struct method m = method_default(task_named("induction"));
	struct sequence s = { .token = token, .target = target, .group = group };
	const struct task_reference *r = reference_named(&m, "the ideal reader of the last train_length tokens");
	r->probability(&m, &s, train_length, 13, p);
	for (int t = 0; t < 13; t++)
		assert_close(p[t], t >= 7 && t < 10 ? want[t - 7] : 0, 1e-15);
	reference_named(&m, "guessing among the symbols of the segment")->probability(&m, &s, train_length, 13, p);
	for (int t = 0; t < 13; t++)
		assert_true(p[t] == (t >= 7 && t < 10 ? 0.25 : 0));
}

static void test_reader_by_hand(void **state)
{
	(void)state;
	assert_reader(5, (const double[]){ 1, 1, 1 });
	/* 4 and 5 of the segment are in sight, and the 2 that returned. */
	assert_reader(4, (const double[]){ 1 / 61.0, 1 / 61.0, 1 / 61.0 });
	assert_reader(2, (const double[]){ 1 / 63.0, 1 / 62.0, 1 / 62.0 });
	assert_reader(1, (const double[]){ 1 / 63.0, 1 / 63.0, 1 / 63.0 });
}

static void test_check(void **state)
{
	(void)state;
	struct method m = method_default(task_named("induction")), least = task_labelled("induction(segment=2)"), bad;
	assert_err(task_of(&m)->check(&m, 64, 32), ERR_USAGE, "need 33");
	assert_err(task_of(&m)->check(&m, 64, INT_MIN), ERR_USAGE, "--induction-segment");
	assert_err(task_of(&least)->check(&least, 64, 4), ERR_USAGE, "need 5");
	assert_ok(task_of(&m)->check(&m, 1, 33));
	assert_ok(task_of(&m)->check(&m, 1, INT_MAX));
	assert_err(method_parse("task", task_at, "induction(segment=1)", &bad), ERR_USAGE, "segment");
	assert_err(method_parse("task", task_at, "induction(segment=33)", &bad), ERR_USAGE, "segment");
	assert_true(task_of(&m)->floor(&m, 64, 0) == 1);
	assert_int_equal(task_of(&m)->vocabulary(&m), VOCABULARY);
	assert_string_equal(task_of(&m)->groups[0], "induction");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequences), cmocka_unit_test(test_law),
		cmocka_unit_test(test_solve),	  cmocka_unit_test(test_solve_by_hand),
		cmocka_unit_test(test_filler),	  cmocka_unit_test(test_reader_by_hand),
		cmocka_unit_test(test_check),
	};
	return cmocka_run_group_tests_name("data induction", tests, NULL, NULL);
}
