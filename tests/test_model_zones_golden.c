#include "model/base/blas.h"
#include "model/scores.h"
#include "tests/model_case.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Logits and outputs of the methods that move positions or drop keys, against those of their authors' code. */

#ifdef ROPEWALK_DOUBLE
#define TOLERANCE 1e-10
#else
#define TOLERANCE 2e-5
#endif

#define LABEL 96

/* One golden case, and what ours makes of it. */
struct golden_case {
	const json_t *settings, *expected;
	int H, T, D, train_length;
	char label[LABEL];
	real *scores, *output; /* [H][T][T], [H][T][D] */
};

static int whole(const json_t *settings, const char *name)
{
	return (int)json_number(settings, name);
}

/* The golden rows pair m with m + D / 2, ours m with its neighbour. */
static int ours(int d, int D)
{
	return d < D / 2 ? 2 * d : 2 * (d - D / 2) + 1;
}

static const json_t *row_of(const struct golden_case *c, const json_t *rows, int head, int t)
{
	const json_t *of_head = c->H > 1 || json_is_array(json_array_get(json_array_get(rows, 0), 0))
					? json_array_get(rows, (size_t)head)
					: rows;
	return json_array_get(of_head, (size_t)t);
}

static real *vectors(const struct golden_case *c, const char *name, bool pairs)
{
	const json_t *rows = json_object_get(c->settings, name);
	real *to = TAKE(real, c->H * c->T * c->D);
	for (int h = 0; h < c->H; h++)
		for (int t = 0; t < c->T; t++)
			for (int d = 0; d < c->D; d++)
				to[(h * c->T + t) * c->D + (pairs ? ours(d, c->D) : d)] =
					(real)json_at(row_of(c, rows, h, t), (size_t)d);
	return to;
}

static void compute(struct golden_case *c)
{
	char encoding[64];
	struct model m;
	struct method scaling = scaling_named(c->label);
	double *positions = TAKE(double, c->T);
	snprintf(encoding, sizeof encoding, "rope(theta=%.17g)", json_number(c->settings, "base"));
	struct model_options o = sized_options(encoding, c->H * c->D, c->H);
	o.train_length = c->train_length;
	for (int t = 0; t < c->T; t++)
		positions[t] = t;
	real *q = vectors(c, "q", true), *k = vectors(c, "k", true), *v = vectors(c, "v", false);
	c->scores = TAKE(real, c->H * c->T * c->T);
	c->output = TAKE(real, c->H * c->T * c->D);
	assert_ok(scores_model(&o, &m));
	struct scores_request request = { .model = &m, .scaling = &scaling, .B = 1, .T = c->T, .positions = positions,
					  .q = q, .k = k, .v = v };
	assert_ok(scores_compute(&request, c->scores, c->output));
	model_close(&m);
	free(positions);
	free(q);
	free(k);
	free(v);
}

static void close_case(struct golden_case *c)
{
	free(c->scores);
	free(c->output);
}

static void open_case(struct golden_case *c, json_t *root, size_t i)
{
	*c = (struct golden_case){ .settings = golden_part(root, i, "settings"),
				   .expected = golden_part(root, i, "expected") };
	c->H = json_object_get(c->settings, "heads") ? whole(c->settings, "heads") : 1;
	c->T = whole(c->settings, "T");
	c->D = whole(c->settings, "head_dim");
}

static real score(const struct golden_case *c, int head, int i, int j)
{
	return c->scores[(head * c->T + i) * c->T + j];
}

static void compare_output(const struct golden_case *c, int head, int i, const json_t *row)
{
	for (int d = 0; d < c->D; d++)
		assert_close(c->output[(head * c->T + i) * c->D + d], json_at(row, (size_t)d), TOLERANCE);
}

/* Every logit of the triangle and every output; how many logits. */
static int compare(const struct golden_case *c)
{
	const json_t *logits = json_object_get(c->expected, "logits"), *output = json_object_get(c->expected, "output");
	int compared = 0;
	for (int h = 0; h < c->H; h++)
		for (int i = 0; i < c->T; i++) {
			const json_t *row = row_of(c, logits, h, i);
			assert_int_equal(json_array_size(row), i + 1);
			for (int j = 0; j <= i; j++, compared++)
				assert_close(score(c, h, i, j), json_at(row, (size_t)j), TOLERANCE);
			compare_output(c, h, i, row_of(c, output, h, i));
		}
	return compared;
}

/* Sets the trained length, the label, and how many logits there are to compare in each case. */
struct golden_file {
	const char *name;
	void (*describe)(struct golden_case *c);
	int cases, logits;
};

/* A trained length of a million is how the golden files switch log-n off. */
static const char *logn_by_length(struct golden_case *c)
{
	int length = whole(c->settings, "training_length");
	c->train_length = length < 1000000 ? length : 64;
	return length < 1000000 ? "+logn" : "";
}

static void describe_rerope(struct golden_case *c)
{
	const char *logn = logn_by_length(c);
	snprintf(c->label, LABEL, "rerope(w=%d)%s", whole(c->settings, "window"), logn);
}

