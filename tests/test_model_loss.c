#include "model/loss.h"
#include "tests/support.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Cross-entropy against plain loops in double, its gradient against differences of those loops. */

#ifdef ROPEWALK_DOUBLE
#define TOLERANCE 1e-12
#define SLOPE_TOLERANCE 1e-9
#define GREATEST DBL_MAX
#else
#define TOLERANCE 2e-6
#define SLOPE_TOLERANCE 1e-5
#define GREATEST FLT_MAX
#endif

struct loss_case {
	int rows, V;
	double scale, *logits;
	const int32_t *target;
};

static double probability_at(const struct loss_case *l, int r, int v)
{
	double sum = 0;
	for (int i = 0; i < l->V; i++)
		sum += exp(l->logits[r * l->V + i] - l->logits[r * l->V + v]);
	return 1 / sum;
}

static double nll_at(const struct loss_case *l, int r)
{
	return l->target[r] < 0 ? 0 : -log(probability_at(l, r, l->target[r]));
}

static double loss_of(const struct loss_case *l)
{
	double sum = 0;
	for (int r = 0; r < l->rows; r++)
		sum += l->scale * nll_at(l, r);
	return sum;
}

/* Slope of the loss along logit i: central, of fourth order. */
static double slope(struct loss_case *l, int i)
{
	double kept = l->logits[i], step = 1e-3, at[4];
	for (int k = 0; k < 4; k++) {
		l->logits[i] = kept + (k < 2 ? k - 2 : k - 1) * step;
		at[k] = loss_of(l);
	}
	l->logits[i] = kept;
	return (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * step);
}

static int32_t best_at(const struct loss_case *l, int r)
{
	int32_t best = 0;
	for (int v = 1; v < l->V; v++)
		if (l->logits[r * l->V + v] > l->logits[r * l->V + best])
			best = v;
	return l->target[r] < 0 ? -1 : best;
}

static void check_loss(int rows, int V)
{
	int size = rows * V;
	real *p = TAKE(real, (size_t)size);
	int32_t *target = TAKE(int32_t, (size_t)rows), *best = TAKE(int32_t, (size_t)rows);
	double *nll = TAKE(double, (size_t)rows);
	fill_below(2, V, target, (size_t)rows);
	for (int r = 2; r < rows; r += 3)
		target[r] = -1;
	struct loss_case l = { .rows = rows, .V = V, .scale = 0.37, .logits = TAKE(double, (size_t)size),
			       .target = target };
	fill_normal(1, p, (size_t)size);
	for (int i = 0; i < size; i++)
		l.logits[i] = (double)(p[i] *= 3);
	cross_entropy(rows, V, target, p, nll, best);
	for (int r = 0; r < rows; r++) {
		assert_close(nll[r], nll_at(&l, r), TOLERANCE);
		assert_int_equal(best[r], best_at(&l, r));
		for (int v = 0; v < V; v++)
			assert_close(p[r * V + v], target[r] < 0 ? l.logits[r * V + v] : probability_at(&l, r, v),
				     target[r] < 0 ? 0 : TOLERANCE);
	}
	cross_entropy_back(rows, V, target, l.scale, p);
	for (int i = 0; i < size; i++) {
		int r = i / V, v = i % V;
		double exact = target[r] < 0 ? 0 : l.scale * (probability_at(&l, r, v) - (v == target[r]));
		assert_close(p[i], exact, target[r] < 0 ? 0 : TOLERANCE);
		assert_close(p[i], slope(&l, i), SLOPE_TOLERANCE);
	}
	free(p), free(target), free(best), free(nll), free(l.logits);
}

static void test_cross_entropy(void **state)
{
	(void)state;
	check_loss(1, 1);
	check_loss(13, 37);
	check_loss(7, 16);
	check_loss(5, 99);
}

/* One row: its NLL and likeliest token, its probabilities left in `row`. */
static double nll_of(real *row, int V, int32_t target, int32_t *best)
{
	double nll = -1;
	cross_entropy(1, V, &target, row, &nll, best);
	return nll;
}

