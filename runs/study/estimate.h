#ifndef ROPEWALK_ESTIMATE_H
#define ROPEWALK_ESTIMATE_H

#include "runs/study/study_plan.h"

/* Fills the cells' `seconds`, by trial: of each kind of cell (those that the seed alone tells apart) a few steps are
 * trained and a few sequences evaluated at its least and at its greatest length, on random weights, for
 * ESTIMATE_SECONDS in all. A token costs s in training and a + b T in an evaluation of length T. A kind that no time
 * was left for takes the numbers of one that was tried, by the ratio of their floating-point operations (P + layers
 * width T a token, with P parameters). 0 where nothing could be tried. Leaves nothing behind. */
#define ESTIMATE_SECONDS 1.5
void plan_estimate(struct plan *plan);

#endif
