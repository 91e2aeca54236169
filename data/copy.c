#include "data/task.h"

#include <string.h>

/* Copying. Some symbols s, the separator, the same symbols again:
 *
 *	with a gap	BOS, fillers, s, fillers, SEP, s, fillers; where both stand is drawn
 *	without		BOS, s, SEP, s; s fills the sequence, and where that varies (training), fillers follow
 *
 * With `coupled`, the second s is at the positions of the first, and SEP at the one before, so that the next symbol
 * always stands one position ahead (position coupling: Cho et al. 2024, 2405.20671); all else keeps its own.
 *
 * An ordinary text: a target is the next token, and those scored are the second s, the first at SEP. The symbols of s
 * are distinct while they last: each further 64 are another shuffle of the alphabet. */

enum token {
	BOS = 0,
	SEP = 1,
	SYMBOL = 2,
	SYMBOLS = 64,
	FILLER = SYMBOL + SYMBOLS,
	FILLERS = 32,
	VOCABULARY = FILLER + FILLERS,
};
_Static_assert(FILLER == 66 && VOCABULARY == 98, "the vocabulary of files on disk");

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

/* How many symbols are drawn in training; with a gap, the most otherwise. */
enum { LEAST_TRAINED = 4, MOST_WITH_GAP = 16 };

/* Where things stand: s, the separator (and s again behind it). */
struct places {
	int start, symbols, separator;
};

static bool has_gap(const struct method *task)
{
	return task->value[OPTION_GAP].integer;
}

static bool copy_placed(const struct method *task)
{
	return task->value[OPTION_COUPLED].integer;
}

/* Least length with a gap: BOS, s, SEP, s. Without one, a single symbol is enough. */
static int least_length(const struct method *task)
{
	return 2 + 2 * (has_gap(task) ? MOST_WITH_GAP : 1);
}

static int copy_vocabulary(const struct method *task)
{
	(void)task;
	return VOCABULARY;
}

static struct err copy_check(const struct method *task, int train_length, int length)
{
	(void)train_length;
	int least = least_length(task);
	if (length >= least)
		return OK;
	if (!has_gap(task))
		return err_usage("Give a greater length.", "copy(gap=off): length %d is too short: BOS, a symbol, SEP "
				 "and the symbol again need %d", length, least);
	return err_usage("Give a greater length, or copy(gap=off), which makes any from 4.", "copy: length %d is too "
			 "short: %d symbols twice, BOS and SEP need %d", length, MOST_WITH_GAP, least);
}

static int draw_between(struct rng *r, int least, int most)
{
	return least + (int)rng_below(r, (uint32_t)(most - least) + 1);
}

static struct places draw_places(const struct method *task, enum stream stream, int length, struct rng *r)
{
	int most = has_gap(task) ? MOST_WITH_GAP : (length - 2) / 2;
	int least = most < LEAST_TRAINED ? most : LEAST_TRAINED;
	struct places at = { .start = 1, .symbols = stream == STREAM_TRAIN ? draw_between(r, least, most) : most };
	int n = at.symbols;
	if (has_gap(task))
		at.start = draw_between(r, 1, length - 2 * n - 1);
	at.separator = has_gap(task) ? draw_between(r, at.start + n, length - n - 1) : at.start + n;
	return at;
}

static void draw_symbols(struct rng *r, int count, int32_t *token)
{
	int32_t alphabet[SYMBOLS];
	for (int i = 0; i < SYMBOLS; i++)
		alphabet[i] = SYMBOL + i;
	for (int first = 0; first < count; first += SYMBOLS) {
		int some = count - first < SYMBOLS ? count - first : SYMBOLS;
		rng_shuffle(r, alphabet, SYMBOLS);
		memcpy(token + first, alphabet, (size_t)some * sizeof *token);
	}
}

static int32_t copy_filler(const struct method *task, struct rng *r)
{
	(void)task;
	return FILLER + (int32_t)rng_below(r, FILLERS);
}

static void copy_make(const struct method *task, int train_length, uint64_t seed, enum stream stream, uint64_t index,
		      int length, struct sequence *out)
{
	(void)train_length;
	BUG_IF(length < least_length(task), "copy: length %d was not checked", length);
	struct rng r = rng_at(seed, stream, index);
	struct places at = draw_places(task, stream, length, &r);
	for (int t = 0; t < length; t++) {
		out->token[t] = copy_filler(task, &r);
		out->target[t] = -1;
		out->group[t] = GROUP_COPY;
		out->distance[t] = 0;
		out->position[t] = t;
	}
	int32_t *first = out->token + at.start, *again = out->token + at.separator + 1;
	out->token[0] = BOS;
	out->token[at.separator] = SEP;
	draw_symbols(&r, at.symbols, first);
	memcpy(again, first, (size_t)at.symbols * sizeof *again);
	for (int i = 0; i <= at.symbols && copy_placed(task); i++)
		out->position[at.separator + i] = at.start - 1 + i;
	for (int t = at.separator; t < at.separator + at.symbols; t++) {
		out->target[t] = out->token[t + 1];
		out->distance[t] = at.separator - at.start;
	}
}

