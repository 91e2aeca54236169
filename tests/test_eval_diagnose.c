#include "tests/model_case.h"
#include "tests/reference.h"
#include "tests/sequence_case.h"

#include "eval/diagnose.h"
#include "model/attention.h"
#include "model/base/blas.h"
#include "model/base/threads.h"
#include "model/position/rope.h"

#include <stdio.h>

/* What a diagnosis says of each head, against full T x T matrices in double: of the oracle, which knows some encodings,
 * and of the logits as the program makes them, for all of them. */

#ifdef ROPEWALK_DOUBLE
#define TOLERANCE 1e-9
#else
#define TOLERANCE 5e-4
#endif

/* More than a tile of keys, and than two blocks of queries. */
enum { TRAIN_LENGTH = 32, LONG = 300, SEQUENCES = 2, EVAL_SEED = 4 };

struct setup {
	struct model model;
	struct data_options data;
	struct method scaling;
	struct diagnose_request request;
};

static void setup_open(struct setup *s, const char *encoding, const char *scaling)
{
	struct model_options o = sized_options(encoding, 16, 2);
	o.train_length = TRAIN_LENGTH;
	s->data = (struct data_options){ .task = method_default(task_at(0)) };
	s->scaling = scaling_named(scaling);
	assert_ok(model_open(&o, task_of(&s->data.task)->vocabulary(&s->data.task), &s->model));
	layout_initialise(&s->model.layout, 6, s->model.value);
	/* An encoding's own tensors may begin at 0. */
	for (int i = 0; i < layout_count(&s->model.layout); i++) {
		const struct parameter *p = &s->model.layout.parameter[i];
		for (size_t j = 0; strstr(p->name, "position.") && j < p->size; j++)
			s->model.value[p->offset + j] += (real)(0.1 + 0.05 * (double)(j % 7));
	}
	s->request = (struct diagnose_request){
		.eval = { .model = &s->model, .data = &s->data, .scaling = &s->scaling, .length = LONG,
			  .sequences = SEQUENCES, .eval_seed = EVAL_SEED },
		.trained_length = TRAIN_LENGTH,
	};
}

static void setup_close(struct setup *s)
{
	model_close(&s->model);
}

static struct diagnosis diagnosed(const struct setup *s)
{
	struct diagnosis d;
	assert_ok(diagnose_run(&s->request, NULL, NULL, &d));
	return d;
}

static struct sequence sequence_at(const struct setup *s, int index)
{
	struct sequence q = sequence_new(s->request.eval.length, 0);
	make(&s->data.task, TRAIN_LENGTH, EVAL_SEED, (uint64_t)index, s->request.eval.length, &q);
	return q;
}

/* ---- The logits as they are made: [sequences][layers][H][T][T], -inf where nothing was shown. ---- */

struct dump {
	int T, H, layers;
	double *score;
};

static void dump_tile(void *data, const struct attention_look *at)
{
	const struct dump *d = data;
	size_t T = (size_t)d->T, b = (size_t)(at->index / d->H), h = (size_t)(at->index % d->H);
	double *score = d->score + ((b * (size_t)d->layers + (size_t)at->layer) * (size_t)d->H + h) * T * T;
	for (int r = 0; r < at->rows; r++)
		for (int j = at->tile->low[r]; j < at->tile->high[r]; j++) {
			double *to = &score[(size_t)at->query[r] * T + (size_t)(at->key + j)];
			assert_true(*to == -INFINITY); /* a key is shown once */
			*to = (double)at->logits[r * TILE_STRIDE + j];
		}
}

static void dump_end(void *data, const struct attention_look *at)
{
	(void)data;
	assert_null(at->tile);
	assert_null(at->logits);
}

