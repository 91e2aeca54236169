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

const char training_diverged_hint[] = "Lower --lr, lengthen --warmup, or clip harder (a smaller --clip).";

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

static struct err plan_fits(const struct train_plan *p)
{
	struct arena sum = { 0 };
	arena_take(&sum, p->slabs, 1);
	arena_take(&sum, p->activations, 1);
	arena_take(&sum, p->batch, 1);
	if (sum.used <= memory_available())
		return OK;
	char need[32], slabs[32], activations[32], batch[32], have[MEMORY_AVAILABLE_TEXT];
	return err_usage("Choose a smaller --batch, --train-length, --width or --layers.",
			 "training needs %s (%zu parameters with gradients and moments %s, activations %s, batch %s), "
			 "and %s",
			 memory_text(sum.used, need), p->parameters, memory_text(p->slabs, slabs),
			 memory_text(p->activations, activations), memory_text(p->batch, batch),
			 memory_available_text(have));
}

static struct err measure(const struct model *m, const struct train_options *train, const double *positions,
			  struct train_plan *out)
{
	struct transformer_request request = request_of(m, train, positions);
	struct arena values = { 0 };
	TRY(transformer_bytes(&request, &out->activations));
	arena_take(&values, m->layout.size, sizeof(real));
	arena_take(&values, slab_bytes(m->layout.size), 1);
	out->parameters = m->layout.size;
	out->slabs = values.used;
	out->batch = batch_bytes((int)train->batch, (int)m->options.train_length);
	return plan_fits(out);
}

/* Of a model that is laid out but has no values. The task's positions may be others than 0, 1, 2 ...; to make them
 * takes memory too, so what does not fit with those is refused first. */
static struct err measure_all(const struct model *m, const struct data_options *data, const struct train_options *train,
			      struct train_plan *out)
{
	struct batch_source source = source_of(&m->options, data, train);
	struct batch first;
	TRY(task_of(source.task)->check(source.task, source.train_length, source.length));
	TRY(measure(m, train, NULL, out));
	struct err e = batch_open(&source, 1, &first);
	if (!e.code)
		e = measure(m, train, first.positions, out);
	batch_close(&first);
	return e;
}

struct err train_plan(const struct model_options *model, const struct data_options *data,
		      const struct train_options *train, struct train_plan *out)
{
	struct model m = { .options = *model, .V = task_of(&data->task)->vocabulary(&data->task) };
	*out = (struct train_plan){ 0 };
	struct err e = layout_build(model, m.V, &m.layout);
	if (!e.code)
		e = measure_all(&m, data, train, out);
	layout_free(&m.layout);
	return e;
}

static void clear_moments(struct training *t)
{
	memset(t->m, 0, t->model->layout.size * sizeof(real));
	memset(t->v, 0, t->model->layout.size * sizeof(real));
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
	clear_moments(t);
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

struct training_state training_state(struct training *t)
{
	return (struct training_state){ t->model, t->m, t->v, &t->step, t->options->steps };
}

void training_begin(struct training *t)
{
	const struct layout *l = &t->model->layout;
	layout_initialise(l, (uint64_t)t->options->seed, t->model->value);
	clear_moments(t);
	t->step = 0;
}

/* With the gradient made, whatever the loss is: it tells where the trouble is. */
static struct err diverged(const struct training *t, const struct step_report *r)
{
	char loss[NUMBER_TEXT], norm[NUMBER_TEXT];
	const char *where = "the sum overflows", *what = "";
	const struct parameter *value = layout_not_finite(&t->model->layout, t->model->value);
	const struct parameter *gradient = layout_not_finite(&t->model->layout, t->gradient);
	if (value || gradient) {
		where = value ? value->name : gradient->name;
		what = value ? "not finite: " : "not finite: the gradient of ";
	}
	return err_diverged(training_diverged_hint, "step %lld: loss %s, gradient norm %s; %s%s", (long long)r->step,
			    number_to_text(r->loss, loss), number_to_text(r->grad_norm, norm), what, where);
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
	transformer_backward(t->transformer, t->gradient);
	r->grad_norm = gradient_norm(&t->model->layout, t->gradient);
	if (!isfinite(r->loss) || !isfinite(r->grad_norm))
		return diverged(t, r);

	double scale = o->clip > 0 && r->grad_norm > o->clip ? o->clip / r->grad_norm : 1;
	adamw_update(&t->model->layout, o, step, scale, t->gradient, t->m, t->v, t->model->value);
	constrain(t);
	t->step++;
	return OK;
}

static struct err run_hooked(struct training *t, const struct train_hooks *hooks)
{
	if (hooks->start)
		TRY(hooks->start(hooks->data, t));
	/* NOLINTNEXTLINE(-Wanalyzer-null-dereference): what opened without an error is there */
	while (t->step < t->options->steps) {
		struct step_report report;
		TRY(training_step(t, &report));
		if (hooks->step)
			TRY(hooks->step(hooks->data, t, &report));
	}
	return hooks->end ? hooks->end(hooks->data, t) : OK;
}

struct err train_run(struct model *m, const struct data_options *data, const struct train_options *train,
		     const struct train_hooks *hooks)
{
	struct training *t;
	TRY(training_open(m, data, train, &t));
	struct err e = run_hooked(t, hooks ? hooks : &(struct train_hooks){ 0 });
	training_close(t);
	return e;
}
