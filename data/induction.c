#include "data/symbols.h"

#include <string.h>

/* Induction. BOS, fillers, a segment of distinct symbols, fillers, the segment again, fillers (Olsson et al. 2022,
 * 2209.11895); where both stand is drawn.
 *
 * An ordinary text: a target is the next token, and those scored are the segment again but for its first symbol, which
 * nothing foretells. Fillers are of another alphabet: the token that followed the only earlier one like this is the
 * target wherever one is scored. No separator says that the segment returns. */

enum group { GROUP_INDUCTION };

enum { OPTION_SEGMENT };

static const struct option options[] = {
	[OPTION_SEGMENT] = { .name = "segment", .kind = OPTION_INTEGER, .initial = "16", .least = 2, .most = 32,
			     .unit = "symbols", .results = true,
			     .help = "length of the segment; in training any from a quarter of it on" },
	{ 0 },
};

static int segment_of(const struct method *task)
{
	return (int)task->value[OPTION_SEGMENT].integer;
}

static int least_length(const struct method *task)
{
	return 1 + 2 * segment_of(task);
}

static struct err induction_check(const struct method *task, int train_length, int length)
{
	(void)train_length;
	int least = least_length(task);
	if (length >= least)
		return OK;
	return err_usage("Give a greater length, or a shorter segment (--induction-segment).", "induction: length %d "
			 "is too short: BOS and a segment of %d, twice, need %d", length, segment_of(task), least);
}

/* The token before the segment's return takes the separator's place. */
static struct symbol_places draw_places(const struct method *task, enum stream stream, int length, struct rng *r)
{
	int n = segment_of(task), least = n / 4 < 2 ? 2 : n / 4;
	if (stream == STREAM_TRAIN)
		n = draw_between(r, least, n);
	struct symbol_places at = { .symbols = n, .start = draw_between(r, 1, length - 2 * n) };
	at.separator = draw_between(r, at.start + n, length - n) - 1;
	return at;
}

static void induction_make(const struct method *task, int train_length, uint64_t seed, enum stream stream,
			   uint64_t index, int length, struct sequence *out)
{
	(void)train_length;
	BUG_IF(length < least_length(task), "induction: length %d was not checked", length);
	struct rng r = rng_at(seed, stream, index);
	struct symbol_places at = draw_places(task, stream, length, &r);
	symbols_clear(task, &r, length, out);
	out->token[0] = BOS;
	symbols_draw(&r, at.symbols, out->token + at.start);
	memcpy(out->token + at.separator + 1, out->token + at.start, (size_t)at.symbols * sizeof *out->token);
	for (int i = 1; i < at.symbols; i++)
		put_target(out, at.separator + i, out->token[at.start + i], GROUP_INDUCTION, at.start + i);
}

/* By content: what followed the same symbol before, if it was a symbol then seen for the first time (the segment may
 * return at once). */
static void induction_solve(const struct method *task, const int32_t *token, int length, int32_t *target)
{
	(void)task;
	int first[SYMBOL_VOCABULARY] = { 0 };
	for (int t = 0; t < length; t++) {
		target[t] = -1;
		if (!is_symbol(token[t]))
			continue;
		int before = first[token[t]];
		if (!before)
			first[token[t]] = t;
		else if (is_symbol(token[before + 1]) && first[token[before + 1]] == before + 1)
			target[t] = token[before + 1];
	}
}

static struct symbol_places find_places(const int32_t *token, int length)
{
	struct symbol_places at = { .start = 1 };
	while (at.start < length && !is_symbol(token[at.start]))
		at.start++;
	int again = at.start + 1;
	while (again < length && token[again] != token[at.start])
		again++;
	at.separator = again - 1;
	for (int t = again; t < length && is_symbol(token[t]); t++)
		at.symbols++;
	return at;
}

static void stated_probability(const struct method *task, const struct sequence *s, int train_length, int length,
			       double *p)
{
	(void)task, (void)train_length;
	struct symbol_places at = find_places(s->token, length);
	bool stated[SYMBOL_VOCABULARY] = { false };
	for (int i = 0; i < at.symbols; i++)
		stated[s->token[at.start + i]] = true;
	for (int t = 0; t < length; t++)
		p[t] = s->target[t] >= 0 && stated[s->target[t]] ? 1.0 / at.symbols : 0;
}

static void window_probability(const struct method *task, const struct sequence *s, int train_length, int length,
			       double *p)
{
	(void)task;
	struct symbol_places at = find_places(s->token, length);
	symbols_window(s, &at, false, train_length, length, p);
}

static const struct task_reference references[] = {
	{ "uniform over the symbols", GROUP_INDUCTION, symbols_uniform },
	{ "guessing among the symbols of the segment", GROUP_INDUCTION, stated_probability },
	{ "the ideal reader of the last train_length tokens", GROUP_INDUCTION, window_probability },
	{ 0 },
};

/* Neither segment is torn. */
static bool induction_may_insert(const struct method *task, const struct sequence *s, int length, int t)
{
	(void)task, (void)length;
	return !is_symbol(s->token[t]) || !is_symbol(s->token[t - 1]);
}

const struct task task_induction = {
	.entry = { .name = "induction", .help = "a segment among filler, and the same segment again",
		   .paper = "Olsson et al. 2022, 2209.11895", .options = options },
	.groups = { [GROUP_INDUCTION] = "induction" },
	.references = references,
	.vocabulary = symbols_vocabulary,
	.check = induction_check,
	.make = induction_make,
	.solve = induction_solve,
	.floor = symbols_floor,
	.may_insert = induction_may_insert,
	.filler = symbols_filler,
};
