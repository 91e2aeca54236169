#include "data/batch.h"
#include "eval/perplexity.h"
#include "model/base/blas.h"
#include "model/base/threads.h"
#include "model/positions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { TRAIN_LENGTH = 40, RECALL = 0, NEAR, FAR, ECHO, ALL, GROUPS };

static void assert_close(double value, double expected, double relative)
{
	if (!(fabs(value - expected) <= relative * fabs(expected)))
		fail_msg("%.17g is not %.17g", value, expected);
}

static void assert_ok(struct err e)
{
	if (e.code)
		fail_msg("%s", e.text);
}

static void assert_usage(struct err e, const char *part)
{
	if (e.code != ERR_USAGE || (!strstr(e.text, part) && !strstr(e.hint, part)))
		fail_msg("[%d] %s (%s)", e.code, e.text, e.hint);
}

static struct method chosen(const char *what, family_at family, const char *text)
{
	struct method m;
	assert_ok(method_parse(what, family, text, &m));
	return m;
}

/* An untrained model and what it takes to evaluate it. */
struct setup {
	struct model model;
	struct data_options data;
	struct method scaling;
};

static void setup_open(struct setup *s, const char *encoding, const char *scaling, uint64_t seed)
{
	struct model_options o = { .layers = 1, .width = 16, .heads = 2, .hidden = 16, .rms_eps = 1e-5,
				   .train_length = TRAIN_LENGTH,
				   .trained_scaling = method_default(scaling_at(0)) };
	o.encoding = chosen("encoding", position_at, encoding);
	s->data = (struct data_options){ .task = method_default(task_at(0)) };
	s->scaling = chosen("scaling", scaling_at, scaling);
	assert_ok(model_open(&o, task_of(&s->data.task)->vocabulary(&s->data.task), &s->model));
	layout_initialise(&s->model.layout, seed, s->model.value);
}

static struct eval_request request_of(const struct setup *s, int length, int sequences)
{
	return (struct eval_request){ .model = &s->model, .data = &s->data, .scaling = &s->scaling, .length = length,
				      .sequences = sequences, .eval_seed = 1 };
}

static struct eval_result evaluate(const struct setup *s, int length, int sequences)
{
	struct eval_request request = request_of(s, length, sequences);
	struct eval_result r;
	assert_ok(eval_run(&request, NULL, NULL, &r));
	assert_int_equal(r.groups, GROUPS);
	assert_int_equal(r.sequences, sequences);
	return r;
}

struct progress {
	int64_t done[80], total;
	int calls;
};

static struct err on_progress(void *data, int64_t done, int64_t total)
{
	struct progress *p = data;
	p->done[p->calls++] = done;
	p->total = total;
	return OK;
}

/* Sequence by sequence through a transformer of its own: the same targets and, but for rounding, the same numbers. */
static void alone(enum stream stream)
{
	/* 16384 / 420 = 39 a lot at most: 21 and 20. */
	enum { LENGTH = 420, SEQUENCES = 41 };
	struct setup s;
	struct eval_result r;
	setup_open(&s, "rope", "ntk", 5);
	struct eval_request whole = request_of(&s, LENGTH, SEQUENCES);
	struct progress p = { 0 };
	whole.tune = stream == STREAM_TUNE;
	assert_ok(eval_run(&whole, on_progress, &p, &r));
	assert_int_equal(p.calls, 2);
	assert_int_equal(p.done[0], 21 * LENGTH);
	struct batch_source source = { &s.data.task, TRAIN_LENGTH, LENGTH, 1, stream };
	struct transformer_request request = { .model = &s.model, .B = 1, .T = LENGTH, .scaling = &s.scaling };
	struct transformer *t;
	struct batch b;
	assert_int_equal(batch_open(&source, 1, &b).code, ERR_NONE);
	assert_int_equal(transformer_open(&request, &t).code, ERR_NONE);
	double nll_sum = 0;
	for (int i = 0; i < SEQUENCES; i++) {
		batch_make(&b, (uint64_t)i, 1);
		struct outcome o = transformer_forward(t, b.token, b.target, NULL);
		const struct eval_tally *all = &r.tally[i * GROUPS + ALL];
		assert_int_equal(all->scored, o.scored);
		assert_close(all->nll_sum, o.nll_sum, 1e-5);
		nll_sum += o.nll_sum;
	}
	assert_close(r.cell[ALL].nll, nll_sum / (double)r.cell[ALL].scored, 1e-5);
	assert_close(r.cell[ALL].perplexity, exp(r.cell[ALL].nll), 1e-14);
	transformer_close(t);
	batch_close(&b);
	eval_result_free(&r);
	model_close(&s.model);
}

