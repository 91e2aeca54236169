#include "tests/reference.h"

#include "model/base/blas.h"
#include "tests/model_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 64 };

#ifdef ROPEWALK_DOUBLE
#define ROUNDING 1e-11
#else
#define ROUNDING 1e-4
#endif

/* ---- Zones. ---- */

struct placed {
	struct arena memory;
	struct zones zones;
};

/* Zones as a transformer places them; measuring and placing must agree to the byte. */
static struct placed place_zones(const struct method *m, const struct model_options *o, int T, const double *positions)
{
	struct placed p = { 0 };
	struct place place = place_of(o);
	place.T = T;
	place.positions = positions;
	struct arena measure = { 0 };
	assert_ok(scaling_check(m, o, positions[T - 1] + 1));
	scaling_zones(m, o, &place, &measure, &p.zones);
	assert_ok(arena_reserve(&p.memory, measure.used, "zones"));
	scaling_zones(m, o, &place, &p.memory, &p.zones);
	assert_int_equal(p.memory.used, measure.used);
	return p;
}

/* Every key at most once, at the distance that the formula says, and no other. */
static void check_distances(const struct method *m, const struct model_options *o, const struct zones *z, int T,
			    const double *positions)
{
	for (int i = 0; i < T; i++)
		for (int j = 0; j < T; j++) {
			double wanted = j > i ? NAN
					      : reference_distance(m, (int)o->train_length, T, positions, i, j);
			int seen = 0;
			for (const struct zone *n = z->zone; n < z->zone + z->count; n++) {
				int at = i - n->begin;
				if (i < n->begin || i >= n->end || j < n->low[at] || j >= n->high[at])
					continue;
				seen++;
				assert_close(n->query_position[at] - n->key_position[j], wanted, 1e-12);
			}
			if (seen != !isnan(wanted))
				fail_msg("%s: query %d sees key %d in %d zones", m->entry->name, i, j, seen);
		}
}

/* Zones of `block` queries (0: several that share the sequence), at frequencies of the length that ends with each. */
static void check_zones(const struct method *m, const struct model_options *o, const struct zones *z, int T,
			      const double *positions, int block)
{
	int D = (int)(o->width / o->heads);
	assert_true(block ? z->count == (T + block - 1) / block && z->together == 1 : z->count == z->together);
	check_distances(m, o, z, T, positions);
	for (int n = 0; n < z->count; n++) {
		const struct zone *zone = &z->zone[n];
		double inv_freq[PAIRS], attention_factor;
		assert_int_equal(zone->begin, n * block);
		assert_int_equal(zone->end, block && (n + 1) * block < T ? (n + 1) * block : T);
		reference_frequencies(m, 500, D, (int)o->train_length, positions[zone->end - 1] + 1, inv_freq,
				      &attention_factor);
		for (int f = 0; f < D / 2; f++)
			assert_close(zone->inv_freq[f] / inv_freq[f], 1, 1e-12);
		assert_close(zone->attention_factor, attention_factor, 1e-12);
	}
}

static void zones_of_a_whole_sequence(void **state)
{
	(void)state;
	double positions[200];
	struct model_options o = rope_options(500, 16, 64);
	for (int stride = 1; stride <= 3; stride++)
		for (int i = 0; scaling_at(i); i++) {
			if (!reference_knows(scaling_at(i)))
				continue;
			struct method m = method_default(scaling_at(i));
			for (int t = 0; t < 200; t++)
				positions[t] = stride * t;
			struct placed p = place_zones(&m, &o, 200, positions);
			check_zones(&m, &o, &p.zones, 200, positions, 0);
			arena_free(&p.memory);
		}
}

static void zones_of_blocks(void **state)
{
	(void)state;
	double positions[200];
	struct model_options o = rope_options(500, 16, 64);
	for (int t = 0; t < 200; t++)
		positions[t] = t;
	struct method m = scaling_named("dynamic(block=64)");
	struct placed p = place_zones(&m, &o, 200, positions);
	static const int begins[] = { 0, 64, 128, 192 }, ends[] = { 64, 128, 192, 200 };
	static const double ratios[] = { 1, 2, 3, 200.0 / 64 };
	assert_int_equal(p.zones.count, 4);
	for (int n = 0; n < 4; n++) {
		const struct zone *z = &p.zones.zone[n];
		assert_true(z->begin == begins[n] && z->end == ends[n]);
		assert_close(pow(z->inv_freq[1], -8), 500 * pow(ratios[n], 16.0 / 14), 1e-12);
	}
	arena_free(&p.memory);
	static const char *const labels[] = { "dynamic(block=1)",   "dynamic(block=64)",  "dynamic(alpha=3,block=50)",
					      "dynamic(block=199)", "dynamic(block=200)", "dynamic(block=16777216)" };
	static const int blocks[] = { 1, 64, 50, 199, 200, 200 };
	for (int i = 0; i < 6; i++) {
		for (int t = 0; t < 200; t++)
			positions[t] = i % 2 ? 2 * t : t;
		m = scaling_named(labels[i]);
		p = place_zones(&m, &o, 200, positions);
		check_zones(&m, &o, &p.zones, 200, positions, blocks[i]);
		arena_free(&p.memory);
	}
}

