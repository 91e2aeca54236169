#ifndef ROPEWALK_VEC_H
#define ROPEWALK_VEC_H

#include "real.h"

/* Element-wise kernels. In float they are our own and vectorise; the double build calls libm. The only folder-wide
 * rule they break is contraction: this file is compiled with fused multiply-adds on.
 *
 * Sums run in 16 lanes (element i goes to lane i mod 16) that are then added pairwise, so that they do not depend on
 * the width of the machine's vectors. */

#define VEC_LANES 16

/* e^x of every element, within 1 ulp; overflows to infinity, underflows to 0 through the denormals, NaN stays NaN. */
void vec_exp(real *x, int n);

/* x[i] = exp(x[i] - shift), at most e^88; returns their sum: the two halves of softmax in one pass. What is below the
 * normal numbers, as -inf, gives exactly 0; NaN stays NaN. */
real vec_exp_sum(real *x, int n, real shift);

/* Greatest element; -inf for n = 0. */
real vec_max(const real *x, int n);

/* 1 / (1 + e^-x), within 2 ulp, without overflow; in float 0 below -87. */
void vec_sigmoid(const real *x, real *y, int n);

/* One softmax row in place: x = exp(x - max) / sum; returns max + ln(sum). A row of nothing but -inf is a BUG. */
real vec_softmax(real *x, int n);

real vec_sum(const real *x, int n);
real vec_dot(const real *x, const real *y, int n);
void vec_scale(real *x, real factor, int n);                      /* x *= factor */
void vec_add(real *x, const real *y, int n);                      /* x += y */
void vec_axpy(real *x, real factor, const real *y, int n);        /* x += factor y */
double vec_sum_squares(const real *x, int n);                     /* summed in double, in order of lanes */

#endif
