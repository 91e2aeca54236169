#include "tests/layer_case.h"

#include "model/base/blas.h"
#include "model/position/zones.h"
#include "tests/model_case.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Encodings that read the text and not its positions, cope and fox: golden numbers, and the formulas in plain loops
 * over several tiles, under zones that leave keys out. */

#ifdef ROPEWALK_DOUBLE
#define CLOSE 1e-10
#else
#define CLOSE 2e-5
#endif

/* Three tiles of keys, and blocks of queries that end within them. */
enum { LONG = 600 };

/* ---- Zones: the last keys and, apart from them, the first ones. ---- */

#define SINKS 3
#define NEAR 70

static bool seen_all(int i, int j)
{
	return j <= i;
}

static bool seen_apart(int i, int j)
{
	return j <= i && (j < SINKS || i - j < NEAR);
}

static void apart_zones(const struct zones_request *q, struct arena *a, struct zones *out)
{
	const struct place *p = q->place;
	struct zone *zone = ARENA_TAKE(a, struct zone, 2);
	struct zone near = zone_plain(q, a, 0, p->T), first = zone_plain(q, a, 0, p->T);
	int *low = ARENA_TAKE(a, int, (size_t)p->T), *high = ARENA_TAKE(a, int, (size_t)p->T);
	*out = (struct zones){ .zone = zone, .count = 2, .together = 2 };
	if (!zone)
		return;
	for (int i = 0; i < p->T; i++) {
		low[i] = i < NEAR ? 0 : i - NEAR + 1;
		high[i] = low[i] < SINKS ? low[i] : SINKS;
	}
	near.low = low;
	first.high = high;
	zone[0] = near;
	zone[1] = first;
}

static const struct scaling apart = {
	.entry = { .name = "apart", .joins = scaling_joins },
	.any_encoding = true,
	.zones = apart_zones,
};

/* Both ways of seeing keys. */
static const struct sight {
	bool (*seen)(int i, int j);
	bool apart;
} sights[] = { { seen_all, false }, { seen_apart, true } };

static struct method sight_of(const struct sight *s)
{
	return s->apart ? method_default(&apart.entry) : scaling_named("none");
}

static void fill(const json_t *rows, size_t columns, real *to)
{
	for (size_t i = 0; i < json_array_size(rows) * columns; i++)
		to[i] = (real)json_at(json_array_get(rows, i / columns), i % columns);
}

/* ---- CoPE. ---- */