static void test_alone(void **state)
{
	(void)state;
	alone(STREAM_REPORT);
	alone(STREAM_TUNE);
}

/* Randomized positions are a matter of (eval_seed, length, sequence): not of how many there are, of the model, or of the
 * scaling; and they are such as positions_draw says. */
static void test_randomized(void **state)
{
	(void)state;
	enum { LENGTH = 420, MOST = 500 };
	struct setup s;
	setup_open(&s, "rope", "none", 5);
	s.model.options.positions = POSITIONS_RANDOMIZED;
	s.model.options.positions_most = MOST;
	struct eval_result many = evaluate(&s, LENGTH, 41), few = evaluate(&s, LENGTH, 3);
	for (int i = 0; i < 3; i++)
		assert_close(many.tally[i * GROUPS + ALL].nll_sum, few.tally[i * GROUPS + ALL].nll_sum, 1e-5);
	struct numbering n = { .options = &s.model.options, .task = "recall" };
	double positions[LENGTH];
	positions_draw(&n, 1, 40, 1, LENGTH, positions);
	struct batch_source source = { &s.data.task, TRAIN_LENGTH, LENGTH, 1, STREAM_REPORT };
	struct transformer_request request = { .model = &s.model, .B = 1, .T = LENGTH, .positions = positions };
	struct transformer *t;
	struct batch b;
	assert_ok(batch_open(&source, 1, &b));
	assert_ok(transformer_open(&request, &t));
	batch_make(&b, 40, 1);
	assert_close(many.tally[40 * GROUPS + ALL].nll_sum, transformer_forward(t, b.token, b.target, NULL).nll_sum,
		     1e-5);
	assert_true(many.reach == MOST);
	transformer_close(t);
	batch_close(&b);
	eval_result_free(&many);
	eval_result_free(&few);

	struct eval_request refused = request_of(&s, MOST + 1, 3);
	assert_usage(eval_check(&refused), "positions_most");
	s.scaling = chosen("scaling", scaling_at, "yarn");
	refused = request_of(&s, LENGTH, 3);
	assert_usage(eval_check(&refused), "differs from sequence to sequence");
	s.scaling = chosen("scaling", scaling_at, "yarn(factor=4)");
	refused = request_of(&s, LENGTH, 3);
	assert_ok(eval_check(&refused));
	model_close(&s.model);
}

/* Coupled ones are the task's. */
static void test_coupled(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "rope", "none", 5);
	struct model_options o = s.model.options;
	model_close(&s.model);
	s.data.task = chosen("task", task_at, "copy(coupled=on)");
	o.positions = POSITIONS_TASK;
	assert_ok(model_open(&o, task_of(&s.data.task)->vocabulary(&s.data.task), &s.model));
	layout_initialise(&s.model.layout, 5, s.model.value);
	struct eval_request request = request_of(&s, 48, 4);
	struct eval_result r;
	assert_ok(eval_run(&request, NULL, NULL, &r));
	struct batch_source source = { &s.data.task, TRAIN_LENGTH, 48, 1, STREAM_REPORT };
	struct batch b;
	assert_ok(batch_open(&source, 1, &b));
	for (int i = 0; i < 4; i++) {
		struct transformer *t;
		batch_make(&b, (uint64_t)i, 1);
		struct transformer_request one = { .model = &s.model, .B = 1, .T = 48, .positions = b.position };
		assert_ok(transformer_open(&one, &t));
		assert_close(r.tally[(i + 1) * r.groups - 1].nll_sum,
			     transformer_forward(t, b.token, b.target, NULL).nll_sum, 1e-5);
		transformer_close(t);
	}
	batch_close(&b);
	eval_result_free(&r);
	s.model.options.encoding = chosen("encoding", position_at, "alibi");
	assert_usage(eval_check(&request), "alibi does not take");
	s.model.options.positions = POSITIONS_CONSECUTIVE;
	assert_usage(eval_check(&request), "--positions=task");
	model_close(&s.model);
}

