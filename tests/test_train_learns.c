#include "data/batch.h"
#include "data/options.h"
#include "model/base/blas.h"
#include "model/base/rng.h"
#include "tests/model_case.h"
#include "train/adamw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every encoding learns recall by its positions: two layers trained for a moment are ahead of the same two whose
 * positions are shuffled anew for each batch. Of encodings that take no positions that decrease, all stand at 0 instead.
 * Encodings that read none learn alike to the bit. With LEARN in the environment all encodings are asked, without it
 * one in SOME; in double and under sanitizers, which are slow, one in MANY. */

enum { T = 32, B = 16, STEPS = 160, LAST = 20, SOME = 5, MANY = 24 };
#if defined(ROPEWALK_DOUBLE) || defined(ROPEWALK_POISON)
#define SLOW true
#else
#define SLOW false
#endif

struct lesson {
	struct model model;
	struct transformer *transformer;
	struct batch batch;
	real *gradient, *m, *v;
};

static void open_lesson(struct lesson *l, const struct entry *encoding, const struct method *task)
{
	struct model_options o = small_options("nope");
	o.encoding = method_default(encoding);
	o.train_length = T;
	o.hidden = 48;
	assert_ok(model_open(&o, task_of(task)->vocabulary(task), &l->model));
	layout_initialise(&l->model.layout, 7, l->model.value);
	struct transformer_request request = { .model = &l->model, .B = B, .T = T, .gradients = true };
	assert_ok(transformer_open(&request, &l->transformer));
	struct batch_source source = { task, T, T, 1, STREAM_TRAIN };
	assert_ok(batch_open(&source, B, &l->batch));
	l->gradient = TAKE(real, l->model.layout.size);
	l->m = TAKE(real, l->model.layout.size);
	l->v = TAKE(real, l->model.layout.size);
}

static void close_lesson(struct lesson *l)
{
	transformer_close(l->transformer);
	batch_close(&l->batch);
	model_close(&l->model);
	free(l->gradient);
	free(l->m);
	free(l->v);
}

/* Positions that say nothing of the order. */
static void hide_order(struct lesson *l, bool any_order, int step)
{
	int32_t order[T];
	double positions[T];
	struct rng rng = rng_at(5, STREAM_TUNE, (uint64_t)step);
	for (int t = 0; t < T; t++)
		order[t] = t;
	rng_shuffle(&rng, order, T);
	for (int t = 0; t < T; t++)
		positions[t] = any_order ? order[t] : 0;
	assert_ok(transformer_move(l->transformer, positions));
}

static double step(struct lesson *l, const struct train_options *o, int i)
{
	const struct layout *layout = &l->model.layout;
	const struct place p = place_of(&l->model.options);
	batch_make(&l->batch, (uint64_t)i * B, B);
	struct outcome out = transformer_forward(l->transformer, l->batch.token, l->batch.target, NULL);
	transformer_backward(l->transformer, l->gradient);
	double norm = gradient_norm(layout, l->gradient);
	adamw_update(layout, o, i, norm > o->clip ? o->clip / norm : 1, l->gradient, l->m, l->v, l->model.value);
	for (int layer = 0; p.position->constrain && layer < p.layers; layer++)
		p.position->constrain(&p, l->model.value + layout->position,
				      l->model.value + layout->layer[layer].position);
	return out.nll_sum / (double)out.scored;
}

/* Mean loss of the last steps of a training. */
static double train(const struct entry *encoding, bool hidden)
{
	const struct train_options o = { .steps = STEPS, .lr = 1e-2, .lr_floor = 0.1, .warmup = 20, .beta1 = 0.9,
					 .beta2 = 0.98, .adam_eps = 1e-8, .clip = 1 };
	struct method task = method_default(task_at(0));
	assert_ok(method_parse("task", task_at, "recall(pairs=4)", &task));
	struct lesson l = { 0 };
	double sum = 0;
	open_lesson(&l, encoding, &task);
	for (int i = 0; i < STEPS; i++) {
		if (hidden)
			hide_order(&l, position_of(&l.model.options.encoding)->any_order, i);
		double loss = step(&l, &o, i);
		sum += i >= STEPS - LAST ? loss / LAST : 0;
	}
	close_lesson(&l);
	return sum;
}

static void check(const struct entry *encoding)
{
	double shown = train(encoding, false), hidden = train(encoding, true);
	print_message("# %s: %.3f nats, without order %.3f\n", encoding->name, shown, hidden);
	bool blind = shown == hidden;
	const struct position *p = (const struct position *)encoding;
	if (!blind && !(shown < hidden - 0.05))
		fail_msg("%s: %.3f nats, and %.3f with its positions hidden", encoding->name, shown, hidden);
	/* What works on positions is not blind to them. */
	assert_false(blind && (p->embed || p->rotate));
}

static void test_positions_help(void **state)
{
	(void)state;
	bool all = getenv("LEARN") && *getenv("LEARN") && !SLOW;
	int stride = all ? 1 : SLOW ? MANY : SOME, count = 0;
	for (int i = stride > 1 ? 1 : 0; position_at(i); i += stride, count++)
		check(position_at(i));
	assert_true(count > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_positions_help) };
	struct err e = blas_start(1);
	if (e.code) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests_name("train learns", tests, NULL, NULL);
}
