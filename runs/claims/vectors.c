#include "runs/claims/computed.h"

#include "model/base/rng.h"
#include "model/scores.h"

#include <math.h>
#include <stdlib.h>

/* Rounding of a few products of reals. */
static double rounding(void)
{
	return sizeof(real) == sizeof(double) ? 1e-13 : 2e-5;
}

static void *take(size_t count, size_t item)
{
	void *memory = calloc(count, item);
	BUG_IF(!memory, "no memory for %zu items", count);
	return memory;
}
#define TAKE(type, count) ((type *)take((count), sizeof(type)))

static void fill_normal(uint64_t index, real *x, int count)
{
	struct rng rng = rng_at(1, STREAM_TUNE, index);
	for (int i = 0; i < count; i++)
		x[i] = (real)rng_normal(&rng);
}

static double norm(const real *x, int D)
{
	double sum = 0;
	for (int d = 0; d < D; d++)
		sum += (double)x[d] * (double)x[d];
	return sqrt(sum);
}

/* Norm after the rotation over norm before, of a vector of its own at each position. */
enum { NORM_D = 128 };
static double turned(const struct place *p, const double *inv_freq, double attention_factor, double position)
{
	real from[NORM_D], to[NORM_D], cosine[NORM_D / 2], sine[NORM_D / 2];
	fill_normal((uint64_t)position, from, NORM_D);
	for (int m = 0; m < NORM_D / 2; m++) {
		cosine[m] = (real)(attention_factor * cos(position * inv_freq[m]));
		sine[m] = (real)(attention_factor * sin(position * inv_freq[m]));
	}
	struct rotation r = { .place = p, .rows = 1, .D = NORM_D, .F = NORM_D / 2, .side = SIDE_QUERY,
			      .positions = &position, .inv_freq = inv_freq, .attention_factor = attention_factor,
			      .cosine = cosine, .sine = sine };
	p->position->rotate(&r, from, NORM_D, to);
	return norm(to, NORM_D) / norm(from, NORM_D);
}

struct err claim_norms_stay(struct finding *out)
{
	struct model_options o = claim_model("rope(theta=10000)", NORM_D, 2048);
	struct method none = claim_scaling("none"), yarn = claim_scaling("yarn(factor=8)");
	struct place p = place_of(&o);
	double inv_freq[NORM_D / 2], one, factor, worst = 0;
	scaling_frequencies(&none, &o, 2048, inv_freq, &one);
	for (int position = 1; position <= 131072; position *= 2)
		worst = fmax(worst, fabs(turned(&p, inv_freq, one, position) - 1));
	scaling_frequencies(&yarn, &o, 2048, inv_freq, &factor);
	out->verdict = worst <= rounding() ? CLAIM_HOLDS : CLAIM_FAILS;
	finding_add(out, "over positions 1, 2, 4 ... 131072 a norm changes by %.1e of itself at most", worst);
	finding_add(out, "yarn with factor 8 is no rotation alone, and makes it %.3f times as long",
		    turned(&p, inv_freq, factor, 2048));
	return OK;
}

/* Scores [T][T] of one query vector against one key vector, that stand at all positions. */
enum { SCORES_T = 64, SCORES_D = 32 };
static struct err scores_of(bool reflected, const double *positions, real *scores)
{
	struct model_options o = claim_model("rope", SCORES_D, SCORES_T);
	struct method none = claim_scaling("none");
	o.heads = 1;
	o.width = SCORES_D;
	struct model m;
	TRY(scores_model(&o, &m));
	real *q = TAKE(real, 2 * SCORES_T * SCORES_D), *k = q + SCORES_T * SCORES_D;
	fill_normal(1, q, SCORES_D);
	fill_normal(2, k, SCORES_D);
	for (int d = 1; reflected && d < SCORES_D; d += 2) {
		q[d] = -q[d];
		k[d] = -k[d];
	}
	for (int i = SCORES_D; i < SCORES_T * SCORES_D; i++) {
		q[i] = q[i - SCORES_D];
		k[i] = k[i - SCORES_D];
	}
	struct scores_request r = { .model = &m, .scaling = &none, .B = 1, .T = SCORES_T, .positions = positions,
				    .q = q, .k = k };
	struct err e = scores_compute(&r, scores, NULL);
	free(q);
	model_close(&m);
	return e;
}

