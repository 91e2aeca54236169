#include "tests/model_case.h"

#include "eval/paired.h"
#include "eval/parts.h"
#include "model/base/blas.h"
#include "model/base/stb.h"
#include "model/base/threads.h"

#include <math.h>
#include <stdlib.h>

/* Parts of a model against whole models that must be the same, and the comparison of pairs by hand. */

enum { TRAIN_LENGTH = 32, LENGTH = 3 * TRAIN_LENGTH, SEQUENCES = 3, EVAL_SEED = 4 };
#define YARN "yarn(ramp=rotations,beta_fast=4)"

struct setup {
	struct model model;
	struct data_options data;
	struct method scaling;
};

static void setup_open(struct setup *s, const char *encoding, const char *scaling, int layers, int heads)
{
	struct model_options o = sized_options(encoding, 16, heads);
	o.train_length = TRAIN_LENGTH;
	o.layers = layers;
	s->data = (struct data_options){ .task = method_default(task_at(0)) };
	s->scaling = scaling_named(scaling);
	assert_ok(model_open(&o, task_of(&s->data.task)->vocabulary(&s->data.task), &s->model));
	layout_initialise(&s->model.layout, 6, s->model.value);
}

static void setup_close(struct setup *s)
{
	model_close(&s->model);
}

static struct eval_request request_of(const struct setup *s)
{
	return (struct eval_request){ .model = &s->model, .data = &s->data, .scaling = &s->scaling, .length = LENGTH,
				      .sequences = SEQUENCES, .eval_seed = EVAL_SEED };
}

static struct eval_result whole(const struct setup *s, const char *scaling)
{
	struct eval_request r = request_of(s);
	struct method method = scaling_named(scaling);
	struct eval_result found;
	r.scaling = &method;
	assert_ok(eval_run(&r, NULL, NULL, &found));
	return found;
}

static struct eval_result parts(const struct setup *s, struct part part, enum pair_kind inside, enum pair_kind outside)
{
	struct eval_request r = request_of(s);
	struct part_setting setting = { part, inside, outside };
	struct eval_result found;
	assert_ok(parts_check_encoding(&s->model.options));
	assert_ok(parts_check(&r, setting));
	assert_ok(parts_run(&r, setting, NULL, NULL, &found));
	return found;
}

static bool is_same(const struct eval_result *a, const struct eval_result *b)
{
	assert_int_equal(a->groups, b->groups);
	return !memcmp(a->tally, b->tally, (size_t)(SEQUENCES * a->groups) * sizeof *a->tally);
}

/* Frees both. */
static void assert_same(struct eval_result a, struct eval_result b, bool same)
{
	assert_int_equal(is_same(&a, &b), same);
	eval_result_free(&a);
	eval_result_free(&b);
}

/* In no part, and in all of them: as without it, and as it is, to the bit. */
static void test_whole(void **state)
{
	(void)state;
	static const struct part nothing[] = { { 9, -1, -1 }, { 0, 9, -1 }, { -1, -1, 99 } };
	static const char *const encodings[] = { "rope", "rope(layout=half)", "xpos", "rope(rotary_dim=4)" };
	for (int i = 0; i < 4; i++) {
		struct setup s;
		setup_open(&s, encodings[i], YARN, 2, 2);
		assert_same(parts(&s, PART_ALL, PAIR_TRAINED, PAIR_TRAINED), whole(&s, "none"), true);
		assert_same(parts(&s, PART_ALL, PAIR_SCALED, PAIR_TRAINED), whole(&s, YARN), true);
		assert_same(whole(&s, YARN), whole(&s, "none"), false);
		for (int j = 0; j < 3; j++) {
			assert_same(parts(&s, nothing[j], PAIR_SCALED, PAIR_TRAINED), whole(&s, "none"), true);
			assert_same(parts(&s, nothing[j], PAIR_TRAINED, PAIR_SCALED), whole(&s, YARN), true);
		}
		setup_close(&s);
	}
}

