#ifndef ROPEWALK_TALLY_H
#define ROPEWALK_TALLY_H

#include "eval/perplexity.h"

/* The arithmetic of an evaluation, from scored tokens to cells. */

/* Which of the tables' groups token t counts in; none where it is not scored. Returns how many. */
#define TALLY_GROUPS 3
int tally_groups(const struct task *task, const struct sequence *s, int t, int train_length, int group[TALLY_GROUPS]);

static inline void tally_token(struct eval_tally *tally, double nll, bool correct)
{
	tally->scored++;
	tally->correct += correct;
	tally->nll_sum += nll;
}

/* Adds one sequence of T tokens, or a window of one, to tally [groups of the tables]: nll and best [T] as in struct
 * outcome. */
void tally_sequence(const struct task *task, const struct sequence *s, int T, int train_length, const double *nll,
		    const int32_t *best, struct eval_tally *tally);

/* One group (an index into the tables' groups) of tally [sequences][groups]. */
struct eval_cell tally_cell(const struct eval_tally *tally, int sequences, int groups, int group);

/* Fills the floors of cells whose other fields stand: near and far have that of the first group, all the mean over the
 * task's groups by scored tokens, in nats; NaN where one of them is not known. */
void tally_floors(const struct method *method, int length, struct eval_cell *cell);

/* A baseline of the task on one sequence: its scored tokens and the sums of -ln p and of p over them. `p` [T] is room
 * to work in. */
struct baseline_tally {
	int64_t scored;
	double nll_sum, p_sum;
};
struct baseline_tally tally_baseline(const struct method *method, const struct task_reference *reference,
				     const struct sequence *s, int train_length, int T, double *p);

#endif
