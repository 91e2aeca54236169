#include "model/position/distance_bias.h"
#include "model/position/inspection.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* FIRE (Li et al. 2023, 2310.04418, section 3 and the listing in its appendix): logit = scale q.k + bias of
 *	bias_h(i, j) = MLP(x)_h,  x = psi(i - j) / (psi(max(threshold, i)) + eps),
 *	psi(r) = ln(|c| r + 1),  threshold = |L_multiplier| init_length
 * with one MLP 1 -> width (ReLU) -> H, one c and one L_multiplier a layer. The query's own position normalises, so that
 * a bias is no function of the distance alone.
 *
 * An MLP of one number with ReLU is piecewise linear: `prepare` finds its knots, and each head's slope and intercept
 * between them; the backward pass sums the gradient of each piece. */

#define WIDTH_LIMIT 256

enum { WIDTH, INIT_LENGTH, EPS };
static const struct option options[] = {
	[WIDTH] = { .name = "width", .kind = OPTION_INTEGER, .initial = "32", .least = 1, .most = WIDTH_LIMIT,
		    .results = true, .help = "hidden width of the MLP" },
	[INIT_LENGTH] = { .name = "init_length", .kind = OPTION_NUMBER, .initial = "auto", .least = 1e-3,
			  .most = 16777216, .choices = "auto", .unit = "tokens", .results = true,
			  .help = "the threshold at first; auto: a quarter of train_length; 512 in the paper" },
	[EPS] = { .name = "eps", .kind = OPTION_NUMBER, .initial = "1e-6", .least = 1e-12, .most = 1, .results = true,
		  .help = "added to the normaliser" },
	{ 0 },
};

static double init_length(const struct place *p)
{
	double given = p->method->value[INIT_LENGTH].number;
	return given > 0 ? given : p->train_length / 4.0;
}

/* Where things stand: among a layer's parameters, and in a head's share of the table. */
enum { OWN_C, OWN_MULTIPLIER, OWN_W1 };
enum { TABLE_C, TABLE_THRESHOLD, TABLE_KNOT };
struct offsets {
	int W;
	int b1, w2, b2;            /* [W], [H][W], [H] */
	int slope, intercept, psi; /* [W + 1], [W + 1], [span]: psi of the whole distances */
	size_t span;
};

static struct offsets offsets_of(const struct place *p)
{
	int W = (int)p->method->value[WIDTH].integer;
	return (struct offsets){ .W = W, .b1 = OWN_W1 + W, .w2 = OWN_W1 + 2 * W, .b2 = OWN_W1 + (2 + p->H) * W,
				 .slope = TABLE_KNOT + W, .intercept = TABLE_KNOT + 2 * W + 1,
				 .psi = TABLE_KNOT + 3 * W + 2, .span = distance_span(p) };
}

static size_t table_reals(const struct place *p)
{
	struct offsets at = offsets_of(p);
	return (size_t)at.psi + at.span;
}

/* The MLP's weights are normal with the deviations of torch's default, which is uniform. */
static void declare(const struct model_options *o, struct layout *l, int layer)
{
	static const char format[] = "model.layers.%d.self_attn.position.%s";
	int W = (int)o->encoding.value[WIDTH].integer, H = (int)o->heads;
	double first = 1 / sqrt(3), second = 1 / sqrt(3.0 * W);
	if (layer < 0)
		return;
	layout_add(l, INIT_CONSTANT, 0.1, false, 0, 1, format, layer, "c");
	layout_add(l, INIT_ONES, 0, false, 0, 1, format, layer, "L_multiplier");
	layout_add(l, INIT_NORMAL, first, false, W, 1, format, layer, "mlp.0.weight");
	layout_add(l, INIT_NORMAL, first, false, 0, W, format, layer, "mlp.0.bias");
	layout_add(l, INIT_NORMAL, second, false, H, W, format, layer, "mlp.2.weight");
	layout_add(l, INIT_NORMAL, second, false, 0, H, format, layer, "mlp.2.bias");
}

/* Knots out of reach, or below the least x of another key, which here is above 0.02 for positions up to thousands; and
 * a threshold between positions. */
