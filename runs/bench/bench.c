#include "runs/bench/bench.h"

#include "data/batch.h"
#include "model/base/stb.h"
#include "model/base/threads.h"
#include "runs/bench/limit.h"
#include "runs/bench/memory.h"
#include "runs/progress.h"
#include "train/loop.h"

/* Before anything is timed: the caches, the thread pool and the processor's clock settle. */
#define WARM_UP 4
#define LEAST_REPETITIONS 3

bool bench_more(const struct bench_request *q, int done, double start)
{
	bool late = q->seconds > 0 && done >= LEAST_REPETITIONS && clock_seconds() - start >= q->seconds;
	return done < q->repetitions && !late;
}

void bench_progress(const struct bench_request *q, struct progress *p, int done)
{
	progress_show(p, (double)done / q->repetitions, "repetition %d of %d", done, q->repetitions);
}

static int vocabulary_of(const struct bench_request *q)
{
	return task_of(&q->data.task)->vocabulary(&q->data.task);
}

/* What training is measured with. */
struct bench {
	const struct bench_request *request;
	struct model model;
	struct training *training;
	struct limit *limit;
	struct batch batch;
	struct transformer *transformer; /* forward alone */
	double *step, *products, *forward, *one_thread; /* seconds by repetition; stb_ds arrays */
	double phase[PHASES], phased_step; /* sums over repetitions */
};

/* A forward pass without gradients, on the first batch. */
static struct err open_forward(struct bench *b)
{
	const struct bench_request *q = b->request;
	int T = (int)q->model.train_length;
	struct batch_source source = { .task = &q->data.task, .train_length = T, .length = T,
				       .seed = (uint64_t)q->train.seed, .stream = STREAM_TRAIN };
	TRY(batch_open(&source, (int)q->train.batch, &b->batch));
	batch_make(&b->batch, 0, (int)q->train.batch);
	struct transformer_request forward = { .model = &b->model, .B = (int)q->train.batch, .T = T,
					       .positions = b->batch.positions };
	return transformer_open(&forward, &b->transformer);
}

static struct err open_training(struct bench *b, struct bench_training *out)
{
	const struct bench_request *q = b->request;
	struct step_report report;
	TRY(model_open(&q->model, vocabulary_of(q), &b->model));
	layout_initialise(&b->model.layout, (uint64_t)q->train.seed, b->model.value);
	TRY(training_open(&b->model, &q->data, &q->train, &b->training));
	out->start = clock_seconds() - q->start;
	TRY(training_step(b->training, &report));
	out->first_step = clock_seconds() - q->start;
	for (int i = 1; i < WARM_UP; i++)
		TRY(training_step(b->training, &report));
	out->memory = resident_peak();
	return OK;
}

static void close(struct bench *b)
{
	limit_close(b->limit);
	transformer_close(b->transformer);
	batch_close(&b->batch);
	training_close(b->training);
	model_close(&b->model);
	arrfree(b->step);
	arrfree(b->products);
	arrfree(b->forward);
	arrfree(b->one_thread);
}

static struct err time_step(struct bench *b, double *seconds)
{
	struct step_report report;
	double start = clock_seconds();
	TRY(training_step(b->training, &report));
	*seconds = clock_seconds() - start;
	return OK;
}

static struct err time_one_thread(struct bench *b)
{
	int threads = threads_count();
	double seconds = 0;
	if (threads == 1)
		return OK;
	threads_start(1);
	struct err e = time_step(b, &seconds);
	threads_start(threads);
	arrput(b->one_thread, seconds);
	return e;
}

static struct err time_phases(struct bench *b)
{
	double phase[PHASES], seconds;
	double start = clock_seconds();
	phases_start();
	struct err e = time_step(b, &seconds);
	phases_stop(phase);
	b->phased_step += clock_seconds() - start;
	for (int p = 0; p < PHASES; p++)
		b->phase[p] += phase[p] / threads_count();
	return e;
}

static double time_limit(struct bench *b)
{
	double start = clock_seconds();
	limit_run(b->limit);
	return clock_seconds() - start;
}

static double time_forward(struct bench *b)
{
	double start = clock_seconds();
	transformer_forward(b->transformer, b->batch.token, b->batch.target, NULL);
	return clock_seconds() - start;
}

/* The step with its phases comes before the one that is timed; of the others a first run is thrown away. */
static struct err repeat(struct bench *b)
{
	double step;
	TRY(time_one_thread(b));
	TRY(time_phases(b));
	TRY(time_step(b, &step));
	arrput(b->step, step);
	time_limit(b);
	arrput(b->products, time_limit(b));
	time_forward(b);
	arrput(b->forward, time_forward(b));
	return OK;
}

static void summarise(const struct bench *b, int count, struct bench_training *out)
{
	out->step = timing_of(b->step, count);
	out->limit = timing_of(b->products, count);
	out->forward = timing_of(b->forward, count);
	out->one_thread = timing_of(b->one_thread, (int)arrlen(b->one_thread));
	out->over_limit = ratio_of(b->step, b->products, count);
	if (out->one_thread.count)
		out->speedup = ratio_of(b->one_thread, b->step, count);
	for (int p = 0; p < PHASES; p++)
		out->phase[p] = b->phase[p] / count;
	out->phased_step = b->phased_step / count;
}

struct err bench_training(const struct bench_request *q, struct bench_training *out)
{
	struct bench b = { .request = q };
	int count = 0;
	struct progress progress;
	struct err e = open_training(&b, out);
	if (!e.code)
		e = open_forward(&b);
	if (!e.code)
		e = limit_open(&q->model, b.model.V, (int)q->train.batch, &b.limit);
	progress_start(&progress, "training step");
	for (; !e.code && bench_more(q, count, progress.start); count++) {
		e = repeat(&b);
		bench_progress(q, &progress, count + 1);
	}
	progress_end(&progress);
	if (!e.code)
		summarise(&b, count, out);
	close(&b);
	return e;
}

struct err bench_check(const struct bench_request *q)
{
	struct train_plan plan;
	TRY(scaling_check(&q->scaling, &q->model, (double)q->model.train_length));
	TRY(task_of(&q->data.task)->check(&q->data.task, (int)q->model.train_length, (int)q->model.train_length));
	return train_plan(&q->model, &q->data, &q->train, &plan);
}

struct err bench_run(const struct bench_request *q, struct bench_result *out)
{
	*out = (struct bench_result){ 0 };
	TRY(bench_training(q, &out->training));
	TRY(bench_evaluation(q, &out->evaluation));
	if (q->encodings)
		TRY(bench_encodings(q, &out->encoding));
	return q->attention ? bench_attention(q, &out->attention) : OK;
}

void bench_result_free(struct bench_result *r)
{
	arrfree(r->evaluation.length);
	arrfree(r->encoding);
	arrfree(r->attention.head);
	*r = (struct bench_result){ 0 };
}
