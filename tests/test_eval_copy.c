#include "eval/perplexity.h"
#include "model/base/blas.h"
#include "tests/model_case.h"

/* Copy through an evaluation: near and far, floors and baselines, as for recall. */

enum { TRAIN_LENGTH = 64, SEQUENCES = 24, SYMBOLS = 16 };
enum { COPY, NEAR, FAR, ALL, GROUPS };

static void evaluate(const char *task, int length, struct eval_result *out)
{
	struct model_options o = small_options("nope");
	o.train_length = TRAIN_LENGTH;
	struct data_options data;
	struct method scaling = scaling_named("none");
	struct model model;
	assert_ok(method_parse("task", task_at, task, &data.task));
	assert_ok(model_open(&o, task_of(&data.task)->vocabulary(&data.task), &model));
	layout_initialise(&model.layout, 7, model.value);
	struct eval_request r = { .model = &model, .data = &data, .scaling = &scaling, .length = length,
				  .sequences = SEQUENCES, .eval_seed = 1 };
	assert_ok(eval_check(&r));
	assert_ok(eval_run(&r, NULL, NULL, out));
	model_close(&model);
}

static void test_groups(void **state)
{
	(void)state;
	static const char *const name[GROUPS] = { "copy", "near", "far", "all" };
	for (int length = TRAIN_LENGTH; length <= 4 * TRAIN_LENGTH; length *= 2) {
		struct eval_result r;
		evaluate("copy", length, &r);
		assert_int_equal(r.groups, GROUPS);
		for (int g = 0; g < GROUPS; g++)
			assert_string_equal(r.group[g], name[g]);
		assert_int_equal(r.cell[COPY].scored, SEQUENCES * SYMBOLS);
		assert_int_equal(r.cell[ALL].scored, SEQUENCES * SYMBOLS);
		assert_int_equal(r.cell[NEAR].scored + r.cell[FAR].scored, SEQUENCES * SYMBOLS);
		/* A distance is the same for all of s. */
		assert_int_equal(r.cell[NEAR].scored % SYMBOLS, 0);
		assert_int_equal(r.cell[FAR].scored > 0, length > TRAIN_LENGTH);
		assert_true(r.cell[COPY].floor == 1 && r.cell[NEAR].floor == 1);
		eval_result_free(&r);
	}
}

static void test_baselines(void **state)
{
	(void)state;
	for (int length = TRAIN_LENGTH; length <= 4 * TRAIN_LENGTH; length *= 2) {
		struct eval_result r;
		evaluate("copy", length, &r);
		assert_int_equal(r.references, 3);
		assert_close(r.reference[0].perplexity, 64, 1e-12);
		assert_close(r.reference[1].perplexity, SYMBOLS, 1e-12);
		assert_close(r.reference[1].accuracy, 1.0 / SYMBOLS, 1e-12);
		/* Sure of what is near; else one of 49 to 64. */
		double near = (double)r.cell[NEAR].scored / (SEQUENCES * SYMBOLS), far = 1 - near;
		assert_true(r.reference[2].accuracy >= near + far / 64 && r.reference[2].accuracy <= near + far / 49);
		assert_true(r.reference[2].accuracy == 1 || length > TRAIN_LENGTH);
		eval_result_free(&r);
	}
}

/* Without a gap every distance is the length of s. */
static void test_classical(void **state)
{
	(void)state;
	struct eval_result r;
	evaluate("copy(gap=0)", TRAIN_LENGTH, &r);
	assert_int_equal(r.cell[NEAR].scored, SEQUENCES * 31);
	assert_int_equal(r.cell[FAR].scored, 0);
	eval_result_free(&r);
	evaluate("copy(gap=0)", 2 * TRAIN_LENGTH + 2, &r);
	assert_int_equal(r.cell[NEAR].scored, 0);
	assert_int_equal(r.cell[FAR].scored, SEQUENCES * 64);
	/* One place short of seeing the symbol, the reader knows it from the other 63. */
	assert_close(r.reference[2].accuracy, 1.0, 1e-12);
	eval_result_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_baselines),
		cmocka_unit_test(test_classical),
	};
	if (blas_start(1).code)
		return 1;
	return cmocka_run_group_tests_name("eval copy", tests, NULL, NULL);
}
