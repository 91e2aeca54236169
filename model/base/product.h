#ifndef ROPEWALK_PRODUCT_H
#define ROPEWALK_PRODUCT_H

#include "real.h"

#include <stdbool.h>
#include <stddef.h>

/* Small matrix products without a library's packing: for blas.c alone, which uses them where the second factor stays in
 * the cache. Sums run over k in order, so an element's bits do not depend on where in C it stands. */

/* Are they worth while for this size, on the processor compiled for? */
bool product_suits(int m, int n, int k);

/* C[m][n] = alpha A B + (add ? C : 0), B[k][n] with rows ldb apart, A(i, p) = a[i a_row + p a_column]. */
void product(int m, int n, int k, real alpha, const real *a, size_t a_row, size_t a_column, const real *b, int ldb,
	     bool add, real *c, int ldc);

/* The same with B^T, B[n][k], whose rows' first 256 reals (or k) are 65536 at most in all, as for every size that
 * suits. */
void product_transposed(int m, int n, int k, real alpha, const real *a, size_t a_row, const real *b, int ldb, bool add,
			real *c, int ldc);

#endif
