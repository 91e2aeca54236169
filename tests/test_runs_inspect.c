#include "tests/golden_flags.h"
#include "tests/program.h"
#include "tests/support.h"

#include "model/position/scaling.h"
#include "model/weights.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What `inspect` says, from the command line: the golden numbers, valid JSON for whatever it is asked, and readable
 * text that agrees. */

/* ---- Asking. ---- */

/* The JSON of a command line, which has to be valid. */
static json_t *ask(const char *flags)
{
	char line[600];
	json_error_t error;
	snprintf(line, sizeof line, "inspect --format=json %s", flags);
	struct program_run r = program_run(line);
	if (r.code)
		fail_msg("%s: exit %d: %s", line, r.code, r.err);
	json_t *root = json_loads(r.out, JSON_REJECT_DUPLICATES, &error);
	if (!json_is_object(root))
		fail_msg("%s: %s in: %s", line, error.text, r.out);
	program_run_free(&r);
	return root;
}

static char *text_of(const char *flags)
{
	char line[600];
	snprintf(line, sizeof line, "inspect %s", flags);
	struct program_run r = program_run(line);
	if (r.code)
		fail_msg("%s: exit %d: %s", line, r.code, r.err);
	free(r.err);
	return r.out;
}

static void close_to(double a, double b, const char *flags, const char *what)
{
	if (!(fabs(a - b) <= 1e-12 * fabs(b)))
		fail_msg("inspect %s: %s is %.17g, not %.17g", flags, what, a, b);
}

/* Numbers of any shape, relative to those wanted or, of a table of sines, to 1. */
static void same_numbers(const json_t *found, const json_t *wanted, const char *flags, const char *what)
{
	if (json_is_number(wanted)) {
		assert_true(json_is_number(found));
		close_to(json_number_value(found), json_number_value(wanted), flags, what);
		return;
	}
	assert_true(json_is_array(found) && json_array_size(wanted) > 0);
	assert_int_equal(json_array_size(found), json_array_size(wanted));
	for (size_t i = 0; i < json_array_size(wanted); i++)
		same_numbers(json_array_get(found, i), json_array_get(wanted, i), flags, what);
}

/* ---- Golden files. ---- */

/* Each `stride`-th case of a file of frequencies, the last, and all that have more settings than the first. */
static int golden_file(const char *file, size_t stride)
{
	json_t *root = golden_json(file);
	size_t usual = json_object_size(golden_part(root, 0, "settings"));
	int checked = 0, length;
	char flags[FLAGS_TEXT];
	size_t count = json_array_size(json_object_get(root, "cases"));
	for (size_t i = 0; i < count; i++) {
		const json_t *s = golden_part(root, i, "settings"), *e = golden_part(root, i, "expected");
		const json_t *factor = json_object_get(e, "attention_factor");
		bool chosen = i % stride == 0 || i + 1 == count || json_object_size(s) > usual;
		if (!chosen || !golden_flags(s, e, flags, &length))
			continue;
		flags_add(flags, " --head-dim=%.0f --length=%d", json_number(s, "head_dim"), length);
		json_t *found = ask(flags);
		same_numbers(json_object_get(found, "inv_freq"), json_object_get(e, "inv_freq"), flags, "inv_freq");
		close_to(json_number(found, "attention_factor"), factor ? json_number_value(factor) : 1, flags,
			 "attention_factor");
		json_decref(found);
		checked++;
	}
	json_decref(root);
	return checked;
}

/* Strides by which every value of every setting is met. */
static void golden_frequencies(void **state)
{
	(void)state;
	assert_int_equal(golden_file("rope_default", 1), 10);
	assert_int_equal(golden_file("rope_linear_pi", 5), 6);
	assert_int_equal(golden_file("rope_ntk_fixed", 5), 6);
	assert_int_equal(golden_file("rope_ntk_by_parts_paper", 11), 7);
	assert_int_equal(golden_file("rope_dynamic_ntk_hf", 5), 25);
	assert_int_equal(golden_file("rope_yarn_hf", 7), 25);
	assert_int_equal(golden_file("rope_yarn_jquesnelle", 7), 6);
	assert_int_equal(golden_file("rope_proportional_p_rope", 5), 8);
	assert_int_equal(golden_file("rope_partial_rotary_pct", 5), 4);
	assert_int_equal(golden_file("rope_llama3", 12), 7);
	assert_int_equal(golden_file("rope_yarn_dynamic_jquesnelle", 7), 6);
	assert_int_equal(golden_file("rope_ntk_mixed_bojone", 2), 4);
}

