#include "model/position/zones.h"

#include <math.h>
#include <string.h>

static const double *query_scales(const struct zones_request *q, struct arena *a, int begin, int end)
{
	if (!scaling_has_query_scale(q->scaling))
		return NULL;
	double *scale = ARENA_TAKE(a, double, (size_t)(end - begin));
	double length = scale ? place_length(q->place, q->place->T) : 0; /* no positions while measuring */
	for (int i = begin; scale && i < end; i++)
		scale[i - begin] = scaling_query_scale(q->scaling, q->options, length, q->place->positions[i]);
	return scale;
}

struct zone zone_plain(const struct zones_request *q, struct arena *a, int begin, int end)
{
	const struct place *p = q->place;
	struct zone z = { .begin = begin, .end = end, .attention_factor = 1 };
	int *low = ARENA_TAKE(a, int, (size_t)(end - begin)), *high = ARENA_TAKE(a, int, (size_t)(end - begin));
	if (p->position->rotate)
		z.inv_freq = ARENA_TAKE(a, double, (size_t)place_pairs(p));
	z.query_scale = query_scales(q, a, begin, end);
	if (!a->base)
		return z;
	for (int i = begin; i < end; i++) {
		low[i - begin] = 0;
		high[i - begin] = i + 1;
	}
	z.low = low;
	z.high = high;
	z.query_position = p->positions + begin;
	z.key_position = p->positions;
	if (p->position->rope_theta)
		scaling_frequencies_within(q->scaling, q->options, place_length(p, end), place_length(p, p->T),
					   z.inv_freq, &z.attention_factor);
	return z;
}

void zones_by_blocks(const struct zones_request *q, int64_t block, struct arena *a, struct zones *out)
{
	int T = q->place->T;
	if (block < 1 || block > T)
		block = T;
	int count = (int)((T + block - 1) / block);
	struct zone *zone = ARENA_TAKE(a, struct zone, (size_t)count);
	for (int n = 0; n < count; n++) {
		int64_t begin = n * block, end = begin + block < T ? begin + block : T;
		struct zone z = zone_plain(q, a, (int)begin, (int)end);
		if (zone)
			zone[n] = z;
	}
	*out = (struct zones){ .zone = zone, .count = count, .together = 1 };
}

double near_window(int train_length, int64_t given)
{
	if (given > 0)
		return (double)given;
	return train_length > 1 ? train_length / 2 : 1;
}

struct err near_window_check(const struct scaling_request *r, int64_t given)
{
	if (given < r->train_length)
		return OK;
	return err_usage("No longer distance was trained. 0 takes half of it.",
			 "%s: w %lld is not below train_length %d", r->method->entry->name, (long long)given,
			 r->train_length);
}

bool zones_near_far(const struct zones_request *q, double window, struct arena *a, struct far_zone *far,
		    struct zones *out)
{
	const struct place *p = q->place;
	size_t T = (size_t)p->T;
	struct zone *zone = ARENA_TAKE(a, struct zone, 2), plain = zone_plain(q, a, 0, p->T);
	int *border = ARENA_TAKE(a, int, T);
	*far = (struct far_zone){ ARENA_TAKE(a, double, T), ARENA_TAKE(a, double, T) };
	*out = (struct zones){ .zone = zone, .count = 2, .together = 2 };
	if (!zone)
		return false;
	for (int i = 0, first = 0; i < p->T; i++) {
		while (p->positions[i] - p->positions[first] >= window)
			first++;
		border[i] = first;
	}
	zone[0] = zone[1] = plain;
	zone[0].low = zone[1].high = border;
	zone[1].query_position = far->query_position;
	zone[1].key_position = far->key_position;
	return true;
}

static int64_t block_of(const struct method *own)
{
	return own->value[method_find(own->entry, "block")].integer;
}

void zones_by_block_option(const struct zones_request *q, struct arena *a, struct zones *out)
{
	zones_by_blocks(q, block_of(q->own), a, out);
}

