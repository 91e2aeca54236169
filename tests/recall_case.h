#ifndef ROPEWALK_TESTS_RECALL_CASE_H
#define ROPEWALK_TESTS_RECALL_CASE_H

#include "tests/sequence_case.h"

/* What sequences of recall are made of, for the tests of data. */

/* The vocabulary as the study gives it. */
enum { BOS = 0, KEY = 2, VALUE = 34, FILLER = 66, ECHO = 98, VOCABULARY = 99 };
enum { RECALL_GROUP, ECHO_GROUP };
enum item { PAIR, QUERY, ECHO_ITEM, FILLER_ITEM, ITEMS };

static inline bool key(int32_t token)
{
	return token >= KEY && token < VALUE;
}

static inline bool value(int32_t token)
{
	return token >= VALUE && token < FILLER;
}

static inline bool filler(int32_t token)
{
	return token >= FILLER && token < ECHO;
}

static inline const struct entry *recall_entry(void)
{
	return task_named("recall");
}

static inline struct method recall(int pairs, const char *grow)
{
	struct method m = method_default(recall_entry());
	char text[16];
	snprintf(text, sizeof text, "%d", pairs);
	set_option(&m, "pairs", text);
	set_option(&m, "grow", grow);
	return m;
}

/* Kinds of the items, from the tokens; returns how many. */
static inline int read_items(const struct sequence *s, int length, enum item *kind)
{
	int items = 0;
	for (int t = 1; t < length; t++) {
		if (t + 1 < length && key(s->token[t]) && value(s->token[t + 1])) {
			kind[items++] = PAIR;
			t++;
		} else if (key(s->token[t])) {
			kind[items++] = QUERY;
		} else if (s->token[t] == ECHO) {
			kind[items++] = ECHO_ITEM;
		} else {
			assert_true(filler(s->token[t]));
			kind[items++] = FILLER_ITEM;
		}
	}
	return items;
}

static inline void count_kinds(const struct sequence *s, int length, int count[ITEMS])
{
	enum item *kind = malloc((size_t)length * sizeof *kind);
	assert_non_null(kind);
	int items = read_items(s, length, kind);
	memset(count, 0, ITEMS * sizeof *count);
	for (int i = 0; i < items; i++)
		count[kind[i]]++;
	free(kind);
}

#endif
