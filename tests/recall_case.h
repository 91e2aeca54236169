#ifndef ROPEWALK_TESTS_RECALL_CASE_H
#define ROPEWALK_TESTS_RECALL_CASE_H

/* Sequences of recall and what they are made of, for the tests of data. */

/* cmocka wants these before itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static inline void set_option(struct method *m, const char *name, const char *text)
{
	int index = method_find(m->entry, name);
	assert_true(index >= 0);
	union option_value v;
	assert_int_equal(option_parse(&m->entry->options[index], text, &v).code, ERR_NONE);
	method_set(m, index, v);
}

static inline const struct entry *recall_entry(void)
{
	for (int i = 0; task_at(i); i++)
		if (!strcmp(task_at(i)->name, "recall"))
			return task_at(i);
	fail_msg("recall is not in the list");
	return NULL;
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

/* Arrays exactly T long, so that the sanitizer sees a write past them; `junk` is what they hold before. */
static inline struct sequence sequence_new(int length, int junk)
{
	size_t n = (size_t)length;
	struct sequence s = { malloc(n * sizeof *s.token), malloc(n * sizeof *s.target), malloc(n * sizeof *s.group),
			      malloc(n * sizeof *s.distance), malloc(n * sizeof *s.position) };
	assert_true(s.token && s.target && s.group && s.distance && s.position);
	memset(s.token, junk, n * sizeof *s.token);
	memset(s.target, junk, n * sizeof *s.target);
	memset(s.group, junk, n * sizeof *s.group);
	memset(s.distance, junk, n * sizeof *s.distance);
	memset(s.position, junk, n * sizeof *s.position);
	return s;
}

static inline void sequence_free(struct sequence *s)
{
	free(s->token);
	free(s->target);
	free(s->group);
	free(s->distance);
	free(s->position);
}

static inline bool same_sequence(const struct sequence *a, const struct sequence *b, int length)
{
	size_t n = (size_t)length;
	return !memcmp(a->token, b->token, n * sizeof *a->token) &&
	       !memcmp(a->target, b->target, n * sizeof *a->target) &&
	       !memcmp(a->group, b->group, n * sizeof *a->group) &&
	       !memcmp(a->distance, b->distance, n * sizeof *a->distance) &&
	       !memcmp(a->position, b->position, n * sizeof *a->position);
}

static inline void make(const struct method *m, int train_length, uint64_t seed, uint64_t index, int length,
		 struct sequence *out)
{
	assert_int_equal(task_of(m)->check(m, train_length, length).code, ERR_NONE);
	task_of(m)->make(m, train_length, seed, STREAM_REPORT, index, length, out);
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
