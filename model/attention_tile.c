#include "model/attention_tile.h"

#include "model/base/vec.h"

#include <math.h>
#include <string.h>

/* A block of queries: the wanted rows of a range of the current group of zones. */
struct block {
	int first, last, begin; /* the range, and where the group's zones begin */
	int rows, index[QUERY_BLOCK];
};

static struct block block_of(const struct attention_head *h, int first, int last)
{
	struct block b = { .first = first, .last = last, .begin = h->zone->begin };
	for (int i = first; i < last; i++)
		if (!h->wanted || h->wanted[i] >= 0)
			b.index[b.rows++] = i;
	return b;
}

/* Copies the block's rows out of a range of rows [D] that begins with its first. */
static void take_rows(const struct attention_head *h, const struct block *b, const real *range, size_t stride,
		      real *rows)
{
	size_t D = (size_t)h->a->D;
	for (int r = 0; r < b->rows; r++)
		memcpy(rows + (size_t)r * D, range + (size_t)(b->index[r] - b->first) * stride, D * sizeof(real));
}

/* What a block's row is multiplied by: the zone's scale, and ln n over the n keys up to its own. */
static double zone_scale(const struct attention_head *h, const struct block *b, int zone, int r)
{
	const double *scale = h->zone[zone].query_scale;
	return (scale ? scale[b->index[r] - b->begin] : 1) * (h->a->ssmax ? log1p(b->index[r]) : 1);
}

static bool scales_queries(const struct attention_head *h, int zone)
{
	return h->zone[zone].query_scale || h->a->ssmax;
}

static void scale_queries(struct attention_head *h, const struct block *b, int zone)
{
	size_t D = (size_t)h->a->D, at = (size_t)zone * QUERY_BLOCK * D;
	real *q = h->scratch->q + at;
	if (h->a->ssmax && h->scratch->unscaled)
		memcpy(h->scratch->unscaled + at, q, (size_t)b->rows * D * sizeof *q);
	for (int r = 0; r < b->rows; r++)
		vec_scale(q + (size_t)r * D, (real)(zone_scale(h, b, zone, r) * (double)h->ssmax), h->a->D);
}

/* The gradient of the scaled queries -> of the rotated ones, in place, and of ssmax's s. */
static void scale_queries_back(struct attention_head *h, const struct block *b, int zone)
{
	size_t D = (size_t)h->a->D, at = (size_t)zone * QUERY_BLOCK * D;
	for (int r = 0; r < b->rows; r++) {
		real *d_q = h->scratch->d_q + at + (size_t)r * D;
		double scale = zone_scale(h, b, zone, r);
		if (h->a->ssmax)
			*h->d_ssmax += scale * (double)vec_dot(d_q, h->scratch->unscaled + at + (size_t)r * D, h->a->D);
		vec_scale(d_q, (real)(scale * (double)h->ssmax), h->a->D);
	}
}

static void enter_queries(struct attention_head *h, const struct block *b, int z)
{
	const struct attention *a = h->a;
	struct attention_thread *s = h->scratch;
	size_t row = 3 * (size_t)a->C, D = (size_t)a->D;
	const real *q = h->q + (size_t)b->first * row;
	real *to = s->q + (size_t)z * QUERY_BLOCK * D;
	bool all = b->rows == b->last - b->first;
	if (!a->rotates) {
		take_rows(h, b, q, row, to);
		return;
	}
	struct rotation r = attention_rotation(h, z, SIDE_QUERY, b->first - b->begin, b->last - b->first);
	a->place->position->rotate(&r, q, (int)row, all ? to : s->range);
	if (!all)
		take_rows(h, b, s->range, D, to);
}

/* The block's queries, rotated for each zone of the group. */
static void enter_block(struct attention_head *h, const struct block *b)
{
	int middle = b->first + (b->last - b->first) / 2 - b->begin;
	for (int z = 0; z < h->a->together; z++)
		h->scratch->centre[z] = h->zone[z].query_position[middle];
	if (h->a->place->position->centred)
		attention_enter_keys(h);
	for (int z = 0; z < h->a->together; z++) {
		enter_queries(h, b, z);
		if (scales_queries(h, z))
			scale_queries(h, b, z);
	}
}

/* Keys [key, key + columns) against the block's queries under one zone. */
struct work {
	struct tile tile;
	struct attention_keys keys;
	int key;
};

