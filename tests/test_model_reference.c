#include "tests/reference.h"

#include "model/base/blas.h"
#include "tests/model_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef ROPEWALK_DOUBLE
#define TOLERANCE 1e-11
#else
#define TOLERANCE 2e-4
#endif

enum { TRAIN_LENGTH = 64 };

struct shape {
	int width, heads, hidden, B, T;
	bool tied;
};

static struct model_options options_of(const char *encoding, struct shape s)
{
	struct model_options o = small_options(encoding);
	o.width = s.width;
	o.heads = s.heads;
	o.hidden = s.hidden;
	o.tied = s.tied;
	o.train_length = TRAIN_LENGTH;
	return o;
}

/* ---- Every encoding and scaling with every choice of its options. ---- */

struct labels {
	char text[96][64];
	int count;
};

static void add_label(struct labels *l, const char *name, const char *option, const char *choice, int letters)
{
	assert_true(l->count < 96);
	char *to = l->text[l->count++];
	if (option)
		snprintf(to, sizeof l->text[0], "%s(%s=%.*s)", name, option, letters, choice);
	else
		snprintf(to, sizeof l->text[0], "%s", name);
}

/* The entry as it is, with each of its other choices, and with those of `more` that are its own. */
static void add_labels(struct labels *l, const struct entry *e, const char *const *more)
{
	size_t letters = strlen(e->name);
	add_label(l, e->name, NULL, NULL, 0);
	for (const struct option *o = e->options; o && o->name; o++)
		if (o->kind == OPTION_CHOICE || o->kind == OPTION_SWITCH)
			for (const char *at = o->choices; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
				if (strncmp(at, o->initial, strcspn(at, "|")))
					add_label(l, e->name, o->name, at, (int)strcspn(at, "|"));
	for (; *more; more++)
		if (!strncmp(*more, e->name, letters) && (*more)[letters] == '(')
			add_label(l, *more, NULL, NULL, 0);
}

static void add_encodings(struct labels *l)
{
	static const char *const more[] = { "sinusoidal(scale=1)",
					    "t5(buckets=2,max_distance=2)",
					    "t5(buckets=7,max_distance=90)",
					    "t5(buckets=32,max_distance=128)",
					    "t5(per_layer=on)",
					    "rope(theta=10000)",
					    "rope(rotary_dim=2)",
					    "rope(p_rope=0.34,layout=half)",
					    "rope(nope_every=2,learned=tempered,layout=half)",
					    "hard_alibi(windows=1,step=40)",
					    "fire(width=3,init_length=100,eps=0.01)",
					    "sandwich(width=6,start=1)",
					    NULL };
	int known = 0;
	for (int i = 0; position_at(i); i++)
		if (reference_knows(position_at(i))) {
			add_labels(l, position_at(i), more);
			known++;
		}
	assert_true(known >= 6);
}

static void add_scalings(struct labels *l)
{
	static const char *const more[] = { "linear(factor=3)",
					    "ntk(factor=8)",
					    "dynamic(alpha=4)",
					    "dynamic(block=64)",
					    "dynamic(block=17)",
					    "dynamic(alpha=2,block=100)",
					    "dynamic(block=1000)",
					    "ntk_by_parts(beta_fast=4,factor=8)",
					    "ntk_by_parts(attention_factor=0.7)",
					    "yarn(ramp=rotations,beta_fast=4)",
					    "yarn(factor=8,attention_factor=1.5)",
					    "yarn(beta_fast=4,truncate=off)",
					    "yarn(factor=2,beta_fast=2,beta_slow=2)",
					    "rerope(w=5)",
					    "leaky_rerope(w=3,k=2.5)",
					    "leaky_rerope(w=3,k=1)",
					    "self_extend(w=7,group=3)",
					    "self_extend(w=7,group=3,shift=real)",
					    "self_extend(w=1,group=40)",
					    "dual_chunk(chunk=11,local=4)",
					    "dual_chunk(chunk=2,local=1,mscale=on)",
					    "sinks(start=3,recent=9)",
					    "sinks(start=0,recent=1,evict=before)",
					    "sinks(start=400)",
					    "temperature(value=0.6)",
					    NULL };
	int known = 0;
	for (int i = 0; scaling_at(i); i++)
		if (reference_knows(scaling_at(i))) {
			add_labels(l, scaling_at(i), more);
			known++;
		}
	assert_true(known >= 6);
}

/* ---- The comparison. ---- */

/* Random rows past the table are nobody's formula, and `refuse` has none. */
static bool has_answer(const struct model_options *o, double largest)
{
	int index = method_find(o->encoding.entry, "overflow");
	if (index < 0 || largest < (double)o->train_length)
		return true;
	union option_value clamp, interpolate;
	assert_ok(option_parse(&o->encoding.entry->options[index], "clamp", &clamp));
	assert_ok(option_parse(&o->encoding.entry->options[index], "interpolate", &interpolate));
	int64_t given = o->encoding.value[index].integer;
	return given == clamp.integer || given == interpolate.integer;
}

static void compare(const struct model_options *o, const char *scaling, int B, int T, const double *positions,
		    double tolerance)
{
	struct model_case c;
	size_t N = (size_t)B * (size_t)T, V = CASE_V;
	case_open(&c, o, scaling, B, T, positions);
	real *logits = TAKE(real, N * V);
	double *wanted = TAKE(double, N * V), *nll = TAKE(double, N), greatest = 1;
	struct outcome found = transformer_forward(c.transformer, c.token, c.target, logits);
	double sum = reference_forward(&c.model, &c.scaling, B, T, positions, c.token, c.target, wanted, nll);
	for (size_t i = 0; i < N * V; i++)
		greatest = fmax(greatest, fabs(wanted[i]));
	for (size_t i = 0; i < N * V; i++)
		if (!(fabs((double)logits[i] - wanted[i]) <= tolerance * greatest))
			fail_msg("%s, %s, width %d, heads %d, B %d, T %d: logit %zu of token %zu is %.17g, not %.17g",
				 o->encoding.entry->name, scaling, (int)o->width, (int)o->heads, B, T, i % V, i / V,
				 (double)logits[i], wanted[i]);
	for (size_t n = 0; n < N; n++)
		assert_close(found.nll[n], nll[n], tolerance * greatest);
	assert_close(found.nll_sum, sum, tolerance * greatest);
	free(logits);
	free(wanted);
	free(nll);
	case_close(&c);
}

static const double *const at_index = NULL;
static const int lengths[] = { 1, 2, 63, 64, 65, 127, 128, 129, 200, 300 }; /* around the edges of attention's blocks */

/* The oracle takes its time: what an encoding or scaling is by default is compared everywhere, and its other choices
 * take turns of `count`. */
static bool has_turn(const struct labels *l, int index, size_t turn, int count)
{
	return !strchr(l->text[index], '(') || ((size_t)index + turn) % (size_t)count == 0;
}

static void every_encoding_at_every_length(void **state)
{
	(void)state;
	struct labels encodings = { .count = 0 };
	add_encodings(&encodings);
	for (int e = 0; e < encodings.count; e++)
		for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
			struct model_options o =
				options_of(encodings.text[e], (struct shape){ 12, 2, 8, .tied = false });
			if (has_answer(&o, lengths[i] - 1) && has_turn(&encodings, e, i, 4))
				compare(&o, "none", 1, lengths[i], at_index, TOLERANCE);
		}
}

