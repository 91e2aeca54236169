#include "tests/model_case.h"

#include "data/batch.h"
#include "model/base/blas.h"
#include "model/base/threads.h"
#include "model/positions.h"
#include "train/fit.h"

#include <math.h>
#include <stdlib.h>

/* A fit against losses and differences computed here, and what it must leave alone. */

enum { TRAIN_LENGTH = 32, LENGTH = 2 * TRAIN_LENGTH, BATCH = 3, SEED = 7, FIRST = 5 };

static const char *const both[] = { "model.position.log_ratio", "model.position.log_attention_factor", NULL };
static const char *const factor[] = { "model.position.log_attention_factor", NULL };

struct setup {
	struct model model;
	struct data_options data;
	struct train_options train;
};

static void setup_open(struct setup *s)
{
	struct model_options o = sized_options("rope(learned=tempered)", 16, 2);
	o.train_length = TRAIN_LENGTH;
	s->data = (struct data_options){ .task = method_default(task_at(0)) };
	s->train = (struct train_options){ .steps = 1, .batch = BATCH, .lr_floor = 1, .beta1 = 0.9, .beta2 = 0.98,
					   .adam_eps = 1e-8, .weight_decay = 0.1 };
	assert_ok(model_open(&o, task_of(&s->data.task)->vocabulary(&s->data.task), &s->model));
	layout_initialise(&s->model.layout, 8, s->model.value);
	/* Larger weights, so that positions matter. */
	for (size_t i = 0; i < s->model.layout.position; i++)
		s->model.value[i] *= (real)20;
	for (size_t i = 0; i < s->model.layout.layer[0].o; i++)
		if (i >= s->model.layout.layer[0].q)
			s->model.value[i] *= (real)4;
}

static void setup_close(struct setup *s)
{
	model_close(&s->model);
}

static struct fit_request fit_of(struct setup *s)
{
	return (struct fit_request){ .model = &s->model, .data = &s->data, .train = &s->train, .tensor = both,
				     .length = LENGTH, .group = -1, .stream = STREAM_TUNE, .seed = SEED,
				     .first = FIRST };
}

static struct err keep_report(void *data, const struct step_report *r)
{
	*(struct step_report *)data = *r;
	return OK;
}

/* The last step of a fit. */
static struct step_report fit(const struct fit_request *q)
{
	struct step_report r = { 0 };
	assert_ok(fit_check(q));
	assert_ok(fit_run(q, keep_report, &r));
	return r;
}

/* The loss of one batch, by the forward pass alone. */
static double loss_of(const struct setup *s, uint64_t first, int group)
{
	struct batch_source source = { .task = &s->data.task, .train_length = TRAIN_LENGTH, .length = LENGTH,
				       .seed = SEED, .stream = STREAM_TUNE };
	struct transformer_request q = { .model = &s->model, .B = BATCH, .T = LENGTH };
	struct transformer *t;
	struct batch b;
	double sum = 0;
	int64_t scored = 0;
	assert_ok(batch_open(&source, BATCH, &b));
	assert_ok(transformer_open(&q, &t));
	batch_make(&b, first, BATCH);
	struct outcome o = transformer_forward(t, b.token, b.target, NULL);
	for (int i = 0; i < BATCH * LENGTH; i++)
		if (b.target[i] >= 0 && (group < 0 || b.group[i] == group)) {
			sum += o.nll[i];
			scored++;
		}
	transformer_close(t);
	batch_close(&b);
	return sum / (double)scored;
}

/* Step i takes the batch that follows, of stream tune from `first` on. */
static void test_batches(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s);
	struct fit_request q = fit_of(&s);
	assert_close(fit(&q).loss, loss_of(&s, FIRST, -1), 1e-6);
	s.train.steps = 3;
	struct step_report last = fit(&q);
	assert_int_equal(last.step, 3);
	assert_close(last.loss, loss_of(&s, FIRST + 2 * BATCH, -1), 1e-6);
	for (int g = 0; g < 2; g++) {
		q.group = g;
		assert_close(fit(&q).loss, loss_of(&s, FIRST + 2 * BATCH, g), 1e-6);
	}
	setup_close(&s);
}

