#ifndef ROPEWALK_CUTS_H
#define ROPEWALK_CUTS_H

#include "runs/run/measures.h"
#include "runs/show/results.h"

/* The cell's measures of one kind under one scaling (runs/run/measures.h: rows of eval-METHOD.csv cut by position or by
 * distance), as it would be evaluated now (cell_owns); appends to an stb_ds array. A missing file gives none; the errors
 * of a damaged one name FILE:LINE. */
struct err cuts_read(const struct results *r, int cell, int scaling, enum measure_kind kind, struct measure_row **cuts);

#endif
