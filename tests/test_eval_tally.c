#include "eval/tally.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void assert_near(double value, double expected)
{
	if (!(fabs(value - expected) <= 1e-14 * fabs(expected)))
		fail_msg("%.17g is not %.17g", value, expected);
}

static void test_names(void **state)
{
	(void)state;
	const char *name[EVAL_GROUPS];
	const char *const recall[] = { "recall", "near", "far", "echo", "all" };
	assert_int_equal(eval_group_names(task_of(&(struct method){ .entry = task_at(0) }), name), 5);
	for (int i = 0; i < 5; i++)
		assert_string_equal(name[i], recall[i]);

	const struct task one = { .groups = { "only" } };
	assert_int_equal(eval_group_names(&one, name), 4);
	assert_string_equal(name[0], "only");
	assert_string_equal(name[3], "all");

	const struct task most = { .groups = { "a", "b", "c", "d", "e", "f", "g", "h" } };
	assert_int_equal(eval_group_names(&most, name), EVAL_GROUPS);
	assert_string_equal(name[9], "h");
	assert_string_equal(name[10], "all");
}

/* The mean is over tokens, however they fall into sequences, never of means. */
static void test_mean(void **state)
{
	(void)state;
	const struct eval_tally tally[] = { { 4, 1, 4 * 1.0 }, { 60, 31, 60 * 0.1 } };
	struct eval_cell cell = tally_cell(tally, 2, 1, 0);
	assert_int_equal(cell.scored, 64);
	assert_near(cell.nll, 0.15625);
	assert_near(cell.perplexity, exp(0.15625));
	assert_near(cell.accuracy, 0.5);
}

static void test_standard_error(void **state)
{
	(void)state;
	/* Two groups side by side; the second is the one asked for. nll = 12 / 8 = 1.5; residuals -2, 2.5, -0.5, 0. */
	const struct eval_tally tally[] = {
		{ 9, 9, 9 }, { 2, 2, 1 }, { 9, 9, 9 }, { 3, 2, 7 }, { 9, 9, 9 }, { 3, 3, 4 }, { 9, 9, 9 }, { 0, 0, 0 },
	};
	struct eval_cell cell = tally_cell(tally, 4, 2, 1);
	assert_int_equal(cell.scored, 8);
	assert_near(cell.nll, 1.5);
	assert_near(cell.nll_se, sqrt(4.0 / 3 * (4 + 6.25 + 0.25)) / 8);
	assert_near(cell.accuracy, 7.0 / 8);
	assert_near(cell.exact, 2.0 / 3);

	cell = tally_cell(tally + 1, 1, 2, 0);
	assert_near(cell.nll, 0.5);
	assert_true(cell.nll_se == 0);
	assert_near(cell.exact, 1);
}

static void test_empty(void **state)
{
	(void)state;
	const struct eval_tally tally[3] = { 0 };
	struct eval_cell cell = tally_cell(tally, 3, 1, 0);
	assert_int_equal(cell.scored, 0);
	assert_true(cell.nll == 0 && cell.nll_se == 0 && cell.perplexity == 0 && cell.accuracy == 0 && cell.exact == 0);
}

static void test_sequence(void **state)
{
	(void)state;
	enum { T = 7, RECALL = 0, NEAR, FAR, ECHO, ALL };
	int32_t target[T] = { -1, 5, 6, -1, 7, 8, 9 };
	uint8_t group[T] = { 0, 0, 0, 1, 1, 0, 1 };
	int32_t distance[T] = { 0, 1, 9, 0, 1, 10, 1 };
	const double nll[T] = { 100, 1, 2, 100, 4, 8, 16 };
	const int32_t best[T] = { -1, 5, 0, -1, 7, 8, 0 };
	struct sequence s = { .target = target, .group = group, .distance = distance };
	struct eval_tally tally[5] = { [RECALL] = { 1, 1, 0.5 } };
	tally_sequence(task_of(&(struct method){ .entry = task_at(0) }), &s, T, 10, nll, best, tally);
	const struct eval_tally expected[] = {
		[RECALL] = { 4, 3, 11.5 }, [NEAR] = { 2, 1, 3 }, [FAR] = { 1, 1, 8 }, [ECHO] = { 2, 1, 20 },
		[ALL] = { 5, 3, 31 },
	};
	assert_memory_equal(tally, expected, sizeof expected);
}

/* Floors that differ by group and length. */
static double lengthy_floor(const struct method *task, int length, int group)
{
	(void)task;
	return group ? 3 : length;
}

static void test_floors(void **state)
{
	(void)state;
	const struct task task = { .entry = { .name = "floors", .help = "" }, .groups = { "first", "second", "third" },
				   .floor = lengthy_floor };
	struct method method = { .entry = &task.entry };
	struct eval_cell cell[6] = { { .scored = 4 }, { .scored = 4 }, { .scored = 0 }, { .scored = 12 },
				     { .scored = 0 }, { .scored = 16 } };
	tally_floors(&method, 24, cell);
	assert_near(cell[0].floor, 24);
	assert_near(cell[1].floor, 24);
	assert_true(cell[2].floor == 0 && cell[4].floor == 0);
	assert_near(cell[3].floor, 3);
	assert_near(cell[5].floor, pow(24, 0.25) * pow(3, 0.75));
}

static double first_unknown(const struct method *task, int length, int group)
{
	return group ? lengthy_floor(task, length, group) : NAN;
}

/* What is made of an unknown floor is unknown too. */
static void test_unknown_floors(void **state)
{
	(void)state;
	const struct task task = { .entry = { .name = "floors", .help = "" }, .groups = { "first", "second" },
				   .floor = first_unknown };
	struct method method = { .entry = &task.entry };
	struct eval_cell cell[5] = { { .scored = 4 }, { .scored = 4 }, { .scored = 0 }, { .scored = 12 },
				     { .scored = 16 } };
	tally_floors(&method, 24, cell);
	assert_true(isnan(cell[0].floor) && isnan(cell[1].floor) && isnan(cell[4].floor));
	assert_true(cell[2].floor == 0);
	assert_near(cell[3].floor, 3);
}

static void quarter_then_half(const struct method *task, const struct sequence *s, int train_length, int length,
			      double *p)
{
	(void)task, (void)s, (void)train_length;
	for (int t = 0; t < length; t++)
		p[t] = t % 2 ? 0.5 : 0.25;
}

static void test_baseline(void **state)
{
	(void)state;
	int32_t target[5] = { 1, 1, -1, 1, 1 };
	uint8_t group[5] = { 1, 1, 1, 0, 1 };
	struct sequence s = { .target = target, .group = group };
	const struct task_reference reference = { "quarter then half", 1, quarter_then_half };
	double p[5];
	struct baseline_tally sum = tally_baseline(&(struct method){ 0 }, &reference, &s, 64, 5, p);
	assert_int_equal(sum.scored, 3);
	assert_near(sum.nll_sum, 5 * log(2));
	assert_near(sum.p_sum, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_mean),
		cmocka_unit_test(test_standard_error),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_sequence),
		cmocka_unit_test(test_floors),
		cmocka_unit_test(test_unknown_floors),
		cmocka_unit_test(test_baseline),
	};
	return cmocka_run_group_tests_name("eval tally", tests, NULL, NULL);
}
