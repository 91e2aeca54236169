#include "model/base/blas.h"
#include "model/base/threads.h"
#include "tests/model_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What must hold whatever the weights: causality, independence of the rows of a batch and of the threads, to the bit;
 * invariance under shifts where the encoding knows distances only. */

static void open_encoding(struct model_case *c, const struct method *encoding, const char *scaling, int B, int T,
			  const double *positions)
{
	struct model_options o = small_options("nope");
	o.encoding = *encoding;
	case_open(c, &o, scaling, B, T, positions);
}

static void check_causal(struct model_case *c, int cut)
{
	size_t V = (size_t)c->model.V, T = (size_t)c->T;
	real *before = case_logits(c);
	for (int t = cut; t < c->T; t++)
		c->token[t] = (c->token[t] + 1 + t % 5) % c->model.V;
	real *after = case_logits(c);
	assert_memory_equal(before, after, (size_t)cut * V * sizeof(real));
	assert_memory_not_equal(before + (size_t)cut * V, after + (size_t)cut * V,
				(T - (size_t)cut) * V * sizeof(real));
	free(before);
	free(after);
}

static void test_later_tokens_change_nothing_earlier(void **state)
{
	static const int cut[] = { 149, 129, 128, 127, 65, 64, 63, 17, 1 };
	struct method method[ENCODINGS];
	struct model_case c;
	(void)state;
	for (int i = all_encodings(method) - 1; i >= 0; i--) {
		open_encoding(&c, &method[i], "none", 1, 150, NULL);
		for (size_t k = 0; k < sizeof cut / sizeof cut[0]; k++)
			check_causal(&c, cut[k]);
		case_close(&c);
	}
	for (int i = 0; scaling_at(i); i++) {
		struct model_options o = small_options("rope");
		case_open(&c, &o, scaling_at(i)->name, 1, 150, NULL);
		check_causal(&c, 128);
		check_causal(&c, 70);
		case_close(&c);
	}
	/* Blocks whose frequencies depend on the length reached so far. */
	assert_ok(method_parse("encoding", position_at, "rope", &method[0]));
	open_encoding(&c, &method[0], "dynamic(block=32)", 1, 150, NULL);
	check_causal(&c, 70);
	check_causal(&c, 64);
	case_close(&c);
}

static void test_rows_of_a_batch_are_independent(void **state)
{
	struct method method[ENCODINGS];
	struct model_case c;
	(void)state;
	for (int i = all_encodings(method) - 1; i >= 0; i--) {
		open_encoding(&c, &method[i], "none", 3, 70, NULL);
		size_t row = 70 * CASE_V;
		real *before = case_logits(&c);
		for (int t = 0; t < 70; t++)
			c.token[70 + t] = (c.token[70 + t] + 3) % CASE_V;
		real *after = case_logits(&c);
		assert_memory_equal(before, after, row * sizeof(real));
		assert_memory_not_equal(before + row, after + row, row * sizeof(real));
		assert_memory_equal(before + 2 * row, after + 2 * row, row * sizeof(real));
		free(before);
		free(after);
		case_close(&c);
	}
}

static void test_threads_change_no_bit(void **state)
{
	static const int threads[] = { 1, 2, 3, 7 };
	struct method method[ENCODINGS];
	struct model_case c;
	(void)state;
	for (int i = all_encodings(method) - 1; i >= 0; i--) {
		real *first = NULL;
		double loss = 0;
		for (size_t k = 0; k < 4; k++) {
			assert_ok(blas_start(threads[k]));
			open_encoding(&c, &method[i], "none", 3, 150, NULL);
			size_t bytes = c.model.layout.size * sizeof(real);
			double now = case_loss(&c);
			transformer_backward(c.transformer, c.gradient);
			if (!first) {
				first = take(1, bytes);
				memcpy(first, c.gradient, bytes);
				loss = now;
			}
			assert_true(now == loss);
			assert_memory_equal(first, c.gradient, bytes);
			case_close(&c);
		}
		free(first);
	}
	assert_ok(blas_start(0));
}

static void test_the_same_call_twice(void **state)
{
	struct method method[ENCODINGS];
	struct model_case c;
	(void)state;
	for (int i = all_encodings(method) - 1; i >= 0; i--) {
		open_encoding(&c, &method[i], "none", 2, 70, NULL);
		size_t bytes = c.model.layout.size * sizeof(real);
		real *first = take(1, bytes);
		case_loss(&c);
		transformer_backward(c.transformer, first);
		case_loss(&c);
		transformer_backward(c.transformer, c.gradient);
		assert_memory_equal(first, c.gradient, bytes);
		free(first);
		case_close(&c);
	}
}

