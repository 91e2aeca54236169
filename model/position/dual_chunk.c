#include "model/position/zones.h"

#include <math.h>

/* Dual chunk attention (An et al. 2024, 2402.17463, section 3; as the authors' code). Positions are cut into chunks
 * of c = chunk - local; a key stands at j mod c, and the query at i mod c for keys of its own chunk, at min(i mod c
 * + c, chunk) for those of the chunk before, at min(2c - 1, chunk) for older ones. So no distance exceeds `chunk`,
 * and the last `local` keys or more stand at their own distances. The paper's limit is the trained length - 1, the
 * code's 3/4 of it. The code also multiplies cosines and sines by 0.05 ln(length / train_length) + 1, which the
 * paper's results do without: mscale. */

enum { CHUNK, LOCAL, MSCALE };
static const struct option options[] = {
	[CHUNK] = { .name = "chunk", .kind = OPTION_INTEGER, .initial = "0", .least = 0, .most = 16777216,
		    .unit = "tokens", .results = true,
		    .help = "the longest distance; below train_length; 0: 3/4 train_length" },
	[LOCAL] = { .name = "local", .kind = OPTION_INTEGER, .initial = "0", .least = 0, .most = 16777216,
		    .unit = "tokens", .results = true,
		    .help = "what chunks of positions are shorter by, so that neighbours across a border stay near; "
			    "0: train_length / 8" },
	[MSCALE] = { .name = "mscale", .kind = OPTION_SWITCH, .initial = "off", .choices = "off|on", .most = 1,
		     .results = true,
		     .help = "past train_length multiply q and k by 0.05 ln(length / train_length) + 1" },
	{ 0 },
};

struct chunks {
	double longest, length; /* `chunk`, and of a chunk of positions */
};

static struct chunks chunks_of(const struct method *own, int train_length)
{
	int64_t chunk = own->value[CHUNK].integer, local = own->value[LOCAL].integer;
	chunk = chunk > 0 ? chunk : train_length > 2 ? train_length * (int64_t)3 / 4 : 2;
	local = local > 0 ? local : train_length > 15 ? train_length / 8 : 1;
	return (struct chunks){ .longest = (double)chunk, .length = (double)(chunk - local) };
}

static struct err check(const struct scaling_request *r)
{
	struct chunks c = chunks_of(r->method, r->train_length);
	int64_t given = r->method->value[CHUNK].integer;
	if (given >= r->train_length)
		return err_usage("No longer distance was trained. 0 takes 3/4 of it.",
				 "dual_chunk: chunk %lld is not below train_length %d", (long long)given,
				 r->train_length);
	if (c.length < 1)
		return err_usage("Chunks of positions are chunk - local long: at least 1.",
				 "dual_chunk: local %g is not below chunk %g", c.longest - c.length, c.longest);
	return OK;
}

/* Where the keys of the chunk of query i begin, and those of the chunk before. */
static void borders(const struct place *p, double length, int *own, int *before)
{
	for (int i = 0, from = 0, previous = 0; i < p->T; i++) {
		double chunk = floor(p->positions[i] / length);
		while (floor(p->positions[from] / length) < chunk)
			from++;
		while (floor(p->positions[previous] / length) < chunk - 1)
			previous++;
		own[i] = from;
		before[i] = previous;
	}
}

struct maps {
	double *key, *own, *before, *older; /* [T] positions of keys, and of queries for keys of three kinds */
};

static void fill_maps(const struct place *p, struct chunks c, struct maps m)
{
	for (int i = 0; i < p->T; i++) {
		double within = p->positions[i] - c.length * floor(p->positions[i] / c.length);
		m.key[i] = m.own[i] = within;
		m.before[i] = fmin(within + c.length, c.longest);
		m.older[i] = fmin(2 * c.length - 1, c.longest);
	}
}

static bool mscaled(const struct method *own)
{
	return own->value[MSCALE].integer;
}

static const char *rule(const struct method *own)
{
	return mscaled(own) ? "mscale = max(1, 0.05 ln(length / train_length) + 1)" : NULL;
}

static void zones(const struct zones_request *q, struct arena *a, struct zones *out)
{
	const struct place *p = q->place;
	size_t T = (size_t)p->T;
	struct chunks c = chunks_of(q->own, p->train_length);
	struct zone *zone = ARENA_TAKE(a, struct zone, 3), plain = zone_plain(q, a, 0, p->T);
	int *own = ARENA_TAKE(a, int, T), *before = ARENA_TAKE(a, int, T);
	struct maps m = { ARENA_TAKE(a, double, T), ARENA_TAKE(a, double, T), ARENA_TAKE(a, double, T),
			  ARENA_TAKE(a, double, T) };
	*out = (struct zones){ .zone = zone, .count = 3, .together = 3 };
	if (!zone)
		return;
	borders(p, c.length, own, before);
	fill_maps(p, c, m);
	plain.key_position = m.key;
	if (mscaled(q->own) && place_length(p, p->T) > p->train_length)
		plain.attention_factor *= 0.05 * log(place_length(p, p->T) / p->train_length) + 1;
	zone[0] = zone[1] = zone[2] = plain;
	zone[0].low = zone[1].high = own;
	zone[1].low = zone[2].high = before;
	zone[0].query_position = m.own;
	zone[1].query_position = m.before;
	zone[2].query_position = m.older;
}

const struct scaling scaling_dual_chunk = {
	.entry = { .name = "dual_chunk",
		   .help = "positions start anew in each chunk: distances within it, to the next, beyond",
		   .paper = "An et al. 2024, 2402.17463, section 3", .options = options, .joins = scaling_joins },
	.tempers = true,
	.tempered = mscaled,
	.check = check,
	.zones = zones,
	.in_order = true,
	.rule = rule,
};
