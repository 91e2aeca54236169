#include "data/symbols.h"

#include <stdio.h>
#include <string.h>

/* How many symbols are drawn in training, at least. */
enum { LEAST_TRAINED = 4 };

int symbols_vocabulary(const struct method *task)
{
	(void)task;
	return SYMBOL_VOCABULARY;
}

int32_t symbols_filler(const struct method *task, struct rng *r)
{
	(void)task;
	return FILLER + (int32_t)rng_below(r, FILLERS);
}

double symbols_floor(const struct method *task, int length, int group)
{
	(void)task, (void)length, (void)group;
	return 1;
}

void symbols_clear(const struct method *task, struct rng *r, int length, struct sequence *out)
{
	for (int t = 0; t < length; t++)
		put_token(out, t, symbols_filler(task, r));
}

void symbols_draw(struct rng *r, int count, int32_t *token)
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

/* Least length with a gap: BOS, s, SEP and the answer. Without one, a single symbol is enough. */
static int least_length(int most)
{
	return 2 + 2 * (most ? most : 1);
}

struct err symbols_check(const struct method *task, int most, int length)
{
	const char *name = task->entry->name;
	char hint[100];
	int least = least_length(most);
	if (length >= least)
		return OK;
	if (!most)
		return err_usage("Give a greater length.", "%s(gap=off): length %d is too short: BOS, a symbol, SEP "
				 "and the symbol again need %d", name, length, least);
	snprintf(hint, sizeof hint, "Give a greater length, or %s(gap=off), which makes any from 4.", name);
	return err_usage(hint, "%s: length %d is too short: %d symbols twice, BOS and SEP need %d", name, length, most,
			 least);
}

static struct symbol_places draw_places(int most, enum stream stream, int length, struct rng *r)
{
	bool gap = most > 0;
	most = gap ? most : (length - 2) / 2;
	int least = most < LEAST_TRAINED ? most : LEAST_TRAINED;
	struct symbol_places at = { .start = 1, .symbols = most };
	if (stream == STREAM_TRAIN)
		at.symbols = draw_between(r, least, most);
	int n = at.symbols;
	if (gap)
		at.start = draw_between(r, 1, length - 2 * n - 1);
	at.separator = gap ? draw_between(r, at.start + n, length - n - 1) : at.start + n;
	return at;
}

struct symbol_places symbols_make(const struct method *task, int most, enum stream stream, int length, struct rng *r,
				  struct sequence *out)
{
	BUG_IF(length < least_length(most), "%s: length %d was not checked", task->entry->name, length);
	struct symbol_places at = draw_places(most, stream, length, r);
	symbols_clear(task, r, length, out);
	out->token[0] = BOS;
	out->token[at.separator] = SEP;
	symbols_draw(r, at.symbols, out->token + at.start);
	return at;
}

struct symbol_places symbols_find(const int32_t *token, int length)
{
	struct symbol_places at = { .start = 0 };
	for (int t = 0; t < length && token[t] != SEP; t++) {
		if (is_symbol(token[t]) && !at.symbols++)
			at.start = t;
		at.separator = t + 1;
	}
	return at;
}

bool symbols_may_insert(const struct method *task, const struct sequence *s, int length, int t)
{
	(void)task, (void)length;
	return !is_symbol(s->token[t]) || (!is_symbol(s->token[t - 1]) && s->token[t - 1] != SEP);
}

void symbols_uniform(const struct method *task, const struct sequence *s, int train_length, int length, double *p)
{
	(void)task, (void)train_length;
	for (int t = 0; t < length; t++)
		p[t] = s->target[t] >= 0 && is_symbol(s->target[t]) ? 1.0 / SYMBOLS : 0;
}

void symbols_stated(const struct method *task, const struct sequence *s, int train_length, int length, double *p)
{
	(void)task, (void)train_length;
	struct symbol_places at = symbols_find(s->token, length);
	int count[SYMBOL_VOCABULARY] = { 0 };
	for (int i = 0; i < at.symbols; i++)
		count[s->token[at.start + i]]++;
	for (int t = 0; t < length; t++)
		p[t] = s->target[t] >= 0 ? (double)count[s->target[t]] / at.symbols : 0;
}

struct window {
	const int32_t *token;
	const struct symbol_places *at;
	bool reversed;
	int t, seen; /* the reader is at t and sees tokens from `seen` on */
};

/* Is symbol i of s in sight, where it is stated or where it is answered? */
static bool in_sight(const struct window *w, int i)
{
	int answered = w->at->separator + 1 + (w->reversed ? w->at->symbols - 1 - i : i);
	return w->at->start + i >= w->seen || (answered <= w->t && answered >= w->seen);
}

static double window_guess(const struct window *w, int32_t target)
{
	int k = w->reversed ? w->at->symbols - 1 - (w->t - w->at->separator) : w->t - w->at->separator;
	const int32_t *s = w->token + w->at->start;
	if (w->at->start + k >= w->seen)
		return s[k] == target;
	int first = k / SYMBOLS * SYMBOLS, last = first + SYMBOLS, left = SYMBOLS;
	bool known[SYMBOL_VOCABULARY] = { false };
	for (int i = first; i < last && i < w->at->symbols; i++) {
		if (i == k || !in_sight(w, i))
			continue;
		known[s[i]] = true;
		left--;
	}
	return is_symbol(target) && !known[target] ? 1.0 / left : 0;
}

void symbols_window(const struct sequence *s, const struct symbol_places *at, bool reversed, int train_length,
		    int length, double *p)
{
	for (int t = 0; t < length; t++) {
		struct window w = { s->token, at, reversed, t, t - train_length + 1 };
		p[t] = s->target[t] >= 0 ? window_guess(&w, s->target[t]) : 0;
	}
}