/* Which keys from `key` on the rows of the block see in this zone; 0 columns if none. */
static int visible(struct attention_head *h, const struct block *b, int zone, int key)
{
	const struct zone *z = &h->zone[zone];
	int columns = 0;
	for (int r = 0; r < b->rows; r++) {
		int at = b->index[r] - b->begin, low = z->low[at] - key, high = z->high[at] - key;
		low = low < 0 ? 0 : low;
		high = high > KEY_BLOCK ? KEY_BLOCK : high;
		if (low >= high)
			low = high = 0;
		h->scratch->low[r] = low;
		h->scratch->high[r] = high;
		columns = high > columns ? high : columns;
	}
	return columns;
}

/* Columns that any row of first .. last - 1 sees, in whole blocks. */
static struct span columns_seen(const struct attention_thread *s, int first, int last, int columns)
{
	int low = KEY_BLOCK, high = 0;
	for (int r = first; r < last; r++) {
		if (s->low[r] >= s->high[r])
			continue;
		low = s->low[r] < low ? s->low[r] : low;
		high = s->high[r] > high ? s->high[r] : high;
	}
	low = low / PRODUCT_COLUMNS * PRODUCT_COLUMNS;
	high = (high + PRODUCT_COLUMNS - 1) / PRODUCT_COLUMNS * PRODUCT_COLUMNS;
	return low < high ? (struct span){ low, high < columns ? high : columns } : (struct span){ 0, 0 };
}

/* Does every row see every column? As in most tiles of a long sequence. */
static bool all_seen(const struct attention_thread *s, int rows, int columns)
{
	int low = 0, high = columns;
	for (int r = 0; r < rows; r++) {
		low = s->low[r] > low ? s->low[r] : low;
		high = s->high[r] < high ? s->high[r] : high;
	}
	return low == 0 && high == columns;
}

/* The same by blocks of rows and of columns, so that products leave out what no row of a block sees. */
static void span_blocks(struct attention_thread *s, int rows, int columns)
{
	int row_blocks = (rows + PRODUCT_ROWS - 1) / PRODUCT_ROWS;
	int column_blocks = (columns + PRODUCT_ROWS - 1) / PRODUCT_ROWS;
	if (all_seen(s, rows, columns)) {
		for (int b = 0; b < row_blocks; b++)
			s->columns[b] = s->read[b] = (struct span){ 0, columns };
		for (int c = 0; c < column_blocks; c++)
			s->rows[c] = (struct span){ 0, rows };
		return;
	}
	for (int c = 0; c < column_blocks; c++)
		s->rows[c] = (struct span){ rows, 0 };
	for (int b = 0; b < row_blocks; b++) {
		int first = b * PRODUCT_ROWS, last = first + PRODUCT_ROWS < rows ? first + PRODUCT_ROWS : rows;
		struct span seen = s->columns[b] = s->read[b] = columns_seen(s, first, last, columns);
		for (int c = seen.from / PRODUCT_ROWS; c * PRODUCT_ROWS < seen.to; c++) {
			s->rows[c].from = first < s->rows[c].from ? first : s->rows[c].from;
			s->rows[c].to = last;
		}
	}
	/* A product over a block of columns reads all of it, of every row in between. */
	for (int c = 0; c < column_blocks; c++)
		for (int r = s->rows[c].from; r < s->rows[c].to; r += PRODUCT_ROWS) {
			struct span *read = &s->read[r / PRODUCT_ROWS];
			int first = c * PRODUCT_ROWS, last = first + PRODUCT_ROWS;
			last = last < columns ? last : columns;
			read->from = first < read->from ? first : read->from;
			read->to = last > read->to ? last : read->to;
		}
}

/* Sets up the tile at (block, key) in one zone and computes its raw q.k; false if no row sees any of its keys. */
static bool enter_tile(struct attention_head *h, const struct block *b, int zone, int key, bool backward,
		       struct work *w)
{
	const struct attention *a = h->a;
	struct attention_thread *s = h->scratch;
	const struct zone *z = &h->zone[zone];
	size_t gates = (size_t)a->H * (size_t)a->gate_reals;
	struct attention_keys keys = attention_keys(h, zone, key);
	int columns = visible(h, b, zone, key);
	if (!columns)
		return false;
	for (int r = 0; r < b->rows; r++)
		s->position[r] = z->query_position[b->index[r] - b->begin];
	for (int r = 0; z->query_alone && r < b->rows; r++)
		s->alone[r] = z->query_alone[b->index[r] - b->begin];
	struct tile t = {
		.rows = b->rows, .columns = columns, .head = h->head, .D = a->D, .low = s->low, .high = s->high,
		.query_positions = s->position, .key_positions = z->key_position + key,
		.query_alone = z->query_alone ? s->alone : NULL,
		.q = s->q + (size_t)zone * QUERY_BLOCK * (size_t)a->D, .q_stride = a->D,
		.k = keys.k, .k_stride = a->D,
		.query_gate = h->gate ? h->gate + (size_t)b->first * gates : NULL,
		.key_gate = h->gate ? h->gate + (size_t)key * gates : NULL, .gate_stride = (int)gates,
		.table = h->table, .carry = s->carry,
		.saved = h->saved ? h->saved + (size_t)b->first * (size_t)a->saved_reals : NULL,
		.scale = a->scale, .backward = backward,
	};
	span_blocks(s, t.rows, columns);
	/* Without a hook of its own the encoding leaves the scale to the product. */
	product_some_columns(t.rows, t.D, a->place->position->logits ? 1 : a->scale, t.q, (size_t)t.q_stride,
			     keys.k_turned, s->columns, s->logits, TILE_STRIDE);
	*w = (struct work){ .tile = t, .keys = keys, .key = key };
	return true;
}

