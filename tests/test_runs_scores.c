#include "tests/golden_flags.h"
#include "tests/program.h"
#include "tests/scores_case.h"

#include "model/position/scaling.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `scores` from the command line: golden numbers of every encoding and scaling through attention's own tiles,
 * masks, outputs. In double the program of doubles is asked. */

#ifdef ROPEWALK_DOUBLE
#define ROUNDING 1e-12
#else
#define ROUNDING 1e-5
#endif

/* Score of head h of sequence b: query i, key j. */
static double score(const struct tensor *t, int64_t b, int64_t h, int64_t i, int64_t j)
{
	assert_int_equal(t->rank, 4);
	assert_true(b < t->shape[0] && h < t->shape[1] && i < t->shape[2] && j < t->shape[3]);
	return tensor_item(t, ((b * t->shape[1] + h) * t->shape[2] + i) * t->shape[3] + j);
}

/* ---- Golden files. ---- */

/* Zero q and k leave the bias alone: wanted [H][T][T], masked above the diagonal. */
static void check_bias(const char *flags, const json_t *wanted)
{
	size_t H = json_array_size(wanted), T = json_array_size(json_array_get(wanted, 0));
	struct safetensors out = scores_run(flags);
	const struct tensor *t = scores_tensor(&out, "scores");
	assert_true(H > 0 && T > 0 && t->shape[1] == (int64_t)H && t->shape[3] == (int64_t)T);
	for (size_t h = 0; h < H; h++)
		for (size_t i = 0; i < T; i++)
			for (size_t j = 0; j < T; j++) {
				double found = score(t, 0, (int64_t)h, (int64_t)i, (int64_t)j);
				if (j > i)
					assert_true(isinf(found) && found < 0);
				else
					assert_close(found,
						     json_at(json_array_get(json_array_get(wanted, h), i), j),
						     ROUNDING);
			}
	safetensors_free(&out);
}

static void golden_alibi(void **state)
{
	(void)state;
	json_t *root = golden_json("alibi");
	int checked = 0;
	for (size_t i = 0; i < json_array_size(json_object_get(root, "cases")); i++) {
		const json_t *s = golden_part(root, i, "settings");
		const json_t *bias = json_object_get(golden_part(root, i, "expected"), "bias");
		if (!bias)
			continue;
		int H = (int)json_number(s, "heads"), T = (int)json_number(s, "T");
		scores_add("q", 4, 1, H, T, 3);
		scores_add("k", 4, 1, H, T, 3);
		scores_put();
		check_bias("--encoding=alibi --train-length=2", bias);
		checked++;
	}
	assert_int_equal(checked, 2);
	json_decref(root);
}

/* The table goes by the layout's name, or by another that is accepted. */
static void golden_t5(void **state)
{
	(void)state;
	json_t *root = golden_json("t5_bias");
	const json_t *s = golden_part(root, 3, "settings"), *table = json_object_get(s, "table");
	static const char *const names[] = { "model.position.table", "t5.table" };
	for (int n = 0; n < 2; n++) {
		int T = (int)json_number(s, "T"), H = (int)json_number(s, "heads"), R = (int)json_array_size(table);
		double *own = scores_add(names[n], 2, R, H, 0, 0);
		for (int i = 0; i < R * H; i++)
			own[i] = json_at(json_array_get(table, (size_t)(i / H)), (size_t)(i % H));
		scores_add("q", 4, 1, H, T, 2);
		scores_add("k", 4, 1, H, T, 2);
		scores_put();
		check_bias("--encoding=t5 --t5-buckets=8 --t5-max-distance=16 --train-length=4",
			   json_object_get(golden_part(root, 3, "expected"), "bias"));
	}
	json_decref(root);
}

/* [T][H][D] of the golden file to [1][H][T][D]. */
static void add_heads(const char *name, const json_t *from, int H, int T, int D)
{
	double *to = scores_add(name, 4, 1, H, T, D);
	for (int t = 0; t < T; t++)
		for (int h = 0; h < H; h++)
			for (int d = 0; d < D; d++)
				to[(h * T + t) * D + d] = json_at(
					json_array_get(json_array_get(from, (size_t)t), (size_t)h), (size_t)d);
}

