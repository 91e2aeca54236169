#include "train/loop.h"

#include "data/batch.h"
#include "train/adamw.h"
#include "train/course.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a run holds: one slab each of gradients and moments, a batch, the activations. All of it is reserved before the
 * first step. */
struct training {
	struct model *model;
	struct model_options initial; /* the model's, at the first step */
	const struct data_options *data;
	const struct train_options *options;
	int64_t step; /* steps done */
	struct batch batch;
	struct numbering numbering;
	struct transformer *transformer;
	struct arena slabs;
	real *gradient, *m, *v;
	double *positions; /* [sequences][longest] where they move */
};

const char training_diverged_hint[] = "Lower --lr, lengthen --warmup, or clip harder (a smaller --clip).";

static struct batch_source source_of(const struct model_options *model, const struct data_options *data,
				     const struct train_options *train)
{
	return (struct batch_source){ .task = &data->task, .train_length = (int)model->train_length,
				      .length = course_longest(model, train), .seed = (uint64_t)train->seed,
				      .stream = STREAM_TRAIN };
}

/* `fixed` [T] are those of the task where none move. */
static struct transformer_request request_of(const struct model *m, const struct data_options *data,
					     const struct train_options *train, const double *fixed)
{
	struct numbering n = course_numbering(&m->options, data);
	return (struct transformer_request){ .model = m, .B = (int)train->batch,
					     .T = course_longest(&m->options, train),
					     .T_least = course_shortest(&m->options, train),
					     .positions = positions_move(&n) ? NULL : fixed,
					     .each = positions_each(&n), .scaling = &m->options.trained_scaling,
					     .gradients = true };
}

static size_t position_count(const struct numbering *n, const struct train_options *train, int longest)
{
	if (!positions_move(n))
		return 0;
	return (positions_each(n) ? (size_t)train->batch : 1) * (size_t)longest;
}

static void place_slabs(struct arena *a, size_t reals, size_t positions, struct training *t)
{
	t->gradient = ARENA_TAKE(a, real, reals);
	t->m = ARENA_TAKE(a, real, reals);
	t->v = ARENA_TAKE(a, real, reals);
	t->positions = ARENA_TAKE(a, double, positions);
}

static size_t slab_bytes(size_t reals, size_t positions)
{
	struct arena measure = { 0 };
	struct training ignored;
	place_slabs(&measure, reals, positions, &ignored);
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
	return err_usage("Choose a smaller --batch or length, or a smaller model.",
			 "training needs %s (%zu parameters with gradients and moments %s, activations %s, batch %s), "
			 "and %s",
			 memory_text(sum.used, need), p->parameters, memory_text(p->slabs, slabs),
			 memory_text(p->activations, activations), memory_text(p->batch, batch),
			 memory_available_text(have));
}

/* The more of what is needed with rope and after it. */
static struct err measure_activations(const struct model *m, const struct data_options *data,
				      const struct train_options *train, const double *fixed, size_t *bytes)
{
	struct model late = *m;
	size_t before, after;
	late.options = course_model(&m->options, train, train->steps);
	struct transformer_request first = request_of(m, data, train, fixed);
	struct transformer_request last = request_of(&late, data, train, fixed);
	TRY(transformer_bytes(&first, &before));
	TRY(transformer_bytes(&last, &after));
	*bytes = before > after ? before : after;
	return OK;
}

static struct err measure(const struct model *m, const struct data_options *data, const struct train_options *train,
			  const double *fixed, struct train_plan *out)
{
	struct arena values = { 0 };
	struct numbering n = course_numbering(&m->options, data);
	int longest = course_longest(&m->options, train);
	TRY(measure_activations(m, data, train, fixed, &out->activations));
	arena_take(&values, m->layout.size, sizeof(real));
	arena_take(&values, slab_bytes(m->layout.size, position_count(&n, train, longest)), 1);
	out->parameters = m->layout.size;
	out->slabs = values.used;
	out->batch = batch_bytes((int)train->batch, longest);
	return plan_fits(out);
}

/* Of a model that is laid out but has no values. The task's positions may be others than 0, 1, 2 ...; to make them
 * takes memory too, so what does not fit with those is refused first. */
