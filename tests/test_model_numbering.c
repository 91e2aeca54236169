#include "tests/model_case.h"
#include "tests/sequence_case.h"

#include "model/base/blas.h"
#include "model/position/rope.h"
#include "model/positions.h"

#include <jansson.h>

/* Positions that are drawn, and a workspace that changes its length. */

#define MOST 64

static struct numbering numbered(const struct model_options *o, bool training)
{
	return (struct numbering){ .options = o, .training = training, .task = "recall" };
}

static struct model_options with_positions(int64_t positions)
{
	struct model_options o = small_options("rope");
	o.positions = positions;
	o.positions_most = MOST;
	return o;
}

static void test_randomized_is_sorted_and_distinct(void **state)
{
	(void)state;
	struct model_options o = with_positions(POSITIONS_RANDOMIZED);
	struct numbering n = numbered(&o, false);
	double position[MOST];
	for (int T = 1; T <= MOST; T += 7)
		for (uint64_t k = 0; k < 50; k++) {
			positions_draw(&n, 3, k, 1, T, position);
			assert_true(position[0] >= 0 && position[T - 1] < MOST);
			for (int t = 0; t < T; t++)
				assert_true(position[t] == floor(position[t]) && (!t || position[t] > position[t - 1]));
		}
}

/* Every pair out of 6 positions is as likely. */
static void test_randomized_is_uniform(void **state)
{
	(void)state;
	struct model_options o = with_positions(POSITIONS_RANDOMIZED);
	struct numbering n = numbered(&o, false);
	int count[15] = { 0 };
	o.positions_most = 6;
	for (uint64_t k = 0; k < 3000; k++) {
		double p[2];
		positions_draw(&n, 4, k, 1, 2, p);
		int low = (int)p[0], high = (int)p[1];
		count[high * (high - 1) / 2 + low]++;
	}
	assert_drawn(count, NULL, 15, "pairs of positions");
}

/* In training one draw a batch; in evaluation one a sequence, of (seed, length, number) alone. */
static void test_draws(void **state)
{
	(void)state;
	struct model_options o = with_positions(POSITIONS_RANDOMIZED), far = o;
	struct numbering training = numbered(&o, true), evaluated = numbered(&o, false), other = numbered(&far, false);
	double a[3 * 8], b[3 * 8], c[8];
	far.encoding = small_options("t5").encoding;
	far.train_length = 8;
	assert_true(!positions_each(&training) && positions_each(&evaluated));
	assert_true(positions_move(&training) && positions_move(&evaluated));
	positions_draw(&evaluated, 1, 5, 3, 8, a);
	positions_draw(&other, 1, 5, 3, 8, b);
	assert_memory_equal(a, b, sizeof a);
	for (int i = 0; i < 3; i++) {
		positions_draw(&evaluated, 1, 5 + (uint64_t)i, 1, 8, c);
		assert_memory_equal(a + (size_t)i * 8, c, sizeof c);
	}
	assert_memory_not_equal(a, a + 8, sizeof c);
	positions_draw(&evaluated, 2, 5, 3, 8, b);
	assert_memory_not_equal(a, b, sizeof a);
	positions_draw(&training, 1, 5, 3, 8, c);
	assert_memory_not_equal(a, c, sizeof c);
	double longer[9];
	positions_draw(&evaluated, 1, 5, 1, 9, longer);
	assert_memory_not_equal(a, longer, sizeof c);
}

/* A start of its own for each training sequence, any that fits; none in evaluation. */
static void test_offset(void **state)
{
	(void)state;
	struct model_options o = with_positions(POSITIONS_OFFSET);
	struct numbering training = numbered(&o, true), evaluated = numbered(&o, false);
	int count[5] = { 0 };
	assert_true(positions_each(&training) && !positions_move(&evaluated) && !positions_each(&evaluated));
	for (uint64_t k = 0; k < 1000; k += 2) {
		double p[2][MOST - 4];
		positions_draw(&training, 1, k, 2, MOST - 4, p[0]);
		for (int b = 0; b < 2; b++) {
			for (int t = 0; t < MOST - 4; t++)
				assert_true(p[b][t] == p[b][0] + t);
			assert_true(p[b][0] >= 0 && p[b][0] <= 4);
			count[(int)p[b][0]]++;
		}
	}
	assert_drawn(count, NULL, 5, "offsets");
}

static void test_refused(void **state)
{
	(void)state;
	struct model_options o = with_positions(POSITIONS_RANDOMIZED);
	struct numbering n = numbered(&o, true);
	assert_ok(positions_check(&n, MOST));
	assert_err(positions_check(&n, MOST + 1), ERR_USAGE, "positions_most");
	o.encoding = small_options("learned").encoding;
	assert_err(positions_check(&n, 8), ERR_USAGE, "the learned table has 16 rows");
	o.positions_most = 16;
	assert_ok(positions_check(&n, 8));
	o.positions = POSITIONS_TASK;
	assert_err(positions_check(&n, 8), ERR_USAGE, "recall supplies none");
	n.placed = true;
	assert_ok(positions_check(&n, 8));
	for (int i = 0; position_at(i); i++) {
		struct method method = method_default(position_at(i));
		o.encoding = method;
		if (!position_of(&method)->any_order)
			assert_err(positions_check(&n, 8), ERR_USAGE, "does not take");
	}
	o.positions = POSITIONS_CONSECUTIVE;
	assert_err(positions_check(&n, 8), ERR_USAGE, "--positions=task");
}

static void fill_from(const json_t *rows, int columns, real *to)
{
	for (size_t t = 0; t < json_array_size(rows); t++)
		for (int d = 0; d < columns; d++)
			to[t * (size_t)columns + (size_t)d] = (real)json_at(json_array_get(rows, t), (size_t)d);
}

