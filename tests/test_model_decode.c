#include "model/attention.h"
#include "model/base/blas.h"
#include "model/base/threads.h"
#include "model/decode.h"
#include "tests/allocations.h"
#include "tests/model_case.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Token by token with a cache against whole sequences. */

#ifdef ROPEWALK_DOUBLE
#define TOLERANCE 1e-10
#else
#define TOLERANCE 1e-5
#endif

/* Past a tile's columns and a block of queries; past the trained length. */
#define LONG 259
#define SHORT 50

static struct decoder *open_decoder(const struct model_case *c, const struct method *scaling, enum cache_kind cache)
{
	struct decoder_request q = { .model = &c->model, .B = c->B, .T = c->T, .scaling = scaling, .cache = cache };
	struct decoder *d;
	assert_ok(decoder_open(&q, &d));
	return d;
}

/* Logits [B][T][V] of the case's tokens, in fresh memory; those of every third step are not asked for, and stay 0. */
static real *decoded(struct decoder *d, const struct model_case *c)
{
	size_t V = (size_t)c->model.V, T = (size_t)c->T, B = (size_t)c->B;
	real *logits = TAKE(real, B * T * V), *step = TAKE(real, B * V);
	int32_t *token = TAKE(int32_t, B);
	decoder_restart(d);
	for (size_t t = 0; t < T; t++) {
		for (size_t b = 0; b < B; b++)
			token[b] = c->token[b * T + t];
		decoder_step(d, token, t % 3 == 1 ? NULL : step);
		for (size_t b = 0; b < B && t % 3 != 1; b++)
			memcpy(logits + (b * T + t) * V, step + b * V, V * sizeof *step);
	}
	free(step);
	free(token);
	return logits;
}

/* The greatest difference between the logits that were asked for, of rows from `first` on. */
static double greatest_difference(const struct model_case *c, const real *a, const real *b, int first)
{
	double greatest = 0;
	for (int n = 0; n < c->B * c->T; n++)
		for (int v = 0; v < c->model.V && n % c->T % 3 != 1 && n % c->T >= first; v++) {
			size_t at = (size_t)n * (size_t)c->model.V + (size_t)v;
			double off = (double)a[at] - (double)b[at], size = (double)b[at];
			off = (off < 0 ? -off : off) / (size < -1 ? -size : size > 1 ? size : 1);
			greatest = off > greatest || off != off ? off : greatest;
		}
	return greatest;
}

/* Decoding with keys kept in `cache` against the whole sequences under `whole`. */
static double decoding_differs(struct model_case *c, const struct method *scaling, enum cache_kind cache)
{
	real *whole = case_logits(c);
	struct decoder *d = open_decoder(c, scaling, cache);
	real *steps = decoded(d, c);
	double differs = greatest_difference(c, steps, whole, 0);
	decoder_close(d);
	free(whole);
	free(steps);
	return differs;
}

static bool takes(const struct method *scaling, const struct method *encoding, int T)
{
	struct model_options o = small_options("nope");
	o.encoding = *encoding;
	return !scaling_check(scaling, &o, T).code;
}

static void check_unrotated(const struct method *encoding, const struct method *scaling, int T)
{
	struct model_options o = small_options("nope");
	struct method by_query = scaling_by_query(scaling);
	struct model_case c;
	o.encoding = *encoding;
	if (!takes(scaling, encoding, T))
		return;
	case_open_method(&c, &o, &by_query, T == LONG ? 1 : 2, T, NULL);
	double differs = decoding_differs(&c, scaling, CACHE_UNROTATED);
	if (!(differs <= TOLERANCE))
		fail_msg("%s under %s: %g from the whole sequence", encoding->entry->name, scaling->entry->name,
			 differs);
	case_close(&c);
}

static void unrotated_is_the_whole_sequence(void **state)
{
	struct method encoding[ENCODINGS], none = scaling_named("none");
	(void)state;
	for (int i = all_encodings(encoding) - 1; i >= 0; i--) {
		check_unrotated(&encoding[i], &none, LONG);
		for (int s = 0; scaling_at(s); s++) {
			struct method scaling = method_default(scaling_at(s));
			check_unrotated(&encoding[i], &scaling, SHORT);
		}
	}
}

/* More than their defaults, and more than one block of queries and of keys. */
static void unrotated_under_options_and_parts(void **state)
{
	static const char *const label[] = { "dynamic", "dynamic(block=33)", "dynamic(alpha=2)", "yarn+window(size=40)",
					     "window(size=9)" };
	struct method rope = small_options("rope").encoding;
	(void)state;
	for (size_t i = 0; i < sizeof label / sizeof *label; i++) {
		struct method scaling = scaling_named(label[i]);
		check_unrotated(&rope, &scaling, LONG);
	}
}

