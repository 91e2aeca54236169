#ifndef ROPEWALK_BY_POSITION_H
#define ROPEWALK_BY_POSITION_H

#include "data/task.h"
#include "eval/tally.h"
#include "model/base/arena.h"

/* Loss and accuracy by where in its window a target is asked for, in at most POSITION_BINS bins of equal width. */

#define POSITION_BINS 64

struct by_position {
	const struct task *task;
	int groups;          /* of the tables */
	int length, width, bins; /* bin i holds positions i width .. (i + 1) width - 1, the last those that are left */
	int documents;       /* ended so far */
	struct position_bin {
		struct eval_tally sum, at_hand; /* of the documents ended, of the one at hand */
		double squares, products; /* sums over documents of nll_sum^2 and nll_sum scored */
		double counts;            /* and of scored^2 */
	} *bin;              /* [groups][bins] */
	struct arena memory;
};

/* by_position_close takes NULL too. */
struct err by_position_open(const struct task *task, int length, struct by_position **out);
void by_position_close(struct by_position *b);
size_t by_position_bytes(const struct task *task, int length);

/* Adds a window of the document at hand; nll and best [length] as in struct outcome. Then that document ends. */
void by_position_add(struct by_position *b, const struct sequence *s, int train_length, const double *nll,
		     const int32_t *best);
void by_position_end(struct by_position *b);

/* One bin of a group: scored, nll, nll_se (over documents, as in struct eval_cell), perplexity, accuracy. */
struct eval_cell by_position_cell(const struct by_position *b, int group, int bin);

#endif