static void every_scaling_at_every_length(void **state)
{
	(void)state;
	struct labels scalings = { .count = 0 };
	struct model_options o = options_of("rope", (struct shape){ 12, 2, 8, .tied = false });
	add_scalings(&scalings);
	for (int s = 0; s < scalings.count; s++)
		for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
			if (has_turn(&scalings, s, i, 4) && ((size_t)s + i) % 2 == 0)
				compare(&o, scalings.text[s], 1, lengths[i], at_index, TOLERANCE);
}

static void every_encoding_in_every_shape(void **state)
{
	(void)state;
	static const struct shape shapes[] = { { 30, 3, 24, 3, 130, true },
					       { 8, 1, 0, 3, 64, false },
					       { 2, 1, 3, 1, 70, false },
					       { 24, 12, 5, 2, 33, false },
					       { 10, 1, 0, 2, 5, true } };
	struct labels encodings = { .count = 0 };
	add_encodings(&encodings);
	for (int e = 0; e < encodings.count; e++)
		for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
			struct model_options o = options_of(encodings.text[e], shapes[i]);
			if (has_answer(&o, shapes[i].T - 1) && (i || has_turn(&encodings, e, i, 3)))
				compare(&o, "none", shapes[i].B, shapes[i].T, at_index, TOLERANCE);
		}
}