static void golden_slopes(void **state)
{
	(void)state;
	json_t *root = golden_json("alibi");
	int checked = 0;
	for (size_t i = 0; i < json_array_size(json_object_get(root, "cases")); i++) {
		const json_t *slopes = json_object_get(golden_part(root, i, "expected"), "slopes");
		char flags[FLAGS_TEXT] = "";
		if (!slopes)
			continue;
		flags_add(flags, "--encoding=alibi --head-dim=8 --heads=%.0f",
			  json_number(golden_part(root, i, "settings"), "heads"));
		json_t *found = ask(flags);
		same_numbers(json_object_get(found, "slopes"), slopes, flags, "slopes");
		json_decref(found);
		checked++;
	}
	assert_int_equal(checked, 7);
	json_decref(root);
}

static void golden_buckets(void **state)
{
	(void)state;
	json_t *root = golden_json("t5_bias");
	int checked = 0;
	for (size_t i = 0; i < json_array_size(json_object_get(root, "cases")); i++) {
		const json_t *s = golden_part(root, i, "settings"), *distances = json_object_get(s, "distances");
		const json_t *wanted = json_object_get(golden_part(root, i, "expected"), "bucket_causal");
		char flags[FLAGS_TEXT] = "";
		size_t count = json_array_size(distances);
		if (!count)
			continue;
		flags_add(flags, "--encoding=t5 --t5-buckets=%.0f --t5-max-distance=%.0f --length=%.0f",
			  json_number(s, "num_buckets"), json_number(s, "max_distance"),
			  json_at(distances, count - 1) + 1);
		json_t *found = ask(flags), *buckets = json_object_get(found, "buckets");
		assert_true((double)json_array_size(buckets) == json_at(distances, count - 1) + 1);
		for (size_t d = 0; d < count; d++, checked++)
			assert_true(json_at(buckets, (size_t)json_at(distances, d)) == json_at(wanted, d));
		json_decref(found);
	}
	assert_true(checked > 160);
	json_decref(root);
}

static void golden_sinusoids(void **state)
{
	(void)state;
	json_t *root = golden_json("sinusoidal");
	int checked = 0;
	for (size_t i = 0; i < json_array_size(json_object_get(root, "cases")); i++) {
		const json_t *s = golden_part(root, i, "settings"), *rows = json_object_get(s, "rows");
		const json_t *wanted = json_object_get(golden_part(root, i, "expected"), "interleaved_paper");
		char flags[FLAGS_TEXT] = "";
		flags_add(flags, "--encoding=sinusoidal --sinusoidal-scale=1 --width=%.0f --length=%.0f",
			  json_number(s, "d_model"), json_number(s, "length"));
		json_t *found = ask(flags), *table = json_object_get(found, "table");
		assert_true((double)json_array_size(table) == json_number(s, "length"));
		for (size_t t = 0; t < json_array_size(wanted); t++) {
			const json_t *row = json_array_get(wanted, t),
				     *own = json_array_get(table, rows ? (size_t)json_at(rows, t) : t);
			assert_int_equal(json_array_size(row), json_array_size(own));
			for (size_t c = 0; c < json_array_size(row); c++, checked++)
				assert_close(json_at(own, c), json_at(row, c), 1e-12);
		}
		json_decref(found);
	}
	assert_int_equal(checked, 9 * 8 + 4 * 32 + 5 * 8);
	json_decref(root);
}

/* ---- Models. ---- */

/* Writes a model of width 8 and 2 heads with known values of its encoding's table. */
static void put_model(const char *encoding, real *table, size_t count)
{
	struct model m;
	struct method method;
	assert_ok(method_parse("encoding", position_at, encoding, &method));
	struct model_options o = { .layers = 1, .width = 8, .heads = 2, .hidden = 8, .rms_eps = 1e-5,
				   .encoding = method, .train_length = 4, .positions_most = 2048,
				   .trained_scaling = method_default(scaling_at(0)) };
	assert_ok(model_open(&o, 11, &m));
	const struct parameter *p = layout_find(&m.layout, "model.position.table");
	assert_non_null(p);
	assert_int_equal(p->size, count);
	fill_normal(3, m.value, m.layout.size);
	memcpy(table, m.value + p->offset, count * sizeof *table);
	char *path = program_path("model.safetensors");
	assert_ok(weights_write(&m, path, NULL, 0));
	free(path);
	model_close(&m);
}

