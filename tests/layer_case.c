#include "tests/layer_case.h"

#include "tests/model_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void layer_open(struct layer_case *c, const char *encoding, int train_length, int H, int T, int D)
{
	size_t items = (size_t)H * (size_t)T * (size_t)D;
	struct model_options o = sized_options(encoding, H * D, H);
	o.train_length = train_length;
	*c = (struct layer_case){ .H = H, .T = T, .D = D, .positions = TAKE(double, T) };
	assert_ok(scores_model(&o, &c->model));
	layout_initialise(&c->model.layout, 5, c->model.value);
	real **const given[] = { &c->q, &c->k, &c->v, &c->x };
	for (uint64_t i = 0; i < 4; i++) {
		*given[i] = TAKE(real, items);
		fill_normal(20 + i, *given[i], items);
	}
	c->output = TAKE(real, items);
	c->scores = TAKE(real, (size_t)H * (size_t)T * (size_t)T);
	for (int t = 0; t < T; t++)
		c->positions[t] = t;
}

void layer_close(struct layer_case *c)
{
	model_close(&c->model);
	free(c->positions);
	free(c->q), free(c->k), free(c->v), free(c->x);
	free(c->scores), free(c->output);
}

real *layer_tensor(const struct layer_case *c, const char *name)
{
	char full[96];
	snprintf(full, sizeof full, "model.layers.0.self_attn.position.%s", name);
	const struct parameter *p = layout_find(&c->model.layout, full);
	if (!p)
		fail_msg("there is no %s", full);
	return c->model.value + p->offset;
}

void layer_run(struct layer_case *c, const struct method *scaling)
{
	const struct scores_request q = { .model = &c->model, .scaling = scaling, .B = 1, .T = c->T,
					  .positions = c->positions, .q = c->q, .k = c->k, .v = c->v, .x = c->x };
	assert_ok(scores_compute(&q, c->scores, c->output));
}

double layer_product(const struct layer_case *c, int head, int i, int j)
{
	const real *q = c->q + (size_t)(head * c->T + i) * (size_t)c->D;
	const real *k = c->k + (size_t)(head * c->T + j) * (size_t)c->D;
	double sum = 0;
	for (int d = 0; d < c->D; d++)
		sum += (double)q[d] * (double)k[d];
	return sum;
}

void layer_check(const struct layer_case *c, int head, int i, int j, double wanted, double tolerance)
{
	double found = (double)c->scores[((size_t)head * (size_t)c->T + (size_t)i) * (size_t)c->T + (size_t)j];
	double size = fmax(1, fabs(wanted));
	if (isinf(wanted) ? found != wanted : !(fabs(found - wanted) <= tolerance * size))
		fail_msg("head %d, query %d, key %d: %.17g, not %.17g", head, i, j, found, wanted);
}
