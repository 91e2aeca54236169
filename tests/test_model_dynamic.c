#include "model/base/blas.h"
#include "model/position/zones.h"
#include "tests/scaling_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Scalings by the length reached so far, beside dynamic itself (tests/test_model_scaling.c, test_model_zones.c). */

/* ---- Golden files. ---- */

static const char *label_dynamic_yarn(const json_t *s, const json_t *e, char label[256])
{
	(void)s, (void)e;
	return strcpy(label, "dynamic_yarn");
}

static void golden_yarn(void **state)
{
	(void)state;
	const char *file = "rope_yarn_dynamic_jquesnelle";
	golden(file, label_dynamic_yarn, 32, 0);
	json_t *root = golden_json(file), *one;
	size_t i;
	json_array_foreach(json_object_get(root, "cases"), i, one) {
		const json_t *s = json_object_get(one, "settings"), *e = json_object_get(one, "expected");
		double length = json_number(s, "seq_len");
		struct answer a = ask("dynamic_yarn", json_number(s, "base"), (int)json_number(s, "head_dim"),
					      (int)json_number(s, "train_len"), length);
		golden_angles(&a, length - 1, json_object_get(e, "cos_last"), json_object_get(e, "sin_last"), file, i);
	}
	json_decref(root);
}

/* Hugging Face's module remembers its longest call, and a later one of up to the trained length, if not shorter, keeps
 * its frequencies. Ours are those of their first call of that length: they agree where nothing is remembered, and there
 * alone. */
static void golden_without_state(void **state)
{
	(void)state;
	const char *file = "rope_dynamic_ntk_hf_stateful";
	json_t *root = golden_json(file), *one, *call;
	size_t i, n;
	int agree = 0, differ = 0;
	char label[64];
	json_array_foreach(json_object_get(root, "cases"), i, one) {
		const json_t *s = json_object_get(one, "settings"), *e = json_object_get(one, "expected");
		double L = json_number(s, "train_len");
		snprintf(label, sizeof label, "dynamic(alpha=%g)", json_number(s, "factor"));
		json_array_foreach(json_object_get(e, "calls"), n, call) {
			double length = json_number(call, "seq_len");
			bool remembers = json_number(call, "max_seq_len_cached") > fmax(length, L);
			struct answer a = ask(label, json_number(s, "base"), (int)json_number(s, "head_dim"),
						      (int)L, length);
			const json_t *theirs = json_object_get(call, "inv_freq");
			if (remembers)
				assert_true(fabs(a.inv_freq[3] / json_at(theirs, 3) - 1) > 1e-3);
			else
				array_close(a.inv_freq, theirs, 0, 1e-12, file, i, "the frequency");
			*(remembers ? &differ : &agree) += 1;
		}
	}
	assert_true(agree + differ == 40 && agree >= 20 && differ >= 4);
	json_decref(root);
}

/* ---- Laws. ---- */

/* Of a whole sequence they are the static method with the factor left to itself. */
static void whole_sequences(void **state)
{
	(void)state;
	static const char *const pair[][2] = { { "dynamic_linear", "linear" },
					       { "dynamic_yarn", "yarn" },
					       { "dynamic_yarn(ramp=rotations,beta_fast=4)",
						 "yarn(ramp=rotations,beta_fast=4)" },
					       { "dynamic_yarn(truncate=off)", "yarn(truncate=off)" } };
	static const double lengths[] = { 1, 63, 64, 65, 100, 128, 2048 };
	for (int i = 0; i < 4; i++)
		for (int n = 0; n < 7; n++) {
			struct answer dynamic = ask(pair[i][0], 500, 16, 64, lengths[n]);
			struct answer fixed = ask(pair[i][1], 500, 16, 64, lengths[n]);
			same_bits(&dynamic, &fixed);
			assert_true(dynamic.request.factor == fixed.request.factor);
		}
}

/* 1 within training, then 3, 7, 15: the steps are at the powers of two themselves. */
static void steps(void **state)
{
	(void)state;
	static const struct {
		double length, ratio;
	} rows[] = { { 1, 1 },   { 16, 1 },  { 33, 1 },  { 63, 1 },  { 64, 1 },    { 65, 3 },
		     { 96, 3 },  { 128, 3 }, { 129, 7 }, { 192, 7 }, { 256, 7 },   { 257, 15 },
		     { 512, 15 }, { 513, 31 }, { 2048, 63 }, { 2049, 127 }, { 67108864, 2097151 } };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct answer a = ask("dynamic_qwen", 1e4, 32, 64, rows[i].length);
		assert_true(a.request.factor == rows[i].ratio);
		assert_close(base_of(&a) / (1e4 * pow(rows[i].ratio, 32.0 / 30)), 1, 1e-12);
		assert_true(a.attention_factor == 1);
	}
	/* A trained length that is no power of two, where a logarithm of the quotient is not whole. */
	assert_true(ask("dynamic_qwen", 1e4, 32, 49, 98).request.factor == 3);
	assert_true(ask("dynamic_qwen", 1e4, 32, 49, 99).request.factor == 7);
	assert_true(ask("dynamic_qwen", 1e4, 32, 49, 392).request.factor == 15);
	struct model_options o = rope_options(500, 2, 64);
	struct method m = scaling_named("dynamic_qwen");
	assert_err(scaling_check(&m, &o, 128), ERR_USAGE, "dynamic_qwen: needs a head_dim above 2");
}