static bool truth(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

/* softmax(scores) of the golden case, and the rows of values that it makes. */
static void check_attention(const struct layer_case *c, const json_t *expected)
{
	for (int i = 0; i < c->T; i++) {
		const real *score = c->scores + i * c->T;
		const json_t *row = json_array_get(json_object_get(expected, "attention"), (size_t)i);
		double sum = 0;
		for (int j = 0; j <= i; j++)
			sum += exp((double)score[j]);
		for (int j = 0; j <= i; j++)
			assert_close(exp((double)score[j]) / sum, json_at(row, (size_t)j), CLOSE);
		row = json_array_get(json_object_get(expected, "output"), (size_t)i);
		for (int d = 0; d < c->D; d++)
			assert_close(c->output[i * c->D + d], json_at(row, (size_t)d), CLOSE);
	}
}

static void cope_golden(void **state)
{
	(void)state;
	json_t *root = golden_json("cope");
	size_t count = json_array_size(json_object_get(root, "cases")), undivided = 0;
	for (size_t n = 0; n < count; n++) {
		const json_t *s = golden_part(root, n, "settings"), *e = golden_part(root, n, "expected");
		const json_t *terms = json_object_get(e, "position_logits_raw");
		int T = (int)json_number(s, "T"), D = (int)json_number(s, "head_dim");
		bool divide = !truth(s, "nodiv");
		char label[64];
		struct layer_case c;
		struct method none = scaling_named("none");
		snprintf(label, sizeof label, "cope(npos=%d%s)", (int)json_number(s, "npos"),
			 divide ? "" : ",divide=off");
		layer_open(&c, label, 999, 1, T, D);
		fill(json_object_get(s, "q"), (size_t)D, c.q);
		fill(json_object_get(s, "k"), (size_t)D, c.k);
		fill(json_object_get(s, "v"), (size_t)D, c.v);
		fill(json_object_get(s, "pos_emb"), (size_t)D, layer_tensor(&c, "table"));
		layer_run(&c, &none);
		check_attention(&c, e);
		for (int i = 0; i < T; i++)
			for (int j = 0; j <= i; j++) {
				double z = json_at(json_array_get(terms, (size_t)i), (size_t)j), product = layer_product(&c, 0, i, j);
				layer_check(&c, 0, i, j, divide ? (product + z) / sqrt(D) : product / sqrt(D) + z,
					    CLOSE);
			}
		undivided += !divide;
		layer_close(&c);
	}
	assert_true(count == 3 && undivided == 1);
	json_decref(root);
}

/* q_i.e(position) */
static double contextual_term(const struct layer_case *c, const real *table, int head, int i, int npos, double position)
{
	const real *q = c->q + (head * c->T + i) * c->D;
	double p = fmin(position, npos - 1), share = p - floor(p), sum = 0;
	const real *lower = table + (int)floor(p) * c->D, *upper = table + (int)ceil(p) * c->D;
	for (int d = 0; d < c->D; d++)
		sum += (double)q[d] * ((1 - share) * (double)lower[d] + share * (double)upper[d]);
	return sum;
}

/* The formula, a row at a time: gates of keys that are not seen count nothing. */
static void check_cope(const struct layer_case *c, const struct sight *s, bool scaled, bool divide, int npos)
{
	double root = sqrt(c->D);
	const real *table = layer_tensor(c, "table");
	for (int head = 0; head < c->H; head++)
		for (int i = 0; i < c->T; i++) {
			double position = 0;
			for (int j = c->T - 1; j >= 0; j--) {
				if (!s->seen(i, j)) {
					layer_check(c, head, i, j, -INFINITY, 0);
					continue;
				}
				double product = layer_product(c, head, i, j);
				position += 1 / (1 + exp(-product / (scaled ? root : 1)));
				double z = contextual_term(c, table, head, i, npos, position);
				layer_check(c, head, i, j, divide ? (product + z) / root : product / root + z, CLOSE);
			}
		}
}

static void cope_by_hand(void **state)
{
	(void)state;
	static const struct {
		const char *label;
		bool scaled, divide;
		int npos, D;
	} cases[] = {
		{ "cope", true, true, 41, 8 },
		{ "cope(npos=700)", true, true, 700, 5 },
		{ "cope(gates=unscaled,divide=off)", false, false, 41, 12 },
		{ "cope(divide=off,npos=2)", true, false, 2, 3 },
		{ "cope(gates=unscaled,npos=300)", false, true, 300, 8 },
	};
	for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
		struct layer_case c;
		const struct sight *sight = &sights[n / 2 % 2];
		struct method scaling = sight_of(sight);
		layer_open(&c, cases[n].label, 40, n % 2 ? 1 : 3, LONG, cases[n].D);
		real *table = layer_tensor(&c, "table");
		fill_normal(9, table, (size_t)(cases[n].npos * cases[n].D));
		/* Not so steep that the rounding of q.k shows. */
		for (int i = 0; i < cases[n].npos * cases[n].D; i++)
			table[i] *= (real)0.2;
		layer_run(&c, &scaling);
		check_cope(&c, sight, cases[n].scaled, cases[n].divide, cases[n].npos);
		layer_close(&c);
	}
}

/* Many gates, summed exactly enough: in float they are off by no more than they would be one by one. */
static void cope_of_a_long_sequence(void **state)
{
	(void)state;
	struct layer_case c;
	struct method none = scaling_named("none");
	layer_open(&c, "cope", 2048, 1, 2048, 4);
	fill_normal(9, layer_tensor(&c, "table"), 2049 * 4);
	layer_run(&c, &none);
	check_cope(&c, &sights[0], true, true, 2049);
	layer_close(&c);
}

