#ifndef ROPEWALK_CALIBRATION_H
#define ROPEWALK_CALIBRATION_H

#include "eval/perplexity.h"

/* One temperature for a model at one length under one scaling (Guo et al. 2017, 1706.04599, section 4.2): the T > 0 of
 * least NLL of softmax(logits / T) over all scored tokens of a few sequences of stream `tune`, index 0 on, and the NLL
 * of the request's sequences under it. What it takes off a perplexity was overconfidence; what stays is not known.
 *
 * The NLL's first two derivatives by ln T are summed at fixed temperatures, half an octave apart from 1/8 to 256; its
 * slope, which changes sign once, is interpolated between them (cubic Hermite). Past the ends T is the end. */

#define CALIBRATION_SEQUENCES 16

struct calibration {
	double temperature;
	double factor;       /* scaling_factor in force */
	int groups;
	const char *group[EVAL_GROUPS];
	struct eval_cell cell[EVAL_GROUPS]; /* scored, nll and perplexity alone */
};

/* Beside eval_check and eval_check_size, which it needs. Not for kv, or positions of a sequence's own; usage errors. */
struct err calibration_check(const struct eval_request *request);
struct err calibration_check_size(const struct eval_request *request);

/* `progress` as eval_run's, over both parts. Memory is linear in the length. */
struct err calibration_run(const struct eval_request *request, eval_progress *progress, void *data,
			   struct calibration *out);

#endif
