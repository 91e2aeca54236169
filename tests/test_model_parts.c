#include "model/base/blas.h"
#include "model/embedding.h"
#include "model/norm.h"
#include "model/swiglu.h"
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The parts of a layer against plain loops in double, and their gradients against differences of those loops. */

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])

#ifdef ROPEWALK_DOUBLE
#define TOLERANCE 1e-12
#define SLOPE_TOLERANCE 1e-9
#else
#define TOLERANCE 2e-6
#define SLOPE_TOLERANCE 1e-5
#endif

static real *normal(uint64_t seed, int count)
{
	real *x = TAKE(real, (size_t)count);
	fill_normal(seed, x, (size_t)count);
	return x;
}

static double *widened(const real *x, int count)
{
	double *wide = TAKE(double, (size_t)count);
	for (int i = 0; i < count; i++)
		wide[i] = (double)x[i];
	return wide;
}

/* Slope of f along x[i]: central, of fourth order. */
static double slope(double (*f)(const void *data), const void *data, double *x)
{
	double kept = *x, step = 1e-3, at[4];
	for (int i = 0; i < 4; i++) {
		*x = kept + (i < 2 ? i - 2 : i - 1) * step;
		at[i] = f(data);
	}
	*x = kept;
	return (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * step);
}

/* ---- RMSNorm ---- */

struct norm_case {
	int rows, C;
	double eps, *x, *w, *d_y;
};

static double norm_at(const struct norm_case *n, int r, int c)
{
	double square = 0;
	for (int i = 0; i < n->C; i++)
		square += n->x[r * n->C + i] * n->x[r * n->C + i];
	return n->w[c] * n->x[r * n->C + c] / sqrt(square / n->C + n->eps);
}

static double norm_along(const void *data)
{
	const struct norm_case *n = data;
	double sum = 0;
	for (int r = 0; r < n->rows; r++)
		for (int c = 0; c < n->C; c++)
			sum += n->d_y[r * n->C + c] * norm_at(n, r, c);
	return sum;
}

/* d_x_j = sum_c d_y_c w_c ([c = j] / s - x_c x_j / (C s^3)), s the root. */
static double norm_back_at(const struct norm_case *n, int r, int j)
{
	const double *x = n->x + r * n->C, *d_y = n->d_y + r * n->C;
	double square = 0, sum = 0;
	for (int c = 0; c < n->C; c++)
		square += x[c] * x[c];
	double s = sqrt(square / n->C + n->eps);
	for (int c = 0; c < n->C; c++)
		sum += d_y[c] * n->w[c] * ((c == j) / s - x[c] * x[j] / (n->C * s * s * s));
	return sum;
}

static void check_norm(int rows, int C, double eps)
{
	int size = rows * C;
	real *x = normal(1, size), *w = normal(2, C), *d_y = normal(3, size);
	real *d_x = normal(4, size), *old = normal(4, size);
	real *y = TAKE(real, (size_t)size), *rstd = TAKE(real, (size_t)rows);
	double *d_w = TAKE(double, (size_t)C);
	struct norm_case n = { .rows = rows, .C = C, .eps = eps, .x = widened(x, size), .w = widened(w, C),
			       .d_y = widened(d_y, size) };
	for (int c = 0; c < C; c++)
		d_w[c] = 10 + c;
	rmsnorm(rows, C, eps, x, w, y, rstd);
	rmsnorm_back(rows, C, x, w, rstd, d_y, d_x, d_x, d_w);
	for (int i = 0; i < size; i++) {
		assert_close(y[i], norm_at(&n, i / C, i % C), TOLERANCE);
		assert_close((double)y[i], (double)w[i % C] * (double)x[i] * (double)rstd[i / C], TOLERANCE);
		double got = (double)d_x[i] - (double)old[i];
		assert_close(got, norm_back_at(&n, i / C, i % C), 4 * TOLERANCE);
		assert_close(got, slope(norm_along, &n, &n.x[i]), SLOPE_TOLERANCE);
	}
	for (int c = 0; c < C; c++) {
		double sum = 10 + c;
		for (int r = 0; r < rows; r++)
			sum += n.d_y[r * C + c] * norm_at(&n, r, c) / n.w[c];
		assert_close(d_w[c], sum, 4 * TOLERANCE);
		assert_close(d_w[c] - 10 - c, slope(norm_along, &n, &n.w[c]), 4 * SLOPE_TOLERANCE);
	}
	free(x), free(w), free(d_y), free(d_x), free(old), free(y), free(rstd), free(d_w);
	free(n.x), free(n.w), free(n.d_y);
}

