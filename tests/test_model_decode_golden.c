#include "model/attention.h"
#include "model/base/blas.h"
#include "model/base/threads.h"
#include "tests/model_case.h"

#include <jansson.h>

/* Decoding token by token against the numbers of Hugging Face's modules. */

#define TOLERANCE (sizeof(real) == sizeof(float) ? 1e-5 : 1e-10)

/* ---- Hugging Face's cache of rotated keys. ---- */

enum { ROWS = 64, PAIRS = 8 };

/* Scores of given q and k, a row at a time. */
static void score_rows(const struct method *scaling, const struct model_options *o, int T, bool rotated, real *qkv,
		       real *scores)
{
	struct place place = place_of(o);
	double positions[ROWS];
	struct zones zones;
	struct arena memory, measure = { 0 };
	real output[ROWS * PAIRS * 2], lse[ROWS];
	for (int t = 0; t < T; t++)
		positions[t] = t;
	place.T = T;
	place.positions = positions;
	struct attention_request request = { .place = &place, .zones = &zones, .B = 1, .threads = threads_count(),
					     .layers = 1, .turned_keys = rotated };
	scaling_zones(scaling, o, &place, &measure, &zones);
	attention_place(&request, &measure);
	assert_ok(arena_reserve(&memory, measure.used, "attention"));
	scaling_zones(scaling, o, &place, &memory, &zones);
	struct attention *a = attention_place(&request, &memory);
	struct attention_layer l = { .qkv = qkv, .output = output, .lse = lse, .scores = scores };
	for (int t = 0; t < T; t++) {
		attention_enter_row(a, &l, t);
		if (rotated)
			attention_turn_key(a, &l, 0, t, 0, qkv + (3 * t + 1) * place.C);
		attention_row_forward(a, &l, 0, t, 0);
	}
	arena_free(&memory);
}

/* Theirs pairs m with m + D / 2, ours 2 m with 2 m + 1. */
static void take_rows(const json_t *from, int part, int D, real *qkv)
{
	for (size_t t = 0; t < json_array_size(from); t++)
		for (size_t d = 0; d < (size_t)D; d++)
			qkv[(3 * t + (size_t)part) * (size_t)D + d] =
				(real)json_at(json_array_get(from, t), d / 2 + d % 2 * (size_t)D / 2);
}

static void compare_scores(const real *scores, int T, const json_t *expected)
{
	for (int i = 0; i < T; i++)
		for (int j = 0; j <= i; j++)
			assert_close(scores[i * T + j], json_at(json_array_get(expected, (size_t)i), (size_t)j),
				     TOLERANCE);
}

static void rotated_keys_as_in_hugging_face(void **state)
{
	json_t *root = golden_json("rope_dynamic_ntk_kv_cache");
	(void)state;
	assert_true(json_array_size(json_object_get(root, "cases")) > 0);
	for (size_t i = 0; i < json_array_size(json_object_get(root, "cases")); i++) {
		const json_t *s = golden_part(root, i, "settings"), *expected = golden_part(root, i, "expected");
		int D = (int)json_number(s, "head_dim"), T = (int)json_array_size(json_object_get(s, "q"));
		assert_true(D <= 2 * PAIRS && T <= ROWS);
		struct model_options o = rope_options(json_number(s, "base"), D, (int)json_number(s, "train_len"));
		struct method dynamic = scaling_named("dynamic");
		method_set(&dynamic, method_find(dynamic.entry, "alpha"),
			   (union option_value){ .number = json_number(s, "factor") });
		struct method by_query = scaling_by_query(&dynamic);
		real qkv[ROWS * 3 * 2 * PAIRS] = { 0 }, scores[ROWS * ROWS];
		take_rows(json_object_get(s, "q"), 0, D, qkv);
		take_rows(json_object_get(s, "k"), 1, D, qkv);
		const json_t *prefill = json_object_get(expected, "prefill"), *run;
		for (size_t n = 0; (run = json_array_get(prefill, n)); n++) {
			int length = (int)json_number(run, "length");
			score_rows(&dynamic, &o, length, false, qkv, scores);
			compare_scores(scores, length, json_object_get(run, "logits"));
		}
		score_rows(&by_query, &o, T, true, qkv, scores);
		compare_scores(scores, T, json_object_get(expected, "decode_with_cached_rotated_keys"));
	}
	json_decref(root);
}

/* A module of theirs keeps the frequencies of the longest call until a shorter one than trained; ours go by the length
 * alone, so that nothing is kept. */
static void frequencies_have_no_memory(void **state)
{
	json_t *root = golden_json("rope_dynamic_ntk_hf_stateful");
	int kept = 0;
	(void)state;
	for (size_t i = 0; i < json_array_size(json_object_get(root, "cases")); i++) {
		const json_t *s = golden_part(root, i, "settings"), *calls, *call;
		int D = (int)json_number(s, "head_dim");
		struct model_options o = rope_options(json_number(s, "base"), D, (int)json_number(s, "train_len"));
		struct method dynamic = scaling_named("dynamic");
		method_set(&dynamic, method_find(dynamic.entry, "alpha"),
			   (union option_value){ .number = json_number(s, "factor") });
		calls = json_object_get(golden_part(root, i, "expected"), "calls");
		for (size_t n = 0; (call = json_array_get(calls, n)); n++) {
			double inv_freq[PAIRS], attention_factor, longest = json_number(call, "max_seq_len_cached");
			kept += json_number(call, "seq_len") < longest && longest > (double)o.train_length;
			scaling_frequencies(&dynamic, &o, longest, inv_freq, &attention_factor);
			const json_t *theirs = json_object_get(call, "inv_freq");
			for (int m = 0; m < D / 2; m++)
				assert_close(inv_freq[m] / json_at(theirs, (size_t)m), 1, 1e-12);
		}
	}
	assert_true(kept > 0);
	json_decref(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rotated_keys_as_in_hugging_face),
		cmocka_unit_test(frequencies_have_no_memory),
	};
	assert_ok(blas_start(1));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