/* A table of zeros, as at first, adds nothing; where tokens stand is not looked at. */
static void cope_does_not_look_at_positions(void **state)
{
	(void)state;
	struct layer_case c;
	struct method none = scaling_named("none");
	layer_open(&c, "cope", 16, 2, 40, 8);
	for (int t = 0; t < 40; t++)
		c.positions[t] = 1000.5 * (t / 3); /* NOLINT: they repeat and leap */
	layer_run(&c, &none);
	for (int i = 0; i < 40; i++)
		for (int j = 0; j <= i; j++)
			layer_check(&c, 1, i, j, layer_product(&c, 1, i, j) / sqrt(8), CLOSE);
	fill_normal(9, layer_tensor(&c, "table"), 17 * 8);
	layer_run(&c, &none);
	check_cope(&c, &sights[0], true, true, 17);
	layer_close(&c);
}

static void cope_refuses_a_table_of_one(void **state)
{
	(void)state;
	struct layout l = { 0 };
	struct model_options o = small_options("cope(npos=1)");
	assert_err(layout_build(&o, CASE_V, &l), ERR_USAGE, "npos");
	o = small_options("cope(npos=2)");
	assert_ok(layout_build(&o, CASE_V, &l));
	layout_free(&l);
}

/* ---- FoX. ---- */

/* x such that gate h of token t is the file's: w_h picks x_h, the logit of f. */
static void set_gates(struct layer_case *c, const json_t *log_forget)
{
	int C = c->H * c->D;
	real *weight = layer_tensor(c, "weight"), *bias = layer_tensor(c, "bias");
	for (int h = 0; h < c->H; h++) {
		bias[h] = (real)0.25;
		for (int i = 0; i < C; i++)
			weight[h * C + i] = i == h;
		for (int t = 0; t < c->T; t++) {
			double ln = json_at(json_array_get(log_forget, (size_t)t), (size_t)h);
			c->x[t * C + h] = (real)(ln - log(-expm1(ln)) - 0.25);
		}
	}
}

/* [T][heads][D] of the file to [H][T][D]. */
static void fill_heads(const struct layer_case *c, const json_t *from, real *to)
{
	for (int h = 0; h < c->H; h++)
		for (int t = 0; t < c->T; t++)
			for (int d = 0; d < c->D; d++)
				to[(h * c->T + t) * c->D + d] = (real)json_at(
					json_array_get(json_array_get(from, (size_t)t), (size_t)h), (size_t)d);
}

static void fox_golden(void **state)
{
	(void)state;
	json_t *root = golden_json("forgetting_attention_fox");
	const json_t *s = golden_part(root, 0, "settings"), *e = golden_part(root, 0, "expected");
	struct layer_case c;
	struct method none = scaling_named("none");
	layer_open(&c, "fox", 3, (int)json_number(s, "heads"), (int)json_number(s, "T"),
		   (int)json_number(s, "head_dim"));
	fill_heads(&c, json_object_get(s, "q"), c.q);
	fill_heads(&c, json_object_get(s, "k"), c.k);
	fill_heads(&c, json_object_get(s, "v"), c.v);
	set_gates(&c, json_object_get(s, "log_forget"));
	layer_run(&c, &none);
	real *output = TAKE(real, c.H * c.T * c.D);
	fill_heads(&c, json_object_get(e, "output"), output);
	for (int i = 0; i < c.H * c.T * c.D; i++)
		assert_close(c.output[i], output[i], CLOSE);
	for (int h = 0; h < c.H; h++)
		for (int i = 0; i < c.T; i++)
			for (int j = 0; j <= i; j++) {
				const json_t *bias = json_array_get(json_object_get(e, "bias"), (size_t)h);
				layer_check(&c, h, i, j,
					    layer_product(&c, h, i, j) / sqrt(c.D) +
						    json_at(json_array_get(bias, (size_t)i), (size_t)j),
					    CLOSE);
			}
	free(output);
	layer_close(&c);
	json_decref(root);
}

