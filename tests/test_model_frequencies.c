#include "model/base/blas.h"
#include "tests/scaling_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Llama 3, yarn's temperatures, NTK-mixed, Giraffe, resonance and ABF; and any scaling under extreme numbers. */

/* ---- Llama 3. ---- */

static const char *label_llama3(const json_t *s, const json_t *e, char label[256])
{
	(void)e;
	snprintf(label, 256, "llama3(factor=%.17g,low_freq_factor=%.17g,high_freq_factor=%.17g)",
		 json_number(s, "factor"), json_number(s, "low_freq_factor"), json_number(s, "high_freq_factor"));
	return label;
}

static void golden_llama3(void **state)
{
	(void)state;
	golden("rope_llama3", label_llama3, 73, 0);
}

/* The share kept of every pair. */
static void ramp_of(const char *label, double theta, int D, int train_length, double *kept)
{
	struct method m = scaling_named(label);
	struct model_options o = rope_options(theta, D, train_length);
	struct scaling_request r = scaling_request(&m, &o, train_length);
	assert_non_null(scaling_of(&m)->ramp);
	scaling_of(&m)->ramp(&r, kept);
}

/* Its rule is ntk_by_parts by rotations, and its ramp what inspection shows. */
static void llama3_by_parts(void **state)
{
	(void)state;
	double kept[16], same[16];
	struct answer a = ask("llama3(factor=8)", 500, 32, 64, 64), plain = ask("none", 500, 32, 64, 64);
	struct answer b = ask("ntk_by_parts(factor=8,beta_slow=1,beta_fast=4)", 500, 32, 64, 64);
	same_bits(&a, &b);
	ramp_of("llama3(factor=8)", 500, 32, 64, kept);
	ramp_of("ntk_by_parts(beta_slow=1,beta_fast=4)", 500, 32, 64, same);
	assert_memory_equal(kept, same, sizeof kept);
	for (int m = 0; m < 16; m++) {
		double rotations = 64 * plain.inv_freq[m] / (2 * M_PI), ratio = a.inv_freq[m] / plain.inv_freq[m];
		bool between = rotations >= 1 && rotations <= 4;
		assert_true(between ? kept[m] >= 0 && kept[m] <= 1 : kept[m] == (rotations > 4));
		assert_close(ratio, kept[m] + (1 - kept[m]) / 8, 1e-14);
	}
	assert_true(kept[0] == 1 && kept[3] > 0 && kept[3] < 1 && kept[15] == 0);
	struct method wrong = scaling_named("llama3(low_freq_factor=4,high_freq_factor=1)");
	struct model_options o = rope_options(500, 32, 64);
	assert_err(scaling_check(&wrong, &o, 64), ERR_USAGE, "high_freq_factor 1 is below low_freq_factor 4");
	/* No band between: a pair is kept or divided. */
	a = ask("llama3(factor=8,low_freq_factor=2,high_freq_factor=2)", 500, 32, 64, 64);
	for (int m = 0; m < 16; m++) {
		double ratio = a.inv_freq[m] / plain.inv_freq[m];
		assert_close(ratio, 64 * plain.inv_freq[m] / (2 * M_PI) < 2 ? 0.125 : 1, 1e-14);
	}
}

/* ---- Temperatures of yarn. ---- */

/* DeepSeek multiplies the scale of the softmax, and so the logits, by the square of what we multiply q and k by. */
static void golden_softmax_scale(void **state)
{
	(void)state;
	json_t *root = golden_json("yarn_deepseek_softmax_scale"), *one;
	size_t i;
	json_array_foreach(json_object_get(root, "cases"), i, one) {
		const json_t *s = json_object_get(one, "settings");
		char label[160];
		int n = snprintf(label, sizeof label, "yarn(factor=%.17g,mscale_all_dim=%.17g,softmax_scale=off)",
				 json_number(s, "factor"), json_number(s, "mscale_all_dim"));
		struct answer off = ask(label, 1e4, 64, 4096, 4096);
		memcpy(label + n - 4, "on)", 4);
		struct answer on = ask(label, 1e4, 64, 4096, 4096);
		double share = on.attention_factor / off.attention_factor;
		close_to(json_number(s, "scaling_in") * share * share,
			 json_number(json_object_get(one, "expected"), "softmax_scale"), 1e-12, "deepseek", i,
			 "the softmax scale");
	}
	assert_int_equal(i, 15);
	json_decref(root);
}

static double yarn_attention(const char *options)
{
	char label[160];
	snprintf(label, sizeof label, "yarn(factor=40%s)", options);
	return ask(label, 1e4, 64, 64, 64).attention_factor;
}