/* One long sequence leaves nothing behind: a later one of the trained length is as without scaling. */
static void dynamic_forgets(void **state)
{
	(void)state;
	struct model_options o = small_options("rope");
	struct model_case before, longer, after;
	case_open(&before, &o, "none", 1, 16, NULL);
	case_open(&longer, &o, "dynamic", 1, 64, NULL);
	case_open(&after, &o, "dynamic", 1, 16, NULL);
	real *wanted = case_logits(&before), *stretched = case_logits(&longer), *found = case_logits(&after);
	assert_memory_equal(found, wanted, sizeof *wanted * 16 * CASE_V);
	free(wanted);
	free(stretched);
	free(found);
	case_close(&before);
	case_close(&longer);
	case_close(&after);
}

/* ---- Which scalings are the same at a length. ---- */

/* Inverse frequencies and attention factor of the one zone of a sequence, to the bit. */
static bool equal_zones(const struct method *a, const struct method *b, const struct model_options *o, int T)
{
	double *positions = TAKE(double, (size_t)T);
	for (int t = 0; t < T; t++)
		positions[t] = t;
	struct placed one = place_zones(a, o, T, positions), other = place_zones(b, o, T, positions);
	const struct zone *x = one.zones.zone, *y = other.zones.zone;
	size_t F = (size_t)(o->width / o->heads) / 2;
	bool equal = one.zones.count == 1 && other.zones.count == 1 && x->attention_factor == y->attention_factor &&
		     !memcmp(x->inv_freq, y->inv_freq, F * sizeof *x->inv_freq);
	arena_free(&one.memory);
	arena_free(&other.memory);
	free(positions);
	return equal;
}

static void same_scalings_have_the_same_zones(void **state)
{
	(void)state;
	static const char *const labels[] = {
		"none",		 "linear",	 "linear(factor=2)",	   "ntk",  "ntk(factor=2)",
		"ntk(factor=8)", "ntk_by_parts", "ntk_by_parts(factor=2)", "yarn", "yarn(factor=2)"
	};
	static const int lengths[] = { 16, 64, 65, 128, 512 };
	struct model_options o = rope_options(500, 16, 64);
	for (int l = 0; l < 5; l++)
		for (int i = 0; i < 10; i++)
			for (int j = 0; j < 10; j++) {
				struct method a = scaling_named(labels[i]), b = scaling_named(labels[j]);
				assert_int_equal(scaling_same(&a, &b, &o, lengths[l]),
						 equal_zones(&a, &b, &o, lengths[l]));
			}
}

/* ---- What is refused. ---- */

static struct err check(const char *label, const struct model_options *o, double length)
{
	struct method m = scaling_named(label);
	return scaling_check(&m, o, length);
}

static void refusals(void **state)
{
	(void)state;
	struct model_options o = rope_options(500, 2, 64), wide = rope_options(500, 4, 64);
	static const char *const needs_pairs[] = { "ntk", "ntk(factor=4)", "dynamic", "dynamic(block=16)" };
	for (int i = 0; i < 4; i++) {
		assert_err(check(needs_pairs[i], &o, 128), ERR_USAGE, "head_dim");
		assert_ok(check(needs_pairs[i], &wide, 128));
	}
	assert_ok(check("linear", &o, 128));
	assert_ok(check("yarn", &o, 128));
	assert_err(check("yarn(beta_fast=1,beta_slow=2)", &wide, 128), ERR_USAGE, "beta_fast");
	assert_err(check("ntk_by_parts(beta_fast=0.5)", &wide, 128), ERR_USAGE, "beta_fast");
	assert_ok(check("yarn(beta_fast=2,beta_slow=2)", &wide, 128));
	struct method m;
	assert_err(method_parse("scaling", scaling_at, "linear(factor=0.5)", &m), ERR_USAGE, "factor");
	assert_err(method_parse("scaling", scaling_at, "linear_ntk", &m), ERR_USAGE, "linear");
}

