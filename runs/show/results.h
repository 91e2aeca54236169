#ifndef ROPEWALK_RESULTS_H
#define ROPEWALK_RESULTS_H

#include "eval/statistics.h"
#include "runs/run/measures.h"
#include "runs/study/study_folder.h"

/* A study's numbers read back from its runs' folders, and summarised over seeds. */

struct cell_results {
	enum cell_status status; /* CELL_DIVERGED, without a record, also where it was to be fine-tuned from one that did */
	const char *folder;  /* kept */
	struct row **row;    /* [scalings] stb_ds arrays: every row of that scaling's file */
	struct measure_row **calibration; /* [scalings] stb_ds arrays, if the cell asks for it */
	struct by_sequence {
		bool read;
		struct sequence_row *row; /* stb_ds array */
	} *sequence;         /* [scalings] read when first asked for */
	json_t *record;      /* NULL if there is none */
};

struct results {
	const struct study *study;
	const struct grid *grid;
	const char *folder;
	struct cell_results *cell; /* [cells of the grid] */
	struct err *late;          /* the first error of what was read when asked for */
};

/* Reads what there is; what is not there yet is no error, a damaged file is. results_free takes a zeroed struct too. */
struct err results_read(const char *folder, const struct study *s, const struct grid *g, struct results *out);
void results_free(struct results *r);
/* One cell's, of the folder and status that are in it already: empty, or read from the folder. results_free frees it,
 * also after an error. */
struct err cell_results_read(const struct cell *c, bool read, struct cell_results *out);

/* Does the cell's task have this group of tokens? */
bool results_has_group(const struct cell *c, const char *group);

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

#define INTERVAL_SEEDS 5 /* from so many on, an interval is shown; below, the least and greatest */
#define CONFIDENCE 0.95

struct summary {
	enum summary_state state;
	int seeds, done, diverged;
	double perplexity;      /* geometric mean over the seeds done */
	double least, greatest; /* of their perplexities */
	double accuracy, floor; /* means; the floor NaN where it is not known */
	struct interval nll;    /* t interval over seeds of the mean NLL, nats */
	struct interval logit;  /* of the accuracy's empirical logit, made wide enough for the mean accuracy */
	double nll_se;          /* error of the mean NLL that comes from the sequences: clustered by sequence, seeds given */
	bool noisy;             /* it exceeds half the spread of the seeds (or there is one seed) */
	int64_t scored;         /* tokens a seed */
	int64_t sequences;
	int length;
};

/* Over the seeds of a grid's group of cells, for one of the task's groups. */
struct summary results_summary(const struct results *r, int cells, int scaling, double multiple, const char *group);

/* Adds `sign` times the NLL of each sequence to tally [sequences of the cell]; scored tokens where sign is positive. */
void results_tally(const struct results *r, int cell, int scaling, double multiple, const char *group, double sign,
		   struct eval_tally *tally);

/* The first cell of a group of cells. */
int results_first(const struct results *r, int cells);

/* A seed has reached the floor if its perplexity at 1x in the task's first group is at most 1.1 times the floor, under
 * the first scaling that leaves the model as it was trained (factor 1). None is `known` where the floor is not. */
#define FLOOR_REACHED 1.1
struct reached {
	int seeds, known, reached;
};
struct reached results_reached(const struct results *r, int cells);

#endif