static double *dumped(const struct setup *s, const struct pair_sets *pairs)
{
	const struct eval_request *q = &s->request.eval;
	size_t T = (size_t)q->length, B = (size_t)q->sequences, size;
	struct dump d = { q->length, (int)s->model.options.heads, (int)s->model.options.layers, NULL };
	struct attention_probe probe = { dump_tile, dump_end, &d };
	struct transformer_request request = { .model = &s->model, .B = q->sequences, .T = q->length,
					       .scaling = &s->scaling, .pairs = pairs, .probe = &probe };
	struct transformer *t;
	int32_t *token = TAKE(int32_t, B * T), *target = TAKE(int32_t, B * T);
	size = B * (size_t)d.layers * (size_t)d.H * T * T;
	d.score = TAKE(double, size);
	for (size_t i = 0; i < size; i++)
		d.score[i] = -INFINITY;
	for (size_t b = 0; b < B; b++) {
		struct sequence one = sequence_at(s, (int)b);
		memcpy(token + b * T, one.token, T * sizeof *token);
		memcpy(target + b * T, one.target, T * sizeof *target);
		sequence_free(&one);
	}
	assert_ok(transformer_open(&request, &t));
	transformer_forward(t, token, target, NULL);
	transformer_close(t);
	free(token);
	free(target);
	return d.score;
}

/* The same of the oracle. */
static double *known(const struct setup *s)
{
	const struct eval_request *q = &s->request.eval;
	size_t T = (size_t)q->length, one = (size_t)(s->model.options.layers * s->model.options.heads) * T * T;
	double *score = TAKE(double, (size_t)q->sequences * one);
	for (int b = 0; b < q->sequences; b++) {
		struct sequence sequence = sequence_at(s, b);
		reference_scores(&s->model, &s->scaling, q->length, sequence.token, score + (size_t)b * one);
		sequence_free(&sequence);
	}
	return score;
}

/* ---- The same numbers by full rows. ---- */

/* A token of `recall`, by what data/recall.c says of its vocabulary. */
static bool is_filler(int32_t token)
{
	return token >= 66 && token < 98;
}

static bool asked(const struct setup *s, const struct sequence *q, int t)
{
	return q->target[t] >= 0 && q->group[t] == s->request.group;
}

static bool is_source(const struct setup *s, const struct sequence *q, int key)
{
	for (int t = key + 1; t < s->request.eval.length; t++)
		if (asked(s, q, t) && t - q->distance[t] == key)
			return true;
	return false;
}

static enum key_class expected_class(const struct sequence *q, const bool *source, int t, int key)
{
	int e = t - q->distance[t];
	if (key == e || key == e - 1)
		return key == e ? KEY_RIGHT : KEY_BEFORE;
	if (key == t || key == 0)
		return key == t ? KEY_SELF : KEY_BOS;
	if (q->token[key] == q->token[e] || q->token[key] == q->token[t])
		return KEY_ALIKE;
	if (source[key])
		return KEY_RIVAL;
	return is_filler(q->token[key]) ? KEY_FILLER : KEY_REST;
}

/* Probabilities of a row [T], and how many keys it sees. */
static int softmax(const double *score, int t, double *p)
{
	double greatest = -INFINITY, sum = 0;
	int seen = 0;
	for (int j = 0; j <= t; j++)
		greatest = fmax(greatest, score[j]);
	for (int j = 0; j <= t; j++) {
		sum += p[j] = exp(score[j] - greatest);
		seen += score[j] > -INFINITY;
	}
	for (int j = 0; j <= t; j++)
		p[j] /= sum;
	return seen;
}

static void add_query(const struct sequence *q, const bool *source, const double *score, int t, const double *p,
		      int seen, struct diagnosed_head *to)
{
	double mean = 0, variance = 0, greatest = -INFINITY;
	for (int j = 0; j <= t; j++)
		mean += score[j] > -INFINITY ? score[j] / seen : 0;
	for (int j = 0; j <= t; j++) {
		if (score[j] == -INFINITY)
			continue;
		variance += (score[j] - mean) * (score[j] - mean) / seen;
		greatest = fmax(greatest, score[j]);
		to->entropy -= p[j] > 0 ? p[j] * log(p[j]) : 0;
		to->share[expected_class(q, source, t, j)] += p[j];
		to->beyond += t - j >= TRAIN_LENGTH ? p[j] : 0;
	}
	to->deviation += sqrt(variance);
	to->peak += greatest - mean;
	to->queries++;
}

