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

static double at(const json_t *array, size_t i)
{
	const json_t *value = json_array_get(array, i);
	assert_true(json_is_number(value));
	return json_number_value(value);
}

static double number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	assert_true(json_is_number(value));
	return json_number_value(value);
}

/* The case of a golden file; its settings or what is expected. */
static json_t *part(json_t *root, size_t index, const char *name)
{
	json_t *found = json_object_get(json_array_get(json_object_get(root, "cases"), index), name);
	assert_non_null(found);
	return found;
}

static struct model_options options_of(const char *encoding, int width, int heads)
{
	struct model_options o = small_options(encoding);
	o.width = width;
	o.heads = heads;
	return o;
}

/* An encoding's logits of one query against `count` keys at these distances, where every q.k is `raw` before it. */
static void logits_at(const struct model_options *o, const real *table, int head, const double *distances, int count, real raw,
		      real *logits)
{
	struct place p = place_of(o);
	double query = distances[0], keys[TILE_STRIDE], largest = 0;
	assert_true(count <= TILE_STRIDE);
	for (int j = 0; j < count; j++)
		largest = fmax(largest, distances[j]);
	query = largest;
	for (int j = 0; j < count; j++) {
		keys[j] = query - distances[j];
		logits[j] = raw;
	}
	struct tile t = { .rows = 1, .columns = count, .head = head, .D = p.D, .low = &(int){ 0 }, .high = &count,
			  .query_positions = &query, .key_positions = keys, .table = table, .scale = (real)(1 / sqrt(p.D)) };
	p.T = count;
	p.positions = keys;
	p.position->logits(&p, &t, logits);
}

/* ---- ALiBi. ---- */

static double slope_of(const char *encoding, int heads, int head)
{
	struct model_options o = options_of(encoding, 4 * heads, heads);
	real logits[3];
	logits_at(&o, NULL, head, (double[]){ 0, 1, 1000 }, 3, 0, logits);
	assert_true(logits[0] == 0);
	assert_close((double)logits[2] / (double)logits[1], 1000, 2 * ROUNDING);
	return -(double)logits[1];
}

static void alibi_golden(void **state)
{
	(void)state;
	json_t *root = golden_json("alibi");
	int slopes = 0, biases = 0;
	for (size_t i = 0; i < json_array_size(json_object_get(root, "cases")); i++) {
		const json_t *e = part(root, i, "expected"), *bias = json_object_get(e, "bias");
		int heads = (int)number(part(root, i, "settings"), "heads");
		for (int h = 0; h < heads; h++)
			if (!bias) {
				assert_close(slope_of("alibi", heads, h) / at(json_object_get(e, "slopes"), (size_t)h), 1, ROUNDING);
				slopes++;
			} else {
				const json_t *rows = json_array_get(bias, (size_t)h);
				for (size_t r = 0; r < json_array_size(rows); r++)
					for (size_t j = 0; j <= r; j++, biases++) {
						struct model_options o = options_of("alibi", 4 * heads, heads);
						real logit[2];
						logits_at(&o, NULL, h, (double[]){ (double)(r - j), 9 }, 2, 3, logit);
						assert_close(logit[0], 1.5 + at(json_array_get(rows, r), j), ROUNDING);
					}
			}
	}
	assert_int_equal(slopes, 1 + 2 + 4 + 6 + 8 + 12 + 16);
	assert_int_equal(biases, 4 * 21 + 6 * 15);
	json_decref(root);
}

static void alibi_slopes(void **state)
{
	(void)state;
	static const double six[] = { 1.0 / 4, 1.0 / 16, 1.0 / 64, 1.0 / 256, 1.0 / 2, 1.0 / 8 };
	for (int h = 0; h < 6; h++)
		assert_close(slope_of("alibi", 6, h), six[h], 0);
	for (int h = 0; h < 8; h++)
		assert_close(slope_of("alibi", 8, h), exp2(-(h + 1)), 0);
	assert_close(slope_of("alibi(slopes=spread)", 2, 0), 0.5, 0);
	assert_close(slope_of("alibi(slopes=spread)", 2, 1), 1.0 / 256, 0);
	assert_close(slope_of("alibi(slopes=spread)", 1, 0), 1.0 / 256, 0);
	for (int h = 0; h < 8; h++) /* with 8 heads the two rules are one */
		assert_close(slope_of("alibi(slopes=spread)", 8, h), exp2(-(h + 1)), ROUNDING);
	for (int heads = 1; heads <= 40; heads++)
		for (int h = 0; h < heads; h++) {
			assert_close(slope_of("alibi", heads, h) / reference_slope(false, h, heads), 1, ROUNDING);
			assert_close(slope_of("alibi(slopes=spread)", heads, h) / reference_slope(true, h, heads), 1, ROUNDING);
		}
}

