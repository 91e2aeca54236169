#include "model/position/inspection.h"

#include "model/base/vec.h"

#include <math.h>
#include <string.h>

/* CoPE, contextual positions (Golovneva et al. 2024, 2405.18719): gates g_ij = sigmoid(q_i.k_j) count keys,
 * p_ij = sum of g_it over j <= t <= i that row i sees, at most npos - 1, and q_i.e(p_ij) is added to q_i.k_j, where
 * e(p) lies on the line between rows floor(p) and ceil(p) of a table e [npos][D] of each layer, the same for all heads
 * and zero at first. The paper's formula has the gates of q.k; its listing and its repository of q.k / sqrt(D). The
 * repository divides q.k + q.e by sqrt(D), the listing q.k alone. Positions of tokens are not looked at. */

enum { NPOS, GATES, DIVIDE };
enum { SCALED, UNSCALED };
static const struct option options[] = {
	[NPOS] = { .name = "npos", .kind = OPTION_INTEGER, .initial = "0", .least = 0, .most = 1048576,
		   .unit = "positions", .results = true,
		   .help = "rows of the table, the last of which takes all positions beyond; 0: train_length + 1" },
	[GATES] = { .name = "gates", .kind = OPTION_CHOICE, .initial = "scaled", .choices = "scaled|unscaled",
		    .results = true, .help = "the sigmoid is of q.k / sqrt(D), as in the authors' code, or of q.k" },
	[DIVIDE] = { .name = "divide", .kind = OPTION_SWITCH, .initial = "on", .results = true,
		     .help = "q.e is divided by sqrt(D) too, as in the authors' code" },
	{ 0 },
};

static int rows_of(const struct method *m, int64_t train_length)
{
	int64_t npos = m->value[NPOS].integer;
	return (int)(npos ? npos : train_length + 1);
}

static struct err check(const struct model_options *o, int D)
{
	(void)D;
	if (rows_of(&o->encoding, o->train_length) > 1)
		return OK;
	return err_usage("Give 2 or more, or 0 for train_length + 1.",
			 "cope_npos: a table of 1 position gives all keys the same logit");
}

static int npos_of(const struct place *p)
{
	return rows_of(p->method, p->train_length);
}

static void declare(const struct model_options *o, struct layout *l, int layer)
{
	if (layer >= 0)
		layout_add(l, INIT_ZEROS, 0, false, rows_of(&o->encoding, o->train_length),
			   (int)(o->width / o->heads), "model.layers.%d.self_attn.position.table", layer);
}

static size_t table_reals(const struct place *p)
{
	return (size_t)npos_of(p) * (size_t)p->D;
}

static void prepare(const struct place *p, struct place_parameters own, struct prepared *to)
{
	for (int h = 0; h < p->H; h++)
		memcpy(to->table + (size_t)h * table_reals(p), own.layer, table_reals(p) * sizeof(real));
}

static void prepare_back(const struct place *p, struct place_parameters own, const struct prepared *made,
			 const real *d_table, const double *d_inv_freq, double d_attention_factor,
			 struct place_gradients to)
{
	(void)own, (void)made, (void)d_inv_freq, (void)d_attention_factor;
	for (int h = 0; h < p->H; h++)
		vec_add(to.layer, d_table + (size_t)h * table_reals(p), (int)table_reals(p));
}

/* Sums along a row: in the carry the gates of the keys met and (backward) the gradients of their positions, in `saved`
 * the gates of all. Each stands as the two parts of a number of twice the digits. */
enum { COUNTED, GRADIENT = 2, CARRY_REALS = 4, SAVED_REALS = 2 };

static double sum_of(const real *parts)
{
	return (double)parts[0] + (double)parts[1];
}

static void put_sum(real *parts, double sum)
{
	parts[0] = (real)sum;
	parts[1] = (real)(sum - (double)parts[0]);
}

/* A row's position on its way along the table, one row up or down at most a key: q.e of the two rows it is between, and
 * (backward) what their gradients have come to. */
struct walk {
	const struct tile *t;
	const real *q;
	int npos, lower, upper;
	double share; /* of the upper one */
	double at_lower, at_upper, d_lower, d_upper;
};

static struct walk walk_along(const struct place *p, const struct tile *t, int r)
{
	return (struct walk){ .t = t, .q = t->q + r * t->q_stride, .npos = npos_of(p), .lower = -1, .upper = -1 };
}