/* How far scores of one distance lie apart at most, as a share of the greatest score. */
static double spread(const real *scores)
{
	double apart = 0, greatest = 0;
	for (int r = 0; r < SCORES_T; r++) {
		double least = INFINITY, most = -INFINITY;
		for (int i = r; i < SCORES_T; i++) {
			double score = (double)scores[i * SCORES_T + i - r];
			least = fmin(least, score);
			most = fmax(most, score);
			greatest = fmax(greatest, fabs(score));
		}
		apart = fmax(apart, most - least);
	}
	return apart / greatest;
}

static struct err spread_of(bool reflected, bool squared, double *out)
{
	double positions[SCORES_T];
	real *scores = TAKE(real, SCORES_T * SCORES_T);
	for (int i = 0; i < SCORES_T; i++)
		positions[i] = squared ? (double)i * i : i;
	struct err e = scores_of(reflected, positions, scores);
	*out = spread(scores);
	free(scores);
	return e;
}

struct err claim_rotations_alone(struct finding *out)
{
	double rotated, squared, reflected;
	TRY(spread_of(false, false, &rotated));
	TRY(spread_of(false, true, &squared));
	TRY(spread_of(true, false, &reflected));
	bool others = reflected <= rounding() || squared <= rounding();
	out->verdict = others || rotated > rounding() ? CLAIM_FAILS : CLAIM_HOLDS;
	finding_add(out, "scores of equal distance differ by %.1e of the greatest for rotations by m theta, by "
		    "%.1e for reflections, by %.2f for rotations by m^2 theta", rotated, reflected, squared);
	return OK;
}

/* How much the last token's logits change at most, as a share of the greatest, when those before it are shuffled. */
enum { ORDER_T = 32, ORDER_V = 50 };
static struct err change_of_last(const struct model *m, double *out)
{
	struct method none = claim_scaling("none");
	struct transformer_request q = { .model = m, .B = 1, .T = ORDER_T, .scaling = &none };
	struct transformer *t;
	struct rng rng = rng_at(1, STREAM_TUNE, 3);
	int32_t token[ORDER_T];
	real before[ORDER_V], after[ORDER_V];
	TRY(transformer_open(&q, &t));
	for (int i = 0; i < ORDER_T; i++)
		token[i] = (int32_t)rng_below(&rng, ORDER_V);
	transformer_last(t, token, before);
	rng_shuffle(&rng, token, ORDER_T - 1);
	transformer_last(t, token, after);
	transformer_close(t);
	double change = 0, greatest = 0;
	for (int v = 0; v < ORDER_V; v++) {
		change = fmax(change, fabs((double)after[v] - (double)before[v]));
		greatest = fmax(greatest, fabs((double)before[v]));
	}
	*out = change / greatest;
	return OK;
}

static struct err change_with(int layers, double *out)
{
	struct model_options o = claim_model("nope", SCORES_D, 64);
	struct model m;
	o.layers = layers;
	TRY(model_open(&o, ORDER_V, &m));
	layout_initialise(&m.layout, 1, m.value);
	struct err e = change_of_last(&m, out);
	model_close(&m);
	return e;
}

struct err claim_order_lost(struct finding *out)
{
	double one, two;
	TRY(change_with(1, &one));
	TRY(change_with(2, &two));
	out->verdict = two > rounding() ? CLAIM_FAILS : CLAIM_HOLDS;
	finding_add(out, "with two layers the last token's logits change by %.2f of the greatest, with one layer "
		    "by %.1e", two, one);
	return OK;
}
