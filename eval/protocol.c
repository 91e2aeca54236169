#include "eval/protocol.h"

#include <math.h>

enum { LAST_TOKENS, LAST_SPAN };
enum { SLIDING_STRIDE, SLIDING_SPAN };
enum { TOKENS_MOST = 1 << 30 };

#define TOKENS(n, h)                                                                                              \
	{ .name = n, .kind = OPTION_NUMBER, .initial = "auto", .least = 1, .most = TOKENS_MOST, .choices = "auto", \
	  .unit = "tokens", .help = h, .results = true }

static const struct option last_options[] = {
	[LAST_TOKENS] = TOKENS("tokens", "tokens at a document's end that count; auto: half of train_length"),
	[LAST_SPAN] = TOKENS("span", "tokens of a document; auto: the greatest length"),
	{ 0 },
};

static const struct option sliding_options[] = {
	[SLIDING_STRIDE] = TOKENS("stride", "tokens from window to window; auto: half of train_length"),
	[SLIDING_SPAN] = TOKENS("span", "tokens of a document; auto: the greatest length"),
	{ 0 },
};

static const struct protocol protocols[] = {
	{ { .name = "all", .help = "every scored token of whole sequences" }, PROTOCOL_ALL },
	{ { .name = "half", .help = "those of their second half" }, PROTOCOL_HALF },
	{ { .name = "last", .help = "the same last tokens at every length, seen with more and more before them",
	    .options = last_options },
	  PROTOCOL_LAST },
	{ { .name = "sliding", .help = "every token of long sequences, seen in windows that overlap",
	    .options = sliding_options },
	  PROTOCOL_SLIDING },
};
#define COUNT ((int)(sizeof protocols / sizeof protocols[0]))

const struct entry *protocol_at(int index)
{
	return index < COUNT ? &protocols[index].entry : NULL;
}

enum protocol_kind protocol_kind_of(const struct method *m)
{
	return m && m->entry ? ((const struct protocol *)m->entry)->kind : PROTOCOL_ALL;
}

bool protocol_pairs(const struct method *m)
{
	return protocol_kind_of(m) == PROTOCOL_LAST;
}

static struct err settle_one(struct method *m, int index, int otherwise)
{
	double value = m->value[index].number;
	if (value == 0)
		method_set(m, index, (union option_value){ .number = otherwise });
	else if (value != floor(value))
		return err_usage("Give a whole number.", "protocol: %s: %s: %g is not a whole number of tokens",
				 m->entry->name, m->entry->options[index].name, value);
	return OK;
}

struct err protocol_settle(struct method *m, int train_length, const int *length, int lengths)
{
	enum protocol_kind kind = protocol_kind_of(m);
	if (kind != PROTOCOL_LAST && kind != PROTOCOL_SLIDING)
		return OK;
	int least = length[0], greatest = length[0], half = train_length > 1 ? train_length / 2 : 1;
	for (int i = 1; i < lengths; i++) {
		least = length[i] < least ? length[i] : least;
		greatest = length[i] > greatest ? length[i] : greatest;
	}
	TRY(settle_one(m, LAST_TOKENS, half < least ? half : least));
	TRY(settle_one(m, LAST_SPAN, greatest));
	const char *name = m->entry->options[LAST_TOKENS].name;
	if (m->value[LAST_SPAN].number < greatest)
		return err_usage("Give a greater span, or smaller --multiples.",
				 "protocol: %s: a document of %.0f tokens has no window of %d", m->entry->name,
				 m->value[LAST_SPAN].number, greatest);
	if (m->value[LAST_TOKENS].number > least)
		return err_usage("Give a smaller one, or greater --multiples.",
				 "protocol: %s: %s: %.0f is more than the %d tokens of a window", m->entry->name, name,
				 m->value[LAST_TOKENS].number, least);
	return OK;
}
_Static_assert((int)LAST_TOKENS == SLIDING_STRIDE && (int)LAST_SPAN == SLIDING_SPAN, "settled alike");

struct cut protocol_cut(const struct method *m, int length)
{
	struct cut c = { .span = length, .length = length, .windows = 1, .first = length, .whole = true };
	enum protocol_kind kind = protocol_kind_of(m);
	if (kind == PROTOCOL_ALL)
		return c;
	if (kind == PROTOCOL_HALF) {
		c.first = length - length / 2;
	} else {
		int tokens = (int)m->value[LAST_TOKENS].number;
		c.span = (int)m->value[LAST_SPAN].number;
		BUG_IF(tokens < 1 || tokens > length || c.span < length, "a protocol that is not settled");
		c.first = kind == PROTOCOL_LAST ? tokens : length;
		c.later = tokens;
		if (kind == PROTOCOL_SLIDING)
			c.windows = 1 + (c.span - length + tokens - 1) / tokens;
	}
	c.whole = c.span == length && c.first == length;
	return c;
}

bool protocol_cuts(const struct method *m, int length)
{
	return protocol_cut(m, length).span > length;
}

/* Only one that slides has several windows, and the last of them ends with the document. */
int cut_begin(const struct cut *c, int window)
{
	if (window == c->windows - 1)
		return c->span - c->length;
	return window * c->later;
}

int cut_from(const struct cut *c, int window)
{
	if (window == 0)
		return c->length - c->first;
	int scored = c->length + (window - 1) * c->later;
	return scored - cut_begin(c, window);
}

void protocol_name(const struct method *m, struct text_builder *b)
{
	if (protocol_kind_of(m) == PROTOCOL_ALL)
		text_add(b, "%s", "");
	else
		method_identity(m, b);
}

void protocol_words(const struct method *m, struct text_builder *b)
{
	switch (protocol_kind_of(m)) {
	case PROTOCOL_ALL:
		text_add(b, "every scored token of whole sequences that do not overlap");
		break;
	case PROTOCOL_HALF:
		text_add(b, "the scored tokens in the second half of whole sequences that do not overlap");
		break;
	case PROTOCOL_LAST:
		text_add(b, "of documents of %.0f tokens one window, the last `length` tokens; the scored tokens among "
			    "the last %.0f, which are the same at every length",
			 m->value[LAST_SPAN].number, m->value[LAST_TOKENS].number);
		break;
	case PROTOCOL_SLIDING:
		text_add(b, "of documents of %.0f tokens windows of `length`, stride %.0f; every scored token once: all "
			    "of the first window, the last %.0f of later ones",
			 m->value[SLIDING_SPAN].number, m->value[SLIDING_STRIDE].number,
			 m->value[SLIDING_STRIDE].number);
		break;
	}
}
