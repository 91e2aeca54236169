#include "model/position/distance_bias.h"
#include "model/position/inspection.h"

#include <math.h>
#include <stdio.h>

/* ALiBi (Press et al. 2021, 2108.12409, section 3): logit = scale q.k - slope_h (i - j). Not learned. */

enum { SLOPES };
enum { PUBLISHED, SPREAD };
static const struct option options[] = {
	[SLOPES] = { .name = "slopes", .kind = OPTION_CHOICE, .initial = "published", .choices = "published|spread",
		     .results = true,
		     .help = "published: 2^(-8(h+1)/H), interleaved where H is no power of two; spread: from 1/2 to "
			     "1/256 for "
			     "any number of heads" },
	{ 0 },
};

/* Published slopes of a power of two of heads. */
static double power_slope(int head, int heads)
{
	return exp2(-8.0 * (head + 1) / heads);
}

/* For other numbers of heads: those of the largest power of two below, then every other one of the next power. */
static double published_slope(int head, int heads)
{
	int power = 1;
	while (2 * power <= heads)
		power *= 2;
	return head < power ? power_slope(head, power) : power_slope(2 * (head - power), 2 * power);
}

static double slope_of(const struct place *p, int head)
{
	if (p->method->value[SLOPES].integer == PUBLISHED)
		return published_slope(head, p->H);
	return p->H == 1 ? exp2(-8) : exp2(-(1 + 7.0 * head / (p->H - 1)));
}

static real bias(const struct place *p, const struct tile *t, const void *own, double distance)
{
	const double *slope = own;
	(void)p, (void)t;
	return (real)(-*slope * distance);
}

static void logits(const struct place *p, const struct tile *t, real *logit)
{
	double slope = slope_of(p, t->head);
	distance_bias(p, t, bias, &slope, logit);
}

static void logits_back(const struct place *p, const struct tile *t, const real *raw, real *d_logit,
			struct tile_gradient g)
{
	(void)raw;
	distance_bias_back(p, t, NULL, d_logit, g);
}

static struct err inspect(const struct inspection *in, struct report *to)
{
	const struct place *p = in->place;
	double *slope, *reach, *trained, *longest, distance = zones_longest_distance(in->zones);
	char heading[32];
	report_table(to, NULL, "head", p->H);
	TRY(report_column(to, "slopes", "slope", 0, &slope));
	TRY(report_column(to, "distances_of_1_nat", "1 nat at", 0, &reach));
	snprintf(heading, sizeof heading, "trained: nats at %d", p->train_length - 1);
	TRY(report_column(to, "trained_penalties", heading, 0, &trained));
	snprintf(heading, sizeof heading, "nats at %.0f", distance);
	TRY(report_column(to, "penalties", heading, 0, &longest));
	for (int h = 0; h < p->H; h++) {
		slope[h] = slope_of(p, h);
		reach[h] = 1 / slope[h];
		trained[h] = slope[h] * (p->train_length - 1);
		longest[h] = slope[h] * distance;
	}
	report_note(to, "A key at distance r loses slope x r nats: 1 at the distance given, and then at the longest "
			"distance of training and of this length.");
	return OK;
}

const struct position position_alibi = {
	.entry = { .name = "alibi", .help = "a fixed penalty a head, growing with the distance",
		   .paper = "Press et al. 2021, 2108.12409", .options = options },
	.inspect = inspect,
	.logits = logits,
	.logits_back = logits_back,
};
