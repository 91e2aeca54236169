#include "model/base/product.h"
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Our own small products against plain loops in double, on every kind of edge. */

#ifdef ROPEWALK_DOUBLE
#define TOLERANCE 1e-13
#else
#define TOLERANCE 5e-6
#endif

struct factors {
	int m, n, k, ldb, ldc;
	size_t a_row, a_column;
	real *a, *b, *c, *before;
};

static struct factors factors(int m, int n, int k, bool columns, bool transposed)
{
	struct factors f = { .m = m, .n = n, .k = k, .ldb = (transposed ? k : n) + 3, .ldc = n + 5 };
	f.a_row = columns ? 1 : (size_t)k + 2;
	f.a_column = columns ? (size_t)m + 1 : 1;
	size_t a = (size_t)(m + 2) * (size_t)(k + 2), b = (size_t)(transposed ? n : k) * (size_t)f.ldb,
	       c = (size_t)(m * f.ldc);
	f.a = TAKE(real, a);
	f.b = TAKE(real, b);
	f.c = TAKE(real, c);
	f.before = TAKE(real, c);
	fill_normal(1, f.a, a);
	fill_normal(2, f.b, b);
	fill_normal(3, f.before, c);
	memcpy(f.c, f.before, c * sizeof(real));
	return f;
}

static void factors_free(struct factors *f)
{
	free(f->a);
	free(f->b);
	free(f->c);
	free(f->before);
}

/* Greatest error relative to sqrt(k); columns past n must be untouched. */
static double error_of(const struct factors *f, double alpha, bool add, bool transposed)
{
	double worst = 0;
	for (int i = 0; i < f->m; i++)
		for (int j = 0; j < f->ldc; j++) {
			double sum = 0, old = (double)f->before[i * f->ldc + j], now = (double)f->c[i * f->ldc + j];
			for (int p = 0; p < f->k && j < f->n; p++)
				sum += (double)f->a[(size_t)i * f->a_row + (size_t)p * f->a_column] *
				       (double)f->b[transposed ? j * f->ldb + p : p * f->ldb + j];
			double wanted = j >= f->n ? old : alpha * sum + (add ? old : 0);
			worst = fmax(worst, fabs(now - wanted) / sqrt(f->k));
		}
	return worst;
}

static void check(int m, int n, int k, bool columns, bool transposed, bool add)
{
	struct factors f = factors(m, n, k, columns, transposed);
	const real alpha = (real)-0.75;
	if (transposed)
		product_transposed(m, n, k, alpha, f.a, f.a_row, f.b, f.ldb, add, f.c, f.ldc);
	else
		product(m, n, k, alpha, f.a, f.a_row, f.a_column, f.b, f.ldb, add, f.c, f.ldc);
	assert_below(error_of(&f, (double)alpha, add, transposed), TOLERANCE);
	factors_free(&f);
}

static void test_every_edge(void **state)
{
	static const int ns[] = { 1, 7, 8, 15, 16, 17, 33, 48, 99 }, ks[] = { 1, 2, 31, 64, 255, 256, 257, 600 };
	(void)state;
	for (int m = 1; m <= 14; m++)
		for (size_t n = 0; n < sizeof ns / sizeof ns[0]; n++)
			for (size_t k = 0; k < sizeof ks / sizeof ks[0]; k++)
				for (int add = 0; add < 2; add++) {
					check(m, ns[n], ks[k], false, false, add);
					check(m, ns[n], ks[k], true, false, add);
					check(m, ns[n], ks[k], false, true, add);
				}
}

/* m by n elements of the whole product, from `row` and `column` on, into `part` [m][n]. */
static void cut_out(const struct factors *f, int row, int column, int m, int n, bool transposed, bool add, real *part)
{
	const real *a = f->a + (size_t)row * f->a_row, *b = f->b + (transposed ? column * f->ldb : column);
	for (int i = 0; i < m; i++)
		memcpy(part + i * n, f->before + (row + i) * f->ldc + column, (size_t)n * sizeof *part);
	if (transposed)
		product_transposed(m, n, f->k, (real)0.3, a, f->a_row, b, f->ldb, add, part, n);
	else
		product(m, n, f->k, (real)0.3, a, f->a_row, f->a_column, b, f->ldb, add, part, n);
}

/* A row's bits do not depend on which rows it is computed with, nor a column's on its neighbours: every corner of C, so
 * that an element is met in whole blocks and in each remainder, and single elements. */
static void check_places(bool columns, bool transposed, bool add)
{
	enum { M = 14, N = 37, K = 300 };
	struct factors f = factors(M, N, K, columns, transposed);
	real whole[M * N], part[M * N];
	cut_out(&f, 0, 0, M, N, transposed, add, whole);
	for (int row = 0; row < M; row++)
		for (int column = 0; column < N; column += 3) {
			int m = M - row, n = N - column;
			cut_out(&f, row, column, m, n, transposed, add, part);
			for (int i = 0; i < m; i++)
				assert_memory_equal(part + i * n, whole + (row + i) * N + column,
						    (size_t)n * sizeof *part);
			cut_out(&f, row, column, 1, 1, transposed, add, part);
			assert_memory_equal(part, whole + row * N + column, sizeof *part);
		}
	factors_free(&f);
}

static void test_place_changes_no_bit(void **state)
{
	(void)state;
	for (int add = 0; add < 2; add++) {
		check_places(false, false, add);
		check_places(true, false, add);
		check_places(false, true, add);
	}
}

/* An empty sum is 0, not what C held. */
static void test_nothing_to_sum(void **state)
{
	real a[8] = { 0 }, b[40] = { 0 }, c[2][20];
	(void)state;
	for (int add = 0; add < 2; add++)
		for (int i = 0; i < 20; i++) {
			memset(c, 0, sizeof c);
			c[0][i] = c[1][i] = 7;
			product(1, 20, 0, 2, a, 1, 1, b, 20, add, c[0], 20);
			product_transposed(1, 20, 0, 2, a, 1, b, 1, add, c[1], 20);
			assert_true(c[0][i] == (add ? 7 : 0) && c[1][i] == (add ? 7 : 0));
		}
}

static void test_nothing_old_shines_through(void **state)
{
	enum { M = 9, N = 20, K = 300 };
	struct factors f = factors(M, N, K, false, false);
	(void)state;
	for (int i = 0; i < M; i++)
		for (int j = 0; j < N; j++)
			f.c[i * f.ldc + j] = (real)NAN;
	product(M, N, K, 1, f.a, f.a_row, 1, f.b, f.ldb, false, f.c, f.ldc);
	assert_below(error_of(&f, 1, false, false), TOLERANCE);
	factors_free(&f);
}

static void test_suits(void **state)
{
	(void)state;
	assert_false(product_suits(64, PRODUCT_COLUMNS - 1, 64));
	assert_false(product_suits(64, 1000, 300));
	assert_false(product_suits(1, 64, 64));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_edge),
		cmocka_unit_test(test_place_changes_no_bit),
		cmocka_unit_test(test_nothing_to_sum),
		cmocka_unit_test(test_nothing_old_shines_through),
		cmocka_unit_test(test_suits),
	};
	return cmocka_run_group_tests_name("base product", tests, NULL, NULL);
}
