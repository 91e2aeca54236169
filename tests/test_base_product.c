#include "model/base/product.h"
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Products with a second factor that is turned over once, and those that leave out what no one reads or what is 0. */

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])

#ifdef ROPEWALK_DOUBLE
#define TOLERANCE 1e-13
#else
#define TOLERANCE 5e-6
#endif

/* Stands behind and between what may be written. */
#define UNTOUCHED ((real)12345)

static real *normal(uint64_t seed, size_t count)
{
	real *x = TAKE(real, count);
	fill_normal(seed, x, count);
	return x;
}

static real *untouched(size_t count)
{
	real *x = TAKE(real, count);
	for (size_t i = 0; i < count; i++)
		x[i] = UNTOUCHED;
	return x;
}

static int round_up(int n, int step)
{
	return (n + step - 1) / step * step;
}

/* Every remainder of a block of rows, and some after whole ones. */
static int next_rows(int m)
{
	return m <= PRODUCT_ROWS ? m + 1 : m <= 2 * PRODUCT_ROWS ? 2 * PRODUCT_ROWS + 1 : m + PRODUCT_ROWS - 1;
}

/* ---- Turning over. ---- */

/* Panels [n / PRODUCT_COLUMNS][k][PRODUCT_COLUMNS] of B^T, zeros in the rest of the last; nothing behind them. */
static void check_turn(int n, int k)
{
	int ldb = k + 3, wide = round_up(n, PRODUCT_COLUMNS);
	size_t reals = product_turned_reals(n, k);
	assert_int_equal(reals, wide * k);
	real *b = normal(1, (size_t)(n * ldb)), *turned = untouched(reals + PRODUCT_COLUMNS);
	product_turn(n, k, b, ldb, turned);
	for (int j = 0; j < wide; j++)
		for (int p = 0; p < k; p++) {
			int at = j / PRODUCT_COLUMNS * PRODUCT_COLUMNS * k + p * PRODUCT_COLUMNS + j % PRODUCT_COLUMNS;
			assert_true(turned[at] == (j < n ? b[j * ldb + p] : 0));
		}
	for (int i = 0; i < PRODUCT_COLUMNS; i++)
		assert_true(turned[reals + (size_t)i] == UNTOUCHED);
	free(b), free(turned);
}

static void test_turn(void **state)
{
	static const int ks[] = { 1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 257 };
	(void)state;
	for (int n = 1; n <= 2 * PRODUCT_COLUMNS + 3; n++)
		for (int k = 0; k < COUNT(ks); k++)
			check_turn(n, ks[k]);
}

/* A weight is turned over piece by piece of 256 terms, so that each piece's panels stand together. */
static void test_turn_weight(void **state)
{
	enum { N = 37, K = 600, LDB = K + 1 };
	(void)state;
	size_t reals = product_turned_reals(N, K), at = 0;
	real *b = normal(1, N * LDB), *turned = untouched(reals + 1), *piece = untouched(reals);
	product_turn_weight(N, K, b, LDB, turned);
	for (int p = 0; p < K; p += 256) {
		int depth = K - p < 256 ? K - p : 256;
		size_t size = product_turned_reals(N, depth);
		product_turn(N, depth, b + p, LDB, piece);
		assert_memory_equal(turned + at, piece, size * sizeof(real));
		at += size;
	}
	assert_int_equal(at, reals);
	assert_true(turned[reals] == UNTOUCHED);
	free(b), free(turned), free(piece);
}

/* ---- The product of a weight. ---- */

enum plus { NOTHING, ELSEWHERE, IN_PLACE, PLUSES };

/* B in panels. */
static void make_panels(bool turn, int n, int k, const real *b, int ldb, real *panels)
{
	if (turn)
		product_turn_weight(n, k, b, ldb, panels);
	else
		product_pack_weight(n, k, b, ldb, panels);
}