static void assert_sum(const struct eval_tally *whole, const struct eval_tally *a, const struct eval_tally *b)
{
	assert_int_equal(whole->scored, a->scored + b->scored);
	assert_int_equal(whole->correct, a->correct + b->correct);
	assert_close(whole->nll_sum, a->nll_sum + b->nll_sum, 1e-13);
}

static void test_groups(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "nope", "none", 5);
	struct eval_result r = evaluate(&s, 3 * TRAIN_LENGTH, 20);
	for (int i = 0; i < r.sequences; i++) {
		const struct eval_tally *t = &r.tally[i * GROUPS];
		assert_sum(&t[RECALL], &t[NEAR], &t[FAR]);
		assert_sum(&t[ALL], &t[RECALL], &t[ECHO]);
	}
	for (int g = 0; g < GROUPS; g++) {
		assert_true(r.cell[g].scored > 0 && r.cell[g].nll_se > 0);
		assert_true(r.cell[g].floor == 1);
	}
	assert_int_equal(r.cell[ALL].scored, r.cell[NEAR].scored + r.cell[FAR].scored + r.cell[ECHO].scored);
	eval_result_free(&r);

	r = evaluate(&s, TRAIN_LENGTH, 20);
	const struct eval_cell none = { 0 };
	assert_memory_equal(&r.cell[FAR], &none, sizeof none);
	assert_int_equal(r.cell[NEAR].scored, r.cell[RECALL].scored);
	eval_result_free(&r);
	eval_result_free(&(struct eval_result){ 0 });
	model_close(&s.model);
}

/* A model whose head knows one answer only: its accuracy is how often that is the target. */
static void test_accuracy(void **state)
{
	(void)state;
	enum { ANSWER = 40, LENGTH = 64, SEQUENCES = 64 };
	struct setup s;
	setup_open(&s, "nope", "none", 5);
	const struct parameter *head = layout_find(&s.model.layout, "lm_head.weight");
	const struct parameter *embedding = layout_find(&s.model.layout, "model.embed_tokens.weight");
	memset(s.model.value + head->offset, 0, head->size * sizeof(real));
	for (size_t i = 0; i < embedding->size; i++)
		s.model.value[embedding->offset + i] = (real)10;
	for (int c = 0; c < 16; c++)
		s.model.value[head->offset + ANSWER * 16 + (size_t)c] = (real)1;
	struct eval_result r = evaluate(&s, LENGTH, SEQUENCES);

	struct batch_source source = { &s.data.task, TRAIN_LENGTH, LENGTH, 1, STREAM_REPORT };
	struct batch b;
	int right = 0, scored = 0;
	assert_int_equal(batch_open(&source, SEQUENCES, &b).code, ERR_NONE);
	batch_make(&b, 0, SEQUENCES);
	for (int t = 0; t < SEQUENCES * LENGTH; t++) {
		scored += b.target[t] >= 0;
		right += b.target[t] == ANSWER;
	}
	batch_close(&b);
	assert_int_equal(r.cell[ALL].scored, scored);
	assert_close(r.cell[ALL].accuracy, (double)right / scored, 1e-14);
	assert_true(r.cell[RECALL].accuracy > 0 && r.cell[RECALL].exact == 0);
	eval_result_free(&r);
	model_close(&s.model);
}