static void only_rope_takes_other_frequencies(void **state)
{
	(void)state;
	for (int e = 0; position_at(e); e++)
		for (int i = 0; scaling_at(i); i++) {
			struct model_options o = small_options(position_at(e)->name);
			struct method m = method_default(scaling_at(i));
			bool fits = position_of(&o.encoding)->rope_theta || scaling_of(&m)->any_encoding;
			struct model model;
			struct transformer *t = NULL;
			assert_ok(model_open(&o, CASE_V, &model));
			struct transformer_request q = { .model = &model, .B = 1, .T = 16, .scaling = &m };
			if (fits) {
				assert_ok(scaling_check(&m, &o, 16));
				assert_ok(transformer_open(&q, &t));
			} else {
				assert_err(scaling_check(&m, &o, 16), ERR_USAGE, o.encoding.entry->name);
				assert_err(transformer_open(&q, &t), ERR_USAGE, m.entry->name);
			}
			transformer_close(t);
			model_close(&model);
		}
	struct model_options alibi = small_options("alibi");
	assert_err(check("yarn", &alibi, 16), ERR_USAGE, "alibi");
}

static bool same(const char *a, const char *b, double length)
{
	struct model_options o = small_options("rope");
	struct method first = scaling_named(a), second = scaling_named(b);
	return scaling_same(&first, &second, &o, length);
}

/* An evaluation takes the result of equal zones; so only equal numbers may be called the same. */
static void what_is_the_same(void **state)
{
	struct model_options alibi = small_options("alibi");
	struct method none = scaling_named("none"), ntk = scaling_named("ntk");
	(void)state;
	assert_true(same("none", "linear", 16));
	assert_true(same("none", "yarn", 16));
	assert_false(same("none", "linear", 32));
	assert_true(same("ntk", "ntk(factor=2)", 32));
	assert_false(same("ntk", "ntk(factor=2)", 64));
	assert_false(same("ntk(factor=2)", "linear(factor=2)", 32));
	assert_false(same("ntk_by_parts(factor=2,ramp=pairs)", "yarn(factor=2)", 32)); /* the attention factor */
	assert_false(same("dynamic", "ntk", 32));                                      /* zones of its own */
	assert_false(scaling_same(&none, &ntk, &alibi, 16));
}

/* ---- Whole models. ---- */

/* Does it keep the distances of a sequence, or bound them within the trained length already? */
static bool keeps_distances(const struct method *m, const struct model_options *o, int T)
{
	double positions[64];
	for (int t = 0; t < T; t++)
		positions[t] = t;
	struct placed p = place_zones(m, o, T, positions);
	bool keeps = zones_longest_distance(&p.zones) == T - 1;
	arena_free(&p.memory);
	return keeps;
}

/* Does it know the length? Other scalings change the model at any. */
static bool goes_by_length(const struct entry *e)
{
	const struct method m = method_default(e);
	const struct scaling *s = scaling_of(&m);
	return scaling_has_factor(&m) || s->ratio || s->zones || !(s->base || s->frequencies || s->after);
}

/* Within the trained length a factor left to itself is 1, and so is dynamic's ratio; beyond it they act. So it is with
 * whatever else a method does there, if it leaves distances as they are. */
static void within_the_trained_length_auto_is_none(void **state)
{
	(void)state;
	struct model_options o = small_options("rope");
	for (int i = 0; scaling_at(i); i++)
		for (int T = 15; T <= 17; T++) {
			struct model_case c;
			struct method m = method_default(scaling_at(i));
			case_open(&c, &o, "none", 2, T, NULL);
			real *wanted = case_logits(&c);
			case_close(&c);
			case_open_method(&c, &o, &m, 2, T, NULL);
			real *logits = case_logits(&c);
			bool same = !memcmp(logits, wanted, sizeof *wanted * 2 * (size_t)T * CASE_V);
			bool none = !strcmp(m.entry->name, "none");
			bool keeps = goes_by_length(m.entry) && keeps_distances(&m, &o, T);
			assert_int_equal(same, none || (T <= 16 && keeps));
			free(wanted);
			free(logits);
			case_close(&c);
		}
}

/* ---- Methods that move positions. ---- */

static real *logits_under(const char *encoding, const char *scaling, int T)
{
	struct model_options o = small_options(encoding);
	struct model_case c;
	case_open(&c, &o, scaling, 2, T, NULL);
	real *logits = case_logits(&c);
	case_close(&c);
	return logits;
}

