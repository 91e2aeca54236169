#include "eval/recall_grid.h"

#include <string.h>

static struct recall_grid *place(struct arena *a, const struct recall_grid *size)
{
	struct recall_grid *g = ARENA_TAKE(a, struct recall_grid, 1);
	size_t cells = 2 * ((size_t)size->length + 1);
	struct eval_tally *tally = ARENA_TAKE(a, struct eval_tally, cells);
	if (!g)
		return NULL;
	*g = *size;
	g->tally = tally;
	memset(tally, 0, cells * sizeof *tally);
	return g;
}

size_t recall_grid_bytes(int length)
{
	struct recall_grid size = { .length = length };
	struct arena all = { 0 };
	place(&all, &size);
	return all.used;
}

struct err recall_grid_open(int length, int train_length, bool cut, struct recall_grid **out)
{
	struct recall_grid size = { .length = length, .train_length = train_length, .cut = cut };
	struct arena memory;
	*out = NULL;
	TRY(arena_reserve(&memory, recall_grid_bytes(length), "losses by distance"));
	*out = place(&memory, &size);
	BUG_IF(!*out, "a place in no memory");
	(*out)->memory = memory;
	return OK;
}

void recall_grid_close(struct recall_grid *g)
{
	if (!g)
		return;
	/* It stands in the arena it describes. */
	struct arena memory = g->memory;
	arena_free(&memory);
}

void recall_grid_add(struct recall_grid *g, const struct sequence *s, const double *nll, const int32_t *best)
{
	for (int t = 0; t < g->length; t++) {
		int distance = s->distance[t], source = t - distance;
		if (s->target[t] < 0 || s->group[t] != 0 || (g->cut && source < 0))
			continue;
		BUG_IF(distance < 1 || distance > g->length, "a distance of %d in %d tokens", distance, g->length);
		tally_token(&g->tally[2 * distance + (source < g->train_length)], nll[t], best[t] == s->target[t]);
	}
}
