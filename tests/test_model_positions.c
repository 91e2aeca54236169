#include "tests/reference.h"

#include "model/base/blas.h"
#include "model/position/rope.h"
#include "tests/model_case.h"

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef ROPEWALK_DOUBLE
#define ROUNDING 1e-13
#else
#define ROUNDING 3e-7
#endif

/* ---- What is added to the embeddings. ---- */

/* Vectors [T][C] of an encoding at these positions. */
static real *vectors(const struct model_options *o, const real *table, int T, const double *positions)
{
	struct place p = place_of(o);
	real *vector = TAKE(real, T * p.C);
	p.T = T;
	p.positions = positions;
	p.position->embed(&p, (struct place_parameters){ .shared = table }, 0, T, vector);
	return vector;
}

/* One layout of a golden case; returns how many numbers were compared. */
static int check_layout(const json_t *settings, const json_t *wanted, const char *layout, double scale)
{
	const json_t *rows = json_object_get(settings, "rows");
	int T = (int)json_array_size(wanted), C = (int)json_number(settings, "d_model");
	double positions[16];
	char label[96];
	snprintf(label, sizeof label, "sinusoidal(layout=%s,scale=%.17g)", layout, scale);
	struct model_options o = sized_options(label, C, 2);
	assert_true(T <= 16);
	for (int t = 0; t < T; t++)
		positions[t] = rows ? json_at(rows, (size_t)t) : t;
	real *found = vectors(&o, NULL, T, positions);
	for (int n = 0; n < T * C; n++)
		assert_close(found[n], json_at(json_array_get(wanted, (size_t)(n / C)), (size_t)(n % C)) * scale,
			     fmax(ROUNDING, 1e-12)); /* the largest angle is 2048 */
	free(found);
	return T * C;
}

static void sinusoidal_golden(void **state)
{
	static const char *const layout[][2] = { { "interleaved_paper", "interleaved" },
						 { "concatenated_paper_frequencies", "concatenated" },
						 { "t2t_fairseq_variant", "tensor2tensor" } };
	int checked[3] = { 0 };
	(void)state;
	json_t *root = golden_json("sinusoidal");
	for (size_t i = 0; i < json_array_size(json_object_get(root, "cases")); i++)
		for (int l = 0; l < 3; l++) {
			const json_t *s = golden_part(root, i, "settings");
			const json_t *wanted = json_object_get(golden_part(root, i, "expected"), layout[l][0]);
			for (int scaled = 0; scaled < 2 && wanted; scaled++)
				checked[l] += check_layout(s, wanted, layout[l][1], scaled ? sqrt(2) : 1);
		}
	assert_int_equal(checked[0], 2 * (9 * 8 + 4 * 32 + 5 * 8));
	assert_int_equal(checked[1], 2 * (9 * 8 + 4 * 32));
	assert_int_equal(checked[2], 2 * (9 * 8 + 4 * 32));
	json_decref(root);
}

/* tensor2tensor: with one pair the frequency is 1, and an odd width ends in a column of zeros. */
static void sinusoidal_of_small_widths(void **state)
{
	static const double two[] = { 0.9092974268256817, -0.4161468365471424 },
			    five[] = { 0.9092974268256817, 2e-4 - 8e-12 / 6, -0.4161468365471424, 1 - 2e-8, 0 };
	(void)state;
	struct model_options o = sized_options("sinusoidal(layout=tensor2tensor,scale=1)", 2, 1);
	real *found = vectors(&o, NULL, 1, &(double){ 2 });
	for (int c = 0; c < 2; c++)
		assert_close(found[c], two[c], ROUNDING);
	free(found);
	o = sized_options("sinusoidal(layout=tensor2tensor,scale=1)", 5, 1);
	found = vectors(&o, NULL, 1, &(double){ 2 });
	for (int c = 0; c < 5; c++)
		assert_close(found[c], five[c], ROUNDING);
	free(found);
}