/* No table that was forgotten: alibi has the parameters of nope. */
static void alibi_has_no_parameters(void **state)
{
	(void)state;
	static const char *const names[] = { "nope", "alibi", "rope", "sinusoidal", "t5", "learned" };
	size_t more[] = { 0, 0, 0, 0, 16 * 2, 16 * 32 }, size = 0;
	int count = 0;
	for (int i = 0; i < 6; i++) {
		struct model_options o = small_options(names[i]);
		struct layout l;
		assert_ok(layout_build(&o, CASE_V, &l));
		if (!i) {
			size = l.size;
			count = layout_count(&l);
		}
		size_t sum = 0;
		for (int n = 0; n < layout_count(&l); n++)
			sum += l.parameter[n].size;
		assert_int_equal(sum, size + more[i]);
		assert_int_equal(layout_count(&l), count + (more[i] > 0));
		layout_free(&l);
	}
}

/* ---- T5. ---- */

/* The buckets of distances, read off the logits: bucket b of head h has the bias b + 1000 h. */
static void buckets_of(int buckets, int most, const double *distances, int count, int *bucket)
{
	enum { HEADS = 3 };
	char label[64];
	snprintf(label, sizeof label, "t5(buckets=%d,max_distance=%d)", buckets, most);
	struct model_options o = options_of(label, 4 * HEADS, HEADS);
	struct place p = place_of(&o);
	size_t reals = p.position->table_reals(&p);
	real *own = TAKE(real, buckets * HEADS), *table = TAKE(real, reals * HEADS), logits[TILE_STRIDE];
	for (int i = 0; i < buckets * HEADS; i++)
		own[i] = i / HEADS + 1000 * (i % HEADS); /* NOLINT: whole numbers */
	p.position->prepare(&p, (struct place_parameters){ .shared = own }, &(struct prepared){ .table = table });
	for (int from = 0; from < count; from += TILE_STRIDE) {
		int columns = count - from < TILE_STRIDE ? count - from : TILE_STRIDE;
		for (int h = 0; h < HEADS; h++) {
			logits_at(&o, table + (size_t)h * reals, h, distances + from, columns, 0, logits);
			for (int j = 0; j < columns; j++) {
				double b = (double)logits[j] - 1000 * h;
				assert_true(h == 0 || b == bucket[from + j]);
				bucket[from + j] = (int)b;
			}
		}
	}
	free(own);
	free(table);
}

static int bucket_of(int buckets, int most, double distance)
{
	int bucket;
	buckets_of(buckets, most, &distance, 1, &bucket);
	return bucket;
}

static void t5_golden(void **state)
{
	(void)state;
	enum { REACH = 5000 };
	json_t *root = golden_json("t5_bias");
	double *every = TAKE(double, REACH);
	int *bucket = TAKE(int, REACH), tables = 0;
	for (int d = 0; d < REACH; d++)
		every[d] = d;
	for (size_t i = 0; i < json_array_size(json_object_get(root, "cases")); i++) {
		const json_t *s = part(root, i, "settings"), *e = part(root, i, "expected");
		const json_t *distances = json_object_get(s, "distances"), *first = json_object_get(e, "first_distance_of_each_bucket");
		int buckets = (int)number(s, "num_buckets"), most = (int)number(s, "max_distance");
		if (!distances)
			continue;
		for (size_t d = 0; d < json_array_size(distances); d++)
			assert_int_equal(bucket_of(buckets, most, at(distances, d)), at(json_object_get(e, "bucket_causal"), d));
		buckets_of(buckets, most, every, REACH, bucket);
		assert_int_equal(json_array_size(first), buckets);
		for (int d = 0, now = 0; d < REACH; d++) {
			while (now + 1 < buckets && at(first, (size_t)now + 1) <= d)
				now++;
			assert_int_equal(bucket[d], now);
		}
		tables++;
	}
	assert_int_equal(tables, 3);
	free(every);
	free(bucket);
	json_decref(root);
}

