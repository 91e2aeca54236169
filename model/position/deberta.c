#include "model/base/vec.h"
#include "model/position/distance_bias.h"
#include "model/position/inspection.h"
#include "model/position/relative.h"

#include <math.h>
#include <string.h>

/* Disentangled attention (He et al. 2020, 2006.03654, equations 3 and 4), here causal: with a table P [2k][C] for all
 * layers, delta(i, j) = clamp(i - j + k, 0, 2k - 1), and projections W_K, W_Q of the layer's own,
 *
 *	logit = [q_i.k_j + q_i.(W_K P[delta(i, j)]) + k_j.(W_Q P[delta'])] / sqrt(D n),  n = 1 + number of such terms
 *
 * The paper has delta' = delta(j, i) in the last term, position to content; its authors' code and Hugging Face's both
 * take delta(i, j) there too. Version 2 has ranges of distances ("log buckets") in place of single ones. Codes
 * have a bias on W_Q; one on W_K would move all logits of a row alike, which no softmax sees, so there is none. No key
 * stands behind its query, so only half of P is reached. */

enum { SPAN, BUCKETS, MAX_DISTANCE, TERMS, P2C, BIAS };
static const struct option options[] = {
	[SPAN] = { .name = "span", .kind = OPTION_INTEGER, .initial = "32", .least = 1, .most = 65536,
		   .unit = "tokens", .results = true,
		   .help = "k: from here on all distances share a row; the table has 2k rows" },
	[BUCKETS] = { .name = "buckets", .kind = OPTION_INTEGER, .initial = "0", .least = 0, .most = 65536,
		      .results = true,
		      .help = "k rows of ranges of distances instead, as in version 2; 0: single ones" },
	[MAX_DISTANCE] = { .name = "max_distance", .kind = OPTION_INTEGER, .initial = "128", .least = 2,
			   .most = 1048576, .unit = "tokens", .results = true, 
			   .help = "where the last of the buckets begins" },
	[TERMS] = { .name = "terms", .kind = OPTION_CHOICE, .initial = "both", .choices = "both|c2p|p2c",
		    .results = true, .help = "content to position, position to content" },
	[P2C] = { .name = "p2c", .kind = OPTION_CHOICE, .initial = "implementations",
		  .choices = "implementations|paper", .results = true,
		  .help = "row of position to content: that of i - j, or of j - i as in the paper" },
	[BIAS] = { .name = "bias", .kind = OPTION_SWITCH, .initial = "off", .least = 0, .most = 1, .results = true,
		   
		   .help = "a bias on the projection to queries, as codes have" },
	{ 0 },
};
enum { TERMS_BOTH, TERMS_C2P, TERMS_P2C };
enum { P2C_IMPLEMENTATIONS, P2C_PAPER };

static int64_t integer(const struct method *m, int option)
{
	return m->value[option].integer;
}

/* k: half the rows of P. */
static int half_rows(const struct method *m)
{
	return (int)(integer(m, BUCKETS) ? integer(m, BUCKETS) : integer(m, SPAN));
}

static struct err check(const struct model_options *o, int D)
{
	const struct method *m = &o->encoding;
	long long buckets = integer(m, BUCKETS), most = integer(m, MAX_DISTANCE);
	(void)D;
	if (buckets && method_changed(m, SPAN))
		return err_usage("Leave it out: the buckets say how many rows there are.",
				 "deberta_span: has no effect on %lld buckets", buckets);
	if (!buckets && method_changed(m, MAX_DISTANCE))
		return err_usage("Give deberta_buckets too, or deberta_span in its place.",
				 "deberta_max_distance: has no effect without buckets");
	if (integer(m, TERMS) == TERMS_C2P && method_changed(m, P2C))
		return err_usage("Leave it out, or give deberta_terms=both.",
				 "deberta_p2c: has no effect without that term");
	if (integer(m, TERMS) == TERMS_C2P && integer(m, BIAS))
		return err_usage("Leave it out, or give deberta_terms=both.",
				 "deberta_bias: has no effect without position to content");
	if (buckets == 1)
		return err_usage("Half the buckets are single distances.", "deberta_buckets: 1 is not 0 nor above 1");
	if (buckets && most - 1 <= buckets / 2)
		return err_usage("Half the buckets are single distances; the rest must reach further.",
				 "deberta_max_distance: %lld is not above half the %lld buckets + 1", most, buckets);
	return OK;
}

/* Of the terms c2p and p2c, those there are. */
enum term { C2P, P2C_TERM, ALL_TERMS };
static bool has(const struct method *m, enum term term)
{
	return integer(m, TERMS) != (term == C2P ? TERMS_P2C : TERMS_C2P);
}

static int count_terms(const struct method *m)
{
	return integer(m, TERMS) == TERMS_BOTH ? 2 : 1;
}

