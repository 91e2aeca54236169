#include "model/base/blas.h"
#include "model/position/rope.h"
#include "model/weights.h"
#include "tests/model_case.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The options of rope: against what other programs compute, and by what must hold between them. */

#ifdef ROPEWALK_DOUBLE
#define ROUNDING 1e-10
#define SAME 1e-12
#else
#define ROUNDING 2e-5
#define SAME 1e-4
#endif

enum { GREATEST = 128 };

/* ---- Golden frequencies. ---- */

/* Those of a model of one head, and how many there are. */
static int frequencies(const char *encoding, const char *scaling, int D, double inv_freq[GREATEST / 2],
		       double *attention_factor)
{
	struct model_options o = sized_options(encoding, D, 1);
	struct method m = scaling_named(scaling);
	struct place p = place_of(&o);
	assert_ok(scaling_check(&m, &o, 64));
	scaling_frequencies(&m, &o, 64, inv_freq, attention_factor);
	return place_pairs(&p);
}

static void same_frequencies(const char *label, const char *scaling, int D, const json_t *expected)
{
	double found[GREATEST / 2], factor;
	const json_t *wanted = json_object_get(expected, "inv_freq");
	int F = frequencies(label, scaling, D, found, &factor);
	assert_int_equal(json_array_size(wanted), F);
	for (int m = 0; m < F; m++) {
		double w = json_at(wanted, (size_t)m);
		if (!(fabs(found[m] - w) <= 1e-12 * w))
			fail_msg("%s, %s: frequency %d is %.17g, not %.17g", label, scaling, m, found[m], w);
	}
	assert_true(factor == 1);
}

static void refused(const char *encoding, int D, const char *why)
{
	struct model_options o = sized_options(encoding, D, 1);
	struct layout l;
	assert_err(layout_build(&o, CASE_V, &l), ERR_USAGE, why);
	layout_free(&l);
}

/* A share of the head, given as the components it comes to; of an odd number the pairs would break. */
static void golden_rotary_dim(void **state)
{
	(void)state;
	json_t *root = golden_json("rope_partial_rotary_pct");
	int even = 0, odd = 0;
	for (size_t i = 0; i < json_array_size(json_object_get(root, "cases")); i++) {
		const json_t *s = golden_part(root, i, "settings"), *e = golden_part(root, i, "expected");
		int D = (int)json_number(s, "head_dim"), r = (int)json_number(e, "rotary_dim");
		char label[80];
		snprintf(label, sizeof label, "rope(theta=%.17g,rotary_dim=%d)", json_number(s, "base"), r);
		if (r % 2)
			refused(label, D, "odd");
		else
			same_frequencies(label, "none", D, e);
		*(r % 2 ? &odd : &even) += 1;
	}
	assert_int_equal(even, 16);
	assert_int_equal(odd, 2);
	json_decref(root);
}

static void golden_p_rope(void **state)
{
	(void)state;
	json_t *root = golden_json("rope_proportional_p_rope");
	size_t i = 0;
	for (; i < json_array_size(json_object_get(root, "cases")); i++) {
		const json_t *s = golden_part(root, i, "settings");
		char label[80], scaling[40];
		snprintf(label, sizeof label, "rope(theta=%.17g,p_rope=%.17g)", json_number(s, "base"),
			 json_number(s, "partial_rotary_factor"));
		snprintf(scaling, sizeof scaling, "linear(factor=%.17g)", json_number(s, "factor"));
		same_frequencies(label, scaling, (int)json_number(s, "head_dim"), golden_part(root, i, "expected"));
	}
	assert_int_equal(i, 36);
	json_decref(root);
}

/* ---- Golden rotations. ---- */

/* x [D] turned to a position by F pairs. */
static void turn(int D, int F, bool half, const double *inv_freq, double position, const real *x, real *turned)
{
	real cosine[GREATEST / 2], sine[GREATEST / 2];
	for (int m = 0; m < F; m++) {
		cosine[m] = (real)cos(position * inv_freq[m]);
		sine[m] = (real)sin(position * inv_freq[m]);
	}
	struct rotation r = { .rows = 1, .D = D, .F = F, .half = half, .positions = &position, .inv_freq = inv_freq,
			      .attention_factor = 1, .cosine = cosine, .sine = sine };
	rope_rotate(&r, x, D, turned);
}

/* One way to rotate rows [T][D] of a golden case, which has them as `wanted`. */
struct applied {
	const json_t *settings, *expected;
	const char *label;
	bool half;
};

