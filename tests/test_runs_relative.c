#include "tests/program.h"
#include "tests/scores_case.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* shaw, transformer_xl and deberta through `scores`: the upstream numbers, and plain loops over inputs without any
 * symmetry, at positions near and far, consecutive or not. In double the program of doubles is asked. */

#ifdef ROPEWALK_DOUBLE
#define ROUNDING 1e-10
#define FAR_ROUNDING 1e-8 /* angles of 2^20 */
#else
#define ROUNDING 2e-5
#define FAR_ROUNDING 2e-5
#endif

static int start(void **state)
{
	(void)state;
#ifdef ROPEWALK_DOUBLE
	if (getenv("ROPEWALK_DOUBLE"))
		setenv("ROPEWALK", getenv("ROPEWALK_DOUBLE"), 1);
#endif
	program_start();
	return 0;
}

static const struct tensor *find(const struct safetensors *file, const char *name)
{
	const struct tensor *t = safetensors_find(file, name);
	assert_non_null(t);
	assert_int_equal(t->dtype, REAL_DTYPE);
	return t;
}

/* ---- Arrays of golden files. ---- */

/* The numbers of nested arrays, in order, to `to`; how many there were. */
static size_t flatten(const json_t *from, double *to)
{
	size_t count = 0;
	if (json_is_number(from)) {
		*to = json_number_value(from);
		return 1;
	}
	assert_true(json_is_array(from));
	for (size_t i = 0; i < json_array_size(from); i++)
		count += flatten(json_array_get(from, i), to + count);
	return count;
}

/* Adds a tensor of a golden file's array. */
static double *add_array(const char *name, const json_t *from, int rank, int a, int b, int c, int d)
{
	double *to = scores_add(name, rank, a, b, c, d);
	int items = a * (rank > 1 ? b : 1) * (rank > 2 ? c : 1) * (rank > 3 ? d : 1);
	assert_int_equal(flatten(from, to), items);
	return to;
}

static const json_t *at3(const json_t *array, int h, int i, int j)
{
	return json_array_get(json_array_get(json_array_get(array, (size_t)h), (size_t)i), (size_t)j);
}

static double score(const struct tensor *t, int h, int i, int j)
{
	assert_true(t->rank == 4 && h < t->shape[1] && i < t->shape[2] && j < t->shape[3]);
	return tensor_item(t, ((int64_t)h * t->shape[2] + i) * t->shape[3] + j);
}

static void assert_masked(double found)
{
	assert_true(isinf(found) && found < 0);
}

/* y [T][rows] = x [T][columns] W^T + b, W and b of a golden file. */
static void project(const json_t *x, int T, const json_t *weight, const json_t *bias, int first, int rows, double *y)
{
	size_t columns = json_array_size(json_array_get(x, 0));
	for (int t = 0; t < T; t++)
		for (int r = 0; r < rows; r++) {
			double sum = bias ? json_at(bias, (size_t)(first + r)) : 0;
			for (size_t c = 0; c < columns; c++)
				sum += json_at(json_array_get(weight, (size_t)(first + r)), c) *
				       json_at(json_array_get(x, (size_t)t), c);
			y[t * rows + r] = sum;
		}
}

/* [T][H D] to a tensor [1][H][T][D] whose tokens begin `after` others of zeros. */
static double *add_heads(const char *name, const double *from, int H, int T, int D, int after)
{
	double *to = scores_add(name, 4, 1, H, T + after, D);
	for (int n = 0; n < T * H * D; n++) {
		int t = n / (H * D), h = n / D % H, d = n % D;
		to[(h * (T + after) + t + after) * D + d] = from[n];
	}
	return to;
}

/* ---- Golden files. ---- */

