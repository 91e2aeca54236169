#ifndef ROPEWALK_POSITIONS_H
#define ROPEWALK_POSITIONS_H

#include "model/options.h"

/* Which positions the tokens of a model's sequences get, by its option `positions`:
 *
 *	consecutive	0, 1, 2 ...
 *	randomized	T distinct integers of 0 .. positions_most - 1, sorted, every such set as likely (Ruoss et al.
 *			2023, 2305.16843, section 3): in training one draw a batch, in evaluation one a sequence
 *	offset		in training s, s + 1 ..., s uniform over 0 .. positions_most - T for each sequence; in
 *			evaluation as consecutive
 *	task		what the task supplies (data/task.h), of each sequence
 */
enum { POSITIONS_CONSECUTIVE, POSITIONS_RANDOMIZED, POSITIONS_OFFSET, POSITIONS_TASK };

/* Who numbers: a model, in training or in evaluation, and a task, by its name, which may supply positions itself. */
struct numbering {
	const struct model_options *options;
	bool training;
	const char *task;
	bool placed;
};

/* Can sequences of T tokens be numbered so? Usage errors: more tokens than positions; positions past the encoding's
 * reach, or in an order it does not take; a task that supplies none, or some that the model would not use. */
struct err positions_check(const struct numbering *n, int T);

bool positions_move(const struct numbering *n); /* do they change from batch to batch? */
bool positions_each(const struct numbering *n); /* do sequences of a batch differ in them? */

/* Bounds of a sequence's largest position + 1. */
double positions_reach_least(const struct numbering *n, int T);
double positions_reach(const struct numbering *n, int T);

/* An error if a scaling's factor would be another for each sequence. */
struct err positions_check_scaling(const struct numbering *n, const struct method *scaling, int T);

/* The positions of B sequences of T tokens, of which the first is number `first`: to [B][T] if they differ, else [T].
 * In evaluation a function of (seed, T, number of the sequence), in training of (seed, `first`). Not for positions that
 * stay, or are the task's. */
void positions_draw(const struct numbering *n, uint64_t seed, uint64_t first, int B, int T, double *to);

#endif
