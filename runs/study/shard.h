#ifndef ROPEWALK_SHARD_H
#define ROPEWALK_SHARD_H

#include "runs/study/grid.h"

/* A study divided between machines that share no folder. */

struct shard {
	int index, count; /* index 1 .. count; count 0: all of the study */
};

/* "2/5"; "auto": as the environment says (team_part); "": all. Usage errors: anything else. */
struct err shard_parse(const char *text, struct shard *out);

/* Marks the shard's cells, mine [cells]. Cells in turn go to shards 1, 2 ... count, 1 ..., those of the same weights to
 * that of the first of them: so shards have as many trainings, up to one, and of each row of the table as many seeds.
 * It depends on the grid alone. */
void shard_cells(const struct grid *g, const struct shard *s, bool *mine);

#endif
