#include "tests/model_case.h"

#include "model/base/blas.h"
#include "model/base/stb.h"
#include "model/inspect.h"
#include "model/scores.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* shaw, transformer_xl and deberta against plain loops over inputs without any symmetry, at positions near and far,
 * consecutive or not; the gradients of what other tests do not reach; what `inspect` says; what they refuse. */

#ifdef ROPEWALK_DOUBLE
#define ROUNDING 1e-10
#define FAR_ROUNDING 1e-8 /* angles of 2^20 */
#define LIMIT SELFCHECK_LIMIT
#else
#define ROUNDING 2e-5
#define FAR_ROUNDING 2e-5
#define LIMIT 0.3
#endif

/* ---- Plain loops. ---- */

/* What a case's tensors hold, in the order they were added. */
struct plain {
	int H, T, D, C;
	const double *positions;
	double *q, *k, *v, *own[3];
};

static const double *row_of(const struct plain *p, const double *of, int h, int t)
{
	return of + (h * p->T + t) * p->D;
}

static double dot(const double *x, const double *y, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += x[i] * y[i];
	return sum;
}

/* Row h D + d of a matrix of C columns times a vector. */
static double projected(const struct plain *p, const double *W, int h, int d, const double *x)
{
	return dot(W + (h * p->D + d) * p->C, x, p->C);
}

typedef double plain_logit(const struct plain *p, int size, int h, int i, int j);

static int clip(double x, int low, int high)
{
	return x < low ? low : x > high ? high : (int)x;
}

static double shaw_logit(const struct plain *p, int K, int h, int i, int j)
{
	const double *q = row_of(p, p->q, h, i);
	int row = clip(-floor(p->positions[i] - p->positions[j]), -K, K) + K;
	return (dot(q, row_of(p, p->k, h, j), p->D) + dot(q, p->own[0] + row * p->D, p->D)) / sqrt(p->D);
}

static double transformer_xl_logit(const struct plain *p, int unused, int h, int i, int j)
{
	const double *q = row_of(p, p->q, h, i), *k = row_of(p, p->k, h, j), *u = p->own[0], *v = p->own[1];
	double R[64], sum = 0, distance = p->positions[i] - p->positions[j];
	(void)unused;
	assert_true(p->C <= 64);
	for (int m = 0; m < p->C / 2; m++) {
		R[m] = sin(distance * pow(10000, -2.0 * m / p->C));
		R[p->C / 2 + m] = cos(distance * pow(10000, -2.0 * m / p->C));
	}
	for (int d = 0; d < p->D; d++)
		sum += (q[d] + u[h * p->D + d]) * k[d] +
		       (q[d] + v[h * p->D + d]) * projected(p, p->own[2], h, d, R);
	return sum / sqrt(p->D);
}

/* q_i.Kr[row of i - j] + k_j.Qr[row of i - j, or of j - i], where there are those terms. */
static double deberta_sum(const struct plain *p, int h, int i, int j, int ahead, int behind, double n)
{
	const double *q = row_of(p, p->q, h, i), *k = row_of(p, p->k, h, j);
	double sum = dot(q, k, p->D);
	for (int d = 0; d < p->D; d++) {
		if (p->own[1])
			sum += q[d] * projected(p, p->own[1], h, d, p->own[0] + ahead * p->C);
		if (p->own[2])
			sum += k[d] * projected(p, p->own[2], h, d, p->own[0] + behind * p->C);
	}
	return sum / sqrt(p->D * n);
}

static double deberta_logit(const struct plain *p, int span, int h, int i, int j)
{
	int ahead = clip(floor(p->positions[i] - p->positions[j]) + span, 0, 2 * span - 1);
	return deberta_sum(p, h, i, j, ahead, ahead, 3);
}

static double deberta_paper_logit(const struct plain *p, int span, int h, int i, int j)
{
	double distance = floor(p->positions[i] - p->positions[j]);
	return deberta_sum(p, h, i, j, clip(distance + span, 0, 2 * span - 1), clip(-distance + span, 0, 2 * span - 1),
			   3);
}

