#ifndef ROPEWALK_STUDY_TUNE_H
#define ROPEWALK_STUDY_TUNE_H

#include "model/base/lease.h"
#include "runs/study/grid.h"

/* Models that a study fine-tunes (option `finetune`): cells whose weights go on from those of another cell. */

/* Appends to a grid whose cells stand, for each scaling that `finetune` names, a cell for every model that takes it:
 * trained on under it with the options finetune_..., and evaluated under it with its factor resolved for the length it
 * was trained at. They come behind all others, seeds being neighbours; `cell.base` is the model each goes on from. A
 * scaling that no model takes, or a length that one was trained beyond, is a usage error. */
struct err tune_cells(struct grid *g);

/* Trains the cell in the folder `path`, as run_train does, from the weights in `base_path`, the finished run of its base.
 * `base_config`: the base cell's. The lease on the base is released once its weights are read. */
struct err tune_train(const char *path, const struct config *config, const char *base_path,
		      const struct config *base_config, struct lease **base_lease, const char *command_line,
		      const char *what);

#endif
