#ifndef ROPEWALK_NORM_H
#define ROPEWALK_NORM_H

#include "model/base/real.h"

/* RMSNorm (Zhang and Sennrich 2019, 1910.07467, equation 4): y = w x / sqrt(mean(x^2) + eps), on contiguous rows.
 * x, y [rows][C], w [C], rstd [rows] = 1 / sqrt(mean(x^2) + eps), kept for the backward pass. */
void rmsnorm(int rows, int C, double eps, const real *x, const real *w, real *y, real *rstd);

/* d_x [rows][C] = residual [rows][C] (NULL: 0) + the gradient, where d_x may be x or residual; adds to d_w [C]. */
void rmsnorm_back(int rows, int C, const real *x, const real *w, const real *rstd, const real *d_y,
		  const real *residual, real *d_x, double *d_w);

#endif
