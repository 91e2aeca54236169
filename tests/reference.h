#ifndef ROPEWALK_TESTS_REFERENCE_H
#define ROPEWALK_TESTS_REFERENCE_H

#include "model/transformer.h"

/* The oracle: the whole model once more, written from the formulas alone, in double, with plain loops and full T x T
 * matrices. It shares with the program the layout's names and the options' values, and no arithmetic. What it does
 * not know it refuses; tests that walk the lists ask first. */

/* Is this encoding or scaling written out here? */
bool reference_knows(const struct entry *e);

/* Logits [B][T][V] and nll [B][T] (0 where the target is -1; either may be NULL); returns the sum of the nll.
 * positions [T], NULL: 0 .. T - 1; scaling NULL: none. Rows past a learned table are not known for overflow=random. */
double reference_forward(const struct model *m, const struct method *scaling, int B, int T, const double *positions,
			 const int32_t *token, const int32_t *target, double *logits, double *nll);

/* Logits of attention [layers][H][T][T] of one sequence at the positions 0 .. T - 1, -inf where a query does not see a
 * key up to its own. */
void reference_scores(const struct model *m, const struct method *scaling, int T, const int32_t *token, double *score);

/* inv_freq [D / 2] and attention factor of a scaling for a sequence whose largest position is length - 1. */
void reference_frequencies(const struct method *scaling, double rope_theta, int D, int train_length, double length,
			   double *inv_freq, double *attention_factor);

/* The distance at which query i sees key j <= i of a sequence of T under a scaling; NAN where it does not see it. */
double reference_distance(const struct method *scaling, int train_length, int T, const double *positions, int i, int j);

/* ALiBi's slope of a head; T5's causal bucket of a distance. */
double reference_slope(bool spread, int head, int H);
int reference_bucket(int buckets, int max_distance, int distance);

#endif
