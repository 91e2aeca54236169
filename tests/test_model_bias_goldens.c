#include "model/base/blas.h"
#include "model/scores.h"
#include "tests/model_case.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Biases against the numbers of other programs, through the attention that training runs; and the gradients of learned
 * ones through the hooks, pair by pair, where differences would meet kinks or the ends of a domain. */

#ifdef ROPEWALK_DOUBLE
#define ROUNDING 1e-12
#define GRADIENT_ROUNDING 1e-11
#else
#define ROUNDING 2e-6
#define GRADIENT_ROUNDING 1e-4
#endif

/* ---- Golden biases. ---- */

/* Numbers of nested arrays, in order; returns how many there were. */
static size_t flatten(const json_t *from, real *to)
{
	size_t count = 0;
	if (json_is_number(from)) {
		*to = (real)json_number_value(from);
		return 1;
	}
	for (size_t i = 0; i < json_array_size(from); i++)
		count += flatten(json_array_get(from, i), to + count);
	return count;
}

/* Fills a tensor of the one layer: from numbers in arrays, or all its items with one number. */
static void set(struct model *m, const char *name, const json_t *numbers, double number)
{
	char full[96];
	snprintf(full, sizeof full, "model.layers.0.self_attn.position.%s", name);
	const struct parameter *p = layout_find(&m->layout, full);
	assert_non_null(p);
	for (size_t i = 0; i < p->size; i++)
		m->value[p->offset + i] = (real)number;
	if (numbers && !json_is_null(numbers))
		assert_int_equal(flatten(numbers, m->value + p->offset), p->size);
}

static struct model model_of(const char *label, int H, int D)
{
	struct model_options o = sized_options(label, H * D, H);
	struct model m;
	assert_ok(scores_model(&o, &m));
	return m;
}

/* Logits [H][T][T] of q.k = 2 everywhere, at positions 0 .. T - 1. */
static real *logits_of(const struct model *m, int T)
{
	int H = (int)m->options.heads, D = (int)(m->options.width / H);
	real *ones = TAKE(real, H * T * D), *scores = TAKE(real, H * T * T);
	double *positions = TAKE(double, T);
	for (int i = 0; i < H * T * D; i++)
		ones[i] = (real)sqrt(2.0 / D);
	for (int t = 0; t < T; t++)
		positions[t] = t;
	struct method none = scaling_named("none");
	struct scores_request q = { .model = m, .scaling = &none, .B = 1, .T = T, .positions = positions,
				    .q = ones, .k = ones };
	assert_ok(scores_compute(&q, scores, NULL));
	free(ones);
	free(positions);
	return scores;
}

/* bias [heads][i][0 .. i]; returns how many were compared. */
static int check_bias(const struct model *m, const json_t *bias)
{
	int H = (int)json_array_size(bias), T = (int)json_array_size(json_array_get(bias, 0)), compared = 0;
	double scaled = 2 / sqrt((double)(m->options.width / m->options.heads));
	assert_int_equal(H, m->options.heads);
	real *found = logits_of(m, T);
	for (int h = 0; h < H; h++)
		for (int i = 0; i < T; i++)
			for (int j = 0; j <= i; j++, compared++) {
				const json_t *row = json_array_get(json_array_get(bias, (size_t)h), (size_t)i);
				double wanted = scaled + json_at(row, (size_t)j);
				assert_close(found[(h * T + i) * T + j], wanted, ROUNDING * fmax(1, fabs(wanted)));
			}
	free(found);
	return compared;
}

/* power_a and power_p are the power kernel with p or a of 1. */
static void kerple_golden(void **state)
{
	(void)state;
	json_t *root = golden_json("kerple");
	int compared = 0, clamped = 0;
	for (size_t i = 0; i < json_array_size(json_object_get(root, "cases")); i++) {
		const json_t *s = golden_part(root, i, "settings"), *e = golden_part(root, i, "expected");
		bool log = !strcmp(json_string_value(json_object_get(s, "kind")), "log");
		struct model m = model_of(log ? "kerple" : "kerple(kernel=power)", (int)json_number(s, "heads"), 3);
		set(&m, "a", json_object_get(s, "a"), 1);
		set(&m, "p", json_object_get(s, "p"), 1);
		compared += check_bias(&m, json_object_get(e, "bias"));
		clamped += !json_equal(json_object_get(s, "p"), json_object_get(e, "p_used")) &&
			   json_object_get(e, "p_used");
		model_close(&m);
	}
	assert_int_equal(compared, 4 * (2 * 21 + 4 * 15));
	assert_int_equal(clamped, 2);
	json_decref(root);
}

