#include "eval/statistics.h"

#include <math.h>

#include "tests/support.h"

/* Values of printed tables (Abramowitz and Stegun, table 26.10): two-sided 95 % and 99 %. */
static void test_student(void **state)
{
	(void)state;
	static const struct {
		int df;
		double ninety_five, ninety_nine;
	} row[] = { { 1, 12.706, 63.657 }, { 2, 4.303, 9.925 },  { 3, 3.182, 5.841 },  { 4, 2.776, 4.604 },
		    { 5, 2.571, 4.032 },   { 9, 2.262, 3.250 },  { 10, 2.228, 3.169 }, { 29, 2.045, 2.756 },
		    { 30, 2.042, 2.750 },  { 60, 2.000, 2.660 }, { 120, 1.980, 2.617 } };
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		assert_below(fabs(student_quantile(0.975, row[i].df) - row[i].ninety_five), 5.01e-4);
		assert_below(fabs(student_quantile(0.995, row[i].df) - row[i].ninety_nine), 5.01e-4);
		assert_close(student_quantile(0.025, row[i].df), -student_quantile(0.975, row[i].df), 1e-15);
		assert_close(student_cdf(student_quantile(0.9, row[i].df), row[i].df), 0.9, 1e-12);
	}
	/* df 1 is Cauchy's, df 2 has a short form. */
	assert_close(student_cdf(1, 1), 0.75, 1e-15);
	assert_close(student_cdf(-2, 2), 0.5 - 2 / (2 * sqrt(6)), 1e-15);
	for (int df = 1; df < 8; df++)
		assert_close(student_cdf(0, df), 0.5, 1e-15);
}

/* By hand: -0.1 ... -0.5 have mean -0.3, sd sqrt(0.1 / 4); t of 4 degrees is 2.776445. */
static void test_interval(void **state)
{
	(void)state;
	const double x[] = { -0.1, -0.2, -0.3, -0.4, -0.5 };
	struct interval i = mean_interval(x, 5, 0.95);
	assert_int_equal(i.n, 5);
	assert_close(i.mean, -0.3, 1e-15);
	assert_close(i.sd, sqrt(0.025), 1e-15);
	assert_close(i.low, -0.3 - 2.7764451052 * sqrt(0.025 / 5), 1e-10);
	assert_close(i.high, -0.3 + 2.7764451052 * sqrt(0.025 / 5), 1e-10);
	struct interval wider = mean_interval(x, 5, 0.99);
	assert_true(wider.low < i.low && wider.high > i.high);
	i = mean_interval(x, 1, 0.95);
	assert_true(i.mean == -0.1 && i.sd == 0 && isnan(i.low) && isnan(i.high));
	const double equal[] = { 2, 2, 2 };
	i = mean_interval(equal, 3, 0.95);
	assert_true(i.low == 2 && i.high == 2 && i.sd == 0);
}

static void test_logit(void **state)
{
	(void)state;
	assert_close(empirical_logit(5, 10), 0, 1e-15);
	assert_close(empirical_logit(10, 10), log(21), 1e-15);
	assert_close(empirical_logit(0, 10), -log(21), 1e-14);
	assert_close(logistic(log(3)), 0.75, 1e-15);
	assert_close(logistic(empirical_logit(300, 1000)), 300.5 / 1001, 1e-15);
}

/* By hand: 2 (1 + ...) / 2^n. */
static void test_sign(void **state)
{
	(void)state;
	assert_true(sign_test(6, 0) == 0.03125);
	assert_true(sign_test(0, 6) == 0.03125);
	assert_true(sign_test(5, 0) == 0.0625);
	assert_true(sign_test(7, 1) == 18.0 / 256); /* 2 (1 + 8) */
	assert_true(sign_test(8, 1) == 20.0 / 512);
	assert_true(sign_test(9, 2) == 134.0 / 2048); /* 2 (1 + 11 + 55) */
	assert_true(sign_test(3, 3) == 1);
	assert_true(sign_test(4, 3) == 1);
	assert_true(sign_test(0, 0) == 1);
	assert_close(sign_test(60, 40), 0.0568879, 1e-7); /* Fisher's two-sided p of 60 in 100 */
	assert_true(sign_test(1000, 0) > 0);
}

static void test_tau(void **state)
{
	(void)state;
	const double up[] = { 1, 2, 3, 4 }, down[] = { 8, 6, 4, 2 }, swapped[] = { 2, 1, 3, 4 };
	assert_true(kendall_tau(up, up, 4) == 1);
	assert_true(kendall_tau(up, down, 4) == -1);
	assert_close(kendall_tau(up, swapped, 4), 4.0 / 6, 1e-15);
	/* One tie in x: pairs not tied 5 and 6, all five in the same order. */
	const double tied[] = { 1, 1, 2, 3 };
	assert_close(kendall_tau(tied, up, 4), 5 / sqrt(30), 1e-15);
	/* The same tie in both: as good as it gets. */
	assert_close(kendall_tau(tied, tied, 4), 1, 1e-15);
	/* Ties of different pairs: not tied 5 and 5; (0,1) and (2,3) drop out, the rest agree. */
	const double other[] = { 1, 2, 3, 3 };
	assert_close(kendall_tau(tied, other, 4), 4.0 / 5, 1e-15);
	const double flat[] = { 7, 7, 7, 7 };
	assert_true(isnan(kendall_tau(up, flat, 4)));
	assert_true(isnan(kendall_tau(up, up, 1)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_student),
		cmocka_unit_test(test_interval),
		cmocka_unit_test(test_logit),
		cmocka_unit_test(test_sign),
		cmocka_unit_test(test_tau),
	};
	return cmocka_run_group_tests_name("eval statistics", tests, NULL, NULL);
}