static struct err measure_all(const struct model *m, const struct data_options *data, const struct train_options *train,
			      struct train_plan *out)
{
	struct batch_source source = source_of(&m->options, data, train);
	struct batch first;
	TRY(course_check(&m->options, data, train));
	TRY(measure(m, data, train, NULL, out));
	struct err e = batch_open(&source, 1, &first);
	if (!e.code)
		e = measure(m, data, train, first.positions, out);
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

/* A fixed course has the batch's positions; the others get theirs before each step. */
static struct err open_transformer(struct training *t)
{
	struct transformer_request request = request_of(t->model, t->data, t->options, t->batch.positions);
	/* NOLINTNEXTLINE(-Wanalyzer-null-dereference): a training was opened */
	if (course_shortest(&t->model->options, t->options) != request.T)
		request.positions = NULL;
	return transformer_open(&request, &t->transformer);
}

/* Makes the model's options those of this step of the course. The workspace is made for them anew. */
static struct err follow_options(struct training *t)
{
	struct model_options now = course_model(&t->initial, t->options, t->step);
	int dropped = method_find(now.encoding.entry, "dropped");
	if (dropped < 0 || now.encoding.value[dropped].integer == t->model->options.encoding.value[dropped].integer)
		return OK;
	t->model->options = now;
	transformer_close(t->transformer);
	return open_transformer(t);
}

static struct err open_parts(struct training *t, const struct data_options *data)
{
	int V = task_of(&data->task)->vocabulary(&data->task);
	BUG_IF(t->model->V != V, "a model of %d tokens for a task of %d", t->model->V, V);
	struct batch_source source = source_of(&t->model->options, data, t->options);
	size_t positions = position_count(&t->numbering, t->options, source.length);
	TRY(batch_open(&source, (int)t->options->batch, &t->batch));
	TRY(open_transformer(t));
	TRY(arena_reserve(&t->slabs, slab_bytes(t->model->layout.size, positions), "training"));
	place_slabs(&t->slabs, t->model->layout.size, positions, t);
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
	t->data = data;
	t->options = train;
	t->initial = m->options;
	t->numbering = course_numbering(&m->options, data);
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

struct err training_continue(struct training *t, int64_t step)
{
	t->step = step;
	return follow_options(t);
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

/* The positions of the batch as it is. */
static const double *positions_of(struct training *t, uint64_t first)
{
	const struct batch *b = &t->batch;
	if (!positions_move(&t->numbering))
		return b->positions;
	if (t->numbering.placed)
		return b->position;
	positions_draw(&t->numbering, b->source.seed, first, b->count, b->source.length, t->positions);
	return t->positions;
}

/* The batch of the next step, and a workspace that fits it. */
static struct err next_batch(struct training *t)
{
	struct batch *b = &t->batch;
	/* NOLINTNEXTLINE(-Wanalyzer-null-dereference): a training was opened */
	const struct model_options *m = &t->model->options;
	int T = course_length(m, t->options, t->step);
	uint64_t first = course_first(t->options, t->step);
	bool lengths = course_shortest(m, t->options) != course_longest(m, t->options);
	if (lengths)
		batch_resize(b, T);
	batch_make(b, first, b->count);
	const double *positions = positions_of(t, first);
	if (lengths)
		return transformer_resize(t->transformer, T, positions);
	return positions_move(&t->numbering) ? transformer_move(t->transformer, positions) : OK;
}

struct err training_step(struct training *t, struct step_report *r)
{
	int64_t step = t->step; /* NOLINT(-Wanalyzer-null-dereference): a training was opened */
	const struct train_options *o = t->options;
	const struct batch *b = &t->batch;
	TRY(follow_options(t));
	TRY(next_batch(t));
	struct outcome outcome = transformer_forward(t->transformer, b->token, b->target, NULL);
	BUG_IF(outcome.scored < 1, "a training batch without a scored token");

	*r = (struct step_report){
		.step = step + 1,
		.steps = o->steps,
		.loss = outcome.nll_sum / (double)outcome.scored,
		.accuracy = (double)outcome.correct / (double)outcome.scored,
		.lr = adamw_rate(o, step),
		.tokens = (int64_t)b->count * b->source.length,
		.length = o->length_least ? b->source.length : 0,
	};
	transformer_backward(t->transformer, t->gradient);
	r->grad_norm = gradient_norm(&t->model->layout, t->gradient);
	if (!isfinite(r->loss) || !isfinite(r->grad_norm))
		return diverged(t, r);

	double scale = o->clip > 0 && r->grad_norm > o->clip ? o->clip / r->grad_norm : 1;
	adamw_update(&t->model->layout, o, step, scale, t->gradient, t->m, t->v, t->model->value);
	constrain(t);
	t->step++;
	return follow_options(t);
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
