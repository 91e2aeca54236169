#include "model/base/arena.h"
#include "model/base/blas.h"
#include "model/base/product.h"
#include "model/base/threads.h"
#include "tests/support.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])

#ifdef ROPEWALK_DOUBLE
#define TOLERANCE 1e-13
#else
#define TOLERANCE 2e-6
#endif

/* ---- errors ---- */

static void test_errors(void **state)
{
	(void)state;
	struct err e = err_usage("Try %s.", "%s: %d", "layers", 0);
	assert_int_equal(e.code, 2);
	assert_string_equal(e.text, "layers: 0");
	assert_string_equal(e.hint, "Try %s.");
	e = err_failed(NULL, "no");
	assert_int_equal(e.code, 1);
	assert_string_equal(e.hint, "");
	assert_int_equal(err_diverged(NULL, "nan").code, 3);
	e = err_system(2, NULL, "file.txt");
	assert_int_equal(e.code, 1);
	assert_string_equal(e.text, "file.txt: No such file or directory");
	e = err_at(e, "line %d", 7);
	assert_string_equal(e.text, "line 7: file.txt: No such file or directory");
	assert_int_equal(e.code, 1);
	e = err_at(OK, "line %d", 7);
	assert_int_equal(e.code, 0);
	assert_string_equal(e.text, "");
}

/* What does not fit is cut, never written past the end; the place in front stays. */
static void test_long_errors(void **state)
{
	(void)state;
	char text[3000];
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = 0;
	struct err e = err_usage(text, "%s", text);
	assert_int_equal(strlen(e.text), sizeof e.text - 1);
	assert_int_equal(strlen(e.hint), sizeof e.hint - 1);
	assert_true(strlen(err_system(2, NULL, "%s", text).text) < sizeof e.text);
	e = err_at(err_at(e, "%s", text), "here");
	assert_true(strlen(e.text) < sizeof e.text);
	assert_int_equal(strncmp(e.text, "here: xxx", 9), 0);
}

/* A name out of a file stays in the one line that tells of it. */
static void test_errors_are_one_line(void **state)
{
	(void)state;
	struct err e = err_at(err_usage("Say \n\x1b[2J.", "tensor '%s'", "a\nropewalk: done\xff"), "in\n%s", "b\r");
	assert_string_equal(e.text, "in\\x0ab\\x0d: tensor 'a\\x0aropewalk: done\\xff'");
	assert_string_equal(e.hint, "Say \\x0a\\x1b[2J.");
	e = err_system(ENOENT, NULL, "%s", "a\nb");
	assert_string_equal(e.text, "a\\x0ab: No such file or directory");
}

static struct err early(bool fails, int *reached)
{
	TRY(fails ? err_usage(NULL, "stop") : OK);
	(*reached)++;
	return OK;
}

static void test_try(void **state)
{
	(void)state;
	int reached = 0;
	assert_err(early(true, &reached), ERR_USAGE, "stop");
	assert_int_equal(reached, 0);
	assert_ok(early(false, &reached));
	assert_int_equal(reached, 1);
}

static void take_too_much(void *data)
{
	struct arena a;
	(void)data;
	if (!arena_reserve(&a, 640, "it").code && arena_take(&a, 10, 64))
		arena_take(&a, 1, 1);
}

static void test_bug(void **state)
{
	(void)state;
	assert_bug(take_too_much, NULL, "arena.c:");
	assert_bug(take_too_much, NULL, "640");
}

/* ---- arena ---- */

static const struct {
	size_t count, item;
} plan[] = { { 1, 1 }, { 0, 8 }, { 3, 8 }, { 64, 1 }, { 65, 1 }, { 1000, 12 }, { 5, sizeof(real) }, { 0, 0 } };

static void take_plan(struct arena *a, char *taken[])
{
	for (int i = 0; i < COUNT(plan); i++)
		taken[i] = arena_take(a, plan[i].count, plan[i].item);
}

/* What eight bytes of fresh memory hold: zeros, or in checking builds what is a NaN however it is read. */
static void arena_content(char content[8])
{
	float halves[2];
	double whole;
	struct arena a;
	assert_ok(arena_reserve(&a, 8, "it"));
	memcpy(content, a.base, 8);
	memcpy(halves, a.base, 8);
	memcpy(&whole, a.base, 8);
#ifdef ROPEWALK_POISON
	assert_true(isnan(halves[0]) && isnan(halves[1]) && isnan(whole));
#else
	assert_true(halves[0] == 0 && halves[1] == 0 && whole == 0);
#endif
	arena_free(&a);
}

