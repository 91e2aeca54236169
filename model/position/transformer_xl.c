#include "model/base/product.h"
#include "model/base/vec.h"
#include "model/position/distance_bias.h"
#include "model/position/inspection.h"
#include "model/position/phases.h"
#include "model/position/relative.h"

#include <math.h>
#include <string.h>

/* Transformer-XL's relative encoding (Dai et al. 2019, 1901.02860, section 3.3):
 *
 *	logit = [(q_i + u).k_j + (q_i + v).(W_r R_{i-j})] / sqrt(D)
 *
 * u, v [H][D] are the same for all layers, W_r [C][C] is a layer's own, and R_r is the sinusoid of a distance r in the
 * model's width: all sin(r w_m), then all cos(r w_m), w_m = 10000^(-2m/C). With a = W_r^T (q_i + v), a row of C, the
 * second term is a.R_{i-j}. The sine and cosine of a difference make that the product of b, which is `a` turned by the
 * query's angles, with the key's cosines and sines: no table of distances is needed, and any distance can be had.
 *
 * Columns of W_r are taken in lots: PHASE_WAVES sines, then their cosines. */

enum { LOT = 2 * PHASE_WAVES };

/* Rows worked on together, a multiple of PRODUCT_ROWS. */
#define TOGETHER 24

static struct err check(const struct model_options *o, int D)
{
	(void)D;
	if (o->width % 2 == 0)
		return OK;
	return err_usage("Choose an even width: half of it are sines, half cosines.",
			 "width: %lld is odd, which transformer_xl cannot take", (long long)o->width);
}

static void declare(const struct model_options *o, struct layout *l, int layer)
{
	int C = (int)o->width, H = (int)o->heads;
	if (layer >= 0) {
		layout_add(l, INIT_NORMAL, 1 / sqrt(C), true, C, C, "model.layers.%d.self_attn.position.r_proj", layer);
		return;
	}
	layout_add(l, INIT_ZEROS, 0, false, H, C / H, "model.position.u");
	layout_add(l, INIT_ZEROS, 0, false, H, C / H, "model.position.v");
}

static int lots(const struct place *p)
{
	return (p->C / 2 + PHASE_WAVES - 1) / PHASE_WAVES;
}

/* The column of W_r that stands at `at` of a lot, or -1 where the lot is not full. */
static int column_of(const struct place *p, int lot, int at)
{
	int wave = lot * PHASE_WAVES + at % PHASE_WAVES;
	return wave >= p->C / 2 ? -1 : at < PHASE_WAVES ? wave : p->C / 2 + wave;
}

/* A head's share of the prepared table, its columns in lots: u [D], W_r^T v [lots][LOT], W_r^T [lots][LOT][D] and this
 * turned (relative_table), and what makes the phases. */
struct share {
	size_t u, bias, W, turned, phases, reals;
};

static struct share share_of(const struct place *p)
{
	size_t D = (size_t)p->D, columns = (size_t)lots(p) * LOT;
	struct share s = { .u = 0, .bias = D, .W = D + columns };
	s.turned = s.W + columns * D;
	s.phases = s.W + relative_reals((int)columns, p->D);
	s.reals = s.phases + phases_reals(p->C / 2);
	return s;
}

static size_t table_reals(const struct place *p)
{
	return share_of(p).reals;
}

/* W_r^T and W_r^T v of a head, from its rows of W_r. */
static void prepare_columns(const struct place *p, const real *v, const real *W, real *turned_over, real *bias)
{
	for (int lot = 0; lot < lots(p); lot++)
		for (int at = 0; at < LOT; at++, turned_over += p->D) {
			int column = column_of(p, lot, at);
			for (int d = 0; d < p->D; d++)
				turned_over[d] = column < 0 ? 0 : W[d * p->C + column];
			*bias++ = vec_dot(turned_over, v, p->D);
		}
}

static void prepare(const struct place *p, struct place_parameters own, struct prepared *to)
{
	struct share s = share_of(p);
	for (int h = 0; h < p->H; h++) {
		real *table = to->table + (size_t)h * s.reals;
		const real *v = own.shared + (p->H + h) * p->D;
		memcpy(table + s.u, own.shared + h * p->D, (size_t)p->D * sizeof *table);
		prepare_columns(p, v, own.layer + h * p->D * p->C, table + s.W, table + s.bias);
		relative_table(lots(p) * LOT, p->D, table + s.W);
		phases_prepare(p->C / 2, table + s.phases);
	}
}

