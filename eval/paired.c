#include "eval/paired.h"

#include <math.h>

static const struct eval_tally *tally_of(const struct eval_result *r, int sequence, int group)
{
	return &r->tally[(size_t)sequence * (size_t)r->groups + (size_t)group];
}

static double difference(const struct eval_result *it, const struct eval_result *from, int sequence, int group,
			 enum measure measure)
{
	const struct eval_tally *a = tally_of(it, sequence, group), *b = tally_of(from, sequence, group);
	BUG_IF(a->scored != b->scored, "sequence %d: %lld and %lld scored tokens are compared", sequence,
	       (long long)a->scored, (long long)b->scored);
	return measure == MEASURE_NLL ? a->nll_sum - b->nll_sum : (double)(a->correct - b->correct);
}

/* Of a sum over n sequences with this sum of squared residuals. */
static double error_of(double squares, int n)
{
	return n > 1 ? sqrt(n / (n - 1.0) * squares) : 0;
}

struct paired_change paired_change(const struct eval_result *it, const struct eval_result *from, int group,
				   enum measure measure)
{
	BUG_IF(it->sequences != from->sequences, "%d and %d sequences are compared", it->sequences, from->sequences);
	int n = it->sequences;
	double scored = (double)it->cell[group].scored, sum = 0, squares = 0;
	if (scored == 0)
		return (struct paired_change){ 0 };
	for (int i = 0; i < n; i++)
		sum += difference(it, from, i, group, measure);
	for (int i = 0; i < n; i++) {
		double residual = difference(it, from, i, group, measure) -
				  sum / scored * (double)tally_of(it, i, group)->scored;
		squares += residual * residual;
	}
	return (struct paired_change){ .value = sum / scored, .se = error_of(squares, n) / scored };
}

struct paired_share paired_share(const struct eval_result *it, const struct eval_result *from,
				 const struct eval_result *to, int group, enum measure measure)
{
	struct paired_change way = paired_change(to, from, group, measure);
	struct paired_share share = { .way = WAY_KNOWN };
	double squares = 0, whole = way.value * (double)to->cell[group].scored;
	if (fabs(way.value) < PAIRED_LEAST)
		return (struct paired_share){ .way = WAY_SHORT };
	if (fabs(way.value) < 2 * way.se)
		return (struct paired_share){ .way = WAY_UNSURE };
	share.value = paired_change(it, from, group, measure).value / way.value;
	for (int i = 0; i < it->sequences; i++) {
		double residual = difference(it, from, i, group, measure) -
				  share.value * difference(to, from, i, group, measure);
		squares += residual * residual;
	}
	share.se = error_of(squares, it->sequences) / fabs(whole);
	return share;
}