static double deberta_one_term_logit(const struct plain *p, int span, int h, int i, int j)
{
	int ahead = clip(floor(p->positions[i] - p->positions[j]) + span, 0, 2 * span - 1);
	return deberta_sum(p, h, i, j, ahead, ahead, 2);
}

/* Distances up to 70, in 10 buckets: 5 are single. */
static double deberta_bucket_logit(const struct plain *p, int buckets, int h, int i, int j)
{
	double r = floor(p->positions[i] - p->positions[j]), middle = floor(buckets / 2);
	long double share = logl((long double)(r / middle)) / logl((long double)((70 - 1) / middle));
	double index = r <= middle ? r : (double)ceill(share * (long double)(middle - 1) - 1e-12L) + middle;
	int ahead = clip(index + buckets, 0, 2 * buckets - 1);
	return deberta_sum(p, h, i, j, ahead, ahead, 3);
}

struct trial {
	const char *encoding;
	plain_logit *logit;
	int size; /* K, span, buckets */
	const char *own[3];
};

#define OWN "model.layers.0.self_attn.position."
static const struct trial trials[] = {
	{ "shaw(max_distance=3)", shaw_logit, 3, { OWN "keys", OWN "values" } },
	{ "shaw(max_distance=1500)", shaw_logit, 1500, { OWN "keys", OWN "values" } },
	{ "shaw(max_distance=40,values=off)", shaw_logit, 40, { OWN "keys" } },
	{ "transformer_xl", transformer_xl_logit, 0, { "model.position.u", "model.position.v", OWN "r_proj" } },
	{ "deberta(span=4)", deberta_logit, 4, { "model.position.table", OWN "key_proj", OWN "query_proj" } },
	{ "deberta(span=40,p2c=paper)", deberta_paper_logit, 40,
	  { "model.position.table", OWN "key_proj", OWN "query_proj" } },
	{ "deberta(span=600,p2c=paper)", deberta_paper_logit, 600,
	  { "model.position.table", OWN "key_proj", OWN "query_proj" } },
	{ "deberta(span=3,terms=c2p)", deberta_one_term_logit, 3, { "model.position.table", OWN "key_proj" } },
	{ "deberta(span=3,terms=p2c)", deberta_one_term_logit, 3,
	  { "model.position.table", NULL, OWN "query_proj" } },
	{ "deberta(buckets=10,max_distance=70)", deberta_bucket_logit, 10,
	  { "model.position.table", OWN "key_proj", OWN "query_proj" } },
};
enum { TRIALS = sizeof trials / sizeof *trials };

/* Normal numbers, and their doubles for the loops. */
static double *fill(real *to, size_t count)
{
	static uint64_t seed;
	double *copy = TAKE(double, count);
	fill_normal(++seed, to, count);
	for (size_t i = 0; i < count; i++)
		copy[i] = (double)to[i];
	return copy;
}

/* Random inputs and tensors, through the code that training runs: scores [H][T][T], output [H][T][D]. */
static void compute(const struct trial *t, struct plain *p, real *scores, real *output)
{
	struct model_options o = sized_options(t->encoding, p->H * p->D, p->H);
	struct method none = scaling_named("none");
	struct model m;
	size_t items = (size_t)(p->H * p->T * p->D);
	real *qkv = TAKE(real, 3 * items);
	assert_ok(scores_model(&o, &m));
	p->C = p->H * p->D;
	p->q = fill(qkv, items);
	p->k = fill(qkv + items, items);
	p->v = fill(qkv + 2 * items, items);
	for (int i = 0; i < 3; i++) {
		const struct parameter *own = t->own[i] ? layout_find(&m.layout, t->own[i]) : NULL;
		assert_true(own || !t->own[i]);
		p->own[i] = own ? fill(m.value + own->offset, own->size) : NULL;
	}
	struct scores_request q = { .model = &m, .scaling = &none, .B = 1, .T = p->T, .positions = p->positions,
				    .q = qkv, .k = qkv + items, .v = qkv + 2 * items };
	assert_ok(scores_compute(&q, scores, output));
	free(qkv);
	model_close(&m);
}

