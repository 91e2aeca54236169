#ifndef ROPEWALK_COURSE_H
#define ROPEWALK_COURSE_H

#include "data/options.h"
#include "model/positions.h"
#include "train/options.h"

/* What may change from step to step of a training beside the weights: the length of its sequences (options length,
 * length_least) and the encoding (drop_rope_at). All of it depends on the options and the number of the step alone. */

/* Tokens of the longest and of the shortest sequences. */
int course_longest(const struct model_options *model, const struct train_options *train);
int course_shortest(const struct model_options *model, const struct train_options *train);

/* Tokens of the sequences of the batch after `step` steps: uniform over the lengths from the shortest to the longest, a
 * function of (seed, step). */
int course_length(const struct model_options *model, const struct train_options *train, int64_t step);

/* Number of the first sequence of that batch in stream `train`. Fine-tuning goes on with others than its base's. */
uint64_t course_first(const struct train_options *train, int64_t step);

/* Does it go on from the weights of another run? */
bool course_tunes(const struct train_options *train);

/* Tokens of all batches of the first `steps` steps. */
int64_t course_tokens(const struct model_options *model, const struct train_options *train, int64_t steps);

/* The model's options after `step` steps: from step drop_rope_at on with `dropped` (Gelberg et al. 2025, 2512.12167). */
struct model_options course_model(const struct model_options *model, const struct train_options *train, int64_t step);

/* Who numbers the training sequences. */
struct numbering course_numbering(const struct model_options *model, const struct data_options *data);

/* Usage errors: lengths in the wrong order, or that the task cannot make; positions that do not fit them; a scaling that
 * the model does not take; rope to be dropped where there is none, or after the last step. */
struct err course_check(const struct model_options *model, const struct data_options *data,
			const struct train_options *train);

#endif