static bool is_symbol(int32_t token)
{
	return token >= SYMBOL && token < SYMBOL + SYMBOLS;
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

static struct places find_places(const int32_t *token, int length)
{
	struct places at = { .start = 0 };
	for (int t = 0; t < length && token[t] != SEP; t++) {
		if (is_symbol(token[t]) && !at.symbols++)
			at.start = t;
		at.separator = t + 1;
	}
	return at;
}

/* Neither s is torn, and the second follows SEP at once: before none of their tokens but the first of the first. */
static bool copy_may_insert(const struct method *task, const struct sequence *s, int length, int t)
{
	(void)task, (void)length;
	return !is_symbol(s->token[t]) || (!is_symbol(s->token[t - 1]) && s->token[t - 1] != SEP);
}

static void uniform_probability(const struct method *task, const struct sequence *s, int train_length, int length,
				double *p)
{
	(void)task, (void)train_length;
	for (int t = 0; t < length; t++)
		p[t] = s->target[t] >= 0 && is_symbol(s->target[t]) ? 1.0 / SYMBOLS : 0;
}

/* A draw from the places of s: 1 / n while its n symbols are distinct. */
static void stated_probability(const struct method *task, const struct sequence *s, int train_length, int length,
			       double *p)
{
	(void)task, (void)train_length;
	struct places at = find_places(s->token, length);
	int count[VOCABULARY] = { 0 };
	for (int i = 0; i < at.symbols; i++)
		count[s->token[at.start + i]]++;
	for (int t = 0; t < length; t++)
		p[t] = s->target[t] >= 0 ? (double)count[s->target[t]] / at.symbols : 0;
}

/* Symbols first .. last - 1 of an s that starts at `start`, those that stand at `seen` or behind it. */
static void mark_symbols(const int32_t *token, int start, int first, int last, int seen, bool known[VOCABULARY])
{
	for (int i = first > seen - start ? first : seen - start; i < last; i++)
		known[token[start + i]] = true;
}

/* What the reader who sees tokens `seen` and behind gives the target where symbol k of s is next. A shuffle has each
 * symbol once, so that those of it that stand elsewhere are ruled out; the others are as likely. */
static double window_guess(const int32_t *token, const struct places *at, int k, int seen, int32_t target)
{
	if (at->start + k >= seen)
		return token[at->start + k] == target;
	int first = k / SYMBOLS * SYMBOLS, last = first + SYMBOLS < at->symbols ? first + SYMBOLS : at->symbols;
	bool known[VOCABULARY] = { false };
	mark_symbols(token, at->start, k + 1, last, seen, known);
	mark_symbols(token, at->separator + 1, first, k, seen, known);
	int left = 0;
	for (int v = SYMBOL; v < SYMBOL + SYMBOLS; v++)
		left += !known[v];
	return is_symbol(target) && !known[target] ? 1.0 / left : 0;
}

/* The reader knows how many symbols s has and how many have been repeated. */
static void window_probability(const struct method *task, const struct sequence *s, int train_length, int length,
			       double *p)
{
	(void)task;
	struct places at = find_places(s->token, length);
	for (int t = 0; t < length; t++) {
		bool scored = s->target[t] >= 0;
		p[t] = scored ? window_guess(s->token, &at, t - at.separator, t - train_length + 1, s->target[t]) : 0;
	}
}

static const struct task_reference references[] = {
	{ "uniform over the symbols", GROUP_COPY, uniform_probability },
	{ "guessing among the symbols of s", GROUP_COPY, stated_probability },
	{ "the ideal reader of the last train_length tokens", GROUP_COPY, window_probability },
	{ 0 },
};

/* Every target is determined by its place in s. */
static double copy_floor(const struct method *task, int length, int group)
{
	(void)task, (void)length, (void)group;
	return 1;
}

const struct task task_copy = {
	.entry = { .name = "copy", .help = "symbols, and after a gap the same symbols again", .options = options },
	.groups = { [GROUP_COPY] = "copy" },
	.references = references,
	.vocabulary = copy_vocabulary,
	.check = copy_check,
	.make = copy_make,
	.solve = copy_solve,
	.floor = copy_floor,
	.placed = copy_placed,
	.may_insert = copy_may_insert,
	.filler = copy_filler,
};
