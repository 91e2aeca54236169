#include "tests/reference.h"

#include "model/base/blas.h"
#include "tests/model_case.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef ROPEWALK_DOUBLE
#define ROUNDING 1e-13
#else
#define ROUNDING 3e-7
#endif

/* An encoding's logits of one query against `count` keys at these distances, where every q.k is `raw` before it. */
static void logits_at(const struct model_options *o, const real *table, int head, const double *distances, int count,
		      real raw, real *logits)
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
	struct tile t = { .rows = 1,
			  .columns = count,
			  .head = head,
			  .D = p.D,
			  .low = &(int){ 0 },
			  .high = &count,
			  .query_positions = &query,
			  .key_positions = keys,
			  .table = table,
			  .scale = (real)(1 / sqrt(p.D)) };
	p.T = count;
	p.positions = keys;
	p.position->logits(&p, &t, logits);
}

/* ---- ALiBi. ---- */

static double slope_of(const char *encoding, int heads, int head)
{
	struct model_options o = sized_options(encoding, 4 * heads, heads);
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
		const json_t *e = golden_part(root, i, "expected"), *bias = json_object_get(e, "bias");
		int heads = (int)json_number(golden_part(root, i, "settings"), "heads");
		for (int h = 0; h < heads; h++)
			if (!bias) {
				assert_close(slope_of("alibi", heads, h) /
						     json_at(json_object_get(e, "slopes"), (size_t)h),
					     1, ROUNDING);
				slopes++;
			} else {
				const json_t *rows = json_array_get(bias, (size_t)h);
				for (size_t r = 0; r < json_array_size(rows); r++)
					for (size_t j = 0; j <= r; j++, biases++) {
						struct model_options o = sized_options("alibi", 4 * heads, heads);
						real logit[2];
						logits_at(&o, NULL, h, (double[]){ (double)(r - j), 9 }, 2, 3, logit);
						assert_close(logit[0], 1.5 + json_at(json_array_get(rows, r), j),
							     ROUNDING);
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
			assert_close(slope_of("alibi(slopes=spread)", heads, h) / reference_slope(true, h, heads), 1,
				     ROUNDING);
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
	struct model_options o = sized_options(label, 4 * HEADS, HEADS);
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
		const json_t *s = golden_part(root, i, "settings"), *e = golden_part(root, i, "expected");
		const json_t *distances = json_object_get(s, "distances"),
			     *first = json_object_get(e, "first_distance_of_each_bucket");
		int buckets = (int)json_number(s, "num_buckets"), most = (int)json_number(s, "max_distance");
		if (!distances)
			continue;
		for (size_t d = 0; d < json_array_size(distances); d++)
			assert_int_equal(bucket_of(buckets, most, json_at(distances, d)),
					 json_at(json_object_get(e, "bucket_causal"), d));
		buckets_of(buckets, most, every, REACH, bucket);
		assert_int_equal(json_array_size(first), buckets);
		for (int d = 0, now = 0; d < REACH; d++) {
			while (now + 1 < buckets && json_at(first, (size_t)now + 1) <= d)
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
	const json_t *s = golden_part(root, 3, "settings"),
		     *bias = json_object_get(golden_part(root, 3, "expected"), "bias");
	const json_t *given = json_object_get(s, "table");
	int buckets = (int)json_number(s, "num_buckets"), heads = (int)json_number(s, "heads"),
	    T = (int)json_number(s, "T"), checked = 0;
	char label[64];
	snprintf(label, sizeof label, "t5(buckets=%d,max_distance=%d)", buckets, (int)json_number(s, "max_distance"));
	struct model_options o = sized_options(label, 4 * heads, heads);
	struct place p = place_of(&o);
	size_t reals = p.position->table_reals(&p);
	real *own = TAKE(real, buckets * heads), *table = TAKE(real, reals * (size_t)heads), logits[TILE_STRIDE];
	for (int i = 0; i < buckets * heads; i++)
		own[i] = (real)json_at(json_array_get(given, (size_t)(i / heads)), (size_t)(i % heads));
	p.position->prepare(&p, (struct place_parameters){ .shared = own }, &(struct prepared){ .table = table });
	for (int h = 0; h < heads; h++)
		for (int i = 0; i < T; i++) {
			double distances[TILE_STRIDE];
			for (int j = 0; j <= i; j++)
				distances[j] = i - j;
			logits_at(&o, table + (size_t)h * reals, h, distances, i + 1, 3, logits);
			for (int j = 0; j <= i; j++, checked++)
				assert_close(logits[j],
					     1.5 + json_at(json_array_get(json_array_get(bias, (size_t)h), (size_t)i),
							   (size_t)j),
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
					fail_msg("buckets %d, max_distance %d, distance %d: bucket %d, not %d",
						 sizes[i], most, d, bucket[d], reference_bucket(sizes[i], most, d));
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
	};
	struct err e = blas_start(1);
	if (e.code) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests_name("model biases", tests, NULL, NULL);
}
