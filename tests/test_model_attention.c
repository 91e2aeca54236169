#include "model/attention.h"
#include "model/base/blas.h"
#include "model/base/threads.h"
#include "tests/model_case.h"
#include "tests/reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Attention alone against plain loops in double, forward and back: zones of every form at lengths around the edges of
 * its blocks of queries (96) and of keys (256), with rows that no one reads left out. */

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])

#ifdef ROPEWALK_DOUBLE
#define TOLERANCE 1e-12
#else
#define TOLERANCE 2e-5
#endif

#define UNTOUCHED ((real)12345)

enum { LONGEST = 513, ZONES = 2, PAIRS = 8, BUCKETS = 8, MOST = 40 };

/* ---- Which keys a query sees. ---- */

struct form {
	const char *name;
	int zones;
	void (*row)(int i, int zone, int *low, int *high);
};

static void all_before(int i, int zone, int *low, int *high)
{
	(void)zone;
	*low = 0, *high = i + 1;
}

static void last_ones(int i, int zone, int *low, int *high)
{
	(void)zone;
	*low = i < 99 ? 0 : i - 99, *high = i + 1;
}

/* Rows of one block see all, a few or themselves alone: tiles that some rows see nothing of. */
static void ragged(int i, int zone, int *low, int *high)
{
	(void)zone;
	*low = i % 3 == 0 ? 0 : i % 3 == 1 ? i * 7 % (i + 1) : i, *high = i + 1;
}

/* Not their own key, but earlier ones: whole tiles at either end are seen by no row. */
static void earlier(int i, int zone, int *low, int *high)
{
	(void)zone;
	*low = i / 3, *high = i / 2 + 1;
}

/* A zone nearby and one farther away, with keys between them that are in neither; at first the second has none. */
static void near_and_far(int i, int zone, int *low, int *high)
{
	int near = i < 40 ? 0 : i - 40;
	*low = zone ? 0 : near;
	*high = zone ? (near > 20 ? near - 20 : 0) : i + 1;
}

static const struct form forms[] = {
	{ "all", 1, all_before },	 { "window", 1, last_ones },	   { "ragged", 1, ragged },
	{ "earlier keys", 1, earlier }, { "near and far", 2, near_and_far },
};

/* ---- Which rows are wanted. ---- */

enum wanted { ALL, SOME, FEW, LAST, WANTED };

static bool is_wanted(enum wanted w, int i, int T)
{
	return w == ALL || i == T - 1 || (w == SOME && i % 7 != 2) || (w == FEW && i % 50 == 13);
}

/* ---- A case. ---- */

struct test {
	const char *encoding;
	const struct form *form;
	enum wanted which;
	int B, H, D, T;
	struct model_options o;
	struct place place;
	double positions[LONGEST], standing[LONGEST], keys[LONGEST], inv_freq[ZONES][PAIRS];
	int low[ZONES][LONGEST], high[ZONES][LONGEST];
	struct zone zone[ZONES];
	struct zones zones;
	int32_t *wanted;
	real *qkv, *d_output, *table, *output, *lse, *scores, *d_qkv, *d_table;
	double *expected, *expected_lse, *expected_scores, *d_expected, *d_bias;
};

static bool encoding_is(const struct test *t, const char *name)
{
	return !strcmp(t->encoding, name);
}

static size_t rows_of(const struct test *t)
{
	return (size_t)t->B * (size_t)t->T;
}

/* The second zone's positions stand still, as those of clipped distances do; its frequencies and factor are its own. */
static void make_zones(struct test *t)
{
	for (int i = 0; i < t->T; i++) {
		t->positions[i] = i;
		t->standing[i] = 45;
		t->keys[i] = 0;
	}
	for (int z = 0; z < t->form->zones; z++) {
		for (int i = 0; i < t->T; i++)
			t->form->row(i, z, &t->low[z][i], &t->high[z][i]);
		for (int m = 0; m < t->D / 2; m++)
			t->inv_freq[z][m] = pow(100 + 50 * z, -2.0 * m / t->D);
		t->zone[z] = (struct zone){ .begin = 0, .end = t->T, .low = t->low[z], .high = t->high[z],
					    .query_position = z ? t->standing : t->positions,
					    .key_position = z ? t->keys : t->positions, .inv_freq = t->inv_freq[z],
					    .attention_factor = 1 + 0.2 * z };
	}
	t->zones = (struct zones){ .zone = t->zone, .count = t->form->zones, .together = t->form->zones };
}

