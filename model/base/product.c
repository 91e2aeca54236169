#include "product.h"

#include "err.h"

#include <string.h>

/* A block of C is held in registers: rows of two vectors. Six rows make twelve sums, which with two vectors of B and
 * one element of A fill the sixteen registers of AVX2; AVX-512 has twice as many. */
#define LANES ((int)(ROPEWALK_VECTOR_BYTES / sizeof(real)))
typedef real vector __attribute__((vector_size(ROPEWALK_VECTOR_BYTES)));

/* Terms of a sum taken together, and columns of panels of that depth: what stays in the second-level cache. COLUMNS is
 * a multiple of PRODUCT_COLUMNS. */
#define DEPTH 256
#define COLUMNS 192

#define INLINE static inline __attribute__((always_inline))

bool product_weight_suits(int n)
{
#if (defined __AVX2__ && defined __FMA__ && !defined __AVX512F__) || defined __ARM_NEON
	return n >= PRODUCT_COLUMNS;
#else
	(void)n;
	return false;
#endif
}

INLINE vector load(const real *x)
{
	vector v;
	memcpy(&v, x, sizeof v);
	return v;
}

INLINE void store(real *x, vector sum, real alpha, bool add, const real *plus)
{
	vector v = add ? load(plus) + alpha * sum : alpha * sum;
	memcpy(x, &v, sizeof v);
}

/* The first factor, and what its product is multiplied by. */
struct left {
	real alpha;
	const real *a;
	size_t row, column;
};

/* The second: columns j .. j + PRODUCT_COLUMNS - 1 begin at b + j panel, their rows are `row` apart. */
struct right {
	const real *b;
	size_t row, panel;
};

/* Adds to `plus`, laid out as C is, or C itself.
 * `rows` and `add` are constants where this is inlined: so the sums stay in registers, and scaling and adding are one
 * operation (contracted) in every copy of this code, which an element's bits must not depend on. */
INLINE void block(int rows, int k, const struct left *l, const real *b, size_t ldb, bool add,
		  const real *plus, real *c, size_t ldc)
{
	vector sum[PRODUCT_ROWS][2] = { 0 };
	const real *a = l->a;
	size_t row = l->row, column = l->column;
	for (int p = 0; p < k; p++, a += column, b += ldb) {
		vector left = load(b), right = load(b + LANES);
		for (int i = 0; i < rows; i++) {
			real x = a[(size_t)i * row];
			sum[i][0] += x * left;
			sum[i][1] += x * right;
		}
	}
	for (int i = 0; i < rows; i++) {
		size_t at = (size_t)i * ldc;
		store(c + at, sum[i][0], l->alpha, add, plus + at);
		store(c + at + LANES, sum[i][1], l->alpha, add, plus + at + LANES);
	}
}

INLINE void strip(int rows, struct span columns, int k, const struct left *l, const struct right *r, bool add,
		  const real *plus, real *c, size_t ldc)
{
	for (int j = columns.from; j < columns.to; j += PRODUCT_COLUMNS)
		/* cppcheck-suppress nullPointerArithmetic ; `plus` is NULL only without `add` */
		block(rows, k, l, r->b + (size_t)j * r->panel, r->row, add, add ? plus + j : c, c + j, ldc);
}

/* Blocks of columns [from, to) of some rows of C, to rounded up to whole blocks; `plus` NULL adds to 0. */
static void block_rows(int rows, struct span columns, int k, const struct left *l, const struct right *r,
		       const real *plus, real *c, size_t ldc)
{
#define CASE(count)                                                           \
	case count:                                                           \
		if (plus)                                                     \
			strip(count, columns, k, l, r, true, plus, c, ldc);   \
		else                                                          \
			strip(count, columns, k, l, r, false, NULL, c, ldc);  \
		break;
	switch (rows) {
		CASE(1)
		CASE(2)
		CASE(3)
		CASE(4)
		CASE(5)
		CASE(6)
#if ROPEWALK_VECTOR_BYTES == 64
		CASE(7)
		CASE(8)
		CASE(9)
		CASE(10)
		CASE(11)
		CASE(12)
#endif
	}
#undef CASE
}

/* The same for fewer columns of C than a block has: a whole block, of which they are taken. */
static void block_columns(int rows, int columns, int k, const struct left *l, const struct right *r, const real *plus,
			  real *c, size_t ldc)
{
	real out[PRODUCT_ROWS * PRODUCT_COLUMNS] = { 0 };
	for (int i = 0; plus && i < rows; i++)
		memcpy(out + i * PRODUCT_COLUMNS, plus + (size_t)i * ldc, (size_t)columns * sizeof *c);
	block_rows(rows, (struct span){ 0, columns }, k, l, r, plus ? out : NULL, out, (size_t)PRODUCT_COLUMNS);
	for (int i = 0; i < rows; i++)
		memcpy(c + (size_t)i * ldc, out + i * PRODUCT_COLUMNS, (size_t)columns * sizeof *c);
}

