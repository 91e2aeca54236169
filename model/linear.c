#include "model/linear.h"

#include "model/base/blas.h"
#include "model/base/phase.h"

void linear(int rows, int in, int out, const real *x, int x_stride, const real *w, real beta, real *y, int y_stride)
{
	enum phase before = phase_enter_within(PHASE_LINEAR);
	gemm_nt(rows, out, in, 1, x, x_stride, w, in, beta, y, y_stride);
	phase_enter(before);
}

void linear_back_input(int rows, int in, int out, const real *d_y, int y_stride, const real *w, real beta, real *d_x,
		       int x_stride)
{
	enum phase before = phase_enter_within(PHASE_LINEAR_BACK);
	gemm_nn(rows, in, out, 1, d_y, y_stride, w, in, beta, d_x, x_stride);
	phase_enter(before);
}

void linear_back_weight(int rows, int in, const real *d_y, int y_stride, const real *x, int x_stride, int first,
			int last, real *d_w)
{
	enum phase before = phase_enter_within(PHASE_LINEAR_WEIGHTS);
	gemm_tn(last - first, in, rows, 1, d_y + first, y_stride, x, x_stride, 0, d_w + (long)first * in, in);
	phase_enter(before);
}
