#ifndef ROPEWALK_COMPARED_H
#define ROPEWALK_COMPARED_H

#include "runs/claims/claims.h"

/* Rows of a study against each other, seed by seed on the same sequences. */

/* A number of one seed: of the models with this encoding, under a scaling, at a multiple, in a group of tokens. */
struct spot {
	const char *encoding, *scaling; /* labels */
	double multiple;
	const char *group;
};

enum spot_measure { SPOT_PERPLEXITY, SPOT_ACCURACY };
enum spot_relation { SPOT_BELOW, SPOT_ABOVE };

/* "a is above (below) b": perplexity above `times` that of b; accuracy above that of b, or without b (its encoding
 * NULL) above the share `least`. */
struct comparison {
	struct spot a;
	enum spot_relation relation;
	struct spot b;
	enum spot_measure measure;
	double times;  /* 0: 1 */
	double least;
	bool learning; /* whether a's models learn the task is the question, so they need not have */
};

/* Of the pairs that differ, those for and against a statement; what the two-sided sign test says of them, by the rules
 * of an order's verdict (runs/show/verdicts.h): CLAIM_HOLDS, CLAIM_FAILS (those against win) or CLAIM_UNTESTABLE, with
 * the reason. */
void finding_judge(struct finding *f, int wins, int losses, int ties);

/* Puts a part's finding to the whole's, which begins zeroed: a claim holds if each part does, and fails if one is
 * turned round; else a part that is not measured decides, then one without a verdict. */
void finding_join(struct finding *whole, const struct finding *part);

/* All comparisons of a claim, up to the one without an encoding, into a zeroed finding. */
struct err claim_compare(const struct comparison *c, const struct results *r, struct finding *out);

/* Have all models of a group of cells learned the task (results_reached), as far as its floor is known? Otherwise the
 * reason, kept; NULL: they have. */
const char *not_learned(const struct results *r, int cells);

/* Does the task of these cells lack the group? Then the reason, kept; NULL: it does not. */
const char *group_lacking(const struct results *r, int cells, const char *group);

/* The cells of this encoding; -1: there are none. */
int cells_of(const struct results *r, const char *encoding);

#endif
