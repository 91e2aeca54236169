#include "model/base/blas.h"
#include "model/base/threads.h"
#include "model/transformer_parts.h"
#include "tests/model_case.h"
#include "tests/reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Groups of sequences that go through all layers on their own, and threads that share each layer: the same bits,
 * forward and back, whatever the shape, the number of threads and the rows that are scored. */

#ifdef ROPEWALK_DOUBLE
#define TOLERANCE 1e-11
#else
#define TOLERANCE 2e-4
#endif

struct shape {
	int B, T, width, heads, layers, hidden;
	bool tied;
	int groups, chunks; /* that come of it */
	bool ssmax;
};

static const struct shape shapes[] = {
	{ 5, 20, 16, 2, 2, 24, true, 2, 2, false },   /* groups of three sequences and of two */
	{ 7, 31, 32, 1, 2, 16, false, 4, 4, false },  /* of two and of one */
	{ 1, 70, 16, 2, 2, 16, false, 1, 2, false },  /* one sequence of two chunks */
	{ 2, 300, 16, 1, 1, 0, false, 2, 8, false },  /* one layer without an MLP; the last chunk of a sequence is short */
	{ 1, 1, 16, 1, 1, 0, true, 1, 1, false },
};
/* Sequences of more than two of the greatest chunks. */
static const struct shape longest = { 4, 520, 8, 1, 2, 8, true, 4, 12, false };

static struct model_options options_of(const struct shape *s, const struct method *encoding)
{
	struct model_options o = sized_options("nope", s->width, s->heads);
	o.encoding = *encoding;
	o.layers = s->layers;
	o.hidden = s->hidden;
	o.tied = s->tied;
	o.ssmax = s->ssmax;
	return o;
}

/* Rows that are scored: what stays of the targets, and one that has none. */
enum scored { AS_THEY_ARE, EVERY_SEVENTH, LATE, THE_LAST, LAST_SEQUENCE, SCORED };

static bool is_scored(enum scored which, int n, int B, int T)
{
	switch (which) {
	case EVERY_SEVENTH: return n % 7 == 3 || n == B * T - 1;
	case LATE: return n % T >= T - T / 3 - 1;
	case THE_LAST: return n == B * T - 1;
	case LAST_SEQUENCE: return n >= (B - 1) * T;
	default: return true;
	}
}

static void score(struct model_case *c, enum scored which)
{
	for (int n = 0; n < c->B * c->T; n++) {
		if (which != AS_THEY_ARE)
			c->target[n] = (n * 5 + 1) % CASE_V;
		if (!is_scored(which, n, c->B, c->T))
			c->target[n] = -1;
	}
}

/* What a forward pass found, and what the backward pass made of it. */
struct result {
	size_t N, size;
	double *nll;
	int32_t *best;
	real *gradient;
};

static struct result result_of(const struct model_case *c)
{
	struct result r = { .N = (size_t)(c->B * c->T), .size = c->model.layout.size };
	r.nll = TAKE(double, r.N);
	r.best = TAKE(int32_t, r.N);
	r.gradient = TAKE(real, r.size);
	return r;
}

static void result_free(struct result *r)
{
	free(r->nll), free(r->best), free(r->gradient);
}

static void keep(struct result *r, const struct outcome *o)
{
	memcpy(r->nll, o->nll, r->N * sizeof *r->nll);
	memcpy(r->best, o->best, r->N * sizeof *r->best);
}

static void assert_found(const struct result *r, const struct outcome *o)
{
	assert_memory_equal(r->nll, o->nll, r->N * sizeof *r->nll);
	assert_memory_equal(r->best, o->best, r->N * sizeof *r->best);
}

/* The batch through a transformer that keeps gradients and one that does not. */
static void run(const struct shape *s, const struct method *encoding, enum scored which, bool first, struct result *r,
		bool *alone)
{
	struct model_options o = options_of(s, encoding);
	struct model_case c;
	struct transformer *lean;
	case_open(&c, &o, "none", s->B, s->T, NULL);
	score(&c, which);
	struct transformer_request q = { .model = &c.model, .B = s->B, .T = s->T };
	assert_ok(transformer_open(&q, &lean));
	assert_int_equal(lean->groups, s->groups);
	assert_int_equal(lean->chunks, s->chunks);
	*alone = groups_alone(lean);
	if (first)
		*r = result_of(&c);
	struct outcome found = transformer_forward(c.transformer, c.token, c.target, NULL);
	if (first)
		keep(r, &found);
	assert_found(r, &found);
	found = transformer_forward(lean, c.token, c.target, NULL);
	assert_found(r, &found);
	transformer_backward(c.transformer, c.gradient);
	if (first)
		memcpy(r->gradient, c.gradient, r->size * sizeof(real));
	assert_memory_equal(r->gradient, c.gradient, r->size * sizeof(real));
	transformer_close(lean);
	case_close(&c);
}

/* Then layers differ in their angles, and groups do not go alone. */
static bool learns_frequencies(const struct shape *s, const struct method *encoding)
{
	struct model_options o = options_of(s, encoding);
	struct place p = place_of(&o);
	return p.position->prepares_inv_freq && p.position->prepares_inv_freq(&p);
}

