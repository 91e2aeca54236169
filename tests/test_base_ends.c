#include "model/base/vec.h"
#include "tests/support.h"

#include <float.h>
#include <math.h>

/* Kernels at the ends of their domain, in every lane: infinities, NaN, and where results leave the normal numbers. */

enum { LONGEST = 37 };

#ifdef ROPEWALK_DOUBLE
#define NEXT nextafter
#define LEAST_NORMAL DBL_MIN
#else
#define NEXT nextafterf
#define LEAST_NORMAL FLT_MIN
#endif

/* y[at] of a row that is 0.25 elsewhere; the others must have what they have without it. */
static real sigmoid_at(real value, int n, int at)
{
	real x[LONGEST], y[LONGEST];
	real usual = (real)0.25;
	vec_sigmoid(&usual, &usual, 1);
	for (int i = 0; i < n; i++)
		x[i] = (real)0.25;
	x[at] = value;
	vec_sigmoid(x, y, n);
	for (int i = 0; i < n; i++)
		assert_true(i == at || y[i] == usual);
	return y[at];
}

static void check_sigmoid(int n, int at)
{
	assert_true(isnan(sigmoid_at(NAN, n, at)));
	assert_true(isnan(sigmoid_at(-(real)NAN, n, at)));
	assert_true(sigmoid_at(INFINITY, n, at) == 1);
	assert_true(sigmoid_at((real)1e30, n, at) == 1);
	assert_true(sigmoid_at(87, n, at) == 1 && sigmoid_at(88, n, at) == 1 && sigmoid_at(1000, n, at) == 1);
	assert_true(sigmoid_at(0, n, at) == (real)0.5 && sigmoid_at((real)-0.0, n, at) == (real)0.5);
	real none = sigmoid_at(-INFINITY, n, at), far = sigmoid_at((real)-1e30, n, at);
	assert_true(none == 0 && !signbit(none) && far == 0 && !signbit(far));
	assert_close((double)sigmoid_at(-87, n, at) / exp(-87), 1, 1e-6);
	assert_close((double)sigmoid_at(NEXT(-87, 0), n, at) / exp(-87), 1, 1e-5);
	real below = sigmoid_at(NEXT((real)-87, -(real)INFINITY), n, at);
#ifdef ROPEWALK_DOUBLE
	assert_close(below / exp(-87), 1, 1e-12);
#else
	assert_true(below == 0 && !signbit(below));
#endif
}

static void test_sigmoid(void **state)
{
	(void)state;
	for (int n = 1; n <= LONGEST; n++)
		for (int at = 0; at < n; at++)
			check_sigmoid(n, at);
}

/* exp(value - shift) as vec_exp_sum has it at this place; the sum is of what stands in the row. */
static real exp_at(real value, real shift, int n, int at)
{
	real x[LONGEST];
	for (int i = 0; i < n; i++)
		x[i] = -(real)INFINITY;
	x[at] = value;
	real sum = vec_exp_sum(x, n, shift);
	for (int i = 0; i < n; i++)
		assert_true(i == at || (x[i] == 0 && !signbit(x[i])));
	assert_true(isnan(x[at]) ? isnan(sum) : sum == x[at]);
	return x[at];
}

static void check_exp_sum(int n, int at)
{
	static const real shifts[] = { 0, 3, -500, 2048 };
	for (int i = 0; i < 4; i++) {
		real shift = shifts[i];
		assert_true(exp_at(shift, shift, n, at) == 1);
		assert_close((double)exp_at(shift - 87, shift, n, at) / exp(-87), 1, 1e-6);
		assert_true(exp_at(shift - 87, shift, n, at) >= LEAST_NORMAL);
		assert_close((double)exp_at(shift + 88, shift, n, at) / exp(88), 1, 1e-6);
		assert_true(isnan(exp_at(NAN, shift, n, at)));
		assert_true(isnan(exp_at(-(real)NAN, shift, n, at)));
		real none = exp_at(-INFINITY, shift, n, at), far = exp_at((real)-1e30, shift, n, at);
		assert_true(none == 0 && !signbit(none) && far == 0 && !signbit(far));
	}
	real below = exp_at(NEXT((real)-87, -(real)INFINITY), 0, n, at);
#ifdef ROPEWALK_DOUBLE
	assert_close(below / exp(-87), 1, 1e-12);
	assert_true(exp_at(-746, 0, n, at) == 0);
#else
	assert_true(below == 0 && !signbit(below));
#endif
}

static void test_exp_sum(void **state)
{
	(void)state;
	for (int n = 1; n <= LONGEST; n++)
		for (int at = 0; at < n; at++)
			check_exp_sum(n, at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sigmoid),
		cmocka_unit_test(test_exp_sum),
	};
	return cmocka_run_group_tests_name("base vec at the ends", tests, NULL, NULL);
}
