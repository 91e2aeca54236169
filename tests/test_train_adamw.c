#include "model/base/threads.h"
#include "train/adamw.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const int thread_counts[] = { 1, 2, 3, 7 };

static struct train_options recipe(void)
{
	return (struct train_options){ .steps = 1500, .lr = 3e-3, .lr_floor = 0.1, .warmup = 100, .beta1 = 0.9,
				       .beta2 = 0.98, .adam_eps = 1e-8, .weight_decay = 0.1, .clip = 1 };
}

/* Parameters of a few reals, of more than one span with a remainder, and some that decay and some that do not. */
static struct layout small_layout(void)
{
	struct layout l = { 0 };
	layout_add(&l, INIT_NORMAL, 1, true, 3, 5, "matrix");
	layout_add(&l, INIT_ONES, 0, false, 0, 7, "vector");
	layout_add(&l, INIT_NORMAL, 1, true, 100, 91, "large");
	layout_add(&l, INIT_NORMAL, 1, false, 64, 128, "table");
	return l;
}

static double wave(size_t i, int step)
{
	return sin(0.37 * (double)i + 1.3 * step) * exp(-(double)(i % 13));
}

static void fill(real *x, size_t size, int step)
{
	for (size_t i = 0; i < size; i++)
		x[i] = (real)wave(i, step);
}

static real *slab(size_t size)
{
	real *x = calloc(size, sizeof *x);
	assert_non_null(x);
	return x;
}

static void test_rate(void **state)
{
	(void)state;
	struct train_options o = recipe();
	static const struct {
		int64_t step;
		double rate;
	} expected[] = {
		{ 0, 3e-5 },
		{ 50, 3e-3 * 0.51 * (0.1 + 0.45 * (1 + 0.9945218953682733)) }, /* cos(pi / 30) */
		{ 99, 3e-3 * (0.1 + 0.45 * (1 + 0.9785809043254721)) },         /* cos(99 pi / 1500) */
		{ 100, 3e-3 * (0.1 + 0.45 * (1 + 0.9781476007338057)) },        /* cos(pi / 15) */
		{ 750, 3e-3 * 0.55 },
		{ 1499, 3e-3 * (0.1 + 0.45 * (1 - 0.9999978067553793)) },       /* cos(1499 pi / 1500) */
	};
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		double rate = adamw_rate(&o, expected[i].step);
		if (fabs(rate - expected[i].rate) > 1e-15)
			fail_msg("step %d: %.17g is not %.17g", (int)expected[i].step, rate, expected[i].rate);
	}
}

static void test_rate_without_warmup(void **state)
{
	(void)state;
	struct train_options o = recipe();
	o.warmup = 0;
	assert_true(fabs(adamw_rate(&o, 0) - 3e-3) < 1e-18);
	o.lr_floor = 1;
	assert_true(fabs(adamw_rate(&o, 777) - 3e-3) < 1e-18);
}

/* One parameter's value after `steps` updates, by the paper's algorithm in double. */
static double reference(const struct train_options *o, double value, bool decayed, size_t i, int steps, double scale)
{
	double m = 0, v = 0;
	for (int step = 0; step < steps; step++) {
		double g = scale * (double)(real)wave(i, step + 1), rate = adamw_rate(o, step);
		m = o->beta1 * m + (1 - o->beta1) * g;
		v = o->beta2 * v + (1 - o->beta2) * g * g;
		double m_hat = m / (1 - pow(o->beta1, step + 1)), v_hat = v / (1 - pow(o->beta2, step + 1));
		value -= rate * (decayed ? o->weight_decay : 0) * value;
		value -= rate * m_hat / (sqrt(v_hat) + o->adam_eps);
	}
	return value;
}

static void test_update(void **state)
{
	(void)state;
	enum { STEPS = 20 };
	struct train_options o = recipe();
	o.warmup = 5;
	o.steps = STEPS;
	o.lr = 0.05;
	struct layout l = small_layout();
	real *gradient = slab(l.size), *m = slab(l.size), *v = slab(l.size), *value = slab(l.size);
	fill(value, l.size, 0);
	for (int step = 0; step < STEPS; step++) {
		fill(gradient, l.size, step + 1);
		adamw_update(&l, &o, step, 0.5, gradient, m, v, value);
	}
	double tolerance = sizeof(real) == 4 ? 2e-6 : 1e-13;
	for (int p = 0; p < layout_count(&l); p++) {
		const struct parameter *of = &l.parameter[p];
		for (size_t i = of->offset; i < of->offset + of->size; i++) {
			double expected = reference(&o, (double)(real)wave(i, 0), of->decayed, i, STEPS, 0.5);
			if (fabs((double)value[i] - expected) > tolerance)
				fail_msg("%s, real %zu: %.9g is not %.9g", of->name, i, (double)value[i], expected);
		}
	}
	free(gradient), free(m), free(v), free(value);
	layout_free(&l);
}

