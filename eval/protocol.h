#ifndef ROPEWALK_PROTOCOL_H
#define ROPEWALK_PROTOCOL_H

#include "data/task.h"

/* What of a sequence a model sees, and what counts. A sequence of the task is a *document* of `span` tokens; the model
 * sees *windows* of `length` tokens of it, each from position 0 on:
 *
 *	all	span = length, one window, every scored token
 *	half	likewise, but only targets in the second half of the window, t >= length / 2
 *	last	the last `length` tokens of the document, and only its last `tokens` targets: they are the same at
 *		every length, and what is seen before them grows
 *	sliding	a window every `stride` tokens, the last ending with the document; every token is scored once, in the
 *		first window that has it: all of the first, the last `stride` of later ones
 *
 * A window that is shorter than its document may lack the evidence for its targets, so that no floor and no baseline
 * is known there. */

enum protocol_kind { PROTOCOL_ALL, PROTOCOL_HALF, PROTOCOL_LAST, PROTOCOL_SLIDING };

struct protocol {
	struct entry entry;
	enum protocol_kind kind;
};

/* The list; NULL past the last. */
const struct entry *protocol_at(int index);

/* Puts numbers where `auto` stands: tokens and stride half of train_length (but at most the least length), span the
 * greatest length. Errors: numbers that are not whole, a span below a length, more tokens or a longer stride than a
 * window has. To be called once the lengths are known; all below takes what is settled, NULL for `all`. */
struct err protocol_settle(struct method *protocol, int train_length, const int *length, int lengths);

enum protocol_kind protocol_kind_of(const struct method *protocol);
/* Are the scored tokens the same at every length, so that lengths can be compared in pairs? */
bool protocol_pairs(const struct method *protocol);
/* Does it leave a window of this length less than its document? */
bool protocol_cuts(const struct method *protocol, int length);

/* How a document falls into windows. */
struct cut {
	int span, length;
	int windows;
	int first, later; /* of the first window the last `first` targets count, of the others `later` */
	bool whole;       /* one window, and every target counts */
};
struct cut protocol_cut(const struct method *protocol, int length);
/* Where window w begins in its document, and from where on in the window targets count. */
int cut_begin(const struct cut *c, int window);
int cut_from(const struct cut *c, int window);

/* "last(tokens=32,span=2048)": what tells it from others; "" for `all`. Appends. */
void protocol_name(const struct method *protocol, struct text_builder *b);
/* What is scored and how, in words. Appends. */
void protocol_words(const struct method *protocol, struct text_builder *b);

#endif