/* Greatest change of a logit when all positions move by `shift`. */
static double change_under_shift(const char *encoding, const char *scaling, double shift)
{
	struct model_options o = small_options(encoding);
	struct model_case near, far;
	double positions[14], worst = 0;
	for (int t = 0; t < 14; t++)
		positions[t] = t + shift;
	case_open(&near, &o, scaling, 2, 14, NULL);
	case_open(&far, &o, scaling, 2, 14, positions);
	real *a = case_logits(&near), *b = case_logits(&far);
	for (int i = 0; i < 2 * 14 * CASE_V; i++)
		worst = fmax(worst, fabs((double)(a[i] - b[i])));
	free(a);
	free(b);
	case_close(&near);
	case_close(&far);
	return worst;
}

static void test_shifts(void **state)
{
	(void)state;
#ifdef ROPEWALK_DOUBLE
	const double same = 1e-10;
#else
	const double same = 1e-4;
#endif
	assert_true(change_under_shift("nope", "none", 1000) == 0);
	assert_true(change_under_shift("t5", "none", 1000) == 0);
	assert_true(change_under_shift("alibi", "none", 1024) == 0);
	assert_below(change_under_shift("rope", "none", 1000), same);
	assert_below(change_under_shift("rope(layout=half)", "none", 1000), same);
	assert_below(change_under_shift("rope(rotary_dim=6)", "none", 1000), same);
	assert_below(change_under_shift("rope(p_rope=0.5,nope_every=2)", "none", 1000), same);
	assert_below(change_under_shift("rope(learned=tempered)", "none", 1000), same);
	assert_below(change_under_shift("rope", "linear(factor=4)", 1000), same);
	assert_below(change_under_shift("rope", "yarn(factor=4)", 1000), same);
	assert_true(change_under_shift("sinusoidal", "none", 1000) > 0.1);
	assert_true(change_under_shift("learned(overflow=clamp)", "none", 1000) > 0.1);
	/* These take their frequencies from the largest position. */
	assert_true(change_under_shift("rope", "ntk", 1000) > 0.01);
	assert_true(change_under_shift("rope", "dynamic", 1000) > 0.01);
}

/* An encoding centred on the block of queries gives the same logits wherever blocks end. */
static void test_centre_drops_out(void **state)
{
	struct method decay = small_options("xpos").encoding;
	struct model_case longer, shorter;
	(void)state;
	open_encoding(&longer, &decay, "none", 1, 150, NULL);
	open_encoding(&shorter, &decay, "none", 1, 100, NULL);
	memcpy(shorter.token, longer.token, 100 * sizeof *shorter.token);
	real *a = case_logits(&longer), *b = case_logits(&shorter);
	for (int i = 0; i < 100 * CASE_V; i++)
#ifdef ROPEWALK_DOUBLE
		assert_close(a[i], b[i], 1e-11);
#else
		assert_close(a[i], b[i], 1e-4);
#endif
	free(a);
	free(b);
	case_close(&longer);
	case_close(&shorter);
}

static void test_position_matters(void **state)
{
	struct model_case c;
	(void)state;
	for (int i = 0; position_at(i); i++) {
		struct model_options o = small_options(position_at(i)->name);
		double positions[12];
		for (int t = 0; t < 12; t++)
			positions[t] = t + t / 4;
		case_open(&c, &o, "none", 1, 12, NULL);
		real *usual = case_logits(&c);
		case_close(&c);
		case_open(&c, &o, "none", 1, 12, positions);
		real *skipped = case_logits(&c);
		case_close(&c);
		bool equal = !memcmp(usual, skipped, 12 * CASE_V * sizeof(real));
		const struct position *p = (const struct position *)position_at(i);
		if (!p->gate && !p->carry_reals) /* those may go by content alone */
			assert_true(equal == !strcmp(position_at(i)->name, "nope"));
		free(usual);
		free(skipped);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_later_tokens_change_nothing_earlier),
		cmocka_unit_test(test_rows_of_a_batch_are_independent),
		cmocka_unit_test(test_threads_change_no_bit),
		cmocka_unit_test(test_the_same_call_twice),
		cmocka_unit_test(test_shifts),
		cmocka_unit_test(test_centre_drops_out),
		cmocka_unit_test(test_position_matters),
	};
	struct err e = blas_start(0);
	if (e.code) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests_name("model laws", tests, NULL, NULL);
}