static void sinusoidal_by_hand(void **state)
{
	(void)state;
	static const double wanted[] = { 0, 1, 0, 1, 0.841471, 0.540302, 0.0099998, 0.99995 };
	struct model_options o = sized_options("sinusoidal(scale=1)", 4, 1);
	real *found = vectors(&o, NULL, 2, (double[]){ 0, 1 });
	for (int i = 0; i < 8; i++)
		assert_close(found[i], wanted[i], 6e-7);
	free(found);
	o = sized_options("sinusoidal", 64, 2);
	double positions[100], squares = 0;
	for (int t = 0; t < 100; t++)
		positions[t] = 1000 + t;
	found = vectors(&o, NULL, 100, positions);
	for (int i = 0; i < 6400; i++)
		squares += (double)found[i] * (double)found[i];
	assert_close(squares / 6400, 1, 1e-6); /* the RMS of the embedding */
	free(found);
}

static void learned_golden(void **state)
{
	(void)state;
	json_t *root = golden_json("learned_absolute");
	const json_t *s = golden_part(root, 0, "settings"), *e = golden_part(root, 0, "expected");
	const json_t *table = json_object_get(s, "table"), *x = json_object_get(s, "x"),
		     *sum = json_object_get(e, "x_plus_pos");
	int rows = (int)json_array_size(table), T = (int)json_array_size(x);
	struct model_options o = sized_options("learned", 4, 1);
	real own[64];
	double positions[16];
	o.train_length = rows;
	for (int i = 0; i < rows * 4; i++)
		own[i] = (real)json_at(json_array_get(table, (size_t)(i / 4)), (size_t)(i % 4));
	for (int t = 0; t < T; t++)
		positions[t] = t;
	real *found = vectors(&o, own, T, positions);
	for (int i = 0; i < T * 4; i++)
		assert_close(found[i] + (real)json_at(json_array_get(x, (size_t)(i / 4)), (size_t)(i % 4)),
			     json_at(json_array_get(sum, (size_t)(i / 4)), (size_t)(i % 4)), 0); /* multiples of 1/32 */
	free(found);
	json_decref(root);
}

static void learned_refuses_what_is_past_its_table(void **state)
{
	(void)state;
	struct model m;
	struct transformer *t;
	size_t bytes;
	struct model_options o = small_options("learned");
	assert_ok(model_open(&o, CASE_V, &m));
	struct transformer_request q = { .model = &m, .B = 1, .T = 17 };
	assert_err(transformer_open(&q, &t), ERR_USAGE, "17");
	assert_err(transformer_open(&q, &t), ERR_USAGE, "16");
	assert_err(transformer_bytes(&q, &bytes), ERR_USAGE, "overflow");
	q.T = 16;
	assert_ok(transformer_open(&q, &t));
	transformer_close(t);
	q.T = 2;
	q.positions = (double[]){ 3, 16 }; /* it is the position that counts */
	assert_err(transformer_open(&q, &t), ERR_USAGE, "17");
	q.positions = (double[]){ 3, 15 };
	assert_ok(transformer_open(&q, &t));
	transformer_close(t);
	model_close(&m);
	static const char *const labels[] = { "learned(overflow=clamp)", "learned(overflow=random)",
					      "learned(overflow=interpolate)" };
	for (int i = 0; i < 3; i++) {
		struct model_case c;
		o = small_options(labels[i]);
		case_open(&c, &o, "none", 1, 50, NULL);
		assert_true(isfinite(case_loss(&c)));
		case_close(&c);
	}
}

enum { ROWS = 16, WIDTH = 32, LONG = 46 };

static bool same_row(const real *vector, int t, const real *table, int row)
{
	return !memcmp(vector + t * WIDTH, table + row * WIDTH, sizeof *vector * WIDTH);
}

static void learned_overflows(void **state)
{
	(void)state;
	static const char *const labels[] = { "learned(overflow=clamp)", "learned(overflow=interpolate)",
					      "learned(overflow=random)" };
	real *table = TAKE(real, ROWS * WIDTH);
	double positions[LONG];
	fill_normal(3, table, ROWS * WIDTH);
	for (int t = 0; t < LONG; t++)
		positions[t] = t;
	for (int i = 0; i < 3; i++) {
		struct model_options o = small_options(labels[i]);
		real *within = vectors(&o, table, ROWS, positions), *past = vectors(&o, table, LONG, positions);
		assert_memory_equal(within, table, sizeof *table * ROWS * WIDTH); /* as trained */
		for (int t = 0; t < LONG; t++) {
			if (i != 1 && t < ROWS)
				assert_true(same_row(past, t, table, t));
			else if (i == 0)
				assert_true(same_row(past, t, table, ROWS - 1));
			else if (i == 1 && t % 3 == 0) /* 46 positions shrunk to 16: every third meets a row */
				assert_true(same_row(past, t, table, t / 3));
			else if (i == 1)
				for (int c = 0; c < WIDTH; c++)
					assert_close(past[t * WIDTH + c],
						     ((3 - t % 3) * (double)table[t / 3 * WIDTH + c] +
						      t % 3 * (double)table[(t / 3 + 1) * WIDTH + c]) /
							     3,
						     2 * ROUNDING);
		}
		free(within);
		free(past);
	}
	free(table);
}