static void describe_leaky(struct golden_case *c)
{
	const char *logn = logn_by_length(c);
	snprintf(c->label, LABEL, "leaky_rerope(w=%d,k=%g)%s", whole(c->settings, "window"),
		 json_number(c->settings, "scaling_factor"), logn);
}

static void describe_self_extend(struct golden_case *c)
{
	const char *shift = json_string_value(json_object_get(c->settings, "shift_division"));
	int base = whole(c->settings, "scale_base");
	c->train_length = base > 0 ? base : 64;
	snprintf(c->label, LABEL, "self_extend(w=%d,group=%d,shift=%s)%s", whole(c->settings, "neighbor_window"),
		 whole(c->settings, "group_size"), strcmp(shift, "either") ? shift : "floor", base > 0 ? "+logn" : "");
}

/* mscale acts past the trained length alone; where the golden has another limit, that it is not passed. */
static void describe_dual_chunk(struct golden_case *c)
{
	int most = whole(c->settings, "max_position_embeddings");
	bool trained = most == whole(c->settings, "pretraining_length");
	c->train_length = whole(c->settings, "pretraining_length");
	assert_int_equal(whole(c->settings, "chunk_size"), c->train_length * 3 / 4);
	snprintf(c->label, LABEL, "dual_chunk(local=%d,mscale=%s)", whole(c->settings, "local_window"),
		 trained ? "on" : "off");
	assert_true(trained || most >= c->T);
}

static void golden(void **state)
{
	static const struct golden_file files[] = {
		{ "rerope", describe_rerope, 2, 105 + 2 * 78 },
		{ "rerope_leaky", describe_leaky, 2, 105 + 2 * 78 },
		{ "self_extend", describe_self_extend, 5, 136 + 2 * 120 + 2 * 78 + 21 },
		{ "dual_chunk_attention", describe_dual_chunk, 6, 2 * (105 + 2 * 190 + 45) },
	};
	(void)state;
	for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
		json_t *root = golden_json(files[f].name);
		int logits = 0;
		assert_int_equal(json_array_size(json_object_get(root, "cases")), files[f].cases);
		for (int i = 0; i < files[f].cases; i++) {
			struct golden_case c;
			open_case(&c, root, (size_t)i);
			files[f].describe(&c);
			compute(&c);
			logits += compare(&c);
			close_case(&c);
		}
		assert_int_equal(logits, files[f].logits);
		json_decref(root);
	}
}

/* One query of the cache: the keys it sees are those kept, with their logits; all others are masked. */
static int compare_step(const struct golden_case *c, int i, const json_t *step)
{
	const json_t *kept = json_object_get(step, "kept_keys"), *logits = json_object_get(step, "logits");
	int next = 0, count = (int)json_array_size(kept);
	for (int j = 0; j < c->T; j++) {
		if (next == count || json_at(kept, (size_t)next) != j) {
			assert_true(isinf(score(c, 0, i, j)));
			continue;
		}
		assert_close(score(c, 0, i, j), json_at(logits, (size_t)next++), TOLERANCE);
	}
	assert_int_equal(next, count);
	compare_output(c, 0, i, json_object_get(step, "output"));
	return count;
}

static void golden_sinks(void **state)
{
	(void)state;
	json_t *root = golden_json("streaming_llm");
	int logits = 0;
	for (size_t i = 0; i < 4; i++) {
		struct golden_case c;
		open_case(&c, root, i);
		const char *eviction = json_string_value(json_object_get(c.settings, "eviction"));
		c.train_length = 64;
		snprintf(c.label, LABEL, "sinks(start=%d,recent=%d,evict=%s)", whole(c.settings, "start_size"),
			 whole(c.settings, "recent_size"), strcmp(eviction, "call") ? "before" : "after");
		compute(&c);
		const json_t *steps = json_object_get(c.expected, "steps");
		assert_int_equal(json_array_size(steps), c.T);
		for (int t = 0; t < c.T; t++)
			logits += compare_step(&c, t, json_array_get(steps, (size_t)t));
		close_case(&c);
	}
	assert_int_equal(logits, (28 + 7 * 7) + (21 + 8 * 6) + (10 + 6 * 4) + 15);
	json_decref(root);
}

static void golden_logn(void **state)
{
	(void)state;
	json_t *root = golden_json("logn_scaling");
	int compared = 0;
	for (size_t i = 0; i < 2; i++) {
		const json_t *settings = golden_part(root, i, "settings"), *at = json_object_get(settings, "positions");
		const json_t *scale = json_object_get(golden_part(root, i, "expected"), "query_scale");
		struct model_options o = rope_options(500, 16, whole(settings, "training_length"));
		struct method logn = scaling_named("logn");
		for (size_t n = 0; n < json_array_size(at); n++, compared++)
			assert_close(scaling_query_scale(&logn, &o, 1e6, json_at(at, n)), json_at(scale, n), 1e-14);
	}
	assert_int_equal(compared, 22);
	json_decref(root);
}

static int start(void **state)
{
	(void)state;
	return blas_start(1).code;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(golden_sinks),
		cmocka_unit_test(golden_logn),
	};
	return cmocka_run_group_tests_name("model zones golden", tests, start, NULL);
}
