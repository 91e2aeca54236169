#include "data/task.h"

#include <math.h>

/* Multi-query associative recall (Arora et al. 2023, 2312.04927; what it leaves open, as the authors' code has it).
 * D pairs of key and value, one after the other, then each key once more, as a query, whose target is its value:
 *
 *	k1 v1 ... kD vD . . k2 . . . . . k1 .
 *
 * Keys are distinct tokens 1 .. V/2 - 1, values distinct tokens V/2 .. V - 1. Queries stand at even places behind the
 * pairs; the gaps g, in twos of tokens, are drawn without replacement with probability proportional to
 * (g + 1)^(power - 1), the first key's first. All else is filler: any token but the sequence's keys, or token 0. As in
 * recall, answers do not enter the sequence.
 *
 * The authors' filler may be one of the keys, then a query without a target; ours is drawn again, so that the targets
 * follow from the tokens. */

enum group { GROUP_RECALL };

enum { OPTION_PAIRS, OPTION_VOCABULARY, OPTION_POWER, OPTION_FILLER };
enum { FILLER_RANDOM, FILLER_ZERO };

#define MOST_PAIRS 128

static const struct option options[] = {
	[OPTION_PAIRS] = { .name = "pairs", .kind = OPTION_INTEGER, .initial = "4", .least = 1, .most = MOST_PAIRS,
			   .unit = "pairs", .help = "pairs of key and value, and queries, in a sequence",
			   .results = true },
	[OPTION_VOCABULARY] = { .name = "vocabulary", .kind = OPTION_INTEGER, .initial = "8192", .least = 16,
				.most = 1 << 20, .unit = "tokens", .results = true,
				.help = "tokens: the lower half keys, the upper half values" },
	[OPTION_POWER] = { .name = "power", .kind = OPTION_NUMBER, .initial = "0.01", .least = 0, .most = 10,
			   .unit = "", .results = true,
			   .help = "gaps g before queries weigh (g + 1)^(power - 1); 1: all the same" },
	[OPTION_FILLER] = { .name = "filler", .kind = OPTION_CHOICE, .initial = "random", .choices = "random|zero",
			    .unit = "", .results = true, .help = "what stands between queries: any token, or token 0" },
	{ 0 },
};

static int pairs_of(const struct method *task)
{
	return (int)task->value[OPTION_PAIRS].integer;
}

static int mqar_vocabulary(const struct method *task)
{
	return (int)task->value[OPTION_VOCABULARY].integer;
}

static int first_value(const struct method *task)
{
	return mqar_vocabulary(task) / 2;
}

static struct err mqar_check(const struct method *task, int train_length, int length)
{
	(void)train_length;
	int pairs = pairs_of(task), keys = first_value(task) - 1;
	if (pairs > keys)
		return err_usage("Give fewer pairs (--mqar-pairs) or a larger --mqar-vocabulary.",
				 "mqar: a vocabulary of %d has %d keys, less than the %d pairs", mqar_vocabulary(task),
				 keys, pairs);
	if (length < 4 * pairs)
		return err_usage("Give a greater length, or fewer pairs (--mqar-pairs).",
				 "mqar: length %d is too short: %d pairs and as many gaps of two tokens need %d",
				 length, pairs, 4 * pairs);
	return OK;
}

static bool holds(const int32_t *token, int count, int stride, int32_t wanted)
{
	for (int i = 0; i < count; i++)
		if (token[i * stride] == wanted)
			return true;
	return false;
}

/* Distinct tokens first .. last - 1, at every other place from token[0] on. */
static void draw_distinct(struct rng *r, int count, int first, int last, int32_t *token)
{
	for (int i = 0; i < count; i++)
		do
			token[2 * i] = first + (int32_t)rng_below(r, (uint32_t)(last - first));
		while (holds(token, i, 2, token[2 * i]));
}

static int32_t filler_of(const struct method *task, struct rng *r, const int32_t *token)
{
	int32_t drawn = 0;
	if (task->value[OPTION_FILLER].integer == FILLER_RANDOM)
		do
			drawn = (int32_t)rng_below(r, (uint32_t)mqar_vocabulary(task));
		while (holds(token, pairs_of(task), 2, drawn));
	return drawn;
}

