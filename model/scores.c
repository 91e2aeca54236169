#include "model/scores.h"

#include "model/attention.h"
#include "model/base/threads.h"

#include <math.h>
#include <string.h>

struct err scores_model(const struct model_options *options, struct model *out)
{
	*out = (struct model){ .options = *options };
	struct err e = layout_position(&out->options, &out->layout);
	if (!e.code)
		e = arena_reserve(&out->memory, out->layout.size * sizeof(real), "the encoding's tensors");
	if (e.code)
		model_close(out);
	else
		out->value = ARENA_TAKE(&out->memory, real, out->layout.size);
	return e;
}

/* The workspace. N = B T. */
struct workspace {
	struct place place;
	struct zones zones;
	struct attention *attention;
	real *qkv, *gate, *output, *lse, *saved; /* see struct attention_layer */
};

static struct place_parameters own_of(const struct model *m)
{
	return (struct place_parameters){ .shared = m->value + m->layout.position,
					  .layer = m->value + m->layout.layer[0].position };
}

static struct place place_at(const struct scores_request *q)
{
	struct place p = place_of(&q->model->options);
	p.T = q->T;
	p.positions = q->positions;
	return p;
}

static void place(const struct scores_request *q, struct arena *a, struct workspace *w)
{
	*w = (struct workspace){ .place = place_at(q) };
	const struct position *position = w->place.position;
	size_t N = (size_t)q->B * (size_t)q->T, C = (size_t)w->place.C, H = (size_t)w->place.H;
	scaling_zones(q->scaling, &q->model->options, &w->place, a, &w->zones);
	struct attention_request request = { .place = &w->place, .zones = &w->zones, .B = q->B,
					     .threads = threads_count(), .layers = 1,
					     .ssmax = q->model->options.ssmax };
	w->attention = attention_place(&request, a);
	w->qkv = ARENA_TAKE(a, real, N * 3 * C);
	w->gate = ARENA_TAKE(a, real, N * H * (size_t)position->gate_reals);
	w->output = ARENA_TAKE(a, real, N * C);
	w->lse = ARENA_TAKE(a, real, N * H);
	w->saved = ARENA_TAKE(a, real, N * H * (size_t)position->saved_reals);
}

static struct err check(const struct scores_request *q)
{
	struct place p = place_at(q);
	double largest = q->positions[q->T - 1];
	if ((int64_t)q->B * q->T > INT32_MAX || (int64_t)q->B * p.H > INT32_MAX)
		return err_usage("Give fewer sequences at once.", "%d sequences of %d heads and %d tokens are too many",
				 q->B, p.H, q->T);
	if (p.position->reach)
		TRY(p.position->reach(&p, largest));
	return scaling_check(q->scaling, &q->model->options, largest + 1);
}

struct err scores_bytes(const struct scores_request *q, size_t *bytes)
{
	struct arena measure = { 0 };
	struct workspace w;
	TRY(check(q));
	place(q, &measure, &w);
	*bytes = measure.used;
	return OK;
}

/* [B][H][T][D] to a part (q, k or v) of qkv [N][3][H][D]. */
static void by_head(const struct scores_request *q, const struct place *p, const real *given, int part, real *qkv)
{
	size_t H = (size_t)p->H, T = (size_t)q->T, D = (size_t)p->D, C = (size_t)p->C;
	for (size_t b = 0; given && b < (size_t)q->B; b++)
		for (size_t h = 0; h < H; h++)
			for (size_t t = 0; t < T; t++)
				memcpy(qkv + (b * T + t) * 3 * C + (size_t)part * C + h * D,
				       given + ((b * H + h) * T + t) * D, D * sizeof(real));
}

static void output_by_head(const struct scores_request *q, const struct place *p, const real *rows, real *output)
{
	size_t H = (size_t)p->H, T = (size_t)q->T, D = (size_t)p->D, C = (size_t)p->C;
	for (size_t b = 0; b < (size_t)q->B; b++)
		for (size_t h = 0; h < H; h++)
			for (size_t t = 0; t < T; t++)
				memcpy(output + ((b * H + h) * T + t) * D, rows + (b * T + t) * C + h * D,
				       D * sizeof(real));
}

/* A hook may multiply matrices, which is for the inside of a parallel region. */
struct gate_job {
	const struct scores_request *q;
	struct workspace *w;
};

static void gate_job(int index, int thread, void *data)
{
	struct gate_job *job = data;
	const struct place *p = &job->w->place;
	(void)index, (void)thread;
	p->position->gate(p, own_of(job->q->model), job->q->B * job->q->T, job->q->x, job->w->gate);
}

struct err scores_compute(const struct scores_request *q, real *scores, real *output)
{
	struct arena memory;
	struct workspace w;
	size_t bytes;
	TRY(scores_bytes(q, &bytes));
	TRY(arena_reserve(&memory, bytes, "attention"));
	place(q, &memory, &w);
	const struct place *p = &w.place;
	const real *const part[] = { q->q, q->k, q->v };
	for (int i = 0; i < 3; i++)
		by_head(q, p, part[i], i, w.qkv);
	if (p->position->gate)
		threads_each(1, gate_job, &(struct gate_job){ q, &w });
	for (size_t i = 0; i < (size_t)q->B * (size_t)p->H * (size_t)q->T * (size_t)q->T; i++)
		scores[i] = (real)-INFINITY;
	struct attention_layer layer = { .own = own_of(q->model),
					 .ssmax = q->model->value + q->model->layout.layer[0].ssmax, .qkv = w.qkv,
					 .gate = w.gate, .output = w.output,
					 .lse = w.lse, .saved = w.saved, .scores = scores };
	attention_forward(w.attention, &layer);
	if (output)
		output_by_head(q, p, w.output, output);
	arena_free(&memory);
	return OK;
}

struct err scores_embed(const struct scores_request *q, real *embedded)
{
	struct place p = place_at(q);
	struct arena memory, measure = { 0 };
	size_t vectors = (size_t)q->T * (size_t)p.C;
	TRY(check(q));
	arena_take(&measure, vectors, sizeof(real));
	TRY(arena_reserve(&memory, measure.used, "the encoding's vectors"));
	real *vector = ARENA_TAKE(&memory, real, vectors);
	p.position->embed(&p, own_of(q->model), 0, q->T, vector);
	for (size_t b = 0; b < (size_t)q->B; b++)
		for (size_t i = 0; i < vectors; i++)
			embedded[b * vectors + i] = q->x[b * vectors + i] + vector[i];
	arena_free(&memory);
	return OK;
}
