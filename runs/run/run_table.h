#ifndef ROPEWALK_RUN_TABLE_H
#define ROPEWALK_RUN_TABLE_H

#include "eval/calibration.h"
#include "runs/run/measures.h"
#include "runs/run/run_eval.h"

/* One scaling's files of a run while they are worked on: the rows of eval-METHOD.csv, those by sequence, and the
 * measures beside them (none on stream `tune`). For run_eval.c. */

struct table {
	const struct run_evaluation *evaluation;
	const char *label;
	char *path, *sequences_path, *measure_path[MEASURE_KINDS];
	struct row *rows;                /* stb_ds arrays, as are these */
	struct sequence_row *sequences;
	struct measure_row *measure[MEASURE_KINDS];
	bool calibrated; /* rows of MEASURE_CALIBRATION are new */
	int computed, reused;
	double seconds;
};

/* Reads what is there; with `force` it is read, and forgotten. Errors: damaged files, files of another run.
 * table_close after an error too. */
struct err table_open(const struct run_evaluation *e, int scaling, struct table *t);
void table_close(struct table *t);

/* Is everything there of this length (an index into those of the evaluation), and does it add up: rows by sequence and
 * measures to the table's? Calibration is asked for on its own. */
bool table_has(const struct table *t, int length);
bool table_has_calibration(const struct table *t, int length);
/* Is the row of this length, measured as it would be now? */
bool table_wants(const struct table *t, const struct row *row, int length);

/* Puts a result in the place of what is there of its length. */
void table_put(struct table *t, int length, const struct eval_result *result);
void table_put_calibration(struct table *t, int length, const struct calibration *c);

/* Writes the measures and the rows by sequence, and the rows, with which the work counts as done. */
struct err table_write_parts(const struct table *t);
struct err table_write_rows(const struct table *t);

#endif