/* Of two parts, one alone is all but the other, and neither is the whole. */
static void check_complement(const struct setup *s, struct part one, struct part other)
{
	assert_same(parts(s, one, PAIR_SCALED, PAIR_TRAINED), parts(s, other, PAIR_TRAINED, PAIR_SCALED), true);
	assert_same(parts(s, one, PAIR_SCALED, PAIR_TRAINED), parts(s, other, PAIR_SCALED, PAIR_TRAINED), false);
	assert_same(parts(s, one, PAIR_SCALED, PAIR_TRAINED), whole(s, "none"), false);
	assert_same(parts(s, one, PAIR_SCALED, PAIR_TRAINED), whole(s, YARN), false);
}

static void test_complement(void **state)
{
	(void)state;
	struct setup layers, heads, pairs;
	setup_open(&layers, "rope", YARN, 2, 2);
	setup_open(&heads, "rope", YARN, 1, 2);
	setup_open(&pairs, "rope", YARN, 2, 4);
	check_complement(&layers, (struct part){ 0, -1, -1 }, (struct part){ 1, -1, -1 });
	check_complement(&heads, (struct part){ 0, 0, -1 }, (struct part){ 0, 1, -1 });
	check_complement(&pairs, (struct part){ -1, -1, 0 }, (struct part){ -1, -1, 1 });
	setup_close(&layers);
	setup_close(&heads);
	setup_close(&pairs);
}

/* The same weights under another encoding. */
static struct eval_result as_encoding(const struct setup *s, const char *encoding)
{
	struct setup other;
	setup_open(&other, encoding, "none", (int)s->model.options.layers, (int)s->model.options.heads);
	memset(other.model.value, 0, other.model.layout.size * sizeof(real));
	model_inherit(&other.model, &s->model);
	struct eval_result found = whole(&other, "none");
	setup_close(&other);
	return found;
}

static void test_still(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "rope", "none", 2, 2);
	assert_same(parts(&s, PART_ALL, PAIR_STILL, PAIR_STILL), as_encoding(&s, "nope"), true);
	for (int layer = 0; layer < 2; layer++)
		assert_same(parts(&s, (struct part){ layer, -1, -1 }, PAIR_STILL, PAIR_SCALED),
			    as_encoding(&s, "rope(nope_every=2)"), layer == 1);
	/* The slowest of four pairs is what p_rope leaves out. */
	struct eval_result last = parts(&s, (struct part){ -1, -1, 3 }, PAIR_STILL, PAIR_SCALED);
	assert_same(last, as_encoding(&s, "rope(p_rope=0.75)"), true);
	setup_close(&s);
}

/* Queries without these components: what a naive removal is. */
static struct eval_result without(const struct setup *s, struct part part)
{
	struct setup other;
	int H = (int)s->model.options.heads, C = (int)s->model.options.width, D = C / H;
	setup_open(&other, "rope", "none", (int)s->model.options.layers, H);
	model_inherit(&other.model, &s->model);
	for (int l = 0; l < other.model.options.layers; l++)
		for (int row = 0; row < C; row++) {
			bool mine = (part.layer < 0 || part.layer == l) && (part.head < 0 || part.head == row / D) &&
				    (part.pair < 0 || part.pair == row % D / 2);
			real *q = other.model.value + other.model.layout.layer[l].q + row * C;
			if (mine)
				memset(q, 0, (size_t)C * sizeof *q);
		}
	struct eval_result found = whole(&other, "none");
	setup_close(&other);
	return found;
}