static void mscales(void **state)
{
	(void)state;
	double ln = log(40);
	assert_close(yarn_attention(",mscale=0.707,mscale_all_dim=1"), (0.0707 * ln + 1) / (0.1 * ln + 1), 1e-14);
	assert_close(yarn_attention(",mscale=1,mscale_all_dim=1"), 1, 1e-14);
	assert_close(yarn_attention(",mscale=1,mscale_all_dim=1,softmax_scale=on"), 0.1 * ln + 1, 1e-14);
	/* Alone neither acts. */
	assert_close(yarn_attention(",mscale=0.707"), 0.1 * ln + 1, 1e-14);
	assert_close(yarn_attention(",mscale_all_dim=0.707"), 0.1 * ln + 1, 1e-14);
	assert_true(yarn_attention(",mscale=2,mscale_all_dim=1,softmax_scale=on,attention_factor=0.75") == 0.75);
	assert_true(ask("yarn(factor=1,mscale=2,mscale_all_dim=1,softmax_scale=on)", 1e4, 64, 64, 64)
			    .attention_factor == 1);
}

/* ---- NTK-mixed. ---- */

static const char *label_ntk_mixed(const json_t *s, const json_t *e, char label[256])
{
	(void)e;
	snprintf(label, 256, "ntk_mixed(factor=%.17g,exponent=%.17g)", json_number(s, "k"), json_number(s, "b"));
	return label;
}

static void ntk_mixed(void **state)
{
	(void)state;
	golden("rope_ntk_mixed_bojone", label_ntk_mixed, 6, 0);
	for (double factor = 1; factor < 1e9; factor *= 7)
		for (int D = 2; D <= 128; D *= 2) {
			char label[64];
			snprintf(label, sizeof label, "ntk_mixed(factor=%.17g)", factor);
			struct answer a = ask(label, 500, D, 64, 64), plain = ask("none", 500, D, 64, 64);
			assert_true(a.inv_freq[D / 2 - 1] == plain.inv_freq[D / 2 - 1] / factor);
		}
	struct answer mixed = ask("ntk_mixed(factor=12,exponent=0)", 500, 32, 64, 64);
	struct answer linear = ask("linear(factor=12)", 500, 32, 64, 64);
	same_bits(&mixed, &linear);
}

/* ---- Giraffe. ---- */

/* Its scale comes first, as a linear of that factor; it truncates last. */
static const char *label_giraffe(const json_t *s, const json_t *e, char label[256])
{
	(void)e;
	double scale = json_number(s, "scale"), cut = json_number(s, "truncate");
	int n = scale == 1 ? 0 : snprintf(label, 256, "linear(factor=%g)+", scale);
	if (cut > 0)
		snprintf(label + n, 256 - (size_t)n, "giraffe(kind=both,power=%g,cut=%g)",
			 json_number(s, "scale_power"), cut);
	else
		snprintf(label + n, 256 - (size_t)n, "giraffe(power=%g)", json_number(s, "scale_power"));
	return label;
}

static void giraffe(void **state)
{
	(void)state;
	golden("rope_giraffe", label_giraffe, 20, 0);
	struct answer both = ask("giraffe(kind=both,power=0)", 500, 16, 64, 64);
	struct answer truncated = ask("giraffe(kind=truncation)", 500, 16, 64, 64);
	struct answer plain = ask("none", 500, 16, 64, 64);
	struct answer power = ask("giraffe(power=0)", 500, 16, 64, 64);
	same_bits(&both, &truncated);
	same_bits(&power, &plain);
	/* Left to itself it cuts at the trained length: pairs that turn once within it stay. */
	double c = 2 * M_PI / 64;
	for (int m = 0; m < 8; m++) {
		double theta = plain.inv_freq[m];
		assert_true(truncated.inv_freq[m] == (theta >= c ? theta : theta >= c / 8 ? c / 16 : 0));
	}
	assert_true(truncated.inv_freq[7] == 0 && truncated.inv_freq[4] == c / 16);
}

/* ---- Resonance. ---- */

static void golden_resonance(void **state)
{
	(void)state;
	const char *file = "rope_resonance";
	json_t *root = golden_json(file), *one;
	size_t i;
	json_array_foreach(json_object_get(root, "cases"), i, one) {
		const json_t *s = json_object_get(one, "settings"), *e = json_object_get(one, "expected");
		bool yarn = !strcmp(json_string_value(json_object_get(s, "method")), "resonance_yarn");
		char label[64] = "resonance";
		if (yarn)
			snprintf(label, sizeof label, "yarn(factor=%g)+resonance", json_number(s, "factor"));
		int D = (int)json_number(s, "head_dim");
		struct answer a = ask(label, json_number(s, "base"), D, (int)json_number(s, "train_len"), 64);
		array_close(a.inv_freq, json_object_get(e, "inv_freq"), 0, 1e-12, file, i, "the frequency");
		close_to(a.attention_factor, number(e, "attention_factor", 1), 1e-12, file, i, "the attention factor");
		for (int m = 0; m < a.pairs; m++)
			close_to(2 * M_PI / a.inv_freq[m], json_at(json_object_get(e, "wavelengths"), (size_t)m), 1e-12,
				 file, i, "the wavelength");
	}
	assert_int_equal(i, 12);
	json_decref(root);
}

