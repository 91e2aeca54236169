#ifndef ROPEWALK_LOOP_H
#define ROPEWALK_LOOP_H

#include "data/options.h"
#include "model/transformer.h"
#include "train/options.h"

/* Options to trained weights. Silent: what is printed and written reaches it as hooks. */

/* What one step did; loss and accuracy are those before the update. */
struct step_report {
	int64_t step, steps; /* step counts from 1 */
	double loss;         /* mean NLL over the batch's scored tokens, nats */
	double accuracy;     /* share of them predicted right */
	double grad_norm;    /* before clipping */
	double lr;
	int64_t tokens;      /* of the batch */
};

struct train_hooks {
	struct err (*step)(void *data, const struct step_report *report); /* after each step; an error stops training */
	void *data;
};

/* What training reserves, in bytes. */
struct train_plan {
	size_t parameters; /* number of reals */
	size_t slabs, activations, batch;
};
struct err train_plan(const struct model_options *model, const struct data_options *data,
		      const struct train_options *train, struct train_plan *out);

/* Training step by step. The model (open, initialised) changes in place; it and the options must outlive the training.
 * training_close takes NULL too. */
struct training;
struct err training_open(struct model *m, const struct data_options *data, const struct train_options *train,
			 struct training **out);
struct err training_step(struct training *t, struct step_report *report); /* the next step */
void training_close(struct training *t);

/* Trains an open, initialised model (its values change in place). Batch b of step i is made of sequences
 * i batch + b of stream `train`. A loss or gradient that is not finite ends it with ERR_DIVERGED before the update,
 * naming step and tensor; the values are then those of the last good step. */
struct err train_run(struct model *m, const struct data_options *data, const struct train_options *train,
		     const struct train_hooks *hooks);

#endif
