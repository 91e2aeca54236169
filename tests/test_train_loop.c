#include "data/batch.h"
#include "model/base/blas.h"
#include "model/base/threads.h"
#include "train/adamw.h"
#include "tests/allocations.h"
#include "train/loop.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const int thread_counts[] = { 1, 2, 3, 7 };

static void assert_ok(struct err e)
{
	if (e.code)
		fail_msg("%s", e.text);
}

static void set_default(const struct option *row, char *field)
{
	union option_value value;
	if (row->kind == OPTION_METHOD) {
		assert_ok(method_parse(row->name, row->family, row->initial, (struct method *)field));
		return;
	}
	assert_ok(option_parse(row, row->initial, &value));
	memcpy(field, &value, sizeof value);
}

static void set_defaults(const struct option *row, void *to)
{
	for (; row->name; row++)
		set_default(row, (char *)to + row->offset);
}

struct setup {
	struct model_options model;
	struct data_options data;
	struct train_options train;
};

static struct setup small(void)
{
	struct setup s;
	set_defaults(model_option_rows, &s.model);
	set_defaults(data_option_rows, &s.data);
	set_defaults(train_option_rows, &s.train);
	s.model.width = 16;
	s.model.hidden = 24;
	s.model.train_length = 40;
	s.train.batch = 4;
	s.train.steps = 5;
	s.train.warmup = 2;
	return s;
}

static void open_model(const struct setup *s, struct model *m)
{
	assert_ok(model_open(&s->model, task_of(&s->data.task)->vocabulary(&s->data.task), m));
	layout_initialise(&m->layout, (uint64_t)s->train.seed, m->value);
}

static real *copy_values(const struct model *m)
{
	real *copy = malloc(m->layout.size * sizeof *copy);
	assert_non_null(copy);
	return memcpy(copy, m->value, m->layout.size * sizeof *copy);
}

/* Hooks that look on, and change values after a step. */
struct watch {
	struct model *model;
	struct step_report report[80];
	int steps;
	int stop;                                /* step at which the hook fails; 0: never */
	int tamper;                              /* step after which `with` is called */
	void (*with)(struct model *m);
	real *tampered;                          /* the values it left */
};

static struct err on_step(void *data, struct training *t, const struct step_report *report)
{
	(void)t;
	struct watch *w = data;
	w->report[w->steps++] = *report;
	if (w->steps == w->stop)
		return err_failed(NULL, "stopped by the hook");
	if (w->steps == w->tamper) {
		w->with(w->model);
		w->tampered = copy_values(w->model);
	}
	return OK;
}

static struct err run(const struct setup *s, struct model *m, struct watch *w)
{
	w->model = m;
	struct train_hooks hooks = { .step = on_step, .data = w };
	return train_run(m, &s->data, &s->train, &hooks);
}

static real *trained(const struct setup *s, size_t *size)
{
	struct model m;
	open_model(s, &m);
	assert_ok(train_run(&m, &s->data, &s->train, NULL));
	real *values = copy_values(&m);
	*size = m.layout.size * sizeof *values;
	model_close(&m);
	return values;
}

static void test_repeats(void **state)
{
	(void)state;
	struct setup s = small();
	size_t size;
	real *first = trained(&s, &size);
	for (int i = 0; i < 4; i++) {
		threads_start(thread_counts[i]);
		real *again = trained(&s, &size);
		assert_memory_equal(first, again, size);
		free(again);
	}
	threads_start(2);
	s.train.seed++;
	real *other = trained(&s, &size);
	assert_memory_not_equal(first, other, size);
	free(first), free(other);
}

/* The run again from its parts: batches in order, gradient, clipping, update; and what the hook is told. */
static void replay(const struct setup *s, struct model *m, const struct watch *w)
{
	struct batch_source source = { &s->data.task, 40, 40, (uint64_t)s->train.seed, STREAM_TRAIN };
	struct transformer_request request = { .model = m, .B = (int)s->train.batch, .T = 40, .gradients = true };
	struct transformer *t;
	struct batch b;
	assert_int_equal(batch_open(&source, request.B, &b).code, ERR_NONE);
	assert_int_equal(transformer_open(&request, &t).code, ERR_NONE);
	size_t size = m->layout.size;
	real *slab = calloc(3 * size, sizeof *slab), *gradient = slab;
	for (int step = 0; step < s->train.steps; step++) {
		const struct step_report *r = &w->report[step];
		batch_make(&b, (uint64_t)(step * request.B), request.B);
		struct outcome o = transformer_forward(t, b.token, b.target, NULL);
		transformer_backward(t, gradient);
		double norm = gradient_norm(&m->layout, gradient), clip = s->train.clip;
		double scale = clip > 0 && norm > clip ? clip / norm : 1;
		adamw_update(&m->layout, &s->train, step, scale, gradient, slab + size, slab + 2 * size, m->value);
		assert_int_equal(r->step, step + 1);
		assert_int_equal(r->steps, s->train.steps);
		assert_int_equal(r->tokens, request.B * 40);
		assert_true(r->loss == o.nll_sum / (double)o.scored);
		assert_true(r->accuracy == (double)o.correct / (double)o.scored);
		assert_true(r->grad_norm == norm);
		assert_true(r->lr == adamw_rate(&s->train, step));
	}
	transformer_close(t);
	batch_close(&b);
	free(slab);
}