static struct left below(struct left l, int i)
{
	l.a += (size_t)i * l.row;
	return l;
}

static const real *below_plus(const real *plus, size_t at)
{
	return plus ? plus + at : NULL;
}

static int rows_at(int m, int i)
{
	return m - i < PRODUCT_ROWS ? m - i : PRODUCT_ROWS;
}

/* Columns that do not fill a block: B's are copied beside zeros. */
static void last_columns(int m, int n, int k, struct left l, const real *b, size_t ldb, const real *plus, real *c,
			 size_t ldc)
{
	real wide[DEPTH * PRODUCT_COLUMNS];
	struct right r = { .b = wide, .row = (size_t)PRODUCT_COLUMNS };
	memset(wide, 0, (size_t)(k * PRODUCT_COLUMNS) * sizeof *wide);
	for (int p = 0; p < k; p++)
		memcpy(wide + p * PRODUCT_COLUMNS, b + (size_t)p * ldb, (size_t)n * sizeof *b);
	for (int i = 0; i < m; i += PRODUCT_ROWS) {
		struct left rows = below(l, i);
		block_columns(rows_at(m, i), n, k, &rows, &r, below_plus(plus, (size_t)i * ldc), c + (size_t)i * ldc,
			      ldc);
	}
}

#define SQUARE ((int)(16 / sizeof(real)))
typedef real narrow __attribute__((vector_size(16)));

INLINE narrow zip_low(narrow x, narrow y)
{
#ifdef ROPEWALK_DOUBLE
	return (narrow){ x[0], y[0] };
#else
	return (narrow){ x[0], y[0], x[1], y[1] };
#endif
}

INLINE narrow zip_high(narrow x, narrow y)
{
#ifdef ROPEWALK_DOUBLE
	return (narrow){ x[1], y[1] };
#else
	return (narrow){ x[2], y[2], x[3], y[3] };
#endif
}

/* Turns a square over in registers: the first half of the rows zipped with the second, as often as halves can be
 * made. */
INLINE void turn_square(const real *from, size_t from_stride, real *to)
{
	narrow row[SQUARE], zipped[SQUARE];
	for (int i = 0; i < SQUARE; i++)
		memcpy(&row[i], from + (size_t)i * from_stride, sizeof row[i]);
	for (int width = 1; width < SQUARE; width *= 2) {
		for (int i = 0; i < SQUARE / 2; i++) {
			zipped[2 * i] = zip_low(row[i], row[i + SQUARE / 2]);
			zipped[2 * i + 1] = zip_high(row[i], row[i + SQUARE / 2]);
		}
		memcpy(row, zipped, sizeof row);
	}
	for (int i = 0; i < SQUARE; i++)
		memcpy(to + i * PRODUCT_COLUMNS, &row[i], sizeof row[i]);
}

size_t product_turned_reals(int n, int k)
{
	return (size_t)((n + PRODUCT_COLUMNS - 1) / PRODUCT_COLUMNS * PRODUCT_COLUMNS) * (size_t)k;
}

void product_turn(int n, int k, const real *b, int ldb, real *panel)
{
	int whole = k / SQUARE * SQUARE;
	for (int j = 0; j < n; j += PRODUCT_COLUMNS, panel += k * PRODUCT_COLUMNS) {
		int columns = n - j < PRODUCT_COLUMNS ? n - j : PRODUCT_COLUMNS, squares = columns / SQUARE * SQUARE;
		const real *from = b + (size_t)j * (size_t)ldb;
		if (columns < PRODUCT_COLUMNS)
			memset(panel, 0, (size_t)(k * PRODUCT_COLUMNS) * sizeof *panel);
		for (int p = 0; p < whole; p += SQUARE)
			for (int c = 0; c < squares; c += SQUARE)
				turn_square(from + (size_t)c * (size_t)ldb + p, (size_t)ldb,
					    panel + p * PRODUCT_COLUMNS + c);
		for (int c = 0; c < columns; c++)
			for (int p = c < squares ? whole : 0; p < k; p++)
				panel[p * PRODUCT_COLUMNS + c] = from[(size_t)c * (size_t)ldb + (size_t)p];
	}
}

static struct right panels_of(const real *turned, int k)
{
	return (struct right){ .b = turned, .row = (size_t)PRODUCT_COLUMNS, .panel = (size_t)k };
}