static void test_rmsnorm(void **state)
{
	static const int sizes[][2] = { { 1, 1 }, { 3, 7 }, { 5, 16 }, { 2, 17 }, { 7, 33 }, { 3, 64 } };
	(void)state;
	for (int i = 0; i < COUNT(sizes); i++) {
		check_norm(sizes[i][0], sizes[i][1], 1e-1);
		check_norm(sizes[i][0], sizes[i][1], 0.7);
	}
}

/* The gradient beside a residual, over the residual, over x, or without one: the same bits wherever they go. */
static void check_norm_places(int rows, int C)
{
	int size = rows * C;
	size_t bytes = (size_t)size * sizeof(real);
	real *x = normal(1, size), *w = normal(2, C), *d_y = normal(3, size), *residual = normal(4, size);
	real *elsewhere = normal(5, size), *over = normal(4, size), *zeros = TAKE(real, (size_t)size);
	real *y = TAKE(real, (size_t)size), *rstd = TAKE(real, (size_t)rows), *in_place = normal(1, size);
	double *d_w = TAKE(double, 5 * (size_t)C);
	rmsnorm(rows, C, 0.1, x, w, y, rstd);
	rmsnorm_back(rows, C, x, w, rstd, d_y, residual, elsewhere, d_w);
	rmsnorm_back(rows, C, x, w, rstd, d_y, over, over, d_w + C);
	rmsnorm_back(rows, C, in_place, w, rstd, d_y, residual, in_place, d_w + 2 * C);
	assert_memory_equal(over, elsewhere, bytes);
	assert_memory_equal(in_place, elsewhere, bytes);
	memcpy(in_place, x, bytes);
	rmsnorm_back(rows, C, in_place, w, rstd, d_y, NULL, in_place, d_w + 3 * C);
	rmsnorm_back(rows, C, x, w, rstd, d_y, zeros, over, d_w + 4 * C);
	assert_memory_equal(in_place, over, bytes);
	for (int i = 0; i < size; i++)
		assert_close(elsewhere[i], (double)over[i] + (double)residual[i], TOLERANCE);
	for (int i = 1; i < 5; i++)
		assert_memory_equal(d_w + i * C, d_w, (size_t)C * sizeof *d_w);
	real *old = normal(4, size);
	assert_memory_equal(residual, old, bytes);
	free(x), free(w), free(d_y), free(residual), free(elsewhere), free(over), free(zeros), free(y), free(rstd);
	free(in_place), free(d_w), free(old);
}

static void test_rmsnorm_places(void **state)
{
	(void)state;
	check_norm_places(1, 1);
	check_norm_places(3, 7);
	check_norm_places(5, 16);
	check_norm_places(4, 35);
	check_norm_places(3, 64);
}

/* A row of zeros has a scale of 1 / sqrt(eps), not infinity; a row of its own does not touch the next. */
static void test_rmsnorm_zero(void **state)
{
	(void)state;
	real x[6] = { 0, 0, 0, 3, 0, -4 }, w[3] = { 1, 2, 3 }, y[6], rstd[2];
	rmsnorm(2, 3, 1e-4, x, w, y, rstd);
	assert_close(rstd[0], 100, 1e-6);
	assert_close(rstd[1], 1 / sqrt(25.0 / 3 + 1e-4), TOLERANCE);
	for (int c = 0; c < 3; c++)
		assert_true(y[c] == 0);
	assert_close(y[5], -12 / sqrt(25.0 / 3 + 1e-4), TOLERANCE);
}

/* ---- SwiGLU ---- */

