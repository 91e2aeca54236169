#include "tests/model_case.h"
#include "tests/sequence_case.h"

#include "data/batch.h"
#include "model/base/blas.h"
#include "train/adamw.h"
#include "train/checkpoint.h"
#include "train/course.h"

/* What changes from step to step: lengths, positions, rope that is dropped. */

#define LENGTH 48
#define STEPS 6

static void set_defaults(const struct option *row, void *to)
{
	for (; row->name; row++) {
		char *field = (char *)to + row->offset;
		if (row->kind == OPTION_METHOD)
			assert_ok(method_parse(row->name, row->family, row->initial, (struct method *)(void *)field));
		else
			assert_ok(option_parse(row, row->initial, (union option_value *)(void *)field));
	}
}

/* A training with its model. */
struct job {
	struct model_options options;
	struct data_options data;
	struct train_options train;
	struct model model;
	struct training *training;
};

static void job_set(struct job *j)
{
	*j = (struct job){ .options = small_options("rope") };
	j->options.train_length = LENGTH;
	j->options.positions_most = 100;
	set_defaults(data_option_rows, &j->data);
	set_defaults(train_option_rows, &j->train);
	j->train.batch = 2;
	j->train.steps = STEPS;
	j->train.warmup = 2;
	j->train.lr = 0.01;
}

static void job_open(struct job *j)
{
	assert_ok(course_check(&j->options, &j->data, &j->train));
	assert_ok(model_open(&j->options, task_of(&j->data.task)->vocabulary(&j->data.task), &j->model));
	assert_ok(training_open(&j->model, &j->data, &j->train, &j->training));
	training_begin(j->training);
}

static void job_close(struct job *j)
{
	training_close(j->training);
	model_close(&j->model);
}

static struct step_report job_step(struct job *j)
{
	struct step_report report;
	assert_ok(training_step(j->training, &report));
	return report;
}

static bool dropped(const struct model *m)
{
	return m->options.encoding.value[method_find(m->options.encoding.entry, "dropped")].integer;
}

/* Interrupted after every step, each time going on in a new training, it ends as it does straight. */
static void assert_interrupted_is_straight(const struct job *set)
{
	char folder[FOLDER_PATH], path[FOLDER_PATH + 8];
	assert_int_equal(folder_make(folder), 0);
	snprintf(path, sizeof path, "%s/stop", folder);
	struct job straight = *set, job[2] = { *set, *set };
	int now = 0;
	job_open(&straight);
	job_open(&job[now]);
	for (int step = 0; step < STEPS; step++) {
		struct safetensors file;
		assert_ok(checkpoint_write(job[now].training, path, NULL, 0));
		job_open(&job[!now]);
		assert_ok(safetensors_read(path, &file));
		assert_ok(checkpoint_read(job[!now].training, &file, path));
		safetensors_free(&file);
		job_close(&job[now]);
		now = !now;
		struct step_report a = job_step(&straight), b = job_step(&job[now]);
		assert_true(a.loss == b.loss && a.tokens == b.tokens);
		assert_memory_equal(straight.model.value, job[now].model.value,
				    straight.model.layout.size * sizeof(real));
		assert_int_equal(dropped(&straight.model), dropped(&job[now].model));
	}
	job_close(&straight);
	job_close(&job[now]);
	assert_int_equal(folder_remove(folder), 0);
}

static void test_interrupted(void **state)
{
	(void)state;
	for (int64_t positions = 0; positions < POSITIONS_TASK; positions++) {
		struct job j;
		job_set(&j);
		j.options.positions = positions;
		j.train.length_least = positions == POSITIONS_CONSECUTIVE ? 0 : 30;
		j.train.drop_rope_at = 3;
		assert_interrupted_is_straight(&j);
	}
	struct job coupled;
	job_set(&coupled);
	coupled.data.task = task_labelled("copy(coupled=on)");
	coupled.options.positions = POSITIONS_TASK;
	coupled.train.length_least = 40;
	assert_interrupted_is_straight(&coupled);
}

/* Each length from least to length is as likely, and a matter of (seed, step) alone. */
static void test_lengths(void **state)
{
	(void)state;
	struct job j;
	int count[5] = { 0 };
	job_set(&j);
	j.train.length = 34;
	j.train.length_least = 30;
	for (int64_t step = 0; step < 2000; step++)
		count[course_length(&j.options, &j.train, step) - 30]++;
	assert_drawn(count, NULL, 5, "lengths");
	int64_t sum = 0;
	for (int64_t step = 0; step < 10; step++)
		sum += course_length(&j.options, &j.train, step);
	assert_int_equal(course_tokens(&j.options, &j.train, 10), 2 * sum);
	j.train.length_least = 0;
	assert_int_equal(course_tokens(&j.options, &j.train, 10), 2 * 10 * 34);
	j.train.length = 0;
	assert_int_equal(course_longest(&j.options, &j.train), LENGTH);
	assert_int_equal(course_shortest(&j.options, &j.train), LENGTH);
}

