#ifndef ROPEWALK_RUN_EXAMINE_H
#define ROPEWALK_RUN_EXAMINE_H

#include "eval/perplexity.h"
#include "runs/config.h"
#include "runs/progress.h"

/* One finished run that a command evaluates many times over, at one multiple of its train_length. Writes nothing. */
struct examined {
	char *folder;
	struct config *config; /* model, data and train of the run, eval of the command line */
	struct model model;
	double multiple;
	int length;
};

/* `c` is the command line's config; model, data and train become the run's. examined_close takes a zeroed one too. */
struct err examined_open(const char *path, struct config *c, double multiple, struct examined *out);
void examined_close(struct examined *x);

struct eval_request examined_request(const struct examined *x, const struct method *scaling, int length);

/* An error if `results` results of all its sequences at once do not fit beside the work. */
struct err examined_fits(const struct examined *x, int results);

/* Weights may be finite, and so large that no sum of them is: ERR_DIVERGED. */
struct err eval_result_finite(const struct eval_result *r, const char *label, int length);

/* Progress of `count` evaluations as that of one; `data` of an eval_progress. Begin with progress_start; `done` of them
 * have ended. */
struct many_progress {
	struct progress progress;
	int done, count;
};
struct err many_progress_show(void *many, int64_t done, int64_t total);

/* The index of a task's group, -1 for "" . The error names the nearest and all there are. */
struct err examined_group(const struct method *task, const char *name, int *group);

#endif
