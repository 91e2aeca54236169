#ifndef ROPEWALK_SELFCHECK_H
#define ROPEWALK_SELFCHECK_H

#include "model/gradcheck.h"

/* What must hold of every encoding under every scaling, checked on a small model with random weights and tokens. */

/* Such a model and its batch. */
struct model_case {
	struct model model;
	struct method scaling;
	struct transformer *transformer; /* with gradients */
	int B, T;
	int32_t *token, *target; /* [B][T]; about a third of the targets is not scored */
	real *gradient;          /* [layout.size] */
	struct arena memory;
};

/* 2 layers, width 32, 2 heads, hidden 24, train_length 16. */
struct model_options model_case_options(const struct method *encoding);

/* Every weight is random, those that start at zero or one too, so that no gradient is small. `positions` may be NULL.
 * model_case_close takes a case that failed to open, too. */
#define CASE_V 23
struct err model_case_open(const struct model_options *options, const struct method *scaling, int B, int T,
			   const double *positions, struct model_case *out);
void model_case_close(struct model_case *c);

/* What to check: an encoding with options under a scaling with options. */
struct selfcheck_case {
	struct method encoding, scaling;
};

/* Every listed encoding without a scaling, at its defaults and at every other value of each switch and choice it has;
 * then each encoding under each scaling that it takes, the scaling at its defaults and other values likewise. With
 * `encoding`, that one alone, as it is. An stb_ds array. */
struct selfcheck_case *selfcheck_cases(const struct method *encoding);

/* What was found, at a length of 150 (more than trained, and more than one tile), or at the trained one where the
 * encoding takes no longer. */
struct selfcheck {
	int T, tensors;
	double error;   /* the greatest of gradcheck's, and the tensor that has it */
	char worst[96];
	bool causal;    /* to the bit: logits do not change with later tokens, nor with another sequence's */
	bool same_bits; /* loss and gradients, with 1 thread and with several */
};

/* Greatest error of a right gradient; means something in the double build only. */
#define SELFCHECK_LIMIT 1e-7

/* Threads are left as they were. */
struct err selfcheck(const struct selfcheck_case *c, struct selfcheck *found);

/* NULL, or what is wrong: "gradient", "not causal", "other bits with more threads". */
const char *selfcheck_fault(const struct selfcheck *found);

#endif