/* Step by step from the parts: a batch of the drawn length at the drawn positions, under the trained scaling. */
static void replay(struct job *j, int64_t step, const struct step_report *r, const struct model *before, real *gradient)
{
	int T = course_length(&j->options, &j->train, step);
	struct numbering n = course_numbering(&j->options, &j->data);
	struct batch_source source = { &j->data.task, LENGTH, T, (uint64_t)j->train.seed, STREAM_TRAIN };
	double positions[2 * 100];
	struct batch b;
	struct transformer *t;
	assert_ok(batch_open(&source, 2, &b));
	batch_make(&b, (uint64_t)step * 2, 2);
	if (positions_move(&n) && !n.placed)
		positions_draw(&n, (uint64_t)j->train.seed, (uint64_t)step * 2, 2, T, positions);
	struct transformer_request request = { .model = before, .B = 2, .T = T, .each = positions_each(&n),
					       .positions = n.placed ? b.position
							  : positions_move(&n) ? positions : NULL,
					       .scaling = &j->options.trained_scaling, .gradients = true };
	assert_ok(transformer_open(&request, &t));
	struct outcome o = transformer_forward(t, b.token, b.target, NULL);
	assert_true(r->loss == o.nll_sum / (double)o.scored);
	assert_int_equal(r->tokens, 2 * T);
	assert_int_equal(r->length, j->train.length_least ? T : 0);
	transformer_backward(t, gradient);
	assert_true(r->grad_norm == gradient_norm(&before->layout, gradient));
	transformer_close(t);
	batch_close(&b);
}

static void assert_replayed(struct job *j)
{
	struct model before;
	job_open(j);
	real *gradient = TAKE(real, j->model.layout.size);
	size_t bytes = j->model.layout.size * sizeof(real);
	for (int64_t step = 0; step < 4; step++) {
		assert_ok(model_open(&j->model.options, j->model.V, &before));
		memcpy(before.value, j->model.value, bytes);
		assert_int_equal(dropped(&before), j->train.drop_rope_at && step >= j->train.drop_rope_at);
		struct step_report r = job_step(j);
		replay(j, step, &r, &before, gradient);
		model_close(&before);
	}
	free(gradient);
	job_close(j);
}

static void test_replayed(void **state)
{
	(void)state;
	for (int64_t positions = 0; positions < POSITIONS_TASK; positions++)
		for (int drawn = 0; drawn < 2; drawn++) {
			struct job j;
			job_set(&j);
			j.options.positions = positions;
			j.train.length = drawn ? 70 : 0;
			j.train.length_least = drawn ? 30 : 0;
			j.train.drop_rope_at = 2;
			assert_replayed(&j);
		}
	struct job j;
	job_set(&j);
	j.train.length = 96;
	j.options.trained_scaling = scaling_named("yarn(factor=2)");
	assert_replayed(&j);
	job_set(&j);
	j.data.task = task_labelled("copy(coupled=on)");
	j.options.positions = POSITIONS_TASK;
	assert_replayed(&j);
}

/* None of the sequences that a base of any length of training has seen. */
static void test_tuned_data(void **state)
{
	(void)state;
	struct job j;
	job_set(&j);
	assert_false(course_tunes(&j.train));
	assert_int_equal(course_first(&j.train, 7), 7 * 2);
	j.train.base = "0123456789abcdef0123456789abcdef";
	assert_true(course_tunes(&j.train));
	assert_true(course_first(&j.train, 0) > (uint64_t)1000000000 * 1048576);
	assert_int_equal(course_first(&j.train, 7) - course_first(&j.train, 0), 7 * 2);
}

static void test_plan(void **state)
{
	(void)state;
	struct job j;
	struct train_plan fixed, drawn, longer;
	job_set(&j);
	assert_ok(train_plan(&j.options, &j.data, &j.train, &fixed));
	j.train.length_least = 30;
	assert_ok(train_plan(&j.options, &j.data, &j.train, &drawn));
	assert_true(drawn.activations >= fixed.activations);
	assert_below((double)drawn.activations, 1.1 * (double)fixed.activations);
	j.train.length = 2 * LENGTH;
	assert_ok(train_plan(&j.options, &j.data, &j.train, &longer));
	assert_true(longer.activations > drawn.activations && longer.batch > drawn.batch);
}

static void test_refused(void **state)
{
	(void)state;
	struct job j;
	job_set(&j);
	j.train.length_least = LENGTH + 1;
	assert_err(course_check(&j.options, &j.data, &j.train), ERR_USAGE, "is more than the length");
	j.train.length_least = 10;
	assert_err(course_check(&j.options, &j.data, &j.train), ERR_USAGE, "length_least: recall: length 10");
	job_set(&j);
	j.train.drop_rope_at = STEPS;
	assert_err(course_check(&j.options, &j.data, &j.train), ERR_USAGE, "none is left");
	j.train.drop_rope_at = 2;
	j.options.encoding = small_options("rope(dropped=on)").encoding;
	assert_err(course_check(&j.options, &j.data, &j.train), ERR_USAGE, "from the start");
	j.options.encoding = small_options("alibi").encoding;
	assert_err(course_check(&j.options, &j.data, &j.train), ERR_USAGE, "no rope to remove");
	job_set(&j);
	j.options.encoding = small_options("nope").encoding;
	j.options.trained_scaling = scaling_named("yarn");
	assert_err(course_check(&j.options, &j.data, &j.train), ERR_USAGE, "trained_scaling");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interrupted), cmocka_unit_test(test_lengths), cmocka_unit_test(test_replayed),
		cmocka_unit_test(test_tuned_data), cmocka_unit_test(test_plan),	    cmocka_unit_test(test_refused),
	};
	if (blas_start(2).code)
		return 1;
	return cmocka_run_group_tests_name("train course", tests, NULL, NULL);
}
