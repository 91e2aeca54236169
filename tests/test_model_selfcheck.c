#include "model/base/blas.h"
#include "model/base/stb.h"
#include "model/base/threads.h"
#include "tests/model_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The check that `ropewalk check` makes: what is listed passes it, and each way of being wrong is found. */

static void found_fault(const struct position *p, const char *want)
{
	const struct selfcheck_case c = { method_default(&p->entry), method_default(scaling_at(0)) };
	struct selfcheck found;
	assert_ok(selfcheck(&c, &found));
	/* The limit is for gradients in double. */
	if (sizeof(real) < sizeof(double) && found.error < 0.3)
		found.error = 0;
	const char *fault = selfcheck_fault(&found);
	if (!fault || !want ? fault != want : strcmp(fault, want) != 0)
		fail_msg("%s: %s, not %s (%s: %g)", p->entry.name, fault ? fault : "nothing", want ? want : "nothing",
			 found.worst, found.error);
}

static void scaled_logits(const struct tile *t, real *logit, double factor)
{
	for (int r = 0; r < t->rows; r++, logit += TILE_STRIDE)
		for (int j = 0; j < t->columns; j++)
			logit[j] *= t->scale * (real)factor;
}

static void plain(const struct place *p, const struct tile *t, real *logit)
{
	(void)p;
	scaled_logits(t, logit, 1);
}

static void plain_back(const struct place *p, const struct tile *t, const real *raw, real *d_logit,
		       struct tile_gradient g)
{
	(void)p, (void)raw, (void)g;
	scaled_logits(t, d_logit, 1);
}

static void doubled_back(const struct place *p, const struct tile *t, const real *raw, real *d_logit,
			 struct tile_gradient g)
{
	(void)p, (void)raw, (void)g;
	scaled_logits(t, d_logit, 2);
}

static void by_threads(const struct place *p, const struct tile *t, real *logit)
{
	(void)p;
	scaled_logits(t, logit, threads_count() > 1 ? 1 + 1e-6 : 1);
}

/* A key's gate is what the next token is. */
static void peeking_gate(const struct place *p, struct place_parameters own, int rows, const real *x, real *gate)
{
	(void)own;
	for (int r = 0; r < rows; r++)
		for (int h = 0; h < p->H; h++)
			gate[r * p->H + h] = x[(r + 1 < rows ? r + 1 : r) * p->C + h];
}

static void peeking_gate_back(const struct place *p, struct place_parameters own, int rows, const real *x,
			      const real *gate, const real *d_gate, real *d_x, struct place_gradients to)
{
	(void)own, (void)x, (void)gate, (void)to;
	for (int r = 0; r < rows; r++)
		for (int h = 0; h < p->H; h++)
			d_x[(r + 1 < rows ? r + 1 : r) * p->C + h] += d_gate[r * p->H + h];
}

static void gated(const struct place *p, const struct tile *t, real *logit)
{
	plain(p, t, logit);
	for (int r = 0; r < t->rows; r++, logit += TILE_STRIDE)
		for (int j = 0; j < t->columns; j++)
			logit[j] += t->key_gate[j * t->gate_stride];
}

static void gated_back(const struct place *p, const struct tile *t, const real *raw, real *d_logit,
		       struct tile_gradient g)
{
	for (int r = 0; r < t->rows; r++)
		for (int j = t->low[r]; j < t->high[r]; j++)
			g.key_gate[j * t->gate_stride] += d_logit[r * TILE_STRIDE + j];
	plain_back(p, t, raw, d_logit, g);
}

/* A vector for each place of 8, whose gradient is lost or no number. */
static void declare(const struct model_options *o, struct layout *l, int layer)
{
	if (layer < 0)
		layout_add(l, INIT_NORMAL, 1, false, 8, (int)o->width, "model.position.table");
}

static void embed(const struct place *p, struct place_parameters own, int first, int last, real *vector)
{
	for (int t = first; t < last; t++)
		memcpy(vector + (size_t)t * (size_t)p->C, own.shared + (size_t)(t % 8) * (size_t)p->C,
		       (size_t)p->C * sizeof *vector);
}

static void lost_back(const struct place *p, struct place_parameters own, const real *d_vector,
		      struct place_gradients to)
{
	(void)p, (void)own, (void)d_vector, (void)to;
}

static void nan_back(const struct place *p, struct place_parameters own, const real *d_vector,
		     struct place_gradients to)
{
	(void)p, (void)own, (void)d_vector;
	to.shared[3] = (real)NAN;
}