static void test_steps(void **state)
{
	(void)state;
	const double clips[] = { 0, 0.05, 1e6 };
	real *ends[3];
	size_t bytes = 0;
	for (int i = 0; i < 3; i++) {
		struct setup s = small();
		s.train.clip = clips[i];
		struct model m, again;
		struct watch w = { 0 };
		open_model(&s, &m);
		open_model(&s, &again);
		assert_int_equal(run(&s, &m, &w).code, ERR_NONE);
		assert_int_equal(w.steps, 5);
		replay(&s, &again, &w);
		bytes = m.layout.size * sizeof(real);
		assert_memory_equal(m.value, again.value, bytes);
		ends[i] = copy_values(&m);
		model_close(&m);
		model_close(&again);
	}
	assert_memory_equal(ends[0], ends[2], bytes);
	assert_memory_not_equal(ends[0], ends[1], bytes);
	for (int i = 0; i < 3; i++)
		free(ends[i]);
}

static void test_learns(void **state)
{
	(void)state;
	struct setup s = small();
	s.train.steps = 80;
	s.train.warmup = 10;
	s.train.lr = 0.01;
	struct model m;
	struct watch w = { 0 };
	open_model(&s, &m);
	assert_int_equal(run(&s, &m, &w).code, ERR_NONE);
	assert_true(w.report[79].loss < 0.85 * w.report[0].loss);
	model_close(&m);
}

static void poison(struct model *m)
{
	m->value[layout_find(&m->layout, "model.layers.0.input_layernorm.weight")->offset] = (real)NAN;
}

static void overflow(struct model *m)
{
	m->value[layout_find(&m->layout, "model.norm.weight")->offset] = (real)INFINITY;
}

/* Where the residual stream is zero and epsilon next to nothing, every norm multiplies the gradient by
 * 1 / sqrt(eps). */
static void silence(struct model *m)
{
	const struct parameter *p = layout_find(&m->layout, "model.embed_tokens.weight");
	memset(m->value + p->offset, 0, p->size * sizeof(real));
}

