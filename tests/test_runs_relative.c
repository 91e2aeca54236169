#include "tests/program.h"
#include "tests/scores_case.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* shaw, transformer_xl and deberta through `scores`: the upstream numbers. In double the program of doubles is asked.
 * Beside plain loops: test_model_relative.c. */

#ifdef ROPEWALK_DOUBLE
#define ROUNDING 1e-10
#else
#define ROUNDING 2e-5
#endif

/* ---- Arrays of golden files. ---- */

/* The numbers of nested arrays, in order, to `to`; how many there were. */
static size_t flatten(const json_t *from, double *to)
{
	size_t count = 0;
	if (json_is_number(from)) {
		*to = json_number_value(from);
		return 1;
	}
	assert_true(json_is_array(from));
	for (size_t i = 0; i < json_array_size(from); i++)
		count += flatten(json_array_get(from, i), to + count);
	return count;
}

/* Adds a tensor of a golden file's array. */
static double *add_array(const char *name, const json_t *from, int rank, int a, int b, int c, int d)
{
	double *to = scores_add(name, rank, a, b, c, d);
	int items = a * (rank > 1 ? b : 1) * (rank > 2 ? c : 1) * (rank > 3 ? d : 1);
	assert_int_equal(flatten(from, to), items);
	return to;
}

static const json_t *at3(const json_t *array, int h, int i, int j)
{
	return json_array_get(json_array_get(json_array_get(array, (size_t)h), (size_t)i), (size_t)j);
}

static double score(const struct tensor *t, int h, int i, int j)
{
	assert_true(t->rank == 4 && h < t->shape[1] && i < t->shape[2] && j < t->shape[3]);
	return tensor_item(t, ((int64_t)h * t->shape[2] + i) * t->shape[3] + j);
}

static void assert_masked(double found)
{
	assert_true(isinf(found) && found < 0);
}

/* y [T][rows] = x [T][columns] W^T + b, W and b of a golden file. */
static void project(const json_t *x, int T, const json_t *weight, const json_t *bias, int first, int rows, double *y)
{
	size_t columns = json_array_size(json_array_get(x, 0));
	for (int t = 0; t < T; t++)
		for (int r = 0; r < rows; r++) {
			double sum = bias ? json_at(bias, (size_t)(first + r)) : 0;
			for (size_t c = 0; c < columns; c++)
				sum += json_at(json_array_get(weight, (size_t)(first + r)), c) *
				       json_at(json_array_get(x, (size_t)t), c);
			y[t * rows + r] = sum;
		}
}

/* [T][H D] to a tensor [1][H][T][D] whose tokens begin `after` others of zeros. */
static double *add_heads(const char *name, const double *from, int H, int T, int D, int after)
{
	double *to = scores_add(name, 4, 1, H, T + after, D);
	for (int n = 0; n < T * H * D; n++) {
		int t = n / (H * D), h = n / D % H, d = n % D;
		to[(h * (T + after) + t + after) * D + d] = from[n];
	}
	return to;
}

/* ---- Golden files. ---- */

static void shaw_golden(void **state)
{
	(void)state;
	json_t *root = golden_json("shaw_relative");
	assert_int_equal(json_array_size(json_object_get(root, "cases")), 2);
	for (size_t c = 0; c < 2; c++) {
		const json_t *s = golden_part(root, c, "settings"), *e = golden_part(root, c, "expected");
		int H = (int)json_number(s, "heads"), T = (int)json_number(s, "T"), D = (int)json_number(s, "head_dim");
		int K = (int)json_number(s, "max_relative_position");
		char flags[100];
		add_array("q", json_object_get(s, "q"), 4, 1, H, T, D);
		add_array("k", json_object_get(s, "k"), 4, 1, H, T, D);
		add_array("v", json_object_get(s, "v"), 4, 1, H, T, D);
		double *keys = add_array("model.layers.0.self_attn.position.keys", json_object_get(s, "rel_keys"), 2,
					 2 * K + 1, D, 0, 0);
		add_array("model.layers.0.self_attn.position.values", json_object_get(s, "rel_values"), 2, 2 * K + 1, D,
			  0, 0);
		/* No key stands behind its query: these rows are not reached. */
		for (int i = (K + 1) * D; i < (2 * K + 1) * D; i++)
			keys[i] = 1e30;
		scores_put();
		snprintf(flags, sizeof flags, "--encoding=shaw(max_distance=%d)", K);
		struct safetensors out = scores_run(flags);
		for (int n = 0; n < H * T * T; n++) {
			int h = n / (T * T), i = n / T % T, j = n % T;
			double found = score(scores_tensor(&out, "scores"), h, i, j);
			if (j > i)
				assert_masked(found);
			else
				assert_close(found, json_number_value(at3(json_object_get(e, "logits"), h, i, j)),
					     ROUNDING);
		}
		const json_t *output = json_object_get(e, "output");
		for (int n = 0; n < H * T * D; n++)
			assert_close(tensor_item(scores_tensor(&out, "output"), n),
				     json_number_value(at3(output, n / (T * D), n / D % T, n % D)), ROUNDING);
		safetensors_free(&out);
	}
	json_decref(root);
}

