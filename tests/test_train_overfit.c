#include "model/base/blas.h"
#include "tests/model_case.h"
#include "train/adamw.h"

#include <stdio.h>
#include <stdlib.h>

/* Every encoding can learn one batch by heart: forward, backward and optimiser fit together. */

#define STEPS 250

struct memory {
	real *m, *v;
};

static double step(struct model_case *c, const struct train_options *o, int i, struct memory at)
{
	const struct layout *l = &c->model.layout;
	struct outcome outcome = transformer_forward(c->transformer, c->token, c->target, NULL);
	transformer_backward(c->transformer, c->gradient);
	double norm = gradient_norm(l, c->gradient), scale = norm > o->clip ? o->clip / norm : 1;
	adamw_update(l, o, i, scale, c->gradient, at.m, at.v, c->model.value);
	return outcome.nll_sum / (double)outcome.scored;
}

static void overfit(const char *encoding, int T)
{
	const struct train_options o = { .steps = STEPS, .lr = 1e-2, .lr_floor = 0.1, .warmup = 10, .beta1 = 0.9,
					 .beta2 = 0.98, .adam_eps = 1e-8, .clip = 1 };
	struct model_options options = small_options(encoding);
	struct model_case c;
	case_open(&c, &options, "none", 2, T, NULL);
	layout_initialise(&c.model.layout, 3, c.model.value);
	struct memory at = { TAKE(real, c.model.layout.size), TAKE(real, c.model.layout.size) };
	double first = step(&c, &o, 0, at), last = first;
	for (int i = 1; i < STEPS; i++)
		last = step(&c, &o, i, at);
	struct outcome end = transformer_forward(c.transformer, c.token, c.target, NULL);
	if (!(first > 2 && last < 0.02))
		fail_msg("%s: the loss went from %.3f to %.3f", encoding, first, last);
	/* By heart: every target is the likeliest token, at its own place and not at the next. */
	assert_int_equal(end.correct, end.scored);
	for (int n = 0; n < 2 * T; n++)
		assert_int_equal(end.best[n], c.target[n]);
	free(at.m);
	free(at.v);
	case_close(&c);
}

static void test_every_encoding(void **state)
{
	(void)state;
	for (int i = 0; position_at(i); i++)
		overfit(position_at(i)->name, 16);
}

static void test_longer_than_trained(void **state)
{
	(void)state;
	overfit("learned(overflow=clamp)", 20);
	overfit("learned(overflow=interpolate)", 20);
	overfit("rope", 70);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_encoding),
		cmocka_unit_test(test_longer_than_trained),
	};
	struct err e = blas_start(1);
	if (e.code) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests_name("train overfit", tests, NULL, NULL);
}
