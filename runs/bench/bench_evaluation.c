#include "eval/perplexity.h"
#include "model/base/stb.h"
#include "runs/bench/bench.h"
#include "runs/bench/memory.h"
#include "runs/progress.h"

#include <math.h>

/* An evaluation is timed from the end of its first lot to that of its last, so that opening it is left out; or as a
 * whole where it is one lot. */
struct watch {
	double start;
	double first, last; /* when the first and the last lot ended */
	int64_t first_done, done;
	int64_t memory;
};

static struct err after_lot(void *data, int64_t done, int64_t total)
{
	struct watch *w = data;
	w->last = clock_seconds();
	if (!w->done) {
		w->first = w->last;
		w->first_done = done;
	}
	w->done = done;
	if (done == total)
		w->memory = resident_now();
	return OK;
}

static double seconds_a_token(const struct watch *w)
{
	if (w->done > w->first_done)
		return (w->last - w->first) / (double)(w->done - w->first_done);
	return (w->last - w->start) / (double)w->done;
}

static struct eval_request request_at(const struct bench_request *q, const struct model *m, int length)
{
	int sequences = q->eval_tokens / length;
	return (struct eval_request){ .model = m, .data = &q->data, .scaling = &q->scaling, .length = length,
				      .sequences = sequences ? sequences : 1, .eval_seed = 1 };
}

static struct err evaluate(const struct eval_request *r, struct bench_length *l, double **token)
{
	struct eval_result result;
	resident_trim();
	struct watch w = { .start = clock_seconds() };
	struct err e = eval_run(r, after_lot, &w, &result);
	eval_result_free(&result);
	arrput(*token, seconds_a_token(&w));
	l->memory = w.memory;
	return e;
}

static void add_lengths(const struct bench_request *q, const struct model *m, struct bench_evaluation *out)
{
	for (int i = 0; i < q->lengths; i++) {
		struct eval_request r = request_at(q, m, q->length[i]);
		struct bench_length l = { .multiple = q->multiple[i], .length = r.length, .sequences = r.sequences };
		l.refused = eval_check(&r);
		arrput(out->length, l);
	}
}

/* One evaluation of each length. */
static struct err repeat(const struct bench_request *q, const struct model *m, struct bench_evaluation *out,
			 double **token)
{
	for (int i = 0; i < arrlen(token); i++) {
		struct eval_request r = request_at(q, m, q->length[i]);
		if (!out->length[i].refused.code)
			TRY(evaluate(&r, &out->length[i], &token[i]));
	}
	return OK;
}

static void summarise(struct bench_evaluation *out, double *const *token)
{
	double *x = NULL, *y = NULL;
	const struct bench_length *shortest = NULL, *longest = NULL;
	for (int i = 0; i < arrlen(token); i++) {
		struct bench_length *l = &out->length[i];
		l->token = timing_of(token[i], (int)arrlen(token[i]));
		if (l->refused.code)
			continue;
		arrput(x, l->length);
		arrput(y, l->token.median);
		shortest = !shortest || l->length < shortest->length ? l : shortest;
		longest = !longest || l->length > longest->length ? l : longest;
	}
	line_fit(x, y, (int)arrlen(x), &out->a, &out->b);
	bool known = shortest && shortest->memory > 0 && longest->memory > 0;
	out->memory_ratio = known ? (double)longest->memory / (double)shortest->memory : NAN;
	arrfree(x);
	arrfree(y);
}

struct err bench_evaluation(const struct bench_request *q, struct bench_evaluation *out)
{
	struct model m;
	double **token = NULL;
	struct progress progress;
	TRY(model_open(&q->model, task_of(&q->data.task)->vocabulary(&q->data.task), &m));
	layout_initialise(&m.layout, (uint64_t)q->train.seed, m.value);
	add_lengths(q, &m, out);
	for (int i = 0; i < q->lengths; i++)
		arrput(token, NULL);
	struct err e = OK;
	progress_start(&progress, "evaluation");
	for (int done = 0; !e.code && bench_more(q, done, progress.start); done++) {
		e = repeat(q, &m, out, token);
		bench_progress(q, &progress, done + 1);
	}
	progress_end(&progress);
	if (!e.code)
		summarise(out, token);
	for (int i = 0; i < arrlen(token); i++)
		arrfree(token[i]);
	arrfree(token);
	model_close(&m);
	return e;
}
