#ifndef ROPEWALK_RUN_MODEL_H
#define ROPEWALK_RUN_MODEL_H

#include "model/transformer.h"
#include "runs/config.h"

/* The model.safetensors of a run's folder. */

/* Writes the weights, with the options of model, data and training that they come from as metadata. No versions: equal
 * training makes equal files. */
struct err run_model_write(const char *folder, const struct config *c, const struct model *m);

/* Reads it back and holds it to the config of the run: a file that is missing, damaged or made with other options is a
 * usage error. model_close it. */
struct err run_model_read(const char *folder, const struct config *c, struct model *m);

/* The checksum of its weights, kept. */
struct err run_model_sum(const char *folder, const char **sum);

/* Bytes that training this model takes on disk at most: weights, checkpoints, logs and the small files. */
size_t run_model_space(const struct config *c, size_t parameters);

/* Bytes of them that the folder's files have already, when a run goes on: 0 where there is no folder. */
size_t run_model_taken(const char *folder);

/* An error if the file system of the folder (which need not exist yet) has less than what is then missing. */
struct err run_model_fits(const char *folder, size_t bytes);

#endif