bool has_block(const struct method *own)
{
	return block_of(own) > 0;
}

/* Keys that a query sees in a zone; one past its own would be the future. */
static int keys_seen(const struct zone *z, int i, const char *name)
{
	int low = z->low[i - z->begin], high = z->high[i - z->begin];
	BUG_IF(low < 0 || high > i + 1, "%s: query %d sees keys %d to %d", name, i, low, high - 1);
	return high > low ? high - low : 0;
}

/* A query that sees no key has no softmax. */
static void verify(const struct zones *z, const char *name)
{
	for (int first = 0, last; first < z->count; first = last) {
		for (last = first; last < z->count && z->zone[last].begin == z->zone[first].begin;)
			last++;
		for (int i = z->zone[first].begin; i < z->zone[first].end; i++) {
			int seen = 0;
			for (int n = first; n < last; n++)
				seen += keys_seen(&z->zone[n], i, name);
			BUG_IF(!seen, "%s: query %d sees no key", name, i);
		}
	}
}

void scaling_zones(const struct method *scaling, const struct model_options *o, const struct place *p, struct arena *a,
		   struct zones *out)
{
	const struct method *own = scaling_zoned(scaling);
	struct zones_request q = { .own = own, .scaling = scaling, .options = o, .place = p };
	if (own)
		scaling_of(own)->zones(&q, a, out);
	else
		zones_by_blocks(&q, 0, a, out);
	if (a->base)
		verify(out, scaling->entry->name);
}

double zones_longest_distance(const struct zones *z)
{
	double longest = 0;
	for (const struct zone *zone = z->zone; zone < z->zone + z->count; zone++)
		for (int i = 0; i < zone->end - zone->begin; i++)
			if (zone->low[i] < zone->high[i])
				longest = fmax(longest, zone->query_position[i] - zone->key_position[zone->low[i]]);
	return longest;
}

bool zones_turn_once(const struct zones *z)
{
	const struct zone *last = &z->zone[z->count - 1];
	if (z->together > 1)
		return false;
	for (const struct zone *zone = z->zone; zone < last; zone++)
		for (int j = 0; zone->key_position != last->key_position && j < zone->end; j++)
			if (zone->key_position[j] != last->key_position[j])
				return false;
	return true;
}

int place_pairs(const struct place *p)
{
	if (!p->position->rotate)
		return 0;
	return place_rotary_dim(p) / 2;
}

bool place_rotates(const struct place *p, int layer)
{
	return !p->position->rotates_layer || p->position->rotates_layer(p, layer);
}

void place_pair_sets(const struct place *p, const struct pair_sets *given, struct arena *a, struct pair_sets *out)
{
	int F = place_pairs(p), count = given ? given->count : 1;
	size_t H = (size_t)p->H, pairs = (size_t)F;
	uint8_t *kind = ARENA_TAKE(a, uint8_t, (size_t)(count + 1) * pairs);
	uint8_t *set = ARENA_TAKE(a, uint8_t, (size_t)p->layers * H);
	bool all = true;
	for (int layer = 0; layer < p->layers; layer++)
		all = all && place_rotates(p, layer);
	*out = (struct pair_sets){ .count = all ? count : count + 1, .kind = kind, .set = set,
				   .trained = given ? given->trained : NULL };
	BUG_IF(out->count > UINT8_MAX, "%d sets of pairs", out->count);
	if (!a->base)
		return;
	memset(kind, PAIR_SCALED, (size_t)count * pairs);
	if (given)
		memcpy(kind, given->kind, (size_t)count * pairs);
	memset(kind + (size_t)count * pairs, PAIR_STILL, pairs);
	for (int layer = 0; layer < p->layers; layer++)
		for (size_t h = 0; h < H; h++) {
			size_t at = (size_t)layer * H + h;
			set[at] = place_rotates(p, layer) ? given ? given->set[at] : 0 : (uint8_t)count;
		}
}