/* Random rows: N(0, 1), one a position, the same each time and from whichever row one starts. */
static void learned_random_rows(void **state)
{
	(void)state;
	enum { FAR = 4000 };
	struct model_options o = small_options("learned(overflow=random)");
	real *table = TAKE(real, ROWS * WIDTH);
	double *positions = TAKE(double, FAR), sum = 0, squares = 0;
	for (int t = 0; t < FAR; t++)
		positions[t] = ROWS + t / 2;
	real *found = vectors(&o, table, FAR, positions), *again = vectors(&o, table, FAR - 7, positions + 7);
	for (int t = 0; t < FAR; t++) {
		assert_true(t < 7 || same_row(found, t, again, t - 7));
		assert_int_equal(t > 0 && same_row(found, t, found, t - 1), t % 2);
		for (int c = 0; c < WIDTH && t % 2; c++) {
			sum += (double)found[t * WIDTH + c];
			squares += (double)found[t * WIDTH + c] * (double)found[t * WIDTH + c];
		}
	}
	assert_below(fabs(sum / (FAR / 2 * WIDTH)), 4 / sqrt(FAR / 2 * WIDTH));
	assert_below(fabs(squares / (FAR / 2 * WIDTH) - 1), 4 * sqrt(2.0 / (FAR / 2 * WIDTH)));
	free(found);
	free(again);
	free(table);
	free(positions);
}

/* ---- Rotation. ---- */

/* x [D] turned to a position. */
static void turn(double theta, int D, double position, double a, const double *x, double *turned)
{
	double inv_freq[64];
	real from[128], to[128], cosine[64], sine[64];
	assert_true(D <= 128);
	rope_frequencies(theta, D, inv_freq);
	for (int m = 0; m < D / 2; m++) {
		cosine[m] = (real)(a * cos(position * inv_freq[m]));
		sine[m] = (real)(a * sin(position * inv_freq[m]));
	}
	for (int d = 0; d < D; d++)
		from[d] = (real)x[d];
	struct rotation r = { .rows = 1, .D = D, .F = D / 2, .positions = &position, .inv_freq = inv_freq,
			      .attention_factor = a, .cosine = cosine, .sine = sine };
	rope_rotate(&r, from, D, to);
	for (int d = 0; d < D; d++)
		turned[d] = (double)to[d];
}

/* Row t, head h of a golden array [T][heads][D]. */
static void row_of(const json_t *array, size_t t, size_t h, int D, double *x)
{
	const json_t *row = json_array_get(json_array_get(array, t), h);
	for (int d = 0; d < D; d++)
		x[d] = json_at(row, (size_t)d);
}

struct applied {
	int D, heads, T;
	double theta;
	const json_t *settings, *expected, *positions;
};

static double tolerance_at(double position)
{
	return fmax(4 * ROUNDING, 2e-17 * position);
}

/* Queries or keys in both layouts: what we rotate in adjacent pairs is, permuted, what others rotate in halves. */
static void check_rotated(const struct applied *a, const char *name, const char *adjacent, const char *halves)
{
	const json_t *P = json_object_get(a->expected, "perm_half_from_interleaved");
	for (int t = 0; t < a->T; t++)
		for (int h = 0; h < a->heads; h++) {
			double x[64], wanted[64], turned[64], mixed[64], position = json_at(a->positions, (size_t)t);
			row_of(json_object_get(a->settings, name), (size_t)t, (size_t)h, a->D, x);
			row_of(json_object_get(a->expected, adjacent), (size_t)t, (size_t)h, a->D, wanted);
			turn(a->theta, a->D, position, 1, x, turned);
			for (int d = 0; d < a->D; d++)
				assert_close(turned[d], wanted[d], tolerance_at(position));
			for (int d = 0; d < a->D; d++)
				mixed[(int)json_at(P, (size_t)d)] = x[d];
			turn(a->theta, a->D, position, 1, mixed, turned);
			row_of(json_object_get(a->expected, halves), (size_t)t, (size_t)h, a->D, wanted);
			for (int d = 0; d < a->D; d++)
				assert_close(turned[(int)json_at(P, (size_t)d)], wanted[d], tolerance_at(position));
		}
}