static void avoid_kinks(const struct place *p, real *shared, real *layer)
{
	struct offsets at = offsets_of(p);
	double threshold = floor(fabs((double)layer[OWN_MULTIPLIER]) * init_length(p)) + 0.4;
	(void)shared;
	layer[OWN_C] += (real)copysign(0.3, (double)layer[OWN_C]);
	layer[OWN_MULTIPLIER] = (real)copysign(threshold / init_length(p), (double)layer[OWN_MULTIPLIER]);
	for (int n = 0; n < at.W; n++) {
		double knot = n % 4 == 3 ? n % 8 - 5 : 0.008 + 0.004 * n / at.W;
		layer[OWN_W1 + n] += (real)copysign(0.5, (double)layer[OWN_W1 + n]);
		layer[at.b1 + n] = (real)(-knot * (double)layer[OWN_W1 + n]);
	}
}

/* ---- Once a layer. ---- */

/* Unit n of the hidden layer turns on or off at knot rank[n] of the sorted ones; piece s lies between the knots s - 1
 * and s. A unit that does not turn has a knot at infinity. */
struct pieces {
	double knot[WIDTH_LIMIT];
	int unit[WIDTH_LIMIT], rank[WIDTH_LIMIT];
};

static void find_pieces(const struct offsets *at, const real *own, struct pieces *to)
{
	for (int n = 0; n < at->W; n++) {
		double w1 = (double)own[OWN_W1 + n], b1 = (double)own[at->b1 + n];
		double knot = w1 == 0 ? INFINITY : -b1 / w1;
		int i = n;
		for (; i > 0 && to->knot[i - 1] > knot; i--) {
			to->knot[i] = to->knot[i - 1];
			to->unit[i] = to->unit[i - 1];
		}
		to->knot[i] = knot;
		to->unit[i] = n;
	}
	for (int i = 0; i < at->W; i++)
		to->rank[to->unit[i]] = i;
}

static bool is_active(const struct offsets *at, const real *own, const struct pieces *pieces, int n, int piece)
{
	real w1 = own[OWN_W1 + n];
	return w1 == 0 ? own[at->b1 + n] > 0 : (piece > pieces->rank[n]) == (w1 > 0);
}

static void prepare_head(const struct offsets *at, const real *own, const struct pieces *pieces, int head, real *table)
{
	const real *w2 = own + at->w2 + head * at->W;
	for (int n = 0; n < at->W; n++)
		table[TABLE_KNOT + n] = (real)pieces->knot[n];
	for (int s = 0; s <= at->W; s++) {
		double slope = 0, intercept = (double)own[at->b2 + head];
		for (int n = 0; n < at->W; n++) {
			if (!is_active(at, own, pieces, n, s))
				continue;
			slope += (double)w2[n] * (double)own[OWN_W1 + n];
			intercept += (double)w2[n] * (double)own[at->b1 + n];
		}
		table[at->slope + s] = (real)slope;
		table[at->intercept + s] = (real)intercept;
	}
}

static double psi_of(double c, double distance)
{
	return log1p(c * distance);
}

static void prepare(const struct place *p, struct place_parameters own, struct prepared *to)
{
	struct offsets at = offsets_of(p);
	struct pieces pieces;
	double c = fabs((double)own.layer[OWN_C]), multiplier = fabs((double)own.layer[OWN_MULTIPLIER]);
	find_pieces(&at, own.layer, &pieces);
	for (size_t r = 0; r < at.span; r++)
		to->table[(size_t)at.psi + r] = (real)psi_of(c, (double)r);
	for (int h = 0; h < p->H; h++) {
		real *table = to->table + (size_t)h * table_reals(p);
		table[TABLE_C] = (real)c;
		table[TABLE_THRESHOLD] = (real)(multiplier * init_length(p));
		prepare_head(&at, own.layer, &pieces, h, table);
		if (h)
			memcpy(table + at.psi, to->table + at.psi, at.span * sizeof *table);
	}
}

