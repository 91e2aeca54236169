#include "tests/scores_case.h"

#include "tests/program.h"

#include <stdio.h>
#include <stdlib.h>

static struct tensor input[8];
static int inputs;

double *scores_add(const char *name, int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
	struct tensor t = { .name = name, .dtype = DTYPE_F64, .rank = rank, .shape = { a, b, c, d } };
	double *data = TAKE(double, (size_t)tensor_items(&t));
	t.data = data;
	assert_true(inputs < 8);
	input[inputs++] = t;
	return data;
}

double *scores_added(int index)
{
	assert_true(index < inputs);
	return (double *)(uintptr_t)input[index].data;
}

void scores_normal(const char *name, uint64_t seed, int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
	double *data = scores_add(name, rank, a, b, c, d);
	struct rng rng = rng_at(seed, STREAM_TUNE, 0);
	for (int64_t i = 0; i < tensor_items(&input[inputs - 1]); i++)
		data[i] = rng_normal(&rng);
}

void scores_positions(int T, const double *positions)
{
	memcpy(scores_add("positions", 1, T, 0, 0, 0), positions, (size_t)T * sizeof *positions);
}

void scores_put(void)
{
	char *path = program_path("in.safetensors");
	assert_ok(safetensors_write(path, input, inputs, NULL, 0));
	for (int i = 0; i < inputs; i++)
		free((void *)(uintptr_t)input[i].data);
	inputs = 0;
	free(path);
}

struct safetensors scores_run(const char *flags)
{
	char line[600];
	struct safetensors out;
	snprintf(line, sizeof line, "scores%s %s", FILES, flags);
	program_works(line);
	char *path = program_path("out.safetensors");
	assert_ok(safetensors_read(path, &out));
	free(path);
	return out;
}

const struct tensor *scores_tensor(const struct safetensors *file, const char *name)
{
	const struct tensor *t = safetensors_find(file, name);
	assert_non_null(t);
	assert_int_equal(t->dtype, REAL_DTYPE);
	return t;
}
