#include "model/position/relative.h"

#include "model/base/product.h"
#include "model/base/vec.h"
#include "model/position/distance_bias.h"

#include <math.h>
#include <string.h>

/* Rows (by_key: columns) that are worked on together, a multiple of PRODUCT_ROWS, and vectors they meet at most where
 * positions are consecutive, in whole blocks of columns. */
#define TOGETHER 24
#define WIDTH (TILE_COLUMNS + TOGETHER + 40)

size_t relative_reals(int count, int D)
{
	return (size_t)count * (size_t)D + product_turned_reals(count, D);
}

void relative_table(int count, int D, real *vectors)
{
	product_turn(count, D, vectors, D, vectors + (size_t)count * (size_t)D);
}

/* One tile at work; where its distances stand in a line, the index of each. */
struct work {
	const struct place *p;
	const struct tile *t;
	const struct relative *v;
	bool line;
	int at[DISTANCE_LINE];
};

static void work_of(const struct place *p, const struct tile *t, const struct relative *v, struct work *w)
{
	struct distance_line line;
	w->p = p;
	w->t = t;
	w->v = v;
	w->line = distance_line(t, &line);
	for (int i = 0; w->line && i < line.seen; i++)
		w->at[i] = v->index(p, line.greatest - i);
}

/* Some rows of the tile by some of its columns, and the vectors they meet: [first, first + count). */
struct part {
	int row, rows_end, column, columns_end;
	int first, count;
};

/* How many parts a tile has, and one of them. */
static int parts_of(const struct work *w)
{
	return ((w->v->by_key ? w->t->columns : w->t->rows) + TOGETHER - 1) / TOGETHER;
}

static int least(int a, int b)
{
	return a < b ? a : b;
}

static int most(int a, int b)
{
	return a > b ? a : b;
}

/* Columns of the part that row r sees. */
static struct span seen(const struct work *w, const struct part *part, int r)
{
	return (struct span){ most(w->t->low[r], part->column), least(w->t->high[r], part->columns_end) };
}

/* Indices of a row's vectors, by column. */
static const int *indices(const struct work *w, struct span columns, int r, int *buffer)
{
	const struct tile *t = w->t;
	if (w->line)
		return w->at + distance_line_start(t, r);
	for (int j = columns.from; j < columns.to; j++)
		buffer[j] = w->v->index(w->p, t->query_positions[r] - t->key_positions[j]);
	return buffer;
}

/* False if nothing of it is seen. */
static bool part_at(const struct work *w, int index, struct part *part)
{
	int from = index * TOGETHER, low = w->v->count, high = -1, buffer[TILE_COLUMNS];
	*part = (struct part){ 0, w->t->rows, 0, w->t->columns, 0, 0 };
	if (w->v->by_key) {
		part->column = from;
		part->columns_end = least(from + TOGETHER, w->t->columns);
	} else {
		part->row = from;
		part->rows_end = least(from + TOGETHER, w->t->rows);
	}
	for (int r = part->row; r < part->rows_end; r++) {
		struct span columns = seen(w, part, r);
		const int *at = indices(w, columns, r, buffer);
		for (int j = columns.from; j < columns.to; j++) {
			low = least(low, at[j]);
			high = most(high, at[j]);
		}
	}
	part->first = low / PRODUCT_COLUMNS * PRODUCT_COLUMNS;
	part->count = high + 1 - part->first;
	return high >= 0;
}

/* The part's first row of a matrix that has the tile's rows, or by_key its columns; how many; and which an element's
 * is. */
static int first_of(const struct work *w, const struct part *part)
{
	return w->v->by_key ? part->column : part->row;
}

static int rows_of(const struct work *w, const struct part *part)
{
	return w->v->by_key ? part->columns_end - part->column : part->rows_end - part->row;
}

static int row_of(const struct work *w, int r, int j)
{
	return w->v->by_key ? j : r;
}

/* Where an element's product stands among those of its part. */
static int place_in(const struct work *w, const struct part *part, int r, int j, int index)
{
	return (row_of(w, r, j) - first_of(w, part)) * WIDTH + index - part->first;
}

static const real *vector(const struct work *w, int index)
{
	return w->v->vectors + (size_t)index * (size_t)w->t->D;
}

static void each_span(int rows, struct span all, struct span *span)
{
	for (int i = 0; i * PRODUCT_ROWS < rows; i++)
		span[i] = all;
}

/* All products of a part's rows with its vectors. */
static void make_products(const struct work *w, const struct part *part, const real *x, int x_stride, real *product)
{
	struct span span[TOGETHER];
	int rows = rows_of(w, part), D = w->t->D;
	const real *turned = vector(w, w->v->count) + (size_t)part->first * (size_t)D;
	each_span(rows, (struct span){ 0, part->count }, span);
	product_some_columns(rows, D, 1, x + (size_t)first_of(w, part) * (size_t)x_stride, (size_t)x_stride, turned,
			     span, product, WIDTH);
}

