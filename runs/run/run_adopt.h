#ifndef ROPEWALK_RUN_ADOPT_H
#define ROPEWALK_RUN_ADOPT_H

#include "runs/config.h"

/* Runs whose options differ only in what evaluation alone uses (config_training_identity) have the same weights, bit by
 * bit: one training serves them all. */

/* Makes a run in `path` as run_train would, with what the finished run in the folder `from` was trained to: the weights
 * under its own options, train.jsonl, timing.jsonl, and a record that says `weights_of` and which program trained
 * them; wall_seconds is 0. `adopted` is false, and nothing is written, where `from` has no such weights to give: not
 * finished, other training, other precision, damaged, or at work; the reason goes to `why`, and training is left to the
 * caller. */
struct err run_adopt(const char *path, const struct config *c, const char *command_line, const char *from,
		     bool *adopted, struct err *why);

#endif
