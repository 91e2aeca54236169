#ifndef ROPEWALK_LINEAR_H
#define ROPEWALK_LINEAR_H

#include "model/base/real.h"

/* y = x W^T, W [out][in], on rows that stand `*_stride` reals apart. Inside a parallel region (blas.h). */

/* y [rows][out] = x W^T + beta y */
void linear(int rows, int in, int out, const real *x, int x_stride, const real *w, real beta, real *y, int y_stride);

/* d_x [rows][in] = d_y W + beta d_x */
void linear_back_input(int rows, int in, int out, const real *d_y, int y_stride, const real *w, real beta, real *d_x,
		       int x_stride);

/* d_w [first .. last)[in] = d_y[:, first .. last)^T x: some output rows of the weight's gradient, over all `rows`
 * tokens in one product, so that no sum is split. */
void linear_back_weight(int rows, int in, const real *d_y, int y_stride, const real *x, int x_stride, int first,
			int last, real *d_w);

#endif
