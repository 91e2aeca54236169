#ifndef ROPEWALK_GRADCHECK_H
#define ROPEWALK_GRADCHECK_H

#include "model/transformer.h"

/* The hand-written backward pass against differences of the forward pass. Means something in the double build only. */

struct gradcheck {
	const struct parameter *worst; /* the tensor with the greatest error */
	double error;
	int tensors;
};

/* For every tensor and `directions` random directions d of +1 and -1: |difference - gradient . d| / |gradient|, where
 * the difference of the mean loss along d is central and of fourth order, and |gradient . d| is of the size of
 * |gradient| for such d; where the loss has kinks, of the step that fits best. The model's values are left as they
 * were. `gradient` [layout.size] receives the gradient.
 * A tensor whose gradient and difference are both 0 has error 0; one whose gradient is below 1e-4 of the whole gradient
 * is measured against that, as its own may be all rounding. */
struct gradcheck gradcheck(struct model *m, struct transformer *t, const int32_t *token, const int32_t *target,
			   int directions, uint64_t seed, real *gradient);

#endif
