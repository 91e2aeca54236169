#include "data/symbols.h"

#include <string.h>

/* Copying. Some symbols s, the separator, the same symbols again, with or without a gap (symbols.h).
 *
 * With `coupled`, the second s is at the positions of the first, and SEP at the one before, so that the next symbol
 * always stands one position ahead (position coupling: Cho et al. 2024, 2405.20671); all else keeps its own.
 *
 * An ordinary text: a target is the next token, and those scored are the second s, the first at SEP. */

enum group { GROUP_COPY };

enum { OPTION_GAP, OPTION_COUPLED };

static const struct option options[] = {
	[OPTION_GAP] = { .name = "gap", .kind = OPTION_SWITCH, .initial = "on", .least = 0, .most = 1,
			 .choices = "off|on", .unit = "", .results = true,
			 .help = "at most 16 symbols at drawn places among filler; off: symbols fill the sequence" },
	[OPTION_COUPLED] = { .name = "coupled", .kind = OPTION_SWITCH, .initial = "off", .least = 0, .most = 1,
			     .choices = "off|on", .unit = "", .results = true,
			     .help = "the copied symbols are at the positions of their sources (--positions=task)" },
	{ 0 },
};

enum { MOST_WITH_GAP = 16 };

static int most_symbols(const struct method *task)
{
	return task->value[OPTION_GAP].integer ? MOST_WITH_GAP : 0;
}

static bool copy_placed(const struct method *task)
{
	return task->value[OPTION_COUPLED].integer;
}

static struct err copy_check(const struct method *task, int train_length, int length)
{
	(void)train_length;
	return symbols_check(task, most_symbols(task), length);
}

static void copy_make(const struct method *task, int train_length, uint64_t seed, enum stream stream, uint64_t index,
		      int length, struct sequence *out)
{
	(void)train_length;
	struct rng r = rng_at(seed, stream, index);
	struct symbol_places at = symbols_make(task, most_symbols(task), stream, length, &r, out);
	memcpy(out->token + at.separator + 1, out->token + at.start, (size_t)at.symbols * sizeof *out->token);
	for (int i = 0; i < at.symbols; i++)
		put_target(out, at.separator + i, out->token[at.start + i], GROUP_COPY, at.start + i);
	for (int i = 0; i <= at.symbols && copy_placed(task); i++)
		out->position[at.separator + i] = at.start - 1 + i;
}

/* The targets from the first s alone: after the separator, a symbol a token. */
static void copy_solve(const struct method *task, const int32_t *token, int length, int32_t *target)
{
	(void)task;
	int next = 0, separator = length;
	for (int t = 0; t < length; t++) {
		target[t] = -1;
		if (token[t] == SEP)
			separator = t;
		if (t < separator)
			continue;
		while (next < separator && !is_symbol(token[next]))
			next++;
		if (next < separator)
			target[t] = token[next++];
	}
}

static void window_probability(const struct method *task, const struct sequence *s, int train_length, int length,
			       double *p)
{
	(void)task;
	struct symbol_places at = symbols_find(s->token, length);
	symbols_window(s, &at, false, train_length, length, p);
}

static const struct task_reference references[] = {
	{ "uniform over the symbols", GROUP_COPY, symbols_uniform },
	{ "guessing among the symbols of s", GROUP_COPY, symbols_stated },
	{ "the ideal reader of the last train_length tokens", GROUP_COPY, window_probability },
	{ 0 },
};

const struct task task_copy = {
	.entry = { .name = "copy", .help = "symbols, and after a gap the same symbols again", .options = options },
	.groups = { [GROUP_COPY] = "copy" },
	.references = references,
	.vocabulary = symbols_vocabulary,
	.check = copy_check,
	.make = copy_make,
	.solve = copy_solve,
	.floor = symbols_floor,
	.placed = copy_placed,
	.may_insert = symbols_may_insert,
	.filler = symbols_filler,
};