/* output_i = sum of p_ij (v_j + aV) from the scores; aV NULL: none. */
static void check_output(const struct plain *p, int K, const double *scores, const double *aV,
			 const real *found, double tolerance)
{
	for (int n = 0; n < p->H * p->T * p->D; n++) {
		int h = n / (p->T * p->D), i = n / p->D % p->T, d = n % p->D;
		const double *row = scores + (h * p->T + i) * p->T;
		double greatest = row[0], sum = 0, output = 0;
		for (int j = 1; j <= i; j++)
			greatest = fmax(greatest, row[j]);
		for (int j = 0; j <= i; j++) {
			double e = exp(row[j] - greatest), value = row_of(p, p->v, h, j)[d];
			if (aV)
				value += aV[(clip(-floor(p->positions[i] - p->positions[j]), -K, K) + K) * p->D + d];
			sum += e;
			output += e * value;
		}
		assert_close(found[n], output / sum, tolerance);
	}
}

static void check_trial(const struct trial *t, int H, int T, int D, const double *positions, double tolerance)
{
	struct plain p = { .H = H, .T = T, .D = D, .positions = positions };
	double *wanted = TAKE(double, (size_t)(H * T * T));
	real *scores = TAKE(real, (size_t)(H * T * T)), *output = TAKE(real, (size_t)(H * T * D));
	compute(t, &p, scores, output);
	for (int n = 0; n < H * T * T; n++) {
		int h = n / (T * T), i = n / T % T, j = n % T;
		double found = (double)scores[n];
		if (j > i) {
			assert_true(isinf(found) && found < 0);
			continue;
		}
		wanted[n] = t->logit(&p, t->size, h, i, j);
		if (!(fabs(found - wanted[n]) <= tolerance * fmax(1, fabs(wanted[n]))))
			fail_msg("%s, T %d, head %d, (%d, %d): %.17g, not %.17g", t->encoding, T, h, i, j, found,
				 wanted[n]);
	}
	check_output(&p, t->size, wanted, t->logit == shaw_logit ? p.own[1] : NULL, output, 10 * tolerance);
	free(p.q);
	free(p.k);
	free(p.v);
	for (int i = 0; i < 3; i++)
		free(p.own[i]);
	free(wanted);
	free(scores);
	free(output);
}

static void short_sequences(void **state)
{
	static const double plain[] = { 0, 1, 2, 3, 4 }, strange[] = { 0.5, 0.5, 3, 3.25, 900 },
			    far[] = { 1048570, 1048571, 1048572, 1048573, 1048574 };
	(void)state;
	for (int i = 0; i < TRIALS; i++) {
		check_trial(&trials[i], 2, 3, 2, plain, ROUNDING);
		check_trial(&trials[i], 1, 5, 4, strange, ROUNDING);
		check_trial(&trials[i], 3, 5, 2, far, ROUNDING);
	}
}

/* Over the borders of tiles, with heads and head_dims that are no powers of two. */
static void long_sequences(void **state)
{
	enum { T = 290 };
	double plain[T], leaps[T], apart[T];
	(void)state;
	for (int t = 0; t < T; t++) {
		plain[t] = t + 7;
		leaps[t] = t < 100 ? t * 0.25 : t < 200 ? 1000 + t / 2 : t < 270 ? 524288 + t : 1048576;
		apart[t] = 7 * t;
	}
	for (int i = 0; i < TRIALS; i++) {
		check_trial(&trials[i], 1, T, 6, plain, ROUNDING);
		check_trial(&trials[i], 3, T, 2, leaps, FAR_ROUNDING);
		check_trial(&trials[i], 2, T, 3, apart, ROUNDING);
	}
}

/* ---- Gradients. ---- */

static void check_gradients(const char *encoding, int width, int heads, const double *positions, int T)
{
	struct model_options o = sized_options(encoding, width, heads);
	struct model_case c;
	o.layers = 1;
	o.hidden = 0;
	case_open(&c, &o, "none", 1, T, positions);
	struct gradcheck g = gradcheck(&c.model, c.transformer, c.token, c.target, 1, 11, c.gradient);
	if (!(g.error < LIMIT))
		fail_msg("%s, width %d, %d heads: %s is off by %.3g", encoding, width, heads, g.worst->name, g.error);
	case_close(&c);
}

