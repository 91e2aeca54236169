#ifndef ROPEWALK_LINEAR_H
#define ROPEWALK_LINEAR_H

#include "model/base/real.h"

#include <stddef.h>

/* y = x W^T, W [out][in], on rows that stand `*_stride` reals apart. Inside a parallel region (blas.h). */

/* A weight matrix, and the same in the panels of our own products, for y and for d_x: of linear_panel_reals reals,
 * filled by linear_pack once its values are known, or NULL where that is 0 and the library's products are used. */
struct linear_weight {
	const real *w;
	real *forward, *backward;
};
size_t linear_panel_reals(int out, int in);
void linear_pack(int out, int in, struct linear_weight w);

/* y [rows][out] = x W^T + plus; plus (NULL: 0) stands as y does, and may be y. */
void linear(int rows, int in, int out, const real *x, int x_stride, struct linear_weight w, const real *plus, real *y,
	    int y_stride);

/* d_x [rows][in] = d_y W */
void linear_back_input(int rows, int in, int out, const real *d_y, int y_stride, struct linear_weight w, real *d_x,
		       int x_stride);

/* d_w [first .. last)[in] = d_y[:, first .. last)^T x: some output rows of the weight's gradient, over all `rows`
 * tokens in one product, so that no sum is split. */
void linear_back_weight(int rows, int in, const real *d_y, int y_stride, const real *x, int x_stride, int first,
			int last, real *d_w);

#endif
