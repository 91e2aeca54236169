#include "eval/by_position.h"

#include <math.h>
#include <string.h>

static struct by_position sized(const struct task *task, int length)
{
	const char *ignored[EVAL_GROUPS];
	struct by_position b = { .task = task, .groups = eval_group_names(task, ignored), .length = length };
	b.width = (length - 1) / POSITION_BINS + 1;
	b.bins = (length - 1) / b.width + 1;
	return b;
}

static struct by_position *place(struct arena *a, const struct by_position *size)
{
	struct by_position *b = ARENA_TAKE(a, struct by_position, 1);
	size_t bins = (size_t)size->groups * (size_t)size->bins;
	struct position_bin *bin = ARENA_TAKE(a, struct position_bin, bins);
	if (!b)
		return NULL;
	*b = *size;
	b->bin = bin;
	memset(bin, 0, bins * sizeof *bin);
	return b;
}

size_t by_position_bytes(const struct task *task, int length)
{
	struct by_position size = sized(task, length);
	struct arena all = { 0 };
	place(&all, &size);
	return all.used;
}

struct err by_position_open(const struct task *task, int length, struct by_position **out)
{
	struct by_position size = sized(task, length);
	struct arena memory;
	*out = NULL;
	TRY(arena_reserve(&memory, by_position_bytes(task, length), "losses by position"));
	*out = place(&memory, &size);
	BUG_IF(!*out, "a place in no memory");
	(*out)->memory = memory;
	return OK;
}

void by_position_close(struct by_position *b)
{
	if (!b)
		return;
	/* It stands in the arena it describes. */
	struct arena memory = b->memory;
	arena_free(&memory);
}

void by_position_add(struct by_position *b, const struct sequence *s, int train_length, const double *nll,
		     const int32_t *best)
{
	for (int t = 0; t < b->length; t++) {
		int group[TALLY_GROUPS], count = tally_groups(b->task, s, t, train_length, group);
		for (int i = 0; i < count; i++)
			tally_token(&b->bin[group[i] * b->bins + t / b->width].at_hand, nll[t],
				    best[t] == s->target[t]);
	}
}

void by_position_end(struct by_position *b)
{
	for (int i = 0; i < b->groups * b->bins; i++) {
		struct position_bin *bin = &b->bin[i];
		double scored = (double)bin->at_hand.scored, nll = bin->at_hand.nll_sum;
		bin->sum.scored += bin->at_hand.scored;
		bin->sum.correct += bin->at_hand.correct;
		bin->sum.nll_sum += nll;
		bin->squares += nll * nll;
		bin->products += nll * scored;
		bin->counts += scored * scored;
		bin->at_hand = (struct eval_tally){ 0 };
	}
	b->documents++;
}

struct eval_cell by_position_cell(const struct by_position *b, int group, int index)
{
	const struct position_bin *bin = &b->bin[group * b->bins + index];
	struct eval_cell cell = { .scored = bin->sum.scored };
	if (cell.scored == 0)
		return cell;
	double scored = (double)cell.scored, n = b->documents;
	cell.nll = bin->sum.nll_sum / scored;
	cell.perplexity = exp(cell.nll);
	cell.accuracy = (double)bin->sum.correct / scored;
	/* sum (nll_sum - nll scored)^2, which rounding may leave below 0. */
	double squares = bin->squares - 2 * cell.nll * bin->products + cell.nll * cell.nll * bin->counts;
	if (b->documents > 1 && squares > 0)
		cell.nll_se = sqrt(n / (n - 1) * squares) / scored;
	return cell;
}
