#include "train/fit.h"

#include "data/batch.h"
#include "model/base/stb.h"
#include "model/positions.h"
#include "train/adamw.h"

#include <math.h>
#include <string.h>

struct fit {
	const struct fit_request *q;
	struct layout fitted; /* the rows of the fitted tensors alone, so that the optimiser sees no others */
	struct batch batch;
	struct transformer *transformer;
	struct arena slabs;
	real *gradient, *m, *v;
};

static struct batch_source source_of(const struct fit_request *q)
{
	return (struct batch_source){ .task = &q->data->task, .train_length = (int)q->model->options.train_length,
				      .length = q->length, .seed = q->seed, .stream = q->stream };
}

static struct transformer_request request_of(const struct fit_request *q, const double *positions)
{
	return (struct transformer_request){ .model = q->model, .B = (int)q->train->batch, .T = q->length,
					     .positions = positions, .gradients = true };
}

static void place_slabs(struct arena *a, size_t reals, struct fit *f)
{
	f->gradient = ARENA_TAKE(a, real, reals);
	f->m = ARENA_TAKE(a, real, reals);
	f->v = ARENA_TAKE(a, real, reals);
}

static size_t slab_bytes(const struct fit_request *q)
{
	struct arena measure = { 0 };
	struct fit ignored;
	place_slabs(&measure, q->model->layout.size, &ignored);
	return measure.used;
}

static struct err check_memory(const struct fit_request *q)
{
	struct transformer_request request = request_of(q, NULL);
	struct arena all = { 0 };
	char need[32], have[MEMORY_AVAILABLE_TEXT];
	size_t transformer;
	TRY(transformer_bytes(&request, &transformer));
	arena_take(&all, transformer, 1);
	arena_take(&all, slab_bytes(q), 1);
	arena_take(&all, batch_bytes((int)q->train->batch, q->length), 1);
	if (all.used <= memory_available())
		return OK;
	return err_usage("Choose a smaller --batch or --multiple.",
			 "a fit to %lld sequences of %d tokens needs %s, and %s", (long long)q->train->batch,
			 q->length, memory_text(all.used, need), memory_available_text(have));
}

struct err fit_check(const struct fit_request *q)
{
	const struct method *task = &q->data->task;
	struct numbering n = { .options = &q->model->options, .task = task->entry->name, .placed = task_placed(task) };
	int V = task_of(task)->vocabulary(task);
	if (q->model->V != V)
		return err_usage("Give the --task the model was trained on.",
				 "the model has %d tokens, the task %s has %d", q->model->V, task->entry->name, V);
	TRY(task_of(task)->check(task, (int)q->model->options.train_length, q->length));
	TRY(positions_check(&n, q->length));
	if (positions_move(&n))
		return err_usage("Take a model trained with --positions=consecutive.",
				 "positions: a fit needs some that are the same for every sequence");
	return check_memory(q);
}

static void take_rows(struct fit *f)
{
	const struct layout *l = &f->q->model->layout;
	f->fitted = (struct layout){ .size = l->size, .V = l->V };
	for (const char *const *name = f->q->tensor; *name; name++) {
		const struct parameter *p = layout_find(l, *name);
		BUG_IF(!p, "no tensor %s to fit", *name);
		arrput(f->fitted.parameter, *p);
	}
}

static struct err fit_open(struct fit *f)
{
	struct batch_source source = source_of(f->q);
	size_t reals = f->q->model->layout.size;
	TRY(batch_open(&source, (int)f->q->train->batch, &f->batch));
	struct transformer_request request = request_of(f->q, f->batch.positions);
	TRY(transformer_open(&request, &f->transformer));
	TRY(arena_reserve(&f->slabs, slab_bytes(f->q), "a fit"));
	place_slabs(&f->slabs, reals, f);
	memset(f->m, 0, reals * sizeof(real));
	memset(f->v, 0, reals * sizeof(real));
	take_rows(f);
	return OK;
}

static void fit_close(struct fit *f)
{
	transformer_close(f->transformer);
	batch_close(&f->batch);
	arena_free(&f->slabs);
	layout_free(&f->fitted);
}

static void keep_group(struct batch *b, int group)
{
	size_t tokens = (size_t)b->count * (size_t)b->source.length;
	for (size_t t = 0; group >= 0 && t < tokens; t++)
		if (b->target[t] >= 0 && b->group[t] != group)
			b->target[t] = -1;
}

/* Loss and gradient of one step's batch. */
static struct err make_gradient(struct fit *f, int64_t step, struct step_report *r)
{
	const struct fit_request *q = f->q;
	struct batch *b = &f->batch;
	batch_make(b, q->first + (uint64_t)step * (uint64_t)b->count, b->count);
	keep_group(b, q->group);
	struct outcome o = transformer_forward(f->transformer, b->token, b->target, NULL);
	if (o.scored < 1)
		return err_usage("Choose a larger --batch or another --group.",
				 "a fit: step %lld has no scored token of the group", (long long)step + 1);
	transformer_backward(f->transformer, f->gradient);
	*r = (struct step_report){ .step = step + 1, .steps = q->train->steps, .loss = o.nll_sum / (double)o.scored,
				   .accuracy = (double)o.correct / (double)o.scored,
				   .grad_norm = gradient_norm(&f->fitted, f->gradient),
				   .lr = adamw_rate(q->train, step), .tokens = (int64_t)b->count * q->length };
	return OK;
}

static struct err update(struct fit *f, const struct step_report *r)
{
	const struct train_options *o = f->q->train;
	char loss[NUMBER_TEXT], norm[NUMBER_TEXT];
	if (!isfinite(r->loss) || !isfinite(r->grad_norm))
		return err_diverged("Lower --lr.", "a fit: step %lld: loss %s, gradient norm %s", (long long)r->step,
				    number_to_text(r->loss, loss), number_to_text(r->grad_norm, norm));
	double scale = o->clip > 0 && r->grad_norm > o->clip ? o->clip / r->grad_norm : 1;
	adamw_update(&f->fitted, o, r->step - 1, scale, f->gradient, f->m, f->v, f->q->model->value);
	return OK;
}

struct err fit_run(const struct fit_request *q, fit_step *step, void *data)
{
	struct fit f = { .q = q };
	struct err e = fit_open(&f);
	for (int64_t i = 0; !e.code && i < q->train->steps; i++) {
		struct step_report report;
		e = make_gradient(&f, i, &report);
		if (!e.code)
			e = update(&f, &report);
		if (!e.code && step)
			e = step(data, &report);
	}
	fit_close(&f);
	return e;
}