static bool has_bias(const struct method *m)
{
	return has(m, P2C_TERM) && integer(m, BIAS) != 0;
}

static double scale(const struct place *p)
{
	return 1 / sqrt((double)p->D * (1 + count_terms(p->method)));
}

static void declare(const struct model_options *o, struct layout *l, int layer)
{
	static const char *const name[] = { "key", "query" };
	int C = (int)o->width;
	if (layer < 0)
		layout_add(l, INIT_NORMAL, 1, false, 2 * half_rows(&o->encoding), C, "model.position.table");
	for (int term = 0; layer >= 0 && term < ALL_TERMS; term++) {
		if (!has(&o->encoding, (enum term)term))
			continue;
		layout_add(l, INIT_NORMAL, 1 / sqrt(C), true, C, C, "model.layers.%d.self_attn.position.%s_proj", layer,
			   name[term]);
	}
	if (layer >= 0 && has_bias(&o->encoding))
		layout_add(l, INIT_ZEROS, 0, false, 0, C, "model.layers.%d.self_attn.position.query_bias", layer);
}

/* How far from row k a distance's row stands, before it is cut off at the table's end. */
static int64_t steps(const struct place *p, double distance)
{
	int64_t buckets = integer(p->method, BUCKETS), single = buckets / 2;
	if (!buckets || distance <= (double)single)
		return (int64_t)distance;
	double share = log(floor(distance) / (double)single) /
		       log((double)(integer(p->method, MAX_DISTANCE) - 1) / (double)single);
	/* Where the share is a whole number of buckets its rounding must not rise above it. */
	return (int64_t)ceil(share * (double)(single - 1) - 1e-9) + single;
}

/* Rows of P that are reached stand in the prepared table: k .. 2k - 1 by i - j, k .. 0 by j - i. */
static int row_ahead(const struct place *p, double distance)
{
	int64_t last = half_rows(p->method) - 1, step = steps(p, distance);
	return (int)(step < last ? step : last);
}

static int row_behind(const struct place *p, double distance)
{
	int64_t k = half_rows(p->method), step = steps(p, distance);
	return (int)(step < k ? k - step : 0);
}

/* A term's projected rows: their number, and which row of P is the first. */
struct rows {
	int first, count;
	size_t reals;
};

static struct rows rows_of(const struct place *p, enum term term)
{
	int k = half_rows(p->method);
	bool behind = term == P2C_TERM && integer(p->method, P2C) == P2C_PAPER;
	struct rows rows = { behind ? 0 : k, behind ? k + 1 : k, 0 };
	if (has(p->method, term))
		rows.reals = relative_reals(rows.count, p->D);
	return rows;
}

static int row_at(const struct place *p, struct rows rows, double distance)
{
	return rows.first ? row_ahead(p, distance) : row_behind(p, distance);
}

static struct relative vectors_of(const struct place *p, const real *table, enum term term)
{
	struct rows rows = rows_of(p, term);
	return (struct relative){
		.index = rows.first ? row_ahead : row_behind, .count = rows.count,
		.vectors = table + (term == P2C_TERM ? rows_of(p, C2P).reals : 0), .by_key = term == P2C_TERM,
	};
}

static size_t table_reals(const struct place *p)
{
	return rows_of(p, C2P).reals + rows_of(p, P2C_TERM).reals;
}

/* Where a head's rows of a term's projection stand among the layer's own tensors. The bias is behind the last. */
static size_t projection_at(const struct place *p, enum term term, int h)
{
	size_t C = (size_t)p->C, before = term == P2C_TERM && has(p->method, C2P) ? C * C : 0;
	return before + (size_t)(h * p->D) * C;
}

static size_t bias_at(const struct place *p, int h)
{
	return projection_at(p, P2C_TERM, p->H) + (size_t)(h * p->D);
}

/* vector [count][D] of a head = rows of P projected by its D rows of W. */
static void project(const struct place *p, struct rows rows, const real *P, const real *W, const real *bias,
		    real *vector)
{
	size_t C = (size_t)p->C;
	for (int row = 0; row < rows.count; row++, vector += p->D)
		for (int d = 0; d < p->D; d++)
			vector[d] = vec_dot(P + (size_t)(rows.first + row) * C, W + (size_t)d * C, p->C) +
				    (bias ? bias[d] : (real)0);
}

static void prepare(const struct place *p, struct place_parameters own, struct prepared *to)
{
	real *table = to->table;
	for (int h = 0; h < p->H; h++)
		for (int term = 0; term < ALL_TERMS; term++) {
			struct rows rows = rows_of(p, (enum term)term);
			bool biased = term == P2C_TERM && has_bias(p->method);
			if (!rows.reals)
				continue;
			project(p, rows, own.shared, own.layer + projection_at(p, (enum term)term, h),
				biased ? own.layer + bias_at(p, h) : NULL, table);
			relative_table(rows.count, p->D, table);
			table += rows.reals;
		}
}