struct swiglu_case {
	int rows, F;
	double *gate_up, *d_y;
};

static double swiglu_at(const struct swiglu_case *s, int r, int f)
{
	double gate = s->gate_up[r * 2 * s->F + f], up = s->gate_up[r * 2 * s->F + s->F + f];
	return gate / (1 + exp(-gate)) * up;
}

static double swiglu_along(const void *data)
{
	const struct swiglu_case *s = data;
	double sum = 0;
	for (int r = 0; r < s->rows; r++)
		for (int f = 0; f < s->F; f++)
			sum += s->d_y[r * s->F + f] * swiglu_at(s, r, f);
	return sum;
}

/* By the quotient rule: silu'(g) = (1 + e^-g + g e^-g) / (1 + e^-g)^2. */
static double swiglu_back_at(const struct swiglu_case *s, int r, int i)
{
	int f = i % s->F;
	double gate = s->gate_up[r * 2 * s->F + f], up = s->gate_up[r * 2 * s->F + s->F + f], e = exp(-gate);
	double d_y = s->d_y[r * s->F + f];
	return i < s->F ? d_y * up * (1 + e + gate * e) / ((1 + e) * (1 + e)) : d_y * gate / (1 + e);
}

static void check_swiglu(int rows, int F)
{
	int size = rows * F;
	real *gate_up = normal(1, 2 * size), *d_y = normal(2, size), *y = TAKE(real, (size_t)size);
	real *scratch = TAKE(real, (size_t)F), *d_gate_up = TAKE(real, (size_t)(2 * size));
	for (int i = 0; i < 2 * size; i++) {
		gate_up[i] *= 3;
		d_gate_up[i] = (real)NAN;
	}
	struct swiglu_case s = { .rows = rows, .F = F, .gate_up = widened(gate_up, 2 * size),
				 .d_y = widened(d_y, size) };
	swiglu(rows, F, gate_up, y, scratch);
	swiglu_back(rows, F, gate_up, d_y, d_gate_up, scratch);
	for (int i = 0; i < size; i++)
		assert_close(y[i], swiglu_at(&s, i / F, i % F), TOLERANCE);
	for (int i = 0; i < 2 * size; i++) {
		assert_close(d_gate_up[i], swiglu_back_at(&s, i / (2 * F), i % (2 * F)), TOLERANCE);
		assert_close(d_gate_up[i], slope(swiglu_along, &s, &s.gate_up[i]), SLOPE_TOLERANCE);
	}
	free(gate_up), free(d_y), free(y), free(scratch), free(d_gate_up), free(s.gate_up), free(s.d_y);
}

static void test_swiglu(void **state)
{
	(void)state;
	check_swiglu(1, 1);
	check_swiglu(5, 7);
	check_swiglu(3, 16);
	check_swiglu(4, 35);
}

/* The gradient over what it is of: the same bits. */
static void test_swiglu_in_place(void **state)
{
	static const int sizes[][2] = { { 1, 1 }, { 5, 7 }, { 3, 16 }, { 4, 35 }, { 2, 64 } };
	(void)state;
	for (int i = 0; i < COUNT(sizes); i++) {
		int rows = sizes[i][0], F = sizes[i][1], size = 2 * rows * F;
		real *gate_up = normal(1, size), *in_place = normal(1, size), *d_y = normal(2, rows * F);
		real *elsewhere = normal(3, size), *scratch = TAKE(real, (size_t)F);
		swiglu_back(rows, F, gate_up, d_y, elsewhere, scratch);
		swiglu_back(rows, F, in_place, d_y, in_place, scratch);
		assert_memory_equal(in_place, elsewhere, (size_t)size * sizeof *in_place);
		free(gate_up), free(in_place), free(d_y), free(elsewhere), free(scratch);
	}
}