/* ssmax goes by the number of keys; positions may skip; a learned table may shrink to fit. */
static void unrotated_under_other_rules(void **state)
{
	static const char *const encoding[] = { "rope", "learned(overflow=interpolate)", "sinusoidal", "t5" };
	double positions[SHORT];
	(void)state;
	for (int t = 0; t < SHORT; t++)
		positions[t] = 2 * t + t / 7;
	for (size_t i = 0; i < sizeof encoding / sizeof *encoding; i++) {
		struct model_options o = small_options(encoding[i]);
		struct model_case c;
		o.ssmax = true;
		case_open(&c, &o, "none", 3, SHORT, positions);
		struct decoder_request q = { .model = &c.model, .B = 3, .T = SHORT, .positions = positions,
					     .cache = CACHE_UNROTATED };
		struct decoder *d;
		assert_ok(decoder_open(&q, &d));
		real *whole = case_logits(&c), *steps = decoded(d, &c);
		assert_true(greatest_difference(&c, steps, whole, 0) <= TOLERANCE);
		free(whole);
		free(steps);
		decoder_close(d);
		case_close(&c);
	}
}

/* Where frequencies stay, keys may be kept rotated. */
static void rotated_is_unrotated_where_frequencies_stay(void **state)
{
	struct method encoding[ENCODINGS];
	(void)state;
	for (int i = all_encodings(encoding) - 1; i >= 0; i--)
		for (int s = 0; scaling_at(s); s++) {
			struct method scaling = method_default(scaling_at(s));
			struct model_options o = small_options("nope");
			struct model_case c;
			size_t ignored;
			o.encoding = encoding[i];
			if (!takes(&scaling, &encoding[i], SHORT) || scaling_by_length(&scaling))
				continue;
			case_open_method(&c, &o, &scaling, 1, SHORT, NULL);
			struct decoder_request q = { .model = &c.model, .B = 1, .T = SHORT, .scaling = &scaling,
						     .cache = CACHE_ROTATED };
			struct err e = decoder_bytes(&q, &ignored);
			if (e.code)
				assert_err(e, ERR_USAGE, "no single rotation");
			else
				assert_true(decoding_differs(&c, &scaling, CACHE_ROTATED) <= TOLERANCE);
			case_close(&c);
		}
}

/* Up to the trained length dynamic leaves frequencies alone; then the three ways part. */
static void the_three_ways_part_past_the_trained_length(void **state)
{
	struct model_options o = small_options("rope");
	struct method dynamic = scaling_named("dynamic");
	int L = (int)o.train_length;
	struct model_case c;
	(void)state;
	case_open(&c, &o, "none", 2, 3 * L, NULL);
	real *plain = case_logits(&c), *logits[3];
	for (int kind = 0; kind < 3; kind++) {
		struct decoder *d = open_decoder(&c, &dynamic, (enum cache_kind)kind);
		logits[kind] = decoded(d, &c);
		decoder_close(d);
	}
	for (int i = 0; i < 3; i++) {
		for (int n = 0; n < c.B * c.T; n++)
			if (n % c.T < L && n % 3 != 1)
				for (int v = 0; v < c.model.V; v++)
					assert_close(logits[i][n * c.model.V + v], plain[n * c.model.V + v], TOLERANCE);
		assert_true(greatest_difference(&c, logits[i], logits[(i + 1) % 3], L) > 1e-3);
	}
	for (int i = 0; i < 3; i++)
		free(logits[i]);
	free(plain);
	case_close(&c);
}

/* Each step of `recompute` is a run of the sequence so far, to the bit, whatever the scaling. */
static void recompute_is_a_run_of_each_prefix(void **state)
{
	static const char *const label[] = { "dynamic", "dynamic(block=5)", "dynamic+window(size=12)", "none",
					     "yarn(factor=4)" };
	struct model_options o = small_options("rope");
	(void)state;
	for (size_t i = 0; i < sizeof label / sizeof *label; i++) {
		struct method scaling = scaling_named(label[i]);
		struct model_case whole, prefix;
		case_open(&whole, &o, label[i], 1, 40, NULL);
		struct decoder *d = open_decoder(&whole, &scaling, CACHE_RECOMPUTE);
		real *steps = decoded(d, &whole);
		for (int t = 15; t <= 40; t += 9) {
			case_open(&prefix, &o, label[i], 1, t, NULL);
			memcpy(prefix.token, whole.token, (size_t)t * sizeof *whole.token);
			memcpy(prefix.model.value, whole.model.value, whole.model.layout.size * sizeof(real));
			real *logits = case_logits(&prefix);
			for (int v = 0; v < whole.model.V; v++)
				assert_close(steps[(t - 1) * whole.model.V + v], logits[(t - 1) * whole.model.V + v],
					     TOLERANCE);
			free(logits);
			case_close(&prefix);
		}
		free(steps);
		decoder_close(d);
		case_close(&whole);
	}
}

