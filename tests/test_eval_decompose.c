#include "tests/model_case.h"

#include "data/stretch.h"
#include "eval/decompose.h"
#include "model/base/blas.h"
#include "model/base/threads.h"

#include <math.h>
#include <stdlib.h>

/* The four forms against what they claim to be, and the division of the failure by hand. */

enum { TRAIN_LENGTH = 32, MULTIPLE = 3, LENGTH = MULTIPLE * TRAIN_LENGTH, SEQUENCES = 4, GROUPS = 2, EVAL_SEED = 3 };

struct setup {
	struct model model;
	struct data_options data;
	struct method scaling;
};

static void setup_open(struct setup *s, const char *encoding, const char *scaling)
{
	struct model_options o = sized_options(encoding, 16, 2);
	o.train_length = TRAIN_LENGTH;
	s->data = (struct data_options){ .task = method_default(task_at(0)) };
	s->scaling = scaling_named(scaling);
	assert_ok(model_open(&o, task_of(&s->data.task)->vocabulary(&s->data.task), &s->model));
	layout_initialise(&s->model.layout, 5, s->model.value);
}

static void setup_close(struct setup *s)
{
	model_close(&s->model);
}

static struct eval_request request_of(const struct setup *s, int length)
{
	return (struct eval_request){ .model = &s->model, .data = &s->data, .scaling = &s->scaling, .length = length,
				      .sequences = SEQUENCES, .eval_seed = EVAL_SEED };
}

static struct decomposition decompose(const struct setup *s, int length)
{
	struct eval_request r = request_of(s, length);
	struct decomposition d;
	assert_ok(decompose_check(&r));
	assert_ok(decompose_run(&r, NULL, NULL, NULL, &d));
	assert_int_equal(d.groups, GROUPS);
	assert_int_equal(d.sequences, SEQUENCES);
	return d;
}

static bool same_forms(const struct decomposition *d, enum form a, enum form b)
{
	return !memcmp(d->tally[a], d->tally[b], SEQUENCES * GROUPS * sizeof *d->tally[a]);
}

/* Without positions, distances are nothing, and filler is all there is: to the bit. */
static void test_nope(void **state)
{
	(void)state;
	static const char *const scalings[] = { "none", "window" };
	for (int i = 0; i < 2; i++) {
		struct setup s;
		setup_open(&s, "nope", scalings[i]);
		struct decomposition d = decompose(&s, LENGTH);
		assert_true(same_forms(&d, FORM_POSITIONS, FORM_AS_IS));
		assert_true(same_forms(&d, FORM_TOKENS, FORM_BOTH));
		assert_false(same_forms(&d, FORM_AS_IS, FORM_BOTH));
		decomposition_free(&d);
		setup_close(&s);
	}
}

/* A form done here again: its tokens at positions written down token by token. */
static void form_by_hand(const struct stretch *s, enum form form, int *T, const struct sequence **tokens,
			 double *position)
{
	bool filled = form == FORM_TOKENS || form == FORM_BOTH;
	*T = filled ? LENGTH : TRAIN_LENGTH;
	*tokens = filled ? &s->sequence : &s->original;
	int original = -1;
	for (int t = 0; t < *T; t++) {
		if (filled && original + 1 < TRAIN_LENGTH && s->origin[original + 1] == t)
			original++;
		if (form == FORM_AS_IS || form == FORM_BOTH)
			position[t] = t;
		else
			position[t] = filled ? original : s->origin[t];
	}
}

static void check_by_hand(const struct setup *s, const struct decomposition *d, enum form form)
{
	struct batch_source source = { .task = &s->data.task, .train_length = TRAIN_LENGTH, .length = LENGTH,
				       .seed = EVAL_SEED, .stream = STREAM_REPORT };
	struct stretch stretch;
	assert_ok(stretch_open(&source, &stretch));
	for (int i = 0; i < SEQUENCES; i++) {
		double position[LENGTH], nll_sum = 0;
		const struct sequence *tokens;
		struct transformer *t;
		int T;
		stretch_make(&stretch, (uint64_t)i);
		form_by_hand(&stretch, form, &T, &tokens, position);
		struct transformer_request q = { .model = &s->model, .B = 1, .T = T, .positions = position,
						 .scaling = &s->scaling };
		assert_ok(transformer_open(&q, &t));
		struct outcome o = transformer_forward(t, tokens->token, tokens->target, NULL);
		int64_t scored = 0, correct = 0;
		for (int g = 0; g < GROUPS; g++) {
			const struct eval_tally *tally = &d->tally[form][i * GROUPS + g];
			scored += tally->scored;
			correct += tally->correct;
			nll_sum += tally->nll_sum;
		}
		assert_int_equal(scored, o.scored);
		assert_int_equal(correct, o.correct);
		assert_close(nll_sum, o.nll_sum, 1e-13);
		transformer_close(t);
	}
	stretch_close(&stretch);
}