static void test_threads(void **state)
{
	(void)state;
	static const int threads[] = { 1, 2, 3, 7 };
	struct setup s;
	setup_open(&s, "rope", "linear", 5);
	struct eval_result first = { 0 };
	for (int i = 0; i < 4; i++) {
		threads_start(threads[i]);
		struct eval_result r = evaluate(&s, 2 * TRAIN_LENGTH, 60);
		if (i == 0)
			first = r;
		assert_memory_equal(r.tally, first.tally, 60 * GROUPS * sizeof *r.tally);
		assert_memory_equal(r.cell, first.cell, GROUPS * sizeof *r.cell);
		for (int k = 0; k < r.references; k++) {
			assert_true(r.reference[k].perplexity == first.reference[k].perplexity);
			assert_true(r.reference[k].accuracy == first.reference[k].accuracy);
		}
		if (i)
			eval_result_free(&r);
	}
	threads_start(2);
	eval_result_free(&first);
	model_close(&s.model);
}

/* Whatever the scaling, the encoding and the training seed, the sequences are the same; not so with another
 * eval_seed. */
static void test_same_sequences(void **state)
{
	(void)state;
	static const struct {
		const char *encoding, *scaling;
		uint64_t seed;
	} cases[] = {
		{ "rope", "none", 1 }, { "rope", "ntk(factor=8)", 1 }, { "nope", "none", 1 }, { "rope", "none", 2 },
	};
	struct eval_result first = { 0 };
	for (int i = 0; i < 4; i++) {
		struct setup s;
		setup_open(&s, cases[i].encoding, cases[i].scaling, cases[i].seed);
		struct eval_result r = evaluate(&s, 2 * TRAIN_LENGTH, 10);
		if (i == 0)
			first = r;
		for (int k = 0; k < 10 * GROUPS; k++)
			assert_int_equal(r.tally[k].scored, first.tally[k].scored);
		assert_true(r.reference[1].perplexity == first.reference[1].perplexity);
		assert_true(i == 0 || r.cell[RECALL].nll != first.cell[RECALL].nll);
		if (i) {
			eval_result_free(&r);
		} else {
			struct eval_request other = request_of(&s, 2 * TRAIN_LENGTH, 10);
			other.eval_seed = 2;
			assert_int_equal(eval_run(&other, NULL, NULL, &r).code, ERR_NONE);
			assert_true(r.reference[1].perplexity != first.reference[1].perplexity);
			eval_result_free(&r);
		}
		model_close(&s.model);
	}
	eval_result_free(&first);
}

/* Guessing by hand: the values stated so far, each as likely as it is frequent. */
static void test_references(void **state)
{
	(void)state;
	enum { SEQUENCES = 50 };
	struct setup s;
	setup_open(&s, "nope", "none", 5);
	struct eval_result r = evaluate(&s, TRAIN_LENGTH, SEQUENCES);
	struct batch_source source = { &s.data.task, TRAIN_LENGTH, TRAIN_LENGTH, 1, STREAM_REPORT };
	struct batch b;
	double log_sum = 0, p_sum = 0;
	int scored = 0;
	assert_int_equal(batch_open(&source, SEQUENCES, &b).code, ERR_NONE);
	batch_make(&b, 0, SEQUENCES);
	for (int i = 0; i < SEQUENCES * TRAIN_LENGTH; i++) {
		if (b.target[i] < 0 || b.group[i] != 0)
			continue;
		int same = 0, stated = 0;
		for (int t = i / TRAIN_LENGTH * TRAIN_LENGTH; t < i; t++) {
			same += b.token[t] == b.target[i];
			stated += b.token[t] >= 34 && b.token[t] < 66;
		}
		log_sum += log((double)same / stated);
		p_sum += (double)same / stated;
		scored++;
	}
	batch_close(&b);
	assert_int_equal(r.references, 3);
	assert_string_equal(r.reference[0].name, "uniform over the values");
	assert_close(r.reference[0].perplexity, 32, 1e-12);
	assert_close(r.reference[0].accuracy, 1.0 / 32, 1e-12);
	assert_int_equal(r.reference[1].group, 0);
	assert_close(r.reference[1].perplexity, exp(-log_sum / scored), 1e-12);
	assert_close(r.reference[1].accuracy, p_sum / scored, 1e-12);
	assert_string_equal(r.reference[2].name, "the ideal reader of the last train_length tokens");
	assert_true(r.reference[2].perplexity == 1 && r.reference[2].accuracy == 1);
	eval_result_free(&r);
	model_close(&s.model);
}