static void shaw_golden(void **state)
{
	(void)state;
	json_t *root = golden_json("shaw_relative");
	assert_int_equal(json_array_size(json_object_get(root, "cases")), 2);
	for (size_t c = 0; c < 2; c++) {
		const json_t *s = golden_part(root, c, "settings"), *e = golden_part(root, c, "expected");
		int H = (int)json_number(s, "heads"), T = (int)json_number(s, "T"), D = (int)json_number(s, "head_dim");
		int K = (int)json_number(s, "max_relative_position");
		char flags[100];
		add_array("q", json_object_get(s, "q"), 4, 1, H, T, D);
		add_array("k", json_object_get(s, "k"), 4, 1, H, T, D);
		add_array("v", json_object_get(s, "v"), 4, 1, H, T, D);
		double *keys = add_array("model.layers.0.self_attn.position.keys", json_object_get(s, "rel_keys"), 2,
					 2 * K + 1, D, 0, 0);
		add_array("model.layers.0.self_attn.position.values", json_object_get(s, "rel_values"), 2, 2 * K + 1, D,
			  0, 0);
		/* No key stands behind its query: these rows are not reached. */
		for (int i = (K + 1) * D; i < (2 * K + 1) * D; i++)
			keys[i] = 1e30;
		scores_put();
		snprintf(flags, sizeof flags, "--encoding=shaw(max_distance=%d)", K);
		struct safetensors out = scores_run(flags);
		for (int n = 0; n < H * T * T; n++) {
			int h = n / (T * T), i = n / T % T, j = n % T;
			double found = score(find(&out, "scores"), h, i, j);
			if (j > i)
				assert_masked(found);
			else
				assert_close(found, json_number_value(at3(json_object_get(e, "logits"), h, i, j)),
					     ROUNDING);
		}
		for (int n = 0; n < H * T * D; n++)
			assert_close(tensor_item(find(&out, "output"), n),
				     json_number_value(at3(json_object_get(e, "output"), n / (T * D), n / D % T, n % D)),
				     ROUNDING);
		safetensors_free(&out);
	}
	json_decref(root);
}

/* Its memory is tokens before the sequence, of which only keys are known. */
static void transformer_xl_golden(void **state)
{
	(void)state;
	json_t *root = golden_json("transformer_xl");
	int checked = 0;
	assert_int_equal(json_array_size(json_object_get(root, "cases")), 2);
	for (size_t c = 0; c < 2; c++) {
		const json_t *s = golden_part(root, c, "settings"), *x = json_object_get(s, "x"),
			     *W = json_object_get(s, "W_qkv");
		const json_t *wanted = json_object_get(golden_part(root, c, "expected"), "logits");
		int H = (int)json_number(s, "heads"), T = (int)json_number(s, "T"), D = (int)json_number(s, "head_dim");
		int M = (int)json_number(s, "memory"), C = H * D;
		double *y = TAKE(double, (size_t)((T + M) * C));
		project(x, T, W, NULL, 0, C, y);
		add_heads("q", y, H, T, D, M);
		if (M)
			project(json_object_get(s, "mem"), M, W, NULL, C, C, y);
		project(x, T, W, NULL, C, C, y + M * C);
		add_heads("k", y, H, T + M, D, 0);
		free(y);
		add_array("model.position.u", json_object_get(s, "u"), 2, H, D, 0, 0);
		add_array("model.position.v", json_object_get(s, "v"), 2, H, D, 0, 0);
		add_array("model.layers.0.self_attn.position.r_proj", json_object_get(s, "W_r"), 2, C, C, 0, 0);
		scores_put();
		struct safetensors out = scores_run("--encoding=transformer_xl");
		for (int h = 0; h < H; h++)
			for (int i = 0; i < T; i++)
				for (int j = 0; j < T + M; j++) {
					double found = score(find(&out, "scores"), h, M + i, j);
					if (j > i + M) {
						assert_masked(found);
						continue;
					}
					assert_close(found, json_number_value(at3(wanted, h, i, j)), ROUNDING);
					checked++;
				}
		safetensors_free(&out);
	}
	assert_int_equal(checked, 2 * 15 + 12);
	json_decref(root);
}

/* Adds a projection of a golden file. */
static void add_projection(const json_t *s, const char *name, const char *as, int C)
{
	add_array(as, json_object_get(json_object_get(s, name), "weight"), 2, C, C, 0, 0);
}