static void test_forms(void **state)
{
	(void)state;
	static const char *const cases[][2] = { { "rope", "none" }, { "rope", "ntk" }, { "alibi", "none" },
						{ "sinusoidal", "none" } };
	for (int i = 0; i < 4; i++) {
		struct setup s;
		setup_open(&s, cases[i][0], cases[i][1]);
		struct decomposition d = decompose(&s, LENGTH);
		for (enum form form = 0; form < FORMS; form++)
			check_by_hand(&s, &d, form);
		for (enum form form = 1; form < FORMS; form++)
			assert_false(same_forms(&d, form, FORM_AS_IS));
		assert_false(same_forms(&d, FORM_TOKENS, FORM_BOTH));
		decomposition_free(&d);
		setup_close(&s);
	}
}

/* The long sequence as eval/perplexity would see it: all forms have its scored tokens, by the task's groups. */
static void test_groups(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "rope", "none");
	struct decomposition d = decompose(&s, LENGTH);
	assert_string_equal(d.group[0], "recall");
	assert_string_equal(d.group[1], "echo");
	for (enum form form = 0; form < FORMS; form++)
		for (int i = 0; i < SEQUENCES; i++) {
			/* 32 - 17 tokens are not pairs: 35 % of them queries, 25 % echoes. */
			assert_int_equal(d.tally[form][i * GROUPS].scored, 5);
			assert_int_equal(d.tally[form][i * GROUPS + 1].scored, 3);
		}
	decomposition_free(&d);
	setup_close(&s);
}

/* A factor of its own acts in every form; an automatic one is that of the positions. */
static void test_factors(void **state)
{
	(void)state;
	struct setup none, automatic, given;
	setup_open(&none, "rope", "none");
	setup_open(&automatic, "rope", "linear");
	setup_open(&given, "rope", "linear(factor=3)");
	struct decomposition n = decompose(&none, LENGTH), a = decompose(&automatic, LENGTH),
			     g = decompose(&given, LENGTH);
	size_t size = SEQUENCES * GROUPS * sizeof *n.tally[0];
	for (enum form form = 0; form < FORMS; form++) {
		bool far = form == FORM_POSITIONS || form == FORM_BOTH;
		assert_int_equal(!memcmp(a.tally[form], n.tally[form], size), !far);
		assert_int_equal(!memcmp(a.tally[form], g.tally[form], size), far);
	}
	decomposition_free(&n);
	decomposition_free(&a);
	decomposition_free(&g);
	setup_close(&none);
	setup_close(&automatic);
	setup_close(&given);
}

/* Unstretched, the four forms are one. */
static void test_one(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "rope", "yarn");
	struct decomposition d = decompose(&s, TRAIN_LENGTH);
	const struct decomposition *seed[] = { &d };
	for (enum form form = 1; form < FORMS; form++)
		assert_true(same_forms(&d, form, FORM_AS_IS));
	struct shares shares = decompose_shares(seed, 1, 0);
	assert_true(shares.known && !shares.failed && shares.failure == 0 && shares.failure_se == 0);
	decomposition_free(&d);
	setup_close(&s);
}

/* What an earlier length found as is need not be found again. */
static void test_before(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "rope", "ntk");
	struct decomposition first = decompose(&s, 2 * TRAIN_LENGTH), alone = decompose(&s, LENGTH), after;
	struct eval_request r = request_of(&s, LENGTH);
	double *sum = &first.tally[FORM_AS_IS][1].nll_sum, found = *sum;
	*sum = 1;
	assert_ok(decompose_run(&r, &first, NULL, NULL, &after));
	*sum = found;
	assert_true(after.tally[FORM_AS_IS][1].nll_sum == 1);
	for (enum form form = 1; form < FORMS; form++)
		assert_memory_equal(after.tally[form], alone.tally[form], SEQUENCES * GROUPS * sizeof *after.tally[0]);
	assert_memory_equal(first.tally[FORM_AS_IS], alone.tally[FORM_AS_IS],
			    SEQUENCES * GROUPS * sizeof *first.tally[0]);
	decomposition_free(&first);
	decomposition_free(&alone);
	decomposition_free(&after);
	setup_close(&s);
}