static void golden_rope(void **state)
{
	(void)state;
	json_t *root = golden_json("rope_apply");
	int checked = 0;
	for (size_t c = 0; c < json_array_size(json_object_get(root, "cases")); c++) {
		const json_t *s = golden_part(root, c, "settings"), *positions = json_object_get(s, "positions");
		const json_t *wanted = json_object_get(golden_part(root, c, "expected"), "qk_interleaved");
		int D = (int)json_number(s, "head_dim"), H = (int)json_number(s, "heads");
		int T = (int)json_array_size(positions);
		double *at = scores_add("positions", 1, T, 0, 0, 0), last = 0;
		for (int t = 0; t < T; t++)
			at[t] = last = json_at(positions, (size_t)t);
		add_heads("q", json_object_get(s, "q"), H, T, D);
		add_heads("k", json_object_get(s, "k"), H, T, D);
		scores_put();
		char flags[FLAGS_TEXT] = "";
		flags_add(flags, "--encoding=rope --rope-theta=%.17g", json_number(s, "base"));
		struct safetensors out = scores_run(flags);
		const struct tensor *t = scores_tensor(&out, "scores");
		for (int n = 0; n < H * T * T; n++) {
			int h = n / (T * T), i = n / T % T, j = n % T;
			if (j > i)
				continue;
			const json_t *row = json_array_get(json_array_get(wanted, (size_t)h), (size_t)i);
			double product = json_at(row, (size_t)j);
			/* Angles are exact to a double's rounding of the position times the frequency. */
			assert_close(score(t, 0, h, i, j) * sqrt(D), product, fmax(ROUNDING, last * 1e-15) * 10);
			checked++;
		}
		safetensors_free(&out);
	}
	assert_int_equal(checked, 2 * (8 * 9 + 6 * 7 + 4 * 5) / 2);
	json_decref(root);
}

/* Queries and keys that Hugging Face rotates in halves, row t of head h. */
static double product_of(const json_t *e, int h, int i, int j, int D)
{
	const json_t *q = json_array_get(json_array_get(json_object_get(e, "q_half"), (size_t)i), (size_t)h);
	const json_t *k = json_array_get(json_array_get(json_object_get(e, "k_half"), (size_t)j), (size_t)h);
	double sum = 0;
	for (int d = 0; d < D; d++)
		sum += json_at(q, (size_t)d) * json_at(k, (size_t)d);
	return sum;
}

static void golden_rope_of_halves(void **state)
{
	(void)state;
	json_t *root = golden_json("rope_apply");
	const json_t *s = golden_part(root, 0, "settings"), *e = golden_part(root, 0, "expected");
	const json_t *positions = json_object_get(s, "positions");
	int D = (int)json_number(s, "head_dim"), H = (int)json_number(s, "heads");
	int T = (int)json_array_size(positions);
	double *at = scores_add("positions", 1, T, 0, 0, 0);
	for (int t = 0; t < T; t++)
		at[t] = json_at(positions, (size_t)t);
	double last = at[T - 1];
	add_heads("q", json_object_get(s, "q"), H, T, D);
	add_heads("k", json_object_get(s, "k"), H, T, D);
	scores_put();
	struct safetensors out = scores_run("--encoding=rope --rope-theta=10000 --rope-layout=half");
	const struct tensor *t = scores_tensor(&out, "scores");
	for (int h = 0; h < H; h++)
		for (int i = 0; i < T; i++)
			for (int j = 0; j <= i; j++)
				assert_close(score(t, 0, h, i, j) * sqrt(D), product_of(e, h, i, j, D),
					     fmax(ROUNDING, last * 1e-15) * 10);
	safetensors_free(&out);
	json_decref(root);
}

/* Scalable softmax: the scores of query i times s ln(i + 1), s the head's. */
static void scalable_softmax(void **state)
{
	(void)state;
	enum { H = 2, T = 5, D = 4 };
	static const double s[H] = { 0.25, 1.5 };
	scores_normal("q", 1, 4, 1, H, T, D);
	scores_normal("k", 2, 4, 1, H, T, D);
	scores_put();
	struct safetensors plain = scores_run("--encoding=rope");
	program_refuses("scores --encoding=rope --ssmax" FILES, "model.layers.0.self_attn.ssmax is missing", NULL);
	scores_normal("q", 1, 4, 1, H, T, D);
	scores_normal("k", 2, 4, 1, H, T, D);
	memcpy(scores_add("model.layers.0.self_attn.ssmax", 1, H, 0, 0, 0), s, sizeof s);
	scores_put();
	struct safetensors out = scores_run("--encoding=rope --ssmax");
	const struct tensor *without = scores_tensor(&plain, "scores"), *with = scores_tensor(&out, "scores");
	for (int h = 0; h < H; h++)
		for (int i = 0; i < T; i++)
			for (int j = 0; j <= i; j++)
				assert_close(score(with, 0, h, i, j), s[h] * log(i + 1) * score(without, 0, h, i, j),
					     ROUNDING);
	safetensors_free(&plain);
	safetensors_free(&out);
}