static void columns_back(const struct place *p, const real *v, const real *W, const real *d_turned_over,
			 const real *d_bias, real *d_v, real *d_W)
{
	for (int lot = 0; lot < lots(p); lot++)
		for (int at = 0; at < LOT; at++, d_turned_over += p->D, d_bias++) {
			int column = column_of(p, lot, at);
			for (int d = 0; column >= 0 && d < p->D; d++) {
				d_W[d * p->C + column] += d_turned_over[d] + *d_bias * v[d];
				d_v[d] += *d_bias * W[d * p->C + column];
			}
		}
}

static void prepare_back(const struct place *p, struct place_parameters own, const struct prepared *made,
			 const real *d_table, const double *d_inv_freq, double d_attention_factor,
			 struct place_gradients to)
{
	struct share s = share_of(p);
	(void)made, (void)d_inv_freq, (void)d_attention_factor;
	for (int h = 0; h < p->H; h++, d_table += s.reals) {
		int v = (p->H + h) * p->D, W = h * p->D * p->C;
		vec_add(to.shared + h * p->D, d_table + s.u, p->D);
		columns_back(p, own.shared + v, own.layer + W, d_table + s.W, d_table + s.bias, to.shared + v,
			     to.layer + W);
	}
}

/* Some rows of a tile, and by blocks of PRODUCT_ROWS the columns that they see. */
struct rows {
	int first, count;
	const real *q;
	struct span seen[TOGETHER];
};

static struct rows rows_at(const struct tile *t, int first)
{
	struct rows rows = { .first = first, .count = t->rows - first < TOGETHER ? t->rows - first : TOGETHER,
			     .q = t->q + (size_t)first * (size_t)t->q_stride };
	for (int r = 0; r < rows.count; r++) {
		struct span *seen = &rows.seen[r / PRODUCT_ROWS];
		int low = t->low[first + r], high = t->high[first + r];
		if (r % PRODUCT_ROWS == 0)
			*seen = (struct span){ t->columns, 0 };
		if (low >= high)
			continue;
		low = low / PRODUCT_COLUMNS * PRODUCT_COLUMNS;
		seen->from = low < seen->from ? low : seen->from;
		seen->to = high > seen->to ? high : seen->to;
	}
	return rows;
}

static void same_span(int count, int to, struct span *span)
{
	for (int i = 0; i * PRODUCT_ROWS < count; i++)
		span[i] = (struct span){ 0, to };
}

/* The keys' phases [columns][LOT]: cosines, then sines. */
static void key_rows(const struct phases *phases, real *key)
{
	for (int j = 0; j < phases->tile->columns; j++, key += LOT)
		for (int m = 0; m < PHASE_WAVES; m++) {
			key[m] = (real)phases->cosine[j][m];
			key[PHASE_WAVES + m] = (real)phases->sine[j][m];
		}
}

/* a.R = sum of a_s sin(i - j) + a_c cos(i - j): its part in cos j, then that in sin j. */
static void turn_row(const struct phases *phases, int r, real a[LOT])
{
	double cosine[PHASE_WAVES], sine[PHASE_WAVES];
	phases_of_row(phases, r, cosine, sine);
	for (int m = 0; m < PHASE_WAVES; m++) {
		double sines = (double)a[m], cosines = (double)a[PHASE_WAVES + m];
		a[m] = (real)(sines * sine[m] + cosines * cosine[m]);
		a[PHASE_WAVES + m] = (real)(cosines * sine[m] - sines * cosine[m]);
	}
}

static void turn_row_back(const struct phases *phases, int r, real d[LOT])
{
	double cosine[PHASE_WAVES], sine[PHASE_WAVES];
	phases_of_row(phases, r, cosine, sine);
	for (int m = 0; m < PHASE_WAVES; m++) {
		double in_cosine = (double)d[m], in_sine = (double)d[PHASE_WAVES + m];
		d[m] = (real)(in_cosine * sine[m] - in_sine * cosine[m]);
		d[PHASE_WAVES + m] = (real)(in_cosine * cosine[m] + in_sine * sine[m]);
	}
}

