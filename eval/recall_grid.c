#include "eval/recall_grid.h"

#include <string.h>

static void place(struct arena *a, struct recall_grid *g)
{
	g->tally = ARENA_TAKE(a, struct eval_tally, 2 * ((size_t)g->length + 1));
}

size_t recall_grid_bytes(int length)
{
	struct recall_grid g = { .length = length };
	struct arena all = { 0 };
	place(&all, &g);
	return all.used;
}

struct err recall_grid_open(int length, int train_length, bool cut, struct recall_grid *out)
{
	*out = (struct recall_grid){ .length = length, .train_length = train_length, .cut = cut };
	TRY(arena_reserve(&out->memory, recall_grid_bytes(length), "losses by distance"));
	place(&out->memory, out);
	memset(out->tally, 0, 2 * ((size_t)length + 1) * sizeof *out->tally);
	return OK;
}

void recall_grid_close(struct recall_grid *g)
{
	arena_free(&g->memory);
	*g = (struct recall_grid){ 0 };
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
