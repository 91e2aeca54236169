#ifndef ROPEWALK_RUN_TUNING_H
#define ROPEWALK_RUN_TUNING_H

#include "runs/config.h"

/* What fine-tuning makes of the options that its base was trained with. */

#define TUNING_STEPS 200
#define TUNING_RATE 0.3   /* of the base's lr */
#define TUNING_WARMUP 0.1 /* of the steps */

/* So many sequences of `length` tokens that a batch has as many tokens as the base's; at least one. */
int64_t tuning_batch(const struct config *base, int64_t length);

/* The base's config as that of a model which goes on from its weights, under `scaling` with its factor resolved for this
 * length: model and training options; train.base is the caller's to set. rate: a share of the base's lr. Usage
 * errors: the model does not take the scaling, or positions so far. */
struct err tuning_config(const struct config *base, const struct method *scaling, int64_t length, int64_t steps,
			 double rate, struct config *out);

#endif
