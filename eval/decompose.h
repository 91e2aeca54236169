#ifndef ROPEWALK_DECOMPOSE_H
#define ROPEWALK_DECOMPOSE_H

#include "eval/perplexity.h"

/* How much of a failure past the trained length is position, and how much crowding? Longer sequences bring both: tokens
 * stand further apart, at positions never trained, and there is more that attention must pass over. So the same
 * questions, sequences of train_length L stretched to length T by filler (data/stretch.h), are put in four forms:
 *
 *	as is		the L tokens, at positions 0 .. L - 1
 *	positions	the same L tokens, each at the position it has in the long sequence; no filler
 *	tokens		all T tokens; the L keep the positions 0 .. L - 1, filler shares that of the token before it
 *	both		all T tokens, at positions 0 .. T - 1
 *
 * The scored tokens and their targets are the same in all. Attention goes by index (a later token never sees more than
 * it would), positions are what the encoding is told. Scalings act on the largest position + 1: their factor is that of
 * T in `positions` and `both`, that of L in the others. */
enum form { FORM_AS_IS, FORM_POSITIONS, FORM_TOKENS, FORM_BOTH, FORMS };

struct decomposition {
	int groups;                      /* of the task, the headline first */
	const char *const *group;
	int sequences;
	bool possible[FORMS];            /* can the encoding take these positions? Else its tallies are zero */
	struct eval_tally *tally[FORMS]; /* [sequences][groups] */
};

/* Can this request be decomposed: task, vocabulary, scaling against encoding, memory? `length` is T. */
struct err decompose_check(const struct eval_request *request);

/* Sequences 0 .. sequences - 1, one at a time in every form, as each has positions of its own.
 * `before` (may be NULL) is the result of the same request at another length, whose FORM_AS_IS is taken over.
 * `progress` (may be NULL) is called after each sequence; an error of it ends the work. decomposition_free takes a
 * zeroed struct too. */
struct err decompose_run(const struct eval_request *request, const struct decomposition *before,
			 eval_progress *progress, void *data,
			 struct decomposition *out);
void decomposition_free(struct decomposition *d);

/* One form of one group over `seeds` models that saw the same sequences: scored tokens of one, mean NLL over tokens
 * and seeds, its standard error over sequences. `perplexity` is exp(nll), the geometric mean over the seeds. */
struct eval_cell decompose_cell(const struct decomposition *const *seed, int seeds, int group, enum form form);

/* The failure, NLL(both) - NLL(as is) in nats a scored token, divided between its two causes by Shapley's value (1953):
 * each cause counts by what it adds, averaged over the two orders in which the causes can come:
 *
 *	position    = ((positions - as is) + (both - tokens)) / 2
 *	crowding    = ((tokens - as is) + (both - positions)) / 2
 *	interaction = both - positions - tokens + as is
 *
 * position + crowding = failure. Interaction is what only comes about when both causes meet; half of it is in each
 * part. A failure below 0.01 nats, or below twice its standard error (paired, clustered by sequence), is none:
 * its parts would be those of noise. */
#define FAILURE_LEAST 0.01
struct shares {
	bool known;  /* all four forms are possible and have scored tokens */
	bool failed; /* there is a failure to divide */
	double failure, failure_se;
	double position, crowding, interaction; /* nats; of noise unless `failed` */
};
struct shares decompose_shares(const struct decomposition *const *seed, int seeds, int group);

#endif