/* The results of two sequences and one group: NLL sums of the forms, 2 and 3 tokens scored. */
static struct decomposition by_hand(const double nll_sum[FORMS][2])
{
	static const char *const group[] = { "all of it" };
	struct decomposition d = { .groups = 1, .group = group, .sequences = 2 };
	for (enum form form = 0; form < FORMS; form++) {
		d.possible[form] = true;
		d.tally[form] = TAKE(struct eval_tally, 2);
		for (int i = 0; i < 2; i++)
			d.tally[form][i] = (struct eval_tally){ .scored = 2 + i, .correct = form == FORM_AS_IS ? 2 : 1,
								.nll_sum = nll_sum[form][i] };
	}
	return d;
}

static void test_shares(void **state)
{
	(void)state;
	static const double one[FORMS][2] = { { 0.2, 0.3 }, { 1, 1.5 }, { 1.5, 2 }, { 4, 6.5 } };
	static const double other[FORMS][2] = { { 0.2, 0.3 }, { 2, 3 }, { 1, 1.5 }, { 3, 4 } };
	struct decomposition d[] = { by_hand(one), by_hand(other) };
	const struct decomposition *seed[] = { &d[0], &d[1] };
	struct shares s = decompose_shares(seed, 1, 0);
	/* Means over 5 tokens: 0.1, 0.5, 0.7, 2.1. */
	assert_true(s.known && s.failed);
	assert_close(s.failure, 2.0, 1e-14);
	assert_close(s.position, 0.9, 1e-14); /* (0.4 + 1.4) / 2 */
	assert_close(s.crowding, 1.1, 1e-14); /* (0.6 + 1.6) / 2 */
	assert_close(s.interaction, 1.0, 1e-14);
	/* Differences by sequence 3.8 and 6.2, less 2 and 3 times the mean: -0.2 and 0.2. */
	assert_close(s.failure_se, sqrt(2 * 0.08) / 5, 1e-14);

	/* Both: 0.1, 0.75, 0.6, 1.75. By sequence 3.8 + 2.8 less 4 times 1.65, and 6.2 + 3.7 less 6 times: 0. */
	s = decompose_shares(seed, 2, 0);
	assert_close(s.failure, 1.65, 1e-14);
	assert_close(s.position, 0.9, 1e-14);
	assert_close(s.crowding, 0.75, 1e-14);
	assert_close(s.interaction, 0.5, 1e-14);
	assert_close(s.failure_se, 0, 1e-14);

	struct eval_cell cell = decompose_cell(seed, 2, 0, FORM_BOTH);
	assert_int_equal(cell.scored, 5);
	assert_close(cell.nll, 1.75, 1e-14);
	assert_close(cell.perplexity, sqrt(exp(2.1) * exp(1.4)), 1e-14);
	assert_close(cell.accuracy, 0.4, 1e-14);
	assert_close(decompose_cell(seed, 1, 0, FORM_AS_IS).accuracy, 0.8, 1e-14);
	decomposition_free(&d[0]);
	decomposition_free(&d[1]);
}

/* Less than 0.01 nats is no failure, nor is what one sequence alone brought about, nor a gain. */
static void test_no_failure(void **state)
{
	(void)state;
	static const struct {
		double nll_sum[FORMS][2];
		bool failed;
	} cases[] = {
		{ { { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0.0204, 0.0306 } }, true },
		{ { { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0.0196, 0.0294 } }, false },
		{ { { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0, 1 } }, false },
		{ { { 2, 3 }, { 0, 0 }, { 0, 0 }, { 1, 1.5 } }, false },
	};
	for (int i = 0; i < 4; i++) {
		struct decomposition d = by_hand(cases[i].nll_sum);
		const struct decomposition *seed[] = { &d };
		struct shares s = decompose_shares(seed, 1, 0);
		assert_true(s.known);
		assert_int_equal(s.failed, cases[i].failed);
		d.possible[FORM_BOTH] = false;
		assert_false(decompose_shares(seed, 1, 0).known);
		d.possible[FORM_BOTH] = true;
		for (enum form form = 0; form < FORMS; form++)
			memset(d.tally[form], 0, 2 * sizeof *d.tally[form]);
		assert_false(decompose_shares(seed, 1, 0).known);
		decomposition_free(&d);
	}
}

/* A table of learned positions ends at train_length: far positions are out of its reach, filler is not. */
static void test_learned(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "learned", "none");
	struct decomposition d = decompose(&s, LENGTH);
	for (enum form form = 0; form < FORMS; form++) {
		bool far = form == FORM_POSITIONS || form == FORM_BOTH;
		assert_int_equal(d.possible[form], !far);
		assert_int_equal(d.tally[form][0].scored > 0, !far);
	}
	check_by_hand(&s, &d, FORM_TOKENS);
	decomposition_free(&d);
	setup_close(&s);
	setup_open(&s, "learned(overflow=clamp)", "none");
	d = decompose(&s, LENGTH);
	assert_true(d.possible[FORM_POSITIONS] && d.possible[FORM_BOTH]);
	decomposition_free(&d);
	setup_close(&s);
}

