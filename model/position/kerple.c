#include "model/position/distance_bias.h"
#include "model/position/inspection.h"

#include <math.h>
#include <stdio.h>

/* KERPLE (Chi et al. 2022, 2205.09921, section 4): logit = scale q.k + bias(i - j), where each head of each layer
 * learns a and p of
 *	log:    bias(r) = -p ln(1 + a r)
 *	power:  bias(r) = -a r^p
 * As in the authors' code both are kept at or above 0.01, and p of the power kernel at or below 2, by projection: an
 * update that left the domain is put back, and the gradient is that of the values within. */

enum { KERNEL };
enum { LOG, POWER };
static const struct option options[] = {
	[KERNEL] = { .name = "kernel", .kind = OPTION_CHOICE, .initial = "log", .choices = "log|power",
		     .results = true, .help = "log: -p ln(1 + a r); power: -a r^p at a distance r" },
	{ 0 },
};

#define LEAST 0.01
#define MOST_POWER 2.0

static void declare(const struct model_options *o, struct layout *l, int layer)
{
	if (layer < 0)
		return;
	layout_add(l, INIT_UNIFORM, 1, false, 0, (int)o->heads, "model.layers.%d.self_attn.position.a", layer);
	layout_add(l, INIT_UNIFORM, 2, false, 0, (int)o->heads, "model.layers.%d.self_attn.position.p", layer);
}

static bool is_power(const struct place *p)
{
	return p->method->value[KERNEL].integer == POWER;
}

/* NaN stays NaN, so that what watches over training sees it. */
static real within_a(real a)
{
	return a < (real)LEAST ? (real)LEAST : a;
}

static real within_p(const struct place *p, real power)
{
	if (is_power(p) && power > (real)MOST_POWER)
		return (real)MOST_POWER;
	return within_a(power);
}

static void constrain(const struct place *p, real *shared, real *layer)
{
	(void)shared;
	for (int h = 0; h < p->H; h++) {
		layer[h] = within_a(layer[h]);
		layer[p->H + h] = within_p(p, layer[p->H + h]);
	}
}

static double bias_of(const struct place *p, double a, double power, double distance)
{
	return is_power(p) ? -a * pow(distance, power) : -power * log1p(a * distance);
}

/* Derivatives of the bias. That of 0^p in p is 0. */
static void slopes_of(const struct place *p, double a, double power, double distance, double *by_a, double *by_p)
{
	if (!is_power(p)) {
		*by_a = -power * distance / (1 + a * distance);
		*by_p = -log1p(a * distance);
		return;
	}
	*by_a = -pow(distance, power);
	*by_p = distance > 0 ? a * *by_a * log(distance) : 0;
}

/* A head's share of the table: a and p within their domain, then the bias by distance. */
enum { TABLE_A, TABLE_P, TABLE_BIAS };

static size_t table_reals(const struct place *p)
{
	return TABLE_BIAS + distance_span(p);
}

static void prepare(const struct place *p, struct place_parameters own, struct prepared *to)
{
	size_t span = distance_span(p);
	for (int h = 0; h < p->H; h++) {
		real *table = to->table + (size_t)h * (TABLE_BIAS + span);
		table[TABLE_A] = within_a(own.layer[h]);
		table[TABLE_P] = within_p(p, own.layer[p->H + h]);
		for (size_t r = 0; r < span; r++)
			table[TABLE_BIAS + r] =
				(real)bias_of(p, (double)table[TABLE_A], (double)table[TABLE_P], (double)r);
	}
}

static void prepare_back(const struct place *p, struct place_parameters own, const struct prepared *made,
			 const real *d_table, const double *d_inv_freq, double d_attention_factor,
			 struct place_gradients to)
{
	size_t span = distance_span(p);
	(void)own, (void)d_inv_freq, (void)d_attention_factor;
	for (int h = 0; h < p->H; h++) {
		const real *table = made->table + (size_t)h * (TABLE_BIAS + span);
		const real *d = d_table + (size_t)h * (TABLE_BIAS + span);
		double d_a = (double)d[TABLE_A], d_p = (double)d[TABLE_P], by_a, by_p;
		for (size_t r = 0; r < span; r++) {
			slopes_of(p, (double)table[TABLE_A], (double)table[TABLE_P], (double)r, &by_a, &by_p);
			d_a += (double)d[TABLE_BIAS + r] * by_a;
			d_p += (double)d[TABLE_BIAS + r] * by_p;
		}
		to.layer[h] += (real)d_a;
		to.layer[p->H + h] += (real)d_p;
	}
}