static void test_arena(void **state)
{
	(void)state;
	struct arena measured = { 0 }, a;
	char *taken[COUNT(plan)];
	take_plan(&measured, taken);
	for (int i = 0; i < COUNT(plan); i++)
		assert_null(taken[i]);
	/* 64 bytes or a multiple for each but the empty ones. */
	assert_int_equal(measured.used, 64 + 0 + 64 + 64 + 128 + 12032 + 64 + 0);
	assert_ok(arena_reserve(&a, measured.used, "it"));
	take_plan(&a, taken);
	assert_int_equal(a.used, measured.used);
	for (int i = 0; i < COUNT(plan); i++) {
		size_t bytes = plan[i].count * plan[i].item;
		char expected[8];
		arena_content(expected);
		assert_non_null(taken[i]);
		assert_int_equal((uintptr_t)taken[i] % ARENA_ALIGNMENT, 0);
		/* As it was reserved, still when the ones before it are written. */
		for (size_t b = 0; b < bytes; b++)
			assert_int_equal(taken[i][b], expected[b % 8]);
		memset(taken[i], 0xa5, bytes);
	}
	arena_free(&a);
	assert_null(a.base);
	assert_int_equal(a.size + a.used, 0);
	arena_free(&a);
}

static void test_arena_overflow(void **state)
{
	static const struct {
		size_t count, item;
	} vast[] = { { SIZE_MAX, 2 }, { SIZE_MAX / 2, 3 }, { SIZE_MAX, 1 }, { SIZE_MAX - 62, 1 } };
	(void)state;
	for (int i = 0; i < COUNT(vast); i++) {
		struct arena a = { 0 };
		arena_take(&a, 1, 1);
		assert_null(arena_take(&a, vast[i].count, vast[i].item));
		assert_true(a.used == SIZE_MAX);
		arena_take(&a, 100, 8);
		assert_true(a.used == SIZE_MAX);
		arena_take(&a, 0, 8);
		assert_true(a.used == SIZE_MAX);
	}
	struct arena sum = { 0 };
	for (int i = 0; i < 3; i++)
		arena_take(&sum, SIZE_MAX / 2, 1);
	assert_true(sum.used == SIZE_MAX);
}

static void test_too_much_memory(void **state)
{
	(void)state;
	struct arena a;
	double need, have;
	char need_unit[8], have_unit[8];
	struct err e = arena_reserve(&a, SIZE_MAX, "the batch");
	assert_int_equal(e.code, ERR_USAGE);
	assert_null(a.base);
	assert_int_equal(sscanf(e.text, "the batch needs %lf %7s and %lf %7s are available", &need, need_unit, &have,
				have_unit), 4);
	assert_string_equal(need_unit, "EB,");
	assert_close(need, 18.4, 1e-9);
	assert_true(have > 0);
	assert_string_not_equal(have_unit, "EB");
	assert_true(strlen(e.hint) > 0);
	/* Just above what there is, so that it is the comparison that refuses. */
	assert_int_equal(arena_reserve(&a, memory_available() * 2, "it").code, ERR_USAGE);
	assert_ok(arena_reserve(&a, 0, "nothing"));
	arena_free(&a);
}

static void test_memory_text(void **state)
{
	static const struct {
		size_t bytes;
		const char *text;
	} cases[] = {
		{ 0, "0 bytes" }, { 999, "999 bytes" }, { 1000, "1.0 kB" }, { 12345678, "12.3 MB" },
		{ 9876543210u, "9.9 GB" }, { SIZE_MAX, "18.4 EB" },
	};
	(void)state;
	char text[32];
	for (int i = 0; i < COUNT(cases); i++)
		assert_string_equal(memory_text(cases[i].bytes, text), cases[i].text);
}

/* ---- products ---- */

enum { NT, NN, TN };

struct product {
	int kind, m, n, k, lda, ldb, ldc;
	real alpha, beta, *a, *b, *c;
};

static void multiply(int index, int thread, void *data)
{
	const struct product *p = data;
	(void)index, (void)thread;
	typeof(gemm_nt) *gemm = p->kind == NT ? gemm_nt : p->kind == NN ? gemm_nn : gemm_tn;
	gemm(p->m, p->n, p->k, p->alpha, p->a, p->lda, p->b, p->ldb, p->beta, p->c, p->ldc);
}

static double product_at(const struct product *p, int i, int j)
{
	double sum = 0;
	for (int l = 0; l < p->k; l++)
		sum += (double)p->a[p->kind == TN ? l * p->lda + i : i * p->lda + l] *
		       (double)p->b[p->kind == NT ? j * p->ldb + l : l * p->ldb + j];
	return sum;
}

