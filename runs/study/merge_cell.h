#ifndef ROPEWALK_MERGE_CELL_H
#define ROPEWALK_MERGE_CELL_H

#include "runs/study/study_folder.h"

/* One cell of a study, from several folders into one. */

/* Does what the folders have of a cell agree? `from` [count] are studies' folders; the last may be the one that is
 * merged into. Weights and train.jsonl are the same bytes; of two files of rows one holds all lines of the other. An
 * error names the two files that differ. */
struct err merge_cell_check(const struct cell *c, const char *const *from, int count);

/* Copies what `into` lacks: the run's files, of rows the file that has most, and its record last, so that a cell that
 * was not copied to its end counts as not there. Nothing that differs is replaced. `into` is one of `from`, the first,
 * if it is there. Cells that have not come to their end are left out. */
struct err merge_cell(const struct cell *c, const char *const *from, int count, const char *into);

#endif
