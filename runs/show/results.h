#ifndef ROPEWALK_RESULTS_H
#define ROPEWALK_RESULTS_H

#include "runs/rows.h"
#include "runs/study/study_folder.h"

/* A study's numbers read back from its runs' folders, and summarised over seeds. */

struct cell_results {
	enum cell_status status;
	const char *folder;  /* kept */
	struct row **row;    /* [scalings] stb_ds arrays: every row of that scaling's file */
	json_t *record;      /* NULL if there is none */
};

struct results {
	const struct study *study;
	const struct grid *grid;
	const char *folder;
	struct cell_results *cell; /* [cells of the grid] */
};

/* Reads what there is; what is not there yet is no error, a damaged file is. results_free takes a zeroed struct too. */
struct err results_read(const char *folder, const struct study *s, const struct grid *g, struct results *out);
void results_free(struct results *r);

/* The row of a cell, NULL if there is none. */
const struct row *results_find(const struct results *r, int cell, int scaling, double multiple, const char *group);

/* What one place of a table shows. */
enum summary_state {
	SUMMARY_FOUND,      /* some seeds have it */
	SUMMARY_EMPTY,      /* the group has no scored token at this length */
	SUMMARY_ABSENT,     /* not computed yet */
	SUMMARY_IMPOSSIBLE, /* the model cannot take it, or the study does not ask for it */
	SUMMARY_DIVERGED,   /* every seed diverged */
};

struct summary {
	enum summary_state state;
	int seeds, done, diverged;
	double perplexity;      /* geometric mean over the seeds done */
	double least, greatest; /* of their perplexities */
	double accuracy, floor; /* means */
	int64_t scored;         /* tokens a seed */
	int64_t sequences;
	int length;
};

/* Over the seeds of a grid's group of cells, for one of the task's groups. */
struct summary results_summary(const struct results *r, int cells, int scaling, double multiple, const char *group);

/* The first cell of a group of cells. */
int results_first(const struct results *r, int cells);

/* A seed has reached the floor if its perplexity at 1x in the task's first group is at most 1.1 times the floor, under
 * the first scaling that leaves the model as it was trained (factor 1). */
#define FLOOR_REACHED 1.1
struct reached {
	int seeds, known, reached;
};
struct reached results_reached(const struct results *r, int cells);

/* "k of n": on how many seeds and multiples beyond 1x one scaling's perplexity is below another's, same weights, same
 * sequences, in the task's first group. */
struct order {
	int better, compared;
};
struct order results_order(const struct results *r, int cells, int scaling, int other);

#endif
