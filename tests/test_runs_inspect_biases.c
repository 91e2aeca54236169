#include "tests/model_case.h"
#include "tests/program.h"
#include "tests/reference_bias.h"

#include "model/weights.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What `inspect` says of encodings that add a bias to logits, against the oracle. */

enum { LAYERS = 2, HEADS = 3, TRAINED = 10, LENGTH = 21 };

static json_t *ask(const char *flags)
{
	char line[300];
	snprintf(line, sizeof line, "inspect --format=json --length=%d %s", LENGTH, flags);
	struct program_run r = program_run(line);
	if (r.code)
		fail_msg("%s: exit %d: %s", line, r.code, r.err);
	json_t *root = json_loads(r.out, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	program_run_free(&r);
	return root;
}

/* The float nearest to a limit such as 0.01 is not the limit. */
static void close_to(double found, double wanted, const char *what)
{
	double tolerance = sizeof(real) == sizeof(double) ? 1e-12 : 1e-8;
	if (!(fabs(found - wanted) <= tolerance * fmax(1, fabs(wanted))))
		fail_msg("%s is %.17g, not %.17g", what, found, wanted);
}

/* Writes a model of known values as model.safetensors; the oracle's biases of each layer and head [LENGTH][LENGTH]. */
static double *put_model(const char *label)
{
	struct model_options o = sized_options(label, 4 * HEADS, HEADS);
	struct model m;
	double positions[LENGTH], distance[LENGTH * LENGTH], *bias = TAKE(double, (LAYERS * HEADS * LENGTH * LENGTH));
	o.layers = LAYERS;
	o.train_length = TRAINED;
	assert_ok(model_open(&o, 11, &m));
	fill_normal(3, m.value, m.layout.size);
	char *path = program_path("model.safetensors");
	assert_ok(weights_write(&m, path, NULL, 0));
	free(path);
	for (int i = 0; i < LENGTH; i++) {
		positions[i] = i;
		for (int j = 0; j <= i; j++)
			distance[i * LENGTH + j] = i - j;
	}
	for (int i = 0; i < LAYERS * HEADS; i++)
		reference_biases(&m, i / HEADS, i % HEADS, LENGTH, positions, distance, bias + i * LENGTH * LENGTH);
	model_close(&m);
	return bias;
}

/* `bias` [layers and heads][distance]: those of the last query. */
static void by_distance(const char *label)
{
	double *wanted = put_model(label);
	json_t *found = ask("model.safetensors"), *bias = json_object_get(found, "bias");
	assert_int_equal(json_array_size(bias), LAYERS * HEADS);
	for (size_t i = 0; i < LAYERS * HEADS; i++) {
		const json_t *row = json_array_get(bias, i);
		assert_int_equal(json_array_size(row), LENGTH);
		for (size_t r = 0; r < LENGTH; r++)
			close_to(json_at(row, r), wanted[(i * LENGTH + LENGTH - 1) * LENGTH + LENGTH - 1 - r], label);
	}
	json_decref(found);
	free(wanted);
}

static void learned_by_distance(void **state)
{
	(void)state;
	by_distance("kerple");
	by_distance("kerple(kernel=power)");
	by_distance("t5(buckets=6,max_distance=12,per_layer=on)");
}

/* The heads' penalties are those biases at two distances. */
static void kerple_heads(void **state)
{
	(void)state;
	double *bias = put_model("kerple");
	json_t *found = ask("model.safetensors");
	for (size_t h = 0; h < HEADS; h++)
		for (size_t layer = 0; layer < LAYERS; layer++) {
			const double *last = bias + ((layer * HEADS + h) * LENGTH + LENGTH - 1) * LENGTH;
			const json_t *trained = json_object_get(found, "trained_penalties"),
				     *penalties = json_object_get(found, "penalties");
			close_to(json_at(json_array_get(trained, h), layer), -last[LENGTH - TRAINED], "trained");
			close_to(json_at(json_array_get(penalties, h), layer), -last[0], "longest");
		}
	json_decref(found);
	free(bias);
}

/* Rows of distance and bias, of the query `last`. */
static void check_query(const json_t *rows, const double *bias, int last)
{
	assert_int_equal(json_array_size(rows), 17);
	for (size_t i = 0; i < 17; i++) {
		const json_t *row = json_array_get(rows, i), *found = json_object_get(row, "bias");
		int distance = (int)json_number(row, "distance");
		assert_int_equal(distance, last * (int)i / 16);
		assert_int_equal(json_array_size(found), LAYERS * HEADS);
		for (size_t h = 0; h < LAYERS * HEADS; h++)
			close_to(json_at(found, h), bias[((int)h * LENGTH + last) * LENGTH + last - distance], "fire");
	}
}

static void fire_queries(void **state)
{
	(void)state;
	double *bias = put_model("fire(width=7,init_length=5)");
	json_t *found = ask("model.safetensors");
	check_query(json_object_get(found, "trained_biases"), bias, TRAINED - 1);
	check_query(json_object_get(found, "biases"), bias, LENGTH - 1);
	assert_int_equal(json_array_size(json_object_get(found, "thresholds")), LAYERS);
	json_decref(found);
	free(bias);
}

/* The golden file has the distances below 6. */
static void sandwich_distances(void **state)
{
	(void)state;
	json_t *root = golden_json("sandwich");
	const json_t *golden = json_object_get(golden_part(root, 0, "expected"), "bias_nemo");
	json_t *found = ask("--encoding=sandwich --sandwich-width=8 --sandwich-start=1 --heads=4 --head-dim=4");
	const json_t *distances = json_object_get(found, "distances"), *biases = json_object_get(found, "biases");
	static const double wanted[] = { 0, 1, 2, 4, 8, 16 };
	assert_int_equal(json_array_size(distances), 6);
	for (size_t i = 0; i < 6; i++)
		assert_true(json_at(distances, i) == wanted[i]);
	for (size_t i = 0; i < 4; i++)
		for (size_t h = 0; h < 4; h++) {
			const json_t *last = json_array_get(json_array_get(golden, h), 5);
			close_to(json_at(json_array_get(biases, i), h), json_at(last, 5 - (size_t)wanted[i]),
				 "sandwich");
		}
	json_decref(found);
	json_decref(root);
}

static void hard_alibi_windows(void **state)
{
	(void)state;
	json_t *found = ask("--encoding=hard_alibi --hard-alibi-step=3 --heads=4 --head-dim=4");
	const json_t *windows = json_object_get(found, "windows");
	assert_int_equal(json_array_size(windows), 4);
	assert_true(json_at(windows, 0) == 3 && json_at(windows, 1) == 6);
	assert_true(json_is_null(json_array_get(windows, 2)) && json_is_null(json_array_get(windows, 3)));
	json_decref(found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(learned_by_distance), cmocka_unit_test(kerple_heads),
		cmocka_unit_test(fire_queries),	       cmocka_unit_test(sandwich_distances),
		cmocka_unit_test(hard_alibi_windows),
	};
	return cmocka_run_group_tests_name("inspect biases", tests, program_setup_own, program_teardown);
}
