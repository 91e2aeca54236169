#include "model/base/blas.h"
#include "model/base/threads.h"
#include "model/linear.h"
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Products with weights, forward and back, against plain loops in double. */

#ifdef ROPEWALK_DOUBLE
#define TOLERANCE 1e-12
#else
#define TOLERANCE 2e-6
#endif

static real *normal(uint64_t seed, int count)
{
	real *x = TAKE(real, (size_t)count);
	fill_normal(seed, x, (size_t)count);
	return x;
}

struct linear_case {
	int rows, in, out, x_stride, y_stride, first, last;
	real beta, *x, *w, *y, *d_y, *d_x, *d_w;
};

static void run_linear(int index, int thread, void *data)
{
	const struct linear_case *l = data;
	(void)index, (void)thread;
	struct linear_weight w = { .w = l->w };
	linear(l->rows, l->in, l->out, l->x, l->x_stride, w, l->beta == 0 ? NULL : l->y, l->y, l->y_stride);
	linear_back_input(l->rows, l->in, l->out, l->d_y, l->y_stride, w, l->d_x, l->x_stride);
	linear_back_weight(l->rows, l->in, l->d_y, l->y_stride, l->x, l->x_stride, l->first, l->last, l->d_w);
}

/* `got` against beta `old` + the sum; a gap must be as it was. */
static void assert_item(real got, real old, double beta, double sum, bool gap, int terms)
{
	if (gap)
		assert_memory_equal(&got, &old, sizeof got);
	else
		assert_close(got, sum + (beta == 0 ? 0 : beta * (double)old), TOLERANCE * sqrt(terms));
}

static void check_forward(const struct linear_case *l, const real *old)
{
	for (int r = 0; r < l->rows; r++)
		for (int o = 0; o < l->y_stride; o++) {
			double sum = 0;
			for (int i = 0; i < l->in && o < l->out; i++)
				sum += (double)l->x[r * l->x_stride + i] * (double)l->w[o * l->in + i];
			int at = r * l->y_stride + o;
			assert_item(l->y[at], old[at], (double)l->beta, sum, o >= l->out, l->in);
		}
}

static void check_input(const struct linear_case *l, const real *old)
{
	for (int r = 0; r < l->rows; r++)
		for (int i = 0; i < l->x_stride; i++) {
			double sum = 0;
			for (int o = 0; o < l->out && i < l->in; o++)
				sum += (double)l->d_y[r * l->y_stride + o] * (double)l->w[o * l->in + i];
			int at = r * l->x_stride + i;
			assert_item(l->d_x[at], old[at], 0, sum, i >= l->in, l->out);
		}
}

/* Rows first .. last - 1 are overwritten, whatever was there. */
static void check_weight(const struct linear_case *l)
{
	for (int o = 0; o < l->out; o++)
		for (int i = 0; i < l->in; i++) {
			double sum = 0;
			for (int r = 0; r < l->rows; r++)
				sum += (double)l->d_y[r * l->y_stride + o] * (double)l->x[r * l->x_stride + i];
			bool inside = o >= l->first && o < l->last;
			assert_true(inside || isnan(l->d_w[o * l->in + i]));
			if (inside)
				assert_close(l->d_w[o * l->in + i], sum, TOLERANCE * sqrt(l->rows));
		}
}

static void check_linear(int rows, int in, int out, real beta, int first, int last)
{
	struct linear_case l = { .rows = rows, .in = in, .out = out, .x_stride = in + 3, .y_stride = out + 2,
				 .first = first, .last = last, .beta = beta };
	int x_size = rows * l.x_stride, y_size = rows * l.y_stride;
	real *old_y = normal(5, y_size), *old_x = normal(6, x_size);
	l.x = normal(1, x_size), l.w = normal(2, out * in), l.d_y = normal(3, y_size), l.d_w = normal(4, out * in);
	for (int i = 0; i < y_size && beta == 0; i++)
		old_y[i] = (real)NAN;
	for (int i = 0; i < x_size && beta == 0; i++)
		old_x[i] = (real)NAN;
	for (int i = 0; i < out * in; i++)
		l.d_w[i] = (real)NAN;
	l.y = TAKE(real, (size_t)y_size), l.d_x = TAKE(real, (size_t)x_size);
	memcpy(l.y, old_y, (size_t)y_size * sizeof(real));
	memcpy(l.d_x, old_x, (size_t)x_size * sizeof(real));
	threads_each(1, run_linear, &l);
	check_forward(&l, old_y);
	check_input(&l, old_x);
	check_weight(&l);
	free(old_y), free(old_x), free(l.x), free(l.w), free(l.d_y), free(l.d_w), free(l.y), free(l.d_x);
}

