#include "product.h"

#include "err.h"

#include <string.h>

/* A block of C is held in registers: BLOCK_ROWS rows of two vectors. Twelve sums, two vectors of B and one element of A
 * fill the sixteen registers of AVX2. */
#if defined __SSE2__ && !defined __AVX__
#define VECTOR_BYTES 16
#else
#define VECTOR_BYTES 32
#endif
#define LANES ((int)(VECTOR_BYTES / sizeof(real)))
#define BLOCK_ROWS 6
#define BLOCK_COLUMNS (2 * LANES)
typedef real vector __attribute__((vector_size(VECTOR_BYTES)));

/* Rows of B taken at a time, and the most reals of B that stay in the second-level cache beside the rest. */
#define DEPTH 256
#define RESIDENT 65536

#define INLINE static inline __attribute__((always_inline))

static bool resident(int n, int k)
{
	return (size_t)n * (size_t)(k < DEPTH ? k : DEPTH) <= RESIDENT;
}

bool product_suits(int m, int n, int k)
{
#if (defined __AVX2__ && defined __FMA__) || defined __ARM_NEON
	return m >= 4 && n >= BLOCK_COLUMNS && resident(n, k);
#else
	(void)m, (void)n, (void)k;
	return false;
#endif
}

INLINE vector load(const real *x)
{
	vector v;
	memcpy(&v, x, sizeof v);
	return v;
}

INLINE void store(real *x, vector sum, real alpha, bool add)
{
	vector v = add ? load(x) + alpha * sum : alpha * sum;
	memcpy(x, &v, sizeof v);
}

/* `rows` and `add` are constants where this is inlined: so the sums stay in registers, and scaling and adding are one
 * operation (contracted) in every copy of this code, which an element's bits must not depend on. */
INLINE void block(int rows, int k, real alpha, const real *a, size_t a_row, size_t a_column, const real *b, size_t ldb,
		  bool add, real *c, size_t ldc)
{
	vector sum[BLOCK_ROWS][2] = { 0 };
	for (int p = 0; p < k; p++, a += a_column, b += ldb) {
		vector left = load(b), right = load(b + LANES);
		for (int i = 0; i < rows; i++) {
			real x = a[(size_t)i * a_row];
			sum[i][0] += x * left;
			sum[i][1] += x * right;
		}
	}
	for (int i = 0; i < rows; i++) {
		store(c + (size_t)i * ldc, sum[i][0], alpha, add);
		store(c + (size_t)i * ldc + LANES, sum[i][1], alpha, add);
	}
}

static void block_rows(int rows, int k, real alpha, const real *a, size_t a_row, size_t a_column, const real *b,
		       size_t ldb, bool add, real *c, size_t ldc)
{
#define CASE(count)                                                                            \
	case count:                                                                            \
		if (add)                                                                       \
			block(count, k, alpha, a, a_row, a_column, b, ldb, true, c, ldc);      \
		else                                                                           \
			block(count, k, alpha, a, a_row, a_column, b, ldb, false, c, ldc);     \
		break;
	switch (rows) {
		CASE(1)
		CASE(2)
		CASE(3)
		CASE(4)
		CASE(5)
		CASE(6)
	}
#undef CASE
}

/* Columns that do not fill a block: B's are copied beside zeros, and C's taken out of a full block. */
static void last_columns(int m, int n, int k, real alpha, const real *a, size_t a_row, size_t a_column, const real *b,
			 size_t ldb, bool add, real *c, size_t ldc)
{
	real wide[DEPTH * BLOCK_COLUMNS], out[BLOCK_ROWS * BLOCK_COLUMNS] = { 0 };
	memset(wide, 0, (size_t)k * BLOCK_COLUMNS * sizeof *wide);
	for (int p = 0; p < k; p++)
		memcpy(wide + p * BLOCK_COLUMNS, b + (size_t)p * ldb, (size_t)n * sizeof *b);
	for (int i = 0; i < m; i += BLOCK_ROWS) {
		int rows = m - i < BLOCK_ROWS ? m - i : BLOCK_ROWS;
		for (int r = 0; add && r < rows; r++)
			memcpy(out + r * BLOCK_COLUMNS, c + (size_t)(i + r) * ldc, (size_t)n * sizeof *c);
		block_rows(rows, k, alpha, a + (size_t)i * a_row, a_row, a_column, wide, BLOCK_COLUMNS, add, out,
			   BLOCK_COLUMNS);
		for (int r = 0; r < rows; r++)
			memcpy(c + (size_t)(i + r) * ldc, out + r * BLOCK_COLUMNS, (size_t)n * sizeof *c);
	}
}

/* Up to DEPTH rows of B. */
static void shallow(int m, int n, int k, real alpha, const real *a, size_t a_row, size_t a_column, const real *b,
		    size_t ldb, bool add, real *c, size_t ldc)
{
	int whole = n / BLOCK_COLUMNS * BLOCK_COLUMNS;
	for (int i = 0; i < m; i += BLOCK_ROWS) {
		int rows = m - i < BLOCK_ROWS ? m - i : BLOCK_ROWS;
		for (int j = 0; j < whole; j += BLOCK_COLUMNS)
			block_rows(rows, k, alpha, a + (size_t)i * a_row, a_row, a_column, b + j, ldb, add,
				   c + (size_t)i * ldc + j, ldc);
	}
	if (whole < n)
		last_columns(m, n - whole, k, alpha, a, a_row, a_column, b + whole, ldb, add, c + whole, ldc);
}

void product(int m, int n, int k, real alpha, const real *a, size_t a_row, size_t a_column, const real *b, int ldb,
	     bool add, real *c, int ldc)
{
	int p = 0;
	/* At least once: an empty sum is 0, not what C held. */
	do {
		shallow(m, n, k - p < DEPTH ? k - p : DEPTH, alpha, a + (size_t)p * a_column, a_row, a_column,
			b + (size_t)p * (size_t)ldb, (size_t)ldb, add || p > 0, c, (size_t)ldc);
		p += DEPTH;
	} while (p < k);
}

/* to[k][n] = from[n][k]^T, a few rows at a time so that both sides stay in the first-level cache. */
static void transpose(int n, int k, const real *from, size_t from_stride, real *to)
{
	enum { TOGETHER = 16 };
	for (int j = 0; j < n; j += TOGETHER) {
		int last = j + TOGETHER < n ? j + TOGETHER : n;
		for (int p = 0; p < k; p++)
			for (int i = j; i < last; i++)
				to[(size_t)p * (size_t)n + (size_t)i] = from[(size_t)i * from_stride + (size_t)p];
	}
}

void product_transposed(int m, int n, int k, real alpha, const real *a, size_t a_row, const real *b, int ldb, bool add,
			real *c, int ldc)
{
	static _Thread_local real turned[RESIDENT];
	BUG_IF(!resident(n, k), "a transposed product with a second factor of %d x %d", n, k);
	int p = 0;
	do {
		int depth = k - p < DEPTH ? k - p : DEPTH;
		transpose(n, depth, b + p, (size_t)ldb, turned);
		shallow(m, n, depth, alpha, a + p, a_row, 1, turned, (size_t)n, add || p > 0, c, (size_t)ldc);
		p += DEPTH;
	} while (p < k);
}
