#include "model/selfcheck.h"

#include "model/base/rng.h"
#include "model/position/position.h"

struct model_options model_case_options(const struct method *encoding)
{
	return (struct model_options){ .layers = 2, .width = 32, .heads = 2, .hidden = 24, .rms_eps = 1e-5,
				       .encoding = *encoding, .train_length = 16, .positions_most = 2048,
				       .trained_scaling = method_default(scaling_at(0)) };
}

/* No tensor stays constant, and none stands near an end of its domain, where a difference would be one-sided and a
 * function may be steep. */
static void randomise(struct model *m)
{
	layout_initialise(&m->layout, 5, m->value);
	for (int i = 0; i < layout_count(&m->layout); i++) {
		const struct parameter *p = &m->layout.parameter[i];
		real *value = m->value + p->offset;
		struct rng rng = rng_at(6, STREAM_INIT, (uint64_t)i);
		for (size_t j = 0; j < p->size; j++)
			if (p->initialiser == INIT_UNIFORM)
				value[j] = (real)(0.7 * (double)value[j] + 0.2 * p->deviation);
			else if (p->initialiser != INIT_NORMAL)
				value[j] += (real)(0.3 * rng_normal(&rng));
	}
	struct place place = place_of(&m->options);
	for (int layer = 0; place.position->avoid_kinks && layer < place.layers; layer++)
		place.position->avoid_kinks(&place, m->value + m->layout.position,
					    m->value + m->layout.layer[layer].position);
}

static void fill(uint64_t seed, int limit, int32_t *x, size_t count)
{
	struct rng rng = rng_at(seed, STREAM_TUNE, 1);
	for (size_t i = 0; i < count; i++)
		x[i] = (int32_t)rng_below(&rng, (uint32_t)limit);
}

static void place(struct model_case *c, struct arena *a)
{
	size_t N = (size_t)c->B * (size_t)c->T;
	c->token = ARENA_TAKE(a, int32_t, N);
	c->target = ARENA_TAKE(a, int32_t, N);
	c->gradient = ARENA_TAKE(a, real, c->model.layout.size);
}

static struct err make_batch(struct model_case *c)
{
	size_t N = (size_t)c->B * (size_t)c->T;
	struct arena measure = { 0 };
	place(c, &measure);
	TRY(arena_reserve(&c->memory, measure.used, "the batch"));
	place(c, &c->memory);
	fill(7, CASE_V, c->token, N);
	fill(8, CASE_V * 3 / 2, c->target, N);
	for (size_t n = 0; n < N; n++)
		if (c->target[n] >= CASE_V)
			c->target[n] = -1;
	return OK;
}

struct err model_case_open(const struct model_options *options, const struct method *scaling, int B, int T,
			   const double *positions, struct model_case *c)
{
	*c = (struct model_case){ .B = B, .T = T, .scaling = *scaling };
	struct err e = model_open(options, CASE_V, &c->model);
	if (!e.code) {
		randomise(&c->model);
		struct transformer_request q = { .model = &c->model, .B = B, .T = T, .positions = positions,
						 .scaling = &c->scaling, .gradients = true };
		e = transformer_open(&q, &c->transformer);
	}
	if (!e.code)
		e = make_batch(c);
	if (e.code)
		model_case_close(c);
	return e;
}

void model_case_close(struct model_case *c)
{
	transformer_close(c->transformer);
	model_close(&c->model);
	arena_free(&c->memory);
	*c = (struct model_case){ 0 };
}