/* From the sums over a piece's pairs of d x, which stand for its slope, and of d, for its intercept. */
static void head_back(const struct offsets *at, const real *own, const struct pieces *pieces, int head,
		      const real *d_table, real *to)
{
	for (int n = 0; n < at->W; n++) {
		double d_slope = 0, d_intercept = 0;
		int w2 = at->w2 + head * at->W + n;
		for (int s = 0; s <= at->W; s++) {
			if (!is_active(at, own, pieces, n, s))
				continue;
			d_slope += (double)d_table[at->slope + s];
			d_intercept += (double)d_table[at->intercept + s];
		}
		to[w2] += (real)((double)own[OWN_W1 + n] * d_slope + (double)own[at->b1 + n] * d_intercept);
		to[OWN_W1 + n] += (real)((double)own[w2] * d_slope);
		to[at->b1 + n] += (real)((double)own[w2] * d_intercept);
	}
	double d_bias = 0;
	for (int s = 0; s <= at->W; s++)
		d_bias += (double)d_table[at->intercept + s];
	to[at->b2 + head] += (real)d_bias;
}

static double sign_of(real x)
{
	return x > 0 ? 1 : x < 0 ? -1 : 0;
}

static void prepare_back(const struct place *p, struct place_parameters own, const struct prepared *made,
			 const real *d_table, const double *d_inv_freq, double d_attention_factor,
			 struct place_gradients to)
{
	struct offsets at = offsets_of(p);
	struct pieces pieces;
	double c = fabs((double)own.layer[OWN_C]), d_c = 0, d_threshold = 0;
	(void)made, (void)d_inv_freq, (void)d_attention_factor;
	find_pieces(&at, own.layer, &pieces);
	for (int h = 0; h < p->H; h++) {
		const real *d = d_table + (size_t)h * table_reals(p);
		head_back(&at, own.layer, &pieces, h, d, to.layer);
		d_c += (double)d[TABLE_C];
		d_threshold += (double)d[TABLE_THRESHOLD];
		for (size_t r = 0; r < at.span; r++)
			d_c += (double)d[(size_t)at.psi + r] * (double)r / (c * (double)r + 1);
	}
	to.layer[OWN_C] += (real)(d_c * sign_of(own.layer[OWN_C]));
	to.layer[OWN_MULTIPLIER] += (real)(d_threshold * init_length(p) * sign_of(own.layer[OWN_MULTIPLIER]));
}

/* ---- A tile. ---- */

/* psi of a tile's distances: a line that its rows are stretches of, or a row at a time. */
struct psi {
	bool in_line;
	struct distance_line line;
	real value[DISTANCE_LINE];
};

static real psi_at(const struct offsets *at, const struct tile *t, double distance)
{
	int r = distance_place(at->span, distance);
	return r >= 0 ? t->table[at->psi + r] : (real)psi_of((double)t->table[TABLE_C], distance);
}

static void psi_start(const struct offsets *at, const struct tile *t, struct psi *psi)
{
	psi->in_line = distance_line(t, &psi->line);
	int seen = psi->in_line ? distance_line_seen(&psi->line) : 0;
	for (int i = 0; i < seen; i++)
		psi->value[i] = psi_at(at, t, psi->line.greatest - i);
}

/* Where the values of row r's columns begin. */
static int psi_row(const struct offsets *at, const struct tile *t, int r, struct psi *psi)
{
	if (psi->in_line)
		return distance_line_row(t, r);
	for (int j = t->low[r]; j < t->high[r]; j++)
		psi->value[j] = psi_at(at, t, t->query_positions[r] - t->key_positions[j]);
	return 0;
}

/* A row's normaliser, and what psi is at the knots: where its pieces end. */
struct normaliser {
	double position, value;
	real knot[WIDTH_LIMIT];
};

static void normaliser_of(const struct place *p, const struct offsets *at, const struct tile *t, int r,
			  struct normaliser *n)
{
	const double *position = t->query_alone ? t->query_alone : t->query_positions;
	n->position = fmax((double)t->table[TABLE_THRESHOLD], position[r]);
	n->value = psi_of((double)t->table[TABLE_C], n->position) + p->method->value[EPS].number;
	for (int i = 0; i < at->W; i++)
		n->knot[i] = t->table[TABLE_KNOT + i] * (real)n->value;
}

/* Columns [from, to) of a row that lie on one piece. */
struct run {
	int piece, from, to;
};

