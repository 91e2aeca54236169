#include "eval/decompose.h"

#include "data/stretch.h"
#include "eval/tally.h"
#include "model/positions.h"

#include <stdlib.h>
#include <string.h>

struct decomposing {
	const struct eval_request *request;
	const struct decomposition *before;
	struct stretch stretch;
	struct arena memory;
	double *apart;  /* [L] positions of FORM_POSITIONS, and */
	double *shared; /* [T] of FORM_TOKENS, of this sequence */
	struct decomposition *result;
};

static struct batch_source source_of(const struct eval_request *r)
{
	return (struct batch_source){ .task = &r->data->task, .train_length = (int)r->model->options.train_length,
				      .length = r->length, .seed = r->eval_seed,
				      .stream = r->tune ? STREAM_TUNE : STREAM_REPORT };
}

/* Largest position + 1. */
static int reach_of(const struct eval_request *r, enum form form)
{
	return form == FORM_POSITIONS || form == FORM_BOTH ? r->length : (int)r->model->options.train_length;
}

static bool possible(const struct eval_request *r, enum form form)
{
	const struct model_options *o = &r->model->options;
	const struct position *position = position_of(&o->encoding);
	struct place place = place_of(o);
	int reach = reach_of(r, form);
	return !scaling_check(r->scaling, o, reach).code &&
	       (!position->reach || !position->reach(&place, reach - 1).code);
}

static int count_groups(const struct task *task)
{
	int count = 0;
	while (count < TASK_GROUPS && task->groups[count])
		count++;
	return count;
}

/* Of the longest form, with a workspace of `transformer` bytes. */
static struct err check_bytes(const struct eval_request *r, size_t transformer)
{
	size_t groups = (size_t)count_groups(task_of(&r->data->task));
	struct arena work = { 0 };
	arena_take(&work, transformer, 1);
	arena_take(&work, batch_bytes(1, r->length), 1);
	return eval_fits(r->length, r->length, work.used, r->sequences,
			 (size_t)r->sequences * groups * FORMS * sizeof(struct eval_tally));
}

/* Before any data are made; what else may be wrong is told later. */
static struct err check_size(const struct eval_request *r)
{
	struct transformer_request q = { .model = r->model, .B = 1, .T = r->length, .scaling = r->scaling };
	size_t bytes;
	return transformer_bytes(&q, &bytes).code ? OK : check_bytes(r, bytes);
}

/* Of FORM_TOKENS: as long as any, and possible wherever FORM_AS_IS is. */
static struct err check_transformer(const struct eval_request *r)
{
	int L = (int)r->model->options.train_length;
	struct arena memory;
	TRY(arena_reserve(&memory, (size_t)r->length * sizeof(double), "positions"));
	double *positions = ARENA_TAKE(&memory, double, (size_t)r->length);
	for (int t = 0; t < r->length; t++)
		positions[t] = t < L ? t : L - 1;
	struct transformer_request q = { .model = r->model, .B = 1, .T = r->length, .positions = positions,
					 .scaling = r->scaling };
	size_t bytes;
	struct err e = transformer_bytes(&q, &bytes);
	arena_free(&memory);
	TRY(e);
	return check_bytes(r, bytes);
}

struct err decompose_check(const struct eval_request *request)
{
	struct batch_source source = source_of(request);
	struct stretch s;
	TRY(eval_check_vocabulary(request));
	if (request->model->options.positions == POSITIONS_RANDOMIZED)
		return err_usage("Take a model trained without.", "positions: with randomized ones there is nothing to "
				 "take apart: no form has the positions of training");
	TRY(check_size(request));
	struct err e = stretch_open(&source, &s);
	stretch_close(&s);
	TRY(e);
	return check_transformer(request);
}

static struct err result_open(const struct eval_request *r, struct decomposition *out)
{
	const struct task *task = task_of(&r->data->task);
	*out = (struct decomposition){ .groups = count_groups(task), .group = task->groups,
				       .sequences = r->sequences };
	for (enum form form = 0; form < FORMS; form++) {
		out->possible[form] = possible(r, form);
		out->tally[form] = calloc((size_t)r->sequences * (size_t)out->groups, sizeof *out->tally[form]);
		if (!out->tally[form]) /* NOLINT(-Wanalyzer-malloc-leak): those made before are `out`'s */
			return err_failed("Choose fewer --sequences.", "no memory for the results of %d sequences",
					  r->sequences);
	}
	return OK;
}