/* By differences, in double: of every fitted number. */
static void test_gradient(void **state)
{
	(void)state;
	struct setup s;
	double squares = 0;
	if (sizeof(real) < sizeof(double))
		return;
	setup_open(&s);
	struct fit_request q = fit_of(&s);
	for (const char *const *name = both; *name; name++) {
		const struct parameter *p = layout_find(&s.model.layout, *name);
		for (size_t i = 0; i < p->size; i++) {
			real *at = &s.model.value[p->offset + i], kept = *at;
			*at = kept + (real)1e-6;
			double above = loss_of(&s, FIRST, -1);
			*at = kept - (real)1e-6;
			double slope = (above - loss_of(&s, FIRST, -1)) / 2e-6;
			*at = kept;
			squares += slope * slope;
			if (name > both) {
				q.tensor = factor;
				assert_true(fabs(slope) > 1e-4);
				assert_close(fit(&q).grad_norm, fabs(slope), 1e-7);
			}
		}
	}
	q.tensor = both;
	assert_close(fit(&q).grad_norm, sqrt(squares), 1e-7);
	setup_close(&s);
}

static void test_frozen(void **state)
{
	(void)state;
	struct setup s, before;
	setup_open(&s);
	setup_open(&before);
	struct fit_request q = fit_of(&s);
	s.train.lr = 0.01;
	s.train.steps = 3;
	q.tensor = factor;
	fit(&q);
	for (int i = 0; i < layout_count(&s.model.layout); i++) {
		const struct parameter *p = &s.model.layout.parameter[i];
		bool same = !memcmp(s.model.value + p->offset, before.model.value + p->offset, p->size * sizeof(real));
		assert_int_equal(same, strcmp(p->name, *factor) != 0);
	}
	setup_close(&s);
	setup_close(&before);
}

/* Forty batches on, the first is likelier than it was. */
static void test_gains(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s);
	struct fit_request q = fit_of(&s);
	double before = loss_of(&s, 0, -1);
	s.train.lr = 0.03;
	s.train.steps = 40;
	q.first = 0;
	fit(&q);
	assert_below(loss_of(&s, 0, -1), before - 0.003);
	setup_close(&s);
}

static void test_diverges(void **state)
{
	(void)state;
	struct setup s, before;
	setup_open(&s);
	setup_open(&before);
	struct fit_request q = fit_of(&s);
	s.model.value[s.model.layout.head] = before.model.value[before.model.layout.head] = (real)NAN;
	s.train.lr = 0.1;
	assert_err(fit_run(&q, NULL, NULL), ERR_DIVERGED, "step 1: loss nan");
	assert_memory_equal(s.model.value, before.model.value, s.model.layout.size * sizeof(real));
	setup_close(&s);
	setup_close(&before);
}

static struct err stop(void *data, const struct step_report *r)
{
	(void)data;
	return r->step == 2 ? err_failed(NULL, "enough") : OK;
}

static void test_refused(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s);
	struct fit_request q = fit_of(&s);
	s.train.steps = 9;
	assert_err(fit_run(&q, stop, NULL), ERR_FAILED, "enough");
	s.model.V--;
	assert_err(fit_check(&q), ERR_USAGE, "the model has 98 tokens");
	s.model.V++;
	s.model.options.positions = POSITIONS_RANDOMIZED;
	assert_err(fit_check(&q), ERR_USAGE, "positions: ");
	s.model.options.positions = POSITIONS_CONSECUTIVE;
	s.train.batch = 1 << 14;
	q.length = 1 << 16;
	assert_err(fit_check(&q), ERR_USAGE, "");
	q.length = 1 << 12;
	s.model.options.hidden = 1 << 20;
	assert_err(fit_check(&q), ERR_USAGE, "a fit to 16384 sequences of 4096 tokens needs ");
	setup_close(&s);
}

static void test_threads(void **state)
{
	(void)state;
	struct setup one, three;
	setup_open(&one);
	setup_open(&three);
	one.train.steps = three.train.steps = 3;
	one.train.lr = three.train.lr = 0.05;
	struct fit_request q = fit_of(&one), r = fit_of(&three);
	threads_start(1);
	fit(&q);
	threads_start(3);
	fit(&r);
	threads_start(2);
	assert_memory_equal(one.model.value, three.model.value, one.model.layout.size * sizeof(real));
	setup_close(&one);
	setup_close(&three);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_gradient),
		cmocka_unit_test(test_frozen),
		cmocka_unit_test(test_gains),
		cmocka_unit_test(test_diverges),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_threads),
	};
	if (blas_start(2).code)
		return 1;
	return cmocka_run_group_tests_name("train fit", tests, NULL, NULL);
}
