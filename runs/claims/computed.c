#include "runs/claims/computed.h"

#include "model/position/scaling.h"
#include "runs/config.h"

#include <math.h>
#include <string.h>

#define MOST_PAIRS 64

/* Rounding of one power and one product. */
#define EXACT 1e-12

struct method claim_scaling(const char *text)
{
	struct method m;
	struct err e = method_parse("scaling", scaling_at, text, &m);
	BUG_IF(e.code, "%s: %s", text, e.text);
	return m;
}

struct model_options claim_model(const char *encoding, int D, int train_length)
{
	static const struct scope scope = { .command = "claims", .lists = LIST_MODEL };
	struct config c;
	config_init(&c, &scope, NULL);
	struct err e = method_parse("encoding", position_at, encoding, &c.model.encoding);
	BUG_IF(e.code, "%s: %s", encoding, e.text);
	c.model.width = c.model.heads * D;
	c.model.train_length = train_length;
	return c.model;
}

static void frequencies(const struct model_options *o, const char *scaling, int length, double inv_freq[MOST_PAIRS])
{
	double attention_factor;
	struct method m = claim_scaling(scaling);
	scaling_frequencies(&m, o, length, inv_freq, &attention_factor);
}

/* Greatest relative errors of the two ends over a few sizes, bases and factors. */
struct ends {
	double fastest, slowest;
	int cases;
};

static void add_ends(const char *encoding, int D, double factor, struct ends *ends)
{
	struct model_options o = claim_model(encoding, D, 64);
	double trained[MOST_PAIRS], scaled[MOST_PAIRS];
	char scaling[64], text[NUMBER_TEXT];
	int last = D / 2 - 1;
	snprintf(scaling, sizeof scaling, "ntk(factor=%s)", number_to_text(factor, text));
	frequencies(&o, "none", 64, trained);
	frequencies(&o, scaling, 64, scaled);
	ends->fastest = fmax(ends->fastest, fabs(scaled[0] / trained[0] - 1));
	ends->slowest = fmax(ends->slowest, fabs(scaled[last] * factor / trained[last] - 1));
	ends->cases++;
}

struct err claim_ntk_ends(struct finding *out)
{
	static const char *const encodings[] = { "rope(theta=500)", "rope(theta=10000)" };
	static const int widths[] = { 32, 64, 128 };
	static const double factors[] = { 2, 8, 32 };
	struct ends ends = { 0 };
	for (int e = 0; e < 2; e++)
		for (int d = 0; d < 3; d++)
			for (int f = 0; f < 3; f++)
				add_ends(encodings[e], widths[d], factors[f], &ends);
	out->verdict = ends.fastest <= EXACT && ends.slowest <= EXACT ? CLAIM_HOLDS : CLAIM_FAILS;
	finding_add(out, "over %d cases the fastest pair changes by %.1e of itself at most, and the slowest is off its "
		    "share 1 / s by %.1e of that", ends.cases, ends.fastest, ends.slowest);
	return OK;
}

/* The first length at which the frequencies are not the trained ones to the bit; 0 if there is none up to `most`. */
static int first_changed(const struct model_options *o, const char *scaling, int most)
{
	double trained[MOST_PAIRS], scaled[MOST_PAIRS];
	size_t bytes = (size_t)(o->width / o->heads / 2) * sizeof *trained;
	frequencies(o, "none", (int)o->train_length, trained);
	for (int length = 1; length <= most; length++) {
		frequencies(o, scaling, length, scaled);
		if (memcmp(trained, scaled, bytes) != 0)
			return length;
	}
	return 0;
}

struct err claim_dynamic_inside(struct finding *out)
{
	static const char *const scalings[] = { "dynamic", "dynamic(alpha=4)" };
	static const int lengths[] = { 64, 512 };
	out->verdict = CLAIM_HOLDS;
	for (int s = 0; s < 2; s++)
		for (int l = 0; l < 2; l++) {
			struct model_options o = claim_model("rope", 32, lengths[l]);
			int first = first_changed(&o, scalings[s], lengths[l] + 1);
			if (first && first <= lengths[l])
				out->verdict = CLAIM_FAILS;
			finding_add(out, "%s, trained at %d: the first length with another frequency is %d",
				    scalings[s], lengths[l], first);
		}
	return OK;
}

struct err claim_learned_ends(struct finding *out)
{
	struct model_options o = claim_model("learned", 32, 64);
	struct place place = place_of(&o);
	struct err last = place.position->reach(&place, 63), next = place.position->reach(&place, 64);
	out->verdict = !last.code && next.code ? CLAIM_HOLDS : CLAIM_FAILS;
	finding_add(out, "trained at 64, position 63 is %s and position 64 is %s (%s)", last.code ? "refused" : "taken",
		    next.code ? "refused" : "taken", next.code ? next.text : "no error");
	return OK;
}

/* Parameters of the encoding itself. */
static struct err own_parameters(int train_length, size_t *count)
{
	struct model_options with = claim_model("t5", 32, train_length);
	struct model_options without = claim_model("nope", 32, train_length);
	struct layout a = { 0 }, b = { 0 };
	struct err e = layout_position(&with, &a);
	if (!e.code)
		e = layout_position(&without, &b);
	*count = a.size - b.size;
	layout_free(&a);
	layout_free(&b);
	return e;
}

struct err claim_t5_parameters(struct finding *out)
{
	size_t near, far;
	TRY(own_parameters(64, &near));
	TRY(own_parameters(65536, &far));
	out->verdict = far < 65536 ? CLAIM_FAILS : CLAIM_HOLDS;
	finding_add(out, "with two heads %zu parameters serve 64 distances, and %zu serve 65536", near, far);
	return OK;
}

/* Score of equal vectors of ones at a distance: 2 sum over m of cos(r theta_m). */
static double score_of_ones(const double *inv_freq, int F, int distance)
{
	double sum = 0;
	for (int m = 0; m < F; m++)
		sum += 2 * cos(distance * inv_freq[m]);
	return sum;
}

struct err claim_near_is_large(struct finding *out)
{
	struct model_options o = claim_model("rope(theta=10000)", 2 * MOST_PAIRS, 2048);
	double inv_freq[MOST_PAIRS], least_near = INFINITY, most_far = -INFINITY;
	int rises = 0;
	frequencies(&o, "none", 2048, inv_freq);
	for (int r = 0; r < 2048; r++) {
		double score = score_of_ones(inv_freq, MOST_PAIRS, r);
		rises += r && score > score_of_ones(inv_freq, MOST_PAIRS, r - 1);
		least_near = r < 256 ? fmin(least_near, score) : least_near;
		most_far = r >= 1024 ? fmax(most_far, score) : most_far;
	}
	out->verdict = rises || most_far > least_near ? CLAIM_FAILS : CLAIM_HOLDS;
	finding_add(out, "the score rises at %d of 2047 steps away; its least below distance 256 is %.1f, its "
		    "greatest from 1024 on %.1f (%.0f at distance 0)", rises, least_near, most_far,
		    score_of_ones(inv_freq, MOST_PAIRS, 0));
	return OK;
}
