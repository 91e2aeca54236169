#include "vec.h"

#include "err.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Every kernel that rounds is written over whole blocks of 16 and is not inlined; what is left of a row goes through
 * the same code in a padded block, so that an element's bits depend neither on its place nor on n. */
#define KERNEL static __attribute__((noinline))

#ifdef ROPEWALK_DOUBLE

static inline real exponential(real x)
{
	return exp(x);
}

real vec_max(const real *x, int n)
{
	real max = -INFINITY;
	for (int i = 0; i < n; i++) {
		if (isnan(x[i]))
			return x[i];
		max = x[i] > max ? x[i] : max;
	}
	return max;
}

#else

static inline float from_bits(uint32_t bits)
{
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

static inline uint32_t to_bits(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

/* x held between -105 and 89, beyond which e^x is 0 and inf already; NaN is lost. Floats of one sign are ordered as
 * their bits are, so two minima of integers do it. A comparison of floats would not stay one instruction: compilers
 * copy all that follows it. */
static inline float clamped(float x)
{
	const int32_t highest = 0x42b20000; /* 89 */
	const uint32_t lowest = 0xc2d20000u; /* -105 */
	int32_t bits = (int32_t)to_bits(x);
	uint32_t below = (uint32_t)(bits < highest ? bits : highest);
	return from_bits(below < lowest ? below : lowest);
}

/* e^r for |r| <= ln(2) / 2 is 1 + r + r^2 q(r), where q is the polynomial of degree 4 that makes the greatest relative
 * error of e^r least (0.05 x 2^-24). */
#define EXP_6 0x1.6a243ap-10f
#define EXP_5 0x1.1239e0p-7f
#define EXP_4 0x1.5558f2p-5f
#define EXP_3 0x1.555492p-3f
#define EXP_2 0x1.fffffcp-2f

/* ln 2 = HIGH - LOW; HIGH has 10 bits, so that a small integer times it is exact even without fused multiply-adds. */
#define LN2_HIGH 0.693359375f
#define LN2_LOW 2.12194440e-4f

/* e^x = 2^n e^r with n = round(x / ln 2). */
static inline float exponential(float x)
{
	uint32_t nan = -(uint32_t)(x != x);
	x = clamped(x);

	/* Added to 1.5 x 2^23, a number is rounded to an integer, which stands in the low bits; 254 is twice the bias
	 * of the exponents made of it below. */
	const float rounder = 12582912 + 254;
	float rounded = x * 0x1.715476p+0f + rounder;
	float n = rounded - rounder;
	float r = x - n * LN2_HIGH;
	r = r + n * LN2_LOW;

	float p = EXP_6;
	p = p * r + EXP_5;
	p = p * r + EXP_4;
	p = p * r + EXP_3;
	p = p * r + EXP_2;
	p = p * r + 1;
	p = p * r + 1;

	/* 2^n in two factors, each a normal number, so that only the last product rounds, overflows or underflows. */
	uint32_t half = to_bits(rounded) >> 1, rest = to_bits(rounded) - half;
	p = p * from_bits(half << 23) * from_bits(rest << 23);
	return from_bits(to_bits(p) | nan);
}

/* The bits of a float as an integer of the same order, and back. */
static inline int32_t ordered(int32_t bits)
{
	/* cppcheck-suppress shiftTooManyBitsSigned ; compilers that have vectors keep the sign */
	return bits ^ (bits >> 31 & 0x7fffffff);
}

real vec_max(const real *x, int n)
{
	/* Of integers, because a greatest float is not taken in vectors. A NaN wins, so that a diverged row cannot
	 * pass for a masked one. */
	const int32_t infinity = 0x7f800000;
	int32_t greatest = ordered((int32_t)to_bits(-INFINITY)), farthest = 0;
	for (int i = 0; i < n; i++) {
		int32_t bits = (int32_t)to_bits(x[i]), rank = ordered(bits), size = bits & 0x7fffffff;
		greatest = rank > greatest ? rank : greatest;
		farthest = size > farthest ? size : farthest;
	}
	return farthest > infinity ? NAN : from_bits((uint32_t)ordered(greatest));
}

#endif

/* Leaves the total of 16 lanes in the first: halves are added to each other. A macro, to serve real and double. */
#define FOLD(lane)                                                      \
	do {                                                            \
		for (int k = 0; k < 8; k++)                             \
			(lane)[k] += (lane)[k + 8];                     \
		for (int k = 0; k < 4; k++)                             \
			(lane)[k] += (lane)[k + 4];                     \
		(lane)[0] = ((lane)[0] + (lane)[2]) + ((lane)[1] + (lane)[3]); \
	} while (0)

/* The last `rest` elements of a row and -inf, whose exp adds 0 to a sum. */
static inline void pad(real block[VEC_LANES], const real *x, int rest)
{
	for (int k = 0; k < VEC_LANES; k++)
		block[k] = -(real)INFINITY;
	memcpy(block, x, (size_t)rest * sizeof *x);
}

KERNEL void exp_blocks(real *x, int blocks)
{
	for (int b = 0; b < blocks; b++, x += VEC_LANES)
		for (int k = 0; k < VEC_LANES; k++)
			x[k] = exponential(x[k]);
}

void vec_exp(real *x, int n)
{
	real block[VEC_LANES];
	int rest = n % VEC_LANES;
	exp_blocks(x, n / VEC_LANES);
	if (!rest)
		return;
	pad(block, x + n - rest, rest);
	exp_blocks(block, 1);
	memcpy(x + n - rest, block, (size_t)rest * sizeof *x);
}

#ifdef ROPEWALK_DOUBLE

void vec_sigmoid(const real *x, real *y, int n)
{
	for (int i = 0; i < n; i++) {
		real e = exp(-fabs(x[i]));
		y[i] = (x[i] < 0 ? e : 1) / (1 + e);
	}
}

real vec_exp_sum(real *x, int n, real shift)
{
	real lane[VEC_LANES] = { 0 };
	for (int i = 0; i < n; i++) {
		x[i] = exp(x[i] - shift);
		lane[i % VEC_LANES] += x[i];
	}
	FOLD(lane);
	return lane[0];
}

#else

/* Vectors of the machine's width, of which some are a block; comparisons give all bits of a lane. */
#if defined __AVX512F__
#define WIDE 16
#elif defined __AVX__
#define WIDE 8
#else
#define WIDE 4
#endif
#define PER_BLOCK (VEC_LANES / WIDE)
typedef float wide __attribute__((vector_size(4 * WIDE)));
typedef uint32_t wide_bits __attribute__((vector_size(4 * WIDE)));

static inline wide wide_load(const float *x)
{
	wide v;
	memcpy(&v, x, sizeof v);
	return v;
}

/* e^x as `exponential` has it, but with less to do: x is at most 88, and results below the normal numbers are 0. */
static inline wide falling(wide x)
{
	const float rounder = 12582912 + 127, least = -87;
	wide_bits kept = ~(wide_bits)(x < least);
	wide rounded = x * 0x1.715476p+0f + rounder, n = rounded - rounder;
	wide r = x - n * LN2_HIGH;
	r = r + n * LN2_LOW;
	wide p = EXP_6 * r + EXP_5;
	p = p * r + EXP_4;
	p = p * r + EXP_3;
	p = p * r + EXP_2;
	p = p * r + 1;
	p = p * r + 1;
	p = p * (wide)((wide_bits)rounded << 23);
	return (wide)((wide_bits)p & kept);
}

static inline void exp_sum_block(float *x, float shift, wide sum[PER_BLOCK])
{
	for (int i = 0; i < PER_BLOCK; i++) {
		wide p = falling(wide_load(x + i * WIDE) - shift);
		sum[i] += p;
		memcpy(x + i * WIDE, &p, sizeof p);
	}
}

/* From e = e^-|x|, which does not overflow: 1 / (1 + e), or e / (1 + e) where x is negative. */
static inline void sigmoid_block(const float *x, float *y)
{
	const wide zero = { 0 };
	for (int i = 0; i < PER_BLOCK; i++) {
		wide v = wide_load(x + i * WIDE);
		wide_bits negative = (wide_bits)(v < 0);
		wide e = falling((wide)((wide_bits)v | 0x80000000u));
		wide above = (wide)(((wide_bits)e & negative) | ((wide_bits)(zero + 1) & ~negative));
		wide p = above / (1 + e);
		memcpy(y + i * WIDE, &p, sizeof p);
	}
}

real vec_exp_sum(real *x, int n, real shift)
{
	wide sum[PER_BLOCK] = { 0 };
	int rest = n % VEC_LANES;
	for (int i = 0; i < n - rest; i += VEC_LANES)
		exp_sum_block(x + i, shift, sum);
	if (rest) {
		real block[VEC_LANES];
		pad(block, x + n - rest, rest);
		exp_sum_block(block, shift, sum);
		memcpy(x + n - rest, block, (size_t)rest * sizeof *x);
	}
	real lane[VEC_LANES];
	for (int i = 0; i < PER_BLOCK; i++)
		memcpy(lane + i * WIDE, &sum[i], sizeof sum[i]);
	FOLD(lane);
	return lane[0];
}

void vec_sigmoid(const real *x, real *y, int n)
{
	int rest = n % VEC_LANES;
	for (int i = 0; i < n - rest; i += VEC_LANES)
		sigmoid_block(x + i, y + i);
	if (!rest)
		return;
	real block[VEC_LANES];
	pad(block, x + n - rest, rest);
	sigmoid_block(block, block);
	memcpy(y + n - rest, block, (size_t)rest * sizeof *y);
}

#endif

real vec_softmax(real *x, int n)
{
	real max = vec_max(x, n);
	BUG_IF(max == -(real)INFINITY, "softmax of a row of %d in which everything is masked", n);
	real sum = vec_exp_sum(x, n, max);
	for (int i = 0; i < n; i++)
		x[i] /= sum;
	return (real)((double)max + log((double)sum));
}

real vec_sum(const real *x, int n)
{
	real lane[VEC_LANES] = { 0 };
	int i = 0;
	for (; i + VEC_LANES <= n; i += VEC_LANES)
		for (int k = 0; k < VEC_LANES; k++)
			lane[k] += x[i + k];
	for (int k = 0; i + k < n; k++)
		lane[k] += x[i + k];
	FOLD(lane);
	return lane[0];
}

real vec_dot(const real *x, const real *y, int n)
{
	real lane[VEC_LANES] = { 0 };
	int i = 0;
	for (; i + VEC_LANES <= n; i += VEC_LANES)
		for (int k = 0; k < VEC_LANES; k++)
			lane[k] += x[i + k] * y[i + k];
	for (int k = 0; i + k < n; k++)
		lane[k] += x[i + k] * y[i + k];
	FOLD(lane);
	return lane[0];
}

void vec_scale(real *x, real factor, int n)
{
	for (int i = 0; i < n; i++)
		x[i] *= factor;
}

void vec_add(real *x, const real *y, int n)
{
	for (int i = 0; i < n; i++)
		x[i] += y[i];
}

void vec_axpy(real *x, real factor, const real *y, int n)
{
	for (int i = 0; i < n; i++)
		x[i] += factor * y[i];
}

double vec_sum_squares(const real *x, int n)
{
	double lane[VEC_LANES] = { 0 };
	int i = 0;
	for (; i + VEC_LANES <= n; i += VEC_LANES)
		for (int k = 0; k < VEC_LANES; k++)
			lane[k] += (double)x[i + k] * (double)x[i + k];
	for (int k = 0; i + k < n; k++)
		lane[k] += (double)x[i + k] * (double)x[i + k];
	FOLD(lane);
	return lane[0];
}
