#include "train/loop.h"

#include "data/batch.h"
#include "train/adamw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a run holds: one slab each of gradients and moments, a batch, the activations. All of it is reserved before the
 * first step. */
struct training {
	struct model *model;
	const struct train_options *options;
	int64_t step; /* steps done */
	struct batch batch;
	struct transformer *transformer;
	struct arena slabs;
	real *gradient, *m, *v;
};

static const char diverged_hint[] = "Lower --lr, lengthen --warmup, or clip harder (a smaller --clip).";

static struct batch_source source_of(const struct model_options *model, const struct data_options *data,
				     const struct train_options *train)
{
	int T = (int)model->train_length;
	return (struct batch_source){ .task = &data->task, .train_length = T, .length = T,
				      .seed = (uint64_t)train->seed, .stream = STREAM_TRAIN };
}

static struct transformer_request request_of(const struct model *m, const struct train_options *train,
					     const double *positions)
{
	return (struct transformer_request){ .model = m, .B = (int)train->batch, .T = (int)m->options.train_length,
					     .positions = positions, .gradients = true };
}

static void place_slabs(struct arena *a, size_t reals, struct training *t)
{
	t->gradient = ARENA_TAKE(a, real, reals);
	t->m = ARENA_TAKE(a, real, reals);
	t->v = ARENA_TAKE(a, real, reals);
}

static size_t slab_bytes(size_t reals)
{
	struct arena measure = { 0 };
	struct training ignored;
	place_slabs(&measure, reals, &ignored);
	return measure.used;
}

/* Of a model that is laid out but has no values. */
static struct err activation_bytes(const struct model *m, const struct data_options *data,
				   const struct train_options *train, size_t *bytes)
{
	struct batch_source source = source_of(&m->options, data, train);
	struct batch first;
	struct err e = batch_open(&source, 1, &first);
	if (!e.code) {
		struct transformer_request request = request_of(m, train, first.positions);
		e = transformer_bytes(&request, bytes);
	}
	batch_close(&first);
	return e;
}

static struct err plan_fits(const struct train_plan *p)
{
	struct arena sum = { 0 };
	arena_take(&sum, p->slabs, 1);
	arena_take(&sum, p->activations, 1);
	arena_take(&sum, p->batch, 1);
	size_t available = memory_available();
	if (sum.used <= available)
		return OK;
	char need[32], slabs[32], activations[32], batch[32], have[32];
	return err_usage("Choose a smaller --batch, --train-length, --width or --layers.",
			 "training needs %s (%zu parameters with gradients and moments %s, activations %s, batch %s), "
			 "and %s are available",
			 memory_text(sum.used, need), p->parameters, memory_text(p->slabs, slabs),
			 memory_text(p->activations, activations), memory_text(p->batch, batch),
			 memory_text(available, have));
}

struct err train_plan(const struct model_options *model, const struct data_options *data,
		      const struct train_options *train, struct train_plan *out)
{
	struct model m = { .options = *model, .V = task_of(&data->task)->vocabulary(&data->task) };
	*out = (struct train_plan){ 0 };
	struct err e = layout_build(model, m.V, &m.layout);
	if (!e.code)
		e = activation_bytes(&m, data, train, &out->activations);
	if (!e.code) {
		struct arena values = { 0 };
		arena_take(&values, m.layout.size, sizeof(real));
		arena_take(&values, slab_bytes(m.layout.size), 1);
		out->parameters = m.layout.size;
		out->slabs = values.used;
		out->batch = batch_bytes((int)train->batch, (int)model->train_length);
		e = plan_fits(out);
	}
	layout_free(&m.layout);
	return e;
}