/* Vectors that a few rows of a tile meet too many of; odd head_dims; frequencies that do not fill a lot, or more. */
static void gradients(void **state)
{
	enum { T = 60 };
	double apart[T];
	(void)state;
	for (int t = 0; t < T; t++)
		apart[t] = 40 * t + t % 3;
	check_gradients("shaw(max_distance=2000)", 6, 2, apart, T);
	check_gradients("deberta(span=2000,p2c=paper)", 6, 2, apart, T);
	check_gradients("deberta(buckets=12,max_distance=1000)", 15, 5, apart, T);
	check_gradients("shaw(max_distance=9)", 9, 3, NULL, T);
	check_gradients("transformer_xl", 6, 2, apart, T);
	check_gradients("transformer_xl", 36, 3, NULL, T);
	check_gradients("transformer_xl", 68, 4, NULL, 9);
}

/* ---- What `inspect` says. ---- */

static struct report inspected(const struct model_options *o, const struct model *m, int length)
{
	struct method none = scaling_named("none");
	struct inspect_request q = { .options = o, .model = m, .scaling = &none, .length = length };
	struct report r = { 0 };
	assert_ok(inspect(&q, &r));
	return r;
}

/* A column's numbers, of which there are so many. */
static const double *column(const struct report *r, const char *name, int count)
{
	for (ptrdiff_t t = 0; t < arrlen(r->table); t++)
		for (ptrdiff_t c = 0; c < arrlen(r->table[t].column); c++) {
			const struct report_column *found = &r->table[t].column[c];
			if (!found->name || strcmp(found->name, name))
				continue;
			assert_int_equal(r->table[t].rows * (found->width ? found->width : 1), count);
			return found->value;
		}
	fail_msg("no column %s", name);
	return NULL;
}

/* A model of width 8, 2 heads and 2 layers, of random numbers. */
static struct model open_random(const char *encoding, struct model_options *o)
{
	struct model m;
	*o = sized_options(encoding, 8, 2);
	assert_ok(model_open(o, CASE_V, &m));
	assert_int_equal(o->layers, 2);
	fill_normal(5, m.value, m.layout.size);
	return m;
}

static const real *tensor_of(const struct model *m, const char *name)
{
	const struct parameter *p = layout_find(&m->layout, name);
	assert_non_null(p);
	return m->value + p->offset;
}

static double length_of(const real *x, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += (double)x[i] * (double)x[i];
	return sqrt(sum);
}

static void shaw_inspected(void **state)
{
	enum { K = 5, D = 4 };
	struct model_options o;
	(void)state;
	struct model m = open_random("shaw(max_distance=5)", &o);
	struct report r = inspected(&o, &m, 20);
	const double *row = column(&r, "rows", K + 1), *keys = column(&r, "key_lengths", 2 * (K + 1)),
		     *values = column(&r, "value_lengths", 2 * (K + 1));
	const real *aK = tensor_of(&m, "model.layers.1.self_attn.position.keys"),
		   *aV = tensor_of(&m, "model.layers.1.self_attn.position.values");
	for (int distance = 0; distance <= K; distance++) {
		assert_true(row[distance] == K - distance);
		assert_close(keys[distance * 2 + 1], length_of(aK + (K - distance) * D, D), 1e-12);
		assert_close(values[distance * 2 + 1], length_of(aV + (K - distance) * D, D), 1e-12);
	}
	report_free(&r);
	model_close(&m);
}

