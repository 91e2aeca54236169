#include "model/position/relative.h"

#include "model/base/product.h"
#include "model/base/vec.h"
#include "model/position/distance_bias.h"

#include <string.h>

/* Rows (by_key: columns) that are worked on together, a multiple of PRODUCT_ROWS, and vectors they meet at most where
 * positions are consecutive, in whole blocks of columns. */
#define TOGETHER 24
#define WIDTH (TILE_COLUMNS + TOGETHER + 40)

/* Equal neighbours that are worth a sum of their own. */
#define RUN 8

size_t relative_reals(int count, int D)
{
	return (size_t)count * (size_t)D + product_turned_reals(count, D);
}

void relative_table(int count, int D, real *vectors)
{
	product_turn(count, D, vectors, D, vectors + (size_t)count * (size_t)D);
}

/* One tile at work. Where its distances stand in a line: the index of each, and where its run of equal ones ends. */
struct work {
	const struct place *p;
	const struct tile *t;
	const struct relative *v;
	bool line;
	int at[DISTANCE_LINE], until[DISTANCE_LINE];
};

static void work_of(const struct place *p, const struct tile *t, const struct relative *v, struct work *w)
{
	struct distance_line line;
	w->p = p;
	w->t = t;
	w->v = v;
	w->line = distance_line(t, &line);
	int seen = w->line ? distance_line_seen(&line) : 0;
	for (int i = seen - 1; i >= 0; i--) {
		w->at[i] = v->index(p, line.greatest - i);
		w->until[i] = i + 1 < seen && w->at[i + 1] == w->at[i] ? w->until[i + 1] : i + 1;
	}
}

/* Some rows of the tile by some of its columns, and the vectors they meet: [first, first + count), `only` if they are
 * all the same one. `x` is the part's first row of a matrix that has the tile's rows, or by_key its columns, and
 * `x_rows` how many there are. */
struct part {
	int row, rows_end, column, columns_end;
	int first, count, only;
	int x, x_rows;
};

static int least(int a, int b)
{
	return a < b ? a : b;
}

static int most(int a, int b)
{
	return a > b ? a : b;
}

/* Columns of the part that row r sees, and the indices of their vectors. */
struct row {
	int from, to;
	const int *at; /* by column */
};

static struct row row_at(const struct work *w, const struct part *part, int r, int buffer[TILE_COLUMNS])
{
	const struct tile *t = w->t;
	struct row row = { most(t->low[r], part->column), least(t->high[r], part->columns_end), buffer };
	if (row.from >= row.to)
		row.from = row.to = part->column;
	if (w->line)
		row.at = w->at + distance_line_row(t, r);
	for (int j = row.from; !w->line && j < row.to; j++)
		buffer[j] = w->v->index(w->p, t->query_positions[r] - t->key_positions[j]);
	return row;
}

static bool next_part(const struct work *w, struct part *part)
{
	const struct tile *t = w->t;
	int low = w->v->count, high = -1, buffer[TILE_COLUMNS];
	part->x += part->x_rows;
	part->x_rows = least((w->v->by_key ? t->columns : t->rows) - part->x, TOGETHER);
	if (part->x_rows <= 0)
		return false;
	part->row = w->v->by_key ? 0 : part->x;
	part->rows_end = w->v->by_key ? t->rows : part->x + part->x_rows;
	part->column = w->v->by_key ? part->x : 0;
	part->columns_end = w->v->by_key ? part->x + part->x_rows : t->columns;
	for (int r = part->row; r < part->rows_end; r++) {
		struct row row = row_at(w, part, r, buffer);
		for (int j = row.from; j < row.to; j += w->line ? most(row.to - row.from - 1, 1) : 1) {
			low = least(low, row.at[j]);
			high = most(high, row.at[j]);
		}
	}
	part->only = low == high ? low : -1;
	part->first = low / PRODUCT_COLUMNS * PRODUCT_COLUMNS;
	part->count = high < 0 ? 0 : high + 1 - part->first;
	return true;
}

static const real *vector(const struct work *w, int index)
{
	return w->v->vectors + (size_t)index * (size_t)w->t->D;
}

static void same_span(int rows, int to, struct span *span)
{
	for (int i = 0; i * PRODUCT_ROWS < rows; i++)
		span[i] = (struct span){ 0, to };
}

/* All products of a part's rows with its vectors, [x_rows][WIDTH]. */
static void make_products(const struct work *w, const struct part *part, const real *x, int x_stride, real *product)
{
	struct span span[TOGETHER];
	int D = w->t->D;
	const real *turned = vector(w, w->v->count) + (size_t)part->first * (size_t)D;
	same_span(part->x_rows, part->count, span);
	product_some_columns(part->x_rows, D, 1, x + (size_t)part->x * (size_t)x_stride, (size_t)x_stride, turned, span,
			     product, WIDTH);
}

static void add_same(const struct row *row, real term, real *restrict to)
{
	for (int j = row->from; j < row->to; j++)
		to[j] += term;
}

static void add_terms(const struct row *row, const struct part *part, const real *restrict product, real *restrict to)
{
	for (int j = row->from; j < row->to; j++)
		to[j] += product[row->at[j] - part->first];
}

static void add_terms_by_key(const struct row *row, const struct part *part, const real *restrict product,
			     real *restrict to)
{
	for (int j = row->from; j < row->to; j++)
		to[j] += product[(j - part->column) * WIDTH + row->at[j] - part->first];
}

