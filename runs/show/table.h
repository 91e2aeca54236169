#ifndef ROPEWALK_TABLE_H
#define ROPEWALK_TABLE_H

#include "runs/show/compare.h"
#include "runs/show/records.h"
#include "runs/show/sheet.h"

/* A study's tables, as sheets for people and as records for programs. */

/* The groups that get a sheet: those of the cells' tasks, near, far and all aside. An stb_ds array. */
const char **table_groups(const struct results *r);

/* One group's table, a row per method (encoding, scaling, whatever the axes vary) and a column per multiple: perplexity
 * (of bytes of text: bits per byte) / accuracy in %; beneath them, over several seeds, the least and greatest perplexity, or from INTERVAL_SEEDS on its
 * 95 % t interval (of the mean NLL, exponentiated, cut at the floor) and that of the accuracy (on the logit scale); the
 * error of the evaluation where it exceeds half the spread of the seeds; "k of n seeds" where some are missing. Then
 * the reference rows: scaling window, and the task's baselines. Marks: `!` above 1.1 times the floor at 1x, `*` not to
 * be told from the best, `-` not computed yet, `n/a` impossible, `diverged`. sheet_free it. */
struct err table_sheet(const struct results *r, const char *group, struct sheet *out);

/* One group's paired differences of every row to the one that `against` names: a scaling's label (then each row is held
 * against that scaling of the same weights), or a row's as the tables show it. */
void table_differences(const struct results *r, const char *group, const char *against, struct sheet *out);
/* Refuses an `against` (other than "") that no row of the study has. Needs study, grid and folder of `r` alone. */
struct err table_against_check(const struct results *r, const char *against);

/* What `against` means for a row; false if nothing. */
bool table_opponent(const struct results *r, const struct contender *row, const char *against, struct contender *out);

/* A row per (method, multiple, group), near, far and all among the groups, and per (baseline, multiple); with `against`
 * (may be NULL) the paired differences. The columns are in runs/README.md. Append. */
struct err table_long(const struct results *r, const char *against, struct records *out);
/* A row per (method, group), a column per measure and multiple. */
void table_wide(const struct results *r, struct records *out);
/* A row per (model, scaling, length, group): what the others are made of. */
void table_seeds(const struct results *r, struct records *out);

/* A row's name: the label of its cells, its scaling where there are several, and [n] for the sections that override.
 * Kept. */
const char *table_label(const struct results *r, int cells, int scaling);

/* A sheet's heads, "1x" ..., and its title: `what`, and beneath it what the study varies. */
void table_columns(const struct results *r, struct sheet *sheet);
const char *table_title(const struct results *r, const char *what);

/* The task's baselines at each multiple of a group of cells, for one group of tokens; empty for cells that share their
 * sequences with earlier ones. An stb_ds array. */
struct baseline {
	double multiple;
	int length;
	struct eval_reference reference;
};
struct err table_baselines(const struct results *r, int cells, const char *group, struct baseline **out);

#endif