/* Of zero queries and keys the logits are the bias by distance alone. */
static void transformer_xl_inspected(void **state)
{
	enum { T = 30, C = 8, H = 2, D = 4 };
	static double zeros[T * C], v[C], W[C * C], at[T];
	struct model_options o;
	(void)state;
	struct model m = open_random("transformer_xl", &o);
	struct report r = inspected(&o, &m, T);
	const double *bias = column(&r, "bias", 2 * H * T), *wave = column(&r, "inv_freq", C / 2);
	for (int n = 0; n < C; n++)
		v[n] = (double)tensor_of(&m, "model.position.v")[n];
	for (int t = 0; t < T; t++)
		at[t] = t;
	for (int layer = 0; layer < 2; layer++) {
		static const char *const name[] = { "model.layers.0.self_attn.position.r_proj",
						    "model.layers.1.self_attn.position.r_proj" };
		for (int n = 0; n < C * C; n++)
			W[n] = (double)tensor_of(&m, name[layer])[n];
		struct plain p = { .H = H, .T = T, .D = D, .C = C, .positions = at, .q = zeros, .k = zeros,
				   .own = { zeros, v, W } };
		for (int n = 0; n < H * T; n++)
			assert_close(bias[layer * H * T + n], transformer_xl_logit(&p, 0, n / T, n % T, 0), 1e-12);
	}
	for (int n = 0; n < C / 2; n++)
		assert_close(wave[n], pow(10, -n), 1e-15);
	report_free(&r);
	model_close(&m);
}

/* Rows of the table by distance, as upstream has them. */
static void deberta_inspected(void **state)
{
	json_t *root = golden_json("deberta_disentangled");
	static const char *const label[] = { "deberta(span=3)", "deberta(span=8)",
					     "deberta(buckets=4,max_distance=16)" };
	(void)state;
	for (size_t c = 0; c < 3; c++) {
		const json_t *rows = json_object_get(golden_part(root, c, "expected"), "relative_index");
		int T = (int)json_array_size(rows), span = (int[]){ 3, 8, 4 }[c];
		struct model_options o;
		struct model m = open_random(label[c], &o);
		struct report r = inspected(&o, &m, T);
		const double *c2p = column(&r, "c2p_rows", T), *p2c = column(&r, "p2c_rows", T),
			     *length = column(&r, "row_lengths", 2 * span);
		for (int distance = 0; distance < T; distance++) {
			double index = json_at(json_array_get(rows, (size_t)distance), 0) + span;
			assert_true(c2p[distance] == fmin(index, 2 * span - 1) && p2c[distance] == c2p[distance]);
		}
		for (int n = 0; n < 2 * span; n++)
			assert_close(length[n], length_of(tensor_of(&m, "model.position.table") + n * 8, 8), 1e-12);
		report_free(&r);
		model_close(&m);
	}
	struct model_options o = sized_options("deberta(span=3,p2c=paper)", 8, 2);
	struct report r = inspected(&o, NULL, 6);
	const double *p2c = column(&r, "p2c_rows", 6);
	for (int distance = 0; distance < 6; distance++)
		assert_true(p2c[distance] == fmax(3 - distance, 0));
	report_free(&r);
	json_decref(root);
}

/* ---- What they refuse. ---- */

static void refuses(const char *encoding, int width, const char *part)
{
	struct model_options o = sized_options(encoding, width, 1);
	struct layout l = { 0 };
	assert_err(layout_build(&o, CASE_V, &l), ERR_USAGE, part);
	layout_free(&l);
}

static void options_without_effect(void **state)
{
	(void)state;
	refuses("deberta(buckets=8,span=8)", 8, "deberta_span");
	refuses("deberta(max_distance=64)", 8, "deberta_max_distance");
	refuses("deberta(buckets=8,max_distance=5)", 8, "deberta_max_distance: 5");
	refuses("deberta(buckets=1)", 8, "deberta_buckets: 1");
	refuses("deberta(terms=c2p,p2c=paper)", 8, "deberta_p2c");
	refuses("deberta(terms=c2p,bias=on)", 8, "deberta_bias");
	refuses("transformer_xl", 7, "width: 7");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_sequences),
		cmocka_unit_test(long_sequences),
		cmocka_unit_test(gradients),
		cmocka_unit_test(shaw_inspected),
		cmocka_unit_test(transformer_xl_inspected),
		cmocka_unit_test(deberta_inspected),
		cmocka_unit_test(options_without_effect),
	};
	struct err e = blas_start(1);
	if (e.code) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests_name("model relative", tests, NULL, NULL);
}
