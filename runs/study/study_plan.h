#ifndef ROPEWALK_STUDY_PLAN_H
#define ROPEWALK_STUDY_PLAN_H

#include "runs/study/study.h"

#include <stdio.h>

/* What is to be done in a study, as its folder is now. */

struct cell_plan {
	char *path;
	bool train;
	bool anew;              /* not from a checkpoint: its results are to be replaced */
	int sibling;            /* whose weights it takes over instead, -1: none */
	bool diverged;          /* before, and not to be tried again; or its base did, which it was to go on from */
	int64_t train_tokens, eval_tokens;
	int possible, missing;  /* evaluations: scalings by lengths */
	bool *wanted;           /* [scalings][lengths]: missing */
	size_t parameters, bytes, space; /* bytes: of memory, to train; space: on disk */
	double seconds;         /* that the work may take, by plan_estimate */
	bool foreign;           /* of another shard */
	struct err damaged;     /* why nothing can be done for it */
	bool over;              /* nothing is left to be done for it, or nothing more can be */
};

struct plan {
	const struct study_job *job;
	struct cell_plan *cell; /* stb_ds */
};

/* Looks at every cell of the job's shard. One whose folder is damaged is `damaged`; an error is that of the first that
 * asks for too much. plan_free it in any case. */
struct err plan_make(struct plan *plan);
void plan_free(struct plan *plan);

/* Looks at one cell again: other processes may have worked on it. */
struct err plan_renew(struct plan *plan, int index);

/* A cell that was to be fine-tuned has no work, as if it had diverged itself, once its base has diverged. */
void plan_heed_base(struct plan *plan, int index);

/* With --force, for the one of a team that speaks: what is marked as computed by this team was so by an earlier one of
 * the same token, and is to be computed anew. */
struct err plan_forget_forced(struct plan *plan);

/* Sums over the cells of the shard. */
struct totals {
	int models, training, adopting, evaluating, finished, diverged, other_version, possible, missing;
	int64_t train_tokens, eval_tokens;
	size_t parameters, bytes, space; /* parameters, bytes: the most of any */
	double seconds;
};
struct totals plan_totals(const struct plan *plan);

/* What is to do. With `cells` also a line for each that has work. */
void plan_print(const struct plan *plan, bool cells, FILE *to);

/* Does the disk have room for what is to be trained? */
struct err plan_disk_suffices(const struct plan *plan);

bool cell_has_work(const struct cell_plan *p);

/* Its share of the work: the seconds estimated, or by tokens, of which a trained one, forward and backward, costs about
 * three evaluated ones. */
double cell_work(const struct cell_plan *p);

#endif