static void fire_golden(void **state)
{
	(void)state;
	json_t *root = golden_json("fire");
	int compared = 0;
	for (size_t i = 0; i < json_array_size(json_object_get(root, "cases")); i++) {
		const json_t *s = golden_part(root, i, "settings");
		char label[96];
		snprintf(label, sizeof label, "fire(width=%.0f,init_length=%.17g,eps=%.17g)",
			 json_number(s, "mlp_width"), json_number(s, "init_L"), json_number(s, "eps"));
		for (int sign = -1; sign <= 1; sign += 2) { /* of c and of the multiplier, which do not count */
			struct model m = model_of(label, (int)json_number(s, "heads"), 5);
			set(&m, "c", NULL, sign * json_number(s, "c"));
			set(&m, "L_multiplier", NULL, sign * json_number(s, "L_multiplier"));
			set(&m, "mlp.0.weight", json_object_get(s, "w1"), 0);
			set(&m, "mlp.0.bias", json_object_get(s, "b1"), 0);
			set(&m, "mlp.2.weight", json_object_get(s, "w2"), 0);
			set(&m, "mlp.2.bias", json_object_get(s, "b2"), 0);
			compared += check_bias(&m, json_object_get(golden_part(root, i, "expected"), "bias"));
			model_close(&m);
		}
	}
	assert_int_equal(compared, 2 * (2 * 28 + 3 * 21));
	json_decref(root);
}

static void sandwich_golden(void **state)
{
	(void)state;
	json_t *root = golden_json("sandwich");
	int compared = 0;
	for (size_t i = 0; i < json_array_size(json_object_get(root, "cases")); i++) {
		const json_t *s = golden_part(root, i, "settings");
		char label[64];
		snprintf(label, sizeof label, "sandwich(width=%.0f,start=1)", json_number(s, "d_bar"));
		struct model m = model_of(label, (int)json_number(s, "heads"), 2);
		compared += check_bias(&m, json_object_get(golden_part(root, i, "expected"), "bias_nemo"));
		model_close(&m);
	}
	assert_int_equal(compared, 4 * 21 + 2 * 15);
	json_decref(root);
}

/* From 0 there is a wave of frequency 1 more, and one of 1/10000 less. */
static void sandwich_starts(void **state)
{
	(void)state;
	enum { H = 3, T = 40 };
	struct model first = model_of("sandwich(start=0,width=20)", H, 2);
	struct model second = model_of("sandwich(start=1,width=20)", H, 2);
	real *a = logits_of(&first, T), *b = logits_of(&second, T);
	for (int h = 0; h < H; h++)
		for (int i = 0; i < T; i++)
			for (int j = 0; j <= i; j++) {
				double wave = (cos(i - j) - cos((i - j) * 1e-4)) * H / (8 * (h + 1));
				assert_close((double)a[(h * T + i) * T + j] - (double)b[(h * T + i) * T + j], wave,
					     ROUNDING);
			}
	free(a);
	free(b);
	model_close(&first);
	model_close(&second);
}

/* ---- What a head of hard_alibi sees. ---- */

static void hard_alibi_windows(void **state)
{
	enum { T = 300 };
	static const struct {
		const char *label;
		int H, window[6]; /* 0: all */
	} cases[] = {
		{ "hard_alibi", 1, { 2 } },
		{ "hard_alibi", 2, { 2, 0 } },
		{ "hard_alibi(step=1)", 5, { 1, 2, 3, 0, 0 } },
		{ "hard_alibi(windows=5,step=50)", 6, { 50, 100, 150, 200, 250, 0 } },
	};
	(void)state;
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		struct model m = model_of(cases[c].label, cases[c].H, 4);
		real *found = logits_of(&m, T);
		assert_int_equal(m.layout.size, 0);
		for (int h = 0; h < cases[c].H; h++)
			for (int i = 0; i < T; i++)
				for (int j = 0; j < T; j++) {
					int window = cases[c].window[h];
					bool seen = j <= i && (!window || i - j < window);
					real x = found[(h * T + i) * T + j];
					assert_true(seen ? fabs((double)x - 1) < 1e-6 : x == (real)-INFINITY);
				}
		free(found);
		model_close(&m);
	}
}

