#include "data/batch.h"
#include "eval/decoding.h"
#include "eval/perplexity.h"
#include "model/base/blas.h"
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>

/* Evaluations token by token: what each kind of cache measures. */

#ifdef ROPEWALK_DOUBLE
#define TOLERANCE 1e-9
#else
#define TOLERANCE 1e-4
#endif

enum { TRAIN_LENGTH = 40, LENGTH = 100, SEQUENCES = 5 };

/* A model whose attention decides, and what it takes to evaluate it. */
struct setup {
	struct model model;
	struct data_options data;
	struct method scaling;
};

static void setup_open(struct setup *s, const char *encoding, const char *scaling)
{
	struct model_options o = { .layers = 2, .width = 16, .heads = 2, .hidden = 16, .rms_eps = 1e-5,
				   .train_length = TRAIN_LENGTH };
	assert_ok(method_parse("encoding", position_at, encoding, &o.encoding));
	assert_ok(method_parse("scaling", scaling_at, scaling, &s->scaling));
	s->data = (struct data_options){ .task = method_default(task_at(0)) };
	assert_ok(model_open(&o, task_of(&s->data.task)->vocabulary(&s->data.task), &s->model));
	fill_normal(7, s->model.value, s->model.layout.size);
	for (size_t i = 0; i < s->model.layout.size; i++)
		s->model.value[i] *= (real)0.5;
}

static struct eval_request request_of(const struct setup *s, int kv, int length)
{
	return (struct eval_request){ .model = &s->model, .data = &s->data, .scaling = &s->scaling, .length = length,
				      .sequences = SEQUENCES, .eval_seed = 1, .kv = kv };
}

static struct eval_result evaluate(const struct setup *s, int kv, int length)
{
	struct eval_request request = request_of(s, kv, length);
	struct eval_result r;
	assert_ok(eval_check(&request));
	assert_ok(eval_run(&request, NULL, NULL, &r));
	return r;
}

/* The greatest difference of a sequence's nll; what is scored is the same. */
static double difference(const struct eval_result *a, const struct eval_result *b)
{
	double greatest = 0;
	assert_int_equal(a->groups, b->groups);
	for (int i = 0; i < SEQUENCES * a->groups; i++) {
		assert_int_equal(a->tally[i].scored, b->tally[i].scored);
		greatest = fmax(greatest, fabs(a->tally[i].nll_sum - b->tally[i].nll_sum));
	}
	return greatest;
}

static double between(const char *encoding, const char *scaling, int kv, const char *other, int other_kv, int length)
{
	struct setup s, o;
	setup_open(&s, encoding, scaling);
	setup_open(&o, encoding, other);
	struct eval_result a = evaluate(&s, kv, length), b = evaluate(&o, other_kv, length);
	double differs = difference(&a, &b);
	for (int g = 0; g < a.groups && differs <= TOLERANCE; g++)
		assert_close(a.cell[g].nll, b.cell[g].nll, TOLERANCE);
	eval_result_free(&a);
	eval_result_free(&b);
	model_close(&s.model);
	model_close(&o.model);
	return differs;
}

static void unrotated_is_the_whole_sequence_in_blocks_of_one(void **state)
{
	static const char *const encoding[] = { "nope", "t5", "alibi", "sinusoidal", "rope" };
	(void)state;
	for (int i = 0; i < 5; i++)
		assert_below(between(encoding[i], "none", EVAL_KV_UNROTATED, "none", EVAL_KV_OFF, LENGTH), TOLERANCE);
	assert_below(between("rope", "dynamic", EVAL_KV_UNROTATED, "dynamic(block=1)", EVAL_KV_OFF, LENGTH), TOLERANCE);
	assert_below(between("rope", "yarn", EVAL_KV_UNROTATED, "yarn", EVAL_KV_OFF, LENGTH), TOLERANCE);
	assert_below(between("rope", "yarn", EVAL_KV_ROTATED, "yarn", EVAL_KV_OFF, LENGTH), TOLERANCE);
}

/* Within the trained length nothing is dynamic; past it a cache of rotated keys is another thing. */
static void rotated_parts_past_the_trained_length(void **state)
{
	(void)state;
	assert_below(between("rope", "dynamic", EVAL_KV_ROTATED, "none", EVAL_KV_OFF, TRAIN_LENGTH), TOLERANCE);
	assert_true(between("rope", "dynamic", EVAL_KV_ROTATED, "dynamic", EVAL_KV_UNROTATED, LENGTH) > 0.01);
	assert_true(between("rope", "dynamic", EVAL_KV_RECOMPUTE, "dynamic", EVAL_KV_UNROTATED, LENGTH) > 0.01);
	assert_true(between("rope", "dynamic", EVAL_KV_RECOMPUTE, "dynamic", EVAL_KV_OFF, LENGTH) > 0.01);
}

