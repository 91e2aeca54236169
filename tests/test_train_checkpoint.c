#include "tests/model_case.h"

#include "model/base/blas.h"
#include "model/base/io.h"
#include "model/weights.h"
#include "train/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Checkpoints: a training that goes on from one ends as if it had never stopped, and a file that is not exactly one of
 * this training is refused. */

#define T 40
#define STEPS 4

static char folder[FOLDER_PATH];

static int set_up(void **state)
{
	(void)state;
	return folder_make(folder);
}

static int tear_down(void **state)
{
	(void)state;
	return folder_remove(folder);
}

/* A path in the folder, one of a few that are used in turn. */
static const char *at(const char *name)
{
	static char path[4][FOLDER_PATH + 64];
	static int next;
	char *here = path[next++ % 4];
	snprintf(here, sizeof path[0], "%s/%s", folder, name);
	return here;
}

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
	struct data_options data;
	struct train_options train;
	struct model model;
	struct training *training;
	struct training_state state;
};

static void job_open(struct job *j, const struct model_options *model)
{
	struct model_options options = *model;
	options.train_length = T;
	*j = (struct job){ 0 };
	set_defaults(data_option_rows, &j->data);
	set_defaults(train_option_rows, &j->train);
	j->train.batch = 2;
	j->train.steps = STEPS;
	j->train.warmup = 2;
	j->train.lr = 0.01;
	assert_ok(model_open(&options, task_of(&j->data.task)->vocabulary(&j->data.task), &j->model));
	assert_ok(training_open(&j->model, &j->data, &j->train, &j->training));
	j->state = training_state(j->training);
	training_begin(j->training);
}

static void job_close(struct job *j)
{
	training_close(j->training);
	model_close(&j->model);
}

static void job_step(struct job *j)
{
	struct step_report report;
	assert_ok(training_step(j->training, &report));
}

static size_t slab_size(const struct job *j)
{
	return j->model.layout.size * sizeof(real);
}

static void assert_same(const struct job *a, const struct job *b)
{
	assert_int_equal(*a->state.step, *b->state.step);
	assert_memory_equal(a->model.value, b->model.value, slab_size(a));
	assert_memory_equal(a->state.m, b->state.m, slab_size(a));
	assert_memory_equal(a->state.v, b->state.v, slab_size(a));
}

static struct err write_to(const struct job *j, const char *name)
{
	const struct metadata extra = { "data", "{}" };
	return checkpoint_write(j->training, at(name), &extra, 1);
}

static struct err read_from(struct job *j, const char *name)
{
	struct safetensors file;
	TRY(safetensors_read(at(name), &file));
	struct err e = checkpoint_read(j->training, &file, name);
	safetensors_free(&file);
	return e;
}

/* A new training, whose weights, moments and step say something else, goes on from the file. */
static void go_on(struct job *j, const struct model_options *model, const char *name)
{
	job_open(j, model);
	j->train.seed++;
	training_begin(j->training);
	job_step(j);
	j->train.seed--;
	assert_ok(read_from(j, name));
}

/* Training and model hold the address of their job's parts, so a job stays where it is: two take turns. */
static void assert_interrupted_is_straight(const struct model_options *model)
{
	struct job straight, job[2];
	int now = 0;
	job_open(&straight, model);
	job_open(&job[now], model);
	for (int step = 0; step < STEPS; step++) {
		assert_ok(write_to(&job[now], "stop"));
		go_on(&job[!now], model, "stop");
		assert_same(&job[!now], &job[now]);
		job_close(&job[now]);
		now = !now;
		job_step(&straight);
		job_step(&job[now]);
		assert_same(&job[now], &straight);
	}
	job_close(&straight);
	job_close(&job[now]);
}

static void test_every_encoding(void **state)
{
	(void)state;
	for (int i = 0; position_at(i); i++) {
		struct method method = method_default(position_at(i));
		struct model_options model = model_case_options(&method);
		assert_interrupted_is_straight(&model);
	}
}

static void test_tied_head(void **state)
{
	(void)state;
	struct model_options model = small_options("rope");
	model.tied = true;
	assert_interrupted_is_straight(&model);
}