static void refused(void **state)
{
	static const struct {
		const char *label, *option;
		int H;
	} cases[] = {
		{ "hard_alibi(windows=3)", "hard_alibi_windows", 3 },
		{ "hard_alibi(windows=2)", "hard_alibi_windows", 1 },
		{ "hard_alibi(windows=1.5)", "hard_alibi_windows", 4 },
		{ "sandwich(width=7)", "sandwich_width", 2 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct model_options o = sized_options(cases[i].label, 4 * cases[i].H, cases[i].H);
		struct model m;
		assert_err(scores_model(&o, &m), ERR_USAGE, cases[i].option);
	}
}

/* ---- Parameters. ---- */

/* How many an encoding adds to nope's, by layers and heads. */
static void parameters(void **state)
{
	static const struct {
		const char *label;
		int layer, layer_head, head; /* reals a layer, a layer and head, a head */
	} cases[] = {
		{ "sandwich", 0, 0, 0 },
		{ "hard_alibi", 0, 0, 0 },
		{ "kerple", 0, 2, 0 },
		{ "fire", 2 + 2 * 32, 32 + 1, 0 },
		{ "fire(width=5)", 2 + 2 * 5, 5 + 1, 0 },
		{ "t5", 0, 0, 16 },
		{ "t5(per_layer=on)", 0, 16, 0 },
		{ "sinusoidal(layout=tensor2tensor)", 0, 0, 0 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (int H = 1; H <= 4; H++) {
			struct model_options plain = sized_options("nope", 12, H);
			struct model_options o = sized_options(cases[i].label, 12, H);
			struct layout without, with;
			plain.layers = o.layers = 3;
			assert_ok(layout_build(&plain, CASE_V, &without));
			assert_ok(layout_build(&o, CASE_V, &with));
			assert_int_equal(with.size - without.size,
					 3 * (cases[i].layer + H * cases[i].layer_head) + H * cases[i].head);
			layout_free(&without);
			layout_free(&with);
		}
}

/* What is learned starts as it is said to, and no update leaves it outside its domain. */
static void kerple_domain(void **state)
{
	enum { H = 4 };
	static const real before[2 * H] = { -1, 0, (real)0.5, 7, -3, (real)0.005, (real)1.5, (real)2.5 };
	static const double within[2][2 * H] = { { 0.01, 0.01, 0.5, 7, 0.01, 0.01, 1.5, 2.5 },
						 { 0.01, 0.01, 0.5, 7, 0.01, 0.01, 1.5, 2 } };
	(void)state;
	for (int power = 0; power < 2; power++) {
		struct model_options o = sized_options(power ? "kerple(kernel=power)" : "kerple", 4 * H, H);
		struct place p = place_of(&o);
		real own[2 * H];
		memcpy(own, before, sizeof own);
		p.position->constrain(&p, NULL, own);
		for (int i = 0; i < 2 * H; i++)
			assert_true(own[i] == (real)within[power][i]);
		own[1] = own[H + 3] = (real)NAN; /* is not hidden */
		p.position->constrain(&p, NULL, own);
		assert_true(isnan(own[1]) && isnan(own[H + 3]));
	}
}

/* ---- Gradients, pair by pair. ---- */

enum { ROWS = 90, COLUMNS = 250, HEADS = 3 };

/* A tile by the hooks, all heads: d_logits in, the gradient of the layer's parameters out. */
struct tile_case {
	struct model model;
	struct place place;
	double position[COLUMNS + ROWS], query[ROWS];
	int low[ROWS], high[ROWS];
	real *logits, *d_logits; /* [HEADS][ROWS][TILE_STRIDE] */
	real *gradient;
};

static void open_tile(struct tile_case *c, const char *label, double (*map)(int))
{
	*c = (struct tile_case){ .model = model_of(label, HEADS, 4) };
	c->place = place_of(&c->model.options);
	for (int t = 0; t < COLUMNS + ROWS; t++)
		c->position[t] = map(t);
	c->place.T = COLUMNS + ROWS;
	c->place.positions = c->position;
	for (int r = 0; r < ROWS; r++) {
		int i = r < 60 ? r + 30 : r + 200; /* some see part of the tile, some rows are left out */
		c->query[r] = map(i);
		c->low[r] = r % 7;
		c->high[r] = i + 1 < COLUMNS ? i + 1 : COLUMNS;
	}
	size_t reals = (size_t)HEADS * ROWS * TILE_STRIDE;
	c->logits = TAKE(real, reals);
	c->d_logits = TAKE(real, reals);
	c->gradient = TAKE(real, c->model.layout.size + 1);
	fill_normal(5, c->d_logits, reals);
}

static void close_tile(struct tile_case *c)
{
	free(c->logits);
	free(c->d_logits);
	free(c->gradient);
	model_close(&c->model);
}

static void run_tile(struct tile_case *c)
{
	const struct place *p = &c->place;
	const struct position *position = p->position;
	size_t reals = position->table_reals(p), tile = (size_t)ROWS * TILE_STRIDE;
	real *table = TAKE(real, HEADS * reals), *d_table = TAKE(real, HEADS * reals);
	real *d = TAKE(real, HEADS * tile);
	struct prepared made = { .table = table };
	struct place_parameters own = { .layer = c->model.value };
	position->prepare(p, own, &made);
	memcpy(d, c->d_logits, HEADS * tile * sizeof *d);
	for (int h = 0; h < HEADS; h++) {
		struct tile t = { .rows = ROWS, .columns = COLUMNS, .head = h, .D = p->D, .low = c->low,
				  .high = c->high, .query_positions = c->query, .key_positions = c->position,
				  .table = table + (size_t)h * reals, .scale = (real)0.5 };
		position->logits(p, &t, c->logits + (size_t)h * tile);
		position->logits_back(p, &t, NULL, d + (size_t)h * tile,
				      (struct tile_gradient){ .table = d_table + (size_t)h * reals });
	}
	for (size_t i = 0; i < HEADS * tile; i++) {
		int r = (int)(i / TILE_STRIDE) % ROWS, j = (int)(i % TILE_STRIDE);
		if (j >= c->low[r] && j < c->high[r])
			assert_true(d[i] == c->d_logits[i] * (real)0.5);
	}
	position->prepare_back(p, own, &made, d_table, NULL, 0, (struct place_gradients){ .layer = c->gradient });
	free(table);
	free(d_table);
	free(d);
}

/* Adds the gradient of d bias to [size] doubles, and returns the bias. */
typedef double bias_and_gradient(const struct place *p, const real *own, int head, double query, double distance,
				 double d, double *gradient);

static void check_tile(const char *label, double (*map)(int), void (*fill)(real *own, size_t size),
		       bias_and_gradient *naive)
{
	struct tile_case c;
	open_tile(&c, label, map);
	size_t size = c.model.layout.size;
	double *wanted = TAKE(double, size + 1), greatest = 0;
	fill(c.model.value, size);
	run_tile(&c);
	for (int h = 0; h < HEADS; h++)
		for (int r = 0; r < ROWS; r++)
			for (int j = c.low[r]; j < c.high[r]; j++) {
				size_t at = (size_t)((h * ROWS + r) * TILE_STRIDE + j);
				double bias = naive(&c.place, c.model.value, h, c.query[r],
						    c.query[r] - c.position[j], (double)c.d_logits[at], wanted);
				assert_close(c.logits[at], bias, ROUNDING * fmax(1, fabs(bias)));
			}
	for (size_t i = 0; i < size; i++)
		greatest = fmax(greatest, fabs(wanted[i]));
	for (size_t i = 0; i < size; i++)
		if (!(fabs((double)c.gradient[i] - wanted[i]) <= GRADIENT_ROUNDING * greatest))
			fail_msg("%s: gradient %zu is %.17g, not %.17g", label, i, (double)c.gradient[i], wanted[i]);
	free(wanted);
	close_tile(&c);
}

static double plain(int t)
{
	return 1000000 + t;
}

static double from_zero(int t)
{
	return t;
}

static double strange(int t)
{
	return t / 3 * 2 + (t % 3 == 2) * 0.75;
}

static double leaps(int t)
{
	return t * 500.0;
}

static double (*const maps[])(int) = { plain, from_zero, strange, leaps };

/* c, multiplier, w1 [W], b1 [W], w2 [H][W], b2 [H]. */
static double fire_naive(const struct place *p, const real *own, int head, double query, double distance, double d,
			 double *g)
{
	enum { W = 9 };
	double c = fabs((double)own[0]), m = fabs((double)own[1]), L = m * 70, at = fmax(L, query);
	double top = log1p(c * distance), bottom = log1p(c * at) + 0.01, x = top / bottom, d_x = 0;
	const real *w1 = own + 2, *b1 = w1 + W, *w2 = b1 + W;
	double bias = (double)w2[p->H * W + head];
	for (int n = 0; n < W; n++) {
		double hidden = (double)w1[n] * x + (double)b1[n], weight = (double)w2[head * W + n];
		if (hidden <= 0)
			continue;
		bias += weight * hidden;
		g[2 + 2 * W + head * W + n] += d * hidden;
		g[2 + n] += d * weight * x;
		g[2 + W + n] += d * weight;
		d_x += d * weight * (double)w1[n];
	}
	g[2 + 2 * W + p->H * W + head] += d;
	double d_top = d_x / bottom, d_bottom = -d_x * x / bottom;
	g[0] += (own[0] < 0 ? -1 : 1) * (d_top * distance / (1 + c * distance) + d_bottom * at / (1 + c * at));
	if (L >= query)
		g[1] += (own[1] < 0 ? -1 : 1) * d_bottom * c / (1 + c * L) * 70;
	return bias;
}

/* Knots anywhere, two of them one; a unit that never turns, and one that is always off. */
static void fire_fill(real *own, size_t size)
{
	fill_normal(8, own, size);
	own[0] = (real)-0.3;
	own[1] = (real)-1.13;
	for (int n = 0; n < 6; n++) {
		double knot = n == 5 ? 0.32 : 0.08 + 0.12 * n;
		own[2 + n] = (real)(n % 2 ? 1.25 : -0.75);
		own[2 + 9 + n] = (real)(-knot * (double)own[2 + n]);
	}
	own[2 + 6] = 0;
	own[2 + 9 + 6] = (real)0.5;
	own[2 + 7] = 0;
	own[2 + 9 + 7] = (real)-0.5;
}

static void fire_gradients(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		check_tile("fire(width=9,init_length=70,eps=0.01)", maps[i], fire_fill, fire_naive);
}

/* a [H], p [H]; the gradient is that of the values within the domain. */
static double kerple_naive(const struct place *p, const real *own, int head, double distance, double d, bool power,
			   double *g)
{
	double a = fmax((double)own[head], (double)(real)0.01), e = fmax((double)own[p->H + head], (double)(real)0.01);
	if (!power) {
		g[head] -= d * e * distance / (1 + a * distance);
		g[p->H + head] -= d * log1p(a * distance);
		return -e * log1p(a * distance);
	}
	e = fmin(e, 2);
	g[head] -= d * pow(distance, e);
	if (distance > 0)
		g[p->H + head] -= d * a * pow(distance, e) * log(distance);
	return -a * pow(distance, e);
}

static double log_naive(const struct place *p, const real *own, int head, double query, double distance, double d,
			double *g)
{
	(void)query;
	return kerple_naive(p, own, head, distance, d, false, g);
}

static double power_naive(const struct place *p, const real *own, int head, double query, double distance, double d,
			  double *g)
{
	(void)query;
	return kerple_naive(p, own, head, distance, d, true, g);
}

static void kerple_fill(real *own, size_t size)
{
	static const double values[2 * HEADS] = { 0.3, -0.5, 0.02, 1.3, 0.7, 2.6 };
	assert_int_equal(size, 2 * HEADS);
	for (int i = 0; i < 2 * HEADS; i++)
		own[i] = (real)values[i];
}

static void kerple_gradients(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		check_tile("kerple", maps[i], kerple_fill, log_naive);
		check_tile("kerple(kernel=power)", maps[i], kerple_fill, power_naive);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kerple_golden),
		cmocka_unit_test(fire_golden),
		cmocka_unit_test(sandwich_golden),
		cmocka_unit_test(sandwich_starts),
		cmocka_unit_test(hard_alibi_windows),
		cmocka_unit_test(refused),
		cmocka_unit_test(parameters),
		cmocka_unit_test(kerple_domain),
		cmocka_unit_test(fire_gradients),
		cmocka_unit_test(kerple_gradients),
	};
	struct err e = blas_start(1);
	if (e.code) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests_name("model bias goldens", tests, NULL, NULL);
}
