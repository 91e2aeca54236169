#include "model/position/zones.h"

#include <math.h>

/* ReRoPE and Leaky ReRoPE (Su 2023, kexue.fm 9708; no paper). A key less than w before the query stands at its
 * own distance r; one at w or more at
 *   rerope        w
 *   leaky_rerope  w + (r - w) / k
 * so that k = 1 is no scaling, and k without end is rerope. The author's code also multiplies queries by log-n: that is
 * rerope+logn here. */

#define WINDOW_OPTION                                                                                  \
	{ .name = "w", .kind = OPTION_INTEGER, .initial = "0", .least = 0, .most = 16777216,           \
	  .unit = "tokens", .results = true,                                                           \
	  .help = "distances below it stay; below train_length; 0: train_length / 2" }

enum { W, K };
static const struct option options[] = { [W] = WINDOW_OPTION, { 0 } };
static const struct option leaky_options[] = {
	[W] = WINDOW_OPTION,
	[K] = { .name = "k", .kind = OPTION_NUMBER, .initial = "auto", .choices = "auto", .least = 1, .most = 1e9,
		.results = true,
		.help = "what distances past w are divided by; auto: max(1, (length - w) / (train_length - w))" },
	{ 0 },
};

static struct err check(const struct scaling_request *r)
{
	return near_window_check(r, r->method->value[W].integer);
}

static void zones(const struct zones_request *q, struct arena *a, struct zones *out)
{
	const struct place *p = q->place;
	double w = near_window(p->train_length, q->own->value[W].integer);
	struct far_zone far;
	if (!zones_near_far(q, w, a, &far, out))
		return;
	for (int i = 0; i < p->T; i++) {
		far.query_position[i] = w;
		far.key_position[i] = 0;
	}
}

/* k in force. */
static double leak(double given, double w, double train_length, double length)
{
	if (given > 0)
		return given;
	return train_length > w ? fmax(1, (length - w) / (train_length - w)) : 1;
}

static const char *leaky_rule(const struct method *own)
{
	return own->value[K].number > 0 ? NULL : "k auto = max(1, (length - w) / (train_length - w))";
}

static void leaky_zones(const struct zones_request *q, struct arena *a, struct zones *out)
{
	const struct place *p = q->place;
	double w = near_window(p->train_length, q->own->value[W].integer);
	double k = leak(q->own->value[K].number, w, p->train_length, a->base ? place_length(p, p->T) : 0);
	struct far_zone far;
	/* Two zones would sum in another order than one. */
	if (!zones_near_far(q, k > 1 ? w : INFINITY, a, &far, out))
		return;
	for (int i = 0; i < p->T; i++) {
		far.query_position[i] = (p->positions[i] + w * (k - 1)) / k;
		far.key_position[i] = p->positions[i] / k;
	}
}

const struct scaling scaling_rerope = {
	.entry = { .name = "rerope", .help = "distances past w are w", .paper = "Su 2023, kexue.fm 9708",
		   .options = options, .joins = scaling_joins },
	.check = check,
	.zones = zones,
	.in_order = true,
};

const struct scaling scaling_leaky_rerope = {
	.entry = { .name = "leaky_rerope", .help = "distances past w are divided by k",
		   .paper = "Su 2023, kexue.fm 9708", .options = leaky_options, .joins = scaling_joins },
	.check = check,
	.zones = leaky_zones,
	.in_order = true,
	.rule = leaky_rule,
};