/* As plain loops; gaps of C, and what is added, stay as they were. */
static void check_weight(int m, int n, int k, enum plus where, bool turn)
{
	int lda = k + 2, ldb = (turn ? k : n) + 1, ldc = n + 3;
	size_t size = (size_t)(m * ldc);
	const real alpha = (real)-0.75;
	real *a = normal(1, (size_t)(m * lda)), *b = normal(2, (size_t)((turn ? n : k) * ldb)), *beside = normal(3, size);
	real *turned = TAKE(real, product_turned_reals(n, k)), *c = untouched(size);
	real *plus = where == NOTHING ? NULL : where == IN_PLACE ? c : beside, *old = normal(3, size);
	if (where == IN_PLACE)
		memcpy(c, old, size * sizeof *c);
	for (int i = 0; i < m && where == IN_PLACE; i++)
		for (int j = n; j < ldc; j++)
			c[i * ldc + j] = UNTOUCHED;
	make_panels(turn, n, k, b, ldb, turned);
	product_weight(m, n, k, alpha, a, (size_t)lda, turned, plus, c, ldc);
	for (int i = 0; i < m; i++) {
		for (int j = n; j < ldc; j++)
			assert_true(c[i * ldc + j] == UNTOUCHED);
		for (int j = 0; j < n; j++) {
			double sum = 0, kept = where == NOTHING ? 0 : (double)old[i * ldc + j];
			for (int p = 0; p < k; p++)
				sum += (double)a[i * lda + p] * (double)b[turn ? j * ldb + p : p * ldb + j];
			assert_below(fabs((double)c[i * ldc + j] - (double)alpha * sum - kept) / sqrt(k), TOLERANCE);
		}
	}
	assert_memory_equal(beside, old, size * sizeof *old);
	free(a), free(b), free(beside), free(turned), free(c), free(old);
}

static void test_weight(void **state)
{
	static const int ns[] = { 1, 7, 15, 16, 17, 33, 48, 70 }, ks[] = { 1, 31, 255, 256, 257, 513 };
	(void)state;
	for (int m = 1; m <= 2 * PRODUCT_ROWS + 1; m = next_rows(m))
		for (int n = 0; n < COUNT(ns); n++)
			for (int k = 0; k < COUNT(ks); k++)
				for (int turn = 0; turn < 2; turn++)
					check_weight(m, ns[n], ks[k], (enum plus)((m + n + k) % PLUSES), turn);
	for (enum plus where = NOTHING; where < PLUSES; where++) {
		check_weight(PRODUCT_ROWS + 1, PRODUCT_COLUMNS + 1, 600, where, true);
		/* More columns than are taken at a time. */
		check_weight(PRODUCT_ROWS + 1, 500, 300, where, false);
		check_weight(1, 3, 7, where, false);
	}
}

/* An empty sum is what is added to, or 0, not what C held. */
static void test_weight_of_no_terms(void **state)
{
	enum { N = PRODUCT_COLUMNS + 3 };
	real a[1] = { 0 }, plus[N], c[N];
	(void)state;
	for (int where = NOTHING; where < PLUSES; where++) {
		for (int j = 0; j < N; j++) {
			plus[j] = (real)j;
			c[j] = where == IN_PLACE ? (real)j : (real)NAN;
		}
		product_weight(1, N, 0, 2, a, 1, a, where == NOTHING ? NULL : where == IN_PLACE ? c : plus, c, N);
		for (int j = 0; j < N; j++)
			assert_true(c[j] == (where == NOTHING ? 0 : (real)j));
	}
}

/* ---- Some columns. ---- */

