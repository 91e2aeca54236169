#include "model/base/vec.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A reproducible number in [-1, 1) with 12 significant bits, so that products are exact in either build. */
static real sample(uint32_t i)
{
	uint32_t h = (i + 1) * 0x9e3779b1u;
	h = (h ^ h >> 15) * 0x85ebca6bu;
	h = (h ^ h >> 13) & 4095;
	return ((real)h - 2048) / 2048;
}

static int same_bits(const real *a, const real *b, int n)
{
	return !memcmp(a, b, (size_t)n * sizeof *a);
}

#ifdef ROPEWALK_DOUBLE

/* The double build is libm's exp, to the bit. */
static void exp_is_libm(void **state)
{
	(void)state;
	static const double special[] = { 0, -0.0, INFINITY, -INFINITY, 709.7, 709.8, -745.1, -745.2, 1e300, -1e300 };
	enum { SPECIAL = sizeof special / sizeof *special, COUNT = 20000 };
	real *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y);
	assert_true(x && y);
	for (int i = 0; i < COUNT; i++)
		x[i] = i < SPECIAL ? special[i] : 800 * sample((uint32_t)i);
	memcpy(y, x, COUNT * sizeof *x);
	vec_exp(y, COUNT);
	for (int i = 0; i < COUNT; i++)
		assert_true(y[i] == exp(x[i]));
	vec_sigmoid(x, y, COUNT);
	for (int i = 0; i < COUNT; i++) {
		long double e = expl((long double)x[i]), expected = isinf(e) ? 1 : e / (1 + e);
		assert_true(fabsl(y[i] - expected) <= 2 * 0x1p-52L * expected + 0x1p-1074L);
	}
	x[0] = y[0] = NAN;
	vec_exp(x, 1);
	vec_sigmoid(y, y, 1);
	assert_true(isnan(x[0]) && isnan(y[0]));
	free(x);
	free(y);
}

#else

/* What the kernels did worse than the true value rounded to float, over a range of bit patterns. */
struct worst {
	uint32_t exp_ulps, exp_at, sigmoid_ulps, sigmoid_at;
};