static void every_scaling_in_every_shape(void **state)
{
	(void)state;
	/* ntk and dynamic have no answer for head_dim 2. */
	static const struct shape shapes[] = { { 30, 3, 24, 3, 130, true },
					       { 8, 1, 0, 3, 66, false },
					       { 4, 1, 3, 1, 70, false },
					       { 24, 6, 5, 2, 33, false } };
	struct labels scalings = { .count = 0 };
	add_scalings(&scalings);
	for (int s = 0; s < scalings.count; s++)
		for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
			if (!i && s % 3) /* the largest, for the oracle's sake */
				continue;
			struct model_options o = options_of("rope(theta=10000)", shapes[i]);
			compare(&o, scalings.text[s], shapes[i].B, shapes[i].T, at_index, TOLERANCE);
		}
}

/* Parts of heads, pairs that stand still and layers without rotation take every scaling. */
static void every_scaling_of_a_part(void **state)
{
	(void)state;
	static const char *const parts[] = { "rope(rotary_dim=4)", "rope(rotary_dim=6,p_rope=0.7,layout=half)",
					     "rope(nope_every=2)" };
	struct labels scalings = { .count = 0 };
	add_scalings(&scalings);
	for (int s = 0; s < scalings.count; s++) {
		const char *part = parts[s % 3], *other = parts[(s + 1) % 3];
		struct model_options o = options_of(part, (struct shape){ 16, 2, 8, .tied = false });
		struct model_options p = options_of(other, (struct shape){ 16, 2, 8, .tied = false });
		compare(&o, scalings.text[s], 1, 100, at_index, TOLERANCE);
		compare(&p, scalings.text[s], 2, 65, at_index, TOLERANCE);
	}
}

/* Scalable softmax is for any encoding, at any length, in a window too. */
static void scalable_softmax(void **state)
{
	(void)state;
	struct labels encodings = { .count = 0 };
	add_encodings(&encodings);
	for (int e = 0; e < encodings.count; e++) {
		struct model_options o = options_of(encodings.text[e], (struct shape){ 12, 2, 8, .tied = false });
		int T = lengths[e % 8];
		o.ssmax = 1;
		if (!has_answer(&o, T - 1))
			continue;
		compare(&o, "none", 2, T, at_index, TOLERANCE);
		compare(&o, "window(size=20)", 1, T < 70 ? T : 70, at_index, TOLERANCE);
	}
}

/* Parts that work together. */
static void combinations(void **state)
{
	(void)state;
	static const char *const chains[] = { "rerope+logn",
					      "yarn+logn",
					      "window(size=9)+logn",
					      "ntk+rerope",
					      "self_extend+ntk(factor=2)+logn",
					      "dual_chunk+temperature",
					      "ntk+temperature(value=0.5)",
					      "leaky_rerope(w=6)+linear(factor=1.5)",
					      "sinks(start=2,recent=30)+yarn(factor=3)",
					      "dynamic(block=20)+logn",
					      "temperature+logn" };
	struct model_options o = options_of("rope", (struct shape){ 12, 2, 8, .tied = false });
	for (size_t i = 0; i < sizeof chains / sizeof *chains; i++)
		compare(&o, chains[i], 2, 150, at_index, TOLERANCE);
}

/* A window narrower than a block of keys, as wide, wider, and of the query's own key alone; what sees other keys or
 * scales queries likewise. */
static void every_encoding_in_a_window(void **state)
{
	(void)state;
	static const char *const windows[] = { "window",
					       "window(size=1)",
					       "window(size=100)",
					       "sinks+logn",
					       "sinks(start=70,recent=40)+temperature",
					       "window(size=512)",
					       "window(size=600)" };
	struct labels encodings = { .count = 0 };
	add_encodings(&encodings);
	for (int e = 0; e < encodings.count; e++)
		for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
			int T = w < 5 ? 150 : 650;
			if (w < 5 ? !has_turn(&encodings, e, w, 2) : (strchr(encodings.text[e], '(') || (e + w) % 2))
				continue;
			struct model_options o =
				options_of(encodings.text[e], (struct shape){ 4, 1, 8, .tied = false });
			if (has_answer(&o, T - 1))
				compare(&o, windows[w], 1, T, at_index, TOLERANCE);
		}
}

/* ---- Positions that are not 0, 1, 2 ... ---- */

static double repeats(int t)
{
	return floor(t / 3.0);
}
static double skips(int t)
{
	return 2.0 * t + 5 * floor(t / 7.0) + 1;
}
static double stands_still(int t)
{
	return 11 + 0.0 * t;
}
static double fractions(int t)
{
	return 0.37 * t;
}

