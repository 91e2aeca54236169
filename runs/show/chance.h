#ifndef ROPEWALK_CHANCE_H
#define ROPEWALK_CHANCE_H

#include "data/options.h"
#include "eval/perplexity.h"

/* What a task's baselines get on the sequences a table was made with; no model is needed. The sequences are those of
 * eval_seed. Returns how many baselines the group (an index into the task's groups) has: none where the protocol's
 * windows are cut from longer documents. */
struct chance_request {
	const struct method *task;
	int train_length, length, sequences, group;
	uint64_t eval_seed;
	bool tune; /* sequences of stream `tune` */
	const struct method *protocol; /* settled; NULL: all */
};
struct err chance(const struct chance_request *request, struct eval_reference out[EVAL_REFERENCES], int *count);

#endif
