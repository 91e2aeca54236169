#ifndef ROPEWALK_STUDY_PLAN_H
#define ROPEWALK_STUDY_PLAN_H

#include "runs/study/study.h"

/* What is to be done in a study, as its folder is now. */

struct cell_plan {
	char *path;
	bool train;
	int sibling;            /* whose weights it takes over instead, -1: none */
	bool diverged;          /* before, and not to be tried again */
	int64_t train_tokens, eval_tokens;
	int possible, missing;  /* evaluations: scalings by lengths */
	bool *wanted;           /* [scalings][lengths]: missing */
	size_t parameters, bytes, space; /* bytes: of memory, to train; space: on disk */
	bool over;              /* nothing is left to be done for it, or nothing more can be */
};

struct plan {
	const struct study_job *job;
	struct cell_plan *cell; /* stb_ds */
};

/* Looks at every cell; an error is that of the first that cannot be computed. plan_free it in any case. */
struct err plan_make(struct plan *plan);
void plan_free(struct plan *plan);

/* Looks at one cell again: other processes may have worked on it. */
struct err plan_renew(struct plan *plan, int index);

/* What is to do, on stderr. */
void plan_print(const struct plan *plan);

/* Does the disk have room for what is to be trained? */
struct err plan_disk_suffices(const struct plan *plan);

bool cell_has_work(const struct cell_plan *p);

/* The share of the work by tokens; a trained token costs about three evaluated ones, forward and backward. */
double cell_work(const struct cell_plan *p);

#endif