/* Its memory is tokens before the sequence, of which only keys are known. */
static void transformer_xl_golden(void **state)
{
	(void)state;
	json_t *root = golden_json("transformer_xl");
	int checked = 0;
	assert_int_equal(json_array_size(json_object_get(root, "cases")), 2);
	for (size_t c = 0; c < 2; c++) {
		const json_t *s = golden_part(root, c, "settings"), *x = json_object_get(s, "x"),
			     *W = json_object_get(s, "W_qkv");
		const json_t *wanted = json_object_get(golden_part(root, c, "expected"), "logits");
		int H = (int)json_number(s, "heads"), T = (int)json_number(s, "T"), D = (int)json_number(s, "head_dim");
		int M = (int)json_number(s, "memory"), C = H * D;
		double *y = TAKE(double, (size_t)((T + M) * C));
		project(x, T, W, NULL, 0, C, y);
		add_heads("q", y, H, T, D, M);
		if (M)
			project(json_object_get(s, "mem"), M, W, NULL, C, C, y);
		project(x, T, W, NULL, C, C, y + M * C);
		add_heads("k", y, H, T + M, D, 0);
		free(y);
		add_array("model.position.u", json_object_get(s, "u"), 2, H, D, 0, 0);
		add_array("model.position.v", json_object_get(s, "v"), 2, H, D, 0, 0);
		add_array("model.layers.0.self_attn.position.r_proj", json_object_get(s, "W_r"), 2, C, C, 0, 0);
		scores_put();
		struct safetensors out = scores_run("--encoding=transformer_xl");
		for (int h = 0; h < H; h++)
			for (int i = 0; i < T; i++)
				for (int j = 0; j < T + M; j++) {
					double found = score(scores_tensor(&out, "scores"), h, M + i, j);
					if (j > i + M) {
						assert_masked(found);
						continue;
					}
					assert_close(found, json_number_value(at3(wanted, h, i, j)), ROUNDING);
					checked++;
				}
		safetensors_free(&out);
	}
	assert_int_equal(checked, 2 * 15 + 12);
	json_decref(root);
}

/* Adds a projection of a golden file. */
static void add_projection(const json_t *s, const char *name, const char *as, int C)
{
	add_array(as, json_object_get(json_object_get(s, name), "weight"), 2, C, C, 0, 0);
}

/* The file's logits have a bias on W_K, which moves all of a row: q_i.b / sqrt(D n). */
static void check_deberta(const json_t *s, const json_t *e, const double *q, const char *flags, int terms)
{
	int H = (int)json_number(s, "heads"), T = (int)json_number(s, "T"), D = (int)json_number(s, "head_dim");
	const json_t *bias = json_object_get(json_object_get(s, "pos_key_proj"), "bias");
	struct safetensors out = scores_run(flags);
	for (int n = 0; n < H * T * T; n++) {
		int h = n / (T * T), i = n / T % T, j = n % T;
		double found = score(scores_tensor(&out, "scores"), h, i, j), moved = 0;
		for (int d = 0; d < D; d++)
			moved += q[i * H * D + h * D + d] * json_at(bias, (size_t)(h * D + d));
		if (j > i)
			assert_masked(found);
		else
			assert_close(found + moved / sqrt(D * (1 + terms)),
				     json_number_value(at3(json_object_get(e, "logits"), h, i, j)), ROUNDING);
	}
	safetensors_free(&out);
}

static void deberta_golden(void **state)
{
	(void)state;
	static const char *const projection[] = { "query_proj", "key_proj" }, *const name[] = { "q", "k" };
	json_t *root = golden_json("deberta_disentangled");
	assert_int_equal(json_array_size(json_object_get(root, "cases")), 3);
	for (size_t c = 0; c < 3; c++) {
		const json_t *s = golden_part(root, c, "settings"), *rows = json_object_get(s, "rel_embeddings");
		int H = (int)json_number(s, "heads"), T = (int)json_number(s, "T"), D = (int)json_number(s, "head_dim");
		int C = H * D, terms = (int)json_array_size(json_object_get(s, "pos_att_type"));
		int buckets = (int)json_number(s, "position_buckets");
		double *content[2];
		char flags[160];
		for (int i = 0; i < 2; i++) {
			const json_t *of = json_object_get(s, projection[i]);
			content[i] = TAKE(double, (size_t)(T * C));
			project(json_object_get(s, "x"), T, json_object_get(of, "weight"), json_object_get(of, "bias"),
				0, C, content[i]);
			add_heads(name[i], content[i], H, T, D, 0);
		}
		add_array("model.position.table", rows, 2, (int)json_array_size(rows), C, 0, 0);
		add_projection(s, "pos_key_proj", "model.layers.0.self_attn.position.key_proj", C);
		if (terms == 2) {
			add_projection(s, "pos_query_proj", "model.layers.0.self_attn.position.query_proj", C);
			add_array("model.layers.0.self_attn.position.query_bias",
				  json_object_get(json_object_get(s, "pos_query_proj"), "bias"), 1, C, 0, 0, 0);
		}
		scores_put();
		snprintf(flags, sizeof flags, "--encoding=deberta(%s=%d%s%.0d%s)", buckets > 0 ? "buckets" : "span",
			 (int)json_array_size(rows) / 2, buckets > 0 ? ",max_distance=" : "",
			 buckets > 0 ? (int)json_number(s, "max_relative_positions") : 0,
			 terms == 2 ? ",bias=on" : ",terms=c2p");
		check_deberta(s, golden_part(root, c, "expected"), content[0], flags, terms);
		free(content[0]);
		free(content[1]);
	}
	json_decref(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shaw_golden),
		cmocka_unit_test(transformer_xl_golden),
		cmocka_unit_test(deberta_golden),
	};
	return cmocka_run_group_tests_name("relative scores", tests, program_setup_own, program_teardown);
}
