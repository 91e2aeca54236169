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
	int length;          /* of its sequences, where that is drawn; else 0 */
};

struct training;

/* An error of a hook ends training. */
struct train_hooks {
	struct err (*start)(void *data, struct training *t); /* before the first step, to continue another training */
	struct err (*step)(void *data, struct training *t, const struct step_report *report); /* after each step */
	struct err (*end)(void *data, struct training *t); /* when all steps are done */
	void *data;
};

/* What training reserves, in bytes. */
struct train_plan {
	size_t parameters; /* number of reals */
	size_t slabs, activations, batch;
};
struct err train_plan(const struct model_options *model, const struct data_options *data,
		      const struct train_options *train, struct train_plan *out);

/* Training step by step. The model (open, initialised) changes in place, its options too where the course
 * (course.h) says so; it and the options must outlive the training.
 * training_close takes NULL too. */
struct err training_open(struct model *m, const struct data_options *data, const struct train_options *train,
			 struct training **out);
struct err training_step(struct training *t, struct step_report *report); /* the next step */
/* Goes on as after `step` steps, with values and moments that the caller has set. */
struct err training_continue(struct training *t, int64_t step);
void training_close(struct training *t);

/* What a training goes on from, between two steps; for checkpoints. */
struct training_state {
	struct model *model;
	real *m, *v;    /* AdamW's moments, slabs of the model's layout */
	const int64_t *step; /* steps done */
	int64_t steps;  /* of the whole training */
};
struct training_state training_state(struct training *t);

/* Back to the start: initial values by the seed, moments of zero, no step done. */
void training_begin(struct training *t);

extern const char training_diverged_hint[];

/* Trains an open, initialised model (its values change in place). Batch b of step i is made of sequences
 * i batch + b of stream `train` (course_first). A loss or gradient norm that is not finite ends it with ERR_DIVERGED
 * before the update, naming step, loss, gradient norm and the first tensor that is not finite; the values are then
 * those of the last good step. Steps begin after those that hooks->start has found done. */
struct err train_run(struct model *m, const struct data_options *data, const struct train_options *train,
		     const struct train_hooks *hooks);

#endif