/* ---- Scalings, by what they do to single pairs. ---- */

/* Query n is the unit vector of pair n / 2's first half at the last position, its key the first or second half at
 * position 0: their score is a^2 cos or a^2 sin of the pair's angle, over sqrt(D). */
static void put_pairs(int D, double position)
{
	double *q = scores_add("q", 4, D, 1, 2, D), *k = scores_add("k", 4, D, 1, 2, D);
	for (int n = 0; n < D; n++) {
		q[(n * 2 + 1) * D + n / 2 * 2] = 1;
		k[n * 2 * D + n] = 1;
	}
	scores_positions(2, (double[]){ 0, position });
	scores_put();
}

/* One case: a cos and a sin of each pair, a the attention factor. */
static void check_pairs(const char *flags, int D, double position, double a, const double *cosine, const double *sine)
{
	put_pairs(D, position);
	struct safetensors out = scores_run(flags);
	const struct tensor *t = scores_tensor(&out, "scores");
	assert_int_equal(t->shape[0], D);
	for (int n = 0; n < D; n++) {
		double wanted = a * (n % 2 ? sine : cosine)[n / 2], found = score(t, n, 0, 1, 0) * sqrt(D);
		if (!(fabs(found - wanted) <= ROUNDING + position * 1e-15))
			fail_msg("%s, position %g: %s of pair %d is %.17g, not %.17g", flags, position,
				 n % 2 ? "sine" : "cosine", n / 2, found, wanted);
	}
	safetensors_free(&out);
}

static void numbers(const json_t *array, double *to)
{
	for (size_t i = 0; i < json_array_size(array); i++)
		to[i] = json_at(array, i);
}

/* Each `stride`-th case of frequencies from `first` on, seen at a position well past the trained length. */
static int golden_frequencies(const char *file, size_t first, size_t stride)
{
	json_t *root = golden_json(file);
	int checked = 0, length;
	char flags[FLAGS_TEXT];
	for (size_t i = first; i < json_array_size(json_object_get(root, "cases")); i += stride) {
		const json_t *s = golden_part(root, i, "settings"), *e = golden_part(root, i, "expected");
		const json_t *factor = json_object_get(e, "attention_factor");
		double inv_freq[64], cosine[64], sine[64], a = factor ? json_number_value(factor) : 1;
		int F = (int)json_array_size(json_object_get(e, "inv_freq"));
		assert_true(F <= 64);
		/* A sequence of no length that is known has no place in it. */
		if (!golden_flags(s, e, flags, &length) || json_is_null(json_object_get(s, "seq_len")))
			continue;
		double position = length ? length - 1 : 300;
		numbers(json_object_get(e, "inv_freq"), inv_freq);
		for (int m = 0; m < F; m++) {
			cosine[m] = a * cos(position * inv_freq[m]);
			sine[m] = a * sin(position * inv_freq[m]);
		}
		check_pairs(flags, 2 * F, position, a, cosine, sine);
		checked++;
	}
	json_decref(root);
	return checked;
}

static void golden_scalings(void **state)
{
	(void)state;
	assert_int_equal(golden_frequencies("rope_linear_pi", 15, 24), 1);
	assert_int_equal(golden_frequencies("rope_ntk_fixed", 15, 24), 1);
	assert_int_equal(golden_frequencies("rope_ntk_by_parts_paper", 14, 29), 2);
	assert_int_equal(golden_frequencies("rope_dynamic_ntk_hf", 4, 41), 3);
	assert_int_equal(golden_frequencies("rope_yarn_hf", 11, 23), 3);
}