/* Greatest difference of two scalings' logits; -1: they are equal to the bit. */
static double difference(const char *encoding, const char *one, const char *other, int T)
{
	real *a = logits_under(encoding, one, T), *b = logits_under(encoding, other, T);
	size_t count = (size_t)2 * (size_t)T * CASE_V;
	double worst = 0;
	for (size_t i = 0; i < count; i++)
		worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
	if (!memcmp(a, b, count * sizeof *a))
		worst = -1;
	free(a);
	free(b);
	return worst;
}

/* Up to `bits` tokens nothing changes, up to `same` nothing but the last bits: far keys stand where they stood, summed
 * apart. One token more, and it shows. 0: at no length. */
static void what_is_no_change(void **state)
{
	(void)state;
	static const struct {
		const char *label;
		int bits, same;
	} rows[] = {
		{ "leaky_rerope(k=1)", 150, 0 },
		{ "leaky_rerope(w=3,k=1)", 150, 0 },
		{ "self_extend(group=1)", 150, 0 },
		{ "self_extend(w=5,group=1,shift=real)", 150, 0 },
		{ "temperature(value=1)", 150, 0 },
		{ "rerope(w=9)", 9, 10 },
		{ "leaky_rerope(w=9,k=3)", 9, 10 },
		{ "leaky_rerope", 16, 16 },
		{ "self_extend(w=9,group=2)", 9, 10 },
		{ "self_extend", 16, 16 },
		{ "dual_chunk(chunk=12,local=2)", 10, 13 },
		{ "dual_chunk(chunk=9,local=4,mscale=on)", 5, 10 },
		{ "sinks", 16, 16 },
		{ "sinks(evict=before,recent=12)", 16, 16 },
		{ "sinks(start=2,recent=7)", 10, 10 },
		{ "sinks(start=2,recent=7,evict=before)", 9, 9 },
		{ "sinks(start=40)", 41, 41 },
		{ "sinks(start=0,recent=3)", 4, 4 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *label = rows[i].label;
		double bits = difference("rope", label, "none", rows[i].bits);
		double same = difference("rope", label, "none", rows[i].same ? rows[i].same : 1);
		double changed = rows[i].same ? difference("rope", label, "none", rows[i].same + 1) : 1;
		if (bits >= 0 || !(same < ROUNDING) || !(changed > 1e-4))
			fail_msg("%s: %g at %d, %g at %d, then %g", label, bits, rows[i].bits, same, rows[i].same,
				 changed);
	}
}

/* rerope is leaky_rerope without an end to k; one group a token is no group. */
static void limits(void **state)
{
	(void)state;
	assert_below(difference("rope", "leaky_rerope(w=7,k=1e9)", "rerope(w=7)", 150), fmax(ROUNDING, 1e-6));
	assert_below(difference("rope", "self_extend(w=1,group=1000)", "rerope(w=1)", 150), ROUNDING);
	static const char *const by_floor[] = { "self_extend(w=8,group=4)", "self_extend(w=7,group=4)" };
	assert_below(difference("rope", by_floor[0], "self_extend(w=8,group=4,shift=real)", 150), ROUNDING);
	assert_true(difference("rope", by_floor[1], "self_extend(w=7,group=4,shift=real)", 150) > 1e-4);
	/* Without sinks, what is left is a window: its bits, as positions go on. */
	assert_true(difference("rope", "sinks(start=0,recent=20)", "window(size=21)", 150) == -1);
	assert_true(difference("alibi", "sinks(start=0,recent=20,evict=before)", "window(size=20)", 150) == -1);
	assert_true(difference("sinusoidal", "sinks(start=3,recent=9)", "window(size=10)", 150) > 1e-4);
}

/* The temperature alone makes yarn of ntk_by_parts: its square root on q and k is the whole of it on q. */
static void temperature_makes_yarn(void **state)
{
	(void)state;
	static const char *const options[] = { "ramp=rotations,factor=6", "ramp=pairs,factor=3,beta_fast=4",
					       "ramp=rotations,beta_fast=2" };
	for (int i = 0; i < 3; i++) {
		char yarn[96], parts[128], half[128];
		const char *factor = i == 2 ? "" : i ? "(factor=3)" : "(factor=6)";
		snprintf(yarn, sizeof yarn, "yarn(%s)", options[i]);
		snprintf(parts, sizeof parts, "ntk_by_parts(%s)+temperature%s", options[i], factor);
		snprintf(half, sizeof half, "ntk_by_parts(%s)", options[i]);
		assert_below(difference("rope", parts, yarn, 100), ROUNDING);
		assert_true(difference("rope", half, yarn, 100) > 1e-4);
	}
	assert_below(difference("rope", "ntk+temperature", "temperature+ntk", 100), 0);
	char value[64];
	snprintf(value, sizeof value, "temperature(value=%.17g)", pow(0.1 * log(8) + 1, -2));
	assert_below(difference("alibi", "temperature(factor=8)", value, 100), ROUNDING);
}

/* No distance is longer than training had, whatever the length. */
static void distances_stay_within_training(void **state)
{
	(void)state;
	static const char *const labels[] = { "rerope", "self_extend", "dual_chunk", "sinks", "window",
					      "sinks(evict=before)", "leaky_rerope" };
	struct model_options o = rope_options(500, 16, 64);
	double positions[2048];
	for (int t = 0; t < 2048; t++)
		positions[t] = t;
	for (int i = 0; i < 7; i++)
		for (int T = 64; T <= 2048; T *= 2) {
			struct method m = scaling_named(labels[i]);
			struct placed p = place_zones(&m, &o, T, positions);
			/* Their auto factors bring the whole length, not its last token, to the trained one. */
			bool by_factor = i == 1 || i == 6;
			assert_below(zones_longest_distance(&p.zones), by_factor ? 64.5 : 63.5);
			arena_free(&p.memory);
		}
}

static void parts_that_undo_each_other(void **state)
{
	(void)state;
	struct model_options o = rope_options(500, 16, 64);
	static const struct {
		const char *label, *why; /* NULL: they join */
	} rows[] = {
		{ "sinks+window", "both decide which keys a query sees" },
		{ "rerope+self_extend", "both decide which keys a query sees" },
		{ "dynamic(block=16)+rerope", "both decide which keys a query sees" },
		{ "dynamic+rerope", NULL },
		{ "ntk+yarn", "both set all frequencies" },
		{ "yarn+temperature", "each has a temperature" },
		{ "dual_chunk(mscale=on)+temperature", "each has a temperature" },
		{ "yarn+dual_chunk(mscale=on)", "each has a temperature" },
		{ "yarn+dual_chunk", NULL },
		{ "rerope+ntk+logn+temperature", NULL },
		{ "logn+logn", "stands twice" },
		{ "logn+none", "stands alone" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct method m;
		struct err e = method_parse("scaling", scaling_at, rows[i].label, &m);
		if (!e.code)
			e = scaling_check(&m, &o, 128);
		if (rows[i].why)
			assert_err(e, ERR_USAGE, rows[i].why);
		else
			assert_ok(e);
	}
	static const struct {
		const char *label, *why;
	} alone[] = { { "rerope(w=64)", "w 64 is not below train_length 64" },
		      { "leaky_rerope(w=70)", "w 70" },
		      { "self_extend(w=64)", "w 64" },
		      { "dual_chunk(chunk=64)", "chunk 64 is not below train_length 64" },
		      { "dual_chunk(local=48)", "local 48 is not below chunk 48" } };
	for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
		assert_err(check(alone[i].label, &o, 128), ERR_USAGE, alone[i].why);
	struct model_options alibi = small_options("alibi");
	assert_err(check("rerope", &alibi, 128), ERR_USAGE, "rerope moves positions that are rotated");
	struct model_options one = rope_options(500, 16, 1);
	assert_err(check("logn", &one, 128), ERR_USAGE, "ln(train_length) is 0");
	assert_ok(check("rerope", &one, 128));
	assert_ok(check("dual_chunk", &one, 128));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zones_of_a_whole_sequence),
		cmocka_unit_test(zones_of_blocks),
		cmocka_unit_test(dynamic_forgets),
		cmocka_unit_test(same_scalings_have_the_same_zones),
		cmocka_unit_test(refusals),
		cmocka_unit_test(only_rope_takes_other_frequencies),
		cmocka_unit_test(what_is_the_same),
		cmocka_unit_test(within_the_trained_length_auto_is_none),
		cmocka_unit_test(what_is_no_change),
		cmocka_unit_test(limits),
		cmocka_unit_test(temperature_makes_yarn),
		cmocka_unit_test(distances_stay_within_training),
		cmocka_unit_test(parts_that_undo_each_other),
	};
	struct err e = blas_start(1);
	if (e.code) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests_name("model zones", tests, NULL, NULL);
}
