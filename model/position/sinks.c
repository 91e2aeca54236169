#include "model/position/zones.h"

/* StreamingLLM (Xiao et al. 2023, 2309.17453, section 3.2): a cache keeps the first `start` keys, the attention sinks,
 * and the last `recent`; once it is full the oldest of the others goes. Positions are those within the cache: a query
 * stands at the number of keys kept before it, so for recent keys distances are those of the text, and the sinks follow
 * next. The authors' scripts drop keys at two moments: after each step (perplexity), so that a query sees start + recent
 * keys and its own, or before it (chat), its own being one of `recent`. Any encoding takes it; what is added to the
 * embeddings stays where it was. */

enum { START, RECENT, EVICT };
enum { AFTER, BEFORE };
static const struct option options[] = {
	[START] = { .name = "start", .kind = OPTION_INTEGER, .initial = "4", .least = 0, .most = 16777216,
		    .unit = "keys", .results = true, .help = "first keys that stay: the attention sinks" },
	[RECENT] = { .name = "recent", .kind = OPTION_INTEGER, .initial = "0", .least = 0, .most = 16777216,
		     .unit = "keys", .results = true,
		     .help = "last keys that stay; 0: as many as let a query see train_length keys with its own" },
	[EVICT] = { .name = "evict", .kind = OPTION_CHOICE, .initial = "after", .choices = "after|before",
		    .results = true, .help = "the query's own key comes on top of `recent`, or is one of them" },
	{ 0 },
};

/* How many recent keys a query sees besides its own, and how many sinks. */
struct cache {
	int64_t start, recent;
};

static struct cache cache_of(const struct method *own, int train_length)
{
	int64_t start = own->value[START].integer, given = own->value[RECENT].integer;
	int64_t recent = given > 0 ? given - (own->value[EVICT].integer == BEFORE) : train_length - start - 1;
	return (struct cache){ start, recent > 0 ? recent : 0 };
}

/* Once the cache is full: the first recent key of each query, and the end of its sinks; before, all keys are recent. */
static void fill_rows(int T, struct cache c, int *first, int *sinks)
{
	for (int i = 0; i < T; i++) {
		bool full = i > c.start + c.recent;
		first[i] = full ? (int)(i - c.recent) : 0;
		sinks[i] = full ? (int)c.start : 0;
	}
}

static void zones(const struct zones_request *q, struct arena *a, struct zones *out)
{
	int T = q->place->T;
	struct cache c = cache_of(q->own, q->place->train_length);
	struct zone *zone = ARENA_TAKE(a, struct zone, 2), plain = zone_plain(q, a, 0, T);
	int *first = ARENA_TAKE(a, int, (size_t)T), *sinks = ARENA_TAKE(a, int, (size_t)T);
	double *index = ARENA_TAKE(a, double, (size_t)T), *last = ARENA_TAKE(a, double, (size_t)T);
	*out = (struct zones){ .zone = zone, .count = 2, .together = 2 };
	if (!zone)
		return;
	fill_rows(T, c, first, sinks);
	for (int i = 0; i < T; i++) {
		index[i] = i;
		last[i] = i < c.start + c.recent ? i : (double)(c.start + c.recent);
	}
	/* Recent keys keep their distances, so that one map does for the queries of all times. */
	plain.query_position = plain.key_position = index;
	plain.query_alone = last;
	zone[0] = zone[1] = plain;
	zone[0].low = first;
	zone[1].high = sinks;
	zone[1].query_position = last;
}

const struct scaling scaling_sinks = {
	.entry = { .name = "sinks",
		   .help = "the first keys and the last ones, at positions in the cache; for any encoding",
		   .paper = "Xiao et al. 2023, 2309.17453, section 3.2", .options = options, .joins = scaling_joins },
	.any_encoding = true,
	.zones = zones,
};