/* Each block's columns as the whole product has them, to the bit, and as plain loops; the rest of C stays. */
static void check_columns(int m, int n, int k, const struct span *columns)
{
	int lda = k + 1, wide = round_up(n, PRODUCT_COLUMNS), ldc = wide + 2;
	real *a = normal(1, (size_t)(m * lda)), *b = normal(2, (size_t)(n * k)), *c = untouched((size_t)(m * ldc));
	real *turned = TAKE(real, product_turned_reals(n, k)), *whole = TAKE(real, (size_t)(m * n));
	product_turn(n, k, b, k, turned);
	product_some_columns(m, k, (real)0.3, a, (size_t)lda, turned, columns, c, ldc);
	product_weight(m, n, k, (real)0.3, a, (size_t)lda, turned, NULL, whole, n);
	for (int i = 0; i < m; i++) {
		struct span s = columns[i / PRODUCT_ROWS];
		for (int j = 0; j < ldc; j++) {
			if (j < s.from || s.from >= s.to || j >= round_up(s.to, PRODUCT_COLUMNS)) {
				assert_true(c[i * ldc + j] == UNTOUCHED);
				continue;
			}
			if (j >= n)
				continue;
			double sum = 0;
			for (int p = 0; p < k; p++)
				sum += (double)a[i * lda + p] * (double)b[j * k + p];
			assert_below(fabs((double)c[i * ldc + j] - (double)(real)0.3 * sum) / sqrt(k), TOLERANCE);
			assert_memory_equal(c + i * ldc + j, whole + i * n + j, sizeof(real));
		}
	}
	free(a), free(b), free(c), free(turned), free(whole);
}

static void test_some_columns(void **state)
{
	static const int ns[] = { 1, 16, 17, 40, 70 }, ks[] = { 1, 16, 33, 256 };
	enum { BLOCKS = 3 };
	(void)state;
	for (int m = 1; m <= BLOCKS * PRODUCT_ROWS; m = next_rows(m))
		for (int i = 0; i < COUNT(ns); i++)
			for (int k = 0; k < COUNT(ks); k++) {
				int n = ns[i], middle = n / 2 / PRODUCT_COLUMNS * PRODUCT_COLUMNS;
				check_columns(m, n, ks[k], (struct span[]){ { 0, n }, { 0, n }, { 0, n } });
				check_columns(m, n, ks[k], (struct span[]){ { middle, n }, { 0, 0 }, { 0, middle } });
				struct span some[] = { { 0, (n + 1) / 2 }, { middle, middle + 1 }, { middle, n } };
				check_columns(m, n, ks[k], some);
			}
}

/* ---- Some terms. ---- */

enum turn { BY_ROWS, BY_COLUMNS, TURNS };

/* Where A is 0 outside of a block's terms: as the whole sum to the bit, and as plain loops. What A holds there is not
 * read. */
static void check_terms(int m, int n, int k, enum turn turn, const struct span *terms)
{
	int ldb = n + 1, ldc = n + 3;
	size_t row = turn == BY_ROWS ? (size_t)k + 2 : 1, column = turn == BY_ROWS ? 1 : (size_t)m + 1;
	size_t a_size = (size_t)(m + 2) * (size_t)(k + 2), c_size = (size_t)(m * ldc);
	real *a = normal(1, a_size), *b = normal(2, (size_t)(k * ldb)), *zeros = TAKE(real, a_size);
	real *c = normal(3, c_size), *old = normal(3, c_size), *whole = normal(3, c_size);
	for (int i = 0; i < m; i++)
		for (int p = 0; p < k; p++) {
			struct span s = terms[i / PRODUCT_ROWS];
			size_t at = (size_t)i * row + (size_t)p * column;
			bool inside = p >= s.from && p < s.to;
			zeros[at] = inside ? a[at] : 0;
			a[at] = inside ? a[at] : (real)NAN;
		}
	product_some_terms(m, n, (real)0.3, a, row, column, b, ldb, terms, c, ldc);
	product_some_terms(m, n, (real)0.3, zeros, row, column, b, ldb,
			   (struct span[]){ { 0, k }, { 0, k }, { 0, k } }, whole, ldc);
	for (int i = 0; i < m; i++)
		for (int j = 0; j < ldc; j++) {
			double sum = 0;
			for (int p = 0; p < k && j < n; p++)
				sum += (double)zeros[(size_t)i * row + (size_t)p * column] * (double)b[p * ldb + j];
			double now = (double)c[i * ldc + j] - (double)old[i * ldc + j];
			assert_true(j < n || now == 0);
			assert_below(fabs(now - (double)(real)0.3 * sum) / sqrt(k), TOLERANCE);
		}
	assert_memory_equal(c, whole, c_size * sizeof *c);
	free(a), free(b), free(c), free(old), free(whole), free(zeros);
}