static void take_terms(const struct work *w, const struct part *part, const real *product, real *to)
{
	int buffer[TILE_COLUMNS];
	real key[TOGETHER];
	for (int j = 0; w->v->by_key && part->only >= 0 && j < part->x_rows; j++)
		key[j] = product[j * WIDTH + part->only - part->first];
	for (int r = part->row; r < part->rows_end; r++) {
		struct row row = row_at(w, part, r, buffer);
		real *at = to + r * TILE_STRIDE;
		if (w->v->by_key && part->only >= 0)
			vec_add(at + row.from, key + row.from - part->column, row.to - row.from);
		else if (w->v->by_key)
			add_terms_by_key(&row, part, product, at);
		else if (part->only >= 0)
			add_same(&row, product[(r - part->row) * WIDTH + part->only - part->first], at);
		else
			add_terms(&row, part, product + (r - part->row) * WIDTH, at);
	}
}

/* Term by term, where a part meets too many vectors. */
static void make_terms(const struct work *w, const struct part *part, const real *x, int x_stride, real *to)
{
	int buffer[TILE_COLUMNS];
	for (int r = part->row; r < part->rows_end; r++) {
		struct row row = row_at(w, part, r, buffer);
		for (int j = row.from; j < row.to; j++)
			to[r * TILE_STRIDE + j] += vec_dot(x + (size_t)(w->v->by_key ? j : r) * (size_t)x_stride,
							   vector(w, row.at[j]), w->t->D);
	}
}

void relative_dots(const struct place *p, const struct tile *t, const struct relative *v, const real *x, int x_stride,
		   real *to)
{
	struct work w;
	struct part part = { 0 };
	real product[TOGETHER * WIDTH];
	work_of(p, t, v, &w);
	while (next_part(&w, &part)) {
		if (part.count > WIDTH) {
			make_terms(&w, &part, x, x_stride, to);
		} else if (part.count) {
			make_products(&w, &part, x, x_stride, product);
			take_terms(&w, &part, product, to);
		}
	}
}

/* A row's weights to the sums of its vectors; those of a long run of the same one together. */
static void sum_row(const struct work *w, const struct part *part, const struct row *row, const real *weight, real *sum)
{
	int end, start = w->line ? (int)(row->at - w->at) : 0;
	for (int j = row->from; j < row->to; j = end) {
		end = w->line ? least(w->until[start + j] - start, row->to) : j + 1;
		if (end - j >= RUN)
			sum[row->at[j] - part->first] += vec_sum(weight + j, end - j);
		else
			for (int i = j; i < end; i++)
				sum[row->at[i] - part->first] += weight[i];
	}
}

static void sum_row_by_key(const struct part *part, const struct row *row, const real *restrict weight,
			   real *restrict sum)
{
	for (int j = row->from; j < row->to; j++)
		sum[(j - part->column) * WIDTH + row->at[j] - part->first] += weight[j];
}

/* Weights of a part's elements, summed by row of x and vector, [x_rows][WIDTH]. */
static void sum_weights(const struct work *w, const struct part *part, const real *weight, real *sum)
{
	int buffer[TILE_COLUMNS];
	real key[TOGETHER] = { 0 };
	for (int i = 0; i < part->x_rows; i++)
		memset(sum + i * WIDTH, 0, (size_t)part->count * sizeof *sum);
	for (int r = part->row; r < part->rows_end; r++) {
		struct row row = row_at(w, part, r, buffer);
		const real *from = weight + r * TILE_STRIDE;
		if (!w->v->by_key)
			sum_row(w, part, &row, from, sum + (r - part->row) * WIDTH);
		else if (part->only < 0)
			sum_row_by_key(part, &row, from, sum);
		else
			vec_add(key + row.from - part->column, from + row.from, row.to - row.from);
	}
	for (int j = 0; w->v->by_key && part->only >= 0 && j < part->x_rows; j++)
		sum[j * WIDTH + part->only - part->first] = key[j];
}

/* The products of these sums with the vectors, and with x. */
static void add_products(const struct work *w, const struct part *part, const real *sum, struct relative_sums to)
{
	struct span span[WIDTH];
	int D = w->t->D;
	if (to.rows) {
		same_span(part->x_rows, part->count, span);
		product_some_terms(part->x_rows, D, 1, sum, WIDTH, 1, vector(w, part->first), D, span,
				   to.rows + (size_t)part->x * (size_t)to.rows_stride, to.rows_stride);
	}
	if (to.vectors) {
		same_span(part->count, part->x_rows, span);
		product_some_terms(part->count, D, 1, sum, 1, WIDTH, to.x + (size_t)part->x * (size_t)to.x_stride,
				   to.x_stride, span, to.vectors + (size_t)part->first * (size_t)D, D);
	}
}

/* Element by element, where a part meets too many vectors. */
static void add_weights(const struct work *w, const struct part *part, const real *weight, struct relative_sums to)
{
	int buffer[TILE_COLUMNS], D = w->t->D;
	for (int r = part->row; r < part->rows_end; r++) {
		struct row row = row_at(w, part, r, buffer);
		for (int j = row.from; j < row.to; j++) {
			size_t x = (size_t)(w->v->by_key ? j : r);
			real factor = weight[r * TILE_STRIDE + j];
			if (to.rows)
				vec_axpy(to.rows + x * (size_t)to.rows_stride, factor, vector(w, row.at[j]), D);
			if (to.vectors)
				vec_axpy(to.vectors + (size_t)row.at[j] * (size_t)D, factor,
					 to.x + x * (size_t)to.x_stride, D);
		}
	}
}

void relative_sums(const struct place *p, const struct tile *t, const struct relative *v, const real *weight,
		   struct relative_sums to)
{
	struct work w;
	struct part part = { 0 };
	real sum[TOGETHER * WIDTH];
	work_of(p, t, v, &w);
	while (next_part(&w, &part)) {
		if (part.count > WIDTH) {
			add_weights(&w, &part, weight, to);
		} else if (part.count) {
			sum_weights(&w, &part, weight, sum);
			add_products(&w, &part, sum, to);
		}
	}
}