/* The test's numbers are of its own kind of real, and so are the file's: the program of that kind reads it. */
static void learned_tables(void **state)
{
	(void)state;
	real table[4 * 8], bias[6 * 2];
	put_model("learned(overflow=clamp)", table, 32);
	json_t *found = ask("model.safetensors --length=9"), *rows = json_object_get(found, "table");
	assert_int_equal(json_array_size(rows), 4);
	for (size_t i = 0; i < 32; i++)
		assert_true(json_at(json_array_get(rows, i / 8), i % 8) == (double)table[i]);
	json_decref(found);
	put_model("t5(buckets=6,max_distance=8)", bias, 12);
	found = ask("model.safetensors --length=20");
	json_t *heads = json_object_get(found, "bias"), *buckets = json_object_get(found, "buckets");
	assert_int_equal(json_array_size(heads), 2);
	assert_int_equal(json_array_size(buckets), 20);
	for (size_t h = 0; h < 2; h++)
		for (size_t d = 0; d < 20; d++)
			assert_true(json_at(json_array_get(heads, h), d) ==
				    (double)bias[(size_t)json_at(buckets, d) * 2 + h]);
	json_decref(found);
	char *text = text_of("model.safetensors");
	assert_non_null(strstr(text, "head 1"));
	free(text);
	program_refuses("inspect model.safetensors --heads=2", "--heads: model.safetensors says", "Leave it out");
	program_refuses("inspect model.safetensors --head-dim=4", "--head-dim: model.safetensors says", NULL);
}

/* ---- The options of rope. ---- */

/* Frequencies of a model that learned them, 4 pairs to be told from those it began with. */
static void learned_frequencies(void **state)
{
	(void)state;
	struct model m;
	struct method method;
	assert_ok(method_parse("encoding", position_at, "rope(learned=tempered,nope_every=2)", &method));
	struct model_options o = { .layers = 3, .width = 16, .heads = 2, .hidden = 0, .rms_eps = 1e-5,
				   .encoding = method, .train_length = 4, .positions_most = 2048,
				   .trained_scaling = method_default(scaling_at(0)) };
	assert_ok(model_open(&o, 11, &m));
	real *ratio = m.value + layout_find(&m.layout, "model.position.log_ratio")->offset;
	real *factor = m.value + layout_find(&m.layout, "model.position.log_attention_factor")->offset;
	fill_normal(3, m.value, m.layout.size);
	char *path = program_path("model.safetensors");
	assert_ok(weights_write(&m, path, NULL, 0));
	free(path);
	json_t *found = ask("model.safetensors"), *inv_freq = json_object_get(found, "inv_freq");
	json_t *zones = json_object_get(json_array_get(json_object_get(found, "zones"), 0), "inv_freq");
	json_t *layers = json_object_get(found, "layer_rotates");
	assert_int_equal(json_array_size(inv_freq), 4);
	for (size_t i = 0; i < 4; i++)
		assert_close(json_at(inv_freq, i), pow(500, -2.0 * (double)i / 8) * exp((double)ratio[i]), 1e-13);
	assert_true(json_equal(inv_freq, zones));
	assert_close(json_number(found, "attention_factor"), exp((double)*factor), 1e-13);
	assert_int_equal(json_array_size(layers), 3);
	for (size_t i = 0; i < 3; i++)
		assert_true(json_at(layers, i) == (i != 1));
	json_decref(found);
	char *text = text_of("model.safetensors");
	assert_non_null(strstr(text, "Frequencies are learned: these are the ones of the model."));
	assert_non_null(strstr(text, "Of the 3 layers these do not rotate: 1."));
	free(text);
	model_close(&m);
}