static void test_removed(void **state)
{
	(void)state;
	static const struct part part[] = { { -1, -1, 1 }, { 1, -1, -1 }, { 0, 1, -1 }, { 1, 0, 2 }, { -1, -1, -1 } };
	struct setup s;
	setup_open(&s, "rope", "none", 2, 2);
	for (int i = 0; i < 5; i++) {
		struct eval_result found = parts(&s, part[i], PAIR_REMOVED, PAIR_SCALED), naive = without(&s, part[i]);
		struct eval_result intact = whole(&s, "none");
		for (int j = 0; j < SEQUENCES * found.groups; j++) {
			assert_int_equal(found.tally[j].scored, naive.tally[j].scored);
			assert_close(found.tally[j].nll_sum, naive.tally[j].nll_sum, sizeof(real) == 8 ? 1e-12 : 1e-5);
		}
		assert_false(is_same(&found, &intact));
		eval_result_free(&found);
		eval_result_free(&naive);
		eval_result_free(&intact);
	}
	setup_close(&s);
}

static void test_list(void **state)
{
	(void)state;
	struct model_options o = sized_options("rope(nope_every=2)", 16, 2);
	struct part *part = NULL;
	parts_add(&o, PARTS_BY_LAYER, &part);
	parts_add(&o, PARTS_BY_HEAD, &part);
	parts_add(&o, PARTS_BY_PAIR, &part);
	assert_int_equal(arrlen(part), 1 + 2 + 4);
	assert_true(part[0].layer == 0 && part[0].head == -1 && part[0].pair == -1);
	assert_true(part[2].layer == 0 && part[2].head == 1 && part[2].pair == -1);
	assert_true(part[6].layer == -1 && part[6].head == -1 && part[6].pair == 3);
	arrfree(part);
}

static void test_frequencies(void **state)
{
	(void)state;
	struct setup s;
	double inv_freq[4];
	setup_open(&s, "rope(theta=10000,learned=on)", "none", 1, 2);
	const struct parameter *p = layout_find(&s.model.layout, "model.position.log_ratio");
	s.model.value[p->offset + 1] = 1;
	parts_frequencies(&s.model, &s.scaling, LENGTH, inv_freq);
	assert_close(inv_freq[0], 1, 1e-12);
	assert_close(inv_freq[1], 0.1 * M_E, 1e-12);
	setup_close(&s);
	setup_open(&s, "rope(theta=10000)", "linear(factor=2)", 1, 2);
	parts_frequencies(&s.model, &s.scaling, LENGTH, inv_freq);
	assert_close(inv_freq[1], 0.05, 1e-12);
	setup_close(&s);
}

static void test_refused(void **state)
{
	(void)state;
	struct model_options o = sized_options("rope", 16, 2), nope = sized_options("nope", 16, 2);
	o.train_length = nope.train_length = TRAIN_LENGTH;
	assert_err(parts_check_encoding(&nope), ERR_USAGE, "encoding: nope rotates no pairs");
	assert_err(parts_check_encoding(&nope), ERR_USAGE, "an encoding that does: rope, ");
	struct method window = scaling_named("window(size=8)"), both = scaling_named("yarn+logn"),
		      none = scaling_named("none"), one = scaling_named("linear(factor=1)");
	assert_err(parts_check_scaling(&window, &o, LENGTH), ERR_USAGE, "scaling: window changes which keys");
	assert_err(parts_check_scaling(&both, &o, LENGTH), ERR_USAGE, "scaling: logn scales whole queries");
	assert_err(parts_check_scaling(&none, &o, LENGTH), ERR_USAGE, "scaling: none changes no frequency");
	assert_err(parts_check_scaling(&one, &o, LENGTH), ERR_USAGE, "scaling: linear changes no frequency");
	struct method linear = scaling_named("linear");
	assert_ok(parts_check_scaling(&linear, &o, LENGTH));
	assert_err(parts_check_scaling(&linear, &nope, LENGTH), ERR_USAGE, "linear");
}

