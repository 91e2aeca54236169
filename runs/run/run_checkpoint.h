#ifndef ROPEWALK_RUN_CHECKPOINT_H
#define ROPEWALK_RUN_CHECKPOINT_H

#include "runs/config.h"
#include "train/checkpoint.h"

/* A run's checkpoint-STEP.safetensors: STEP has ten digits, so that the last by name is the newest. */

#define RUN_CHECKPOINTS "checkpoint-*.safetensors"
#define RUN_BROKEN ".broken" /* put behind the name of one that nothing can go on from */
#define RUN_BROKEN_ONES "checkpoint-*.safetensors.broken"

/* Text of --save-every: every so many steps ("500") or seconds ("60s", "0.5s"). The other one is 0. NULL is the
 * default. */
struct save_every {
	int64_t steps;
	double seconds;
};
struct err save_every_parse(const char *text, struct save_every *out);

struct err run_checkpoint_there(const char *folder, bool *there); /* is there any, good or not? */

/* Writes the checkpoint of this moment, with the run's options as metadata, and then removes all but the two newest. */
struct err run_checkpoint_save(const char *folder, const struct config *c, struct training *t);

/* Continues `t` with the newest checkpoint that verifies and has at most `most` steps; `*step` 0: there is none, and
 * `t` is as it was. One that does not verify or has more steps gets another name and is told on stderr. One that was
 * made with other options is a usage error that names the option and both values. */
struct err run_checkpoint_load(const char *folder, const struct config *c, int64_t most, struct training *t,
			       int64_t *step);

#endif
