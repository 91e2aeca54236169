#ifndef ROPEWALK_PRODUCT_H
#define ROPEWALK_PRODUCT_H

#include "real.h"

#include <stdbool.h>
#include <stddef.h>

/* Our own matrix products, for second factors that are packed once and used often, and for attention's tiles, where a
 * library packs anew each time. Sums run over k in order, so an element's bits do not depend on where in C it stands,
 * nor on what is left out because it is 0. */

/* A second factor that many products share, made into panels once (product_turned_reals(n, k) reals) from B[n][k], to
 * multiply by B^T, or from B[k][n]; and C[m][n] = alpha A (B^T or B) + plus, where `plus` is laid out as C is, or C
 * itself, or NULL for 0. */
bool product_weight_suits(int n); /* is that faster, on the processor compiled for? */
void product_turn_weight(int n, int k, const real *b, int ldb, real *panels);
void product_pack_weight(int n, int k, const real *b, int ldb, real *panels);
void product_weight(int m, int n, int k, real alpha, const real *a, size_t a_row, const real *panels, const real *plus,
		    real *c, int ldc);

/* Rows of C are worked on PRODUCT_ROWS together, columns in multiples of PRODUCT_COLUMNS. */
#if defined __AVX512F__ && !defined ROPEWALK_VECTOR_BYTES
#define ROPEWALK_VECTOR_BYTES 64
#elif defined __SSE2__ && !defined __AVX__ && !defined ROPEWALK_VECTOR_BYTES
#define ROPEWALK_VECTOR_BYTES 16
#elif !defined ROPEWALK_VECTOR_BYTES
#define ROPEWALK_VECTOR_BYTES 32
#endif
#define PRODUCT_ROWS (ROPEWALK_VECTOR_BYTES == 64 ? 12 : 6)
#define PRODUCT_COLUMNS ((int)(2 * ROPEWALK_VECTOR_BYTES / sizeof(real)))

/* What a block of PRODUCT_ROWS rows needs: [from, to); one a block, (m + PRODUCT_ROWS - 1) / PRODUCT_ROWS in all. */
struct span {
	int from, to;
};

/* B[n][k], rows ldb apart, turned over to B^T in panels [n / PRODUCT_COLUMNS][k][PRODUCT_COLUMNS], the last filled up
 * with zeros, for product_some_columns: those from row j on, a multiple of PRODUCT_COLUMNS, begin at turned + j k.
 * product_turned_reals: room for it. */
size_t product_turned_reals(int n, int k);
void product_turn(int n, int k, const real *b, int ldb, real *turned);

/* Columns [from, to) of each block's rows of C[m][n] = alpha A[m][k] B^T; from is a multiple of PRODUCT_COLUMNS, and to
 * is rounded up to one: C's rows have room for that, and what is written past n means nothing. */
void product_some_columns(int m, int k, real alpha, const real *a, size_t a_row, const real *turned,
			  const struct span *columns, real *c, int ldc);

/* C[m][n] += alpha A B, where each block's rows of A are 0 outside of p in [from, to). */
void product_some_terms(int m, int n, real alpha, const real *a, size_t a_row, size_t a_column, const real *b, int ldb,
			const struct span *terms, real *c, int ldc);

#endif