/* Far from zero silu is 0 or the gate itself, and nothing overflows. */
static void test_swiglu_far(void **state)
{
	(void)state;
	real gate_up[8] = { -500, 500, -2000, 2000, 2, 2, 2, 2 }, d_y[4] = { 1, 1, 1, 1 }, y[4], d[8], scratch[4];
	static const double want[4] = { 0, 1000, 0, 4000 }, slopes[4] = { 0, 2, 0, 2 }, silu[4] = { 0, 500, 0, 2000 };
	swiglu(1, 4, gate_up, y, scratch);
	swiglu_back(1, 4, gate_up, d_y, d, scratch);
	for (int i = 0; i < 4; i++) {
		assert_close(y[i], want[i], TOLERANCE);
		assert_close(d[i], slopes[i], TOLERANCE);
		assert_close(d[4 + i], silu[i], TOLERANCE);
	}
}

/* ---- embedding ---- */

static void test_embedding(void **state)
{
	enum { ROWS = 101, C = 5, V = 17 };
	(void)state;
	int32_t token[ROWS];
	real *table = normal(1, V * C), x[ROWS * C];
	fill_below(2, V, token, ROWS);
	token[0] = V - 1, token[ROWS - 1] = 0;
	embedding(ROWS, C, token, table, x);
	for (int i = 0; i < ROWS * C; i++)
		assert_true(x[i] == table[token[i / C] * C + i % C]);
	free(table);
}

/* Every row once, under its token, in order; tokens that never occur have none. */
static void test_embedding_sort(void **state)
{
	enum { ROWS = 101, V = 40 };
	(void)state;
	int32_t token[ROWS], start[V + 1], order[ROWS];
	fill_below(3, V / 2, token, ROWS);
	for (int r = 0; r < ROWS; r++)
		token[r] = 2 * token[r] + (r == 50);
	embedding_sort(ROWS, V, token, start, order);
	int next = 0;
	for (int v = 0; v < V; v++) {
		assert_int_equal(start[v], next);
		for (int r = 0; r < ROWS; r++)
			if (token[r] == v)
				assert_int_equal(order[next++], r);
	}
	assert_int_equal(start[V], ROWS);
	assert_int_equal(next, ROWS);
	embedding_sort(0, V, token, start, order);
	for (int v = 0; v <= V; v++)
		assert_int_equal(start[v], 0);
}

static void test_embedding_back(void **state)
{
	enum { ROWS = 101, C = 5, V = 17, CUT = 6 };
	(void)state;
	int32_t token[ROWS], start[V + 1], order[ROWS];
	double sum[C], want[V * C];
	real *d_x = normal(1, ROWS * C), *d_table = normal(2, V * C);
	fill_below(4, V - 2, token, ROWS);
	for (int i = 0; i < V * C; i++)
		want[i] = (double)d_table[i];
	for (int i = 0; i < ROWS * C; i++)
		want[token[i / C] * C + i % C] += (double)d_x[i];
	real last = d_table[V * C - 1];
	embedding_sort(ROWS, V, token, start, order);
	embedding_back(C, start, order, CUT, V, d_x, d_table, sum);
	assert_true(d_table[V * C - 1] == last);
	embedding_back(C, start, order, 0, CUT, d_x, d_table, sum);
	for (int i = 0; i < V * C; i++)
		assert_close(d_table[i], want[i], TOLERANCE);
	/* Nothing outside first .. last - 1. */
	real *old = normal(2, V * C), *other = normal(2, V * C);
	embedding_back(C, start, order, 3, 4, d_x, other, sum);
	for (int i = 0; i < V * C; i++)
		assert_true(other[i] == (i / C == 3 ? d_table[i] : old[i]));
	free(d_x), free(d_table), free(old), free(other);
}

static int start(void **state)
{
	(void)state;
	return blas_start(2).code;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rmsnorm),
		cmocka_unit_test(test_rmsnorm_places),
		cmocka_unit_test(test_rmsnorm_zero),
		cmocka_unit_test(test_swiglu),
		cmocka_unit_test(test_swiglu_in_place),
		cmocka_unit_test(test_swiglu_far),
		cmocka_unit_test(test_embedding),
		cmocka_unit_test(test_embedding_sort),
		cmocka_unit_test(test_embedding_back),
	};
	return cmocka_run_group_tests_name("model parts", tests, start, NULL);
}