/* Pairs are those of the part that is rotated; one that stands still has no wavelength. */
static void parts_of_a_head(void **state)
{
	(void)state;
	json_t *found = ask("--head-dim=12 --rotary-dim=8 --p-rope=0.5 --scaling=linear --factor=2");
	json_t *inv_freq = json_object_get(found, "inv_freq"), *wavelengths = json_object_get(found, "wavelengths");
	assert_true(json_number(found, "rotary_dim") == 8 && json_number(found, "head_dim") == 12);
	assert_int_equal(json_array_size(inv_freq), 4);
	assert_int_equal(json_array_size(wavelengths), 4);
	for (size_t i = 0; i < 4; i++) {
		double wanted = i < 2 ? pow(500, -2.0 * (double)i / 8) / 2 : 0;
		assert_close(json_at(inv_freq, i), wanted, 1e-14);
		assert_true(json_is_null(json_array_get(wavelengths, i)) == (i >= 2));
	}
	assert_null(json_object_get(found, "layer_rotates"));
	json_decref(found);
	char *text = text_of("--head-dim=12 --rotary-dim=8 --p-rope=0.5 --nope-every=3 --layers=7");
	assert_non_null(strstr(text, "2 pairs stand still"));
	assert_non_null(strstr(text, "Of the 7 layers these do not rotate: 2, 5."));
	free(text);
	text = text_of("--rope-dropped");
	assert_non_null(strstr(text, "Of the 2 layers these do not rotate: 0, 1."));
	free(text);
	program_refuses("inspect --rotary-dim=7", "rotary_dim: 7 is odd", NULL);
	program_refuses("inspect --rotary-dim=34", "rotary_dim: 34 is more than the head_dim 32", NULL);
	program_refuses("inspect --rope-learned --scaling=yarn", "of this model are learned", NULL);
}

/* ---- Whatever is asked. ---- */

/* Every encoding with every scaling it takes, and also past the trained length, in both forms. */
static void every_encoding_and_scaling(void **state)
{
	(void)state;
	const struct entry *e, *s;
	/* What is compared has no reals: a few will do for the program of doubles. */
	int shown = 0, stride = sizeof(real) == sizeof(double) ? 5 : 1;
	for (int i = 0; (e = position_at(i)); i += stride)
		for (int j = 0; (s = scaling_at(j)); j++) {
			char flags[FLAGS_TEXT] = "";
			bool takes = position_of(&(struct method){ .entry = e })->rope_theta ||
				     scaling_of(&(struct method){ .entry = s })->any_encoding;
			flags_add(flags, "--encoding=%s --scaling=%s --head-dim=4 --train-length=8", e->name, s->name);
			if (!takes)
				continue;
			json_t *found = ask(flags);
			assert_string_equal(json_string_value(json_object_get(found, "encoding")), e->name);
			assert_string_equal(json_string_value(json_object_get(found, "scaling")), s->name);
			assert_true(json_number(found, "length") == 8);
			json_decref(found);
			shown++;
		}
	assert_true(shown >= 6 + 6 + 5);
	program_refuses("inspect --encoding=alibi --scaling=yarn", "scaling: yarn changes RoPE's frequencies", "alibi");
	program_refuses("inspect --encoding=learned --length=65", "length 65", "64 rows");
	program_refuses("inspect --encoding=rope --head-dim=5", "head_dim: 5", "odd");
	program_refuses("inspect --encoding=rope --width=30 --heads=4", "heads: 4 does not divide the width 30", NULL);
	program_refuses("inspect --head-dim=65537", "--head-dim: 65537: out of range", "0 to 65536");
	program_refuses("inspect --scaling=ntk --head-dim=2", "ntk: needs a head_dim above 2", NULL);
	program_refuses("inspect --scaling=none --factor=3", "--factor: has no effect: the scaling is none", NULL);
	program_refuses("inspect nowhere", "nowhere", NULL);
}

/* A factor of 1 changes no bit of any scaling that has one. */
static void factor_of_one(void **state)
{
	(void)state;
	const struct entry *s;
	json_t *none = ask("--scaling=none --length=640");
	int checked = 0;
	for (int j = 0; (s = scaling_at(j)); j++) {
		struct method m = method_default(s);
		char flags[FLAGS_TEXT] = "";
		if (!scaling_has_factor(&m))
			continue;
		flags_add(flags, "--scaling=%s --factor=1 --length=640", s->name);
		json_t *found = ask(flags);
		assert_true(json_equal(json_object_get(found, "inv_freq"), json_object_get(none, "inv_freq")));
		assert_true(json_number(found, "attention_factor") == 1);
		json_decref(found);
		checked++;
	}
	assert_true(checked >= 4);
	json_decref(none);
}

