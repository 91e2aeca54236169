#include "model/position/zones.h"

/* Sliding-window attention (Beltagy et al. 2020, 2004.05150, section 3.1, causal): query i sees keys i - size + 1 .. i
 * at their own positions, so no distance exceeds size - 1. Frequencies stay, and any encoding takes it. */

enum { SIZE };
static const struct option options[] = {
	[SIZE] = { .name = "size", .kind = OPTION_INTEGER, .initial = "0", .least = 0, .most = 16777216,
		   .unit = "keys", .results = true,
		   .help = "keys that a query sees, its own among them; 0: train_length" },
	{ 0 },
};

static void zones(const struct zones_request *q, struct arena *a, struct zones *out)
{
	const struct place *p = q->place;
	int64_t given = q->own->value[SIZE].integer, size = given > 0 ? given : p->train_length;
	struct zone *zone = ARENA_TAKE(a, struct zone, 1), z = zone_plain(q, a, 0, p->T);
	int *low = ARENA_TAKE(a, int, (size_t)p->T);
	*out = (struct zones){ .zone = zone, .count = 1, .together = 1 };
	if (!zone)
		return;
	for (int i = 0; i < p->T; i++)
		low[i] = i >= size ? (int)(i - size + 1) : 0;
	z.low = low;
	*zone = z;
}

const struct scaling scaling_window = {
	.entry = { .name = "window", .help = "attention to the last keys only; for any encoding",
		   .paper = "Beltagy et al. 2020, 2004.05150, section 3.1",
		   .options = options, .joins = scaling_joins },
	.any_encoding = true,
	.zones = zones,
};