/* A factor of linear that makes the first wavelength this to the bit; 0: none does. */
static double factor_for(double wavelength)
{
	double factor = wavelength / (2 * M_PI);
	for (int i = 0; i < 8; i++)
		factor = nextafter(factor, 0);
	for (int i = 0; i < 16; i++, factor = nextafter(factor, INFINITY))
		if (2 * M_PI / (1 / factor) == wavelength)
			return factor;
	return 0;
}

static void resonance_rounds_half_to_even(void **state)
{
	(void)state;
	int rounded[2] = { 0, 0 };
	for (int whole = 7; whole < 60; whole++) {
		char label[80];
		double factor = factor_for(whole + 0.5);
		if (factor == 0)
			continue;
		snprintf(label, sizeof label, "linear(factor=%.17g)+resonance", factor);
		struct answer a = ask(label, 500, 8, 64, 64);
		assert_true(a.inv_freq[0] == 2 * M_PI / (whole + whole % 2));
		rounded[whole % 2]++;
	}
	assert_true(rounded[0] >= 5 && rounded[1] >= 5);
	/* Where a frequency is 0 there is no wavelength to round. */
	struct answer a = ask("giraffe(kind=truncation)+resonance", 500, 16, 64, 64);
	assert_true(a.inv_freq[7] == 0 && a.inv_freq[0] == 2 * M_PI / 6);
}

/* ---- ABF. ---- */

static void another_base(void **state)
{
	(void)state;
	struct answer a = ask("abf(theta=10000)", 500, 32, 64, 640), b = ask("none", 1e4, 32, 64, 640);
	same_bits(&a, &b);
	assert_true(a.request.rope_theta == 1e4);
	static const char *const rest[] = { "yarn(factor=4)", "ntk", "llama3", "dynamic(alpha=2)", "resonance" };
	for (int i = 0; i < 5; i++) {
		char label[64];
		snprintf(label, sizeof label, "abf(theta=10000)+%s", rest[i]);
		a = ask(label, 500, 32, 64, 640);
		b = ask(rest[i], 1e4, 32, 64, 640);
		same_bits(&a, &b);
	}
	a = ask("abf", 500, 32, 64, 640);
	assert_close(base_of(&a), 5e5, 1e-6);
}

/* ---- Extremes. ---- */

/* Whatever is asked is refused, or gives frequencies from 0 to the base's own and a factor above 0. */
static bool sensible(const char *label, double theta, int D, int train_length, double length)
{
	struct method m = scaling_named(label);
	struct model_options o = rope_options(theta, D, train_length);
	struct err e = scaling_check(&m, &o, length);
	if (e.code) {
		assert_int_equal(e.code, ERR_USAGE);
		assert_true(strstr(e.text, m.entry->name) && *e.hint);
		return false;
	}
	struct answer a = ask(label, theta, D, train_length, length);
	/* Resonance rounds 2 pi down to 6. */
	for (int p = 0; p < a.pairs; p++)
		if (!(a.inv_freq[p] >= 0 && a.inv_freq[p] <= M_PI / 3))
			fail_msg("%s, D %d, theta %g, train_length %d: frequency %d is %g", label, D, theta,
				 train_length, p, a.inv_freq[p]);
	assert_true(a.attention_factor > 0 && a.attention_factor < 1e3);
	return true;
}

static void extremes(void **state)
{
	(void)state;
	static const double thetas[] = { 1, 500, 1e300 }, lengths[] = { 1, 2, 1e3, 16777216 };
	static const int widths[] = { 2, 4, 8, 64, 128 }, trained[] = { 1, 2, 5, 64, 8192 };
	static const char *const factors[] = { "auto", "1", "1.0000001", "1e9" };
	int answered = 0, refused = 0;
	for (int i = 0; scaling_at(i); i++)
		for (int k = 0; k < 5 * 5 * 4 * 3; k++) {
			struct method m = method_default(scaling_at(i));
			bool factor = scaling_has_factor(&m);
			for (int f = 0; f < (factor ? 4 : 1); f++) {
				char label[64];
				snprintf(label, sizeof label, factor ? "%s(factor=%s)" : "%s", m.entry->name,
					 factors[f]);
				bool done = sensible(label, thetas[k % 3], widths[k / 3 % 5], trained[k / 15 % 5],
						     lengths[k / 75]);
				*(done ? &answered : &refused) += 1;
			}
		}
	assert_true(answered > 5000 && refused > 100 && answered > 8 * refused);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_llama3),
		cmocka_unit_test(llama3_by_parts),
		cmocka_unit_test(golden_softmax_scale),
		cmocka_unit_test(mscales),
		cmocka_unit_test(ntk_mixed),
		cmocka_unit_test(giraffe),
		cmocka_unit_test(golden_resonance),
		cmocka_unit_test(resonance_rounds_half_to_even),
		cmocka_unit_test(another_base),
		cmocka_unit_test(extremes),
	};
	struct err e = blas_start(1);
	if (e.code) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests_name("model frequencies", tests, NULL, NULL);
}