static void strange_positions(void **state)
{
	(void)state;
	enum { LENGTH = 135 };
	double (*const map[])(int) = { repeats, skips, stands_still, fractions };
	struct labels encodings = { .count = 0 };
	double positions[LENGTH];
	add_encodings(&encodings);
	for (int e = 0; e < encodings.count; e++)
		for (int i = 0; i < 4; i++) {
			struct model_options o =
				options_of(encodings.text[e], (struct shape){ 12, 2, 8, .tied = false });
			for (int t = 0; t < LENGTH; t++)
				positions[t] = map[i](t);
			/* Only positions shrunk to fit a table stand between its rows. */
			if (!strcmp(o.encoding.entry->name, "learned") && map[i] == fractions)
				continue;
			if (!has_turn(&encodings, e, (size_t)i, 2))
				continue;
			if (has_answer(&o, positions[LENGTH - 1]))
				compare(&o, "none", 1, LENGTH, positions, TOLERANCE);
		}
}

static void strange_positions_under_scaling(void **state)
{
	(void)state;
	enum { LENGTH = 135 };
	double (*const map[])(int) = { repeats, skips, stands_still, fractions };
	struct labels scalings = { .count = 0 };
	double positions[LENGTH];
	struct model_options o = options_of("rope", (struct shape){ 12, 2, 8, .tied = false });
	add_scalings(&scalings);
	for (int s = 0; s < scalings.count; s++)
		for (int i = 0; i < 4; i++) {
			if (!has_turn(&scalings, s, (size_t)i, 2))
				continue;
			for (int t = 0; t < LENGTH; t++)
				positions[t] = map[i](t);
			compare(&o, scalings.text[s], 1, LENGTH, positions, TOLERANCE);
		}
}

/* Angles of a million lose six of a double's digits, and no more. */
static void far_from_the_origin(void **state)
{
	(void)state;
	enum { LENGTH = 90 };
	static const char *const scalings[] = { "none", "linear(factor=4)", "ntk(factor=4)", "yarn(factor=4)" };
	double positions[LENGTH];
	for (int t = 0; t < LENGTH; t++)
		positions[t] = 1e6 + t;
	struct model_options o = options_of("rope", (struct shape){ 12, 2, 8, .tied = false });
	for (int s = 0; s < 4; s++)
		compare(&o, scalings[s], 1, LENGTH, positions, fmax(TOLERANCE, 1e-8));
	static const char *const encodings[] = { "sinusoidal", "alibi", "t5",	 "nope",     "learned(overflow=clamp)",
						 "kerple",     "fire",	"sandwich", "hard_alibi" };
	for (size_t e = 0; e < sizeof encodings / sizeof *encodings; e++) {
		o = options_of(encodings[e], (struct shape){ 12, 2, 8, .tied = false });
		compare(&o, "none", 1, LENGTH, positions, fmax(TOLERANCE, 1e-8));
	}
}

/* ---- What a forward pass tells. ---- */

static int likeliest(const real *logits)
{
	int best = 0;
	for (int v = 0; v < CASE_V; v++)
		if (logits[v] > logits[best])
			best = v;
	return best;
}

static void outcome_is_what_the_logits_say(void **state)
{
	(void)state;
	enum { B = 3, T = 70, N = B * T };
	struct model_case c;
	struct model_options o = options_of("rope", (struct shape){ 12, 2, 8, .tied = false });
	case_open(&c, &o, "none", B, T, NULL);
	real *logits = case_logits(&c);
	for (int n = 0; n < N; n += 5) /* random weights seldom guess right */
		c.target[n] = likeliest(logits + n * CASE_V);
	struct outcome found = transformer_forward(c.transformer, c.token, c.target, logits);
	int64_t scored = 0, correct = 0;
	double sum = 0;
	for (int n = 0; n < N; n++) {
		int best = likeliest(logits + n * CASE_V);
		assert_int_equal(found.best[n], c.target[n] < 0 ? -1 : best);
		assert_true((found.nll[n] == 0) == (c.target[n] < 0));
		scored += c.target[n] >= 0;
		correct += c.target[n] == best;
		sum += found.nll[n];
	}
	assert_true(scored > N / 2 && scored < N && correct >= N / 5 && correct < scored);
	assert_int_equal(found.scored, scored);
	assert_int_equal(found.correct, correct);
	assert_true(found.nll_sum == sum);
	free(logits);
	case_close(&c);
}

/* Tokens 3, 7 and 20 share a row of the head with a single value, so that their logits are equal to the bit in whatever
 * order they are summed; a large one, so that they are often the greatest. */