/* Cosines and sines that other programs made, an attention factor included. */
static void golden_angles(void **state)
{
	(void)state;
	json_t *root = golden_json("rope_dynamic_jquesnelle");
	double cosine[64], sine[64];
	int length;
	char flags[FLAGS_TEXT];
	for (size_t i = 45; i < json_array_size(json_object_get(root, "cases")); i += 45) {
		const json_t *e = golden_part(root, i, "expected"), *s = golden_part(root, i, "settings");
		assert_true(golden_flags(s, e, flags, &length));
		numbers(json_object_get(e, "cos_last"), cosine);
		numbers(json_object_get(e, "sin_last"), sine);
		check_pairs(flags, (int)json_number(s, "head_dim"), length - 1, 1, cosine, sine);
	}
	json_decref(root);
	root = golden_json("rope_yarn_ggml");
	for (size_t i = 4; i < json_array_size(json_object_get(root, "cases")); i += 7) {
		const json_t *e = golden_part(root, i, "expected"), *s = golden_part(root, i, "settings");
		double factor = 1 / json_number(s, "freq_scale"), a = 1;
		flags[0] = 0;
		flags_add(flags, "--rope-theta=%.17g --train-length=%.0f --factor=%.17g", json_number(s, "freq_base"),
			  json_number(s, "n_ctx_orig"), factor);
		if (json_number(s, "ext_factor") != 0) {
			a = json_number(s, "attn_factor") * (1 + 0.1 * log(factor));
			flags_add(flags, " --scaling=yarn --beta-fast=%.17g --beta-slow=%.17g --attention-factor=%.17g",
				  json_number(s, "beta_fast"), json_number(s, "beta_slow"), a);
		} else {
			flags_add(flags, " --scaling=linear");
		}
		numbers(json_object_get(e, "cos"), cosine);
		numbers(json_object_get(e, "sin"), sine);
		check_pairs(flags, (int)json_number(s, "n_dims"), json_number(s, "position"), a, cosine, sine);
	}
	json_decref(root);
}

/* ---- What is added to the embeddings. ---- */

static void check_rows(const struct safetensors *out, const json_t *wanted)
{
	const struct tensor *t = scores_tensor(out, "embedded");
	size_t T = json_array_size(wanted), C = json_array_size(json_array_get(wanted, 0));
	assert_int_equal(t->rank, 3);
	assert_true(T > 0 && t->shape[1] == (int64_t)T && t->shape[2] == (int64_t)C);
	for (size_t i = 0; i < T * C; i++)
		assert_close(tensor_item(t, (int64_t)i), json_at(json_array_get(wanted, i / C), i % C), ROUNDING);
}

static void golden_vectors(void **state)
{
	(void)state;
	json_t *root = golden_json("sinusoidal");
	for (size_t i = 0; i < json_array_size(json_object_get(root, "cases")); i++) {
		const json_t *rows = json_object_get(golden_part(root, i, "settings"), "rows");
		const json_t *wanted = json_object_get(golden_part(root, i, "expected"), "interleaved_paper");
		int T = (int)json_array_size(wanted);
		scores_add("x", 3, 1, T, (int64_t)json_array_size(json_array_get(wanted, 0)), 0);
		double *positions = scores_add("positions", 1, T, 0, 0, 0);
		for (int t = 0; t < T; t++)
			positions[t] = rows ? json_at(rows, (size_t)t) : t;
		scores_put();
		struct safetensors out = scores_run("--encoding=sinusoidal --sinusoidal-scale=1");
		assert_null(safetensors_find(&out, "scores"));
		check_rows(&out, wanted);
		safetensors_free(&out);
	}
	json_decref(root);
	root = golden_json("learned_absolute");
	const json_t *table = json_object_get(golden_part(root, 0, "settings"), "table");
	const json_t *x = json_object_get(golden_part(root, 0, "settings"), "x");
	int R = (int)json_array_size(table), T = (int)json_array_size(x);
	double *own = scores_add("pos_emb.weight", 2, R, 4, 0, 0), *to = scores_add("x", 3, 1, T, 4, 0);
	for (int i = 0; i < R * 4; i++)
		own[i] = json_at(json_array_get(table, (size_t)(i / 4)), (size_t)(i % 4));
	for (int i = 0; i < T * 4; i++)
		to[i] = json_at(json_array_get(x, (size_t)(i / 4)), (size_t)(i % 4));
	scores_put();
	struct safetensors out = scores_run("--encoding=learned");
	check_rows(&out, json_object_get(golden_part(root, 0, "expected"), "x_plus_pos"));
	safetensors_free(&out);
	json_decref(root);
}

/* ---- Laws. ---- */