/* Next to a certain target the loss is the sum of the others' e^-margin: far less than 1, and still all there. */
static void test_certain(void **state)
{
	enum { V = 37 };
	(void)state;
	for (int margin = 12; margin <= 40; margin++)
		for (int target = 0; target < V; target += 9) {
			real row[V];
			int32_t best;
			for (int v = 0; v < V; v++)
				row[v] = (real)(v == target ? 5 : 5 - margin);
			double want = log1p((V - 1) * exp(-margin)), got = nll_of(row, V, target, &best);
			if (!(fabs(got - want) <= (sizeof(real) == 4 ? 1e-9 : 1e-12 * want)))
				fail_msg("margin %d: nll %.17g, exactly %.17g", margin, got, want);
			assert_int_equal(best, target);
		}
}

static void test_ties(void **state)
{
	(void)state;
	int32_t best;
	real three[40] = { [17] = 2, [20] = 2, [39] = 2 }, flat[40] = { 0 }, signs[3] = { (real)-0.0, 0, (real)-0.0 };
	assert_close(nll_of(three, 40, 20, &best), log(3 + 37 * exp(-2)), TOLERANCE);
	assert_int_equal(best, 17);
	assert_close(nll_of(flat, 40, 39, &best), log(40), TOLERANCE);
	assert_int_equal(best, 0);
	nll_of(signs, 3, 1, &best);
	assert_int_equal(best, 0);
}

/* A NaN anywhere in a row is its loss, also as the first or at the target, and that of no other row. */
static void test_nan_logits(void **state)
{
	enum { V = 35 };
	(void)state;
	for (int at = 0; at < V; at++) {
		real logits[3 * V];
		int32_t target[3] = { 4, 0, 34 }, best[3];
		double nll[3];
		fill_normal(5, logits, 3 * V);
		logits[V + at] = (real)NAN;
		cross_entropy(3, V, target, logits, nll, best);
		assert_false(isnan(nll[0]));
		assert_true(isnan(nll[1]));
		assert_false(isnan(nll[2]));
		assert_true(best[1] >= 0 && best[1] < V);
	}
	real one[1] = { (real)NAN }, infinite[3] = { 0, (real)INFINITY, 0 };
	int32_t best;
	assert_true(isnan(nll_of(one, 1, 0, &best)));
	assert_false(isfinite(nll_of(infinite, 3, 0, &best)));
}

static void test_huge_logits(void **state)
{
	(void)state;
	int32_t best;
	double sum = 0;
	real row[5] = { (real)1e30, 0, (real)-1e30, (real)1e30, (real)-INFINITY };
	assert_close(nll_of(row, 5, 3, &best), log(2), TOLERANCE);
	assert_int_equal(best, 0);
	for (int v = 0; v < 5; v++)
		sum += (double)row[v];
	assert_close(sum, 1, TOLERANCE);
	real lost[3] = { (real)1e30, 0, (real)-1e30 };
	assert_close(nll_of(lost, 3, 1, &best), (double)(real)1e30, TOLERANCE);
	/* The difference itself is beyond a float. */
	real far[2] = { (real)3e38, (real)-3e38 };
	assert_close(nll_of(far, 2, 1, &best), (double)(real)3e38 * 2, TOLERANCE);
	real low[3] = { (real)-GREATEST, (real)-GREATEST, (real)-GREATEST };
	assert_close(nll_of(low, 3, 2, &best), log(3), TOLERANCE);
	real masked[3] = { 1, (real)-INFINITY, 1 };
	assert_true(nll_of(masked, 3, 1, &best) == (double)INFINITY);
	assert_true(masked[1] == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cross_entropy),
		cmocka_unit_test(test_certain),
		cmocka_unit_test(test_ties),
		cmocka_unit_test(test_nan_logits),
		cmocka_unit_test(test_huge_logits),
	};
	return cmocka_run_group_tests_name("model loss", tests, NULL, NULL);
}
