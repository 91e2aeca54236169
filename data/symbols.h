#ifndef ROPEWALK_SYMBOLS_H
#define ROPEWALK_SYMBOLS_H

#include "data/draw.h"

/* What the tasks share that make some symbols s into others:
 *
 *	with a gap	BOS, fillers, s, fillers, SEP, answer, fillers; where both stand is drawn
 *	without		BOS, s, SEP, answer; s fills the sequence, and where that varies (training), fillers follow
 *
 * The answer has the symbols of s in an order of its own. Those of s are distinct while they last: each further 64 are
 * another shuffle of the alphabet. */

enum symbol_token {
	BOS = 0,
	SEP = 1,
	SYMBOL = 2,
	SYMBOLS = 64,
	FILLER = SYMBOL + SYMBOLS,
	FILLERS = 32,
	SYMBOL_VOCABULARY = FILLER + FILLERS,
};
_Static_assert(FILLER == 66 && SYMBOL_VOCABULARY == 98, "the vocabulary of files on disk");

/* Where things stand: s, and the token before the answer (SEP where there is one). */
struct symbol_places {
	int start, symbols, separator;
};

static inline bool is_symbol(int32_t token)
{
	return token >= SYMBOL && token < SYMBOL + SYMBOLS;
}

int symbols_vocabulary(const struct method *task);
int32_t symbols_filler(const struct method *task, struct rng *r);

/* 1: every target is determined by its place. */
double symbols_floor(const struct method *task, int length, int group);

/* Fillers at all places, not scored. */
void symbols_clear(const struct method *task, struct rng *r, int length, struct sequence *out);

/* `count` symbols, distinct while they last. */
void symbols_draw(struct rng *r, int count, int32_t *token);

/* Can a sequence of this length be made? `most` is how many symbols s has with a gap, 0 without one. The error names
 * the task, whose option `gap` it is. */
struct err symbols_check(const struct method *task, int most, int length);

/* All but the answer and what is scored; fillers stand where the answer will. A length that was not checked is a BUG.
 * s has `most` symbols, without a gap as many as fit; in training any number from 4 on. */
struct symbol_places symbols_make(const struct method *task, int most, enum stream stream, int length, struct rng *r,
				  struct sequence *out);

/* The same places from the tokens. */
struct symbol_places symbols_find(const int32_t *token, int length);

/* Neither s nor the answer is torn, and the answer follows SEP at once: filler may stand before none of their tokens
 * but the first of s. */
bool symbols_may_insert(const struct method *task, const struct sequence *s, int length, int t);

/* References of group 0: a draw from the alphabet, and one from the places of s (1 / n while its n symbols are
 * distinct). */
void symbols_uniform(const struct method *task, const struct sequence *s, int train_length, int length, double *p);
void symbols_stated(const struct method *task, const struct sequence *s, int train_length, int length, double *p);

/* The ideal reader of the last train_length tokens where the answer is s, or s reversed. A symbol that the reader sees
 * is known. Of others it knows the place, how many symbols s has and how many of them were answered: a shuffle has each
 * symbol once, so that those of it that stand elsewhere in sight are ruled out; the rest are as likely. */
void symbols_window(const struct sequence *s, const struct symbol_places *at, bool reversed, int train_length,
		    int length, double *p);

#endif
