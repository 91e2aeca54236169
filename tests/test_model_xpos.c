#include "tests/layer_case.h"

#include "model/base/blas.h"
#include "model/base/stb.h"
#include "model/inspect.h"
#include "model/position/rope.h"
#include "tests/model_case.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* xPos: golden products, and the formula in plain loops over several tiles, far away and over leaps that no power of an
 * absolute position would survive. */

#ifdef ROPEWALK_DOUBLE
#define CLOSE 1e-10
#define CLOSE_FAR 1e-8
#else
#define CLOSE 2e-5
#define CLOSE_FAR 1e-4
#endif

#define FAR 1048576

static double zeta(double gamma, int D, int m)
{
	return (2.0 * m / D + gamma) / (1 + gamma);
}

/* Products, whose vectors differ between implementations by the centre that powers count from. */
static void xpos_golden(void **state)
{
	(void)state;
	json_t *root = golden_json("xpos");
	size_t count = json_array_size(json_object_get(root, "cases"));
	struct method none = scaling_named("none");
	for (size_t n = 0; n < count; n++) {
		const json_t *s = golden_part(root, n, "settings");
		const json_t *wanted = json_object_get(golden_part(root, n, "expected"), "qk_torchscale");
		int D = (int)json_number(s, "head_dim"), T = (int)json_number(s, "length");
		char label[64];
		struct layer_case c;
		snprintf(label, sizeof label, "xpos(theta=10000,scale_base=%.17g)", json_number(s, "scale_base"));
		layer_open(&c, label, 3, 1, T, D);
		for (int i = 0; i < T * D; i++) {
			size_t t = (size_t)(i / D), d = (size_t)(i % D);
			c.q[i] = (real)json_at(json_array_get(json_object_get(s, "q"), t), d);
			c.k[i] = (real)json_at(json_array_get(json_object_get(s, "k"), t), d);
		}
		layer_run(&c, &none);
		for (int i = 0; i < T; i++)
			for (int j = 0; j <= i; j++)
				layer_check(&c, 0, i, j,
					    json_at(json_array_get(wanted, (size_t)i), (size_t)j) / sqrt(D), CLOSE);
		layer_close(&c);
	}
	assert_int_equal(count, 2);
	json_decref(root);
}

/* What `inspect` shows of zeta is the file's. */
static void xpos_golden_zeta(void **state)
{
	(void)state;
	json_t *root = golden_json("xpos");
	struct method none = scaling_named("none");
	int checked = 0;
	for (size_t n = 0; n < 2; n++) {
		const json_t *wanted = json_object_get(golden_part(root, n, "expected"), "zeta");
		int D = (int)json_number(golden_part(root, n, "settings"), "head_dim");
		struct model_options o = sized_options("xpos", D, 1);
		struct inspect_request q = { .options = &o, .length = 100, .scaling = &none };
		struct report r = { 0 };
		assert_ok(inspect(&q, &r));
		for (ptrdiff_t t = 0; t < arrlen(r.table); t++)
			for (ptrdiff_t i = 0; i < arrlen(r.table[t].column); i++) {
				const struct report_column *c = &r.table[t].column[i];
				for (int m = 0; c->name && !strcmp(c->name, "zeta") && m < D / 2; m++, checked++)
					assert_close(c->value[m], json_at(wanted, (size_t)m), 1e-14);
				for (int m = 0; c->name && !strcmp(c->name, "decays") && m < D / 2; m++)
					assert_close(c->value[m], pow(json_at(wanted, (size_t)m), 99 / 512.0), 1e-14);
			}
		report_free(&r);
	}
	assert_int_equal(checked, 4 + 8);
	json_decref(root);
}

struct formula {
	double gamma, scale_base, theta, stretch; /* angles are divided by this */
};

/* sum over pairs of zeta^(r/B) Re(q conj(k) exp(i r theta_m)), r the distance. */
static double score(const struct layer_case *c, const struct formula *f, int head, int i, int j)
{
	const real *q = c->q + (head * c->T + i) * c->D, *k = c->k + (head * c->T + j) * c->D;
	double distance = c->positions[i] - c->positions[j], sum = 0;
	for (int m = 0; m < c->D / 2; m++) {
		double angle = distance * pow(f->theta, -2.0 * m / c->D) / f->stretch;
		double a = (double)q[2 * m], b = (double)q[2 * m + 1], x = (double)k[2 * m], y = (double)k[2 * m + 1];
		sum += pow(zeta(f->gamma, c->D, m), distance / f->scale_base) *
		       ((a * x + b * y) * cos(angle) + (a * y - b * x) * sin(angle));
	}
	return sum / sqrt(c->D);
}

static void check_scores(const struct layer_case *c, const struct formula *f, double tolerance)
{
	for (int head = 0; head < c->H; head++)
		for (int i = 0; i < c->T; i++)
			for (int j = 0; j <= i; j++)
				layer_check(c, head, i, j, score(c, f, head, i, j), tolerance);
}

