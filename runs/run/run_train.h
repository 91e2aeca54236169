#ifndef ROPEWALK_RUN_TRAIN_H
#define ROPEWALK_RUN_TRAIN_H

#include "runs/config.h"
#include "train/loop.h"

#include <stdio.h>

/* Training into a run's folder: logs, weights, record. */

struct run_trained {
	int64_t steps;
	double loss, accuracy; /* of the last step; 0 if there was none */
	double seconds, tokens_per_second;
};

/* All that can be checked of the job without doing it (lengths, sizes, memory); with `plan`, what it takes. */
struct err run_train_check(const struct config *c, struct train_plan *plan);

/* The same of one that goes on from another run's weights. */
struct err run_train_check_from(const struct config *c, struct train_plan *plan);

/* Creates the folder (run_folder_create, with c->run.force) and trains, with progress on stderr named `what`. With
 * c->run.resume a run that is there goes on after its last checkpoint instead, to the same bits as without a stop; what
 * has none is replaced. Checkpoints are written every c->run.save_every and at the end. A run that has diverged leaves
 * no model; its record says "diverged". A signal (stop.h) ends it after the step with ERR_STOPPED, saved, its record
 * "stopped". A disk without room for what training writes is an error before any work. */
struct err run_train(const char *path, const struct config *c, const char *command_line, const char *what,
		     struct run_trained *out);

/* The same from the values of a model of the same layout; c->train.base is their checksum. */
struct err run_train_from(const char *path, const struct config *c, const struct model *base,
			  const char *command_line, const char *what, struct run_trained *out);

#endif
