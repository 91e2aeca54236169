#include "eval/decompose.h"
#include "eval/tally.h"

#include <stdlib.h>

/* Adds `sign` times the NLL of a form, sequence by sequence; the scored tokens, which every form has alike, where sign
 * is positive. */
static void add_form(const struct decomposition *d, int group, enum form form, double sign, struct eval_tally *sum)
{
	for (int i = 0; i < d->sequences; i++) {
		const struct eval_tally *from = &d->tally[form][i * d->groups + group];
		sum[i].scored += sign > 0 ? from->scored : 0;
		sum[i].correct += sign > 0 ? from->correct : 0;
		sum[i].nll_sum += sign * from->nll_sum;
	}
}

/* The form, less another where `less` names one, summed over the models, so that sequences are what varies. */
static struct eval_cell sum_seeds(const struct decomposition *const *seed, int seeds, int group, enum form form,
				  enum form less)
{
	int sequences = seed[0]->sequences;
	struct eval_tally *sum = calloc((size_t)sequences, sizeof *sum);
	BUG_IF(!sum, "no memory for %d sequences", sequences);
	for (int i = 0; i < seeds; i++) {
		BUG_IF(seed[i]->sequences != sequences, "models that saw other sequences");
		add_form(seed[i], group, form, 1, sum);
		if (less != FORMS)
			add_form(seed[i], group, less, -1, sum);
	}
	struct eval_cell cell = tally_cell(sum, sequences, 1, 0);
	free(sum);
	return cell;
}

struct eval_cell decompose_cell(const struct decomposition *const *seed, int seeds, int group, enum form form)
{
	struct eval_cell cell = sum_seeds(seed, seeds, group, form, FORMS);
	cell.scored /= seeds;
	return cell;
}

static bool is_known(const struct decomposition *const *seed, int seeds, int group)
{
	for (int i = 0; i < seeds; i++)
		for (enum form form = 0; form < FORMS; form++)
			if (!seed[i]->possible[form])
				return false;
	return decompose_cell(seed, seeds, group, FORM_AS_IS).scored > 0;
}

struct shares decompose_shares(const struct decomposition *const *seed, int seeds, int group)
{
	struct shares s = { .known = is_known(seed, seeds, group) };
	double nll[FORMS];
	if (!s.known)
		return s;
	for (enum form form = 0; form < FORMS; form++)
		nll[form] = decompose_cell(seed, seeds, group, form).nll;
	s.failure = nll[FORM_BOTH] - nll[FORM_AS_IS];
	s.failure_se = sum_seeds(seed, seeds, group, FORM_BOTH, FORM_AS_IS).nll_se;
	s.position = (nll[FORM_POSITIONS] - nll[FORM_AS_IS] + nll[FORM_BOTH] - nll[FORM_TOKENS]) / 2;
	s.crowding = (nll[FORM_TOKENS] - nll[FORM_AS_IS] + nll[FORM_BOTH] - nll[FORM_POSITIONS]) / 2;
	s.interaction = nll[FORM_BOTH] - nll[FORM_POSITIONS] - nll[FORM_TOKENS] + nll[FORM_AS_IS];
	s.failed = s.failure >= FAILURE_LEAST && s.failure >= 2 * s.failure_se;
	return s;
}
