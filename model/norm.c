#include "model/norm.h"

#include "model/base/vec.h"

#include <math.h>
#include <stddef.h>

void rmsnorm(int rows, int C, double eps, const real *x, const real *w, real *y, real *rstd)
{
	for (int r = 0; r < rows; r++, x += C, y += C) {
		real scale = (real)(1 / sqrt((double)vec_dot(x, x, C) / C + eps));
		for (int c = 0; c < C; c++)
			y[c] = w[c] * (x[c] * scale);
		rstd[r] = scale;
	}
}

/* C elements of a row, at most VEC_LANES, by way of copies, as what is written may be what is read. */
static inline void row_back(int C, real scale, real along, const real *x, const real *w, const real *d_y,
			    const real *residual, real *d_x)
{
	real own[VEC_LANES], beside[VEC_LANES] = { 0 };
	for (int c = 0; c < C; c++)
		own[c] = scale * (w[c] * d_y[c] - x[c] * along);
	for (int c = 0; residual && c < C; c++)
		beside[c] = residual[c];
	for (int c = 0; c < C; c++)
		d_x[c] = beside[c] + own[c];
}

void rmsnorm_back(int rows, int C, const real *x, const real *w, const real *rstd, const real *d_y,
		  const real *residual, real *d_x, double *d_w)
{
	int whole = C / VEC_LANES * VEC_LANES;
	for (int r = 0; r < rows; r++, x += C, d_y += C, d_x += C) {
		real scale = rstd[r];
		real lane[VEC_LANES] = { 0 };
		for (int c = 0; c < whole; c += VEC_LANES)
			for (int i = 0; i < VEC_LANES; i++)
				lane[i] += d_y[c + i] * w[c + i] * x[c + i];
		for (int i = 0; whole + i < C; i++)
			lane[i] += d_y[whole + i] * w[whole + i] * x[whole + i];
		real sum = vec_sum(lane, VEC_LANES);
		real along = (real)((double)sum * (double)scale * (double)scale / C);
		for (int c = 0; c < C; c++)
			d_w[c] += (double)(d_y[c] * x[c] * scale);
		for (int c = 0; c < whole; c += VEC_LANES)
			row_back(VEC_LANES, scale, along, x + c, w + c, d_y + c, residual ? residual + c : NULL,
				 d_x + c);
		row_back(C - whole, scale, along, x + whole, w + whole, d_y + whole, residual ? residual + whole : NULL,
			 d_x + whole);
		residual = residual ? residual + C : NULL;
	}
}