static void check_rows(const struct applied *a, const char *input, const char *wanted)
{
	int D = (int)json_number(a->settings, "head_dim");
	const json_t *positions = json_object_get(a->settings, "positions");
	double inv_freq[GREATEST / 2], factor;
	int F = frequencies(a->label, "none", D, inv_freq, &factor);
	for (size_t t = 0; t < json_array_size(positions); t++) {
		real x[GREATEST], turned[GREATEST];
		const json_t *from = json_array_get(json_object_get(a->settings, input), t);
		const json_t *to = json_array_get(json_object_get(a->expected, wanted), t);
		assert_int_equal(json_array_size(to), D);
		for (int d = 0; d < D; d++)
			x[d] = (real)json_at(from, (size_t)d);
		turn(D, F, a->half, inv_freq, json_at(positions, t), x, turned);
		for (int d = 0; d < D; d++)
			assert_close(turned[d], json_at(to, (size_t)d), ROUNDING);
	}
}

static void golden_parts_of_a_head(void **state)
{
	(void)state;
	json_t *root = golden_json("rope_partial_apply");
	size_t i = 0;
	for (; i < json_array_size(json_object_get(root, "cases")); i++) {
		struct applied a = { .settings = golden_part(root, i, "settings"),
				     .expected = golden_part(root, i, "expected") };
		char part[80], share[80];
		snprintf(part, sizeof part, "rope(theta=10000,layout=half,rotary_dim=%.0f)",
			 json_number(a.expected, "rotary_dim"));
		snprintf(share, sizeof share, "rope(theta=10000,p_rope=%.17g)", json_number(a.settings, "rotary_pct"));
		a.label = part;
		a.half = true;
		check_rows(&a, "q", "q_pct_half");
		check_rows(&a, "k", "k_pct_half");
		a.label = share;
		check_rows(&a, "q", "q_p_rope_half");
		check_rows(&a, "k", "k_p_rope_half");
		a.half = false;
		check_rows(&a, "q", "q_p_rope_interleaved");
		check_rows(&a, "k", "k_p_rope_interleaved");
	}
	assert_int_equal(i, 2);
	json_decref(root);
}

/* ---- One layout and the other. ---- */

/* Where component d of a head in the half layout stands in the interleaved one. */
static int interleaved_at(int d, int D)
{
	return d < D / 2 ? 2 * d : 2 * (d - D / 2) + 1;
}

static void permuted_rows_turn_alike(void **state)
{
	(void)state;
	static const int sizes[] = { 8, 16, 32, 64, 128 };
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		int D = sizes[i];
		real x[GREATEST], mixed[GREATEST], turned[GREATEST], other[GREATEST];
		double inv_freq[GREATEST / 2];
		rope_frequencies(10000, D, inv_freq);
		fill_normal(i, x, (size_t)D);
		for (int d = 0; d < D; d++)
			mixed[d] = x[interleaved_at(d, D)];
		turn(D, D / 2, false, inv_freq, 1234.5, x, turned);
		turn(D, D / 2, true, inv_freq, 1234.5, mixed, other);
		for (int d = 0; d < D; d++)
			assert_true(other[d] == turned[interleaved_at(d, D)]);
	}
}

/* Rows of q_proj and k_proj of all layers, from the interleaved layout to the half one. */
static void permute(const struct model *m, const real *from, real *to)
{
	size_t C = (size_t)m->options.width, H = (size_t)m->options.heads, D = C / H;
	memcpy(to, from, m->layout.size * sizeof *to);
	for (int layer = 0; layer < m->options.layers; layer++) {
		const size_t at[] = { m->layout.layer[layer].q, m->layout.layer[layer].k };
		for (size_t i = 0; i < 2; i++)
			for (size_t h = 0; h < H; h++)
				for (size_t d = 0; d < D; d++)
					memcpy(to + at[i] + (h * D + d) * C,
					       from + at[i] + (h * D + (size_t)interleaved_at((int)d, (int)D)) * C,
					       C * sizeof *to);
	}
}

static void permuted_weights_are_the_same_model(void **state)
{
	(void)state;
	struct model_options o = small_options("rope"), other = small_options("rope(layout=half)");
	struct model_case a, b;
	case_open(&a, &o, "yarn(factor=2)", 2, 70, NULL);
	case_open(&b, &other, "yarn(factor=2)", 2, 70, NULL);
	real *permuted = TAKE(real, a.model.layout.size);
	real *unlike = case_logits(&b), *logits = case_logits(&a);
	permute(&a.model, a.model.value, b.model.value);
	real *same = case_logits(&b);
	double furthest = 0;
	for (int i = 0; i < 2 * 70 * CASE_V; i++) {
		assert_close(same[i], logits[i], SAME);
		furthest = fmax(furthest, fabs((double)(unlike[i] - logits[i])));
	}
	assert_true(furthest > 0.01); /* the wrong layout is another model */
	case_loss(&a), case_loss(&b);
	transformer_backward(a.transformer, a.gradient);
	transformer_backward(b.transformer, b.gradient);
	permute(&a.model, a.gradient, permuted);
	for (size_t i = 0; i < a.model.layout.size; i++)
		assert_close(b.gradient[i], permuted[i], SAME);
	free(permuted), free(unlike), free(logits), free(same);
	case_close(&a);
	case_close(&b);
}

