#ifndef ROPEWALK_RUN_EVAL_H
#define ROPEWALK_RUN_EVAL_H

#include "runs/config.h"
#include "runs/run/rows.h"

/* Evaluating a run: computes what is missing, keeps what is there. */

struct run_evaluation {
	const char *folder;           /* of a finished run */
	const struct config *config;  /* model, data, train of the run (run_folder_open), eval of this evaluation */
	const struct method *scaling; /* [scalings] */
	int scalings;
	const int *length; /* [lengths] */
	const double *multiple;
	int lengths;
	bool force; /* compute all anew */
	bool skip;  /* a scaling or length that the model cannot take gives no rows instead of an error */
};

/* Checks all of it, touching nothing; run_evaluate_fits: memory alone, which `skip` does not excuse. */
struct err run_evaluate_check(const struct run_evaluation *e);
struct err run_evaluate_fits(const struct run_evaluation *e);

/* Evaluates every scaling at every length over the same sequences, and merges the rows into the folder's CSVs (sorted
 * by length) after each scaling. Rows with the same eval_seed, sequences, length and task are reused. The model is read
 * once, and only if something is missing. `rows` (stb_ds array, may be NULL) gets the rows asked for, in the order of
 * scalings, lengths, groups. Progress goes to stderr. */
struct err run_evaluate(const struct run_evaluation *e, struct row **rows);

/* The text in the column `protocol`. */
const char *run_protocol(const struct config *c);

#endif