/* Where frequencies stay, recomputing is the whole sequence, to the bit. */
static void recompute_is_off_where_frequencies_stay(void **state)
{
	(void)state;
	assert_true(between("rope", "ntk", EVAL_KV_RECOMPUTE, "ntk", EVAL_KV_OFF, LENGTH) == 0);
	assert_true(between("alibi", "none", EVAL_KV_RECOMPUTE, "none", EVAL_KV_OFF, LENGTH) == 0);
}

/* Else it is, at each scored position, the last of a whole sequence that ends there. */
static void recompute_is_a_run_of_each_prefix(void **state)
{
	enum { T = 60 };
	struct setup s;
	struct batch b;
	(void)state;
	setup_open(&s, "rope", "dynamic");
	struct eval_result r = evaluate(&s, EVAL_KV_RECOMPUTE, T);
	struct batch_source source = { &s.data.task, TRAIN_LENGTH, T, 1, STREAM_REPORT };
	assert_ok(batch_open(&source, 1, &b));
	for (int i = 0; i < 2; i++) {
		double nll_sum = 0;
		batch_make(&b, (uint64_t)i, 1);
		for (int t = 0; t < T; t++) {
			struct transformer_request q = { .model = &s.model, .B = 1, .T = t + 1, .scaling = &s.scaling };
			struct transformer *prefix;
			int32_t target[T];
			if (b.target[t] < 0)
				continue;
			assert_ok(transformer_open(&q, &prefix));
			memset(target, 0xff, sizeof target);
			target[t] = b.target[t];
			nll_sum += transformer_forward(prefix, b.token, target, NULL).nll_sum;
			transformer_close(prefix);
		}
		assert_close(r.tally[i * r.groups + r.groups - 1].nll_sum, nll_sum, TOLERANCE);
	}
	batch_close(&b);
	eval_result_free(&r);
	model_close(&s.model);
}

struct progress {
	int64_t done, total;
	int calls, most;
};

static struct err on_progress(void *data, int64_t done, int64_t total)
{
	struct progress *p = data;
	assert_true(done >= p->done && done <= total);
	p->done = done;
	p->total = total;
	return ++p->calls == p->most ? err_failed(NULL, "enough") : OK;
}

static void progress_is_told_by_steps_and_may_end_it(void **state)
{
	static const int kv[] = { EVAL_KV_RECOMPUTE, EVAL_KV_UNROTATED };
	struct setup s;
	(void)state;
	setup_open(&s, "rope", "dynamic");
	for (int i = 0; i < 2; i++) {
		struct eval_request request = request_of(&s, kv[i], LENGTH);
		struct progress p = { 0 }, some = { .most = 30 };
		struct eval_result r;
		assert_ok(eval_run(&request, on_progress, &p, &r));
		assert_int_equal(p.done, p.total);
		assert_int_equal(p.total, LENGTH * SEQUENCES);
		assert_true(p.calls >= LENGTH);
		eval_result_free(&r);
		assert_err(eval_run(&request, on_progress, &some, &r), ERR_FAILED, "enough");
		assert_int_equal(some.calls, 30);
		assert_true(i ? some.done == 30 * SEQUENCES : some.done == 9 * SEQUENCES);
		eval_result_free(&r);
	}
	model_close(&s.model);
}

static void what_cannot_be_is_refused(void **state)
{
	struct setup s;
	(void)state;
	setup_open(&s, "rope", "dynamic+window");
	struct eval_request request = request_of(&s, EVAL_KV_ROTATED, LENGTH);
	assert_err(eval_check(&request), ERR_USAGE, "Use recompute");
	request.kv = EVAL_KV_RECOMPUTE;
	assert_ok(eval_check(&request));
	model_close(&s.model);
	setup_open(&s, "learned", "none");
	request = request_of(&s, EVAL_KV_UNROTATED, LENGTH);
	assert_err(eval_check(&request), ERR_USAGE, "length 100");
	model_close(&s.model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unrotated_is_the_whole_sequence_in_blocks_of_one),
		cmocka_unit_test(rotated_parts_past_the_trained_length),
		cmocka_unit_test(recompute_is_off_where_frequencies_stay),
		cmocka_unit_test(recompute_is_a_run_of_each_prefix),
		cmocka_unit_test(progress_is_told_by_steps_and_may_end_it),
		cmocka_unit_test(what_cannot_be_is_refused),
	};
	assert_ok(blas_start(1));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