static struct run run_at(const struct offsets *at, const struct normaliser *n, const real *psi, int from, int high)
{
	struct run run = { 0, from, from + 1 };
	for (int i = 0; i < at->W; i++)
		run.piece += psi[from] >= n->knot[i];
	real least = run.piece ? n->knot[run.piece - 1] : (real)-INFINITY;
	real most = run.piece < at->W ? n->knot[run.piece] : (real)INFINITY;
	while (run.to < high && psi[run.to] >= least && psi[run.to] < most)
		run.to++;
	return run;
}

static void add_run(int count, real scale, real slope, real intercept, const real *restrict psi, real *restrict logit)
{
	for (int j = 0; j < count; j++)
		logit[j] = logit[j] * scale + (slope * psi[j] + intercept);
}

static void logits(const struct place *p, const struct tile *t, real *logit)
{
	struct offsets at = offsets_of(p);
	struct normaliser n;
	struct psi psi;
	psi_start(&at, t, &psi);
	for (int r = 0; r < t->rows; r++, logit += TILE_STRIDE) {
		const real *value = psi.value + psi_row(&at, t, r, &psi);
		normaliser_of(p, &at, t, r, &n);
		for (int j = t->low[r]; j < t->high[r];) {
			struct run run = run_at(&at, &n, value, j, t->high[r]);
			real slope = t->table[at.slope + run.piece] / (real)n.value;
			add_run(run.to - j, t->scale, slope, t->table[at.intercept + run.piece], value + j, logit + j);
			j = run.to;
		}
	}
}

/* Sums over a tile, in double. */
struct sums {
	double slope[WIDTH_LIMIT + 1], intercept[WIDTH_LIMIT + 1], c, threshold;
	double psi[DISTANCE_LINE]; /* as struct psi has the values */
};

/* A run's d to the sums of its piece and of each psi; returns the sum of d psi. */
static double run_back(const struct run *run, real scale, double slope, const real *restrict psi,
		       real *restrict d_logit, double *restrict d_psi, struct sums *sums, double normaliser)
{
	double sum = 0, sum_psi = 0;
	for (int j = run->from; j < run->to; j++) {
		double d = (double)d_logit[j];
		sum += d;
		sum_psi += d * (double)psi[j];
		d_psi[j] += d * slope;
		d_logit[j] *= scale;
	}
	sums->intercept[run->piece] += sum;
	sums->slope[run->piece] += sum_psi / normaliser;
	return sum_psi;
}

static void normaliser_back(const struct tile *t, const struct normaliser *n, double d_value, struct sums *sums)
{
	double c = (double)t->table[TABLE_C], inner = c * n->position + 1;
	sums->c += d_value * n->position / inner;
	if (n->position == (double)t->table[TABLE_THRESHOLD])
		sums->threshold += d_value * c / inner;
}

static void row_back(const struct offsets *at, const struct tile *t, int r, const struct normaliser *n,
		     const real *psi, real *d_logit, double *d_psi, struct sums *sums)
{
	double d_value = 0;
	for (int j = t->low[r]; j < t->high[r];) {
		struct run run = run_at(at, n, psi, j, t->high[r]);
		double slope = (double)t->table[at->slope + run.piece] / n->value;
		d_value -= slope / n->value *
			   run_back(&run, t->scale, slope, psi, d_logit, d_psi, sums, n->value);
		j = run.to;
	}
	normaliser_back(t, n, d_value, sums);
}

/* The gradient of psi at a distance. */
static void psi_back(const struct offsets *at, const struct tile *t, double distance, double d, struct sums *sums,
		     real *d_table)
{
	int r = distance_place(at->span, distance);
	if (r >= 0)
		d_table[at->psi + r] += (real)d;
	else
		sums->c += d * distance / ((double)t->table[TABLE_C] * distance + 1);
}

static void psi_row_back(const struct offsets *at, const struct tile *t, int r, struct sums *sums, real *d_table)
{
	for (int j = t->low[r]; j < t->high[r]; j++) {
		psi_back(at, t, t->query_positions[r] - t->key_positions[j], sums->psi[j], sums, d_table);
		sums->psi[j] = 0;
	}
}

static void add_sums(const struct offsets *at, const struct sums *sums, real *d_table)
{
	d_table[TABLE_C] += (real)sums->c;
	d_table[TABLE_THRESHOLD] += (real)sums->threshold;
	for (int s = 0; s <= at->W; s++) {
		d_table[at->slope + s] += (real)sums->slope[s];
		d_table[at->intercept + s] += (real)sums->intercept[s];
	}
}