static void make_arrays(struct test *t)
{
	size_t N = rows_of(t), C = (size_t)(t->H * t->D), scores = (size_t)t->H * N * (size_t)t->T;
	t->wanted = TAKE(int32_t, N);
	t->qkv = TAKE(real, N * 3 * C), t->d_output = TAKE(real, N * C), t->output = TAKE(real, N * C);
	t->lse = TAKE(real, N * (size_t)t->H), t->scores = TAKE(real, scores), t->d_qkv = TAKE(real, N * 3 * C);
	t->table = TAKE(real, BUCKETS * (size_t)t->H), t->d_table = TAKE(real, BUCKETS * (size_t)t->H);
	t->expected = TAKE(double, N * C), t->expected_lse = TAKE(double, N * (size_t)t->H);
	t->expected_scores = TAKE(double, scores), t->d_expected = TAKE(double, N * 3 * C);
	t->d_bias = TAKE(double, BUCKETS * (size_t)t->H);
	fill_normal(1, t->qkv, N * 3 * C);
	fill_normal(2, t->d_output, N * C);
	fill_normal(3, t->table, BUCKETS * (size_t)t->H);
	for (size_t n = 0; n < N; n++) {
		bool wanted = is_wanted(t->which, (int)n % t->T, t->T);
		t->wanted[n] = wanted ? (int32_t)n : -1;
		for (size_t c = 0; c < C; c++)
			t->d_output[n * C + c] *= (real)wanted;
	}
	for (size_t i = 0; i < scores; i++)
		t->scores[i] = UNTOUCHED;
	for (size_t i = 0; i < N * 3 * C; i++)
		t->d_qkv[i] = (real)NAN;
}

static void free_arrays(struct test *t)
{
	free(t->wanted), free(t->qkv), free(t->d_output), free(t->output), free(t->lse), free(t->scores);
	free(t->d_qkv), free(t->table), free(t->d_table), free(t->expected), free(t->expected_lse);
	free(t->expected_scores), free(t->d_expected), free(t->d_bias);
}

/* ---- Plain loops. ---- */

/* A row turned to a position under a zone, or `back`; whatever the encoding does not turn stays. */
static void turn(const struct test *t, const struct zone *z, double position, bool back, double *x)
{
	for (int m = 0; m < t->D / 2 && encoding_is(t, "rope"); m++) {
		double angle = position * z->inv_freq[m], a = z->attention_factor;
		double c = a * cos(angle), s = a * sin(angle) * (back ? -1 : 1), u = x[2 * m], v = x[2 * m + 1];
		x[2 * m] = u * c - v * s;
		x[2 * m + 1] = u * s + v * c;
	}
}

static void take_row(const struct test *t, int b, int h, int i, int part, double *x)
{
	size_t C = (size_t)(t->H * t->D), row = (size_t)b * (size_t)t->T + (size_t)i;
	for (int d = 0; d < t->D; d++)
		x[d] = (double)t->qkv[row * 3 * C + (size_t)part * C + (size_t)(h * t->D + d)];
}

static double bias_of(const struct test *t, int h, double distance)
{
	if (encoding_is(t, "alibi"))
		return -reference_slope(false, h, t->H) * distance;
	if (encoding_is(t, "t5(buckets=8,max_distance=40)"))
		return (double)t->table[reference_bucket(BUCKETS, MOST, (int)distance) * t->H + h];
	return 0;
}

/* One query of one head against all it sees. */
struct query {
	int b, h, i, keys;
	int key[LONGEST], zone[LONGEST];
	double q[ZONES][2 * PAIRS], k[LONGEST][2 * PAIRS], v[LONGEST][2 * PAIRS], p[LONGEST];
};

static void see(const struct test *t, struct query *r)
{
	double greatest = -INFINITY, sum = 0;
	size_t at = ((size_t)r->b * (size_t)t->H + (size_t)r->h) * (size_t)t->T + (size_t)r->i;
	r->keys = 0;
	for (int z = 0; z < t->form->zones; z++) {
		const struct zone *zone = &t->zone[z];
		take_row(t, r->b, r->h, r->i, 0, r->q[z]);
		turn(t, zone, zone->query_position[r->i], false, r->q[z]);
		for (int j = zone->low[r->i]; j < zone->high[r->i]; j++, r->keys++) {
			double *k = r->k[r->keys], dot = 0;
			take_row(t, r->b, r->h, j, 1, k);
			take_row(t, r->b, r->h, j, 2, r->v[r->keys]);
			turn(t, zone, zone->key_position[j], false, k);
			for (int d = 0; d < t->D; d++)
				dot += r->q[z][d] * k[d];
			dot = dot / sqrt(t->D) + bias_of(t, r->h, zone->query_position[r->i] - zone->key_position[j]);
			r->key[r->keys] = j;
			r->zone[r->keys] = z;
			r->p[r->keys] = dot;
			greatest = fmax(greatest, dot);
			t->expected_scores[at * (size_t)t->T + (size_t)j] = dot;
		}
	}
	for (int s = 0; s < r->keys; s++)
		sum += exp(r->p[s] - greatest);
	t->expected_lse[at] = greatest + log(sum);
	for (int s = 0; s < r->keys; s++)
		r->p[s] = exp(r->p[s] - t->expected_lse[at]);
}