/* Copies a tile's logits to where they stand among all of the head. */
static void keep_scores(const struct attention_head *h, const struct block *b, const struct work *w)
{
	const struct tile *t = &w->tile;
	for (int r = 0; r < t->rows; r++) {
		real *row = h->scores + (size_t)b->index[r] * (size_t)h->a->T + (size_t)w->key;
		for (int j = t->low[r]; j < t->high[r]; j++)
			row[j] = h->scratch->logits[(size_t)r * TILE_STRIDE + (size_t)j];
	}
}

static struct attention_look look_at(const struct attention_head *h, const struct block *b)
{
	return (struct attention_look){ .layer = h->layer, .index = h->index, .thread = h->thread, .rows = b->rows,
					.query = b->index };
}

static void show(const struct attention_head *h, const struct block *b, const struct work *w)
{
	struct attention_look at = look_at(h, b);
	at.tile = &w->tile;
	at.key = w->key;
	at.logits = h->scratch->logits;
	h->probe->look(h->probe->data, &at);
}

static int round_up(int n)
{
	return (n + VEC_LANES - 1) / VEC_LANES * VEC_LANES;
}

/* Writes -inf around a row's visible columns out to whole lanes, 0 (probability) in the rest of what is read of the row
 * later, and returns where the lanes start and how many there are. */
static int mask_row(struct span read, const struct tile *t, int r, real *row, int *from)
{
	int low = t->low[r], high = t->high[r], start = low / VEC_LANES * VEC_LANES, end = round_up(high);
	for (int j = read.from; j < start; j++)
		row[j] = 0;
	for (int j = start; j < low; j++)
		row[j] = (real)-INFINITY;
	for (int j = high; j < end; j++)
		row[j] = (real)-INFINITY;
	for (int j = end; j < read.to; j++)
		row[j] = 0;
	*from = start;
	return low < high ? end - start : 0;
}

/* What is read of a row's probabilities: a hook reads all. */
static struct span read_of(const struct attention_head *h, const struct tile *t, int r)
{
	if (h->a->place->position->values)
		return (struct span){ 0, round_up(t->columns) };
	return h->scratch->read[r / PRODUCT_ROWS];
}

/* Logits to unnormalised probabilities, carrying each row's maximum and sum; `correction` is what the accumulator and
 * the sum so far are worth under the new maximum. */
static void running_softmax(const struct attention_head *h, const struct tile *t)
{
	struct attention_thread *s = h->scratch;
	int from[QUERY_BLOCK], count[QUERY_BLOCK];
	for (int r = 0; r < t->rows; r++) {
		real *row = s->logits + (size_t)r * TILE_STRIDE;
		count[r] = mask_row(read_of(h, t, r), t, r, row, &from[r]);
		real before = s->greatest[r], greatest = count[r] ? vec_max(row + from[r], count[r]) : before;
		/* So that a NaN wins. */
		s->greatest[r] = before > greatest ? before : greatest;
		s->correction[r] = before > (real)-INFINITY ? before - s->greatest[r] : (real)-INFINITY;
	}
	vec_exp(s->correction, t->rows);
	for (int r = 0; r < t->rows; r++) {
		real *row = s->logits + (size_t)r * TILE_STRIDE;
		if (s->greatest[r] > (real)-INFINITY || isnan(s->greatest[r]))
			s->sum[r] = s->sum[r] * s->correction[r] + vec_exp_sum(row + from[r], count[r], s->greatest[r]);
		else
			memset(row + from[r], 0, (size_t)count[r] * sizeof *row);
	}
}