static void add_sequence(const struct setup *s, const struct sequence *q, const double *score, bool last,
			 struct diagnosed_head *to)
{
	int T = s->request.eval.length;
	double *p = TAKE(double, T);
	bool *source = TAKE(bool, T);
	for (int t = 0; t < T; t++)
		source[t] = is_source(s, q, t);
	for (int t = 0; t < T; t++) {
		int seen = asked(s, q, t) || (source[t] && !last) ? softmax(score + t * T, t, p) : 0;
		if (asked(s, q, t))
			add_query(q, source, score + t * T, t, p, seen, to);
		if (source[t] && !last) {
			to->link += p[t - 1];
			to->sources++;
		}
	}
	free(p);
	free(source);
}

/* Of layer i / H, head i % H; `score` as above. */
static struct diagnosed_head expected(const struct setup *s, const double *score, int i)
{
	int T = s->request.eval.length, heads = (int)(s->model.options.layers * s->model.options.heads);
	bool last = i / s->model.options.heads + 1 == s->model.options.layers;
	struct diagnosed_head h = { 0 };
	for (int b = 0; b < s->request.eval.sequences; b++) {
		struct sequence q = sequence_at(s, b);
		add_sequence(s, &q, score + (size_t)(b * heads + i) * (size_t)T * (size_t)T, last, &h);
		sequence_free(&q);
	}
	double n = (double)h.queries;
	h.entropy /= n;
	h.beyond /= n;
	h.deviation /= n;
	h.peak /= n;
	for (int c = 0; c < KEY_CLASSES; c++)
		h.share[c] /= n;
	h.link = h.sources ? h.link / (double)h.sources : 0;
	return h;
}

static void check_head(const struct diagnosed_head *found, const struct diagnosed_head *wanted)
{
	double sum = 0;
	assert_int_equal(found->queries, wanted->queries);
	assert_int_equal(found->sources, wanted->sources);
	assert_true(found->queries > 0);
	assert_close(found->entropy, wanted->entropy, TOLERANCE);
	for (int c = 0; c < KEY_CLASSES; c++) {
		assert_close(found->share[c], wanted->share[c], TOLERANCE);
		sum += found->share[c];
	}
	assert_close(sum, 1, 1e-12);
	assert_close(found->beyond, wanted->beyond, TOLERANCE);
	assert_close(found->deviation, wanted->deviation, TOLERANCE);
	assert_close(found->peak, wanted->peak, TOLERANCE);
	assert_close(found->link, wanted->link, TOLERANCE);
}

/* Frees the score. */
static void check(const struct setup *s, double *score)
{
	struct diagnosis d = diagnosed(s);
	assert_int_equal(d.layers, s->model.options.layers);
	assert_int_equal(d.heads, s->model.options.heads);
	for (int i = 0; i < d.layers * d.heads; i++) {
		struct diagnosed_head wanted = expected(s, score, i);
		check_head(&d.head[i], &wanted);
	}
	diagnosis_free(&d);
	free(score);
}

static void test_oracle(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{ "rope", "none" },
		{ "rope", "ntk" },
		{ "rope(layout=half)", "yarn(ramp=rotations,beta_fast=4)" },
		{ "rope(nope_every=2)", "linear" },
		{ "rope", "rerope" },
		{ "rope", "self_extend" },
		{ "rope", "dual_chunk+temperature" },
		{ "rope", "window(size=40)+logn" },
		{ "rope", "sinks" },
		{ "rope", "dynamic(block=20)" },
		{ "alibi", "none" },
		{ "alibi", "window" },
		{ "t5", "none" },
		{ "fire", "logn" },
		{ "kerple", "none" },
		{ "hard_alibi", "none" },
		{ "sandwich", "none" },
		{ "learned(overflow=clamp)", "none" },
		{ "sinusoidal", "none" },
		{ "nope", "none" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct setup s;
		setup_open(&s, cases[i][0], cases[i][1]);
		s.request.eval.sequences = 1;
		check(&s, known(&s));
		setup_close(&s);
	}
}