/* Equal trainings are equal bytes, in the canonical form of safetensors. */
static void test_canonical(void **state)
{
	(void)state;
	struct model_options model = small_options("t5");
	struct job one, other;
	job_open(&one, &model);
	job_step(&one);
	assert_ok(write_to(&one, "one"));
	go_on(&other, &model, "one");
	assert_ok(write_to(&other, "other"));
	char *a, *b;
	size_t size, again;
	uint64_t header;
	assert_ok(io_read(at("one"), &a, &size));
	assert_ok(io_read(at("other"), &b, &again));
	assert_int_equal(size, again);
	assert_memory_equal(a, b, size);
	memcpy(&header, a, sizeof header);
	assert_int_equal(header % 8, 0);
	assert_int_equal(size, 8 + header + 3 * slab_size(&one));
	free(a), free(b);
	job_close(&one);
	job_close(&other);
}

static void test_metadata(void **state)
{
	(void)state;
	struct model_options model = small_options("alibi");
	struct safetensors file;
	struct job j;
	job_open(&j, &model);
	job_step(&j);
	job_step(&j);
	assert_ok(write_to(&j, "file"));
	assert_ok(safetensors_read(at("file"), &file));
	assert_string_equal(safetensors_metadata(&file, "step"), "2");
	assert_string_equal(safetensors_metadata(&file, "format"), CHECKPOINT_FORMAT);
	assert_string_equal(safetensors_metadata(&file, "data"), "{}");
	assert_int_equal(file.count, 3 * layout_count(&j.model.layout));
	for (int i = 0; i < file.count; i++)
		assert_int_equal(file.tensor[i].dtype, sizeof(real) == 4 ? DTYPE_F32 : DTYPE_F64);
	safetensors_free(&file);
	job_close(&j);
}

/* ---- What is not finite ---- */

static real *slab_of(struct job *j, int slab)
{
	return slab == 0 ? j->model.value : slab == 1 ? j->state.m : j->state.v;
}

static const char *const slab_prefix[3] = { "", "adam.m.", "adam.v." };
static const char poisoned[] = "model.layers.1.mlp.up_proj.weight";

/* Writes whatever the training holds, under a right checksum. */
static void write_slabs(const struct job *j, int slabs, const char *format, const char *step, const char *name)
{
	const struct weights_slab slab[4] = { { "", j->model.value }, { "adam.m.", j->state.m },
					      { "adam.v.", j->state.v }, { "adam.w.", j->state.v } };
	const struct metadata extra = { "step", step };
	assert_ok(weights_write_slabs(&j->model, slab, slabs, format, at(name), &extra, step ? 1 : 0));
}

static void assert_refuses_poison(int slab, double poison)
{
	struct model_options model = small_options("rope");
	struct job j;
	char *before, *after, named[160];
	size_t size, size_after;
	job_open(&j, &model);
	job_step(&j);
	assert_ok(write_to(&j, "file"));
	assert_ok(io_read(at("file"), &before, &size));
	const struct parameter *p = layout_find(&j.model.layout, poisoned);
	slab_of(&j, slab)[p->offset + p->size - 1] = (real)poison;
	snprintf(named, sizeof named, "step 1: after the update %s%s is not finite", slab_prefix[slab], poisoned);
	assert_err(write_to(&j, "file"), ERR_DIVERGED, named);
	assert_ok(io_read(at("file"), &after, &size_after));
	assert_int_equal(size, size_after);
	assert_memory_equal(before, after, size);
	free(before), free(after);

	write_slabs(&j, 3, CHECKPOINT_FORMAT, "1", "bad");
	snprintf(named, sizeof named, "%s%s is not finite", slab_prefix[slab], poisoned);
	assert_err(read_from(&j, "bad"), ERR_USAGE, named);
	job_close(&j);
}

static void test_not_finite(void **state)
{
	(void)state;
	const double poison[] = { (double)NAN, (double)INFINITY, -(double)INFINITY };
	for (int slab = 0; slab < 3; slab++)
		assert_refuses_poison(slab, poison[slab]);
}

/* ---- What is not this training's ---- */