static void check_products(const struct applied *a)
{
	for (int h = 0; h < a->heads; h++)
		for (int i = 0; i < a->T; i++)
			for (int j = 0; j < a->T; j++) {
				double q[64], k[64], q_turned[64], k_turned[64], dot = 0;
				double position_i = json_at(a->positions, (size_t)i),
				       position_j = json_at(a->positions, (size_t)j);
				row_of(json_object_get(a->settings, "q"), (size_t)i, (size_t)h, a->D, q);
				row_of(json_object_get(a->settings, "k"), (size_t)j, (size_t)h, a->D, k);
				turn(a->theta, a->D, position_i, 1, q, q_turned);
				turn(a->theta, a->D, position_j, 1, k, k_turned);
				for (int d = 0; d < a->D; d++)
					dot += q_turned[d] * k_turned[d];
				const json_t *rows =
					json_array_get(json_object_get(a->expected, "qk_interleaved"), (size_t)h);
				assert_close(dot, json_at(json_array_get(rows, (size_t)i), (size_t)j),
					     10 * tolerance_at(fmax(position_i, position_j)));
			}
}

static void rope_golden(void **state)
{
	(void)state;
	json_t *root = golden_json("rope_apply");
	double farthest = 0;
	assert_int_equal(json_array_size(json_object_get(root, "cases")), 3);
	for (size_t i = 0; i < 3; i++) {
		struct applied a = { .settings = golden_part(root, i, "settings"),
				     .expected = golden_part(root, i, "expected") };
		a.D = (int)json_number(a.settings, "head_dim");
		a.heads = (int)json_number(a.settings, "heads");
		a.theta = json_number(a.settings, "base");
		a.positions = json_object_get(a.settings, "positions");
		a.T = (int)json_array_size(a.positions);
		check_rotated(&a, "q", "q_interleaved", "q_half");
		check_rotated(&a, "k", "k_interleaved", "k_half");
		check_products(&a);
		farthest = fmax(farthest, json_at(a.positions, (size_t)a.T - 1));
	}
	assert_true(farthest == 1e6);
	json_decref(root);
}

static double dot_of(const double *x, const double *y, int D)
{
	double sum = 0;
	for (int d = 0; d < D; d++)
		sum += x[d] * y[d];
	return sum;
}

/* A rotation keeps norms, times the attention factor; products depend on the distance alone. */
static void rotation_keeps_norms(void **state)
{
	(void)state;
	enum { D = 32 };
	static const double positions[] = { 0, 1, 2.5, 64, 2048, 1e6 }, factors[] = { 1, 1.138629436111989, 0.5 };
	real random[2 * D];
	double q[D], k[D], turned[D], other[D], earlier = 0;
	fill_normal(4, random, 2 * D);
	for (int d = 0; d < D; d++) {
		q[d] = (double)random[d];
		k[d] = (double)random[D + d];
	}
	for (int a = 0; a < 3; a++)
		for (int i = 0; i < 6; i++) {
			turn(500, D, positions[i], factors[a], q, turned);
			assert_close(dot_of(turned, turned, D) / dot_of(q, q, D), factors[a] * factors[a],
				     10 * ROUNDING);
			turn(500, D, positions[i] + 37, factors[a], k, other);
			double product = dot_of(turned, other, D) / (factors[a] * factors[a]);
			if (i > 0)
				assert_close(product, earlier, 50 * tolerance_at(positions[i]));
			earlier = product;
		}
	turn(500, D, 0, 1, q, turned);
	assert_memory_equal(turned, q, sizeof q); /* position 0 is the identity */
}