static void test_every_encoding(void **state)
{
	(void)state;
	struct method encoding[ENCODINGS];
	int count = all_encodings(encoding);
	for (int i = 0; i < count; i++) {
		struct text_builder label = { 0 };
		struct setup s;
		method_label(&encoding[i], &label);
		setup_open(&s, label.data, i % 2 ? "window(size=100)" : "none");
		s.request.eval.length = 170;
		s.request.group = i % 3 == 0;
		check(&s, dumped(&s, NULL));
		setup_close(&s);
		text_builder_free(&label);
	}
	assert_true(count > 15);
}

/* More sequences than go through the model at once. */
static void test_lots(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "alibi", "none");
	s.request.eval.length = 40;
	s.request.eval.sequences = 500;
	assert_below(eval_lot(&s.request.eval), 400);
	check(&s, dumped(&s, NULL));
	setup_close(&s);
}

static void test_looking_on(void **state)
{
	(void)state;
	struct setup s;
	struct eval_result plain;
	setup_open(&s, "fox", "none");
	assert_ok(eval_run(&s.request.eval, NULL, NULL, &plain));
	struct diagnosis d = diagnosed(&s);
	assert_int_equal(plain.groups, d.result.groups);
	assert_memory_equal(plain.tally, d.result.tally,
			    (size_t)(SEQUENCES * plain.groups) * sizeof *plain.tally);
	eval_result_free(&plain);
	diagnosis_free(&d);
	setup_close(&s);
}

static void test_threads(void **state)
{
	(void)state;
	static const char *const scaling[] = { "none", "dynamic(block=50)", "rerope" };
	for (int i = 0; i < 3; i++) {
		struct setup s;
		setup_open(&s, "rope", scaling[i]);
		s.request.eval.sequences = 5;
		threads_start(1);
		struct diagnosis one = diagnosed(&s);
		threads_start(3);
		struct diagnosis three = diagnosed(&s);
		assert_memory_equal(one.head, three.head, (size_t)(one.layers * one.heads) * sizeof *one.head);
		threads_start(1);
		diagnosis_free(&one);
		diagnosis_free(&three);
		setup_close(&s);
	}
}

/* ---- Pairs ---- */

/* theta 500 and 4 pairs: after 32 tokens the first two have gone round the circle, by 31 and 6.6 radians. */
static void test_pairs(void **state)
{
	(void)state;
	static const struct {
		const char *encoding, *scaling;
		int outside; /* the pairs, bit m for pair m; -1: there is none */
		double longest; /* distance of the slowest pair's largest angle, at its trained frequency */
	} cases[] = {
		{ "rope(theta=500)", "none", 12, LONG - 1 },
		{ "rope(theta=500)", "linear", 0, (LONG - 1) * 32.0 / LONG },
		{ "rope(theta=500)", "ntk", 4, (LONG - 1) * 32.0 / LONG },
		{ "rope(theta=500)", "rerope", 0, 16 },
		{ "rope(theta=500)", "window", 0, 31 },
		{ "rope(theta=500)", "window(size=33)", 12, 32 },
		{ "rope(theta=500,p_rope=0.75)", "none", 4, 0 },
		{ "rope(theta=1)", "none", 0, LONG - 1 },
		{ "rope(theta=500,nope_every=1)", "none", -1, 0 },
		{ "alibi", "none", -1, 0 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct setup s;
		setup_open(&s, cases[i].encoding, cases[i].scaling);
		struct diagnosis d = diagnosed(&s);
		assert_int_equal(d.pairs, cases[i].outside < 0 ? 0 : 4);
		for (int m = 0; m < d.pairs; m++)
			assert_int_equal(d.pair[m].outside, cases[i].outside >> m & 1);
		if (d.pairs) {
			assert_int_equal(d.outside, __builtin_popcount((unsigned)cases[i].outside));
			assert_close(d.pair[3].angle, cases[i].longest * d.pair[3].trained_inv_freq, 1e-12);
			assert_close(d.pair[3].trained_angle, 31 * d.pair[3].trained_inv_freq, 1e-12);
		}
		diagnosis_free(&d);
		setup_close(&s);
	}
}

/* Training at a greater length has met more. */
static void test_trained_further(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "rope(theta=500)", "none");
	s.request.trained_length = LONG;
	struct diagnosis d = diagnosed(&s);
	assert_int_equal(d.outside, 0);
	assert_true(d.pair[3].angle == d.pair[3].trained_angle);
	diagnosis_free(&d);
	setup_close(&s);
}

