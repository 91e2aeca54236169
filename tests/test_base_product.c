#include "model/base/product.h"
#include "model/base/threads.h"
#include "tests/support.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Our own small products against plain loops in double, on every kind of edge; and the sharing of work by threads. */

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
	size_t a = (size_t)(m + 2) * (size_t)(k + 2), b = (size_t)(transposed ? n : k) * (size_t)f.ldb, c = (size_t)(m * f.ldc);
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

/* A row's bits do not depend on which rows it is computed with, nor a column's on its neighbours. */
static void test_place_changes_no_bit(void **state)
{
	enum { M = 23, N = 45, K = 70 };
	struct factors f = factors(M, N, K, false, false);
	real alone[N];
	(void)state;
	product(M, N, K, 1, f.a, f.a_row, 1, f.b, f.ldb, false, f.c, f.ldc);
	for (int i = 0; i < M; i++) {
		product(1, N, K, 1, f.a + (size_t)i * f.a_row, f.a_row, 1, f.b, f.ldb, false, alone, N);
		assert_memory_equal(alone, f.c + i * f.ldc, N * sizeof(real));
		for (int j = 0; j < N; j++) {
			real one;
			product(1, 1, K, 1, f.a + (size_t)i * f.a_row, f.a_row, 1, f.b + j, f.ldb, false, &one, 1);
			assert_true(one == f.c[i * f.ldc + j]);
		}
	}
	factors_free(&f);
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
	assert_false(product_suits(64, 4, 64));
	assert_false(product_suits(64, 1000, 300));
	assert_false(product_suits(1, 64, 64));
}

/* ---- sharing of work ---- */

enum { WORK = 100 };
static atomic_int met[WORK];

/* All of the work stands in the first share; the others are done at once and take from it. */
static void uneven(int index, int thread, void *data)
{
	volatile double sink = 0;
	for (int i = 0; i < (index < WORK / 4 ? 200000 : 1); i++)
		sink += i;
	atomic_fetch_add(&met[index], 1);
	(void)thread, (void)data;
}

static void test_uneven_work(void **state)
{
	static const int threads[] = { 1, 2, 3, 4, 7 };
	(void)state;
	for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
		threads_start(threads[t]);
		for (int i = 0; i < WORK; i++)
			atomic_store(&met[i], 0);
		threads_each(WORK, uneven, NULL);
		for (int i = 0; i < WORK; i++)
			assert_int_equal(atomic_load(&met[i]), 1);
	}
	threads_start(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_edge),
		cmocka_unit_test(test_place_changes_no_bit),
		cmocka_unit_test(test_nothing_old_shines_through),
		cmocka_unit_test(test_suits),
		cmocka_unit_test(test_uneven_work),
	};
	return cmocka_run_group_tests_name("base product", tests, NULL, NULL);
}