static void test_linear(void **state)
{
	(void)state;
	for (int beta = 0; beta < 2; beta++) {
		check_linear(1, 1, 1, (real)beta, 0, 1);
		check_linear(13, 7, 11, (real)beta, 0, 11);
		check_linear(13, 7, 11, (real)beta, 3, 8);
		check_linear(65, 33, 17, (real)beta, 16, 17);
	}
}

/* A weight as it is and packed: y added to nothing, to itself and to what is elsewhere, and d_x: the same numbers. */
struct packed_case {
	int rows, in, out, stride;
	struct linear_weight w[2];
	real *x, *d_y, *plus, *y[4], *d_x[2];
};

static void run_packed(int index, int thread, void *data)
{
	const struct packed_case *t = data;
	(void)index, (void)thread;
	for (int i = 0; i < 4; i++)
		linear(t->rows, t->in, t->out, t->x, t->in, t->w[i / 2], i % 2 ? t->y[i] : t->plus, t->y[i], t->stride);
	for (int i = 0; i < 2; i++)
		linear_back_input(t->rows, t->in, t->out, t->d_y, t->stride, t->w[i], t->d_x[i], t->in);
}

static void check_packed_forward(const struct packed_case *t, const real *old, const real *beside)
{
	for (int r = 0; r < t->rows; r++)
		for (int o = 0; o < t->stride; o++) {
			double sum = 0;
			int at = r * t->stride + o;
			for (int i = 0; i < t->in && o < t->out; i++)
				sum += (double)t->x[r * t->in + i] * (double)t->w[0].w[o * t->in + i];
			for (int i = 0; i < 4; i++)
				assert_item(t->y[i][at], i % 2 || o < t->out ? old[at] : beside[at], 1, sum,
					    o >= t->out, t->in);
		}
}

static void check_packed_back(const struct packed_case *t)
{
	for (int r = 0; r < t->rows; r++)
		for (int i = 0; i < t->in; i++) {
			double sum = 0;
			for (int o = 0; o < t->out; o++)
				sum += (double)t->d_y[r * t->stride + o] * (double)t->w[0].w[o * t->in + i];
			for (int way = 0; way < 2; way++)
				assert_item(t->d_x[way][r * t->in + i], 0, 0, sum, false, t->out);
		}
}

static void check_packed(int rows, int in, int out)
{
	struct packed_case t = { .rows = rows, .in = in, .out = out, .stride = out + 2 };
	int size = rows * t.stride;
	size_t reals = linear_panel_reals(out, in);
	real *w = normal(2, out * in), *forward = reals ? TAKE(real, reals) : NULL;
	real *backward = reals ? TAKE(real, reals) : NULL;
	t.x = normal(1, rows * in), t.plus = normal(3, size), t.d_y = normal(5, size);
	t.w[0] = (struct linear_weight){ .w = w };
	t.w[1] = (struct linear_weight){ w, forward, backward };
	linear_pack(out, in, t.w[1]);
	for (int i = 0; i < 4; i++)
		t.y[i] = normal(i % 2 ? 3 : 4, size);
	for (int i = 0; i < 2; i++)
		t.d_x[i] = normal(6, rows * in);
	threads_each(1, run_packed, &t);
	real *old = normal(3, size), *beside = normal(4, size);
	assert_memory_equal(t.plus, old, (size_t)size * sizeof(real));
	check_packed_forward(&t, old, beside);
	check_packed_back(&t);
	for (int i = 0; i < 4; i++)
		free(t.y[i]);
	free(t.x), free(w), free(t.plus), free(forward), free(backward), free(old), free(beside), free(t.d_y);
	free(t.d_x[0]), free(t.d_x[1]);
}

static void test_linear_packed(void **state)
{
	(void)state;
	check_packed(1, 1, 1);
	check_packed(13, 33, 17);
	check_packed(65, 300, 48);
	check_packed(7, 16, 99);
	check_packed(9, 48, 500);
	/* Where the library's products are asked for, nothing is packed for our own. */
	blas_use(PRODUCTS_LIBRARY);
	assert_int_equal(linear_panel_reals(48, 300), 0);
	blas_use(PRODUCTS_OWN);
}

static int start(void **state)
{
	(void)state;
	return blas_start(2).code;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_linear),
		cmocka_unit_test(test_linear_packed),
	};
	return cmocka_run_group_tests_name("model linear", tests, start, NULL);
}
