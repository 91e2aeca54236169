#ifndef ROPEWALK_BLAS_H
#define ROPEWALK_BLAS_H

#include "err.h"
#include "real.h"

#include <stdbool.h>
#include <stddef.h>

/* Matrix products: OpenBLAS behind one file. Row-major; ld* are reals from one row to the next. Each call runs on one
 * thread and must come from inside a parallel region (threads_each): the same bits for any number of threads. */

/* C[m][n] = alpha A[m][k] B[n][k]^T + beta C; with beta = 0 the old C is not read. */
void gemm_nt(int m, int n, int k, real alpha, const real *a, int lda, const real *b, int ldb, real beta, real *c,
	     int ldc);
/* C[m][n] = alpha A[m][k] B[k][n] + beta C */
void gemm_nn(int m, int n, int k, real alpha, const real *a, int lda, const real *b, int ldb, real beta, real *c,
	     int ldc);
/* C[m][n] = alpha A[k][m]^T B[k][n] + beta C */
void gemm_tn(int m, int n, int k, real alpha, const real *a, int lda, const real *b, int ldb, real beta, real *c,
	     int ldc);

/* Whose products with weights are used: our own (product.h) where they are faster, or the library's. The bits may
 * differ. Not inside a parallel region. */
enum blas_products { PRODUCTS_OWN, PRODUCTS_LIBRARY };
void blas_use(enum blas_products products);

/* Are products by a shared factor of n columns our own (product_weight)? */
bool blas_own_weight(int n);

/* The library's product as any caller of it would have it, C = op(A) op(B) + beta C: what a benchmark compares with. */
enum blas_kind { BLAS_NT, BLAS_NN, BLAS_TN };
void blas_library(enum blas_kind kind, int m, int n, int k, const real *a, int lda, const real *b, int ldb, real beta,
		  real *c, int ldc);

/* Sets BLAS to one thread, then starts ours (threads_start), in that order, and checks every kind of product above on
 * sizes with and without remainders against plain loops: some builds compute wrong results on some processors. Under a
 * limit on address space that does not leave what the threads and the library take there is an error: the one would end
 * the process, the other would ask for ever. What they take later is promised (memory_promise). */
struct err blas_start(int threads);

/* Bytes of address space that the library takes for threads of its own while it loads; may be called before it has.
 * Its variables in the environment, or NULL: OPENBLAS_NUM_THREADS, OMP_NUM_THREADS. */
size_t blas_loading_bytes(const char *openblas_threads, const char *omp_threads);

/* The kernels that OPENBLAS_CORETYPE should name, where the library does not know this processor and took those that
 * any can run, without AVX: "Haswell" (AVX2), "SkylakeX" (AVX-512). NULL where it knows it, and as long as the library
 * is not initialised. */
const char *blas_core_wanted(void);

/* What computes here, for records: library and version, processor core the kernels are made for, threading flavour, and
 * whose products are used ("own", "library"). */
struct blas_report {
	char library[48], core[48], flavour[16], products[16];
};
struct blas_report blas_report(void);

#endif