static void start_rows(struct attention_head *h, const struct block *b)
{
	struct attention_thread *s = h->scratch;
	for (int r = 0; r < b->rows; r++) {
		s->greatest[r] = (real)-INFINITY;
		s->sum[r] = 0;
	}
	memset(s->accumulator, 0, (size_t)b->rows * (size_t)h->a->D * sizeof(real));
	memset(s->carry, 0, (size_t)b->rows * (size_t)h->a->carry_reals * sizeof(real));
}

static void finish_rows(struct attention_head *h, const struct block *b)
{
	const struct attention *a = h->a;
	struct attention_thread *s = h->scratch;
	for (int r = 0; r < b->rows; r++) {
		real *out = h->output + (size_t)b->index[r] * (size_t)a->C;
		const real *sum = s->accumulator + (size_t)r * (size_t)a->D;
		real inverse = (real)1 / s->sum[r];
		for (int d = 0; d < a->D; d++)
			out[d] = sum[d] * inverse;
		h->lse[b->index[r]] = (real)((double)s->greatest[r] + log((double)s->sum[r]));
	}
}

void attention_rows(struct attention_head *h, int first, int last)
{
	const struct attention *a = h->a;
	const struct position *position = a->place->position;
	struct attention_thread *s = h->scratch;
	struct block b = block_of(h, first, last);
	struct work w;
	if (!b.rows)
		return;
	start_rows(h, &b);
	enter_block(h, &b);
	for (int key = (last - 1) / KEY_BLOCK * KEY_BLOCK; key >= 0; key -= KEY_BLOCK)
		for (int zone = 0; zone < a->together; zone++) {
			if (!enter_tile(h, &b, zone, key, false, &w))
				continue;
			if (position->logits)
				position->logits(a->place, &w.tile, s->logits);
			if (h->scores)
				keep_scores(h, &b, &w);
			if (h->probe)
				show(h, &b, &w);
			running_softmax(h, &w.tile);
			for (int r = 0; r < b.rows; r++)
				if (s->correction[r] != (real)1)
					vec_scale(s->accumulator + (size_t)r * (size_t)a->D, s->correction[r], a->D);
			product_some_terms(b.rows, a->D, 1, s->logits, TILE_STRIDE, 1, w.keys.v, a->D, s->columns,
					   s->accumulator, a->D);
			if (position->values)
				position->values(a->place, &w.tile, s->logits, s->accumulator);
		}
	finish_rows(h, &b);
	if (h->probe) {
		struct attention_look at = look_at(h, &b);
		h->probe->finish(h->probe->data, &at);
	}
}

/* delta_r = d_output_r . output_r, the part of the softmax's gradient that all columns of a row share (Dao et al. 2022,
 * equation 4). */
static void start_rows_back(struct attention_head *h, const struct block *b)
{
	const struct attention *a = h->a;
	struct attention_thread *s = h->scratch;
	size_t D = (size_t)a->D, C = (size_t)a->C;
	take_rows(h, b, h->d_output + (size_t)b->first * C, C, s->d_output);
	for (int r = 0; r < b->rows; r++)
		s->delta[r] = vec_dot(s->d_output + (size_t)r * D, h->output + (size_t)b->index[r] * C, a->D);
	for (int zone = 0; zone < a->together; zone++)
		memset(s->d_q + (size_t)zone * QUERY_BLOCK * D, 0, (size_t)b->rows * D * sizeof(real));
	memset(s->carry, 0, (size_t)b->rows * (size_t)a->carry_reals * sizeof(real));
}

/* Logits to probabilities, from each row's log-sum-exp. */
static void probabilities(struct attention_head *h, const struct block *b, const struct tile *t)
{
	for (int r = 0; r < t->rows; r++) {
		int from, count;
		real *row = h->scratch->logits + (size_t)r * TILE_STRIDE;
		count = mask_row(read_of(h, t, r), t, r, row, &from);
		vec_exp_sum(row + from, count, h->lse[b->index[r]]);
	}
}

static struct tile_gradient tile_gradient(struct attention_head *h, const struct block *b, int zone,
					  const struct work *w)
{
	const struct attention *a = h->a;
	size_t gates = (size_t)a->H * (size_t)a->gate_reals;
	return (struct tile_gradient){
		.q = h->scratch->d_q + (size_t)zone * QUERY_BLOCK * (size_t)a->D, .q_stride = a->D,
		.k = w->keys.d_k, .k_stride = a->D,
		.query_gate = h->d_gate ? h->d_gate + (size_t)b->first * gates : NULL,
		.key_gate = h->d_gate ? h->d_gate + (size_t)w->key * gates : NULL, .table = h->d_table,
	};
}

/* d_logits of the tile, from the probabilities: through the values, the softmax and the encoding's hook, to the
 * gradient of the raw q.k; returns what the product of q.k was scaled by. */
