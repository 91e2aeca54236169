#ifndef ROPEWALK_MEASURES_H
#define ROPEWALK_MEASURES_H

#include "runs/run/rows.h"

/* Rows of what explains a perplexity, in files beside eval-METHOD.csv, sorted by length:
 *
 *	by_position-METHOD.csv	a row per length, group and bin (eval/by_position.h) that has a scored token
 *	recall_grid-METHOD.csv	a row per length, distance and position_seen (eval/recall_grid.h), likewise
 *	calibration-METHOD.csv	a row per length and group (eval/calibration.h)
 *
 * Their columns begin as those of eval-METHOD.csv, run to sequences, and end with protocol. */
enum measure_kind { MEASURE_BY_POSITION, MEASURE_RECALL_GRID, MEASURE_CALIBRATION, MEASURE_KINDS };

struct measure_row {
	struct row row;
	int64_t position, positions;                    /* by_position: first of the bin, how many */
	int64_t distance, position_seen, distance_seen; /* recall_grid: below the trained length, 0 or 1 */
	double temperature;                             /* calibration: of row.cell */
};

/* "by_position". Lives forever. */
const char *measure_name(enum measure_kind m);

/* As rows_read and rows_write. */
struct err measure_rows_read(enum measure_kind m, const char *path, struct measure_row **rows);
struct err measure_rows_write(enum measure_kind m, const char *path, const struct measure_row *rows, int count);

#endif