/* The bias of a whole head, table [buckets][H], on top of q.k / sqrt(D). */
static void t5_golden_bias(void **state)
{
	(void)state;
	json_t *root = golden_json("t5_bias");
	const json_t *s = part(root, 3, "settings"), *bias = json_object_get(part(root, 3, "expected"), "bias");
	const json_t *given = json_object_get(s, "table");
	int buckets = (int)number(s, "num_buckets"), heads = (int)number(s, "heads"), T = (int)number(s, "T"), checked = 0;
	char label[64];
	snprintf(label, sizeof label, "t5(buckets=%d,max_distance=%d)", buckets, (int)number(s, "max_distance"));
	struct model_options o = options_of(label, 4 * heads, heads);
	struct place p = place_of(&o);
	size_t reals = p.position->table_reals(&p);
	real *own = TAKE(real, buckets * heads), *table = TAKE(real, reals * (size_t)heads), logits[TILE_STRIDE];
	for (int i = 0; i < buckets * heads; i++)
		own[i] = (real)at(json_array_get(given, (size_t)(i / heads)), (size_t)(i % heads));
	p.position->prepare(&p, (struct place_parameters){ .shared = own }, &(struct prepared){ .table = table });
	for (int h = 0; h < heads; h++)
		for (int i = 0; i < T; i++) {
			double distances[TILE_STRIDE];
			for (int j = 0; j <= i; j++)
				distances[j] = i - j;
			logits_at(&o, table + (size_t)h * reals, h, distances, i + 1, 3, logits);
			for (int j = 0; j <= i; j++, checked++)
				assert_close(logits[j], 1.5 + at(json_array_get(json_array_get(bias, (size_t)h), (size_t)i), (size_t)j),
					     ROUNDING);
		}
	assert_int_equal(checked, heads * T * (T + 1) / 2);
	free(own);
	free(table);
	json_decref(root);
}

static void t5_buckets(void **state)
{
	(void)state;
	static const int rows[][2] = { { 0, 0 },   { 15, 15 }, { 16, 16 }, { 20, 17 },	{ 31, 21 },
				       { 64, 26 }, { 127, 31 }, { 128, 31 }, { 1000, 31 }, { 1000000, 31 } };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(bucket_of(32, 128, rows[i][0]), rows[i][1]);
	assert_int_equal(bucket_of(32, 64, 32), 24); /* half of the logarithm's way, exactly */
}

/* At every distance of many tables, among them those where a bucket begins at a whole distance exactly. */
static void t5_buckets_of_many_tables(void **state)
{
	(void)state;
	enum { REACH = 1200 };
	static const int sizes[] = { 2, 3, 4, 6, 7, 8, 10, 12, 16, 18, 20, 24, 32, 40, 64, 100 };
	double *every = TAKE(double, REACH);
	int *bucket = TAKE(int, REACH);
	for (int d = 0; d < REACH; d++)
		every[d] = d;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (int times = 2; times <= 64; times++) {
			int exact = sizes[i] / 2, most = exact * times;
			if (most < 2)
				continue;
			buckets_of(sizes[i], most, every, REACH, bucket);
			for (int d = 0; d < REACH; d++)
				if (bucket[d] != reference_bucket(sizes[i], most, d))
					fail_msg("buckets %d, max_distance %d, distance %d: bucket %d, not %d", sizes[i], most, d,
						 bucket[d], reference_bucket(sizes[i], most, d));
		}
	free(every);
	free(bucket);
}

