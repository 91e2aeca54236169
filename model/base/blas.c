#include "blas.h"

#include "product.h"
#include "threads.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef ROPEWALK_DOUBLE
#define GEMM cblas_dgemm
#define SELF_TEST_TOLERANCE 1e-13
#else
#define GEMM cblas_sgemm
#define SELF_TEST_TOLERANCE 2e-5
#endif

/* The library's own clearing of C takes longer than this and the product that then adds. */
static real clear(int m, int n, real beta, real *c, int ldc)
{
	if (beta != 0)
		return beta;
	for (int i = 0; i < m; i++)
		memset(c + (size_t)i * (size_t)ldc, 0, (size_t)n * sizeof *c);
	return 1;
}

/* beta is 0 or 1 wherever the model multiplies; other values are the library's. */
static bool small(int m, int n, int k, real beta)
{
	return (beta == 0 || beta == 1) && product_suits(m, n, k);
}

void gemm_nt(int m, int n, int k, real alpha, const real *a, int lda, const real *b, int ldb, real beta, real *c,
	     int ldc)
{
	if (small(m, n, k, beta)) {
		product_transposed(m, n, k, alpha, a, (size_t)lda, b, ldb, beta != 0, c, ldc);
		return;
	}
	beta = clear(m, n, beta, c, ldc);
	GEMM(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void gemm_nn(int m, int n, int k, real alpha, const real *a, int lda, const real *b, int ldb, real beta, real *c,
	     int ldc)
{
	if (small(m, n, k, beta)) {
		product(m, n, k, alpha, a, (size_t)lda, 1, b, ldb, beta != 0, c, ldc);
		return;
	}
	beta = clear(m, n, beta, c, ldc);
	GEMM(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void gemm_tn(int m, int n, int k, real alpha, const real *a, int lda, const real *b, int ldb, real beta, real *c,
	     int ldc)
{
	if (small(m, n, k, beta)) {
		product(m, n, k, alpha, a, 1, (size_t)lda, b, ldb, beta != 0, c, ldc);
		return;
	}
	beta = clear(m, n, beta, c, ldc);
	GEMM(CblasRowMajor, CblasTrans, CblasNoTrans, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

struct blas_report blas_report(void)
{
	static const char *const flavours[] = { "serial", "pthread", "openmp" };
	struct blas_report r;
	char version[32] = "";
	sscanf(openblas_get_config(), "OpenBLAS %31s", version);
	snprintf(r.library, sizeof r.library, "OpenBLAS %s", version);
	snprintf(r.core, sizeof r.core, "%s", openblas_get_corename());
	int parallel = openblas_get_parallel();
	snprintf(r.flavour, sizeof r.flavour, "%s", parallel >= 0 && parallel < 3 ? flavours[parallel] : "unknown");
	return r;
}

enum { NT, NN, TN };
static const char *const product_name[] = { "A B^T", "A B", "A^T B" };

struct self_test {
	double worst[3];
};

/* Deterministic values in (-1, 1) with no pattern that hides a transposition. */
static void fill(real *x, int n, unsigned seed)
{
	for (int i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		x[i] = (real)((double)(seed >> 8) / 8388608.0 - 1.0);
	}
}

/* Greatest error of one product with C = 0.5 op(A) op(B) + beta C, relative to sqrt(k). The rows have gaps, and with
 * beta = 0 the old C is NaN, which must not shine through. */
static double product_error(int kind, int m, int n, int k, real beta)
{
	enum { ROOM = 160 * 160 };
	static _Thread_local real a[ROOM], b[ROOM], c[ROOM];
	int lda = (kind == TN ? m : k) + 3, ldb = (kind == NT ? k : n) + 1, ldc = n + 2;
	fill(a, ROOM, 1u + (unsigned)m);
	fill(b, ROOM, 7u + (unsigned)n);
	for (int i = 0; i < m * ldc; i++)
		c[i] = beta == 0 ? (real)NAN : (real)0.25;
	(kind == NT ? gemm_nt : kind == NN ? gemm_nn : gemm_tn)(m, n, k, (real)0.5, a, lda, b, ldb, beta, c, ldc);
	double worst = 0;
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			double sum = 0;
			for (int p = 0; p < k; p++)
				sum += (double)a[kind == TN ? p * lda + i : i * lda + p] *
				       (double)b[kind == NT ? j * ldb + p : p * ldb + j];
			double error = fabs((double)c[i * ldc + j] - 0.5 * sum - 0.25 * (double)beta) / sqrt(k);
			if (!(error <= worst))
				worst = error;
		}
	return worst;
}

static void self_test_one(int kind, int thread, void *data)
{
	static const int size[][3] = { { 1, 1, 1 },    { 7, 5, 3 },    { 16, 16, 16 }, { 33, 17, 64 },
				       { 64, 99, 65 }, { 64, 64, 32 }, { 3, 128, 64 },  { 129, 130, 67 } };
	struct self_test *t = data;
	(void)thread;
	for (int i = 0; i < (int)(sizeof size / sizeof size[0]); i++)
		for (int beta = 0; beta < 2; beta++) {
			double error = product_error(kind, size[i][0], size[i][1], size[i][2], (real)beta);
			if (!(error <= t->worst[kind]))
				t->worst[kind] = error;
		}
}

struct err blas_start(int threads)
{
	openblas_set_num_threads(1);
	threads_start(threads);
	struct self_test t = { .worst = { 0 } };
	threads_each(3, self_test_one, &t);
	for (int kind = 0; kind < 3; kind++)
		if (!(t.worst[kind] <= SELF_TEST_TOLERANCE)) {
			struct blas_report r = blas_report();
			return err_failed("This build of the library is wrong on this processor: choose other kernels, "
					  "as with OPENBLAS_CORETYPE=Haswell in the environment, or install a newer one.",
					  "%s (core %s): the product %s is off by %.2g in the start-up self-test",
					  r.library, r.core, product_name[kind], t.worst[kind]);
		}
	return OK;
}
