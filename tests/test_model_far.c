#include "tests/model_case.h"

#include "model/base/stb.h"
#include "model/inspect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Positions up to 2^20, and lengths beyond: no sum wraps, no number is lost. */

#define FAR 1048576
enum { T = 14 };

#ifdef ROPEWALK_DOUBLE
#define CLOSE 1e-8
#else
#define CLOSE 1e-4
#endif

/* Logits and gradients under positions are finite. */
static void assert_finite(const struct model_options *o, const char *scaling, const double *positions)
{
	struct model_case c;
	case_open(&c, o, scaling, 2, T, positions);
	bool finite = isfinite(case_loss(&c));
	transformer_backward(c.transformer, c.gradient);
	for (size_t i = 0; i < c.model.layout.size; i++)
		finite &= isfinite(c.gradient[i]) != 0;
	if (!finite)
		fail_msg("%s under %s: not finite", o->encoding.entry->name, scaling);
	case_close(&c);
}

/* A stretch that ends at 2^20, and leaps up to it. */
static void make_positions(double end[T], double leaps[T])
{
	for (int t = 0; t < T; t++) {
		end[t] = FAR - T + 1 + t;
		leaps[t] = t < 4 ? t : t < 9 ? FAR / 2 : FAR - 2 + (t > 10);
	}
}

/* As it takes any length. */
static const char *label_at(int index)
{
	const struct entry *e = position_at(index);
	return !e ? NULL : method_find(e, "overflow") < 0 ? e->name : "learned(overflow=clamp)";
}

static void test_every_encoding(void **state)
{
	double end[T], leaps[T];
	(void)state;
	make_positions(end, leaps);
	for (int i = 0; label_at(i); i++) {
		struct model_options o = small_options(label_at(i));
		assert_finite(&o, "none", end);
		assert_finite(&o, "none", leaps);
		assert_finite(&o, "window(size=5)", leaps);
	}
}

static void test_every_scaling(void **state)
{
	struct model_options o = small_options("rope");
	double end[T], leaps[T];
	(void)state;
	make_positions(end, leaps);
	for (int i = 0; scaling_at(i); i++) {
		assert_finite(&o, scaling_at(i)->name, end);
		assert_finite(&o, scaling_at(i)->name, leaps);
	}
	assert_finite(&o, "dynamic(block=3)", leaps);
}

/* Where only distances count, 2^20 more changes nothing. */
static void check_shift(const char *encoding, double tolerance)
{
	struct model_options o = small_options(encoding);
	struct model_case near, far;
	double positions[T];
	for (int t = 0; t < T; t++)
		positions[t] = t + FAR;
	case_open(&near, &o, "none", 2, T, NULL);
	case_open(&far, &o, "none", 2, T, positions);
	real *a = case_logits(&near), *b = case_logits(&far);
	for (int i = 0; i < 2 * T * CASE_V; i++)
		assert_close(a[i], b[i], tolerance);
	free(a);
	free(b);
	case_close(&near);
	case_close(&far);
}

static void test_shift(void **state)
{
	(void)state;
	check_shift("nope", 0);
	check_shift("t5", 0);
	check_shift("alibi", 0);
	check_shift("rope", CLOSE);
	check_shift("shaw", 0);
	check_shift("transformer_xl", 0);
	check_shift("deberta", 0);
}

static const struct report_column *column_of(const struct report *r, const char *table, const char *name, int *rows)
{
	for (ptrdiff_t t = 0; t < arrlen(r->table); t++)
		for (ptrdiff_t c = 0; r->table[t].name && c < arrlen(r->table[t].column); c++)
			if (!strcmp(r->table[t].name, table) && !strcmp(r->table[t].column[c].name, name)) {
				*rows = r->table[t].rows;
				return &r->table[t].column[c];
			}
	return NULL;
}

/* Zones end with the sequence, and their frequencies are numbers above 0. */
static void check_inspection(const struct model_options *o, const char *label)
{
	struct method scaling = scaling_named(label);
	struct inspect_request q = { .options = o, .length = FAR, .scaling = &scaling };
	struct report r = { 0 };
	int rows = 0;
	assert_ok(inspect(&q, &r));
	const struct report_column *end = column_of(&r, "zones", "end", &rows);
	if (end)
		assert_close(end->value[rows - 1], FAR, 0);
	const struct report_column *inv_freq = column_of(&r, "zones", "inv_freq", &rows);
	for (int i = 0; inv_freq && i < rows * inv_freq->width; i++)
		if (!(inv_freq->value[i] > 0) || !isfinite(inv_freq->value[i]))
			fail_msg("%s: inv_freq[%d] is %g", label, i, inv_freq->value[i]);
	assert_true(end || !position_of(&o->encoding)->rotate);
	report_free(&r);
}

static void test_inspection(void **state)
{
	(void)state;
	for (int i = 0; label_at(i); i++) {
		struct model_options o = sized_options(label_at(i), 2, 1);
		check_inspection(&o, "none");
	}
	struct model_options rope = sized_options("rope", 8, 1);
	for (int i = 0; scaling_at(i); i++)
		check_inspection(&rope, scaling_at(i)->name);
	check_inspection(&rope, "dynamic(block=1000)");
}

/* The workspace grows with the tokens, beyond what an int holds. */
static void check_bytes(const char *encoding, const char *scaling, int B, int length, bool gradients)
{
	struct model_options o = small_options(encoding);
	struct method method = scaling_named(scaling);
	struct model m = { .options = o, .V = CASE_V };
	size_t bytes;
	assert_ok(layout_build(&m.options, m.V, &m.layout));
	struct transformer_request q = { .model = &m, .B = B, .T = length, .scaling = &method, .gradients = gradients };
	assert_ok(transformer_bytes(&q, &bytes));
	double tokens = (double)B * length, least = tokens * (double)(9 * o.width + 3 * o.hidden) * sizeof(real);
	if ((double)bytes < least || (double)bytes > 20 * (least + 1e6))
		fail_msg("%s under %s, %d x %d: %zu bytes", encoding, scaling, B, length, bytes);
	layout_free(&m.layout);
}

static void test_bytes(void **state)
{
	(void)state;
	for (int i = 0; label_at(i); i++) {
		check_bytes(label_at(i), "none", 1, FAR, false);
		check_bytes(label_at(i), "none", 2000, FAR, true);
		check_bytes(label_at(i), "none", 1, 1 << 30, true);
	}
	for (int i = 0; scaling_at(i); i++)
		check_bytes("rope", scaling_at(i)->name, 1, 1 << 30, false);
	check_bytes("rope", "dynamic(block=4096)", 1000, FAR, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_encoding), cmocka_unit_test(test_every_scaling),
		cmocka_unit_test(test_shift),          cmocka_unit_test(test_inspection),
		cmocka_unit_test(test_bytes),
	};
	return cmocka_run_group_tests_name("model far", tests, NULL, NULL);
}