/* With one thread groups go alone, with more than there are groups threads share the layers; both are met. */
static void check_shape(const struct shape *s, const struct method *encoding, enum scored which)
{
	static const int threads[] = { 1, 2, 3, 5 };
	int ways[2] = { 0 };
	struct result r;
	for (int i = 0; i < 4; i++) {
		bool alone;
		threads_start(threads[i]);
		run(s, encoding, which, i == 0, &r, &alone);
		ways[alone]++;
	}
	if (threads_openmp())
		assert_true(ways[false] > 0 && (ways[true] > 0 || learns_frequencies(s, encoding)));
	result_free(&r);
}

static void test_every_encoding(void **state)
{
	struct method method[ENCODINGS];
	(void)state;
	for (int i = all_encodings(method) - 1; i >= 0; i--)
		for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
			check_shape(&shapes[s], &method[i], (enum scored)((size_t)i % SCORED));
}

/* The rows that are scored are those that were asked for: their losses against the oracle's. */
static void check_losses(const struct shape *s, const struct method *encoding, enum scored which)
{
	struct model_options o = options_of(s, encoding);
	struct model_case c;
	double *nll = TAKE(double, (size_t)(s->B * s->T));
	threads_start(2);
	case_open(&c, &o, "none", s->B, s->T, NULL);
	score(&c, which);
	struct outcome found = transformer_forward(c.transformer, c.token, c.target, NULL);
	reference_forward(&c.model, &c.scaling, s->B, s->T, NULL, c.token, c.target, NULL, nll);
	for (int n = 0; n < s->B * s->T; n++)
		assert_close(found.nll[n], nll[n], TOLERANCE);
	case_close(&c);
	free(nll);
}

static void test_every_choice_of_rows(void **state)
{
	static const char *const encodings[] = { "rope", "sinusoidal", "alibi" };
	(void)state;
	for (int which = 0; which < SCORED; which++)
		for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
			struct model_options o = small_options(encodings[((size_t)which + s) % 3]);
			check_shape(&shapes[s], &o.encoding, (enum scored)which);
			check_losses(&shapes[s], &o.encoding, (enum scored)which);
		}
	struct model_options o = small_options("rope");
	check_shape(&longest, &o.encoding, LATE);
}

/* Layers that differ in their angles, and parameters beside the encoding's. */
static void test_options(void **state)
{
	static const char *const labels[] = { "rope(layout=half,nope_every=2)", "rope(learned=tempered)", "alibi" };
	(void)state;
	for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
		for (size_t k = 0; k < 4; k++) {
			struct model_options o = small_options(labels[i]);
			struct shape s = shapes[k];
			s.ssmax = (i + k) % 2 == 0;
			check_shape(&s, &o.encoding, (enum scored)((i + k) % SCORED));
			check_losses(&s, &o.encoding, (enum scored)((i + k) % SCORED));
		}
}

/* Without gradients layers share buffers, in which the gathered rows of a group would stand where another group's are.
 * A group of three sequences is at work for long while the other, of one, comes to its last layer: wherever two threads
 * take turns or work at once, one of a few runs would show it. */
static void test_groups_keep_to_their_own(void **state)
{
	enum { B = 4, T = 20, RUNS = 14 };
	struct model_options o = sized_options("nope", 16, 1);
	struct model_case c;
	(void)state;
	o.layers = 12;
	o.hidden = 2048;
	if (threads_start(2) < 2)
		return;
	case_open(&c, &o, "none", B, T, NULL);
	for (int n = 0; n < B * T; n++)
		c.target[n] = n == T - 1 || n >= 3 * T ? n % CASE_V : -1;
	struct transformer_request q = { .model = &c.model, .B = B, .T = T };
	struct transformer *lean;
	assert_ok(transformer_open(&q, &lean));
	assert_true(lean->groups == 2 && groups_alone(lean));
	struct outcome found = transformer_forward(c.transformer, c.token, c.target, NULL);
	double nll = found.nll[T - 1];
	for (int i = 0; i < RUNS; i++) {
		found = transformer_forward(lean, c.token, c.target, NULL);
		assert_true(found.nll[T - 1] == nll);
	}
	transformer_close(lean);
	case_close(&c);
}

static void go_back(void *data)
{
	struct model_case *c = data;
	transformer_backward(c->transformer, c->gradient);
}

/* A backward pass leaves gradients where the forward pass has left activations. */
static void test_one_backward_pass_a_forward_pass(void **state)
{
	struct model_options o = small_options("rope");
	struct model_case c;
	(void)state;
	threads_start(1);
	case_open(&c, &o, "none", 2, 9, NULL);
	assert_bug(go_back, &c, "no forward pass that kept what a backward pass needs");
	case_loss(&c);
	transformer_backward(c.transformer, c.gradient);
	assert_bug(go_back, &c, "no forward pass that kept what a backward pass needs");
	case_loss(&c);
	transformer_backward(c.transformer, c.gradient);
	for (int n = 0; n < 18; n++)
		c.target[n] = -1;
	transformer_forward(c.transformer, c.token, c.target, NULL);
	assert_bug(go_back, &c, "no token was scored");
	struct transformer_request q = { .model = &c.model, .B = 2, .T = 9 };
	transformer_close(c.transformer);
	assert_ok(transformer_open(&q, &c.transformer));
	c.target[3] = 1;
	transformer_forward(c.transformer, c.token, c.target, NULL);
	assert_bug(go_back, &c, "no forward pass that kept what a backward pass needs");
	case_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_encoding),
		cmocka_unit_test(test_every_choice_of_rows),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_groups_keep_to_their_own),
		cmocka_unit_test(test_one_backward_pass_a_forward_pass),
	};
	struct err e = blas_start(0);
	if (e.code) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests_name("model groups", tests, NULL, NULL);
}