static void ties_go_to_the_lowest_id(void **state)
{
	(void)state;
	enum { B = 2, T = 70, N = B * T, C = 12 };
	struct model_case c;
	struct model_options o = options_of("nope", (struct shape){ C, 2, 8, .tied = false });
	case_open(&c, &o, "none", B, T, NULL);
	real *head = c.model.value + c.model.layout.head;
	for (int i = 0; i < C; i++)
		head[3 * C + i] = head[7 * C + i] = head[20 * C + i] = i == 5 ? 10 : 0;
	for (int n = 0; n < N; n++)
		c.target[n] = n % 2 ? 3 : 20;
	struct outcome found = transformer_forward(c.transformer, c.token, c.target, NULL);
	int64_t tied = 0, correct = 0;
	for (int n = 0; n < N; n++) {
		assert_true(found.best[n] != 7 && found.best[n] != 20);
		tied += found.best[n] == 3;
		correct += found.best[n] == 3 && c.target[n] == 3;
	}
	assert_true(tied > N / 5 && tied < N && correct < tied);
	assert_int_equal(found.correct, correct);
	memset(head, 0, sizeof *head * CASE_V * C);
	found = transformer_forward(c.transformer, c.token, c.target, NULL);
	for (int n = 0; n < N; n++) {
		assert_int_equal(found.best[n], 0);
		assert_close(found.nll[n], log(CASE_V), 1e-6);
	}
	case_close(&c);
}

/* Keeping gradients or running again changes no bit of what was found. Asking for all logits does not but for rounding:
 * a row's product may differ in its last bit with the rows that stand beside it. */
static void asking_for_more_changes_nothing(void **state)
{
	(void)state;
	enum { B = 3, T = 70, N = B * T };
	struct model_case c;
	struct model_options o = options_of("t5", (struct shape){ 30, 3, 24, .tied = false });
	case_open(&c, &o, "none", B, T, NULL);
	struct transformer_request q = { .model = &c.model, .B = B, .T = T };
	struct transformer *lean;
	assert_ok(transformer_open(&q, &lean));
	double *nll = TAKE(double, N);
	int32_t *best = TAKE(int32_t, N);
	real *logits = TAKE(real, N * CASE_V);
	for (int i = 0; i < 6; i++) {
		bool same = i != 3; /* three times without logits, then three with them */
		struct outcome found =
			transformer_forward(i & 1 ? lean : c.transformer, c.token, c.target, i < 3 ? NULL : logits);
		assert_true(found.scored > 0);
		for (int n = 0; n < N && i > 0; n++) {
			assert_int_equal(found.best[n], best[n]);
			assert_close(found.nll[n], nll[n], same ? 0 : TOLERANCE / 100);
		}
		memcpy(nll, found.nll, sizeof *nll * N);
		memcpy(best, found.best, sizeof *best * N);
	}
	transformer_close(lean);
	free(nll);
	free(best);
	free(logits);
	case_close(&c);
}

static void nothing_scored(void **state)
{
	(void)state;
	enum { B = 2, T = 9, N = B * T };
	struct model_case c;
	struct model_options o = options_of("alibi", (struct shape){ 12, 2, 8, .tied = true });
	case_open(&c, &o, "none", B, T, NULL);
	real *before = case_logits(&c);
	for (int n = 0; n < N; n++)
		c.target[n] = -1;
	struct outcome found = transformer_forward(c.transformer, c.token, c.target, NULL);
	assert_true(found.scored == 0 && found.correct == 0 && found.nll_sum == 0);
	for (int n = 0; n < N; n++)
		assert_true(found.nll[n] == 0 && found.best[n] == -1);
	real *after = case_logits(&c);
	assert_memory_equal(after, before, sizeof *after * N * CASE_V);
	free(before);
	free(after);
	case_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_encoding_at_every_length),
		cmocka_unit_test(every_scaling_at_every_length),
		cmocka_unit_test(every_scaling_of_a_part),
		cmocka_unit_test(scalable_softmax),
		cmocka_unit_test(every_encoding_in_a_window),
		cmocka_unit_test(combinations),
		cmocka_unit_test(every_encoding_in_every_shape),
		cmocka_unit_test(every_scaling_in_every_shape),
		cmocka_unit_test(strange_positions),
		cmocka_unit_test(strange_positions_under_scaling),
		cmocka_unit_test(far_from_the_origin),
		cmocka_unit_test(outcome_is_what_the_logits_say),
		cmocka_unit_test(ties_go_to_the_lowest_id),
		cmocka_unit_test(asking_for_more_changes_nothing),
		cmocka_unit_test(nothing_scored),
	};
	/* Most of the time is the oracle's, on one thread; others would only spin. */
	struct err e = blas_start(1);
	if (e.code) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests_name("model reference", tests, NULL, NULL);
}