static struct err open_parts(struct training *t, const struct data_options *data)
{
	int V = task_of(&data->task)->vocabulary(&data->task);
	BUG_IF(t->model->V != V, "a model of %d tokens for a task of %d", t->model->V, V);
	struct batch_source source = source_of(&t->model->options, data, t->options);
	TRY(batch_open(&source, (int)t->options->batch, &t->batch));
	struct transformer_request request = request_of(t->model, t->options, t->batch.positions);
	TRY(transformer_open(&request, &t->transformer));
	TRY(arena_reserve(&t->slabs, slab_bytes(t->model->layout.size), "training"));
	place_slabs(&t->slabs, t->model->layout.size, t);
	memset(t->m, 0, t->model->layout.size * sizeof *t->m);
	memset(t->v, 0, t->model->layout.size * sizeof *t->v);
	return OK;
}

struct err training_open(struct model *m, const struct data_options *data, const struct train_options *train,
			 struct training **out)
{
	struct training *t = *out = calloc(1, sizeof *t);
	if (!t)
		return err_failed(NULL, "no memory for training");
	t->model = m;
	t->options = train;
	struct err e = open_parts(t, data);
	if (e.code) {
		training_close(t);
		*out = NULL;
	}
	return e;
}

void training_close(struct training *t)
{
	if (!t)
		return;
	transformer_close(t->transformer);
	batch_close(&t->batch);
	arena_free(&t->slabs);
	free(t);
}

static struct err loss_diverged(const struct step_report *r)
{
	char loss[NUMBER_TEXT];
	return err_diverged(diverged_hint, "step %lld: the loss is %s", (long long)r->step,
			    number_to_text(r->loss, loss));
}

static struct err gradient_diverged(const struct training *t, const struct step_report *r)
{
	const struct parameter *p = gradient_not_finite(&t->model->layout, t->gradient);
	if (p)
		return err_diverged(diverged_hint, "step %lld: the gradient of %s is not finite", (long long)r->step,
				    p->name);
	return err_diverged(diverged_hint, "step %lld: the norm of the gradient is not finite", (long long)r->step);
}

/* Back into the encoding's domain. */
static void constrain(const struct training *t)
{
	struct model *m = t->model;
	const struct position *encoding = position_of(&m->options.encoding);
	if (!encoding->constrain)
		return;
	struct place place = place_of(&m->options);
	place.T = t->batch.source.length;
	place.positions = t->batch.positions;
	for (int i = 0; i < m->options.layers; i++)
		encoding->constrain(&place, m->value + m->layout.position, m->value + m->layout.layer[i].position);
}

struct err training_step(struct training *t, struct step_report *r)
{
	int64_t step = t->step; /* NOLINT(-Wanalyzer-null-dereference): a training was opened */
	const struct train_options *o = t->options;
	const struct batch *b = &t->batch;
	batch_make(&t->batch, (uint64_t)step * (uint64_t)b->count, b->count);
	struct outcome outcome = transformer_forward(t->transformer, b->token, b->target, NULL);
	BUG_IF(outcome.scored < 1, "a training batch without a scored token");

	*r = (struct step_report){
		.step = step + 1,
		.steps = o->steps,
		.loss = outcome.nll_sum / (double)outcome.scored,
		.accuracy = (double)outcome.correct / (double)outcome.scored,
		.lr = adamw_rate(o, step),
		.tokens = (int64_t)b->count * b->source.length,
	};
	if (!isfinite(r->loss))
		return loss_diverged(r);
	transformer_backward(t->transformer, t->gradient);
	r->grad_norm = gradient_norm(&t->model->layout, t->gradient);
	if (!isfinite(r->grad_norm))
		return gradient_diverged(t, r);

	double scale = o->clip > 0 && r->grad_norm > o->clip ? o->clip / r->grad_norm : 1;
	adamw_update(&t->model->layout, o, step, scale, t->gradient, t->m, t->v, t->model->value);
	constrain(t);
	t->step++;
	return OK;
}

struct err train_run(struct model *m, const struct data_options *data, const struct train_options *train,
		     const struct train_hooks *hooks)
{
	struct training *t;
	TRY(training_open(m, data, train, &t));
	struct err e = OK;
	for (int64_t step = 0; !e.code && step < train->steps; step++) {
		struct step_report report;
		e = training_step(t, &report);
		if (!e.code && hooks && hooks->step)
			e = hooks->step(hooks->data, &report);
	}
	training_close(t);
	return e;
}