/* The file's logits have a bias on W_K, which moves all of a row: q_i.b / sqrt(D n). */
static void check_deberta(const json_t *s, const json_t *e, const double *q, const char *flags, int terms)
{
	int H = (int)json_number(s, "heads"), T = (int)json_number(s, "T"), D = (int)json_number(s, "head_dim");
	const json_t *bias = json_object_get(json_object_get(s, "pos_key_proj"), "bias");
	struct safetensors out = scores_run(flags);
	for (int n = 0; n < H * T * T; n++) {
		int h = n / (T * T), i = n / T % T, j = n % T;
		double found = score(find(&out, "scores"), h, i, j), moved = 0;
		for (int d = 0; d < D; d++)
			moved += q[i * H * D + h * D + d] * json_at(bias, (size_t)(h * D + d));
		if (j > i)
			assert_masked(found);
		else
			assert_close(found + moved / sqrt(D * (1 + terms)),
				     json_number_value(at3(json_object_get(e, "logits"), h, i, j)), ROUNDING);
	}
	safetensors_free(&out);
}

static void deberta_golden(void **state)
{
	(void)state;
	static const char *const projection[] = { "query_proj", "key_proj" }, *const name[] = { "q", "k" };
	json_t *root = golden_json("deberta_disentangled");
	assert_int_equal(json_array_size(json_object_get(root, "cases")), 3);
	for (size_t c = 0; c < 3; c++) {
		const json_t *s = golden_part(root, c, "settings"), *rows = json_object_get(s, "rel_embeddings");
		int H = (int)json_number(s, "heads"), T = (int)json_number(s, "T"), D = (int)json_number(s, "head_dim");
		int C = H * D, terms = (int)json_array_size(json_object_get(s, "pos_att_type"));
		int buckets = (int)json_number(s, "position_buckets");
		double *content[2];
		char flags[160];
		for (int i = 0; i < 2; i++) {
			const json_t *of = json_object_get(s, projection[i]);
			content[i] = TAKE(double, (size_t)(T * C));
			project(json_object_get(s, "x"), T, json_object_get(of, "weight"), json_object_get(of, "bias"),
				0, C, content[i]);
			add_heads(name[i], content[i], H, T, D, 0);
		}
		add_array("model.position.table", rows, 2, (int)json_array_size(rows), C, 0, 0);
		add_projection(s, "pos_key_proj", "model.layers.0.self_attn.position.key_proj", C);
		if (terms == 2) {
			add_projection(s, "pos_query_proj", "model.layers.0.self_attn.position.query_proj", C);
			add_array("model.layers.0.self_attn.position.query_bias",
				  json_object_get(json_object_get(s, "pos_query_proj"), "bias"), 1, C, 0, 0, 0);
		}
		scores_put();
		snprintf(flags, sizeof flags, "--encoding=deberta(%s=%d%s%.0d%s)", buckets > 0 ? "buckets" : "span",
			 (int)json_array_size(rows) / 2, buckets > 0 ? ",max_distance=" : "",
			 buckets > 0 ? (int)json_number(s, "max_relative_positions") : 0,
			 terms == 2 ? ",bias=on" : ",terms=c2p");
		check_deberta(s, golden_part(root, c, "expected"), content[0], flags, terms);
		free(content[0]);
		free(content[1]);
	}
	json_decref(root);
}

/* ---- Plain loops. ---- */

/* What a case's tensors hold, in the order they were added. */
struct plain {
	int H, T, D, C;
	const double *positions, *q, *k, *v;
	const double *own[4];
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
	const char *flags;
	plain_logit *logit;
	int size; /* K, span, buckets */
	const char *own[4];
};

#define OWN "model.layers.0.self_attn.position."
static const struct trial trials[] = {
	{ "--encoding=shaw(max_distance=3)", shaw_logit, 3, { OWN "keys", OWN "values" } },
	{ "--encoding=shaw(max_distance=1500)", shaw_logit, 1500, { OWN "keys", OWN "values" } },
	{ "--encoding=shaw(max_distance=40,values=off)", shaw_logit, 40, { OWN "keys" } },
	{ "--encoding=transformer_xl", transformer_xl_logit, 0, { "model.position.u", "model.position.v", OWN "r_proj" } },
	{ "--encoding=deberta(span=4)", deberta_logit, 4, { "model.position.table", OWN "key_proj", OWN "query_proj" } },
	{ "--encoding=deberta(span=40,p2c=paper)", deberta_paper_logit, 40,
	  { "model.position.table", OWN "key_proj", OWN "query_proj" } },
	{ "--encoding=deberta(span=600,p2c=paper)", deberta_paper_logit, 600,
	  { "model.position.table", OWN "key_proj", OWN "query_proj" } },
	{ "--encoding=deberta(span=3,terms=c2p)", deberta_one_term_logit, 3, { "model.position.table", OWN "key_proj" } },
	{ "--encoding=deberta(span=3,terms=p2c)", deberta_one_term_logit, 3,
	  { "model.position.table", NULL, OWN "query_proj" } },
	{ "--encoding=deberta(buckets=10,max_distance=70)", deberta_bucket_logit, 10,
	  { "model.position.table", OWN "key_proj", OWN "query_proj" } },
};
enum { TRIALS = sizeof trials / sizeof *trials };