static void test_some_terms(void **state)
{
	static const int ns[] = { 1, 16, 17, 40 }, ks[] = { 1, 33, 255, 256, 257, 520 };
	(void)state;
	for (int m = 1; m <= 3 * PRODUCT_ROWS; m = next_rows(m))
		for (int i = 0; i < COUNT(ns); i++)
			for (int k = 0; k < COUNT(ks); k++)
				for (enum turn turn = BY_ROWS; turn < TURNS; turn++) {
					int n = ns[i], K = ks[k], half = K / 2;
					struct span all[] = { { 0, K }, { 0, K }, { 0, K } };
					struct span parts[] = { { half, K }, { 0, 0 }, { 0, half } };
					struct span single[] = { { half, half }, { K - 1, K }, { half, half + 1 } };
					check_terms(m, n, K, turn, all);
					check_terms(m, n, K, turn, parts);
					check_terms(m, n, K, turn, single);
				}
}

/* Where sums are cut does not depend on what is left out: pieces end at multiples of 256 whatever they begin with. */
static void test_whole_sums_are_those_of_product(void **state)
{
	enum { M = PRODUCT_ROWS + 2, N = PRODUCT_COLUMNS + 5, K = 520 };
	(void)state;
	real *a = normal(1, M * K), *b = normal(2, K * N), *c = normal(3, M * N), *same = normal(3, M * N);
	real *panels = TAKE(real, product_turned_reals(N, K));
	product_some_terms(M, N, 2, a, K, 1, b, N, (struct span[]){ { 0, K }, { 0, K } }, c, N);
	product_pack_weight(N, K, b, N, panels);
	product_weight(M, N, K, 2, a, K, panels, same, same, N);
	assert_memory_equal(c, same, M * N * sizeof *c);
	free(a), free(b), free(c), free(same), free(panels);
}

/* ---- Bits. ---- */

/* An element has the same bits alone, and wherever in a product its row and its column stand. */
static void test_place_changes_no_bit(void **state)
{
	enum { M = 2 * PRODUCT_ROWS + 1, N = 2 * PRODUCT_COLUMNS + 3, K = 300 };
	(void)state;
	real *a = normal(1, M * K), *b = normal(2, N * K), *plus = normal(3, M * N), *whole = TAKE(real, M * N);
	real *part = TAKE(real, M * N), *turned = TAKE(real, product_turned_reals(N, K));
	real *single = TAKE(real, product_turned_reals(1, K)), alone[1];
	product_turn_weight(N, K, b, K, turned);
	product_weight(M, N, K, (real)0.3, a, K, turned, plus, whole, N);
	for (int column = 0; column < N; column += 5) {
		product_turn_weight(N - column, K, b + column * K, K, turned);
		product_turn_weight(1, K, b + column * K, K, single);
		for (int row = 0; row < M; row++) {
			product_weight(M - row, N - column, K, (real)0.3, a + row * K, K, turned,
				       plus + row * N + column, part, N);
			for (int i = row; i < M; i++)
				assert_memory_equal(part + (i - row) * N, whole + i * N + column,
						    (size_t)(N - column) * sizeof *part);
			product_weight(1, 1, K, (real)0.3, a + row * K, K, single, plus + row * N + column, alone, 1);
			assert_memory_equal(alone, whole + row * N + column, sizeof *alone);
		}
	}
	free(a), free(b), free(plus), free(whole), free(part), free(turned), free(single);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_turn),
		cmocka_unit_test(test_turn_weight),
		cmocka_unit_test(test_weight),
		cmocka_unit_test(test_weight_of_no_terms),
		cmocka_unit_test(test_some_columns),
		cmocka_unit_test(test_some_terms),
		cmocka_unit_test(test_whole_sums_are_those_of_product),
		cmocka_unit_test(test_place_changes_no_bit),
	};
	return cmocka_run_group_tests_name("base product", tests, NULL, NULL);
}