static float float_of(uint32_t bits)
{
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

static uint32_t bits_of(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

enum { CHUNK = 1024 };

/* True results of a chunk, in which the sign is the same and the exponent nearly so. Where the answer needs no exp, it
 * is written down, and 1 is returned: far out, and where |x| < 2^-26 makes e^x round to 1 and the sigmoid to 1/2. */
static int true_results(const float *x, float *e, float *s)
{
	float least = fabsf(x[0]), greatest = fabsf(x[CHUNK - 1]);
	int negative = signbit(x[0]), tiny = greatest < 0x1p-26f;
	double exact[CHUNK];
	if (tiny || !(least <= 105)) {
		float far = tiny ? 1 : negative ? 0 : INFINITY, half = tiny ? 0.5f : negative ? 0 : 1;
		for (int i = 0; i < CHUNK; i++) {
			e[i] = x[i] == x[i] ? far : x[i];
			s[i] = x[i] == x[i] ? half : x[i];
		}
		return 1;
	}
	for (int i = 0; i < CHUNK; i++)
		exact[i] = exp((double)x[i]);
	for (int i = 0; i < CHUNK; i++) {
		e[i] = (float)exact[i];
		s[i] = x[i] < -87 ? 0 : (float)(exact[i] / (1 + exact[i]));
	}
	return 0;
}

/* The most steps between two results; both kernels return no negative numbers, and floats from +0 up are ordered as
 * their bits are. A NaN, -0 or a negative number is far from everything, except a NaN from a NaN. In masks, so that it
 * is done in vectors. */
static uint32_t ulps(const float *a, const float *b)
{
	uint32_t most = 0;
	for (int i = 0; i < CHUNK; i++) {
		uint32_t up = bits_of(a[i]) - bits_of(b[i]), down = bits_of(b[i]) - bits_of(a[i]);
		uint32_t numbers = -(uint32_t)(a[i] == a[i]) | -(uint32_t)(b[i] == b[i]);
		uint32_t steps = (up < down ? up : down) & numbers;
		most = steps > most ? steps : most;
	}
	return most;
}

static void check_chunk(uint32_t first, struct worst *w)
{
	float x[CHUNK], e[CHUNK], s[CHUNK], true_e[CHUNK], true_s[CHUNK];
	for (int i = 0; i < CHUNK; i++)
		x[i] = e[i] = float_of(first + (uint32_t)i);
	vec_exp(e, CHUNK);
	int written_down = true_results(x, true_e, true_s);
	uint32_t off = ulps(e, true_e);
	if (off > w->exp_ulps)
		w->exp_ulps = off, w->exp_at = first;
	if (written_down && first / CHUNK % 16)
		return;
	vec_sigmoid(x, s, CHUNK);
	off = ulps(s, true_s);
	if (off > w->sigmoid_ulps)
		w->sigmoid_ulps = off, w->sigmoid_at = first;
}

/* With EVERY_FLOAT in the environment, as in `make check`, exp: all 2^32 bit patterns; sigmoid: all from 2^-26 to 105 in
 * magnitude; beyond, 1024 neighbours in every 16,384. Otherwise of each 1024 neighbours in every 7168, and where it is
 * slow, in sanitised builds, in every 32,768. */
static int64_t stride(void)
{
#ifdef __SANITIZE_ADDRESS__
	return 32 * CHUNK;
#else
	return getenv("EVERY_FLOAT") ? CHUNK : 7 * CHUNK;
#endif
}

static void exp_of_every_float_and_sigmoid(void **state)
{
	(void)state;
	struct worst worst = { 0 };
	int64_t step = stride();
#pragma omp parallel
	{
		struct worst mine = { 0 };
#pragma omp for schedule(dynamic, 256)
		for (int64_t first = 0; first < INT64_C(1) << 32; first += step)
			check_chunk((uint32_t)first, &mine);
#pragma omp critical
		{
			if (mine.exp_ulps > worst.exp_ulps)
				worst.exp_ulps = mine.exp_ulps, worst.exp_at = mine.exp_at;
			if (mine.sigmoid_ulps > worst.sigmoid_ulps)
				worst.sigmoid_ulps = mine.sigmoid_ulps, worst.sigmoid_at = mine.sigmoid_at;
		}
	}
	print_message("exp: %u ulp near %a; sigmoid: %u ulp near %a\n", worst.exp_ulps,
		      (double)float_of(worst.exp_at), worst.sigmoid_ulps, (double)float_of(worst.sigmoid_at));
	assert_true(worst.exp_ulps <= 1);
	assert_true(worst.sigmoid_ulps <= 2);
}

static void exp_at_the_ends(void **state)
{
	(void)state;
	real x[] = { -INFINITY, -0.0f, 0, INFINITY, NAN, -NAN, 88.72283f, 88.72284f, -103.97f, -103.98f, 1e38f, -1e38f };
	vec_exp(x, sizeof x / sizeof *x);
	assert_int_equal(bits_of(x[0]), 0); /* +0 */
	assert_true(x[1] == 1 && x[2] == 1 && isinf(x[3]) && x[3] > 0);
	assert_true(isnan(x[4]) && isnan(x[5]));
	assert_true(x[6] > 3.4e38f && !isinf(x[6]) && isinf(x[7]));
	assert_true(x[8] == 0x1p-149f && x[9] == 0 && isinf(x[10]));
	assert_int_equal(bits_of(x[11]), 0);
}

#endif

typedef void row_function(real *x, int n);

static void exp_row(real *x, int n)
{
	vec_exp(x, n);
}

static void exp_sum_row(real *x, int n)
{
	vec_exp_sum(x, n, (real)0.75);
}

static void sigmoid_row(real *x, int n)
{
	vec_sigmoid(x, x, n);
}

static void axpy_row(real *x, int n)
{
	real third[70] = { 0 };
	for (int i = 0; i < n; i++)
		third[i] = x[i] / 3;
	vec_axpy(x, (real)0.1, third, n);
}

/* Each element of every row of 0 to 70, at every alignment, has the bits it has alone; nothing beside is touched. */
static void assert_place_does_not_matter(row_function *f)
{
	enum { LONGEST = 70, ROOM = LONGEST + 2 * VEC_LANES };
	real alone[LONGEST], *room = aligned_alloc(64, (ROOM * sizeof(real) + 63) / 64 * 64);
	assert_non_null(room);
	for (int i = 0; i < LONGEST; i++) {
		alone[i] = 30 * sample((uint32_t)i) / 7;
		f(&alone[i], 1);
	}
	for (int n = 0; n <= LONGEST; n++)
		for (int offset = 1; offset <= VEC_LANES; offset++) {
			real *x = room + offset;
			for (int i = 0; i < ROOM; i++)
				room[i] = 12345;
			for (int i = 0; i < n; i++)
				x[i] = 30 * sample((uint32_t)i) / 7;
			f(x, n);
			assert_true(same_bits(x, alone, n));
			assert_true(x[-1] == 12345 && x[n] == 12345);
		}
	free(room);
}

static void place_does_not_matter(void **state)
{
	(void)state;
	assert_place_does_not_matter(exp_row);
	assert_place_does_not_matter(exp_sum_row);
	assert_place_does_not_matter(sigmoid_row);
	assert_place_does_not_matter(axpy_row);
}

/* The sums' promised order, written plainly. */
static real sum_in_lanes(const real *x, int n)
{
	real lane[16] = { 0 };
	for (int i = 0; i < n; i++)
		lane[i % 16] += x[i];
	for (int half = 8; half; half /= 2)
		for (int k = 0; k < half; k++)
			lane[k] += lane[k + half];
	return lane[0];
}

static void sums_keep_their_order(void **state)
{
	(void)state;
	enum { LONGEST = 300 };
	real x[LONGEST] = { 0 }, y[LONGEST] = { 0 }, product[LONGEST], powers[LONGEST];
	for (int n = 0; n <= LONGEST; n++) {
		for (int i = 0; i < n; i++) {
			x[i] = ldexp(sample((uint32_t)i), i % 23);
			y[i] = sample((uint32_t)(i + 1000));
			product[i] = x[i] * y[i];
			powers[i] = 5 * y[i];
		}
		real sum = vec_sum(x, n), dot = vec_dot(x, y, n), plain = sum_in_lanes(x, n);
		real plain_dot = sum_in_lanes(product, n);
		assert_true(same_bits(&sum, &plain, 1));
		assert_true(same_bits(&dot, &plain_dot, 1));
		real exp_sum = vec_exp_sum(powers, n, (real)1.5), plain_exp_sum = sum_in_lanes(powers, n);
		assert_true(same_bits(&exp_sum, &plain_exp_sum, 1));
	}
}

static void sum_squares_in_double(void **state)
{
	(void)state;
	enum { LONGEST = 300 };
	real x[LONGEST] = { 0 };
	for (int n = 0; n <= LONGEST; n++) {
		double lane[16] = { 0 };
		for (int i = 0; i < n; i++) {
			x[i] = ldexp(sample((uint32_t)i), i % 23);
			lane[i % 16] += (double)x[i] * (double)x[i];
		}
		for (int half = 8; half; half /= 2)
			for (int k = 0; k < half; k++)
				lane[k] += lane[k + half];
		assert_true(vec_sum_squares(x, n) == lane[0]);
	}
	real huge[2] = { (real)1e30, (real)1e30 };
	assert_true(fabs(vec_sum_squares(huge, 2) / 2e60 - 1) < 1e-6);
}

/* exp_sum's elements are exp(x - shift), and masked ones are exactly 0 wherever they stand. */
static void exp_sum_masks_and_shifts(void **state)
{
	(void)state;
	enum { LONGEST = 70 };
	for (int n = 1; n <= LONGEST; n++)
		for (int masked = 0; masked < n; masked++) {
			real x[LONGEST], shifted[LONGEST];
			for (int i = 0; i < n; i++) {
				x[i] = i == masked ? -(real)INFINITY : 20 * sample((uint32_t)i);
				shifted[i] = x[i] - (real)3.25;
			}
			vec_exp(shifted, n);
			vec_exp_sum(x, n, (real)3.25);
			assert_true(same_bits(x, shifted, n));
			assert_true(x[masked] == 0 && !signbit(x[masked]));
		}
	real all[20];
	for (int i = 0; i < 20; i++)
		all[i] = -(real)INFINITY;
	assert_true(vec_exp_sum(all, 20, 100) == 0);
	assert_true(vec_exp_sum(all, 0, 1) == 0);
}

static void exp_sum_shows_a_nan(void **state)
{
	(void)state;
	for (int n = 1; n <= 40; n++)
		for (int at = 0; at < n; at++) {
			real x[40] = { 0 };
			x[at] = NAN;
			assert_true(isnan(vec_exp_sum(x, n, 1)));
			assert_true(isnan(x[at]));
		}
}

static void max_is_the_greatest(void **state)
{
	(void)state;
	assert_true(vec_max(NULL, 0) == -(real)INFINITY);
	for (int n = 1; n <= 70; n++)
		for (int at = 0; at < n; at++) {
			real x[70];
			for (int i = 0; i < n; i++)
				x[i] = i % 3 ? -2 - i : -(real)INFINITY;
			x[at] = (real)-1.5;
			assert_true(vec_max(x, n) == (real)-1.5);
			x[at] = 7;
			assert_true(vec_max(x, n) == 7);
			x[at] = INFINITY;
			assert_true(isinf(vec_max(x, n)));
			x[at] = NAN;
			assert_true(isnan(vec_max(x, n)));
			x[at] = -(real)NAN;
			assert_true(isnan(vec_max(x, n)));
		}
	real zeros[2] = { (real)-0.0, 0 }, masked[2] = { -(real)INFINITY, -(real)INFINITY };
	assert_true(vec_max(zeros, 2) == 0);
	assert_true(vec_max(masked, 2) == -(real)INFINITY);
}

/* Rows of every length, with masked ends and far from 0, against sums in long double. */
static void softmax_rows(void **state)
{
	(void)state;
	enum { LONGEST = 200 };
	const long double eps = sizeof(real) == 4 ? 0x1p-24L : 0x1p-53L;
	static const int centre[] = { 0, -500, 700 };
	for (int n = 1; n <= LONGEST; n++) {
		real x[LONGEST] = { 0 }, y[LONGEST];
		long double sum = 0;
		for (int i = 0; i < n; i++) {
			x[i] = centre[n % 3] + 10 * sample((uint32_t)(i + n));
			if (i > n / 2 && n % 2)
				x[i] = -(real)INFINITY;
			sum += expl((long double)x[i]);
		}
		memcpy(y, x, sizeof x);
		long double logsum = logl(sum), total = 0;
		real result = vec_softmax(y, n);
		assert_true(fabsl(result - logsum) <= 4 * eps * (1 + fabsl(logsum)));
		for (int i = 0; i < n; i++) {
			long double expected = expl((long double)x[i] - logsum);
			assert_true(fabsl(y[i] - expected) <= 8 * eps * expected);
			assert_true(!isinf(x[i]) || y[i] == 0);
			total += y[i];
		}
		assert_true(fabsl(total - 1) <= 8 * eps);
	}
}

/* A diverged row is not taken for a masked one. */
static void softmax_of_nan_is_nan(void **state)
{
	(void)state;
	real x[3] = { -(real)INFINITY, NAN, -(real)INFINITY };
	assert_true(isnan(vec_softmax(x, 3)));
	assert_true(isnan(x[1]));
}

static void softmax_of_a_masked_row_is_a_bug(void **state)
{
	(void)state;
	int status = 0;
	pid_t child = fork();
	if (!child) {
		real x[2] = { -(real)INFINITY, -(real)INFINITY };
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
		fclose(stderr);
		vec_softmax(x, 2);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void sigmoid_between_rows(void **state)
{
	(void)state;
	real x[37], y[38], in_place[37];
	for (int i = 0; i < 37; i++)
		x[i] = in_place[i] = 12 * sample((uint32_t)i);
	y[37] = 5;
	vec_sigmoid(x, y, 37);
	vec_sigmoid(in_place, in_place, 37);
	assert_true(same_bits(y, in_place, 37));
	assert_true(y[37] == 5);
	for (int i = 0; i < 37; i++) {
		assert_true(x[i] == 12 * sample((uint32_t)i));
		assert_true(fabs(y[i] - 1 / (1 + exp(-(double)x[i]))) < 1e-6);
	}
}

static void elementwise_rows(void **state)
{
	(void)state;
	for (int n = 0; n <= 40; n++) {
		real scaled[41], added[41], updated[41], y[41];
		for (int i = 0; i <= 40; i++) {
			scaled[i] = added[i] = updated[i] = i + 1;
			y[i] = 2 * i - 5;
		}
		vec_scale(scaled, (real)-1.5, n);
		vec_add(added, y, n);
		vec_axpy(updated, (real)0.25, y, n);
		for (int i = 0; i <= 40; i++) {
			real old = i + 1;
			assert_true(scaled[i] == (i < n ? (real)-1.5 * old : old));
			assert_true(added[i] == (i < n ? old + y[i] : old));
			assert_true(updated[i] == (i < n ? old + (real)0.25 * y[i] : old));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef ROPEWALK_DOUBLE
		cmocka_unit_test(exp_is_libm),
#else
		cmocka_unit_test(exp_of_every_float_and_sigmoid),
		cmocka_unit_test(exp_at_the_ends),
#endif
		cmocka_unit_test(place_does_not_matter),
		cmocka_unit_test(sums_keep_their_order),
		cmocka_unit_test(sum_squares_in_double),
		cmocka_unit_test(exp_sum_masks_and_shifts),
		cmocka_unit_test(exp_sum_shows_a_nan),
		cmocka_unit_test(max_is_the_greatest),
		cmocka_unit_test(softmax_rows),
		cmocka_unit_test(softmax_of_nan_is_nan),
		cmocka_unit_test(softmax_of_a_masked_row_is_a_bug),
		cmocka_unit_test(sigmoid_between_rows),
		cmocka_unit_test(elementwise_rows),
	};
	return cmocka_run_group_tests_name("base vec", tests, NULL, NULL);
}