static void test_faults_are_found(void **state)
{
	static const struct position position[] = {
		{ .entry = { .name = "right" }, .logits = plain, .logits_back = plain_back },
		{ .entry = { .name = "doubled" }, .logits = plain, .logits_back = doubled_back },
		{ .entry = { .name = "lost" }, .declare = declare, .embed = embed, .embed_back = lost_back },
		{ .entry = { .name = "nan" }, .declare = declare, .embed = embed, .embed_back = nan_back },
		{ .entry = { .name = "peeking" }, .gate_reals = 1, .gate = peeking_gate,
		  .gate_back = peeking_gate_back, .logits = gated, .logits_back = gated_back },
		{ .entry = { .name = "by threads" }, .logits = by_threads, .logits_back = plain_back },
	};
	static const char *const fault[] = { NULL, "gradient", "gradient", "gradient", "not causal",
					     "other bits with more threads" };
	(void)state;
	for (size_t i = 0; i < sizeof fault / sizeof fault[0]; i++)
		found_fault(&position[i], fault[i]);
}

static bool has_case(const struct selfcheck_case *all, const char *encoding, const char *scaling)
{
	for (int i = 0; i < arrlen(all); i++) {
		struct text_builder e = { 0 }, s = { 0 };
		method_label(&all[i].encoding, &e);
		method_label(&all[i].scaling, &s);
		bool same = !strcmp(e.data, encoding) && !strcmp(s.data, scaling);
		text_builder_free(&e);
		text_builder_free(&s);
		if (same)
			return true;
	}
	return false;
}

static void test_what_is_checked(void **state)
{
	struct selfcheck_case *all = selfcheck_cases(NULL);
	(void)state;
	for (int i = 0; position_at(i); i++)
		assert_true(has_case(all, position_at(i)->name, "none"));
	for (int i = 0; scaling_at(i); i++)
		assert_true(has_case(all, "rope", scaling_at(i)->name));
	assert_true(has_case(all, "learned(overflow=interpolate)", "none"));
	assert_true(has_case(all, "alibi(slopes=spread)", "none"));
	assert_true(has_case(all, "learned(overflow=clamp)", "window"));
	assert_true(has_case(all, "rope", "yarn(truncate=off)"));
	assert_false(has_case(all, "alibi", "ntk"));
	assert_false(has_case(all, "alibi(slopes=published)", "none"));
	arrfree(all);

	struct model_options o = small_options("alibi(slopes=spread)");
	all = selfcheck_cases(&o.encoding);
	assert_true(has_case(all, "alibi(slopes=spread)", "none"));
	assert_true(has_case(all, "alibi(slopes=spread)", "window"));
	assert_false(has_case(all, "alibi", "none"));
	arrfree(all);
}

/* In float, where differences say little, each encoding as it is; in double one case in 16, and with rope whatever
 * changes more than frequencies. The gradients of all cases are for test_model_gradients.c, in a smaller model. With
 * EVERY_CASE in the environment, as in `make check`, all in double. */
static bool is_asked(const struct selfcheck_case *all, int i)
{
	const struct selfcheck_case *c = &all[i];
	const struct scaling *s = scaling_of(&c->scaling);
	if (sizeof(real) < sizeof(double))
		return c->scaling.entry == scaling_at(0);
	if (getenv("EVERY_CASE") || i % 16 == 0)
		return true;
	return !strcmp(c->encoding.entry->name, "rope") && (s->zones || s->query_scale) &&
	       c->scaling.entry != all[i - 1].scaling.entry;
}

static void test_findings(void **state)
{
	struct selfcheck_case *all = selfcheck_cases(NULL);
	(void)state;
	for (int i = 0; i < arrlen(all); i++) {
		struct selfcheck found;
		if (!is_asked(all, i))
			continue;
		assert_ok(selfcheck(&all[i], &found));
		const char *name = all[i].encoding.entry->name;
		if (sizeof(real) < sizeof(double) && found.error < 0.3)
			found.error = 0;
		if (selfcheck_fault(&found))
			fail_msg("%s, %s: %s: %s is off by %g", name, all[i].scaling.entry->name,
				 selfcheck_fault(&found), found.worst, found.error);
	}
	arrfree(all);
}

static void test_threads_are_left(void **state)
{
	struct model_options o = small_options("nope");
	const struct selfcheck_case c = { o.encoding, scaling_named("none") };
	struct selfcheck found;
	(void)state;
	int before = threads_start(2);
	assert_ok(selfcheck(&c, &found));
	assert_int_equal(threads_count(), before);
	assert_int_equal(found.tensors, 21);
	assert_int_equal(found.T, 150);
	o = small_options("learned");
	const struct selfcheck_case learned = { o.encoding, scaling_named("none") };
	assert_ok(selfcheck(&learned, &found));
	assert_int_equal(found.tensors, 22);
	assert_int_equal(found.T, 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_faults_are_found),
		cmocka_unit_test(test_what_is_checked),
		cmocka_unit_test(test_findings),
		cmocka_unit_test(test_threads_are_left),
	};
	struct err e = blas_start(1);
	if (e.code) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests_name("model selfcheck", tests, NULL, NULL);
}