/* Whatever scalings there are: those that pass run in parts. */
static void test_every_scaling(void **state)
{
	(void)state;
	int ran = 0;
	for (int i = 0; scaling_at(i); i++) {
		struct setup s;
		setup_open(&s, "rope", scaling_at(i)->name, 2, 2);
		bool fits = !parts_check_scaling(&s.scaling, &s.model.options, LENGTH).code;
		bool apart = scaling_zoned(&s.scaling) || scaling_has_query_scale(&s.scaling);
		assert_false(fits && apart);
		if (fits) {
			assert_same(parts(&s, PART_ALL, PAIR_SCALED, PAIR_SCALED), whole(&s, scaling_at(i)->name),
				    true);
			assert_same(parts(&s, PART_ALL, PAIR_TRAINED, PAIR_TRAINED), whole(&s, "none"), true);
			ran++;
		}
		setup_close(&s);
	}
	assert_true(ran > 5);
}

static void test_threads(void **state)
{
	(void)state;
	struct setup s;
	struct part part = { 0, 1, -1 };
	setup_open(&s, "rope", YARN, 2, 2);
	threads_start(1);
	struct eval_result one = parts(&s, part, PAIR_SCALED, PAIR_TRAINED);
	threads_start(3);
	assert_same(one, parts(&s, part, PAIR_SCALED, PAIR_TRAINED), true);
	threads_start(2);
	setup_close(&s);
}

/* ---- In pairs, by hand: three sequences of one group ---- */

static struct eval_result by_hand(const int correct[3], const double nll[3])
{
	static const int scored[] = { 10, 20, 10 };
	struct eval_result r = { .groups = 1, .sequences = 3, .tally = TAKE(struct eval_tally, 3) };
	for (int i = 0; i < 3; i++) {
		r.tally[i] = (struct eval_tally){ scored[i], correct[i], nll[i] };
		r.cell[0].scored += scored[i];
	}
	return r;
}

static void test_paired(void **state)
{
	(void)state;
	struct eval_result from = by_hand((int[]){ 2, 4, 2 }, (double[]){ 10, 20, 10 });
	struct eval_result to = by_hand((int[]){ 10, 18, 10 }, (double[]){ 1, 2, 1 });
	struct eval_result it = by_hand((int[]){ 6, 12, 5 }, (double[]){ 5.5, 11, 5.5 });
	struct paired_change c = paired_change(&it, &from, 0, MEASURE_ACCURACY);
	/* Differences 4, 8, 3 of 10, 20, 10: 15 / 40; residuals 0.25, 0.5, -0.75. */
	assert_close(c.value, 0.375, 1e-14);
	assert_close(c.se, sqrt(1.5 * (0.0625 + 0.25 + 0.5625)) / 40, 1e-14);
	struct paired_share s = paired_share(&it, &from, &to, 0, MEASURE_ACCURACY);
	/* The way is 8, 14, 8: 15 / 30; residuals 0, 1, -1. */
	assert_int_equal(s.way, WAY_KNOWN);
	assert_close(s.value, 0.5, 1e-14);
	assert_close(s.se, sqrt(1.5 * 2) / 30, 1e-14);
	s = paired_share(&it, &from, &to, 0, MEASURE_NLL);
	assert_close(s.value, 0.5, 1e-14);
	assert_close(s.se, 0, 1e-14);
	assert_int_equal(paired_share(&it, &from, &from, 0, MEASURE_NLL).way, WAY_SHORT);
	/* All of the way is one sequence's. */
	struct eval_result one = by_hand((int[]){ 8, 4, 2 }, (double[]){ 10, 20, 10 });
	assert_int_equal(paired_share(&it, &from, &one, 0, MEASURE_ACCURACY).way, WAY_UNSURE);
	/* The other way round a share is the same: of the harm. */
	s = paired_share(&it, &to, &from, 0, MEASURE_NLL);
	assert_close(s.value, 0.5, 1e-14);
	free(from.tally);
	free(to.tally);
	free(it.tally);
	free(one.tally);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_complement),
		cmocka_unit_test(test_still),
		cmocka_unit_test(test_removed),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_frequencies),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_every_scaling),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_paired),
	};
	if (blas_start(2).code)
		return 1;
	return cmocka_run_group_tests_name("eval parts", tests, NULL, NULL);
}