static void test_factor(void **state)
{
	(void)state;
	static const struct {
		const char *scaling;
		double factor;
	} cases[] = { { "none", 1 }, { "ntk", 3 }, { "linear(factor=8)", 8 }, { "dynamic(alpha=2)", 5 } };
	for (int i = 0; i < 4; i++) {
		struct setup s;
		setup_open(&s, "rope", cases[i].scaling, 5);
		struct eval_result r = evaluate(&s, 3 * TRAIN_LENGTH, 1);
		assert_true(r.factor == cases[i].factor);
		assert_true(r.cell[ALL].nll_se == 0);
		eval_result_free(&r);
		model_close(&s.model);
	}
}

static void test_progress(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "nope", "none", 5);
	/* 16384 / 100 = 163 a lot at most: 170 in two lots of 85. */
	struct eval_request request = request_of(&s, 100, 170);
	struct eval_result r;
	struct progress p = { 0 };
	assert_int_equal(eval_run(&request, on_progress, &p, &r).code, ERR_NONE);
	eval_result_free(&r);
	assert_int_equal(p.calls, 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(p.done[i], (i + 1) * 85 * 100);
	assert_int_equal(p.total, 170 * 100);

	/* A length beyond a lot's tokens goes one sequence at a time. */
	p = (struct progress){ 0 };
	request = request_of(&s, 8200, 2);
	assert_int_equal(eval_run(&request, on_progress, &p, &r).code, ERR_NONE);
	eval_result_free(&r);
	assert_int_equal(p.calls, 2);
	assert_int_equal(p.done[1], 2 * 8200);
	model_close(&s.model);
}

static void test_memory(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "rope", "ntk", 5);
	size_t bytes[2];
	for (int i = 0; i < 2; i++) {
		struct transformer_request request = { .model = &s.model, .B = 1, .T = 8192 << i,
						       .scaling = &s.scaling };
		assert_int_equal(transformer_bytes(&request, &bytes[i]).code, ERR_NONE);
	}
	assert_true((double)bytes[1] < 2.2 * (double)bytes[0]);
	model_close(&s.model);
}

/* eval_check and eval_run refuse alike. */
static void assert_refused(const struct eval_request *request, const char *text)
{
	struct eval_result r;
	struct err e = eval_check(request), again = eval_run(request, NULL, NULL, &r);
	eval_result_free(&r);
	assert_int_equal(e.code, ERR_USAGE);
	assert_string_equal(e.text, again.text);
	if (!strstr(e.text, text))
		fail_msg("'%s' does not say '%s'", e.text, text);
}

static void test_check(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "rope", "ntk", 5);
	struct eval_request request = request_of(&s, 2 * TRAIN_LENGTH, 4);
	assert_int_equal(eval_check(&request).code, ERR_NONE);
	request.length = 10;
	assert_refused(&request, "length 10 is too short");
	request.length = TRAIN_LENGTH;
	s.model.V = 50;
	assert_refused(&request, "the model has 50 tokens, the task recall has 99");
	s.model.V = 99;
	s.model.options.hidden = 1 << 30;
	request.length = 4096;
	struct err e = eval_check(&request);
	assert_int_equal(e.code, ERR_USAGE);
	assert_non_null(strstr(e.text, "a length of 4096 tokens needs "));
	model_close(&s.model);

	setup_open(&s, "nope", "ntk", 5);
	request = request_of(&s, TRAIN_LENGTH, 4);
	assert_refused(&request, "ntk");
	model_close(&s.model);

	setup_open(&s, "learned", "none", 5);
	request = request_of(&s, TRAIN_LENGTH, 4);
	assert_int_equal(eval_check(&request).code, ERR_NONE);
	request.length = TRAIN_LENGTH + 1;
	assert_refused(&request, "learned");
	model_close(&s.model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_randomized),
		cmocka_unit_test(test_coupled),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_accuracy),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_same_sequences),
		cmocka_unit_test(test_references),
		cmocka_unit_test(test_factor),
		cmocka_unit_test(test_progress),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_check),
	};
	if (blas_start(2).code)
		return 1;
	return cmocka_run_group_tests_name("eval perplexity", tests, NULL, NULL);
}