/* Zones as attention gets them: the top-level numbers are those of the last. */
static void zones(void **state)
{
	(void)state;
	json_t *found = ask("--scaling=dynamic(block=64) --length=200"), *list = json_object_get(found, "zones");
	assert_int_equal(json_array_size(list), 4);
	for (size_t i = 0; i < 4; i++) {
		const json_t *z = json_array_get(list, i);
		char flags[FLAGS_TEXT] = "";
		assert_true(json_number(z, "begin") == 64 * (double)i);
		assert_true(json_number(z, "end") == fmin(64 * (double)i + 64, 200));
		flags_add(flags, "--scaling=dynamic --length=%.0f", json_number(z, "end"));
		json_t *whole = ask(flags);
		assert_true(json_equal(json_object_get(z, "inv_freq"), json_object_get(whole, "inv_freq")));
		json_decref(whole);
	}
	assert_true(json_equal(json_object_get(json_array_get(list, 3), "inv_freq"),
			       json_object_get(found, "inv_freq")));
	json_decref(found);
	found = ask("--encoding=nope --scaling=window(size=10) --length=100");
	const json_t *window = json_array_get(json_object_get(found, "zones"), 0);
	assert_true(json_number(window, "first_low") == 0 && json_number(window, "first_high") == 1);
	assert_true(json_number(window, "last_low") == 90 && json_number(window, "last_high") == 100);
	json_decref(found);
}

/* What the numbers mean: the relations among them, at a length past training. */
static void pairs_by_hand(void **state)
{
	(void)state;
	const char *flags = "--head-dim=16 --scaling=yarn --train-length=64 --length=512";
	json_t *found = ask(flags);
	const json_t *inv_freq = json_object_get(found, "inv_freq"), *kept = json_object_get(found, "kept"),
		     *trained = json_object_get(found, "trained_inv_freq");
	assert_true(json_number(found, "factor") == 8 && json_number(found, "rope_theta") == 500);
	assert_int_equal(json_array_size(kept), 8);
	for (size_t m = 0; m < 8; m++) {
		double share = json_at(kept, m), theta = json_at(trained, m);
		close_to(theta, pow(500, -2.0 * (double)m / 16), flags, "the trained frequency");
		close_to(json_at(inv_freq, m), share * theta + (1 - share) * theta / 8, flags, "the blend");
		close_to(json_at(json_object_get(found, "wavelengths"), m), 2 * M_PI / json_at(inv_freq, m), flags,
			 "the wavelength");
		close_to(json_at(json_object_get(found, "rotations"), m), 64 * theta / (2 * M_PI), flags, "rotations");
		close_to(json_at(json_object_get(found, "angles"), m), 511 * json_at(inv_freq, m), flags, "the angle");
	}
	json_decref(found);
	char *text = text_of(flags);
	assert_non_null(strstr(text, "Of 8 pairs 1 are kept, 2 on the ramp, 5 interpolated by"));
	assert_non_null(strstr(text, "0 meet angles"));
	free(text);
	text = text_of("--head-dim=16 --length=512");
	assert_non_null(strstr(text, "Of 8 pairs 8 are kept, 0 between, 0 interpolated by"));
	assert_non_null(strstr(text, "5 meet angles"));
	free(text);
	/* What was trained is the model's base, whichever the scaling takes. */
	found = ask("--head-dim=16 --scaling=abf(theta=5000)+linear(factor=2)");
	for (size_t m = 0; m < 8; m++) {
		close_to(json_at(json_object_get(found, "trained_inv_freq"), m), pow(500, -2.0 * (double)m / 16), flags,
			 "the trained frequency");
		close_to(json_at(json_object_get(found, "inv_freq"), m), pow(5000, -2.0 * (double)m / 16) / 2, flags,
			 "the frequency");
	}
	json_decref(found);
	text = text_of("--head-dim=16 --length=512 --scaling=window"); /* no distance is longer than in training */
	assert_non_null(strstr(text, "0 meet angles"));
	free(text);
	text = text_of("--encoding=t5 --length=30");
	assert_non_null(strstr(text, "27 and beyond"));
	free(text);
	text = text_of("--encoding=alibi");
	assert_non_null(strstr(text, "\n     1  0.0039062"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_frequencies), cmocka_unit_test(golden_slopes),
		cmocka_unit_test(golden_buckets),     cmocka_unit_test(golden_sinusoids),
		cmocka_unit_test(learned_frequencies), cmocka_unit_test(parts_of_a_head),
		cmocka_unit_test(learned_tables),     cmocka_unit_test(every_encoding_and_scaling),
		cmocka_unit_test(factor_of_one),      cmocka_unit_test(zones),
		cmocka_unit_test(pairs_by_hand),
	};
	return cmocka_run_group_tests_name("inspect", tests, program_setup_own, program_teardown);
}