static void test_other_files(void **state)
{
	(void)state;
	struct model_options model = small_options("rope"), wide = sized_options("rope", 48, 2);
	struct model_options table = small_options("t5");
	struct job j, other;
	job_open(&j, &model);
	job_open(&other, &wide);
	assert_ok(write_to(&other, "wide"));
	assert_err(read_from(&j, "wide"), ERR_USAGE, "wide: ");
	job_close(&other);
	job_open(&other, &table);
	assert_ok(write_to(&other, "table"));
	assert_err(read_from(&j, "table"), ERR_USAGE, "model.position");
	assert_ok(write_to(&j, "rope"));
	assert_err(read_from(&other, "rope"), ERR_USAGE, "model.position");
	job_close(&other);

	assert_ok(weights_write(&j.model, at("model"), NULL, 0));
	assert_err(read_from(&j, "model"), ERR_USAGE, "format ropewalk-1 where " CHECKPOINT_FORMAT " is read");
	write_slabs(&j, 3, "ropewalk-checkpoint-2", "1", "format");
	assert_err(read_from(&j, "format"), ERR_USAGE, "format ropewalk-checkpoint-2");
	write_slabs(&j, 2, CHECKPOINT_FORMAT, "1", "two");
	assert_err(read_from(&j, "two"), ERR_USAGE, "adam.v.model");
	write_slabs(&j, 4, CHECKPOINT_FORMAT, "1", "four");
	assert_err(read_from(&j, "four"), ERR_USAGE, "tensor adam.w.");
	job_close(&j);
}

static void test_steps(void **state)
{
	(void)state;
	static const char *const wrong[] = { "-1", "5", "1.5", "", "x", "99999999999999999999", NULL };
	struct model_options model = small_options("rope");
	struct job j;
	job_open(&j, &model);
	for (int i = 0; i < (int)(sizeof wrong / sizeof *wrong); i++) {
		write_slabs(&j, 3, CHECKPOINT_FORMAT, wrong[i], "file");
		assert_err(read_from(&j, "file"), ERR_USAGE, "a whole number from 0 to 4 is wanted");
		assert_int_equal(*j.state.step, 0);
	}
	for (int step = 0; step <= STEPS; step++) {
		char text[8];
		snprintf(text, sizeof text, "%d", step);
		write_slabs(&j, 3, CHECKPOINT_FORMAT, text, "file");
		assert_ok(read_from(&j, "file"));
		assert_int_equal(*j.state.step, step);
	}
	job_close(&j);
}

/* Every single byte counts. */
static void test_damage(void **state)
{
	(void)state;
	struct model_options model = small_options("nope");
	struct job j;
	char *data;
	size_t size;
	uint64_t header;
	job_open(&j, &model);
	assert_ok(write_to(&j, "file"));
	assert_ok(io_read(at("file"), &data, &size));
	memcpy(&header, data, sizeof header);
	size_t place[] = { 0, 9, 8 + header / 2, 8 + header, size / 2, size - 1 };
	for (int i = 0; i < (int)(sizeof place / sizeof *place); i++) {
		data[place[i]] ^= 1;
		assert_ok(io_write(at("bad"), data, size));
		data[place[i]] ^= 1;
		assert_int_equal(read_from(&j, "bad").code, ERR_USAGE);
	}
	size_t length[] = { 0, 7, 8, 8 + header, size - 1 };
	for (int i = 0; i < (int)(sizeof length / sizeof *length); i++) {
		assert_ok(io_write(at("bad"), data, length[i]));
		assert_int_equal(read_from(&j, "bad").code, ERR_USAGE);
	}
	free(data);
	job_close(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_encoding), cmocka_unit_test(test_tied_head),
		cmocka_unit_test(test_canonical),      cmocka_unit_test(test_metadata),
		cmocka_unit_test(test_not_finite),     cmocka_unit_test(test_other_files),
		cmocka_unit_test(test_steps),          cmocka_unit_test(test_damage),
	};
	if (blas_start(2).code)
		return 1;
	return cmocka_run_group_tests_name("train checkpoint", tests, set_up, tear_down);
}