/* ---- Without rotation. ---- */

static void same_bits(const char *encoding, const char *other)
{
	struct model_options o = small_options(encoding), p = small_options(other);
	struct model_case a, b;
	case_open(&a, &o, "none", 2, 150, NULL);
	case_open(&b, &p, "none", 2, 150, NULL);
	size_t bytes = a.model.layout.size * sizeof(real);
	assert_int_equal(a.model.layout.size, b.model.layout.size);
	real *logits = case_logits(&a), *wanted = case_logits(&b);
	transformer_backward(a.transformer, a.gradient);
	transformer_backward(b.transformer, b.gradient);
	assert_memory_equal(logits, wanted, 2 * 150 * CASE_V * sizeof(real));
	assert_memory_equal(a.gradient, b.gradient, bytes);
	free(logits), free(wanted);
	case_close(&a);
	case_close(&b);
}

static void what_does_not_turn_is_nope(void **state)
{
	(void)state;
	same_bits("rope(p_rope=0)", "nope");
	same_bits("rope(p_rope=0,layout=half)", "nope");
	same_bits("rope(nope_every=1)", "nope");
	same_bits("rope(dropped=on)", "nope");
	same_bits("rope(nope_every=3)", "rope"); /* of two layers */
	same_bits("rope(p_rope=1,rotary_dim=16)", "rope");
}

/* The largest change of a logit when a row of a layer's q_proj and k_proj meets other positions. */
static bool moves_with_position(const char *encoding)
{
	struct model_options o = small_options(encoding);
	struct model_case a, b;
	double positions[12];
	for (int t = 0; t < 12; t++)
		positions[t] = t + t / 4;
	case_open(&a, &o, "none", 1, 12, NULL);
	case_open(&b, &o, "none", 1, 12, positions);
	/* Only the components behind the first four of each head take part. */
	for (int i = 0; i < 4 * 2; i++)
		for (int h = 0; h < 2; h++)
			for (int layer = 0; layer < 2; layer++) {
				size_t row = (size_t)(h * 16 + i / 2) * 32;
				size_t at = i % 2 ? a.model.layout.layer[layer].k : a.model.layout.layer[layer].q;
				memset(a.model.value + at + row, 0, 32 * sizeof(real));
				memset(b.model.value + at + row, 0, 32 * sizeof(real));
			}
	real *x = case_logits(&a), *y = case_logits(&b);
	bool moved = memcmp(x, y, 12 * CASE_V * sizeof(real)) != 0;
	free(x), free(y);
	case_close(&a);
	case_close(&b);
	return moved;
}

static void what_is_copied_does_not_move(void **state)
{
	(void)state;
	assert_true(moves_with_position("rope"));
	assert_true(moves_with_position("rope(rotary_dim=6)"));
	assert_false(moves_with_position("rope(rotary_dim=4)"));
	assert_false(moves_with_position("rope(rotary_dim=4,layout=half)"));
	assert_false(moves_with_position("rope(p_rope=0.25)"));
	assert_true(moves_with_position("rope(p_rope=0.25,layout=half)")); /* pairs (m, m + 8) */
}

/* ---- Learned frequencies. ---- */

static void learned_begin_as_they_are(void **state)
{
	(void)state;
	static const char *const labels[] = { "rope(learned=on)", "rope(learned=tempered)" };
	struct model_options o = small_options("rope");
	struct model_case plain, learned;
	case_open(&plain, &o, "none", 2, 40, NULL);
	real *wanted = case_logits(&plain);
	for (size_t i = 0; i < 2; i++) {
		struct model_options p = small_options(labels[i]);
		case_open(&learned, &p, "none", 2, 40, NULL);
		const struct layout *l = &learned.model.layout;
		assert_int_equal(layout_count(l), layout_count(&plain.model.layout) + 1 + (int)i);
		for (int k = 0; k < layout_count(l); k++) {
			const struct parameter *mine = &l->parameter[k];
			const struct parameter *theirs = layout_find(&plain.model.layout, mine->name);
			assert_true(theirs || (!mine->decayed && mine->initialiser == INIT_ZEROS));
			if (theirs)
				memcpy(learned.model.value + mine->offset, plain.model.value + theirs->offset,
				       mine->size * sizeof(real));
			else
				memset(learned.model.value + mine->offset, 0, mine->size * sizeof(real));
		}
		real *found = case_logits(&learned);
		assert_memory_equal(found, wanted, 2 * 40 * CASE_V * sizeof(real));
		free(found);
		case_close(&learned);
	}
	free(wanted);
	case_close(&plain);
}

