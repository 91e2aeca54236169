#ifndef ROPEWALK_LOSS_H
#define ROPEWALK_LOSS_H

#include "model/base/real.h"

#include <stdint.h>

/* Cross-entropy of rows of logits [rows][V] against target [rows]; a target of -1 is not scored: nll 0, best -1.
 * Turns each scored row of `logits` into its probabilities, for the backward pass.
 *   nll [rows]  ln sum_v exp(logit_v) - logit_target, nats, summed in double from the row's maximum
 *   best [rows] the likeliest token, the lowest id of equals */
void cross_entropy(int rows, int V, const int32_t *target, real *logits, double *nll, int32_t *best);

/* Probabilities to the gradient of scale * (sum of nll), in place: scale (p_v - [v = target]); 0 where not scored. */
void cross_entropy_back(int rows, int V, const int32_t *target, double scale, real *probability);

#endif
