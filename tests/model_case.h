#ifndef ROPEWALK_TESTS_MODEL_CASE_H
#define ROPEWALK_TESTS_MODEL_CASE_H

#include "model/transformer.h"
#include "tests/support.h"

/* Small models for tests: one by label of encoding and scaling, with a batch of random tokens. */
struct model_case {
	struct model model;
	struct method scaling;
	struct transformer *transformer;
	int B, T;
	int32_t *token, *target; /* [B][T] */
	real *gradient;          /* [layout.size] */
};

/* Options of a small model: 2 layers, width 32, 2 heads, hidden 24, train_length 16. */
struct model_options small_options(const char *encoding);
/* These with another width and number of heads. */
struct model_options sized_options(const char *encoding, int width, int heads);
/* These with rope of one head. */
struct model_options rope_options(double theta, int D, int train_length);

/* A scaling by its label. */
struct method scaling_named(const char *label);

/* Opens a model with random weights (so that zero-initialised tensors matter) and a transformer with gradients.
 * About a third of the targets is not scored. `positions` may be NULL. */
void case_open(struct model_case *c, const struct model_options *options, const char *scaling, int B, int T,
	       const double *positions);
void case_open_method(struct model_case *c, const struct model_options *options, const struct method *scaling, int B,
		      int T, const double *positions);
void case_close(struct model_case *c);

/* Mean NLL of the case's batch. */
double case_loss(struct model_case *c);

/* Logits [B][T][V] of the case's batch, in fresh memory. */
real *case_logits(struct model_case *c);

#define CASE_V 23

#endif
