#include "tests/reference.h"

#include "model/base/blas.h"
#include "model/position/rope.h"
#include "tests/scaling_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Golden files. ---- */

static const char *label_none(const json_t *s, const json_t *e, char label[256])
{
	(void)s, (void)e;
	return strcpy(label, "none");
}

static const char *label_factor(const json_t *s, const json_t *e, char label[256])
{
	(void)e;
	snprintf(label, 256, "%s(factor=%.17g)", json_string_value(json_object_get(s, "method")),
		 number(s, "factor", 0));
	return label;
}

static const char *label_by_parts(const json_t *s, const json_t *e, char label[256])
{
	(void)e;
	snprintf(label, 256, "ntk_by_parts(ramp=rotations,factor=%.17g,beta_slow=%.17g,beta_fast=%.17g)",
		 number(s, "factor", 0), number(s, "alpha", 0), number(s, "beta", 0));
	return label;
}

/* What Hugging Face calls the factor of dynamic is alpha. */
static const char *label_dynamic(const json_t *s, const json_t *e, char label[256])
{
	(void)e;
	snprintf(label, 256, "dynamic(alpha=%.17g)", number(s, "factor", 0));
	return label;
}

static void add_number(const json_t *settings, const char *name, char label[256])
{
	size_t used = strlen(label);
	if (json_is_number(json_object_get(settings, name)))
		snprintf(label + used, 256 - used, ",%s=%.17g", name, number(settings, name, 0));
}

/* jquesnelle's attn_factor multiplies the attention factor, which we take as a whole. extrapolation_factor, which
 * blends the ramp itself, has no counterpart. */
static const char *label_yarn(const json_t *s, const json_t *e, char label[256])
{
	static const char *const names[] = { "beta_fast", "beta_slow", "attention_factor", "mscale", "mscale_all_dim" };
	snprintf(label, 256, "yarn(factor=%.17g", number(s, "factor", 0));
	for (int i = 0; i < 5; i++)
		add_number(s, names[i], label);
	if (json_object_get(s, "attn_factor"))
		add_number(e, "attention_factor", label);
	if (json_object_get(s, "truncate"))
		strcat(label, json_is_true(json_object_get(s, "truncate")) ? ",truncate=on" : ",truncate=off");
	strcat(label, ")");
	return json_object_get(s, "extrapolation_factor") ? NULL : label;
}

static void golden_frequencies(void **state)
{
	(void)state;
	golden("rope_default", label_none, 10, 0);
	golden("rope_linear_pi", label_factor, 24, 0);
	golden("rope_ntk_fixed", label_factor, 24, 0);
	golden("rope_ntk_by_parts_paper", label_by_parts, 60, 0);
	golden("rope_dynamic_ntk_hf", label_dynamic, 120, 0);
	golden("rope_yarn_hf", label_yarn, 68, 0);
	golden("rope_yarn_jquesnelle", label_yarn, 26, 1); /* extrapolation_factor = 0.5 */
}

/* The by-parts file also gives what the paper's yarn multiplies q and k by. */
static void golden_yarn_by_rotations(void **state)
{
	(void)state;
	json_t *root = golden_json("rope_ntk_by_parts_paper"), *one;
	size_t i;
	char label[256];
	json_array_foreach(json_object_get(root, "cases"), i, one) {
		const json_t *s = json_object_get(one, "settings"), *e = json_object_get(one, "expected");
		snprintf(label, sizeof label, "yarn(ramp=rotations,factor=%.17g,beta_slow=%.17g,beta_fast=%.17g)",
			 number(s, "factor", 0), number(s, "alpha", 0), number(s, "beta", 0));
		double L = number(s, "train_len", 0);
		struct answer a = ask(label, number(s, "base", 0), (int)number(s, "head_dim", 0), (int)L, L);
		array_close(a.inv_freq, json_object_get(e, "inv_freq"), 0, 1e-12, "yarn", i, "the frequency");
		close_to(a.attention_factor, number(e, "attention_factor_if_yarn_paper", 0), 1e-12, "yarn", i,
			 "the attention factor");
	}
	assert_int_equal(i, 60);
	json_decref(root);
}