/* d_score = p (d_output . v - delta); from there to q, k, v and the bias. */
static void see_back(const struct test *t, const struct query *r, const double *d_out, double delta)
{
	size_t C = (size_t)(t->H * t->D), row = (size_t)r->b * (size_t)t->T, head = (size_t)(r->h * t->D);
	for (int s = 0; s < r->keys; s++) {
		const struct zone *zone = &t->zone[r->zone[s]];
		double d_q[2 * PAIRS], d_k[2 * PAIRS], d_p = 0, *to_q, *to_k;
		to_q = t->d_expected + (row + (size_t)r->i) * 3 * C + head;
		to_k = t->d_expected + (row + (size_t)r->key[s]) * 3 * C + C + head;
		for (int d = 0; d < t->D; d++)
			d_p += d_out[d] * r->v[s][d];
		double d_score = r->p[s] * (d_p - delta);
		double distance = zone->query_position[r->i] - zone->key_position[r->key[s]];
		for (int d = 0; d < t->D; d++) {
			d_q[d] = d_score / sqrt(t->D) * r->k[s][d];
			d_k[d] = d_score / sqrt(t->D) * r->q[r->zone[s]][d];
		}
		turn(t, zone, zone->query_position[r->i], true, d_q);
		turn(t, zone, zone->key_position[r->key[s]], true, d_k);
		for (int d = 0; d < t->D; d++) {
			to_q[d] += d_q[d];
			to_k[d] += d_k[d];
			to_k[(size_t)d + C] += r->p[s] * d_out[d];
		}
		t->d_bias[reference_bucket(BUCKETS, MOST, (int)distance) * t->H + r->h] += d_score;
	}
}

static void expect(const struct test *t)
{
	static struct query r;
	size_t C = (size_t)(t->H * t->D);
	for (r.b = 0; r.b < t->B; r.b++)
		for (r.h = 0; r.h < t->H; r.h++)
			for (r.i = 0; r.i < t->T; r.i++) {
				if (!is_wanted(t->which, r.i, t->T))
					continue;
				size_t at = ((size_t)r.b * (size_t)t->T + (size_t)r.i) * C + (size_t)(r.h * t->D);
				double *out = t->expected + at, d_out[2 * PAIRS], delta = 0;
				see(t, &r);
				for (int d = 0; d < t->D; d++) {
					d_out[d] = (double)t->d_output[at + (size_t)d];
					for (int s = 0; s < r.keys; s++)
						out[d] += r.p[s] * r.v[s][d];
					delta += d_out[d] * out[d];
				}
				see_back(t, &r, d_out, delta);
			}
}

/* ---- The comparison. ---- */

static struct attention *open_attention(const struct test *t, struct arena *memory)
{
	struct attention_request q = { .place = &t->place, .zones = &t->zones, .B = t->B, .layers = 1,
				       .threads = threads_count(), .gradients = true };
	struct arena measure = { 0 };
	assert_null(attention_place(&q, &measure));
	assert_ok(arena_reserve(memory, measure.used, "attention"));
	return attention_place(&q, memory);
}

static void attend(const struct test *t)
{
	struct arena memory;
	struct attention *a = open_attention(t, &memory);
	struct attention_layer l = { .own = { .shared = t->table }, .qkv = t->qkv, .output = t->output, .lse = t->lse,
				     .scores = t->scores, .wanted = t->which == ALL ? NULL : t->wanted };
	attention_forward(a, &l);
	attention_backward(a, &l, (struct attention_gradients){ t->d_output, t->d_qkv, NULL },
			   (struct attention_parameters){ .own.shared = t->d_table });
	arena_free(&memory);
}

static void assert_near(const struct test *t, const char *what, real got, double wanted, size_t at)
{
	if (!(fabs((double)got - wanted) <= TOLERANCE * fmax(1, fabs(wanted))))
		fail_msg("%s, %s, T %d, rows %d: %s %zu is %.9g, not %.9g", t->encoding, t->form->name, t->T,
			 (int)t->which, what, at, (double)got, wanted);
}

