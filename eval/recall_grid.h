#ifndef ROPEWALK_RECALL_GRID_H
#define ROPEWALK_RECALL_GRID_H

#include "data/task.h"
#include "eval/tally.h"
#include "model/base/arena.h"

/* The task's first group by exact distance and by whether its source stands where training had positions: what tells
 * far evidence from evidence at new positions. Positions are counted in the window; where it is cut from a longer
 * document, targets whose source lies before it are left out. */

struct recall_grid {
	int length, train_length;
	bool cut;                 /* may sources lie before the window? */
	struct eval_tally *tally; /* [length + 1][2]: distance (at least 1); is the source below train_length? */
	struct arena memory;
};

/* recall_grid_close takes NULL too. */
struct err recall_grid_open(int length, int train_length, bool cut, struct recall_grid **out);
void recall_grid_close(struct recall_grid *g);
size_t recall_grid_bytes(int length);

/* Adds a window; nll and best [length] as in struct outcome. */
void recall_grid_add(struct recall_grid *g, const struct sequence *s, const double *nll, const int32_t *best);

static inline const struct eval_tally *recall_grid_at(const struct recall_grid *g, int distance, bool position_seen)
{
	return &g->tally[2 * distance + position_seen];
}

#endif
