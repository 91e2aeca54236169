#ifndef ROPEWALK_MODEL_INPUT_H
#define ROPEWALK_MODEL_INPUT_H

#include "model/base/safetensors.h"
#include "model/transformer.h"
#include "runs/config.h"

/* What commands that are given tensors and a model share. */

/* Usage error if an option of the model was given where the file `path` says what model it is. */
struct err input_no_model_option(const struct config *c, const char *path);

/* config_finish for a command whose word `path` is a model: where that says itself what it is, the error for an
 * option of the model is that it was given, not what it would do to the default model. */
struct err input_finish(struct config *c, const char *path);

/* Names on stderr what of a file was ignored, if anything was. */
void input_ignored(const char *path, const struct text_builder *names);

/* Names on stderr the layout that a rotating model is read with, where neither the file nor the user says one: the
 * other would be wrong in silence. */
void input_rope_layout(const char *path, const struct safetensors *file, const struct model_options *options);

/* A model of a safetensors file: ours knows its options, those of another take the flags, and sizes from its shapes.
 * model_close it. */
struct err input_model(const struct config *c, const char *path, struct model *m);

/* A tensor `positions` (T), 0 to 16777216 and never decreasing, into positions [T]; NULL: 0, 1, 2 ... */
struct err input_positions(const char *path, const struct tensor *t, int T, double *positions);

/* --length: an `auto` factor for another length than the one that the positions reach becomes a given one. 0: the
 * one they reach. */
struct err input_scaling_length(struct method *scaling, const struct model_options *options, double reached,
				int64_t length);

#endif