static void place(struct arena *a, struct decomposing *d)
{
	d->apart = ARENA_TAKE(a, double, (size_t)d->request->model->options.train_length);
	d->shared = ARENA_TAKE(a, double, (size_t)d->request->length);
}

static struct err decomposing_open(struct decomposing *d)
{
	const struct eval_request *r = d->request;
	BUG_IF(r->sequences < 1, "a decomposition of %d sequences", r->sequences);
	TRY(decompose_check(r));
	struct batch_source source = source_of(r);
	TRY(stretch_open(&source, &d->stretch));
	struct arena measure = { 0 };
	place(&measure, d);
	TRY(arena_reserve(&d->memory, measure.used, "a decomposition"));
	place(&d->memory, d);
	return result_open(r, d->result);
}

static void decomposing_close(struct decomposing *d)
{
	stretch_close(&d->stretch);
	arena_free(&d->memory);
}

/* The positions of the forms that have their own: each original token's, for itself and for the filler behind it. */
static void place_positions(struct decomposing *d)
{
	const struct stretch *s = &d->stretch;
	int L = s->source.train_length;
	for (int t = 0; t < L; t++) {
		int next = t + 1 < L ? s->origin[t + 1] : s->source.length;
		d->apart[t] = s->origin[t];
		for (int at = s->origin[t]; at < next; at++)
			d->shared[at] = t;
	}
}

static const double *positions_of(const struct decomposing *d, enum form form)
{
	switch (form) {
	case FORM_AS_IS:
		return d->stretch.original.position;
	case FORM_POSITIONS:
		return d->apart;
	case FORM_TOKENS:
		return d->shared;
	default:
		return d->stretch.sequence.position;
	}
}

static void add_tokens(const struct sequence *s, int T, const struct outcome *o, struct eval_tally *tally)
{
	for (int t = 0; t < T; t++) {
		if (s->target[t] < 0)
			continue;
		struct eval_tally *to = &tally[s->group[t]];
		to->scored++;
		to->correct += o->best[t] == s->target[t];
		to->nll_sum += o->nll[t];
	}
}

static struct err run_form(struct decomposing *d, enum form form, struct eval_tally *tally)
{
	const struct stretch *from = &d->stretch;
	bool filled = form == FORM_TOKENS || form == FORM_BOTH;
	const struct sequence *s = filled ? &from->sequence : &from->original;
	int T = filled ? from->source.length : from->source.train_length;
	struct transformer_request q = { .model = d->request->model, .B = 1, .T = T,
					 .positions = positions_of(d, form), .scaling = d->request->scaling };
	struct transformer *transformer;
	TRY(transformer_open(&q, &transformer));
	struct outcome o = transformer_forward(transformer, s->token, s->target, NULL);
	add_tokens(s, T, &o, tally);
	transformer_close(transformer);
	return OK;
}

static struct err run_sequence(struct decomposing *d, int index)
{
	struct decomposition *r = d->result;
	size_t row = (size_t)index * (size_t)r->groups;
	stretch_make(&d->stretch, (uint64_t)index);
	place_positions(d);
	for (enum form form = 0; form < FORMS; form++) {
		if (form == FORM_AS_IS && d->before)
			memcpy(r->tally[form] + row, d->before->tally[form] + row,
			       (size_t)r->groups * sizeof *r->tally[form]);
		else if (r->possible[form])
			TRY(run_form(d, form, r->tally[form] + row));
	}
	return OK;
}

struct err decompose_run(const struct eval_request *request, const struct decomposition *before,
			 eval_progress *progress, void *data,
			 struct decomposition *out)
{
	struct decomposing d = { .request = request, .before = before, .result = out };
	*out = (struct decomposition){ 0 };
	BUG_IF(before && before->sequences != request->sequences, "form 1 of other sequences");
	struct err e = decomposing_open(&d);
	for (int i = 0; i < request->sequences && !e.code; i++) {
		e = run_sequence(&d, i);
		if (progress && !e.code)
			e = progress(data, (int64_t)(i + 1) * request->length,
				 (int64_t)request->sequences * request->length);
	}
	decomposing_close(&d);
	if (e.code)
		decomposition_free(out);
	return e;
}

void decomposition_free(struct decomposition *d)
{
	for (enum form form = 0; form < FORMS; form++)
		free(d->tally[form]);
	*d = (struct decomposition){ 0 };
}