/* Of jquesnelle's dynamic_linear the inv_freq are those before the positions are shrunk, so angles count. */
static void golden_dynamic_jquesnelle(void **state)
{
	(void)state;
	const char *file = "rope_dynamic_jquesnelle";
	json_t *root = golden_json(file), *one;
	size_t i, linear = 0, ntk = 0;
	json_array_foreach(json_object_get(root, "cases"), i, one) {
		const json_t *s = json_object_get(one, "settings"), *e = json_object_get(one, "expected");
		bool by_ntk = !strcmp(json_string_value(json_object_get(s, "method")), "dynamic_ntk_alpha");
		char label[64] = "dynamic_linear";
		if (by_ntk)
			snprintf(label, sizeof label, "dynamic(alpha=%.17g)", number(s, "alpha", 0));
		double length = number(s, "seq_len", 0);
		struct answer a = ask(label, number(s, "base", 0), (int)number(s, "head_dim", 0),
				      (int)number(s, "train_len", 0), length);
		if (by_ntk)
			array_close(a.inv_freq, json_object_get(e, "inv_freq"), 0, 1e-12, file, i, "the frequency");
		golden_angles(&a, length - 1, json_object_get(e, "cos_last"), json_object_get(e, "sin_last"), file, i);
		*(by_ntk ? &ntk : &linear) += 1;
	}
	assert_int_equal(ntk, 128);
	assert_int_equal(linear, 32);
	json_decref(root);
}

/* ggml: ext_factor 0 is linear without an attention factor; attn_factor multiplies yarn's. */
static void golden_ggml(void **state)
{
	(void)state;
	const char *file = "rope_yarn_ggml";
	json_t *root = golden_json(file), *one;
	size_t i, linear = 0, yarn = 0;
	json_array_foreach(json_object_get(root, "cases"), i, one) {
		const json_t *s = json_object_get(one, "settings"), *e = json_object_get(one, "expected");
		double factor = 1 / number(s, "freq_scale", 0), attn_factor = number(s, "attn_factor", 0);
		char label[256];
		bool by_yarn = number(s, "ext_factor", 0) != 0;
		assert_true(by_yarn || attn_factor == 1);
		if (!by_yarn)
			snprintf(label, sizeof label, "linear(factor=%.17g)", factor);
		else if (attn_factor == 1)
			snprintf(label, sizeof label, "yarn(factor=%.17g,beta_fast=%.17g,beta_slow=%.17g)", factor,
				 number(s, "beta_fast", 0), number(s, "beta_slow", 0));
		else
			snprintf(label, sizeof label, "yarn(factor=%.17g,attention_factor=%.17g)", factor,
				 attn_factor * (1 + 0.1 * log(factor)));
		int L = (int)number(s, "n_ctx_orig", 0);
		struct answer a = ask(label, number(s, "freq_base", 0), (int)number(s, "n_dims", 0), L, L);
		golden_angles(&a, number(s, "position", 0), json_object_get(e, "cos"), json_object_get(e, "sin"), file,
			      i);
		*(by_yarn ? &yarn : &linear) += 1;
	}
	assert_int_equal(yarn, 18);
	assert_int_equal(linear, 9);
	json_decref(root);
}

/* ---- Values by hand. ---- */

static void ntk_base(void **state)
{
	(void)state;
	struct answer a = ask("ntk(factor=4)", 1e4, 64, 64, 64), b = ask("ntk(factor=8)", 1e4, 32, 64, 64);
	assert_close(base_of(&a), 41829.366, 1e-8);
	assert_close(base_of(&b), 91895.868, 1e-8);
	/* Pair 0 is as before, the last one divided by the factor. */
	assert_true(b.inv_freq[0] == 1);
	assert_close(b.inv_freq[15] * 8 / pow(1e4, -30.0 / 32), 1, 1e-14);
}

static void dynamic_ratio(void **state)
{
	(void)state;
	static const struct {
		const char *label;
		double length, ratio;
	} rows[] = { { "dynamic(alpha=4)", 64, 1 },  { "dynamic(alpha=4)", 128, 5 }, { "dynamic(alpha=4)", 256, 13 },
		     { "dynamic(alpha=4)", 16, 1 },  { "dynamic(alpha=4)", 1, 1 },   { "dynamic", 192, 3 },
		     { "dynamic(block=16)", 192, 3 }, { "dynamic", 63, 1 },	     { "dynamic", 65, 65.0 / 64 } };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct answer a = ask(rows[i].label, 1e4, 32, 64, rows[i].length);
		assert_close(a.request.factor, rows[i].ratio, 1e-15);
		assert_close(base_of(&a), 1e4 * pow(rows[i].ratio, 32.0 / 30), 1e-12);
		assert_true(a.attention_factor == 1);
	}
}

