#include "model/position/zones.h"

#include <math.h>

/* Self-Extend (Jin et al. 2024, 2401.01325, section 3.3): a key less than w before the query stands at its own
 * distance, one farther off at floor(i / G) - floor(j / G) + w - floor(w / G), so that G neighbours share a position.
 * Where G does not divide w, two of the authors' patches (Llama.py, Gemma.py) take w - w / G instead: shift=real. */

enum { W, GROUP, SHIFT };
enum { FLOOR, REAL };
static const struct option options[] = {
	[W] = { .name = "w", .kind = OPTION_INTEGER, .initial = "0", .least = 0, .most = 16777216, .unit = "tokens",
		.results = true, .help = "distances below it stay; below train_length; 0: train_length / 2" },
	[GROUP] = { .name = "group", .kind = OPTION_INTEGER, .initial = "0", .least = 0, .most = 16777216,
		    .unit = "tokens", .results = true,
		    .help = "G, tokens that share a far position; 0: ceil((length - w) / (train_length - w))" },
	[SHIFT] = { .name = "shift", .kind = OPTION_CHOICE, .initial = "floor", .choices = "floor|real",
		    .results = true, .help = "far distances begin at w - floor(w / G), or at w - w / G" },
	{ 0 },
};

static struct err check(const struct scaling_request *r)
{
	return near_window_check(r, r->method->value[W].integer);
}

/* G in force. */
static double group_of(double given, double w, double train_length, double length)
{
	if (given > 0)
		return given;
	return train_length > w ? fmax(1, ceil((length - w) / (train_length - w))) : 1;
}

static const char *rule(const struct method *own)
{
	return own->value[GROUP].integer > 0 ? NULL :
					       "group 0 = max(1, ceil((length - w) / (train_length - w)))";
}

static void zones(const struct zones_request *q, struct arena *a, struct zones *out)
{
	const struct place *p = q->place;
	const union option_value *own = q->own->value;
	double w = near_window(p->train_length, own[W].integer);
	double G = group_of((double)own[GROUP].integer, w, p->train_length, a->base ? place_length(p, p->T) : 0);
	double shift = w - (own[SHIFT].integer == FLOOR ? floor(w / G) : w / G);
	struct far_zone far;
	/* Two zones would sum in another order than one. */
	if (!zones_near_far(q, G > 1 ? w : INFINITY, a, &far, out))
		return;
	for (int i = 0; i < p->T; i++) {
		far.key_position[i] = floor(p->positions[i] / G);
		far.query_position[i] = far.key_position[i] + shift;
	}
}

const struct scaling scaling_self_extend = {
	.entry = { .name = "self_extend", .help = "far keys share a position in groups",
		   .paper = "Jin et al. 2024, 2401.01325, section 3.3", .options = options, .joins = scaling_joins },
	.check = check,
	.zones = zones,
	.in_order = true,
	.rule = rule,
};
