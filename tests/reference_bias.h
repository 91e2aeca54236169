#ifndef ROPEWALK_TESTS_REFERENCE_BIAS_H
#define ROPEWALK_TESTS_REFERENCE_BIAS_H

#include "model/transformer.h"

/* The oracle's biases: what an encoding adds to scale q.k for query i and key j <= i at these positions, -inf where it
 * masks the key; from the published formulas, in double, pair by pair. 0 for encodings without a bias. */
bool reference_has_bias(const struct entry *e);

/* bias [T][T] of a head, the lower triangle alone, where distance [T][T] is a number; query [T] are the positions of
 * queries. */
void reference_biases(const struct model *m, int layer, int head, int T, const double *query, const double *distance,
		      double *bias);

#endif