static void logits_back(const struct place *p, const struct tile *t, const real *raw, real *d_logit,
			struct tile_gradient g)
{
	struct offsets at = offsets_of(p);
	struct normaliser n;
	struct psi psi;
	struct sums sums = { 0 };
	(void)raw;
	psi_start(&at, t, &psi);
	for (int r = 0; r < t->rows; r++, d_logit += TILE_STRIDE) {
		int start = psi_row(&at, t, r, &psi);
		normaliser_of(p, &at, t, r, &n);
		row_back(&at, t, r, &n, psi.value + start, d_logit, sums.psi + start, &sums);
		if (!psi.in_line)
			psi_row_back(&at, t, r, &sums, g.table);
	}
	int seen = psi.in_line ? distance_line_seen(&psi.line) : 0;
	for (int i = 0; i < seen; i++)
		psi_back(&at, t, psi.line.greatest - i, sums.psi[i], &sums, g.table);
	add_sums(&at, &sums, g.table);
}

/* ---- What a user sees. ---- */

static double bias_of(const struct place *p, const real *own, int head, double query, double distance)
{
	struct offsets at = offsets_of(p);
	double c = fabs((double)own[OWN_C]), threshold = fabs((double)own[OWN_MULTIPLIER]) * init_length(p);
	double x = psi_of(c, distance) / (psi_of(c, fmax(threshold, query)) + p->method->value[EPS].number);
	double sum = (double)own[at.b2 + head];
	for (int n = 0; n < at.W; n++)
		sum += (double)own[at.w2 + head * at.W + n] *
		       fmax(0, (double)own[OWN_W1 + n] * x + (double)own[at.b1 + n]);
	return sum;
}

/* The biases of the last query of training and of this length, from its own key to the first in sixteenths. */
static struct err report_biases(const struct inspection *in, const char *name, int last, struct report *to)
{
	enum { PARTS = 16 };
	const struct place *p = in->place;
	double *distance, *bias;
	char heading[32];
	report_table(to, name, "", PARTS + 1);
	TRY(report_column(to, "distance", "distance", 0, &distance));
	snprintf(heading, sizeof heading, "query %d, head", last);
	TRY(report_column(to, "bias", heading, p->layers * p->H, &bias));
	for (int i = 0; i <= PARTS; i++) {
		distance[i] = floor((double)last * i / PARTS);
		for (int h = 0; h < p->layers * p->H; h++)
			bias[i * p->layers * p->H + h] =
				bias_of(p, in->own[h / p->H].layer, h % p->H, last, distance[i]);
	}
	return OK;
}

static struct err inspect(const struct inspection *in, struct report *to)
{
	const struct place *p = in->place;
	double *c, *threshold;
	if (!in->own) {
		report_note(to, "The threshold begins at %g tokens and c at 0.1; these and the MLP are learned: give a "
				"model to see the biases.", init_length(p));
		return OK;
	}
	report_table(to, NULL, "layer", p->layers);
	TRY(report_column(to, "c", "c", 0, &c));
	TRY(report_column(to, "thresholds", "threshold", 0, &threshold));
	for (int layer = 0; layer < p->layers; layer++) {
		c[layer] = fabs((double)in->own[layer].layer[OWN_C]);
		threshold[layer] = fabs((double)in->own[layer].layer[OWN_MULTIPLIER]) * init_length(p);
	}
	TRY(report_biases(in, "trained_biases", p->train_length - 1, to));
	TRY(report_biases(in, "biases", p->T - 1, to));
	report_note(to, "Nats that a head adds at a distance for the last query of training and of this length; the "
			"heads of the first layer come first.");
	return OK;
}

const struct position position_fire = {
	.entry = { .name = "fire", .help = "a learned function a head of the distance over the query's position",
		   .paper = "Li et al. 2023, 2310.04418", .options = options },
	.declare = declare,
	.avoid_kinks = avoid_kinks,
	.inspect = inspect,
	.table_reals = table_reals,
	.prepare = prepare,
	.prepare_back = prepare_back,
	.logits = logits,
	.logits_back = logits_back,
};