static void test_new_angle(void **state)
{
	(void)state;
	assert_false(rope_angle_is_new(2 * M_PI, 100, 0.1));
	assert_true(rope_angle_is_new(6.28, 100, 0.1));
	assert_false(rope_angle_is_new(3.1, 3.19, 0.1));
	assert_true(rope_angle_is_new(3.1, 3.2, 0.1));
	assert_false(rope_angle_is_new(0, 0, 0.1));
}

/* The variance of the outside pairs in the first layer, whose inputs no pair has changed: what goes with them. */
static void check_variance(const char *encoding)
{
	struct setup s;
	setup_open(&s, encoding, "none");
	struct diagnosis d = diagnosed(&s);
	uint8_t kind[4], set[4] = { 0 };
	struct pair_sets without = { .count = 1, .kind = kind, .set = set };
	int T = LONG, H = d.heads;
	for (int m = 0; m < 4; m++)
		kind[m] = d.pair[m].outside ? PAIR_REMOVED : PAIR_SCALED;
	double *all = dumped(&s, NULL), *rest = dumped(&s, &without);
	for (int h = 0; h < H; h++) {
		double covariance = 0, variance = 0;
		for (int b = 0; b < SEQUENCES; b++) {
			struct sequence q = sequence_at(&s, b);
			size_t at = (size_t)(b * d.layers * H + h) * (size_t)(T * T);
			for (int t = 0; t < T; t++) {
				const double *x = all + at + t * T, *y = rest + at + t * T;
				double mean_x = 0, mean_part = 0, n = t + 1;
				for (int j = 0; j <= t && asked(&s, &q, t); j++) {
					mean_x += x[j] / n;
					mean_part += (x[j] - y[j]) / n;
				}
				for (int j = 0; j <= t && asked(&s, &q, t); j++) {
					covariance += (x[j] - mean_x) * (x[j] - y[j] - mean_part) / n;
					variance += (x[j] - mean_x) * (x[j] - mean_x) / n;
				}
			}
			sequence_free(&q);
		}
		assert_close(d.head[h].outside, covariance / variance, TOLERANCE);
		assert_true(d.head[h].outside > 0.1 && d.head[h].outside < 0.9);
	}
	free(all);
	free(rest);
	diagnosis_free(&d);
	setup_close(&s);
}

static void test_variance(void **state)
{
	(void)state;
	check_variance("rope(theta=500)");
	check_variance("rope(theta=500,layout=half)");
	/* All pairs are outside, and there is nothing beside them. */
	struct setup s;
	setup_open(&s, "rope(theta=500)", "none");
	s.request.trained_length = 2;
	struct diagnosis d = diagnosed(&s);
	assert_int_equal(d.outside, 4);
	for (int i = 0; i < d.layers * d.heads; i++)
		assert_close(d.head[i].outside, 1, 1e-5);
	diagnosis_free(&d);
	setup_close(&s);
	setup_open(&s, "alibi", "none");
	d = diagnosed(&s);
	assert_true(isnan(d.head[0].outside));
	diagnosis_free(&d);
	setup_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_oracle),
		cmocka_unit_test(test_every_encoding),
		cmocka_unit_test(test_lots),
		cmocka_unit_test(test_looking_on),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_trained_further),
		cmocka_unit_test(test_new_angle),
		cmocka_unit_test(test_variance),
	};
	/* Most of the time is that of plain loops, on one thread; others would only spin. */
	if (blas_start(1).code)
		return 1;
	return cmocka_run_group_tests_name("eval diagnose", tests, NULL, NULL);
}