static void dynamic_within_the_trained_length_is_none(void **state)
{
	(void)state;
	static const char *const labels[] = { "dynamic", "dynamic(alpha=4)", "dynamic(block=8)",
					      "dynamic(alpha=32,block=64)" };
	for (int i = 0; i < 4; i++)
		for (int length = 1; length <= 64; length += 21) {
			struct answer a = ask(labels[i], 1e4, 32, 64, length), none = ask("none", 1e4, 32, 64, length);
			same_bits(&a, &none);
			assert_true(a.request.factor == 1);
		}
}

static void yarn_temperature(void **state)
{
	(void)state;
	struct answer a = ask("yarn(factor=128)", 1e4, 64, 64, 64), b = ask("yarn(factor=4)", 1e4, 64, 64, 64);
	assert_close(a.attention_factor, 1.485203, 5e-7);
	real q[4] = { 1, 2, 3, 4 }, k[4] = { 2, -1, 5, (real)0.5 }, cosine[2], sine[2], q_to[4], k_to[4];
	for (int m = 0; m < 2; m++) {
		cosine[m] = (real)(b.attention_factor * cos(9 * b.inv_freq[m]));
		sine[m] = (real)(b.attention_factor * sin(9 * b.inv_freq[m]));
	}
	struct rotation r = {
		.rows = 1, .D = 4, .F = 2, .cosine = cosine, .sine = sine, .attention_factor = b.attention_factor
	};
	rope_rotate(&r, q, 4, q_to);
	rope_rotate(&r, k, 4, k_to);
	double plain = 0, turned = 0;
	for (int i = 0; i < 4; i++) {
		plain += (double)q[i] * (double)k[i];
		turned += (double)q_to[i] * (double)k_to[i];
	}
	assert_close(turned / plain, 1.296477, 1e-6); /* the square, once */
	assert_true(ask("yarn(factor=1)", 1e4, 64, 64, 640).attention_factor == 1);
	assert_true(ask("ntk_by_parts(factor=4)", 1e4, 64, 64, 64).attention_factor == 1);
	assert_true(ask("ntk_by_parts(factor=4,attention_factor=0.3)", 1e4, 64, 64, 64).attention_factor == 0.3);
	assert_true(ask("yarn(factor=1,attention_factor=0.3)", 1e4, 64, 64, 64).attention_factor == 0.3);
}

/* No pair turns once within 4 tokens: all are interpolated. Within 5 the ends of the ramp meet at pair 0. Within a
 * million of the base 10 all turn more often than 32 times: all are kept. */
static void yarn_ramp_at_the_ends(void **state)
{
	(void)state;
	struct answer plain = ask("none", 1e4, 64, 64, 64), four = ask("yarn(factor=8)", 1e4, 64, 4, 4);
	struct answer five = ask("yarn(factor=8)", 1e4, 64, 5, 5), fast = ask("yarn(factor=8)", 10, 16, 1000000, 64);
	struct answer small_base = ask("none", 10, 16, 64, 64);
	for (int m = 0; m < 32; m++) {
		assert_close(four.inv_freq[m] * 8 / plain.inv_freq[m], 1, 1e-14);
		assert_close(five.inv_freq[m] * (m ? 8 : 1) / plain.inv_freq[m], 1, 1e-14);
	}
	for (int m = 0; m < 8; m++)
		assert_close(fast.inv_freq[m] / small_base.inv_freq[m], 1, 1e-14);
	static const char *const labels[] = {
		"yarn(factor=8)", "yarn(factor=8,truncate=off)", "ntk_by_parts(factor=8)",
		"ntk_by_parts(ramp=pairs,factor=8,beta_fast=3,beta_slow=3,truncate=off)"
	};
	static const double thetas[] = { 1, 1.5, 500, 1e12 };
	for (int i = 0; i < 4; i++)
		for (int t = 0; t < 4; t++)
			for (int L = 1; L <= 1 << 24; L *= 2) {
				struct answer a = ask(labels[i], thetas[t], 16, L, L);
				for (int m = 0; m < 8; m++) {
					double kept = a.inv_freq[m] / pow(thetas[t], -2.0 * m / 16);
					assert_true(kept > 0.1249999 && kept < 1.0000001);
				}
			}
}