/* Whole rows at a stride, as attention has them, are rotated one by one. */
static void rotation_of_rows(void **state)
{
	(void)state;
	enum { N = 5, D = 6, STRIDE = 17 };
	real from[N * STRIDE], to[N * D + 1], cosine[N * D / 2], sine[N * D / 2];
	double inv_freq[D / 2], positions[N] = { 0, 3, 3, 10, 99 };
	fill_normal(9, from, N * STRIDE);
	rope_frequencies(500, D, inv_freq);
	for (int i = 0; i < N * D / 2; i++) {
		cosine[i] = (real)cos(positions[i / (D / 2)] * inv_freq[i % (D / 2)]);
		sine[i] = (real)sin(positions[i / (D / 2)] * inv_freq[i % (D / 2)]);
	}
	struct rotation r = { .rows = N, .D = D, .F = D / 2, .positions = positions, .inv_freq = inv_freq,
			      .attention_factor = 1,
			      .cosine = cosine, .sine = sine };
	to[N * D] = 77;
	rope_rotate(&r, from, STRIDE, to);
	assert_true(to[N * D] == 77);
	for (int n = 0; n < N; n++) {
		double x[D], wanted[D];
		for (int d = 0; d < D; d++)
			x[d] = (double)from[n * STRIDE + d];
		turn(500, D, positions[n], 1, x, wanted);
		for (int d = 0; d < D; d++)
			assert_true((double)to[n * D + d] == wanted[d]);
	}
}

static void odd_head_dim_is_refused(void **state)
{
	(void)state;
	for (int i = 0; position_at(i); i++) {
		struct layout l = { 0 };
		struct model_options o = sized_options(position_at(i)->name, 6, 2);
		if (position_of(&o.encoding)->rotate)
			assert_err(layout_build(&o, CASE_V, &l), ERR_USAGE, "head_dim");
		else
			assert_ok(layout_build(&o, CASE_V, &l));
		layout_free(&l);
	}
}

/* ---- Hooks come in pairs. ---- */

/* Does position_verify abort? */
static bool is_bug(const struct position *p)
{
	int status = 0;
	pid_t child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct rlimit none = { 0, 0 };
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		if (!freopen("/dev/null", "w", stderr))
			_exit(1);
		position_verify(p);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status))
		assert_int_equal(WEXITSTATUS(status), 0);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static const struct position *named(const char *name)
{
	struct method m;
	assert_ok(method_parse("encoding", position_at, name, &m));
	return (const struct position *)m.entry;
}

static void hooks_come_in_pairs(void **state)
{
	(void)state;
	position_verify_all();
	struct position p = *named("alibi");
	assert_false(is_bug(&p));
	p.logits_back = NULL;
	assert_true(is_bug(&p));
	p = *named("alibi");
	p.logits = NULL;
	assert_true(is_bug(&p));
	p = *named("rope");
	p.rotate_back = NULL;
	assert_true(is_bug(&p));
	p = *named("learned");
	p.embed_back = NULL;
	assert_true(is_bug(&p));
	p = *named("t5");
	p.prepare_back = NULL;
	assert_true(is_bug(&p));
	p = *named("fox");
	assert_false(is_bug(&p));
	p.gates_ready_back = NULL;
	assert_true(is_bug(&p));
	p = *named("xpos");
	assert_false(is_bug(&p));
	p.centred = false;
	assert_true(is_bug(&p));
	p = *named("nope");
	p.carry_reals = 1;
	assert_true(is_bug(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sinusoidal_golden),
		cmocka_unit_test(sinusoidal_of_small_widths),
		cmocka_unit_test(sinusoidal_by_hand),
		cmocka_unit_test(learned_golden),
		cmocka_unit_test(learned_refuses_what_is_past_its_table),
		cmocka_unit_test(learned_overflows),
		cmocka_unit_test(learned_random_rows),
		cmocka_unit_test(rope_golden),
		cmocka_unit_test(rotation_keeps_norms),
		cmocka_unit_test(rotation_of_rows),
		cmocka_unit_test(odd_head_dim_is_refused),
		cmocka_unit_test(hooks_come_in_pairs),
	};
	struct err e = blas_start(1);
	if (e.code) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests_name("model positions", tests, NULL, NULL);
}