static real logits_gradient(struct attention_head *h, const struct work *w, struct tile_gradient g)
{
	const struct attention *a = h->a;
	const struct position *position = a->place->position;
	struct attention_thread *s = h->scratch;
	const struct tile *t = &w->tile;
	product_some_columns(t->rows, t->D, 1, s->d_output, (size_t)a->D, w->keys.v_turned, s->columns, s->d_logits,
			     TILE_STRIDE);
	if (position->values_back)
		position->values_back(a->place, t, s->logits, s->d_output, t->D, s->d_logits, g);
	for (int r = 0; r < t->rows; r++) {
		real *d = s->d_logits + (size_t)r * TILE_STRIDE;
		const real *p = s->logits + (size_t)r * TILE_STRIDE;
		struct span seen = s->columns[r / PRODUCT_ROWS], read = s->read[r / PRODUCT_ROWS];
		for (int j = read.from; j < seen.from; j++)
			d[j] = 0;
		for (int j = seen.from; j < seen.to; j++)
			d[j] = p[j] * (d[j] - s->delta[r]);
		for (int j = seen.to; j < read.to; j++)
			d[j] = 0;
	}
	if (!position->logits_back)
		return a->scale;
	position->logits_back(a->place, t, s->raw, s->d_logits, g);
	return 1;
}

/* The block's rows within their range, 0 in the others. */
static const real *spread_rows(const struct attention_head *h, const struct block *b, const real *rows)
{
	size_t D = (size_t)h->a->D, range = (size_t)(b->last - b->first) * D;
	real *to = h->scratch->range;
	if (b->rows == b->last - b->first)
		return rows;
	memset(to, 0, range * sizeof *to);
	for (int r = 0; r < b->rows; r++)
		memcpy(to + (size_t)(b->index[r] - b->first) * D, rows + (size_t)r * D, D * sizeof *to);
	return to;
}

static void leave_block(struct attention_head *h, const struct block *b)
{
	const struct attention *a = h->a;
	struct attention_thread *s = h->scratch;
	size_t row = 3 * (size_t)a->C, D = (size_t)a->D;
	real *d_q = h->d_q + (size_t)b->first * row;
	for (int zone = 0; zone < a->together; zone++) {
		const real *rotated = s->d_q + (size_t)zone * QUERY_BLOCK * D;
		if (scales_queries(h, zone))
			scale_queries_back(h, b, zone);
		if (!a->rotates) {
			for (int r = 0; r < b->rows; r++)
				vec_add(h->d_q + (size_t)b->index[r] * row, rotated + (size_t)r * D, a->D);
			continue;
		}
		struct rotation r = attention_rotation(h, zone, SIDE_QUERY, b->first - b->begin, b->last - b->first);
		a->place->position->rotate_back(&r, h->q + (size_t)b->first * row, (int)row,
						spread_rows(h, b, rotated), d_q, (int)row,
						attention_rotation_gradient(h));
	}
	if (a->place->position->centred)
		attention_leave_keys(h);
}

static void tile_back(struct attention_head *h, const struct block *b, int zone, const struct work *w)
{
	const struct attention *a = h->a;
	struct attention_thread *s = h->scratch;
	const struct tile *t = &w->tile;
	struct tile_gradient g = tile_gradient(h, b, zone, w);
	if (s->raw)
		memcpy(s->raw, s->logits, (size_t)t->rows * TILE_STRIDE * sizeof(real));
	if (a->place->position->logits)
		a->place->position->logits(a->place, t, s->logits);
	probabilities(h, b, t);
	product_some_terms(t->columns, t->D, 1, s->logits, 1, TILE_STRIDE, s->d_output, t->D, s->rows, w->keys.d_v,
			   t->D);
	real scale = logits_gradient(h, w, g);
	product_some_terms(t->rows, t->D, scale, s->d_logits, TILE_STRIDE, 1, t->k, t->k_stride, s->columns, g.q,
			   g.q_stride);
	product_some_terms(t->columns, t->D, scale, s->d_logits, 1, TILE_STRIDE, t->q, t->q_stride, s->rows, g.k,
			   g.k_stride);
}

void attention_rows_back(struct attention_head *h, int first, int last)
{
	const struct attention *a = h->a;
	struct block b = block_of(h, first, last);
	struct work w;
	if (!b.rows)
		return;
	start_rows_back(h, &b);
	enter_block(h, &b);
	for (int key = 0; key < last; key += KEY_BLOCK)
		for (int zone = a->together - 1; zone >= 0; zone--)
			if (enter_tile(h, &b, zone, key, true, &w))
				tile_back(h, &b, zone, &w);
	leave_block(h, &b);
}