/* What stands in the gaps of C, and in C itself where beta is 0: it must neither be read nor written. */
static void check_product(struct product p)
{
	size_t a_size = (size_t)p.lda * (size_t)(p.kind == TN ? p.k : p.m);
	size_t b_size = (size_t)p.ldb * (size_t)(p.kind == NT ? p.n : p.k), c_size = (size_t)p.ldc * (size_t)p.m;
	real *old = TAKE(real, c_size);
	p.a = TAKE(real, a_size), p.b = TAKE(real, b_size), p.c = TAKE(real, c_size);
	fill_normal(1, p.a, a_size);
	fill_normal(2, p.b, b_size);
	fill_normal(3, old, c_size);
	for (size_t i = 0; i < c_size; i++)
		if (p.beta == 0 || i % (size_t)p.ldc >= (size_t)p.n)
			old[i] = (real)NAN;
	memcpy(p.c, old, c_size * sizeof *old);
	threads_each(1, multiply, &p);
	for (int i = 0; i < p.m; i++)
		for (int j = 0; j < p.ldc; j++) {
			size_t at = (size_t)i * (size_t)p.ldc + (size_t)j;
			double kept = p.beta == 0 ? 0 : (double)p.beta * (double)old[at];
			double want = j < p.n ? (double)p.alpha * product_at(&p, i, j) + kept : 0;
			if (j < p.n)
				assert_close(p.c[at], want, TOLERANCE * sqrt(p.k));
			else
				assert_memory_equal(&p.c[at], &old[at], sizeof(real));
		}
	free(old);
	free(p.a);
	free(p.b);
	free(p.c);
}

static void check_products(void)
{
	static const int sizes[][3] = { { 1, 1, 1 },  { 3, 5, 7 },    { 17, 1, 31 },
					{ 1, 33, 2 }, { 64, 48, 16 }, { 37, 65, 129 },
					/* Deeper than one pass, and past what our own products take. */
					{ 13, 40, 600 }, { 9, 300, 300 } };
	static const double betas[] = { 0, 1, -0.5 };
	for (int kind = NT; kind <= TN; kind++)
		for (int s = 0; s < COUNT(sizes); s++)
			for (int b = 0; b < COUNT(betas); b++) {
				int m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
				struct product p = { .kind = kind, .m = m, .n = n, .k = k, .ldc = n + 3,
						     .alpha = (real)1.25, .beta = (real)betas[b] };
				p.lda = (kind == TN ? m : k) + s;
				p.ldb = (kind == NT ? k : n) + 2;
				check_product(p);
			}
}

static void test_products(void **state)
{
	(void)state;
	assert_ok(blas_start(2));
	check_products();
}

static void test_whose_products(void **state)
{
	(void)state;
	assert_ok(blas_start(2));
	assert_int_equal(blas_own_weight(4096), product_weight_suits(4096));
	assert_false(blas_own_weight(1));
	blas_use(PRODUCTS_LIBRARY);
	assert_false(blas_own_weight(4096));
	assert_string_equal(blas_report().products, "library");
	blas_use(PRODUCTS_OWN);
	assert_string_equal(blas_report().products, "own");
}

/* The same product from every thread at once gives the same bits as alone. */
#define SIDE 67

static void square(int index, int thread, void *data)
{
	struct product *p = data;
	(void)thread;
	gemm_nt(SIDE, SIDE, SIDE, 1, p->a, SIDE, p->b, SIDE, 0, p->c + index * SIDE * SIDE, SIDE);
}

static void test_products_threads(void **state)
{
	(void)state;
	struct product p = { .a = TAKE(real, SIDE * SIDE), .b = TAKE(real, SIDE * SIDE),
			     .c = TAKE(real, 9 * SIDE * SIDE) };
	fill_normal(1, p.a, SIDE * SIDE);
	fill_normal(2, p.b, SIDE * SIDE);
	assert_ok(blas_start(1));
	threads_each(1, square, &p);
	assert_ok(blas_start(3));
	struct product rest = { .a = p.a, .b = p.b, .c = p.c + SIDE * SIDE };
	threads_each(8, square, &rest);
	for (int i = 1; i < 9; i++)
		assert_memory_equal(p.c, p.c + i * SIDE * SIDE, SIDE * SIDE * sizeof(real));
	free(p.a);
	free(p.b);
	free(p.c);
}

static void test_blas_report(void **state)
{
	(void)state;
	struct blas_report r = blas_report();
	assert_int_equal(strncmp(r.library, "OpenBLAS ", 9), 0);
	assert_true(r.library[9] >= '0' && r.library[9] <= '9');
	assert_true(r.core[0] != 0);
	assert_true(!strcmp(r.flavour, "serial") || !strcmp(r.flavour, "pthread") || !strcmp(r.flavour, "openmp"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_long_errors),
		cmocka_unit_test(test_errors_are_one_line),
		cmocka_unit_test(test_try),
		cmocka_unit_test(test_bug),
		cmocka_unit_test(test_arena),
		cmocka_unit_test(test_arena_overflow),
		cmocka_unit_test(test_too_much_memory),
		cmocka_unit_test(test_memory_text),
		cmocka_unit_test(test_products),
		cmocka_unit_test(test_whose_products),
		cmocka_unit_test(test_products_threads),
		cmocka_unit_test(test_blas_report),
	};
	return cmocka_run_group_tests_name("base foundation", tests, NULL, NULL);
}
