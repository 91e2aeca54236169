#include "model/linear.h"

#include "model/base/blas.h"
#include "model/base/phase.h"
#include "model/base/product.h"

#include <string.h>

size_t linear_panel_reals(int out, int in)
{
	if (!blas_own_weight(out) || !blas_own_weight(in))
		return 0;
	size_t forward = product_turned_reals(out, in), backward = product_turned_reals(in, out);
	return forward > backward ? forward : backward;
}

void linear_pack(int out, int in, struct linear_weight w)
{
	if (w.forward)
		product_turn_weight(out, in, w.w, in, w.forward);
	if (w.backward)
		product_pack_weight(in, out, w.w, in, w.backward);
}

void linear(int rows, int in, int out, const real *x, int x_stride, struct linear_weight w, const real *plus, real *y,
	    int y_stride)
{
	enum phase before = phase_enter_within(PHASE_LINEAR);
	if (w.forward) {
		product_weight(rows, out, in, 1, x, (size_t)x_stride, w.forward, plus, y, y_stride);
	} else {
		for (int r = 0; plus && plus != y && r < rows; r++)
			memcpy(y + (size_t)r * (size_t)y_stride, plus + (size_t)r * (size_t)y_stride,
			       (size_t)out * sizeof *y);
		gemm_nt(rows, out, in, 1, x, x_stride, w.w, in, plus ? 1 : 0, y, y_stride);
	}
	phase_enter(before);
}

void linear_back_input(int rows, int in, int out, const real *d_y, int y_stride, struct linear_weight w, real *d_x,
		       int x_stride)
{
	enum phase before = phase_enter_within(PHASE_LINEAR_BACK);
	if (w.backward)
		product_weight(rows, in, out, 1, d_y, (size_t)y_stride, w.backward, NULL, d_x, x_stride);
	else
		gemm_nn(rows, in, out, 1, d_y, y_stride, w.w, in, 0, d_x, x_stride);
	phase_enter(before);
}

void linear_back_weight(int rows, int in, const real *d_y, int y_stride, const real *x, int x_stride, int first,
			int last, real *d_w)
{
	enum phase before = phase_enter_within(PHASE_LINEAR_WEIGHTS);
	gemm_tn(last - first, in, rows, 1, d_y + first, y_stride, x, x_stride, 0, d_w + (long)first * in, in);
	phase_enter(before);
}
