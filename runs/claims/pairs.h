#ifndef ROPEWALK_PAIRS_H
#define ROPEWALK_PAIRS_H

#include "runs/claims/claims.h"

/* Trained models with rope whose pairs are held still, all that turn fully within train_length at once and then all
 * slower ones: do the fast ones cost echo (the token before) more than the slow ones do, and the slow ones recall (a
 * pair further back) more than the fast? A sign test over the seeds each. */
struct err claim_fast_pairs(const struct results *r, struct finding *out);

#endif
