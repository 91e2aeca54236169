#ifndef ROPEWALK_TESTS_EVAL_CASE_H
#define ROPEWALK_TESTS_EVAL_CASE_H

#include "data/batch.h"
#include "eval/perplexity.h"
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>

/* A model whose attention decides, and what it takes to evaluate it by a protocol; and the same done naively. */

#ifdef ROPEWALK_DOUBLE
#define TOLERANCE 1e-9
#else
#define TOLERANCE 1e-4
#endif

enum { TRAIN_LENGTH = 40, SPAN = 100, SEQUENCES = 7, RECALL = 0, NEAR, FAR, ECHO, ALL, GROUPS };

struct setup {
	struct model model;
	struct data_options data;
	struct method scaling, protocol;
};

/* `protocol` is settled for lengths TRAIN_LENGTH and SPAN. */
static inline void setup_open(struct setup *s, const char *protocol)
{
	struct model_options o = { .layers = 1, .width = 16, .heads = 2, .hidden = 16, .rms_eps = 1e-5,
				   .train_length = TRAIN_LENGTH };
	assert_ok(method_parse("encoding", position_at, "rope", &o.encoding));
	assert_ok(method_parse("scaling", scaling_at, "none", &s->scaling));
	assert_ok(method_parse("protocol", protocol_at, protocol, &s->protocol));
	assert_ok(protocol_settle(&s->protocol, TRAIN_LENGTH, (const int[]){ TRAIN_LENGTH, SPAN }, 2));
	s->data = (struct data_options){ .task = method_default(task_at(0)) };
	assert_ok(model_open(&o, task_of(&s->data.task)->vocabulary(&s->data.task), &s->model));
	fill_normal(7, s->model.value, s->model.layout.size);
	for (size_t i = 0; i < s->model.layout.size; i++)
		s->model.value[i] *= (real)0.5;
}

static inline struct eval_request request_of(const struct setup *s, int length)
{
	return (struct eval_request){ .model = &s->model, .data = &s->data, .scaling = &s->scaling, .length = length,
				      .sequences = SEQUENCES, .eval_seed = 1, .protocol = &s->protocol,
				      .measures = true };
}

static inline struct eval_result evaluate(const struct setup *s, int length)
{
	struct eval_request request = request_of(s, length);
	struct eval_result r;
	assert_ok(eval_check(&request));
	assert_ok(eval_run(&request, NULL, NULL, &r));
	return r;
}

/* By the words of the protocol and not by its cuts: which tokens of a document count, and where their window begins. */
static inline int window_of(const char *protocol, int length, int t)
{
	if (!strcmp(protocol, "all"))
		return 0;
	if (!strcmp(protocol, "half"))
		return t >= length / 2 ? 0 : -1;
	if (!strcmp(protocol, "last(tokens=12)"))
		return t >= SPAN - 12 ? SPAN - length : -1;
	/* sliding(stride=9): the first window that has it; the last ends with the document. */
	int begin = 0;
	while (begin + length <= t)
		begin += 9;
	return begin + length > SPAN ? SPAN - length : begin;
}

static inline int span_of(const char *protocol, int length)
{
	return !strcmp(protocol, "all") || !strcmp(protocol, "half") ? length : SPAN;
}

typedef void visitor(void *data, const struct sequence *s, int document, int t, double nll, bool correct,
		     const real *logits);

static inline void score(const real *logits, int V, int32_t target, double *nll, bool *correct)
{
	double sum = 0;
	int best = 0;
	for (int v = 0; v < V; v++) {
		sum += exp((double)logits[v] - (double)logits[target]);
		best = logits[v] > logits[best] ? v : best;
	}
	*nll = log(sum);
	*correct = best == target;
}

/* A window of its own for every token that counts. */
static inline void naively(const struct setup *s, const char *protocol, int length, enum stream stream, int sequences,
		    visitor *visit, void *data)
{
	int span = span_of(protocol, length), V = s->model.V;
	struct batch_source source = { &s->data.task, TRAIN_LENGTH, span, 1, stream };
	struct transformer_request request = { .model = &s->model, .B = 1, .T = length, .scaling = &s->scaling };
	struct transformer *transformer;
	struct batch b;
	real *logits = TAKE(real, (size_t)length * (size_t)V);
	assert_ok(batch_open(&source, 1, &b));
	assert_ok(transformer_open(&request, &transformer));
	for (int i = 0; i < sequences; i++) {
		int at = -1;
		batch_make(&b, (uint64_t)i, 1);
		for (int t = 0; t < span; t++) {
			int begin = window_of(protocol, length, t);
			if (begin < 0 || b.target[t] < 0)
				continue;
			struct sequence w = { .token = b.token + begin, .target = b.target + begin,
					      .group = b.group + begin, .distance = b.distance + begin };
			if (at != begin)
				transformer_forward(transformer, w.token, w.target, logits);
			at = begin;
			double nll;
			bool correct;
			const real *row = logits + (size_t)(t - begin) * (size_t)V;
			score(row, V, b.target[t], &nll, &correct);
			visit(data, &w, i, t - begin, nll, correct, row);
		}
	}
	transformer_close(transformer);
	batch_close(&b);
	free(logits);
}

#endif