/* Several blocks and tiles; heads of more pairs than are taken at once; a RoPE scaling, which changes angles alone. */
static void xpos_by_hand(void **state)
{
	(void)state;
	static const struct {
		const char *label, *scaling;
		struct formula formula;
		int H, T, D;
	} cases[] = {
		{ "xpos", "none", { 0.4, 512, 500, 1 }, 3, 400, 6 },
		{ "xpos(gamma=0.1,scale_base=40,theta=100)", "none", { 0.1, 40, 100, 1 }, 1, 600, 2 },
		{ "xpos", "linear(factor=4)", { 0.4, 512, 500, 4 }, 1, 150, 8 },
		{ "xpos", "none", { 0.4, 512, 500, 1 }, 1, 40, 134 },
	};
	for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
		struct layer_case c;
		struct method scaling = scaling_named(cases[n].scaling);
		layer_open(&c, cases[n].label, 40, cases[n].H, cases[n].T, cases[n].D);
		layer_run(&c, &scaling);
		check_scores(&c, &cases[n].formula, CLOSE);
		layer_close(&c);
	}
}

/* The smallest options: powers that overflow within a block, unless it is cut. */
static void xpos_that_fades_at_once(void **state)
{
	(void)state;
	static const struct formula f = { 0.01, 1, 500, 1 };
	struct layer_case c;
	struct method none = scaling_named("none");
	layer_open(&c, "xpos(gamma=0.01,scale_base=1)", 40, 1, 300, 4);
	layer_run(&c, &none);
	check_scores(&c, &f, CLOSE);
	layer_close(&c);
}

/* Positions of a block: what they are far away, leaps of all sizes, repeated and fractional ones. */
static void make_positions(int kind, int T, double *positions)
{
	for (int t = 0; t < T; t++) {
		double leap = t < 40 ? 0 : t < 90 ? FAR / 2 : t < 97 ? FAR - 200 : FAR;
		positions[t] = kind == 0 ? FAR + t : kind == 1 ? leap + t : t * 20000.0;
		if (kind == 3)
			positions[t] = t / 3 * 2 + (t % 3 == 2) * 0.75; /* NOLINT: they repeat */
	}
}

static void xpos_at_strange_positions(void **state)
{
	(void)state;
	static const struct formula f = { 0.4, 512, 500, 1 };
	struct method none = scaling_named("none");
	for (int kind = 0; kind < 4; kind++) {
		struct layer_case c;
		layer_open(&c, "xpos", 40, 2, 130, 6);
		make_positions(kind, c.T, c.positions);
		layer_run(&c, &none);
		check_scores(&c, &f, CLOSE_FAR);
		layer_close(&c);
	}
}

/* In float they are finite. */
static void gradients_at_strange_positions(void **state)
{
	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		struct model_case c;
		double positions[130];
		struct model_options o = sized_options("xpos", 12, 2);
		o.layers = 1;
		o.hidden = 0;
		make_positions(kind, 130, positions);
		case_open(&c, &o, "none", 1, 130, positions);
		struct gradcheck g = gradcheck(&c.model, c.transformer, c.token, c.target, 1, 11, c.gradient);
		if (!(g.error < (sizeof(real) == sizeof(double) ? SELFCHECK_LIMIT : 0.3)))
			fail_msg("positions %d: %s is off by %.3g", kind, g.worst->name, g.error);
		case_close(&c);
	}
}

/* Powers are counted from any centre; keys behind the block, whose powers would overflow, are finite. */
static void powers_count_from_the_centre(void **state)
{
	(void)state;
	enum { D = 4 };
	struct model_options o = sized_options("xpos", D, 1);
	struct place p = place_of(&o);
	double position = 700, inv_freq[D / 2];
	real from[D] = { 1, 2, 3, 4 }, to[D], cosine[D / 2] = { 1, 1 }, sine[D / 2] = { 0 };
	rope_frequencies(500, D, inv_freq);
	for (int side = SIDE_QUERY; side <= SIDE_KEY; side++)
		for (int c = 0; c < 3; c++) {
			struct rotation r = { .place = &p, .rows = 1, .D = D, .F = D / 2, .side = (enum side)side,
					      .positions = &position, .centre = (double[]){ 700, 188, -FAR }[c],
					      .inv_freq = inv_freq, .attention_factor = 1, .cosine = cosine,
					      .sine = sine };
			p.position->rotate(&r, from, D, to);
			for (int d = 0; d < D; d++) {
				double power = pow(zeta(0.4, D, d / 2), (side ? -1 : 1) * c);
				if (c < 2)
					assert_close(to[d], (d + 1) * power, CLOSE);
				else
					assert_true(isfinite(to[d]));
			}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xpos_golden),
		cmocka_unit_test(xpos_golden_zeta),
		cmocka_unit_test(xpos_by_hand),
		cmocka_unit_test(xpos_that_fades_at_once),
		cmocka_unit_test(xpos_at_strange_positions),
		cmocka_unit_test(gradients_at_strange_positions),
		cmocka_unit_test(powers_count_from_the_centre),
	};
	struct err e = blas_start(1);
	if (e.code) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests_name("model xpos", tests, NULL, NULL);
}
