#include "blas.h"

#include "memory.h"
#include "product.h"
#include "threads.h"

#include <cblas.h>
#include <math.h>
#include <stdint.h>
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

static enum blas_products products_ = PRODUCTS_OWN;

void blas_use(enum blas_products products)
{
	products_ = products;
}

static void library(enum blas_kind kind, int m, int n, int k, real alpha, const real *a, int lda, const real *b,
		    int ldb, real beta, real *c, int ldc)
{
	const CBLAS_TRANSPOSE left = kind == BLAS_TN ? CblasTrans : CblasNoTrans;
	const CBLAS_TRANSPOSE right = kind == BLAS_NT ? CblasTrans : CblasNoTrans;
	GEMM(CblasRowMajor, left, right, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void blas_library(enum blas_kind kind, int m, int n, int k, const real *a, int lda, const real *b, int ldb, real beta,
		  real *c, int ldc)
{
	library(kind, m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
}

bool blas_own_weight(int n)
{
	return products_ == PRODUCTS_OWN && product_weight_suits(n);
}

/* The library's own clearing of C takes longer than doing so here and letting it add. */
static void multiply(enum blas_kind kind, int m, int n, int k, real alpha, const real *a, int lda, const real *b,
		     int ldb, real beta, real *c, int ldc)
{
	for (int i = 0; beta == 0 && i < m; i++)
		memset(c + (size_t)i * (size_t)ldc, 0, (size_t)n * sizeof *c);
	library(kind, m, n, k, alpha, a, lda, b, ldb, beta == 0 ? 1 : beta, c, ldc);
}

void gemm_nt(int m, int n, int k, real alpha, const real *a, int lda, const real *b, int ldb, real beta, real *c,
	     int ldc)
{
	multiply(BLAS_NT, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void gemm_nn(int m, int n, int k, real alpha, const real *a, int lda, const real *b, int ldb, real beta, real *c,
	     int ldc)
{
	multiply(BLAS_NN, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void gemm_tn(int m, int n, int k, real alpha, const real *a, int lda, const real *b, int ldb, real beta, real *c,
	     int ldc)
{
	multiply(BLAS_TN, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
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
	snprintf(r.products, sizeof r.products, "%s", products_ == PRODUCTS_OWN ? "own" : "library");
	return r;
}

const char *blas_core_wanted(void)
{
#ifdef __x86_64__
	/* All processors with AVX2 are newer than Prescott. */
	if (strcmp(openblas_get_corename(), "Prescott") || !__builtin_cpu_supports("avx2") ||
	    !__builtin_cpu_supports("fma"))
		return NULL;
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
			       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
			       __builtin_cpu_supports("avx512vl") ?
		       "SkylakeX" :
		       "Haswell";
#else
	return NULL;
#endif
}

static const char *const product_name[] = { "A B^T", "A B", "A^T B" };

enum { KINDS = 3, SOURCES = 2, SELF_TEST_SIDE = 160, SELF_TEST_ROOM = SELF_TEST_SIDE * SELF_TEST_SIDE };

/* Our own products of these kinds: with a weight, and of some terms, here all. beta is 0 or 1. */
static void own(enum blas_kind kind, int m, int n, int k, real alpha, const real *a, int lda, const real *b, int ldb,
		real beta, real *c, int ldc)
{
	static _Thread_local real panels[SELF_TEST_ROOM];
	struct span terms[SELF_TEST_SIDE];
	if (kind != BLAS_TN) {
		(kind == BLAS_NT ? product_turn_weight : product_pack_weight)(n, k, b, ldb, panels);
		product_weight(m, n, k, alpha, a, (size_t)lda, panels, beta == 0 ? NULL : c, c, ldc);
		return;
	}
	for (int i = 0; i < m; i++) {
		terms[i] = (struct span){ 0, k };
		memset(c + (size_t)i * (size_t)ldc, 0, beta == 0 ? (size_t)n * sizeof *c : 0);
	}
	product_some_terms(m, n, alpha, a, 1, (size_t)lda, b, ldb, terms, c, ldc);
}

typedef void product_of(enum blas_kind kind, int m, int n, int k, real alpha, const real *a, int lda, const real *b,
			int ldb, real beta, real *c, int ldc);
static product_of *const source[SOURCES] = { multiply, own };

struct self_test {
	double worst[SOURCES * KINDS];
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
static double product_error(int which, enum blas_kind kind, int m, int n, int k, real beta)
{
	static _Thread_local real a[SELF_TEST_ROOM], b[SELF_TEST_ROOM], c[SELF_TEST_ROOM];
	int lda = (kind == BLAS_TN ? m : k) + 3, ldb = (kind == BLAS_NT ? k : n) + 1, ldc = n + 2;
	fill(a, SELF_TEST_ROOM, 1u + (unsigned)m);
	fill(b, SELF_TEST_ROOM, 7u + (unsigned)n);
	for (int i = 0; i < m * ldc; i++)
		c[i] = beta == 0 ? (real)NAN : (real)0.25;
	source[which](kind, m, n, k, (real)0.5, a, lda, b, ldb, beta, c, ldc);
	double worst = 0;
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			double sum = 0;
			for (int p = 0; p < k; p++)
				sum += (double)a[kind == BLAS_TN ? p * lda + i : i * lda + p] *
				       (double)b[kind == BLAS_NT ? j * ldb + p : p * ldb + j];
			double error = fabs((double)c[i * ldc + j] - 0.5 * sum - 0.25 * (double)beta) / sqrt(k);
			if (!(error <= worst))
				worst = error;
		}
	return worst;
}

static void self_test_one(int test, int thread, void *data)
{
	static const int size[][3] = { { 1, 1, 1 },    { 7, 5, 3 },    { 16, 16, 16 }, { 33, 17, 64 },
				       { 64, 99, 65 }, { 64, 64, 32 }, { 3, 128, 64 },  { 129, 130, 67 } };
	struct self_test *t = data;
	(void)thread;
	for (int i = 0; i < (int)(sizeof size / sizeof size[0]); i++)
		for (int beta = 0; beta < 2; beta++) {
			enum blas_kind kind = (enum blas_kind)(test % KINDS);
			double error = product_error(test / KINDS, kind, size[i][0], size[i][1], size[i][2],
						     (real)beta);
			if (!(error <= t->worst[test]))
				t->worst[test] = error;
		}
}

static struct err self_test_failed(int test, double error)
{
	struct blas_report r = blas_report();
	if (test >= KINDS)
		return err_failed(
			"The compiler made wrong code for this processor: build with another ARCH, as ARCH=x86-64-v3.",
			"the product %s is off by %.2g in the start-up self-test", product_name[test % KINDS], error);
	return err_failed("This build of the library is wrong on this processor: choose other kernels, as with "
			  "OPENBLAS_CORETYPE=Haswell in the environment, or install a newer one.",
			  "%s (core %s): the product %s is off by %.2g in the start-up self-test", r.library, r.core,
			  product_name[test], error);
}

/* What the library maps for a thread that multiplies, and keeps: the most there is among the processors it knows. */
#define BUFFER ((size_t)128 << 20)

enum { SERIAL, PTHREAD, OPENMP };

/* Threads that the library counts on while it loads. */
static int loading_threads(const char *openblas_threads, const char *omp_threads)
{
	const char *text = openblas_get_parallel() == PTHREAD && openblas_threads ? openblas_threads : omp_threads;
	long given = text ? strtol(text, NULL, 10) : 0;
	int most = openblas_get_num_procs();
	return given > 0 && given < most ? (int)given : most;
}

size_t blas_loading_bytes(const char *openblas_threads, const char *omp_threads)
{
	size_t threads = (size_t)loading_threads(openblas_threads, omp_threads);
	switch (openblas_get_parallel()) {
	case PTHREAD: return (threads - 1) * (BUFFER + threads_stack());
	case OPENMP: return threads * BUFFER;
	default: return 0;
	}
}

static struct err space_suffices(size_t need)
{
	size_t allowed = memory_allowed();
	int threads = threads_count();
	char wanted[32], left[32], hint[160];
	if (need <= allowed)
		return OK;
	snprintf(hint, sizeof hint, "Raise the limit%s.", threads > 1 ? ", or take fewer --threads" : "");
	return err_failed(hint, "%d thread%s of matrix products need%s %s of memory, and the limit on address space or "
			  "data (ulimit -v, -d) leaves %s", threads, threads > 1 ? "s" : "", threads > 1 ? "" : "s",
			  memory_text(need, wanted), memory_text(allowed, left));
}

/* The library's own, which not every build shows. */
extern void *blas_memory_alloc(int unused) __attribute__((weak));
extern void blas_memory_free(void *buffer) __attribute__((weak));
enum { POOL = 64 };

/* Has the library map its buffers now, so that what is left is known; false where it must be left to do so later. */
static bool map_buffers(int count)
{
	void *buffer[POOL];
	if (!blas_memory_alloc || !blas_memory_free || count > POOL)
		return false;
	for (int i = 0; i < count; i++)
		buffer[i] = blas_memory_alloc(0);
	for (int i = 0; i < count; i++)
		blas_memory_free(buffer[i]);
	return true;
}

static void nothing(int index, int thread, void *data)
{
	(void)index, (void)thread, (void)data;
}

/* Starts the threads under a limit on address space, where it has room for them and for the library. The openmp flavour
 * has mapped its buffers while it was loaded, and keeps one for itself. */
static struct err start_limited(void)
{
	static int threads = 1, buffers = -1;
	int count = threads_count();
	if (buffers < 0)
		buffers = openblas_get_parallel() == OPENMP ? loading_threads(NULL, getenv("OMP_NUM_THREADS")) - 1 : 0;
	size_t more_buffers = count > buffers ? (size_t)(count - buffers) : 0;
	size_t more_threads = count > threads ? (size_t)(count - threads) : 0;
	TRY(space_suffices(more_buffers * BUFFER + more_threads * threads_stack()));
	memory_promise(map_buffers(count) ? 0 : more_buffers * BUFFER);
	buffers = count > buffers ? count : buffers;
	threads = count;
	threads_each(count, nothing, NULL);
	return OK;
}

struct err blas_start(int threads)
{
	static bool passed; /* by this process, whose kernels stay */
	openblas_set_num_threads(1);
	threads_start(threads);
	if (memory_allowed() < SIZE_MAX)
		TRY(start_limited());
	if (passed)
		return OK;
	struct self_test t = { .worst = { 0 } };
	threads_each(SOURCES * KINDS, self_test_one, &t);
	for (int test = 0; test < SOURCES * KINDS; test++)
		if (!(t.worst[test] <= SELF_TEST_TOLERANCE))
			return self_test_failed(test, t.worst[test]);
	passed = true;
	return OK;
}
