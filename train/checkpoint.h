#ifndef ROPEWALK_CHECKPOINT_H
#define ROPEWALK_CHECKPOINT_H

#include "model/base/safetensors.h"
#include "train/loop.h"

/* A training between two steps as a safetensors file: the values under the layout's names, AdamW's first and second
 * moments as adam.m.NAME and adam.v.NAME, and the number of steps done as metadata "step". The place in the data is a
 * function of the step. Otherwise as weights.h says of models. */

#define CHECKPOINT_FORMAT "ropewalk-checkpoint-1"

/* Writes atomically, with `extra` metadata added (may be NULL). A value or moment that is not finite is ERR_DIVERGED and
 * leaves what is there: training on from it would give nothing else. */
struct err checkpoint_write(struct training *t, const char *path, const struct metadata *extra, int extra_count);

/* Continues an opened training as the file has it. Usage errors: a damaged file, another format, other tensors than
 * the model's, numbers that are not finite, more steps than the training has. What the training holds is then lost. */
struct err checkpoint_read(struct training *t, const struct safetensors *file, const char *path);

#endif