/* The authors' code at the positions it makes of its draws: rope's pairs and sinusoidal's rows. */
static void golden_case(const json_t *settings, const json_t *expected)
{
	int T = (int)json_number(settings, "T"), D = (int)json_number(settings, "d");
	struct model_options o = rope_options(10000, D, 16);
	real x[MOST * 16], wanted[MOST * 16], cosine[MOST * 8], sine[MOST * 8], rotated[MOST * 16];
	double inv_freq[8], position[MOST];
	assert_true(T <= MOST && D <= 16);
	fill_from(json_object_get(settings, "x"), D, x);
	fill_from(json_object_get(expected, "x_rotated_interleaved"), D, wanted);
	rope_frequencies(10000, D, inv_freq);
	for (int t = 0; t < T; t++) {
		position[t] = json_at(json_object_get(expected, "positions"), (size_t)t);
		assert_true(!t || position[t] > position[t - 1]);
		for (int m = 0; m < D / 2; m++) {
			cosine[t * D / 2 + m] = (real)cos(position[t] * inv_freq[m]);
			sine[t * D / 2 + m] = (real)sin(position[t] * inv_freq[m]);
		}
	}
	struct rotation r = { .rows = T, .D = D, .F = D / 2, .positions = position, .inv_freq = inv_freq,
			      .attention_factor = 1, .cosine = cosine, .sine = sine };
	position_of(&o.encoding)->rotate(&r, x, D, rotated);
	for (int i = 0; i < T * D; i++)
		assert_close(rotated[i], wanted[i], sizeof(real) == 4 ? 1e-5 : 1e-12);

	struct model_options absolute = sized_options("sinusoidal(scale=1)", D, 1);
	struct place place = place_of(&absolute);
	place.T = T;
	place.positions = position;
	place.position->embed(&place, (struct place_parameters){ 0 }, 0, T, rotated);
	fill_from(json_object_get(expected, "sinusoid_concatenated"), D, wanted);
	for (int t = 0; t < T; t++)
		for (int m = 0; m < D / 2; m++) {
			assert_close(rotated[t * D + 2 * m], wanted[t * D + m], sizeof(real) == 4 ? 1e-5 : 1e-12);
			assert_close(rotated[t * D + 2 * m + 1], wanted[t * D + D / 2 + m],
				     sizeof(real) == 4 ? 1e-5 : 1e-12);
		}
}

static void test_golden(void **state)
{
	(void)state;
	json_t *root = golden_json("randomized_positions");
	size_t cases = json_array_size(json_object_get(root, "cases"));
	assert_true(cases > 1);
	for (size_t i = 0; i < cases; i++)
		golden_case(golden_part(root, i, "settings"), golden_part(root, i, "expected"));
	json_decref(root);
}

/* A workspace that was longer and shorter before gives the bits of a new one. */
static void resized(const struct method *encoding, const char *scaling, bool each)
{
	enum { B = 3, LEAST = 9, LONGEST = 80 };
	static const int length[] = { 40, LEAST, LONGEST, 33, 64 };
	struct model_options o = model_case_options(encoding);
	struct method method = scaling_named(scaling);
	struct model m;
	struct transformer *t, *fresh;
	assert_ok(model_open(&o, 23, &m));
	layout_initialise(&m.layout, 3, m.value);
	struct transformer_request request = { .model = &m, .B = B, .T = LONGEST, .T_least = LEAST, .each = each,
					       .scaling = &method, .gradients = true };
	assert_ok(transformer_open(&request, &t));
	real *mine = TAKE(real, m.layout.size), *theirs = TAKE(real, m.layout.size);
	int32_t token[B * LONGEST], target[B * LONGEST];
	double position[B * LONGEST];
	for (int i = 0; i < 5; i++) {
		int T = length[i];
		fill_below((uint64_t)i, 23, token, (size_t)(B * T));
		fill_below((uint64_t)i + 9, 23, target, (size_t)(B * T));
		for (int n = 0; n < B * T; n++)
			position[n] = n % T + (each ? n / T : 0);
		struct transformer_request alone = { .model = &m, .B = B, .T = T, .each = each, .positions = position,
						     .scaling = &method, .gradients = true };
		assert_ok(transformer_resize(t, T, position));
		assert_ok(transformer_open(&alone, &fresh));
		struct outcome a = transformer_forward(t, token, target, NULL);
		struct outcome b = transformer_forward(fresh, token, target, NULL);
		if (a.nll_sum != b.nll_sum || a.scored != B * T)
			fail_msg("%s, %d tokens: %.17g, not %.17g", encoding->entry->name, T, a.nll_sum, b.nll_sum);
		transformer_backward(t, mine);
		transformer_backward(fresh, theirs);
		assert_memory_equal(mine, theirs, m.layout.size * sizeof(real));
		transformer_close(fresh);
	}
	free(mine);
	free(theirs);
	transformer_close(t);
	model_close(&m);
}

static void test_resized(void **state)
{
	(void)state;
	struct method encoding[ENCODINGS];
	int count = all_encodings(encoding);
	for (int i = 0; i < count; i++)
		resized(&encoding[i], "none", i % 2);
	struct method rope = small_options("rope").encoding;
	resized(&rope, "none", false);
	resized(&rope, "none", true);
	resized(&rope, "yarn", false);
	resized(&rope, "window", true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_randomized_is_sorted_and_distinct),
		cmocka_unit_test(test_randomized_is_uniform),
		cmocka_unit_test(test_draws),
		cmocka_unit_test(test_offset),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_resized),
	};
	if (blas_start(2).code)
		return 1;
	return cmocka_run_group_tests_name("model numbering", tests, NULL, NULL);
}
