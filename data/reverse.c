#include "data/symbols.h"

/* Reversing. Some symbols s, the separator, the symbols of s from the last to the first, with or without a gap
 * (symbols.h).
 *
 * With `coupled`, every answered symbol is at the position of its source, and SEP at the one behind s, so that the next
 * symbol always stands one position before (position coupling: Cho et al. 2024, 2405.20671); all else keeps its own.
 *
 * An ordinary text: a target is the next token, and those scored are the answer, the first at SEP. */

enum group { GROUP_REVERSE };

enum { OPTION_GAP, OPTION_SYMBOLS, OPTION_COUPLED };

static const struct option options[] = {
	[OPTION_GAP] = { .name = "gap", .kind = OPTION_SWITCH, .initial = "on", .least = 0, .most = 1,
			 .choices = "off|on", .unit = "", .results = true,
			 .help = "symbols at drawn places among filler; off: symbols fill the sequence" },
	[OPTION_SYMBOLS] = { .name = "symbols", .kind = OPTION_INTEGER, .initial = "8", .least = 2, .most = 32,
			     .unit = "symbols", .results = true,
			     .help = "how many with a gap; in training any number from 4 on" },
	[OPTION_COUPLED] = { .name = "coupled", .kind = OPTION_SWITCH, .initial = "off", .least = 0, .most = 1,
			     .choices = "off|on", .unit = "", .results = true,
			     .help = "the reversed symbols are at the positions of their sources (--positions=task)" },
	{ 0 },
};

static int most_symbols(const struct method *task)
{
	return task->value[OPTION_GAP].integer ? (int)task->value[OPTION_SYMBOLS].integer : 0;
}

static bool reverse_placed(const struct method *task)
{
	return task->value[OPTION_COUPLED].integer;
}

static struct err reverse_check(const struct method *task, int train_length, int length)
{
	(void)train_length;
	if (!most_symbols(task) && method_changed(task, OPTION_SYMBOLS))
		return err_usage("Leave out one of them.", "reverse_symbols: has no effect with gap=off");
	return symbols_check(task, most_symbols(task), length);
}

static void reverse_make(const struct method *task, int train_length, uint64_t seed, enum stream stream,
			 uint64_t index, int length, struct sequence *out)
{
	(void)train_length;
	struct rng r = rng_at(seed, stream, index);
	struct symbol_places at = symbols_make(task, most_symbols(task), stream, length, &r, out);
	int behind = at.start + at.symbols;
	for (int i = 0; i < at.symbols; i++) {
		int source = behind - 1 - i;
		out->token[at.separator + 1 + i] = out->token[source];
		put_target(out, at.separator + i, out->token[source], GROUP_REVERSE, source);
	}
	for (int i = 0; i <= at.symbols && reverse_placed(task); i++)
		out->position[at.separator + i] = behind - i;
}

/* The targets from s alone: after the separator, a symbol a token, going back. */
static void reverse_solve(const struct method *task, const int32_t *token, int length, int32_t *target)
{
	(void)task;
	int next = -1;
	bool answering = false;
	for (int t = 0; t < length; t++) {
		target[t] = -1;
		if (token[t] == SEP) {
			answering = true;
			next = t;
		}
		while (answering && next >= 0 && !is_symbol(token[next]))
			next--;
		if (answering && next >= 0)
			target[t] = token[next--];
	}
}

static void window_probability(const struct method *task, const struct sequence *s, int train_length, int length,
			       double *p)
{
	(void)task;
	struct symbol_places at = symbols_find(s->token, length);
	symbols_window(s, &at, true, train_length, length, p);
}

static const struct task_reference references[] = {
	{ "uniform over the symbols", GROUP_REVERSE, symbols_uniform },
	{ "guessing among the symbols of s", GROUP_REVERSE, symbols_stated },
	{ "the ideal reader of the last train_length tokens", GROUP_REVERSE, window_probability },
	{ 0 },
};

const struct task task_reverse = {
	.entry = { .name = "reverse", .help = "symbols, and after a gap the same from the last to the first",
		   .paper = "Deletang et al. 2022, 2207.02098", .options = options },
	.groups = { [GROUP_REVERSE] = "reverse" },
	.references = references,
	.vocabulary = symbols_vocabulary,
	.check = reverse_check,
	.make = reverse_make,
	.solve = reverse_solve,
	.floor = symbols_floor,
	.placed = reverse_placed,
	.may_insert = symbols_may_insert,
	.filler = symbols_filler,
};