static double at_row(const struct walk *w, int row)
{
	return (double)vec_dot(w->q, w->t->table + (size_t)row * (size_t)w->t->D, w->t->D);
}

static void look(struct walk *w, int lower, int upper)
{
	double at_lower = w->at_lower, at_upper = w->at_upper;
	w->at_lower = lower == w->upper ? at_upper : at_row(w, lower);
	w->at_upper = upper == lower ? w->at_lower : upper == w->lower ? at_lower : at_row(w, upper);
	w->lower = lower;
	w->upper = upper;
}

/* Does the position lie between other rows than before? */
static bool walk_to(struct walk *w, double position, int *lower, int *upper)
{
	double last = w->npos - 1;
	position = position < last ? position : last;
	*lower = (int)position;
	*upper = *lower + 1 < w->npos ? *lower + 1 : *lower;
	w->share = position - *lower;
	return *lower != w->lower;
}

static double term(struct walk *w, double position)
{
	int lower, upper;
	if (walk_to(w, position, &lower, &upper))
		look(w, lower, upper);
	return w->at_lower + w->share * (w->at_upper - w->at_lower);
}

/* Adds a row's share to the gradients of q and of the table. */
static void pass(const struct walk *w, int row, double d, real *d_q, struct tile_gradient g)
{
	int D = w->t->D;
	if (row < 0 || d == 0)
		return;
	vec_axpy(d_q, (real)d, w->t->table + (size_t)row * (size_t)D, D);
	vec_axpy(g.table + (size_t)row * (size_t)D, (real)d, w->q, D);
}

/* What has been gathered of rows that the position leaves is passed on. */
static void leave(struct walk *w, int lower, int upper, real *d_q, struct tile_gradient g)
{
	double d_lower = w->d_lower, d_upper = w->d_upper;
	bool up = lower == w->upper, down = upper == w->lower;
	w->d_lower = up ? d_upper : 0;
	w->d_upper = down ? d_lower : 0;
	if (!down)
		pass(w, w->lower, d_lower, d_q, g);
	if (!up)
		pass(w, w->upper, d_upper, d_q, g);
}

/* d is the gradient of term(position); returns that of the position: 0 at the end of the table, where both rows are
 * one. */
static double term_back(struct walk *w, double position, double d, real *d_q, struct tile_gradient g)
{
	int lower, upper;
	if (walk_to(w, position, &lower, &upper)) {
		leave(w, lower, upper, d_q, g);
		look(w, lower, upper);
	}
	w->d_lower += (1 - w->share) * d;
	w->d_upper += w->share * d;
	return d * (w->at_upper - w->at_lower);
}

static real gate_scale(const struct place *p, const struct tile *t)
{
	return p->method->value[GATES].integer == SCALED ? t->scale : 1;
}

/* What q.e is multiplied by. */
static double term_scale(const struct place *p, const struct tile *t)
{
	return p->method->value[DIVIDE].integer ? (double)t->scale : 1;
}

/* Gates of a row's keys that it sees, at their columns. */
static void gates(const struct place *p, const struct tile *t, int r, const real *raw, real *gate)
{
	real scale = gate_scale(p, t);
	int low = t->low[r];
	for (int j = low; j < t->high[r]; j++)
		gate[j] = raw[j] * scale;
	vec_sigmoid(gate + low, gate + low, t->high[r] - low);
}

/* From the row's own key down: positions are what has been counted. */
static void row_down(const struct place *p, const struct tile *t, int r, const real *gate, real *logit)
{
	double sum = sum_of(t->carry + CARRY_REALS * r + COUNTED), scale = term_scale(p, t);
	struct walk w = walk_along(p, t, r);
	for (int j = t->high[r] - 1; j >= t->low[r]; j--) {
		sum += (double)gate[j];
		logit[j] = t->scale * logit[j] + (real)(scale * term(&w, sum));
	}
	put_sum(t->carry + CARRY_REALS * r + COUNTED, sum);
	put_sum(t->saved + SAVED_REALS * r, sum);
}

/* From the first key up: positions are what is left of the whole. */
static void row_up(const struct place *p, const struct tile *t, int r, const real *gate, real *logit)
{
	double left = sum_of(t->saved + SAVED_REALS * r) - sum_of(t->carry + CARRY_REALS * r + COUNTED);
	double scale = term_scale(p, t);
	struct walk w = walk_along(p, t, r);
	for (int j = t->low[r]; j < t->high[r]; j++) {
		logit[j] = t->scale * logit[j] + (real)(scale * term(&w, left > 0 ? left : 0));
		left -= (double)gate[j];
	}
}

