#ifndef ROPEWALK_RUN_ORIGIN_H
#define ROPEWALK_RUN_ORIGIN_H

#include "model/base/safetensors.h"
#include "runs/config.h"

/* What a run's files say of the options they come from: metadata "data" and "training" beside the model's own, each a
 * JSON object of texts by option name. */

struct origin {
	char *data, *training;
	struct metadata metadata[2]; /* for safetensors_write */
};
void origin_open(const struct config *c, struct origin *out);
void origin_close(struct origin *o);

/* Usage error if an option that changes results is another in the file than in the config: names it and both values.
 * `model`: the file's model options. `hint`: what to do then. */
struct err origin_check(const struct config *c, const struct safetensors *file, const struct model_options *model,
			const char *path, const char *hint);

/* The same of two configs; `theirs` comes from `place`. */
struct err origin_compare(const struct config *mine, const struct config *theirs, const char *place, const char *hint);

#endif
