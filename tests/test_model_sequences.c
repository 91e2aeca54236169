#include "model/base/blas.h"
#include "tests/model_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sequences of one batch at positions of their own: each as if it were alone, gradients as differences say, and the
 * same after a move as when opened there. */

enum { B = 3, T = 40 };

/* Positions that repeat, skip and differ by sequence; they never decrease. */
static void spread(double positions[B * T])
{
	for (int b = 0; b < B; b++)
		for (int t = 0; t < T; t++)
			positions[b * T + t] = b * 3 + t / 2 * (b + 1) + (b == 1 ? t : 0);
}

static struct model_options options_of(const struct method *encoding)
{
	struct model_options o = small_options("nope");
	o.encoding = *encoding;
	return o;
}

static struct transformer *open_at(const struct model *m, int sequences, const double *positions, const char *scaling,
				   bool gradients)
{
	struct method method = scaling_named(scaling);
	struct transformer_request request = { .model = m, .B = sequences, .T = T, .positions = positions,
					       .each = sequences > 1, .scaling = &method, .gradients = gradients };
	struct transformer *t;
	assert_ok(transformer_open(&request, &t));
	return t;
}

static void check_alone(const struct model_options *o, const char *scaling)
{
	struct model_case c;
	double positions[B * T];
	spread(positions);
	case_open(&c, o, scaling, B, T, NULL);
	size_t row = (size_t)T * (size_t)c.model.V;
	real *all = TAKE(real, B * row), *one = TAKE(real, row);
	struct transformer *t = open_at(&c.model, B, positions, scaling, false);
	transformer_forward(t, c.token, c.target, all);
	transformer_close(t);
	for (int b = 0; b < B; b++) {
		t = open_at(&c.model, 1, positions + b * T, scaling, false);
		transformer_forward(t, c.token + b * T, c.target + b * T, one);
		if (memcmp(all + (size_t)b * row, one, row * sizeof *one) != 0)
			fail_msg("%s, %s: sequence %d differs from the same alone", o->encoding.entry->name, scaling, b);
		transformer_close(t);
	}
	free(all);
	free(one);
	case_close(&c);
}

static void test_each_as_if_alone(void **state)
{
	struct method method[ENCODINGS];
	(void)state;
	for (int i = all_encodings(method) - 1; i >= 0; i--) {
		struct model_options o = options_of(&method[i]);
		check_alone(&o, "none");
		check_alone(&o, "window(size=9)");
	}
	struct model_options o = small_options("rope");
	check_alone(&o, "dynamic(block=7)");
	check_alone(&o, "yarn");
}

static void test_gradients(void **state)
{
	struct method method[ENCODINGS];
	double positions[B * T];
	(void)state;
	spread(positions);
	for (int i = all_encodings(method) - 1; i >= 0; i--) {
		struct model_options o = options_of(&method[i]);
		struct model_case c;
		case_open(&c, &o, "none", B, T, NULL);
		struct transformer *t = open_at(&c.model, B, positions, "none", true);
		struct gradcheck g = gradcheck(&c.model, t, c.token, c.target, 1, 11, c.gradient);
		if (!(g.error < (sizeof(real) == sizeof(double) ? SELFCHECK_LIMIT : 0.3)))
			fail_msg("%s: %s is off by %.3g", o.encoding.entry->name, g.worst->name, g.error);
		transformer_close(t);
		case_close(&c);
	}
}

static void test_moved_as_opened_there(void **state)
{
	struct method method[ENCODINGS];
	double positions[B * T], first[B * T];
	(void)state;
	spread(positions);
	for (int i = 0; i < B * T; i++)
		first[i] = i % T;
	for (int i = all_encodings(method) - 1; i >= 0; i--) {
		struct model_options o = options_of(&method[i]);
		struct model_case c;
		case_open(&c, &o, "none", B, T, NULL);
		size_t size = (size_t)(B * T * c.model.V) * sizeof(real);
		real *opened = take(1, size), *moved = take(1, size);
		struct transformer *t = open_at(&c.model, B, positions, "none", false);
		transformer_forward(t, c.token, c.target, opened);
		transformer_close(t);
		t = open_at(&c.model, B, first, "none", false);
		transformer_forward(t, c.token, c.target, moved);
		assert_ok(transformer_move(t, positions));
		transformer_forward(t, c.token, c.target, moved);
		assert_memory_equal(opened, moved, size);
		transformer_close(t);
		free(opened);
		free(moved);
		case_close(&c);
	}
}

static void test_positions_that_decrease(void **state)
{
	(void)state;
	double positions[T];
	struct model_options o = small_options("alibi");
	struct model_case c;
	struct transformer *t;
	for (int i = 0; i < T; i++)
		positions[i] = i % 20;
	case_open(&c, &o, "none", 1, T, NULL);
	struct method none = scaling_named("none");
	struct transformer_request request = { .model = &c.model, .B = 1, .T = T, .positions = positions,
					       .scaling = &none };
	assert_err(transformer_open(&request, &t), ERR_USAGE, "positions: they decrease along a sequence, which alibi");
	case_close(&c);
	static const char *const scaling[] = { "rerope", "leaky_rerope", "self_extend", "dual_chunk", "yarn+rerope" };
	o = small_options("rope");
	case_open(&c, &o, "none", 1, T, NULL);
	for (size_t i = 0; i < sizeof scaling / sizeof *scaling; i++) {
		struct method zones = scaling_named(scaling[i]);
		request.scaling = &zones;
		request.model = &c.model;
		assert_err(transformer_open(&request, &t), ERR_USAGE, "cannot tell near keys from far ones");
	}
	case_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_as_if_alone),
		cmocka_unit_test(test_gradients),
		cmocka_unit_test(test_moved_as_opened_there),
		cmocka_unit_test(test_positions_that_decrease),
	};
	struct err e = blas_start(1);
	if (e.code) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests_name("model sequences", tests, NULL, NULL);
}