/* Options of the scaling in one of which `factor` has this value, for every choice there is. */
static bool with_factor(const struct entry *e, double factor, int variant, char label[128])
{
	int n = snprintf(label, 128, "%s(factor=%.17g", e->name, factor);
	for (const struct option *o = e->options; variant > 0; o++) {
		if (!o->name)
			return false;
		if (o->kind != OPTION_CHOICE && o->kind != OPTION_SWITCH)
			continue;
		for (const char *at = o->choices; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
			if (!--variant)
				n += snprintf(label + n, 128 - (size_t)n, ",%s=%.*s", o->name, (int)strcspn(at, "|"),
					      at);
		if (!variant)
			break;
	}
	snprintf(label + n, 128 - (size_t)n, ")");
	return true;
}

static void factor_one_is_none(void **state)
{
	(void)state;
	enum { T = 40 }; /* 2.5 times the trained length */
	char label[128];
	int methods = 0, variants = 0;
	struct model_options o = small_options("rope");
	struct model_case c;
	case_open(&c, &o, "none", 1, T, NULL);
	real *wanted = case_logits(&c);
	case_close(&c);
	for (int i = 0; scaling_at(i); i++) {
		struct method m = method_default(scaling_at(i));
		assert_int_equal(scaling_has_factor(&m), method_find(m.entry, "factor") >= 0);
		if (!scaling_has_factor(&m))
			continue;
		methods++;
		for (int v = 0; with_factor(m.entry, 1, v, label); v++, variants++) {
			struct answer a = ask(label, 1e4, 64, 16, T), none = ask("none", 1e4, 64, 16, T);
			same_bits(&a, &none);
			assert_true(a.request.factor == 1);
			case_open(&c, &o, label, 1, T, NULL);
			real *logits = case_logits(&c);
			assert_memory_equal(logits, wanted, sizeof *wanted * T * CASE_V);
			free(logits);
			case_close(&c);
			with_factor(m.entry, 2, v, label);
			case_open(&c, &o, label, 1, T, NULL);
			logits = case_logits(&c);
			assert_memory_not_equal(logits, wanted, sizeof *wanted * T * CASE_V);
			free(logits);
			case_close(&c);
		}
	}
	assert_true(methods >= 4 && variants >= 12);
	free(wanted);
}

static void auto_factor(void **state)
{
	(void)state;
	static const struct {
		double length, factor;
	} rows[] = { { 1, 1 },
		     { 63, 1 },
		     { 64, 1 },
		     { 65, 65.0 / 64 },
		     { 96, 1.5 },
		     { 2048, 32 },
		     { 1e6 + 1, (1e6 + 1) / 64 } };
	for (int i = 0; scaling_at(i); i++) {
		struct method m = method_default(scaling_at(i));
		for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
			struct answer a = ask(m.entry->name, 500, 32, 64, rows[n].length);
			a.request.method = &m;
			double factor = scaling_factor(&a.request);
			if (scaling_of(&m)->ratio) /* in steps, or at once */
				assert_true(factor >= rows[n].factor && (factor > 1) == (rows[n].factor > 1));
			else
				assert_true(factor == (scaling_has_factor(&m) ? rows[n].factor : 1));
			if (!reference_knows(m.entry))
				continue;
			double inv_freq[16], attention_factor;
			reference_frequencies(&m, 500, 32, 64, rows[n].length, inv_freq, &attention_factor);
			for (int f = 0; f < 16; f++)
				assert_close(a.inv_freq[f] / inv_freq[f], 1, 1e-12);
			assert_close(a.attention_factor, attention_factor, 1e-12);
		}
	}
	assert_true(ask("linear(factor=8)", 500, 32, 64, 64).request.factor == 8);
	assert_true(ask("yarn(factor=8)", 500, 32, 64, 6400).request.factor == 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_frequencies),
		cmocka_unit_test(golden_yarn_by_rotations),
		cmocka_unit_test(golden_dynamic_jquesnelle),
		cmocka_unit_test(golden_ggml),
		cmocka_unit_test(ntk_base),
		cmocka_unit_test(dynamic_ratio),
		cmocka_unit_test(dynamic_within_the_trained_length_is_none),
		cmocka_unit_test(yarn_temperature),
		cmocka_unit_test(yarn_ramp_at_the_ends),
		cmocka_unit_test(factor_one_is_none),
		cmocka_unit_test(auto_factor),
	};
	struct err e = blas_start(1);
	if (e.code) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests_name("model scaling", tests, NULL, NULL);
}