static const char *const dynamic_labels[] = { "dynamic",
					      "dynamic_linear",
					      "dynamic_qwen",
					      "dynamic_yarn",
					      "dynamic_yarn(attention_factor=1.5)",
					      "dynamic_yarn(mscale=2,mscale_all_dim=1,softmax_scale=on)",
					      "dynamic_linear(block=8)",
					      "dynamic_yarn(block=8)",
					      "dynamic_qwen(block=8)" };
enum { LABELS = sizeof dynamic_labels / sizeof *dynamic_labels };

static void nothing_within_training(void **state)
{
	(void)state;
	for (int i = 0; i < LABELS; i++) {
		for (int length = 1; length <= 64; length += 21) {
			struct answer a = ask(dynamic_labels[i], 1e4, 32, 64, length);
			struct answer none = ask("none", 1e4, 32, 64, length);
			same_bits(&a, &none);
			assert_true(a.request.factor == 1);
		}
		struct answer a = ask(dynamic_labels[i], 1e4, 32, 64, 65);
		assert_true(a.request.factor > 1 && a.inv_freq[15] < pow(1e4, -30.0 / 32));
	}
	assert_true(ask("dynamic_yarn(attention_factor=1.5)", 1e4, 32, 64, 65).attention_factor == 1.5);
}

/* ---- Blocks. ---- */

/* Each block has the numbers that a sequence of the length that ends with it has. */
static void check_blocks(const char *name, int block, int T)
{
	struct model_options o = rope_options(500, 16, 64);
	struct arena measure = { 0 }, memory = { 0 };
	struct zones zones;
	double *positions = TAKE(double, (size_t)T);
	char label[64];
	snprintf(label, sizeof label, "%s(block=%d)", name, block);
	struct method m = scaling_named(label);
	struct place place = place_of(&o);
	for (int t = 0; t < T; t++)
		positions[t] = t;
	place.T = T;
	place.positions = positions;
	scaling_zones(&m, &o, &place, &measure, &zones);
	assert_ok(arena_reserve(&memory, measure.used, "zones"));
	scaling_zones(&m, &o, &place, &memory, &zones);
	int count = block ? (T + block - 1) / block : 1;
	assert_int_equal(zones.count, count);
	for (int n = 0; n < count; n++) {
		const struct zone *z = &zones.zone[n];
		assert_int_equal(z->begin, n * block);
		assert_int_equal(z->end, n == count - 1 ? T : (n + 1) * block);
		struct answer a = ask(name, 500, 16, 64, z->end);
		assert_memory_equal(z->inv_freq, a.inv_freq, 8 * sizeof(double));
		assert_true(z->attention_factor == a.attention_factor);
	}
	arena_free(&memory);
	free(positions);
}

static void blocks(void **state)
{
	(void)state;
	static const char *const names[] = { "dynamic", "dynamic_linear", "dynamic_yarn", "dynamic_qwen" };
	for (int i = 0; i < 4; i++) {
		check_blocks(names[i], 64, 200);
		check_blocks(names[i], 50, 500);
		check_blocks(names[i], 1, 70);
		check_blocks(names[i], 0, 200);
	}
}

/* Queries of the first block are those of a sequence that ends there, unscaled. */
static void first_block_is_unscaled(void **state)
{
	(void)state;
	static const char *const labels[] = { "dynamic(block=16)", "dynamic_linear(block=16)", "dynamic_yarn(block=16)",
					      "dynamic_qwen(block=16)" };
	struct model_options o = small_options("rope");
	struct model_case c;
	for (int i = 0; i < 4; i++) {
		case_open(&c, &o, "none", 1, 40, NULL);
		real *none = case_logits(&c);
		case_close(&c);
		case_open(&c, &o, labels[i], 1, 40, NULL);
		real *logits = case_logits(&c);
		double furthest = 0;
		for (int k = 0; k < 16 * CASE_V; k++)
			assert_close(logits[k], none[k], 1e-5);
		for (int k = 16 * CASE_V; k < 40 * CASE_V; k++)
			furthest = fmax(furthest, fabs((double)(logits[k] - none[k])));
		assert_true(furthest > 1e-2);
		free(none);
		free(logits);
		case_close(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_yarn), cmocka_unit_test(golden_without_state),
		cmocka_unit_test(whole_sequences), cmocka_unit_test(steps),
		cmocka_unit_test(nothing_within_training), cmocka_unit_test(blocks),
		cmocka_unit_test(first_block_is_unscaled),
	};
	struct err e = blas_start(1);
	if (e.code) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests_name("model dynamic", tests, NULL, NULL);
}