void relative_dots(const struct place *p, const struct tile *t, const struct relative *v, const real *x, int x_stride,
		   real *to)
{
	struct work w;
	struct part part;
	real product[TOGETHER * WIDTH];
	int buffer[TILE_COLUMNS];
	work_of(p, t, v, &w);
	for (int n = 0; n < parts_of(&w); n++) {
		if (!part_at(&w, n, &part))
			continue;
		bool apart = part.count > WIDTH;
		if (!apart)
			make_products(&w, &part, x, x_stride, product);
		for (int r = part.row; r < part.rows_end; r++) {
			struct span columns = seen(&w, &part, r);
			const int *at = indices(&w, columns, r, buffer);
			for (int j = columns.from; j < columns.to; j++)
				to[r * TILE_STRIDE + j] +=
					apart ? vec_dot(x + (size_t)row_of(&w, r, j) * (size_t)x_stride,
							vector(&w, at[j]), t->D)
					      : product[place_in(&w, &part, r, j, at[j])];
		}
	}
}

/* Weights of a part's elements, summed by row and vector. */
static void sum_weights(const struct work *w, const struct part *part, const real *weight, real *sum)
{
	int buffer[TILE_COLUMNS];
	memset(sum, 0, (size_t)(rows_of(w, part) * WIDTH) * sizeof *sum);
	for (int r = part->row; r < part->rows_end; r++) {
		struct span columns = seen(w, part, r);
		const int *at = indices(w, columns, r, buffer);
		for (int j = columns.from; j < columns.to; j++)
			sum[place_in(w, part, r, j, at[j])] += weight[r * TILE_STRIDE + j];
	}
}

/* Element by element, where a part meets too many vectors: to its row of `sum`, or to its vector's gradient. */
static void sums_apart(const struct work *w, const struct part *part, const real *weight, real *sum, int sum_stride,
		       const real *x, int x_stride, real *d_vectors)
{
	int buffer[TILE_COLUMNS], D = w->t->D;
	for (int r = part->row; r < part->rows_end; r++) {
		struct span columns = seen(w, part, r);
		const int *at = indices(w, columns, r, buffer);
		for (int j = columns.from; j < columns.to; j++) {
			size_t row = (size_t)row_of(w, r, j);
			if (sum)
				vec_axpy(sum + row * (size_t)sum_stride, weight[r * TILE_STRIDE + j], vector(w, at[j]),
					 D);
			else
				vec_axpy(d_vectors + (size_t)at[j] * (size_t)D, weight[r * TILE_STRIDE + j],
					 x + row * (size_t)x_stride, D);
		}
	}
}

void relative_sums(const struct place *p, const struct tile *t, const struct relative *v, const real *weight, real *sum,
		   int sum_stride)
{
	struct work w;
	struct part part;
	struct span span[TOGETHER];
	real by_vector[TOGETHER * WIDTH];
	work_of(p, t, v, &w);
	for (int n = 0; n < parts_of(&w); n++) {
		if (!part_at(&w, n, &part))
			continue;
		if (part.count > WIDTH) {
			sums_apart(&w, &part, weight, sum, sum_stride, NULL, 0, NULL);
			continue;
		}
		sum_weights(&w, &part, weight, by_vector);
		each_span(rows_of(&w, &part), (struct span){ 0, part.count }, span);
		product_some_terms(rows_of(&w, &part), t->D, 1, by_vector, WIDTH, 1, vector(&w, part.first), t->D, span,
				   sum + (size_t)first_of(&w, &part) * (size_t)sum_stride, sum_stride);
	}
}

void relative_vectors_back(const struct place *p, const struct tile *t, const struct relative *v, const real *weight,
			   const real *x, int x_stride, real *d_vectors)
{
	struct work w;
	struct part part;
	struct span span[WIDTH];
	real by_vector[TOGETHER * WIDTH];
	work_of(p, t, v, &w);
	for (int n = 0; n < parts_of(&w); n++) {
		if (!part_at(&w, n, &part))
			continue;
		if (part.count > WIDTH) {
			sums_apart(&w, &part, weight, NULL, 0, x, x_stride, d_vectors);
			continue;
		}
		sum_weights(&w, &part, weight, by_vector);
		each_span(part.count, (struct span){ 0, rows_of(&w, &part) }, span);
		product_some_terms(part.count, t->D, 1, by_vector, 1, WIDTH,
				   x + (size_t)first_of(&w, &part) * (size_t)x_stride, x_stride, span,
				   d_vectors + (size_t)part.first * (size_t)t->D, t->D);
	}
}