/* The running sum of the gaps' weights. */
static void sum_weights(double power, int gaps, double *sum)
{
	double total = 0;
	for (int g = 0; g < gaps; g++)
		sum[g] = total += pow(g + 1, power - 1);
}

/* The gap that a number below the sum of all weights falls on. */
static int gap_at(const double *sum, int gaps, double drawn)
{
	int low = 0, high = gaps - 1;
	while (low < high) {
		int middle = low + (high - low) / 2;
		if (drawn < sum[middle])
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Queries at free gaps. A gap that is taken is drawn again, which is drawing from those left by their weights. */
static void put_queries(const struct method *task, struct rng *r, int length, struct sequence *out)
{
	int pairs = pairs_of(task), gaps = (length - 2 * pairs) / 2;
	double *sum = out->position; /* not written yet */
	sum_weights(task->value[OPTION_POWER].number, gaps, sum);
	for (int i = 0; i < pairs; i++) {
		int t;
		do
			t = 2 * pairs + 2 * gap_at(sum, gaps, rng_uniform(r) * sum[gaps - 1]);
		while (out->target[t] >= 0);
		out->token[t] = out->token[2 * i];
		out->target[t] = out->token[2 * i + 1];
		out->distance[t] = t - (2 * i + 1);
	}
}

static void mqar_make(const struct method *task, int train_length, uint64_t seed, enum stream stream, uint64_t index,
		      int length, struct sequence *out)
{
	(void)train_length;
	int pairs = pairs_of(task);
	BUG_IF(length < 4 * pairs, "mqar: length %d was not checked", length);
	struct rng r = rng_at(seed, stream, index);
	for (int t = 0; t < length; t++) {
		out->target[t] = -1;
		out->group[t] = GROUP_RECALL;
		out->distance[t] = 0;
	}
	draw_distinct(&r, pairs, 1, first_value(task), out->token);
	draw_distinct(&r, pairs, first_value(task), mqar_vocabulary(task), out->token + 1);
	put_queries(task, &r, length, out);
	for (int t = 2 * pairs; t < length; t++)
		if (out->target[t] < 0)
			out->token[t] = filler_of(task, &r, out->token);
	for (int t = 0; t < length; t++)
		out->position[t] = t;
}

static void mqar_solve(const struct method *task, const int32_t *token, int length, int32_t *target)
{
	int stated = 2 * pairs_of(task);
	for (int t = 0; t < length; t++) {
		target[t] = -1;
		for (int i = 0; i < stated && t >= stated; i += 2)
			if (token[i] == token[t])
				target[t] = token[i + 1];
	}
}

static bool is_value(const struct method *task, int32_t token)
{
	return token >= first_value(task) && token < mqar_vocabulary(task);
}

static void uniform_probability(const struct method *task, const struct sequence *s, int train_length, int length,
				double *p)
{
	(void)train_length;
	int values = mqar_vocabulary(task) - first_value(task);
	for (int t = 0; t < length; t++)
		p[t] = is_value(task, s->target[t]) ? 1.0 / values : 0;
}

static void stated_probability(const struct method *task, const struct sequence *s, int train_length, int length,
			       double *p)
{
	(void)train_length;
	int pairs = pairs_of(task);
	for (int t = 0; t < length; t++)
		p[t] = s->target[t] >= 0 && holds(s->token + 1, pairs, 2, s->target[t]) ? 1.0 / pairs : 0;
}

static const struct task_reference references[] = {
	{ "uniform over the values", GROUP_RECALL, uniform_probability },
	{ "guessing among the stated values", GROUP_RECALL, stated_probability },
	{ 0 },
};

/* Every target is stated. */
static double mqar_floor(const struct method *task, int length, int group)
{
	(void)task, (void)length, (void)group;
	return 1;
}

const struct task task_mqar = {
	.entry = { .name = "mqar", .help = "recall the value of each of the keys stated first, from a large vocabulary",
		   .paper = "Arora et al. 2023, 2312.04927", .options = options },
	.groups = { [GROUP_RECALL] = "recall" },
	.references = references,
	.vocabulary = mqar_vocabulary,
	.check = mqar_check,
	.make = mqar_make,
	.solve = mqar_solve,
	.floor = mqar_floor,
};
