#include "tests/scaling_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct answer ask(const char *label, double theta, int D, int train_length, double length)
{
	struct answer a = { .pairs = D / 2 };
	struct method m = scaling_named(label);
	struct model_options o = rope_options(theta, D, train_length);
	assert_true(a.pairs <= PAIRS);
	assert_ok(scaling_check(&m, &o, length));
	a.request = scaling_request(&m, &o, length);
	assert_int_equal(a.request.D, D);
	assert_true(a.request.rope_theta == theta || strstr(label, "abf"));
	assert_true(a.request.train_length == train_length && a.request.length == length);
	a.request.method = NULL; /* ends with this function */
	struct scaling_request r = scaling_request(&m, &o, length);
	scaling_frequencies(&m, &o, length, a.inv_freq, &a.attention_factor);
	a.request.factor = scaling_factor(&r);
	return a;
}

double number(const json_t *object, const char *key, double missing)
{
	const json_t *value = json_object_get(object, key);
	return json_is_number(value) ? json_number_value(value) : missing;
}

void close_to(double a, double b, double relative, const char *file, size_t at, const char *what)
{
	if (!(fabs(a - b) <= relative * fabs(b)))
		fail_msg("%s, case %zu: %s is %.17g, not %.17g", file, at, what, a, b);
}

void array_close(const double *found, const json_t *wanted, double absolute, double relative, const char *file,
		 size_t at, const char *what)
{
	for (size_t m = 0; m < json_array_size(wanted); m++) {
		double w = json_number_value(json_array_get(wanted, m));
		if (!(fabs(found[m] - w) <= absolute + relative * fabs(w)))
			fail_msg("%s, case %zu: %s of pair %zu is %.17g, not %.17g", file, at, what, m, found[m], w);
	}
}

void golden(const char *file, labelled write, size_t checked, size_t left_out)
{
	json_t *root = golden_json(file), *cases = json_object_get(root, "cases"), *one;
	size_t i, done = 0;
	char label[256];
	json_array_foreach(cases, i, one) {
		const json_t *s = json_object_get(one, "settings"), *e = json_object_get(one, "expected");
		if (!write(s, e, label))
			continue;
		double L = number(s, "train_len", 64);
		struct answer a = ask(label, number(s, "base", 0), (int)number(s, "head_dim", 0), (int)L,
				      number(s, "seq_len", L));
		const json_t *inv_freq = json_object_get(e, "inv_freq");
		assert_int_equal(json_array_size(inv_freq), a.pairs);
		array_close(a.inv_freq, inv_freq, 0, 1e-12, file, i, "the frequency");
		close_to(a.attention_factor, number(e, "attention_factor", 1), 1e-12, file, i, "the attention factor");
		done++;
	}
	assert_int_equal(done, checked);
	assert_int_equal(json_array_size(cases) - done, left_out);
	json_decref(root);
}

void golden_angles(const struct answer *a, double position, const json_t *cosines, const json_t *sines,
		   const char *file, size_t at)
{
	double cosine[PAIRS], sine[PAIRS];
	for (int m = 0; m < a->pairs; m++) {
		cosine[m] = a->attention_factor * cos(position * a->inv_freq[m]);
		sine[m] = a->attention_factor * sin(position * a->inv_freq[m]);
	}
	assert_int_equal(json_array_size(cosines), a->pairs);
	/* An angle has an absolute error of its own size times that of a double. */
	array_close(cosine, cosines, 1e-14 + position * 1e-15, 0, file, at, "the cosine");
	array_close(sine, sines, 1e-14 + position * 1e-15, 0, file, at, "the sine");
}

void same_bits(const struct answer *a, const struct answer *b)
{
	assert_int_equal(a->pairs, b->pairs);
	for (int m = 0; m < a->pairs; m++)
		assert_true(a->inv_freq[m] == b->inv_freq[m]);
	assert_true(a->attention_factor == b->attention_factor);
}

double base_of(const struct answer *a)
{
	return pow(a->inv_freq[1], -(double)a->pairs);
}
