#ifndef ROPEWALK_CUTS_H
#define ROPEWALK_CUTS_H

#include "runs/show/results.h"

/* What stands beside eval-METHOD.csv and cuts its rows smaller: by_position-METHOD.csv (by where the scored token
 * stands) and recall_grid-METHOD.csv (by how far back its evidence lies). runs/README.md has the columns. */

struct cut {
	struct row row;               /* what it is a part of; of the measures scored, nll and accuracy */
	int64_t position, positions;  /* first of the bin, and how many; or 0 */
	int64_t distance;             /* or 0 */
};

#define CUTS_POSITION "by_position"
#define CUTS_DISTANCE "recall_grid"

/* The cell's cuts of one kind under one scaling, as it would be evaluated now (cell_owns); appends to an stb_ds array.
 * A missing file gives none; the errors of a damaged one name FILE:LINE. */
struct err cuts_read(const struct results *r, int cell, int scaling, const char *kind, struct cut **cuts);

#endif
