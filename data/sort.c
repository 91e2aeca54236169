#include "data/symbols.h"

/* Sorting. Some symbols s, the separator, the symbols of s in ascending order, with or without a gap (symbols.h).
 *
 * An ordinary text: a target is the next token, and those scored are the answer, the first at SEP. The evidence for one
 * of several equal symbols is that which stands as far on among them in s. */

enum group { GROUP_SORT };

enum { OPTION_GAP, OPTION_SYMBOLS };

static const struct option options[] = {
	[OPTION_GAP] = { .name = "gap", .kind = OPTION_SWITCH, .initial = "on", .least = 0, .most = 1,
			 .choices = "off|on", .unit = "", .results = true,
			 .help = "symbols at drawn places among filler; off: symbols fill the sequence" },
	[OPTION_SYMBOLS] = { .name = "symbols", .kind = OPTION_INTEGER, .initial = "16", .least = 2, .most = 32,
			     .unit = "symbols", .results = true,
			     .help = "how many with a gap; in training any number from 4 on" },
	{ 0 },
};

static int most_symbols(const struct method *task)
{
	return task->value[OPTION_GAP].integer ? (int)task->value[OPTION_SYMBOLS].integer : 0;
}

static struct err sort_check(const struct method *task, int train_length, int length)
{
	(void)train_length;
	if (!most_symbols(task) && method_changed(task, OPTION_SYMBOLS))
		return err_usage("Leave out one of them.", "sort_symbols: has no effect with gap=off");
	return symbols_check(task, most_symbols(task), length);
}

static void sort_make(const struct method *task, int train_length, uint64_t seed, enum stream stream, uint64_t index,
		      int length, struct sequence *out)
{
	(void)train_length;
	struct rng r = rng_at(seed, stream, index);
	struct symbol_places at = symbols_make(task, most_symbols(task), stream, length, &r, out);
	int t = at.separator;
	for (int32_t symbol = SYMBOL; symbol < SYMBOL + SYMBOLS; symbol++) {
		for (int source = at.start; source < at.start + at.symbols; source++) {
			if (out->token[source] != symbol)
				continue;
			put_target(out, t, symbol, GROUP_SORT, source);
			out->token[++t] = symbol;
		}
	}
}

/* The targets from s alone, by counting its symbols. */
static void sort_solve(const struct method *task, const int32_t *token, int length, int32_t *target)
{
	(void)task;
	int count[SYMBOL_VOCABULARY] = { 0 };
	int32_t least = SYMBOL;
	bool answering = false;
	for (int t = 0; t < length; t++) {
		target[t] = -1;
		answering |= token[t] == SEP;
		if (!answering && is_symbol(token[t]))
			count[token[t]]++;
		while (answering && is_symbol(least) && !count[least])
			least++;
		if (!answering || !is_symbol(least))
			continue;
		target[t] = least;
		count[least]--;
	}
}

/* What the ideal reader at t knows of s: whole shuffles hold every symbol once, unseen; of the last, unfinished one it
 * sees the symbols that stand at `seen` or behind it, and how many there are from the next possible one on. */
struct knowledge {
	int wholes;
	int32_t next;                    /* least symbol that may be the target */
	int answered;                    /* how many of that were answered */
	bool visible[SYMBOL_VOCABULARY]; /* of the unfinished shuffle, from `next` on */
	int seen, unseen;                /* how many are visible, and how many not */
};

static struct knowledge know(const struct sequence *s, const struct symbol_places *at, int t, int seen)
{
	struct knowledge k = { .wholes = at->symbols / SYMBOLS, .next = t > at->separator ? s->token[t] : SYMBOL };
	for (int i = t; i > at->separator && s->token[i] == k.next; i--)
		k.answered++;
	if (k.answered > k.wholes) {
		k.next++;
		k.answered = 0;
	}
	for (int i = k.wholes * SYMBOLS; i < at->symbols; i++) {
		int32_t symbol = s->token[at->start + i];
		if (symbol < k.next)
			continue;
		k.visible[symbol] = at->start + i >= seen;
		k.seen += k.visible[symbol];
		k.unseen += !k.visible[symbol];
	}
	return k;
}

/* The unseen symbols are any of those not visible, each choice as likely. Symbol after symbol is asked whether it is
 * the target: it is while whole shuffles have it left, and after that if the unfinished one has it. */
static double window_guess(const struct knowledge *k, int32_t target)
{
	int candidates = SYMBOL + SYMBOLS - k->next - k->seen, answered = k->answered;
	double reached = 1;
	for (int32_t symbol = k->next; is_symbol(symbol) && reached > 0; symbol++, answered = 0) {
		double here = k->visible[symbol] ? 1 : (double)k->unseen / candidates--;
		if (answered < k->wholes)
			here = 1;
		if (symbol == target)
			return reached * here;
		reached *= 1 - here;
	}
	return 0;
}

static void window_probability(const struct method *task, const struct sequence *s, int train_length, int length,
			       double *p)
{
	(void)task;
	struct symbol_places at = symbols_find(s->token, length);
	for (int t = 0; t < length; t++) {
		p[t] = 0;
		if (s->target[t] < 0)
			continue;
		struct knowledge k = know(s, &at, t, t - train_length + 1);
		p[t] = window_guess(&k, s->target[t]);
	}
}

static const struct task_reference references[] = {
	{ "uniform over the symbols", GROUP_SORT, symbols_uniform },
	{ "guessing among the symbols of s", GROUP_SORT, symbols_stated },
	{ "the ideal reader of the last train_length tokens", GROUP_SORT, window_probability },
	{ 0 },
};

const struct task task_sort = {
	.entry = { .name = "sort", .help = "symbols, and after a gap the same in ascending order",
		   .paper = "Deletang et al. 2022, 2207.02098", .options = options },
	.groups = { [GROUP_SORT] = "sort" },
	.references = references,
	.vocabulary = symbols_vocabulary,
	.check = sort_check,
	.make = sort_make,
	.solve = sort_solve,
	.floor = symbols_floor,
	.may_insert = symbols_may_insert,
	.filler = symbols_filler,
};
