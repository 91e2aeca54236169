#ifndef ROPEWALK_FIT_H
#define ROPEWALK_FIT_H

#include "train/loop.h"

/* Some tensors of a trained model fitted by gradient, all others frozen: what they could have been. */

struct fit_request {
	struct model *model;       /* changes in place */
	const struct data_options *data;
	const struct train_options *train; /* steps, batch and what AdamW takes */
	const char *const *tensor; /* names of the fitted ones, NULL past the last */
	int length;                /* tokens of a sequence */
	int group;                 /* of the task: the loss is that of its tokens; -1: of every scored token */
	enum stream stream;        /* sequences `first` and after of this stream and seed: step i takes the batch */
	uint64_t seed, first;      /* first + i batch ... */
};

/* Can it be fitted: task, positions that stay as they are, memory? */
struct err fit_check(const struct fit_request *q);

/* Called after each step (may be NULL); an error of it ends the fit. The report's loss is that before the update,
 * grad_norm that of the fitted tensors. */
typedef struct err fit_step(void *data, const struct step_report *report);

/* AdamW by train's schedule; clipping by the fitted tensors' norm. Tensors that are not named keep their bits. A loss
 * or norm that is not finite ends it with ERR_DIVERGED before the update. */
struct err fit_run(const struct fit_request *q, fit_step *step, void *data);

#endif