static void t5_refuses_a_short_reach(void **state)
{
	(void)state;
	struct layout l = { 0 };
	struct model_options o = small_options("t5(buckets=16,max_distance=8)");
	assert_err(layout_build(&o, CASE_V, &l), ERR_USAGE, "max_distance");
	o = small_options("t5(buckets=64)");
	assert_err(layout_build(&o, CASE_V, &l), ERR_USAGE, "max_distance");
	o = small_options("t5(buckets=16,max_distance=9)");
	assert_ok(layout_build(&o, CASE_V, &l));
	layout_free(&l);
}

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

static void sinusoidal_golden(void **state)
{
	(void)state;
	json_t *root = golden_json("sinusoidal");
	int checked = 0;
	for (size_t i = 0; i < json_array_size(json_object_get(root, "cases")); i++) {
		const json_t *s = part(root, i, "settings"), *rows = json_object_get(s, "rows");
		const json_t *wanted = json_object_get(part(root, i, "expected"), "interleaved_paper");
		int T = (int)json_array_size(wanted), C = (int)number(s, "d_model");
		double positions[16];
		assert_true(T <= 16);
		for (int t = 0; t < T; t++)
			positions[t] = rows ? at(rows, (size_t)t) : t;
		for (int scaled = 0; scaled < 2; scaled++) {
			struct model_options o = options_of(scaled ? "sinusoidal" : "sinusoidal(scale=1)", C, 2);
			real *found = vectors(&o, NULL, T, positions);
			for (int n = 0; n < T * C; n++, checked++)
				assert_close(found[n], at(json_array_get(wanted, (size_t)(n / C)), (size_t)(n % C)) * (scaled ? sqrt(2) : 1),
					     fmax(ROUNDING, 1e-12)); /* the largest angle is 2048 */
			free(found);
		}
	}
	assert_int_equal(checked, 2 * (9 * 8 + 4 * 32 + 5 * 8));
	json_decref(root);
}

static void sinusoidal_by_hand(void **state)
{
	(void)state;
	static const double wanted[] = { 0, 1, 0, 1, 0.841471, 0.540302, 0.0099998, 0.99995 };
	struct model_options o = options_of("sinusoidal(scale=1)", 4, 1);
	real *found = vectors(&o, NULL, 2, (double[]){ 0, 1 });
	for (int i = 0; i < 8; i++)
		assert_close(found[i], wanted[i], 6e-7);
	free(found);
	o = options_of("sinusoidal", 64, 2);
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
	const json_t *s = part(root, 0, "settings"), *e = part(root, 0, "expected");
	const json_t *table = json_object_get(s, "table"), *x = json_object_get(s, "x"), *sum = json_object_get(e, "x_plus_pos");
	int rows = (int)json_array_size(table), T = (int)json_array_size(x);
	struct model_options o = options_of("learned", 4, 1);
	real own[64];
	double positions[16];
	o.train_length = rows;
	for (int i = 0; i < rows * 4; i++)
		own[i] = (real)at(json_array_get(table, (size_t)(i / 4)), (size_t)(i % 4));
	for (int t = 0; t < T; t++)
		positions[t] = t;
	real *found = vectors(&o, own, T, positions);
	for (int i = 0; i < T * 4; i++)
		assert_close(found[i] + (real)at(json_array_get(x, (size_t)(i / 4)), (size_t)(i % 4)),
			     at(json_array_get(sum, (size_t)(i / 4)), (size_t)(i % 4)), 0); /* multiples of 1/32 */
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
	static const char *const labels[] = { "learned(overflow=clamp)", "learned(overflow=random)", "learned(overflow=interpolate)" };
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
	static const char *const labels[] = { "learned(overflow=clamp)", "learned(overflow=interpolate)", "learned(overflow=random)" };
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
						      t % 3 * (double)table[(t / 3 + 1) * WIDTH + c]) / 3, 2 * ROUNDING);
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
	struct rotation r = { .rows = 1, .D = D, .positions = &position, .inv_freq = inv_freq, .attention_factor = a,
			      .cosine = cosine, .sine = sine };
	rope_rotate(&r, from, D, to);
	for (int d = 0; d < D; d++)
		turned[d] = (double)to[d];
}

