#ifndef ROPEWALK_STRETCH_H
#define ROPEWALK_STRETCH_H

#include "data/batch.h"

/* A sequence of train_length stretched by filler: the same questions with the same answers, further apart. What a task
 * allows is said by its hooks `may_insert` and `filler`. */

struct stretch {
	struct batch_source source; /* train_length L stretched to source.length T */
	struct sequence original;   /* [L] as the task makes it */
	struct sequence sequence;   /* [T]: targets and groups go with their tokens, distances are those in here,
				       positions are 0 .. T - 1 */
	int *origin;                /* [L]: where token t went; ascending, first 0, last T - 1 */
	struct arena memory;
};

/* Checks that the task can be stretched (a usage error names those that can) and made at train_length, and that T is at
 * least that; reserves room. stretch_close takes a zeroed struct too. */
struct err stretch_open(const struct batch_source *source, struct stretch *out);
void stretch_close(struct stretch *s);

/* Makes sequence `index` (below 2^32) of the source's stream at train_length and inserts T - L fillers. Of all ways to
 * divide them among the places before tokens where filler may stand, none behind the last token, each is as likely
 * (selection sampling: Knuth, TAOCP 2, 3.4.2, algorithm S). A pure function of (source, index) that shares no draw with
 * `make`. */
void stretch_make(struct stretch *s, uint64_t index);

#endif