static void refusals(void **state)
{
	(void)state;
	struct model_options o = small_options("rope(learned=on)");
	struct method linear = scaling_named("linear"), window = scaling_named("window");
	assert_err(scaling_check(&linear, &o, 64), ERR_USAGE, "learned");
	assert_ok(scaling_check(&window, &o, 64));
	struct model_options scaled = small_options("nope");
	struct method logn = scaling_named("logn"), temperature = scaling_named("temperature");
	scaled.ssmax = 1;
	assert_err(scaling_check(&logn, &scaled, 64), ERR_USAGE, "logn and ssmax both make logits grow");
	assert_ok(scaling_check(&temperature, &scaled, 64));
	refused("rope(rotary_dim=3)", 8, "rotary_dim: 3 is odd");
	refused("rope(rotary_dim=10)", 8, "more than the head_dim 8");
	refused("rope", 9, "head_dim: 9");
	refused("rope(learned=on,p_rope=0.1)", 8, "p_rope 0.1 leaves no pair");
	refused("rope(learned=tempered,nope_every=1)", 8, "nope_every 1");
	struct layout l;
	struct model_options part = sized_options("rope(rotary_dim=4)", 9, 1); /* an odd head may have an even part */
	assert_ok(layout_build(&part, CASE_V, &l));
	layout_free(&l);
}

/* ---- Files. ---- */

static char folder[FOLDER_PATH], path[FOLDER_PATH + 32];

static int make_folder(void **state)
{
	(void)state;
	if (folder_make(folder))
		return -1;
	snprintf(path, sizeof path, "%s/model.safetensors", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return folder_remove(folder);
}

/* The metadata as another program might have left them: this layout (NULL: none) and no word of ours. */
static void make_foreign(const char *layout)
{
	struct safetensors file;
	const struct metadata foreign[] = { { "format", "pt" }, { "rope_layout", layout } };
	assert_ok(safetensors_read(path, &file));
	assert_ok(safetensors_write(path, file.tensor, file.count, foreign, layout ? 2 : 1));
	safetensors_free(&file);
}

static struct err read_as(const char *encoding)
{
	struct model_options o = small_options(encoding);
	struct safetensors file;
	struct model m;
	assert_ok(safetensors_read(path, &file));
	assert_ok(model_open(&o, CASE_V, &m));
	struct err e = weights_fill(&m, &file, path, "", false, NULL);
	model_close(&m);
	safetensors_free(&file);
	return e;
}

static void files_say_their_layout(void **state)
{
	(void)state;
	static const char *const labels[] = { "rope", "rope(layout=half)" }, *const layouts[] = { "interleaved", "half" };
	for (int i = 0; i < 2; i++) {
		struct model_options o = small_options(labels[i]);
		struct model m, got;
		assert_ok(model_open(&o, CASE_V, &m));
		fill_normal(1, m.value, m.layout.size);
		assert_ok(weights_write(&m, path, NULL, 0));
		assert_ok(weights_read(path, &got)); /* it knows itself what it is */
		assert_string_equal(weights_rope_layout(&got.options), layouts[i]);
		make_foreign(layouts[i]);
		assert_ok(read_as(labels[i]));
		assert_err(read_as(labels[1 - i]), ERR_USAGE, layouts[i]);
		assert_err(read_as(labels[1 - i]), ERR_USAGE, layouts[1 - i]);
		assert_ok(read_as("nope")); /* it has no pairs */
		make_foreign("adjacent");   /* the earlier name of interleaved */
		if (i)
			assert_err(read_as(labels[i]), ERR_USAGE, "rope_layout adjacent where half is read");
		else
			assert_ok(read_as(labels[i]));
		make_foreign(NULL);
		assert_ok(read_as(labels[1 - i]));
		model_close(&m);
		model_close(&got);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_rotary_dim),
		cmocka_unit_test(golden_p_rope),
		cmocka_unit_test(golden_parts_of_a_head),
		cmocka_unit_test(permuted_rows_turn_alike),
		cmocka_unit_test(permuted_weights_are_the_same_model),
		cmocka_unit_test(what_does_not_turn_is_nope),
		cmocka_unit_test(what_is_copied_does_not_move),
		cmocka_unit_test(learned_begin_as_they_are),
		cmocka_unit_test(refusals),
		cmocka_unit_test(files_say_their_layout),
	};
	struct err e = blas_start(1);
	if (e.code) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests_name("model rope", tests, make_folder, remove_folder);
}