/* Up to DEPTH terms. */
static void shallow(int m, int n, int k, struct left l, const real *turned, const real *plus, real *c, size_t ldc)
{
	struct span whole = { 0, n / PRODUCT_COLUMNS * PRODUCT_COLUMNS };
	struct right r = panels_of(turned, k), last = panels_of(turned + (size_t)whole.to * (size_t)k, k);
	for (int i = 0; i < m; i += PRODUCT_ROWS) {
		struct left rows = below(l, i);
		size_t at = (size_t)i * ldc;
		block_rows(rows_at(m, i), whole, k, &rows, &r, below_plus(plus, at), c + at, ldc);
		at += (size_t)whole.to;
		if (whole.to < n)
			block_columns(rows_at(m, i), n - whole.to, k, &rows, &last, below_plus(plus, at), c + at, ldc);
	}
}

/* B[k][n] in the panels that product_turn makes of B^T. */
static void pack(int n, int k, const real *b, int ldb, real *panel)
{
	for (int j = 0; j < n; j += PRODUCT_COLUMNS, panel += k * PRODUCT_COLUMNS) {
		int columns = n - j < PRODUCT_COLUMNS ? n - j : PRODUCT_COLUMNS;
		if (columns < PRODUCT_COLUMNS)
			memset(panel, 0, (size_t)(k * PRODUCT_COLUMNS) * sizeof *panel);
		for (int p = 0; p < k; p++)
			memcpy(panel + p * PRODUCT_COLUMNS, b + (size_t)p * (size_t)ldb + j,
			       (size_t)columns * sizeof *b);
	}
}

/* Panels of DEPTH terms, one lot behind the other; the next term of B is `step` away. */
static void make_panels(void (*make)(int n, int k, const real *b, int ldb, real *panels), int n, int k, const real *b,
			int ldb, size_t step, real *panels)
{
	for (int p = 0; p < k; p += DEPTH) {
		int depth = k - p < DEPTH ? k - p : DEPTH;
		make(n, depth, b + (size_t)p * step, ldb, panels);
		panels += product_turned_reals(n, depth);
	}
}

void product_turn_weight(int n, int k, const real *b, int ldb, real *panels)
{
	make_panels(product_turn, n, k, b, ldb, 1, panels);
}

void product_pack_weight(int n, int k, const real *b, int ldb, real *panels)
{
	make_panels(pack, n, k, b, ldb, (size_t)ldb, panels);
}

void product_weight(int m, int n, int k, real alpha, const real *a, size_t a_row, const real *panels, const real *plus,
		    real *c, int ldc)
{
	int p = 0;
	/* At least once: an empty sum is 0, not what C held. */
	do {
		int depth = k - p < DEPTH ? k - p : DEPTH;
		struct left l = { alpha, a + p, a_row, 1 };
		const real *to = p > 0 ? c : plus;
		for (int j = 0; j < n; j += COLUMNS) {
			int columns = n - j < COLUMNS ? n - j : COLUMNS;
			shallow(m, columns, depth, l, panels + (size_t)j * (size_t)depth, below_plus(to, (size_t)j),
				c + j, (size_t)ldc);
		}
		panels += product_turned_reals(n, depth);
		p += DEPTH;
	} while (p < k);
}

void product_some_columns(int m, int k, real alpha, const real *a, size_t a_row, const real *turned,
			  const struct span *columns, real *c, int ldc)
{
	struct right r = panels_of(turned, k);
	for (int i = 0; i < m; i += PRODUCT_ROWS) {
		struct left rows = below((struct left){ alpha, a, a_row, 1 }, i);
		block_rows(rows_at(m, i), columns[i / PRODUCT_ROWS], k, &rows, &r, NULL, c + (size_t)i * (size_t)ldc,
			   (size_t)ldc);
	}
}

/* A block's rows of C for its terms. Sums are cut where they are cut for every block. */
static void some_terms(int rows, int n, struct span terms, struct left l, const real *b, size_t ldb, real *c,
		       size_t ldc)
{
	const real *a = l.a;
	struct span whole = { 0, n / PRODUCT_COLUMNS * PRODUCT_COLUMNS };
	for (int p = terms.from, end; p < terms.to; p = end) {
		struct right r = { .b = b + (size_t)p * ldb, .row = ldb, .panel = 1 };
		end = (p / DEPTH + 1) * DEPTH < terms.to ? (p / DEPTH + 1) * DEPTH : terms.to;
		l.a = a + (size_t)p * l.column;
		block_rows(rows, whole, end - p, &l, &r, c, c, ldc);
		if (whole.to < n)
			last_columns(rows, n - whole.to, end - p, l, r.b + whole.to, ldb, c + whole.to, c + whole.to,
				     ldc);
	}
}

void product_some_terms(int m, int n, real alpha, const real *a, size_t a_row, size_t a_column, const real *b, int ldb,
			const struct span *terms, real *c, int ldc)
{
	struct left l = { alpha, a, a_row, a_column };
	for (int i = 0; i < m; i += PRODUCT_ROWS)
		some_terms(rows_at(m, i), n, terms[i / PRODUCT_ROWS], below(l, i), b, (size_t)ldb,
			   c + (size_t)i * (size_t)ldc, (size_t)ldc);
}