/* A long sequence leaves nothing behind: the next is as in a decoder that saw no other, to the bit, and within the
 * trained length as without a scaling. */
/* A factor auto is that of the longest length in every way of keeping; with one layer, recomputing earlier rows by a
 * later length changes nothing that is asked for, so that two ways are one. */
static void a_factor_is_configured_once(void **state)
{
	static const char *const label[] = { "longrope", "dynamic+temperature", "dynamic_linear+temperature" };
	(void)state;
	for (size_t i = 0; i < sizeof label / sizeof *label; i++) {
		struct model_options o = small_options("rope");
		struct method scaling = scaling_named(label[i]), by_query = scaling_by_query(&scaling);
		struct model_case c;
		o.layers = 1;
		case_open_method(&c, &o, &by_query, 2, SHORT, NULL);
		double differs = decoding_differs(&c, &scaling, CACHE_RECOMPUTE);
		if (!(differs <= TOLERANCE))
			fail_msg("%s: %g from the whole sequence", label[i], differs);
		case_close(&c);
	}
}

static void a_long_sequence_leaves_nothing_behind(void **state)
{
	struct model_options o = small_options("rope");
	struct method dynamic = scaling_named("dynamic"), none = scaling_named("none");
	int L = (int)o.train_length;
	struct model_case c;
	(void)state;
	case_open(&c, &o, "none", 1, L, NULL);
	for (int kind = 0; kind < 3; kind++) {
		struct decoder_request q = { .model = &c.model, .B = 1, .T = 4 * L, .scaling = &dynamic,
					     .cache = (enum cache_kind)kind };
		struct decoder *d, *fresh = open_decoder(&c, &none, CACHE_UNROTATED);
		real logits[CASE_V];
		assert_ok(decoder_open(&q, &d));
		for (int t = 0; t < 4 * L; t++)
			decoder_step(d, &c.token[t % L], logits);
		real *after = decoded(d, &c), *alone = decoded(fresh, &c);
		if (kind)
			assert_memory_equal(after, alone, (size_t)(L * CASE_V) * sizeof(real));
		assert_true(greatest_difference(&c, after, alone, 0) <= TOLERANCE);
		free(after);
		free(alone);
		decoder_close(d);
		decoder_close(fresh);
	}
	case_close(&c);
}

static void same_bits_with_any_number_of_threads(void **state)
{
	static const char *const encoding[] = { "rope", "t5", "alibi" };
	static const enum cache_kind kind[] = { CACHE_RECOMPUTE, CACHE_UNROTATED, CACHE_ROTATED };
	struct method dynamic = scaling_named("dynamic"), none = scaling_named("none");
	int before = threads_count();
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct model_options o = small_options(encoding[i]);
		struct model_case c;
		case_open(&c, &o, "none", 20, 24, NULL);
		real *logits[2];
		for (int k = 0; k < 2; k++) {
			threads_start(k ? 3 : 1);
			struct decoder *d = open_decoder(&c, i ? &none : &dynamic, kind[i]);
			logits[k] = decoded(d, &c);
			decoder_close(d);
		}
		assert_memory_equal(logits[0], logits[1], (size_t)(20 * 24 * c.model.V) * sizeof(real));
		free(logits[0]);
		free(logits[1]);
		threads_start(before);
		case_close(&c);
	}
}

#ifdef COUNTS_ALLOCATIONS
static void no_step_allocates(void **state)
{
	static const char *const encoding[] = { "rope", "learned(overflow=clamp)", "t5" };
	struct method dynamic = scaling_named("dynamic"), none = scaling_named("none");
	(void)state;
	for (int i = 0; i < 3; i++)
		for (int kind = 0; kind < 3; kind++) {
			struct model_options o = small_options(encoding[i]);
			struct model_case c;
			int32_t token[2] = { 1, 2 };
			real logits[2 * CASE_V];
			case_open(&c, &o, "none", 2, 40, NULL);
			struct decoder *d = open_decoder(&c, i ? &none : &dynamic, (enum cache_kind)kind);
			decoder_step(d, token, logits);
			int before = allocations;
			for (int t = 1; t < 40; t++)
				decoder_step(d, token, logits);
			assert_int_equal(allocations, before);
			void *volatile kept = malloc(1);
			free(kept);
			assert_int_equal(allocations, before + 1);
			decoder_close(d);
			case_close(&c);
		}
}
#endif