static void logits(const struct place *p, const struct tile *t, real *logit)
{
	real gate[TILE_COLUMNS];
	for (int r = 0; r < t->rows; r++, logit += TILE_STRIDE) {
		gates(p, t, r, logit, gate);
		if (t->backward)
			row_up(p, t, r, gate, logit);
		else
			row_down(p, t, r, gate, logit);
	}
}

/* A gate is in the positions of its own key and of all before it. */
static void row_back(const struct place *p, const struct tile *t, int r, const real *gate, real *d_logit,
		     struct tile_gradient g)
{
	real *carry = t->carry + CARRY_REALS * r, *d_q = g.q + r * g.q_stride;
	double counted = sum_of(carry + COUNTED), whole = sum_of(t->saved + SAVED_REALS * r);
	double d_position = sum_of(carry + GRADIENT), scale = term_scale(p, t), of_gate = (double)gate_scale(p, t);
	struct walk w = walk_along(p, t, r);
	for (int j = t->low[r]; j < t->high[r]; j++) {
		double left = whole - counted, own = (double)gate[j];
		d_position += term_back(&w, left > 0 ? left : 0, scale * (double)d_logit[j], d_q, g);
		d_logit[j] = t->scale * d_logit[j] + (real)(d_position * of_gate * own * (1 - own));
		counted += own;
	}
	leave(&w, -1, -1, d_q, g);
	put_sum(carry + COUNTED, counted);
	put_sum(carry + GRADIENT, d_position);
}

static void logits_back(const struct place *p, const struct tile *t, const real *raw, real *d_logit,
			struct tile_gradient g)
{
	real gate[TILE_COLUMNS];
	for (int r = 0; r < t->rows; r++, raw += TILE_STRIDE, d_logit += TILE_STRIDE) {
		gates(p, t, r, raw, gate);
		row_back(p, t, r, gate, d_logit, g);
	}
}

/* Of each row of a layer's table its RMS, and that of its difference from the row before. */
static void fill_rows(const struct place *p, int layer, const real *own, double *rms, double *step)
{
	for (int n = 0; n < npos_of(p); n++, own += p->D) {
		double squares = 0, between = 0;
		for (int d = 0; d < p->D; d++) {
			double before = n ? (double)own[d - p->D] : NAN;
			squares += (double)own[d] * (double)own[d];
			between += ((double)own[d] - before) * ((double)own[d] - before);
		}
		rms[n * p->layers + layer] = sqrt(squares / p->D);
		step[n * p->layers + layer] = sqrt(between / p->D);
	}
}

static struct err inspect(const struct inspection *in, struct report *to)
{
	const struct place *p = in->place;
	double *rms, *step, *shape;
	if (!in->own) {
		report_table(to, NULL, "axis", 2);
		TRY(report_column(to, "shape", "", 0, &shape));
		shape[0] = npos_of(p);
		shape[1] = p->D;
		report_note(to, "A learned table of %d positions of %d a layer: give a model to see it.", npos_of(p),
			    p->D);
		report_note(to, "Each key counts for up to 1 position, as the text decides; %d or more share the last "
				"row.", npos_of(p) - 1);
		return OK;
	}
	report_table(to, NULL, "position", npos_of(p));
	TRY(report_column(to, "rms", "RMS of the row, layer", p->layers, &rms));
	TRY(report_column(to, "steps", "RMS from the row before", p->layers, &step));
	for (int layer = 0; layer < p->layers; layer++)
		fill_rows(p, layer, in->own[layer].layer, rms, step);
	report_note(to, "A query q gives position n the logit q.e_n: what rows say depends on the query.");
	return OK;
}

const struct position position_cope = {
	.entry = { .name = "cope", .help = "gates count the keys to positions, which pick learned vectors",
		   .paper = "Golovneva et al. 2024, 2405.18719", .options = options },
	.check = check,
	.any_order = true,
	.declare = declare,
	.inspect = inspect,
	.table_reals = table_reals,
	.prepare = prepare,
	.prepare_back = prepare_back,
	.carry_reals = CARRY_REALS,
	.saved_reals = SAVED_REALS,
	.logits_back_reads_raw = true,
	.logits = logits,
	.logits_back = logits_back,
};
