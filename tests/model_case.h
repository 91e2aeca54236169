#ifndef ROPEWALK_TESTS_MODEL_CASE_H
#define ROPEWALK_TESTS_MODEL_CASE_H

#include "model/selfcheck.h"
#include "tests/support.h"

/* The small models of model/selfcheck.h for tests: by label of encoding and scaling; what goes wrong fails the test. */

/* model_case_options. */
struct model_options small_options(const char *encoding);
/* These with another width and number of heads. */
struct model_options sized_options(const char *encoding, int width, int heads);
/* These with rope of one head. */
struct model_options rope_options(double theta, int D, int train_length);

/* Every listed encoding under options that take any length; returns how many. */
#define ENCODINGS 32
int all_encodings(struct method method[ENCODINGS]);

/* A scaling by its label. */
struct method scaling_named(const char *label);

/* model_case_open. `positions` may be NULL. */
void case_open(struct model_case *c, const struct model_options *options, const char *scaling, int B, int T,
	       const double *positions);
void case_open_method(struct model_case *c, const struct model_options *options, const struct method *scaling, int B,
		      int T, const double *positions);
void case_close(struct model_case *c);

/* Mean NLL of the case's batch. */
double case_loss(struct model_case *c);

/* Logits [B][T][V] of the case's batch, in fresh memory. */
real *case_logits(struct model_case *c);

#endif