/* b [count][LOT] of some rows. */
static void query_rows(const struct tile *t, const struct phases *phases, const struct rows *rows, const real *bias,
		       const real *turned, real *b)
{
	struct span span[TOGETHER];
	same_span(rows->count, LOT, span);
	product_some_columns(rows->count, t->D, 1, rows->q, (size_t)t->q_stride, turned, span, b, LOT);
	for (int r = 0; r < rows->count; r++) {
		vec_add(b + r * LOT, bias, LOT);
		turn_row(phases, rows->first + r, b + r * LOT);
	}
}

/* Adds a lot's share of the second term. */
static void add_lot(const struct place *p, const struct tile *t, int lot, real *logit)
{
	struct phases phases;
	struct share s = share_of(p);
	real key[TILE_COLUMNS * LOT], turned_keys[TILE_COLUMNS * LOT], b[TOGETHER * LOT], term[TOGETHER * TILE_STRIDE];
	const real *bias = t->table + s.bias + lot * LOT, *W = t->table + s.turned + (size_t)(lot * LOT * t->D);
	phases_of(t, p->C / 2, t->table + s.phases, lot * PHASE_WAVES, &phases);
	key_rows(&phases, key);
	product_turn(t->columns, LOT, key, LOT, turned_keys);
	for (int first = 0; first < t->rows; first += TOGETHER) {
		struct rows rows = rows_at(t, first);
		query_rows(t, &phases, &rows, bias, W, b);
		product_some_columns(rows.count, LOT, 1, b, LOT, turned_keys, rows.seen, term, TILE_STRIDE);
		for (int r = 0; r < rows.count; r++) {
			int low = t->low[first + r], count = t->high[first + r] - low;
			vec_add(logit + (first + r) * TILE_STRIDE + low, term + r * TILE_STRIDE + low, count);
		}
	}
}

static void logits(const struct place *p, const struct tile *t, real *logit)
{
	const real *u = t->table + share_of(p).u;
	real content[TILE_COLUMNS];
	for (int j = 0; j < t->columns; j++)
		content[j] = vec_dot(u, t->k + (size_t)j * (size_t)t->k_stride, t->D);
	for (int r = 0; r < t->rows; r++)
		vec_add(logit + r * TILE_STRIDE + t->low[r], content + t->low[r], t->high[r] - t->low[r]);
	for (int lot = 0; lot < lots(p); lot++)
		add_lot(p, t, lot, logit);
	tile_scale(t, logit);
}

/* Some rows' gradients, with zeros where a block's row does not see what another does. */
static void take_seen(const struct tile *t, const struct rows *rows, const real *d_logit, real *to)
{
	for (int r = 0; r < rows->count; r++, to += TILE_STRIDE) {
		struct span seen = rows->seen[r / PRODUCT_ROWS];
		const real *from = d_logit + (rows->first + r) * TILE_STRIDE;
		int low = t->low[rows->first + r], high = t->high[rows->first + r];
		for (int j = seen.from; j < seen.to; j++)
			to[j] = j >= low && j < high ? from[j] : (real)0;
	}
}

/* From d_a [count][LOT]: the gradients of q, of W_r^T and of W_r^T v. */
static void query_rows_back(const struct tile *t, const struct rows *rows, const real *W, const real *d_a,
			    struct tile_gradient g, real *d_W, real *d_bias)
{
	struct span span[LOT];
	same_span(rows->count, LOT, span);
	product_some_terms(rows->count, t->D, 1, d_a, LOT, 1, W, t->D, span,
			   g.q + (size_t)rows->first * (size_t)g.q_stride, g.q_stride);
	same_span(LOT, rows->count, span);
	product_some_terms(LOT, t->D, 1, d_a, 1, LOT, rows->q, t->q_stride, span, d_W, t->D);
	for (int r = 0; r < rows->count; r++)
		vec_add(d_bias, d_a + r * LOT, LOT);
}