/* Row t, head h of a golden array [T][heads][D]. */
static void row_of(const json_t *array, size_t t, size_t h, int D, double *x)
{
	const json_t *row = json_array_get(json_array_get(array, t), h);
	for (int d = 0; d < D; d++)
		x[d] = at(row, (size_t)d);
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
			double x[64], wanted[64], turned[64], mixed[64], position = at(a->positions, (size_t)t);
			row_of(json_object_get(a->settings, name), (size_t)t, (size_t)h, a->D, x);
			row_of(json_object_get(a->expected, adjacent), (size_t)t, (size_t)h, a->D, wanted);
			turn(a->theta, a->D, position, 1, x, turned);
			for (int d = 0; d < a->D; d++)
				assert_close(turned[d], wanted[d], tolerance_at(position));
			for (int d = 0; d < a->D; d++)
				mixed[(int)at(P, (size_t)d)] = x[d];
			turn(a->theta, a->D, position, 1, mixed, turned);
			row_of(json_object_get(a->expected, halves), (size_t)t, (size_t)h, a->D, wanted);
			for (int d = 0; d < a->D; d++)
				assert_close(turned[(int)at(P, (size_t)d)], wanted[d], tolerance_at(position));
		}
}

static void check_products(const struct applied *a)
{
	for (int h = 0; h < a->heads; h++)
		for (int i = 0; i < a->T; i++)
			for (int j = 0; j < a->T; j++) {
				double q[64], k[64], q_turned[64], k_turned[64], dot = 0;
				double position_i = at(a->positions, (size_t)i), position_j = at(a->positions, (size_t)j);
				row_of(json_object_get(a->settings, "q"), (size_t)i, (size_t)h, a->D, q);
				row_of(json_object_get(a->settings, "k"), (size_t)j, (size_t)h, a->D, k);
				turn(a->theta, a->D, position_i, 1, q, q_turned);
				turn(a->theta, a->D, position_j, 1, k, k_turned);
				for (int d = 0; d < a->D; d++)
					dot += q_turned[d] * k_turned[d];
				const json_t *rows = json_array_get(json_object_get(a->expected, "qk_interleaved"), (size_t)h);
				assert_close(dot, at(json_array_get(rows, (size_t)i), (size_t)j),
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
		struct applied a = { .settings = part(root, i, "settings"), .expected = part(root, i, "expected") };
		a.D = (int)number(a.settings, "head_dim");
		a.heads = (int)number(a.settings, "heads");
		a.theta = number(a.settings, "base");
		a.positions = json_object_get(a.settings, "positions");
		a.T = (int)json_array_size(a.positions);
		check_rotated(&a, "q", "q_interleaved", "q_half");
		check_rotated(&a, "k", "k_interleaved", "k_half");
		check_products(&a);
		farthest = fmax(farthest, at(a.positions, (size_t)a.T - 1));
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
			assert_close(dot_of(turned, turned, D) / dot_of(q, q, D), factors[a] * factors[a], 10 * ROUNDING);
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
	struct rotation r = { .rows = N, .D = D, .positions = positions, .inv_freq = inv_freq, .attention_factor = 1,
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
		struct model_options o = options_of(position_at(i)->name, 6, 2);
		if (position_of(&o.encoding)->rotate)
			assert_err(layout_build(&o, CASE_V, &l), ERR_USAGE, "head_dim");
		else
			assert_ok(layout_build(&o, CASE_V, &l));
		layout_free(&l);
	}
	struct layout l = { 0 };
	struct model_options o = options_of("rope", 6, 3);
	assert_ok(layout_build(&o, CASE_V, &l));
	layout_free(&l);
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
	p = *named("nope");
	p.carry_reals = 1;
	assert_true(is_bug(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alibi_golden),
		cmocka_unit_test(alibi_slopes),
		cmocka_unit_test(alibi_has_no_parameters),
		cmocka_unit_test(t5_golden),
		cmocka_unit_test(t5_golden_bias),
		cmocka_unit_test(t5_buckets),
		cmocka_unit_test(t5_buckets_of_many_tables),
		cmocka_unit_test(t5_refuses_a_short_reach),
		cmocka_unit_test(sinusoidal_golden),
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
