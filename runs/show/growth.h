#ifndef ROPEWALK_GROWTH_H
#define ROPEWALK_GROWTH_H

#include "runs/show/compare.h"
#include "runs/show/sheet.h"

/* What more context is worth: where the protocol keeps the scored tokens (eval/protocol.h, `last`), each length against
 * 1x on the same tokens of the same documents. */

/* Mean NLL at a multiple less that at 1x, in nats, over the seeds that have both; its standard error over documents,
 * each one's differences summed over the seeds. */
struct growth {
	int seeds;
	double nll, nll_se;
};
struct growth growth(const struct results *r, const struct contender *who, double multiple, const char *group);

/* Do all cells keep their tokens? */
bool growth_known(const struct results *r);

/* A row per method, a column per multiple. */
void growth_sheet(const struct results *r, const char *group, struct sheet *out);

#endif