/* Without an encoding: q.k / sqrt(D) by hand, over more than a tile; the window masks and changes nothing else. */
static void plain_products_and_masks(void **state)
{
	(void)state;
	enum { B = 2, H = 1, T = 530, D = 3, SIZE = 7 };
	double *q = scores_add("q", 4, B, H, T, D), *k = scores_add("k", 4, B, H, T, D);
	double *copy = TAKE(double, 2 * B * H * T * D);
	for (int i = 0; i < B * H * T * D; i++) {
		copy[i] = q[i] = (i * 37 % 101 - 50) / 32.0;
		copy[B * H * T * D + i] = k[i] = (i * 53 % 97 - 48) / 32.0;
	}
	scores_put();
	struct safetensors plain = scores_run("--encoding=nope");
	struct safetensors window = scores_run("--encoding=nope --scaling=window(size=7)");
	const struct tensor *all = scores_tensor(&plain, "scores"), *near = scores_tensor(&window, "scores");
	for (int head = 0; head < B * H; head++)
		for (int i = 0; i < T; i++)
			for (int j = 0; j < T; j++) {
				const double *a = copy + (head * T + i) * D, *b = copy + (B * H * T + head * T + j) * D;
				double product = (a[0] * b[0] + a[1] * b[1] + a[2] * b[2]) / sqrt(D);
				double full = score(all, head / H, head % H, i, j);
				double seen = score(near, head / H, head % H, i, j);
				if (j > i ? !(isinf(full) && full < 0) : !(fabs(full - product) <= ROUNDING))
					fail_msg("score [%d][%d][%d] is %g, not %g", head, i, j, full, product);
				if (i - j >= SIZE || j > i)
					assert_true(isinf(seen) && seen < 0);
				else
					assert_true(seen == full);
			}
	safetensors_free(&plain);
	safetensors_free(&window);
	free(copy);
}

/* A factor of 1 changes no bit of what any scaling that has one gives. */
static void factor_of_one(void **state)
{
	(void)state;
	const struct entry *s;
	size_t size, other;
	scores_normal("q", 1, 4, 1, 2, 9, 8);
	scores_normal("k", 2, 4, 1, 2, 9, 8);
	scores_normal("v", 3, 4, 1, 2, 9, 8);
	scores_put();
	struct safetensors out = scores_run("--train-length=4");
	safetensors_free(&out);
	char *none = program_file("out.safetensors", &size);
	int checked = 0;
	for (int i = 0; (s = scaling_at(i)); i++) {
		struct method m = method_default(s);
		char flags[FLAGS_TEXT] = "";
		if (!scaling_has_factor(&m))
			continue;
		for (int factor = 1; factor <= (checked ? 1 : 2); factor++) {
			flags[0] = 0;
			flags_add(flags, "--train-length=4 --scaling=%s --factor=%d", s->name, factor);
			out = scores_run(flags);
			safetensors_free(&out);
			char *found = program_file("out.safetensors", &other);
			assert_int_equal(size, other);
			assert_int_equal(!memcmp(none, found, size), factor == 1);
			free(found);
		}
		checked++;
	}
	assert_true(checked >= 4);
	free(none);
}

/* --length stands for the factor of an `auto`; equal scores give the mean of the values up to each row. */
static void length_and_output(void **state)
{
	(void)state;
	enum { T = 6, D = 2 };
	scores_add("q", 4, 1, 1, T, D);
	scores_add("k", 4, 1, 1, T, D);
	double *v = scores_add("v", 4, 1, 1, T, D), sum = 0;
	for (int i = 0; i < T * D; i++)
		v[i] = i * i;
	scores_put();
	struct safetensors out = scores_run("--encoding=nope");
	const struct tensor *output = scores_tensor(&out, "output");
	for (int t = 0; t < T; t++) {
		sum += t * D * t * D;
		assert_close(tensor_item(output, t * D), sum / (t + 1), ROUNDING);
	}
	safetensors_free(&out);
	put_pairs(4, 3);
	struct safetensors by_length = scores_run("--scaling=linear --train-length=4 --length=12");
	struct safetensors by_factor = scores_run("--scaling=linear --train-length=4 --factor=3");
	for (int n = 0; n < 4; n++)
		assert_true(score(scores_tensor(&by_length, "scores"), n, 0, 1, 0) ==
			    score(scores_tensor(&by_factor, "scores"), n, 0, 1, 0));
	assert_close(score(scores_tensor(&by_factor, "scores"), 0, 0, 1, 0) * 2, cos(1), ROUNDING);
	safetensors_free(&by_length);
	safetensors_free(&by_factor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_alibi),    cmocka_unit_test(golden_t5),
		cmocka_unit_test(golden_rope),     cmocka_unit_test(golden_rope_of_halves),
		cmocka_unit_test(scalable_softmax), cmocka_unit_test(golden_scalings),
		cmocka_unit_test(golden_angles),   cmocka_unit_test(golden_vectors),
		cmocka_unit_test(factor_of_one),   cmocka_unit_test(plain_products_and_masks),
		cmocka_unit_test(length_and_output),
	};
	return cmocka_run_group_tests_name("scores", tests, program_setup_own, program_teardown);
}
