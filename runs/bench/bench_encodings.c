#include "model/base/stb.h"
#include "runs/bench/bench.h"
#include "runs/progress.h"
#include "train/loop.h"

/* A training of one encoding. */
struct lane {
	struct model model;
	struct training *training; /* NULL: it cannot take these options */
	double *step;              /* seconds by repetition; stb_ds array */
};

static struct err lane_open(const struct bench_request *q, const struct entry *encoding, struct lane *l)
{
	struct model_options options = q->model;
	options.encoding = method_default(encoding);
	*l = (struct lane){ 0 };
	TRY(model_open(&options, task_of(&q->data.task)->vocabulary(&q->data.task), &l->model));
	layout_initialise(&l->model.layout, (uint64_t)q->train.seed, l->model.value);
	return training_open(&l->model, &q->data, &q->train, &l->training);
}

static struct err repeat(struct lane *l)
{
	struct step_report report;
	TRY(training_step(l->training, &report));
	double start = clock_seconds();
	TRY(training_step(l->training, &report));
	arrput(l->step, clock_seconds() - start);
	return OK;
}

static struct err measure(const struct bench_request *q, struct lane *lane)
{
	struct progress progress;
	struct err e = OK;
	progress_start(&progress, "encodings");
	for (int done = 0; !e.code && bench_more(q, done, progress.start); done++)
		for (int i = 0; i < arrlen(lane) && !e.code; i++) {
			if (lane[i].training)
				e = repeat(&lane[i]);
			bench_progress(q, &progress, done + 1);
		}
	progress_end(&progress);
	return e;
}

static void lanes_close(struct lane *lane)
{
	for (int i = 0; i < arrlen(lane); i++) {
		training_close(lane[i].training);
		model_close(&lane[i].model);
		arrfree(lane[i].step);
	}
	arrfree(lane);
}

struct err bench_encodings(const struct bench_request *q, struct bench_encoding **out)
{
	struct lane *lane = NULL;
	int encodings = 0;
	while (position_at(encodings))
		encodings++;
	/* A training points to its model, so the array must not move. */
	arrsetcap(lane, (size_t)encodings);
	for (int i = 0; i < encodings; i++) {
		struct bench_encoding b = { .name = position_at(i)->name };
		struct lane *l = arraddnptr(lane, 1);
		b.refused = lane_open(q, position_at(i), l);
		arrput(*out, b);
	}
	struct err e = measure(q, lane);
	const struct lane *own = lane;
	for (int i = 0; i < arrlen(lane); i++)
		own = position_at(i) == q->model.encoding.entry ? &lane[i] : own;
	for (int i = 0; i < arrlen(lane); i++) {
		int count = (int)arrlen(lane[i].step);
		(*out)[i].step = timing_of(lane[i].step, count);
		if (count && count == arrlen(own->step))
			(*out)[i].over_own = ratio_of(lane[i].step, own->step, count);
	}
	lanes_close(lane);
	return e;
}
