#include "tests/model_case.h"

#include <stdio.h>
#include <stdlib.h>

struct model_options small_options(const char *encoding)
{
	struct model_options o = {
		.layers = 2, .width = 32, .heads = 2, .hidden = 24, .rms_eps = 1e-5, .train_length = 16
	};
	assert_ok(method_parse("encoding", position_at, encoding, &o.encoding));
	return o;
}

struct model_options sized_options(const char *encoding, int width, int heads)
{
	struct model_options o = small_options(encoding);
	o.width = width;
	o.heads = heads;
	return o;
}

struct model_options rope_options(double theta, int D, int train_length)
{
	char label[64];
	snprintf(label, sizeof label, "rope(theta=%.17g)", theta);
	struct model_options o = sized_options(label, D, 1);
	o.train_length = train_length;
	return o;
}

struct method scaling_named(const char *label)
{
	struct method m;
	assert_ok(method_parse("scaling", scaling_at, label, &m));
	return m;
}

/* Tensors that start at zero or one get random values as well, so that every gradient is of ordinary size. */
static void randomise(struct model *m)
{
	layout_initialise(&m->layout, 5, m->value);
	for (int i = 0; i < layout_count(&m->layout); i++) {
		const struct parameter *p = &m->layout.parameter[i];
		struct rng rng = rng_at(6, STREAM_INIT, (uint64_t)i);
		for (size_t j = 0; j < p->size && p->initialiser != INIT_NORMAL; j++)
			m->value[p->offset + j] += (real)(0.3 * rng_normal(&rng));
	}
}

void case_open(struct model_case *c, const struct model_options *options, const char *scaling, int B, int T,
	       const double *positions)
{
	struct method method = scaling_named(scaling);
	case_open_method(c, options, &method, B, T, positions);
}

void case_open_method(struct model_case *c, const struct model_options *options, const struct method *scaling, int B,
		      int T, const double *positions)
{
	size_t N = (size_t)B * (size_t)T;
	*c = (struct model_case){ .B = B, .T = T, .scaling = *scaling };
	assert_ok(model_open(options, CASE_V, &c->model));
	randomise(&c->model);
	struct transformer_request q = {
		.model = &c->model, .B = B, .T = T, .positions = positions, .scaling = &c->scaling, .gradients = true
	};
	assert_ok(transformer_open(&q, &c->transformer));
	c->token = TAKE(int32_t, N);
	c->target = TAKE(int32_t, N);
	c->gradient = TAKE(real, c->model.layout.size);
	fill_below(7, CASE_V, c->token, N);
	fill_below(8, CASE_V * 3 / 2, c->target, N);
	for (size_t n = 0; n < N; n++)
		if (c->target[n] >= CASE_V)
			c->target[n] = -1;
}

void case_close(struct model_case *c)
{
	transformer_close(c->transformer);
	model_close(&c->model);
	free(c->token);
	free(c->target);
	free(c->gradient);
}

double case_loss(struct model_case *c)
{
	struct outcome o = transformer_forward(c->transformer, c->token, c->target, NULL);
	return o.nll_sum / (double)o.scored;
}

real *case_logits(struct model_case *c)
{
	real *logits = TAKE(real, (size_t)c->B * (size_t)c->T * (size_t)c->model.V);
	transformer_forward(c->transformer, c->token, c->target, logits);
	return logits;
}
