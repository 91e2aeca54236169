#include "model/norm.h"

#include "model/base/vec.h"

#include <math.h>

void rmsnorm(int rows, int C, double eps, const real *x, const real *w, real *y, real *rstd)
{
	for (int r = 0; r < rows; r++, x += C, y += C) {
		real scale = (real)(1 / sqrt((double)vec_dot(x, x, C) / C + eps));
		for (int c = 0; c < C; c++)
			y[c] = w[c] * (x[c] * scale);
		rstd[r] = scale;
	}
}

void rmsnorm_back(int rows, int C, const real *x, const real *w, const real *rstd, const real *d_y, real *d_x,
		  double *d_w)
{
	for (int r = 0; r < rows; r++, x += C, d_y += C, d_x += C) {
		real scale = rstd[r], sum = 0;
		real lane[VEC_LANES] = { 0 };
		int c = 0;
		for (; c + VEC_LANES <= C; c += VEC_LANES)
			for (int i = 0; i < VEC_LANES; i++)
				lane[i] += d_y[c + i] * w[c + i] * x[c + i];
		for (int i = 0; c + i < C; i++)
			lane[i] += d_y[c + i] * w[c + i] * x[c + i];
		sum = vec_sum(lane, VEC_LANES);
		real along = (real)((double)sum * (double)scale * (double)scale / C);
		for (int j = 0; j < C; j++)
			d_x[j] += scale * (w[j] * d_y[j] - x[j] * along);
		for (int j = 0; j < C; j++)
			d_w[j] += (double)(d_y[j] * x[j] * scale);
	}
}