/* Normal numbers; a copy, for the loops. */
static const double *add_normal(const char *name, int rank, int a, int b, int c, int d)
{
	static uint64_t seed;
	static int added;
	added = strcmp(name, "q") ? added + 1 : 0;
	scores_normal(name, ++seed, rank, a, b, c, d);
	size_t items = (size_t)a * (size_t)b * (size_t)(rank > 2 ? c : 1) * (size_t)(rank > 3 ? d : 1);
	double *copy = TAKE(double, items);
	memcpy(copy, scores_added(added), items * sizeof *copy);
	for (size_t i = 0; i < items; i++)
		copy[i] = (double)(real)copy[i];
	return copy;
}

static void add_plain(const struct trial *t, struct plain *p)
{
	p->C = p->H * p->D;
	p->q = add_normal("q", 4, 1, p->H, p->T, p->D);
	p->k = add_normal("k", 4, 1, p->H, p->T, p->D);
	p->v = add_normal("v", 4, 1, p->H, p->T, p->D);
	for (int i = 0; i < 4; i++) {
		const char *name = t->own[i];
		if (!name)
			continue;
		bool per_head = !strcmp(name, "model.position.u") || !strcmp(name, "model.position.v");
		bool vectors = strstr(name, ".keys") || strstr(name, ".values");
		int rows = per_head ? p->H : vectors ? 2 * t->size + 1 : i ? p->C : 2 * t->size;
		p->own[i] = add_normal(name, 2, rows, per_head || vectors ? p->D : p->C, 0, 0);
	}
	scores_positions(p->T, p->positions);
	scores_put();
}

/* output_i = sum of p_ij (v_j + aV) from the scores; aV NULL: none. */
static void check_output(const struct plain *p, int K, const double *scores, const double *aV,
			 const struct tensor *found, double tolerance)
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
		assert_close(tensor_item(found, n), output / sum, tolerance);
	}
}

static void check_trial(const struct trial *t, int H, int T, int D, const double *positions, double tolerance)
{
	struct plain p = { .H = H, .T = T, .D = D, .positions = positions };
	double *scores = TAKE(double, (size_t)(H * T * T));
	add_plain(t, &p);
	struct safetensors out = scores_run(t->flags);
	for (int n = 0; n < H * T * T; n++) {
		int h = n / (T * T), i = n / T % T, j = n % T;
		double found = score(find(&out, "scores"), h, i, j);
		if (j > i) {
			assert_masked(found);
			continue;
		}
		scores[n] = t->logit(&p, t->size, h, i, j);
		if (!(fabs(found - scores[n]) <= tolerance * fmax(1, fabs(scores[n]))))
			fail_msg("%s, T %d, head %d, (%d, %d): %.17g, not %.17g", t->flags, T, h, i, j, found, scores[n]);
	}
	check_output(&p, t->size, scores, t->logit == shaw_logit ? p.own[1] : NULL, find(&out, "output"),
		     10 * tolerance);
	safetensors_free(&out);
	free(scores);
	free((void *)(uintptr_t)p.q);
	free((void *)(uintptr_t)p.k);
	free((void *)(uintptr_t)p.v);
	for (int i = 0; i < 4; i++)
		free((void *)(uintptr_t)p.own[i]);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shaw_golden),     cmocka_unit_test(transformer_xl_golden),
		cmocka_unit_test(deberta_golden),  cmocka_unit_test(short_sequences),
		cmocka_unit_test(long_sequences),
	};
	return cmocka_run_group_tests_name("relative scores", tests, start, program_teardown);
}