/* Whatever encodings and scalings there are: they run, or the scaling is refused. */
static void test_every_method(void **state)
{
	(void)state;
	int ran = 0;
	for (int i = 0; position_at(i); i++) {
		for (int j = 0; scaling_at(j); j++) {
			struct setup s;
			struct decomposition d;
			setup_open(&s, position_at(i)->name, scaling_at(j)->name);
			struct eval_request r = request_of(&s, LENGTH);
			r.sequences = 2;
			struct err e = scaling_check(&s.scaling, &s.model.options, TRAIN_LENGTH);
			assert_int_equal(decompose_check(&r).code, e.code);
			if (!e.code) {
				assert_ok(decompose_run(&r, NULL, NULL, NULL, &d));
				for (enum form form = 0; form < FORMS; form++)
					for (int g = 0; g < GROUPS && d.possible[form]; g++)
						assert_true(isfinite(d.tally[form][g].nll_sum) &&
							    d.tally[form][g].scored);
				decomposition_free(&d);
				ran++;
			}
			setup_close(&s);
		}
	}
	assert_true(ran > 10);
}

/* To choose an option by: other sequences than those of a report. */
static void test_tune(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "rope", "none");
	struct decomposition report = decompose(&s, LENGTH), tune;
	struct eval_request r = request_of(&s, LENGTH);
	r.tune = true;
	assert_ok(decompose_run(&r, NULL, NULL, NULL, &tune));
	for (enum form form = 0; form < FORMS; form++)
		assert_true(tune.tally[form]->nll_sum != report.tally[form]->nll_sum);
	decomposition_free(&report);
	decomposition_free(&tune);
	setup_close(&s);
}

static void test_threads(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "rope", "ntk");
	threads_start(1);
	struct decomposition one = decompose(&s, LENGTH);
	threads_start(3);
	struct decomposition three = decompose(&s, LENGTH);
	threads_start(2);
	for (enum form form = 0; form < FORMS; form++)
		assert_memory_equal(one.tally[form], three.tally[form], SEQUENCES * GROUPS * sizeof *one.tally[0]);
	decomposition_free(&one);
	decomposition_free(&three);
	setup_close(&s);
}

static struct err on_progress(void *data, int64_t done, int64_t total)
{
	int64_t *last = data;
	assert_int_equal(done, *last + LENGTH);
	assert_int_equal(total, SEQUENCES * LENGTH);
	*last = done;
	return OK;
}

static void test_progress(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "rope", "none");
	struct eval_request r = request_of(&s, LENGTH);
	struct decomposition d;
	int64_t last = 0;
	assert_ok(decompose_run(&r, NULL, on_progress, &last, &d));
	assert_int_equal(last, SEQUENCES * LENGTH);
	decomposition_free(&d);
	setup_close(&s);
}

static void refused(const struct eval_request *r, const char *part)
{
	struct decomposition d;
	assert_err(decompose_check(r), ERR_USAGE, part);
	assert_err(decompose_run(r, NULL, NULL, NULL, &d), ERR_USAGE, part);
	decomposition_free(&d);
}

static void test_refused(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "alibi", "ntk");
	struct eval_request r = request_of(&s, LENGTH);
	refused(&r, "scaling: ntk changes RoPE's frequencies");
	s.scaling = scaling_named("none");
	r.length = TRAIN_LENGTH - 1;
	refused(&r, "less than train_length 32");
	r.length = LENGTH;
	s.model.V--;
	refused(&r, "the model has 98 tokens, the task recall has 99");
	s.model.V++;
	struct task rigid = *task_of(&s.data.task);
	rigid.may_insert = NULL;
	s.data.task.entry = &rigid.entry;
	refused(&r, "cannot be stretched");
	setup_close(&s);
}

static void test_memory(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "rope", "none");
	struct eval_request r = request_of(&s, LENGTH);
	s.model.options.hidden = 1 << 30;
	r.length = 4096;
	assert_err(decompose_check(&r), ERR_USAGE, "a length of 4096 tokens needs ");
	setup_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nope),
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_factors),
		cmocka_unit_test(test_one),
		cmocka_unit_test(test_before),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_no_failure),
		cmocka_unit_test(test_learned),
		cmocka_unit_test(test_every_method),
		cmocka_unit_test(test_tune),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_progress),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_memory),
	};
	if (blas_start(2).code)
		return 1;
	return cmocka_run_group_tests_name("eval decompose", tests, NULL, NULL);
}
