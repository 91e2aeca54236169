#include "tests/hostile.h"

#include "model/base/blas.h"
#include "train/checkpoint.h"

#include <stdlib.h>
#include <string.h>

/* The checkpoint that a training goes on from, of a model that is as small as models get. */

static struct model model;
static struct training *training;

static void set_defaults(const struct option *row, void *options)
{
	for (; row->name; row++) {
		char *field = (char *)options + row->offset;
		struct err e = row->kind == OPTION_METHOD ?
				       method_parse(row->name, row->family, row->initial, (struct method *)(void *)field) :
				       option_parse(row, row->initial, (union option_value *)(void *)field);
		BUG_IF(e.code, "%s", e.text);
	}
}

static void open_training(void)
{
	static struct data_options data;
	static struct train_options train;
	struct model_options options;
	set_defaults(model_option_rows, &options);
	set_defaults(data_option_rows, &data);
	set_defaults(train_option_rows, &train);
	options.layers = options.heads = 1;
	options.width = options.hidden = 2;
	options.train_length = 20;
	train.batch = 1;
	struct err e = blas_start(1);
	if (!e.code)
		e = model_open(&options, task_of(&data.task)->vocabulary(&data.task), &model);
	if (!e.code)
		e = training_open(&model, &data, &train, &training);
	BUG_IF(e.code, "%s", e.text);
	training_begin(training);
}

static struct err read_checkpoint(const char *path)
{
	struct safetensors file;
	TRY(refusal(safetensors_read(path, &file), path));
	struct err e = refusal(checkpoint_read(training, &file, path), path);
	safetensors_free(&file);
	return e;
}

static real *values(void)
{
	struct training_state s = training_state(training);
	size_t bytes = s.model->layout.size * sizeof(real);
	char *copy = malloc(3 * bytes);
	BUG_IF(!copy, "no memory for values");
	memcpy(copy, s.model->value, bytes);
	memcpy(copy + bytes, s.m, bytes);
	memcpy(copy + 2 * bytes, s.v, bytes);
	return (real *)(void *)copy;
}

static struct err read(const char *path, const char *again)
{
	if (!training)
		open_training();
	TRY(read_checkpoint(path));
	int64_t step = *training_state(training).step;
	real *first = values();
	struct err e = checkpoint_write(training, again, NULL, 0);
	training_begin(training);
	if (!e.code)
		e = read_checkpoint(again);
	BUG_IF(e.code, "what was written is refused: %s", e.text);
	real *second = values();
	BUG_IF(step != *training_state(training).step, "another step was read");
	BUG_IF(memcmp(first, second, 3 * model.layout.size * sizeof(real)), "other numbers were read");
	free(first);
	free(second);
	return OK;
}

const struct target target_checkpoint = { "checkpoint", "checkpoint-0000000001.safetensors", read };
FUZZED(target_checkpoint)