static void compare(const struct test *t)
{
	size_t N = rows_of(t), C = (size_t)(t->H * t->D), T = (size_t)t->T, H = (size_t)t->H;
	for (size_t i = 0; i < N * C; i++)
		if (t->wanted[i / C] >= 0)
			assert_near(t, "output", t->output[i], t->expected[i], i);
	for (size_t i = 0; i < N * H; i++) {
		size_t b = i / T / H, row = i % T;
		if (t->wanted[b * T + row] < 0)
			continue;
		assert_near(t, "log-sum-exp", t->lse[i], t->expected_lse[i], i);
		for (size_t j = 0; j < T; j++) {
			bool seen = false;
			for (int z = 0; z < t->form->zones; z++)
				seen |= (int)j >= t->low[z][row] && (int)j < t->high[z][row];
			if (seen)
				assert_near(t, "logit", t->scores[i * T + j], t->expected_scores[i * T + j], i * T + j);
			else
				assert_true(t->scores[i * T + j] == UNTOUCHED);
		}
	}
	for (size_t i = 0; i < N * 3 * C; i++)
		assert_near(t, "gradient", t->d_qkv[i], t->d_expected[i], i);
	for (size_t i = 0; i < BUCKETS * H && encoding_is(t, "t5(buckets=8,max_distance=40)"); i++)
		assert_near(t, "gradient of the bias", t->d_table[i], t->d_bias[i], i);
}

static struct test make_test(const char *encoding, const struct form *form, enum wanted which, int T, int D)
{
	struct test t = { .encoding = encoding, .form = form, .which = which, .B = T > 100 ? 1 : 2, .H = 2, .D = D,
			  .T = T };
	t.o = sized_options(encoding, t.H * D, t.H);
	return t;
}

static void check(const char *encoding, const struct form *form, enum wanted which, int T, int D)
{
	static struct test t;
	t = make_test(encoding, form, which, T, D);
	t.place = place_of(&t.o);
	t.place.T = T;
	t.place.positions = t.positions;
	make_zones(&t);
	make_arrays(&t);
	expect(&t);
	attend(&t);
	compare(&t);
	free_arrays(&t);
}

static const char *const encodings[] = { "nope", "alibi", "t5(buckets=8,max_distance=40)", "rope" };
static const int lengths[] = { 1, 5, 95, 96, 97, 255, 256, 257, 300, 513 };

static void test_every_form(void **state)
{
	(void)state;
	for (int e = 0; e < COUNT(encodings); e++)
		for (int f = 0; f < COUNT(forms); f++)
			for (int n = 0; n < COUNT(lengths); n++)
				if (lengths[n] < LONGEST || (e + f) % 3 == 1)
					check(encodings[e], &forms[f], (enum wanted)((e + f + n) % WANTED), lengths[n],
					      (e + n) % 2 ? 6 : 16);
}

static void test_every_choice_of_rows(void **state)
{
	static const int some[] = { 97, 300 };
	(void)state;
	for (int f = 0; f < COUNT(forms); f++)
		for (int n = 0; n < COUNT(some); n++)
			for (int which = 0; which < WANTED; which++)
				check("rope", &forms[f], (enum wanted)which, some[n], 6);
}

/* A head at a time, in any order, has the bits of the whole layer. */
struct parts {
	struct attention *a;
	const struct attention_layer *l;
	struct attention_gradients g;
};

static void head_forward(int index, int thread, void *data)
{
	const struct parts *p = data;
	attention_head_forward(p->a, p->l, 3 - index, thread);
}

static void head_backward(int index, int thread, void *data)
{
	const struct parts *p = data;
	attention_head_backward(p->a, p->l, p->g, index, thread);
}

static void test_parts_have_the_same_bits(void **state)
{
	static struct test t, whole;
	struct arena memory;
	(void)state;
	for (int e = 0; e < COUNT(encodings); e++) {
		whole = make_test(encodings[e], &forms[1], SOME, 99, 6);
		whole.place = place_of(&whole.o);
		whole.place.T = 99;
		whole.place.positions = whole.positions;
		make_zones(&whole);
		t = whole;
		make_arrays(&whole);
		make_arrays(&t);
		attend(&whole);
		struct attention *a = open_attention(&t, &memory);
		struct attention_layer l = { .own = { .shared = t.table }, .qkv = t.qkv, .output = t.output,
					     .lse = t.lse, .wanted = t.wanted };
		struct parts p = { a, &l, { t.d_output, t.d_qkv, NULL } };
		assert_true(attention_in_parts(a));
		attention_prepare(a, &l);
		threads_each(4, head_forward, &p);
		threads_each(4, head_backward, &p);
		attention_finish(a, &l, (struct attention_parameters){ .own.shared = t.d_table });
		assert_memory_equal(t.output, whole.output, rows_of(&t) * 12 * sizeof(real));
		assert_memory_equal(t.d_qkv, whole.d_qkv, rows_of(&t) * 36 * sizeof(real));
		assert_memory_equal(t.d_table, whole.d_table, BUCKETS * 2 * sizeof(real));
		arena_free(&memory);
		free_arrays(&t);
		free_arrays(&whole);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_form),
		cmocka_unit_test(test_every_choice_of_rows),
		cmocka_unit_test(test_parts_have_the_same_bits),
	};
	struct err e = blas_start(2);
	if (e.code) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests_name("model attention", tests, NULL, NULL);
}