/* The first step moves every value by the rate against its gradient's sign, eps aside. */
static void test_first_step(void **state)
{
	(void)state;
	struct train_options o = recipe();
	struct layout l = { 0 };
	layout_add(&l, INIT_ZEROS, 0, false, 0, 3, "vector");
	layout_add(&l, INIT_ZEROS, 0, true, 1, 3, "matrix");
	real gradient[6] = { 4, -0.25, 0, 4, -0.25, 0 }, m[6] = { 0 }, v[6] = { 0 }, value[6] = { 2, 2, 2, 2, 2, 2 };
	o.warmup = 0;
	o.lr = 0.125;
	o.adam_eps = 0.25;
	adamw_update(&l, &o, 0, 1, gradient, m, v, value);
	double by[3] = { 0.125 * 4 / 4.25, -0.125 * 0.5, 0 };
	for (int i = 0; i < 6; i++) {
		double kept = i < 3 ? 2 : 2 * (1 - 0.0125);
		assert_true(fabs((double)value[i] - (kept - by[i % 3])) < 1e-6);
	}
	layout_free(&l);
}

static void test_update_threads(void **state)
{
	(void)state;
	struct train_options o = recipe();
	struct layout l = small_layout();
	real *gradient = slab(l.size), *first = slab(3 * l.size), *again = slab(3 * l.size);
	for (int i = 0; i < 4; i++) {
		real *slabs = i ? again : first, *m = slabs, *v = slabs + l.size, *value = slabs + 2 * l.size;
		memset(slabs, 0, 3 * l.size * sizeof *slabs);
		fill(value, l.size, 0);
		threads_start(thread_counts[i]);
		for (int step = 0; step < 3; step++) {
			fill(gradient, l.size, step + 1);
			adamw_update(&l, &o, step, 1, gradient, m, v, value);
		}
		assert_memory_equal(slabs, first, 3 * l.size * sizeof *slabs);
	}
	threads_start(1);
	free(gradient), free(first), free(again);
	layout_free(&l);
}

static void test_norm(void **state)
{
	(void)state;
	struct layout l = small_layout();
	/* More spans than are summed at a time. */
	layout_add(&l, INIT_ZEROS, 0, false, 1000, 1301, "huge");
	real *gradient = slab(l.size);
	fill(gradient, l.size, 1);
	double naive = 0;
	for (size_t i = 0; i < l.size; i++)
		naive += (double)gradient[i] * (double)gradient[i];
	naive = sqrt(naive);
	double first = 0;
	for (int i = 0; i < 4; i++) {
		threads_start(thread_counts[i]);
		double norm = gradient_norm(&l, gradient);
		first = i ? first : norm;
		assert_memory_equal(&norm, &first, sizeof norm);
	}
	threads_start(1);
	assert_true(fabs(first - naive) < 1e-12 * naive);
	free(gradient);
	layout_free(&l);
}

/* Whatever is not finite, wherever it stands, is found, and spoils the norm. */
static void test_not_finite(void **state)
{
	(void)state;
	struct layout l = small_layout();
	real *gradient = slab(l.size);
	fill(gradient, l.size, 1);
	assert_null(layout_not_finite(&l, gradient));
	const double bad[] = { NAN, INFINITY, -INFINITY };
	for (int p = 0; p < layout_count(&l); p++) {
		const struct parameter *of = &l.parameter[p];
		size_t place[] = { of->offset, of->offset + of->size / 2, of->offset + of->size - 1 };
		for (int i = 0; i < 3; i++) {
			real kept = gradient[place[i]];
			gradient[place[i]] = (real)bad[(i + p) % 3];
			assert_ptr_equal(layout_not_finite(&l, gradient), of);
			assert_false(isfinite(gradient_norm(&l, gradient)));
			gradient[place[i]] = kept;
		}
	}
	gradient[l.parameter[1].offset] = gradient[l.size - 1] = (real)NAN;
	assert_string_equal(layout_not_finite(&l, gradient)->name, "vector");
	free(gradient);
	layout_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_rate_without_warmup),
		cmocka_unit_test(test_update),
		cmocka_unit_test(test_first_step),
		cmocka_unit_test(test_update_threads),
		cmocka_unit_test(test_norm),
		cmocka_unit_test(test_not_finite),
	};
	threads_start(1);
	return cmocka_run_group_tests_name("train adamw", tests, NULL, NULL);
}