static double log_forget(const struct layer_case *c, int head, int t)
{
	int C = c->H * c->D;
	const real *w = layer_tensor(c, "weight") + head * C, *x = c->x + t * C;
	double z = (double)layer_tensor(c, "bias")[head];
	for (int i = 0; i < C; i++)
		z += (double)w[i] * (double)x[i];
	return -log(1 + exp(-z));
}

/* The formula: a key loses the gates of all tokens after it, up to the query's own, be they seen or not. */
static void check_fox(const struct layer_case *c, const struct sight *s)
{
	double *gate = TAKE(double, c->T);
	for (int head = 0; head < c->H; head++) {
		for (int t = 0; t < c->T; t++)
			gate[t] = log_forget(c, head, t);
		for (int i = 0; i < c->T; i++) {
			double sum = 0;
			for (int j = c->T - 1; j >= 0; j--) {
				double product = layer_product(c, head, i, j) / sqrt(c->D);
				layer_check(c, head, i, j, s->seen(i, j) ? product + sum : -INFINITY, CLOSE);
				sum += j <= i ? gate[j] : 0;
			}
		}
	}
	free(gate);
}

static void fox_by_hand(void **state)
{
	(void)state;
	for (int v = 0; v < 2; v++) {
		struct layer_case c;
		struct method scaling = sight_of(&sights[v]);
		layer_open(&c, "fox", 40, 3, LONG, 5);
		layer_tensor(&c, "bias")[1] = 4; /* a slow head */
		for (int t = 0; t < LONG; t++)
			c.positions[t] = 1000.5 * (t / 3); /* NOLINT: they repeat and leap, and are not looked at */
		layer_run(&c, &scaling);
		check_fox(&c, &sights[v]);
		layer_close(&c);
	}
}

/* Sums of thousands, whose differences are still exact. */
static void fox_of_a_long_sequence(void **state)
{
	(void)state;
	enum { T = 1500 };
	struct layer_case c;
	struct method none = scaling_named("none");
	layer_open(&c, "fox", 40, 1, T, 4);
	real *bias = layer_tensor(&c, "bias");
	bias[0] = -9; /* 9 nats a token */
	layer_run(&c, &none);
	double sum = 0;
	for (int t = 0; t < T; t++) {
		sum += log_forget(&c, 0, t);
		if (t > 0)
			layer_check(&c, 0, t, t - 1,
				    layer_product(&c, 0, t, t - 1) / sqrt(4) + log_forget(&c, 0, t), CLOSE);
		layer_check(&c, 0, t, t, layer_product(&c, 0, t, t) / sqrt(4), CLOSE);
	}
	assert_below(sum, -10000);
	layer_close(&c);
}

/* ---- Gradients under zones that leave keys out. ---- */

static void gradients_of_keys_apart(void **state)
{
	(void)state;
	static const char *const labels[] = { "fox", "cope(npos=100)" };
	struct method scaling = method_default(&apart.entry);
	for (int n = 0; n < 2; n++) {
		struct model_case c;
		struct model_options o = sized_options(labels[n], 6, 3);
		o.layers = 1;
		o.hidden = 0;
		case_open_method(&c, &o, &scaling, 1, TILE_COLUMNS + 40, NULL);
		struct gradcheck g = gradcheck(&c.model, c.transformer, c.token, c.target, 1, 11, c.gradient);
		if (!(g.error < (sizeof(real) == sizeof(double) ? SELFCHECK_LIMIT : 0.3)))
			fail_msg("%s: %s is off by %.3g", labels[n], g.worst->name, g.error);
		case_close(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cope_golden),
		cmocka_unit_test(cope_by_hand),
		cmocka_unit_test(cope_of_a_long_sequence),
		cmocka_unit_test(cope_does_not_look_at_positions),
		cmocka_unit_test(cope_refuses_a_table_of_one),
		cmocka_unit_test(fox_golden),
		cmocka_unit_test(fox_by_hand),
		cmocka_unit_test(fox_of_a_long_sequence),
		cmocka_unit_test(gradients_of_keys_apart),
	};
	struct err e = blas_start(1);
	if (e.code) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests_name("model contextual", tests, NULL, NULL);
}
