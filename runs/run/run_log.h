#ifndef ROPEWALK_RUN_LOG_H
#define ROPEWALK_RUN_LOG_H

#include "train/loop.h"

#include "model/base/text.h"

/* train.jsonl, a line a step that holds only what the job alone determines, and timing.jsonl, which holds the rest. */

void run_log_line(struct text_builder *b, const struct step_report *s); /* appends a line of train.jsonl */
void run_log_timing(struct text_builder *b, int64_t step, double seconds, double tokens_per_second);

/* How many steps train.jsonl has from the first on, without a gap and with nothing damaged between; 0 if there is no
 * such file. */
struct err run_log_steps(const char *folder, int64_t *steps);

/* What the lines say that are kept; 0 where there are none. */
struct run_logged {
	double loss, accuracy; /* of the last step */
	double seconds;        /* spent on them, as far as timing.jsonl says */
};

/* Cuts both files back to the first `steps` steps, which train.jsonl must have. Atomic, file by file. */
struct err run_log_cut(const char *folder, int64_t steps, struct run_logged *out);

#endif