/* ---- What cannot be. ---- */

static struct err open_as(const char *encoding, const struct method *scaling, int T, enum cache_kind cache)
{
	struct model_options o = small_options("nope");
	struct model_case c;
	assert_ok(method_parse("encoding", position_at, encoding, &o.encoding));
	case_open(&c, &o, "none", 1, 8, NULL);
	struct decoder_request q = { .model = &c.model, .B = 1, .T = T, .scaling = scaling, .cache = cache };
	struct decoder *d = (struct decoder *)&c;
	struct err e = decoder_open(&q, &d);
	if (e.code)
		assert_null(d);
	else
		decoder_close(d);
	case_close(&c);
	return e;
}

static void what_cannot_be_is_refused(void **state)
{
	struct method none = scaling_named("none"), yarn = scaling_named("yarn");
	struct method both = scaling_named("dynamic+window");
	struct method clipped = scaling_named("rerope(w=5)");
	(void)state;
	assert_err(open_as("learned", &none, 17, CACHE_UNROTATED), ERR_USAGE, "length 17");
	assert_ok(open_as("learned", &none, 16, CACHE_UNROTATED));
	assert_err(open_as("alibi", &yarn, 16, CACHE_ROTATED), ERR_USAGE, "has none");
	assert_err(open_as("rope", &clipped, 30, CACHE_ROTATED), ERR_USAGE, "no single rotation");
	assert_ok(open_as("rope", &clipped, 30, CACHE_UNROTATED));
	assert_err(open_as("rope", &both, 30, CACHE_UNROTATED), ERR_USAGE, "Use recompute");
	assert_err(open_as("rope", &both, 30, CACHE_ROTATED), ERR_USAGE, "Use recompute");
	assert_ok(open_as("rope", &both, 30, CACHE_RECOMPUTE));
}

static void a_centred_encoding_keeps_no_rotated_keys(void **state)
{
	struct model_options o = small_options("nope");
	struct model_case c;
	size_t bytes;
	(void)state;
	o.encoding = small_options("xpos").encoding;
	case_open(&c, &o, "none", 1, 8, NULL);
	struct decoder_request q = { .model = &c.model, .B = 1, .T = 8, .cache = CACHE_ROTATED };
	assert_err(decoder_bytes(&q, &bytes), ERR_USAGE, "no single rotation");
	q.cache = CACHE_UNROTATED;
	assert_ok(decoder_bytes(&q, &bytes));
	case_close(&c);
}

static void one_step_too_many(void *data)
{
	int32_t token = 0;
	decoder_step(data, &token, NULL);
}

static void more_steps_than_planned_are_a_bug(void **state)
{
	struct model_options o = small_options("nope");
	struct model_case c;
	int32_t token = 1;
	(void)state;
	case_open(&c, &o, "none", 1, 2, NULL);
	struct decoder *d = open_decoder(&c, NULL, CACHE_UNROTATED);
	decoder_step(d, &token, NULL);
	decoder_step(d, &token, NULL);
	assert_bug(one_step_too_many, d, "step 2 of a decoder of 2");
	decoder_close(d);
	case_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unrotated_is_the_whole_sequence),
		cmocka_unit_test(unrotated_under_options_and_parts),
		cmocka_unit_test(unrotated_under_other_rules),
		cmocka_unit_test(rotated_is_unrotated_where_frequencies_stay),
		cmocka_unit_test(the_three_ways_part_past_the_trained_length),
		cmocka_unit_test(recompute_is_a_run_of_each_prefix),
		cmocka_unit_test(a_factor_is_configured_once),
		cmocka_unit_test(a_long_sequence_leaves_nothing_behind),
		cmocka_unit_test(same_bits_with_any_number_of_threads),
#ifdef COUNTS_ALLOCATIONS
		cmocka_unit_test(no_step_allocates),
#endif
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(a_centred_encoding_keeps_no_rotated_keys),
		cmocka_unit_test(more_steps_than_planned_are_a_bug),
	};
	assert_ok(blas_start(1));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