static void project_back(const struct place *p, struct rows rows, const real *P, const real *W, const real *d_vector,
			 real *d_P, real *d_W, real *d_bias)
{
	size_t C = (size_t)p->C;
	for (int row = 0; row < rows.count; row++, d_vector += p->D)
		for (int d = 0; d < p->D; d++) {
			size_t at = (size_t)(rows.first + row) * C;
			vec_axpy(d_P + at, d_vector[d], W + (size_t)d * C, p->C);
			vec_axpy(d_W + (size_t)d * C, d_vector[d], P + at, p->C);
			if (d_bias)
				d_bias[d] += d_vector[d];
		}
}

static void prepare_back(const struct place *p, struct place_parameters own, const struct prepared *made,
			 const real *d_table, const double *d_inv_freq, double d_attention_factor,
			 struct place_gradients to)
{
	(void)made, (void)d_inv_freq, (void)d_attention_factor;
	for (int h = 0; h < p->H; h++)
		for (int term = 0; term < ALL_TERMS; term++) {
			struct rows rows = rows_of(p, (enum term)term);
			size_t at = projection_at(p, (enum term)term, h);
			bool biased = term == P2C_TERM && has_bias(p->method);
			if (!rows.reals)
				continue;
			project_back(p, rows, own.shared, own.layer + at, d_table, to.shared, to.layer + at,
				     biased ? to.layer + bias_at(p, h) : NULL);
			d_table += rows.reals;
		}
}

static void logits(const struct place *p, const struct tile *t, real *logit)
{
	for (int term = 0; term < ALL_TERMS; term++) {
		struct relative v = vectors_of(p, t->table, (enum term)term);
		if (has(p->method, (enum term)term))
			relative_dots(p, t, &v, v.by_key ? t->k : t->q, v.by_key ? t->k_stride : t->q_stride, logit);
	}
	tile_scale(t, logit);
}

static void logits_back(const struct place *p, const struct tile *t, const real *raw, real *d_logit,
			struct tile_gradient g)
{
	(void)raw;
	tile_scale(t, d_logit);
	for (int term = 0; term < ALL_TERMS; term++) {
		struct relative v = vectors_of(p, t->table, (enum term)term);
		if (!has(p->method, (enum term)term))
			continue;
		real *d_vectors = g.table + (v.vectors - t->table);
		struct relative_sums of_q = { g.q, g.q_stride, t->q, t->q_stride, d_vectors },
				     of_k = { g.k, g.k_stride, t->k, t->k_stride, d_vectors };
		relative_sums(p, t, &v, d_logit, v.by_key ? of_k : of_q);
	}
}

/* Rows of P by distance, and with a model how long they are. */
static struct err inspect(const struct inspection *in, struct report *to)
{
	static const char *const name[] = { "c2p_rows", "p2c_rows" }, *const heading[] = { "c2p row", "p2c row" };
	const struct place *p = in->place;
	int k = half_rows(p->method);
	double *row, *length;
	report_number(to, "table_rows", 2 * k);
	report_number(to, "terms", 1 + count_terms(p->method));
	report_number(to, "scale", scale(p));
	report_table(to, NULL, "distance", p->T);
	for (int term = 0; term < ALL_TERMS; term++) {
		struct rows rows = rows_of(p, (enum term)term);
		if (!rows.reals)
			continue;
		TRY(report_column(to, name[term], p->T <= 4 * k ? heading[term] : "", 0, &row));
		for (int distance = 0; distance < p->T; distance++)
			row[distance] = rows.first + row_at(p, rows, distance);
	}
	report_note(to, "The table has %d rows of %d for all layers; each layer projects them for its heads. Logits "
			"are scaled by 1 / sqrt(%d x %d).", 2 * k, p->C, p->D, 1 + count_terms(p->method));
	if (!in->own) {
		report_note(to, "The rows are learned: give a model to see their lengths.");
		return OK;
	}
	report_table(to, NULL, "row", 2 * k);
	TRY(report_column(to, "row_lengths", "length", 0, &length));
	for (int i = 0; i < 2 * k; i++)
		length[i] = sqrt(vec_sum_squares(in->own->shared + (size_t)i * (size_t)p->C, p->C));
	return OK;
}

const struct position position_deberta = {
	.entry = { .name = "deberta", .help = "learned vectors by distance that queries and keys meet (disentangled)",
		   .paper = "He et al. 2020, 2006.03654", .options = options },
	.check = check,
	.declare = declare,
	.inspect = inspect,
	.scale = scale,
	.table_reals = table_reals,
	.prepare = prepare,
	.prepare_back = prepare_back,
	.logits = logits,
	.logits_back = logits_back,
};