static void lot_back(const struct place *p, const struct tile *t, int lot, const real *d_logit, struct tile_gradient g)
{
	struct phases phases;
	struct share s = share_of(p);
	real key[TILE_COLUMNS * LOT], d[TOGETHER * TILE_STRIDE], d_a[TOGETHER * LOT];
	size_t bias = s.bias + (size_t)(lot * LOT), W = s.W + (size_t)(lot * LOT * t->D);
	phases_of(t, p->C / 2, t->table + s.phases, lot * PHASE_WAVES, &phases);
	key_rows(&phases, key);
	for (int first = 0; first < t->rows; first += TOGETHER) {
		struct rows rows = rows_at(t, first);
		take_seen(t, &rows, d_logit, d);
		memset(d_a, 0, sizeof d_a);
		product_some_terms(rows.count, LOT, 1, d, TILE_STRIDE, 1, key, LOT, rows.seen, d_a, LOT);
		for (int r = 0; r < rows.count; r++)
			turn_row_back(&phases, first + r, d_a + r * LOT);
		query_rows_back(t, &rows, t->table + W, d_a, g, g.table + W, g.table + bias);
	}
}

static void content_back(const struct tile *t, const real *u, const real *d_logit, struct tile_gradient g, real *d_u)
{
	double sum[TILE_COLUMNS] = { 0 };
	for (int r = 0; r < t->rows; r++)
		for (int j = t->low[r]; j < t->high[r]; j++)
			sum[j] += (double)d_logit[r * TILE_STRIDE + j];
	for (int j = 0; j < t->columns; j++) {
		vec_axpy(g.k + (size_t)j * (size_t)g.k_stride, (real)sum[j], u, t->D);
		vec_axpy(d_u, (real)sum[j], t->k + (size_t)j * (size_t)t->k_stride, t->D);
	}
}

static void logits_back(const struct place *p, const struct tile *t, const real *raw, real *d_logit,
			struct tile_gradient g)
{
	size_t u = share_of(p).u;
	(void)raw;
	tile_scale(t, d_logit);
	content_back(t, t->table + u, d_logit, g, g.table + u);
	for (int lot = 0; lot < lots(p); lot++)
		lot_back(p, t, lot, d_logit, g);
}

/* bias [T] = v.(W_r R) / sqrt(D) of a layer and head, by distance: what does not depend on queries and keys. */
static void add_bias(const struct place *p, const struct place_parameters *own, int h, double *bias)
{
	const real *v = own->shared + (p->H + h) * p->D, *W = own->layer + h * p->D * p->C;
	memset(bias, 0, (size_t)p->T * sizeof *bias);
	for (int m = 0; m < p->C / 2; m++) {
		double w = pow(10000, -2.0 * m / p->C), sines = 0, cosines = 0;
		for (int d = 0; d < p->D; d++) {
			sines += (double)v[d] * (double)W[d * p->C + m];
			cosines += (double)v[d] * (double)W[d * p->C + p->C / 2 + m];
		}
		for (int distance = 0; distance < p->T; distance++)
			bias[distance] += (sines * sin(distance * w) + cosines * cos(distance * w)) / sqrt(p->D);
	}
}

static struct err inspect(const struct inspection *in, struct report *to)
{
	const struct place *p = in->place;
	double *frequency, *wavelength, *bias;
	report_table(to, NULL, "wave", p->C / 2);
	TRY(report_column(to, "inv_freq", "inverse frequency", 0, &frequency));
	TRY(report_column(to, "wavelengths", "wavelength", 0, &wavelength));
	for (int m = 0; m < p->C / 2; m++) {
		frequency[m] = pow(10000, -2.0 * m / p->C);
		wavelength[m] = 2 * M_PI / frequency[m];
	}
	report_note(to, "Sines and cosines of distances in the model's width, %d of each; a projection a layer and two "
			"vectors a head.", p->C / 2);
	if (!in->own) {
		report_note(to, "The bias by distance, v.(W_r R), is learned: give a model to see it.");
		return OK;
	}
	report_table(to, NULL, "layer-head", p->layers * p->H);
	TRY(report_column(to, "bias", "", p->T, &bias));
	for (int i = 0; i < p->layers * p->H; i++)
		add_bias(p, &in->own[i / p->H], i % p->H, bias + (size_t)i * (size_t)p->T);
	report_note(to, "bias: what every query's logits get from these distances, a row a layer and head.");
	return OK;
}

const struct position position_transformer_xl = {
	.entry = { .name = "transformer_xl", .help = "projected sinusoids of the distance that queries and a bias meet",
		   .paper = "Dai et al. 2019, 1901.02860" },
	.check = check,
	.declare = declare,
	.inspect = inspect,
	.table_reals = table_reals,
	.prepare = prepare,
	.prepare_back = prepare_back,
	.logits = logits,
	.logits_back = logits_back,
};
