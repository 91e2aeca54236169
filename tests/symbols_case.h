#ifndef ROPEWALK_TESTS_SYMBOLS_CASE_H
#define ROPEWALK_TESTS_SYMBOLS_CASE_H

#include "tests/sequence_case.h"

/* What sequences of symbols are made of: copy, reverse, sort, induction. */

enum { BOS = 0, SEP = 1, SYMBOL = 2, FILLER = 66, VOCABULARY = 98, SYMBOLS = 64 };

static inline bool symbol(int32_t token)
{
	return token >= SYMBOL && token < FILLER;
}

/* What stands where, read from the tokens. */
struct reading {
	int start, n, separator, end; /* end: past the answer */
};

static inline void assert_fillers(const struct sequence *s, int first, int end)
{
	for (int t = first; t < end; t++)
		assert_true(s->token[t] >= FILLER && s->token[t] < VOCABULARY);
}

/* BOS, fillers, s, fillers, SEP, as many symbols as s has, fillers. */
static inline struct reading read_symbols(const struct sequence *s, int length)
{
	struct reading r = { .start = 1 };
	assert_int_equal(s->token[0], BOS);
	while (r.start < length && s->token[r.start] >= FILLER)
		r.start++;
	while (r.start + r.n < length && symbol(s->token[r.start + r.n]))
		r.n++;
	for (r.separator = r.start + r.n; r.separator < length && s->token[r.separator] != SEP; r.separator++)
		assert_fillers(s, r.separator, r.separator + 1);
	r.end = r.separator + 1 + r.n;
	assert_true(r.n >= 1 && r.end <= length);
	for (int t = r.separator + 1; t < r.end; t++)
		assert_true(symbol(s->token[t]));
	assert_fillers(s, r.end, length);
	return r;
}

static inline void assert_distinct(const int32_t *token, int n)
{
	bool seen[VOCABULARY] = { false };
	for (int i = 0; i < n; i++) {
		assert_true(symbol(token[i]) && !seen[token[i]]);
		seen[token[i]] = true;
	}
}

/* The answer and nothing else is scored, as the next token; the evidence for its symbol i stands at source[i]. */
static inline void assert_answer(const struct sequence *s, const struct reading *r, const int *source, int length)
{
	for (int t = 0; t < length; t++) {
		int i = t - r->separator;
		bool scored = i >= 0 && i < r->n;
		assert_int_equal(s->target[t], scored ? s->token[t + 1] : -1);
		assert_int_equal(s->distance[t], scored ? t - source[i] : 0);
		assert_true(!scored || s->token[source[i]] == s->target[t]);
		assert_true(!scored || s->group[t] == 0);
	}
}

/* Thousands of sequences answered again from their tokens alone. */
static inline void assert_solves(const struct method *m, int length, int sequences)
{
	static const enum stream stream[] = { STREAM_TRAIN, STREAM_TUNE, STREAM_REPORT };
	struct sequence s = sequence_new(length, 0x5a);
	int32_t *target = malloc((size_t)length * sizeof *target);
	assert_non_null(target);
	for (int k = 0; k < sequences; k++) {
		task_of(m)->make(m, 64, 105, stream[k % 3], (uint64_t)k, length, &s);
		task_of(m)->solve(m, s.token, length, target);
		assert_memory_equal(target, s.target, (size_t)length * sizeof *target);
	}
	free(target);
	sequence_free(&s);
}

#endif