static void test_diverges(void **state)
{
	(void)state;
	static const struct {
		void (*with)(struct model *m);
		const char *text, *end;
	} cases[] = {
		{ poison, "step 4: loss nan, gradient norm nan; ", "not finite: model.layers.0.input_layernorm.weight" },
		{ overflow, "step 4: loss nan, gradient norm nan; ", "not finite: model.norm.weight" },
		{ silence, "step 4: loss ", "; not finite: the gradient of model.embed_tokens.weight" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct setup s = small();
		s.model.rms_eps = sizeof(real) == 4 ? 1e-40 : 1e-300;
		struct model m;
		struct watch w = { .tamper = 3, .with = cases[i].with };
		open_model(&s, &m);
		struct err e = run(&s, &m, &w);
		assert_int_equal(e.code, ERR_DIVERGED);
		assert_memory_equal(e.text, cases[i].text, strlen(cases[i].text));
		assert_true(strlen(e.text) > strlen(cases[i].end));
		assert_string_equal(e.text + strlen(e.text) - strlen(cases[i].end), cases[i].end);
		assert_non_null(strstr(e.hint, "--lr"));
		assert_int_equal(w.steps, 3);
		assert_memory_equal(m.value, w.tampered, m.layout.size * sizeof(real));
		free(w.tampered);
		model_close(&m);
	}
}

static void test_absurd_rate(void **state)
{
	(void)state;
	struct setup s = small();
	s.train.lr = 1e30;
	s.train.steps = 60;
	struct model m;
	struct watch w = { 0 };
	open_model(&s, &m);
	struct err e = run(&s, &m, &w);
	assert_int_equal(e.code, ERR_DIVERGED);
	assert_int_equal(strncmp(e.text, "step ", 5), 0);
	assert_true(w.steps < 60);
	model_close(&m);
}

static void test_hook_stops(void **state)
{
	(void)state;
	struct setup s = small();
	struct model m;
	struct watch w = { .stop = 2 };
	open_model(&s, &m);
	struct err e = run(&s, &m, &w);
	assert_int_equal(e.code, ERR_FAILED);
	assert_string_equal(e.text, "stopped by the hook");
	assert_int_equal(w.steps, 2);
	model_close(&m);
}

#ifdef COUNTS_ALLOCATIONS
static struct err count_on_step(void *data, struct training *t, const struct step_report *report)
{
	(void)t;
	int *count = data; /* after the first step, after the last */
	count[report->step > 1] = allocations;
	return OK;
}

static void test_no_allocation(void **state)
{
	(void)state;
	int before = allocations;
	void *volatile kept = malloc(1);
	free(kept);
	assert_int_equal(allocations, before + 1);
	for (int i = 0; i < 5; i++) {
		struct setup s = small();
		int count[2], threads = 1 + (i & 1);
		s.train.length_least = i == 2 ? 30 : 0;
		s.model.positions = i > 2 ? i - 2 : 0;
		struct train_hooks hooks = { .step = count_on_step, .data = count };
		struct model m;
		threads_start(threads);
		open_model(&s, &m);
		assert_int_equal(train_run(&m, &s.data, &s.train, &hooks).code, ERR_NONE);
		assert_int_equal(count[0], count[1]);
		model_close(&m);
	}
}
#endif

/* An encoding that only has parameters, and puts them somewhere after each update. */
static void declare_held(const struct model_options *options, struct layout *l, int layer)
{
	(void)options;
	if (layer < 0)
		layout_add(l, INIT_ONES, 0, true, 0, 3, "model.position.held");
	else
		layout_add(l, INIT_ONES, 0, true, 0, 5, "model.layers.%d.self_attn.position.held", layer);
}

static void constrain_held(const struct place *p, real *shared, real *layer)
{
	BUG_IF(p->T != 40 || p->positions[39] != 39 || p->layers != 2, "not the place of this training");
	shared[2] = (real)0.25;
	layer[4] += 1;
}

static void test_constrain(void **state)
{
	(void)state;
	static const struct position held = { .entry = { .name = "held", .help = "" }, .declare = declare_held,
					      .constrain = constrain_held };
	struct setup s = small();
	s.model.encoding = method_default(&held.entry);
	s.train.weight_decay = 0;
	struct model m;
	open_model(&s, &m);
	assert_int_equal(train_run(&m, &s.data, &s.train, NULL).code, ERR_NONE);
	const real *shared = m.value + layout_find(&m.layout, "model.position.held")->offset;
	assert_true(shared[1] == 1 && shared[2] == (real)0.25);
	for (int i = 0; i < 2; i++) {
		const real *layer = m.value + m.layout.layer[i].position;
		assert_true(layer[3] == 1 && layer[4] == 1 + 5);
	}
	model_close(&m);
}

static void test_plan(void **state)
{
	(void)state;
	struct setup s = small();
	struct train_plan plan;
	struct model m;
	size_t activations;
	open_model(&s, &m);
	struct transformer_request request = { .model = &m, .B = 4, .T = 40, .gradients = true };
	assert_int_equal(transformer_bytes(&request, &activations).code, ERR_NONE);
	assert_int_equal(train_plan(&s.model, &s.data, &s.train, &plan).code, ERR_NONE);
	assert_int_equal(plan.parameters, m.layout.size);
	assert_int_equal(plan.activations, activations);
	assert_int_equal(plan.batch, batch_bytes(4, 40));
	assert_in_range(plan.slabs, 4 * m.layout.size * sizeof(real), 4 * m.layout.size * sizeof(real) + 256);
	model_close(&m);
}

static void test_plan_refuses(void **state)
{
	(void)state;
	struct train_plan plan;
	struct setup s = small();
	s.model.train_length = 10;
	struct err e = train_plan(&s.model, &s.data, &s.train, &plan);
	assert_int_equal(e.code, ERR_USAGE);
	assert_non_null(strstr(e.text, "length 10 is too short"));

	s = small();
	s.model.heads = 3;
	assert_int_equal(train_plan(&s.model, &s.data, &s.train, &plan).code, ERR_USAGE);

	s = small();
	s.model.train_length = 4096;
	s.train.batch = 1 << 18;
	e = train_plan(&s.model, &s.data, &s.train, &plan);
	assert_int_equal(e.code, ERR_USAGE);
	assert_non_null(strstr(e.text, "activations"));
	assert_non_null(strstr(e.text, "TB"));
	assert_non_null(strstr(e.hint, "--batch"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_repeats),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_learns),
		cmocka_unit_test(test_diverges),
		cmocka_unit_test(test_absurd_rate),
		cmocka_unit_test(test_hook_stops),
#ifdef COUNTS_ALLOCATIONS
		cmocka_unit_test(test_no_allocation),
#endif
		cmocka_unit_test(test_constrain),
		cmocka_unit_test(test_plan),
		cmocka_unit_test(test_plan_refuses),
	};
	if (blas_start(2).code)
		return 1;
	return cmocka_run_group_tests_name("train loop", tests, NULL, NULL);
}