static real bias(const struct place *p, const struct tile *t, const void *own, double distance)
{
	int r = distance_place(*(const size_t *)own, distance);
	return r >= 0 ? t->table[TABLE_BIAS + r] :
			(real)bias_of(p, (double)t->table[TABLE_A], (double)t->table[TABLE_P], distance);
}

static void bias_back(const struct place *p, const struct tile *t, double distance, double d_bias,
		      struct tile_gradient g)
{
	int r = distance_place(distance_span(p), distance);
	double by_a, by_p;
	if (r >= 0) {
		g.table[TABLE_BIAS + r] += (real)d_bias;
		return;
	}
	slopes_of(p, (double)t->table[TABLE_A], (double)t->table[TABLE_P], distance, &by_a, &by_p);
	g.table[TABLE_A] += (real)(d_bias * by_a);
	g.table[TABLE_P] += (real)(d_bias * by_p);
}

static void logits(const struct place *p, const struct tile *t, real *logit)
{
	size_t span = distance_span(p);
	distance_bias(p, t, bias, &span, logit);
}

static void logits_back(const struct place *p, const struct tile *t, const real *raw, real *d_logit,
			struct tile_gradient g)
{
	(void)raw;
	distance_bias_back(p, t, bias_back, d_logit, g);
}

/* Each head's numbers, a column a layer. */
static struct err report_heads(const struct inspection *in, struct report *to)
{
	const struct place *p = in->place;
	double *a, *power, *trained, *longest, distance = zones_longest_distance(in->zones);
	char heading[32];
	int layers = p->layers;
	report_table(to, NULL, "head", p->H);
	TRY(report_column(to, "a", "a, layer", layers, &a));
	TRY(report_column(to, "p", "p, layer", layers, &power));
	snprintf(heading, sizeof heading, "at %d, layer", p->train_length - 1);
	TRY(report_column(to, "trained_penalties", heading, layers, &trained));
	snprintf(heading, sizeof heading, "at %.0f, layer", distance);
	TRY(report_column(to, "penalties", heading, layers, &longest));
	for (int h = 0; h < p->H; h++)
		for (int layer = 0; layer < layers; layer++) {
			int at = h * layers + layer;
			a[at] = (double)within_a(in->own[layer].layer[h]);
			power[at] = (double)within_p(p, in->own[layer].layer[p->H + h]);
			trained[at] = -bias_of(p, a[at], power[at], p->train_length - 1);
			longest[at] = -bias_of(p, a[at], power[at], distance);
		}
	return OK;
}

static struct err inspect(const struct inspection *in, struct report *to)
{
	const struct place *p = in->place;
	double *bias;
	if (!in->own) {
		report_note(to, "a (at first uniform below 1) and p (below 2) of each head and layer are learned: give "
				"a model to see them.");
		return OK;
	}
	TRY(report_heads(in, to));
	report_table(to, NULL, "layer and head", p->layers * p->H);
	TRY(report_column(to, "bias", "", p->T, &bias));
	for (int row = 0; row < p->layers * p->H; row++) {
		const real *own = in->own[row / p->H].layer + row % p->H;
		double a = (double)within_a(own[0]), power = (double)within_p(p, own[p->H]);
		for (int r = 0; r < p->T; r++)
			bias[(size_t)row * (size_t)p->T + (size_t)r] = bias_of(p, a, power, r);
	}
	report_note(to, "Nats that a key loses at the longest distance of training and of this length.");
	return OK;
}

const struct position position_kerple = {
	.entry = { .name = "kerple", .help = "a learned penalty a head, logarithm or power of the distance",
		   .paper = "Chi et al. 2022, 2205.09921", .options = options },
	.declare = declare,
	.constrain = constrain,
	.inspect = inspect,
	.table_reals = table_reals,
	.prepare = prepare,
	.prepare_back = prepare_back,
	.logits = logits,
	.logits_back = logits_back,
};
