#include "tests/sequence_case.h"

#include <limits.h>

/* The task needle: one fact at any depth, one question at the end. */

enum { BOS = 0, KEY = 1, VALUE = 33, FILLER = 65, ECHO = 97, VOCABULARY = 98 };
enum { NEEDLE_GROUP, ECHO_GROUP };

static bool in_range(int32_t token, int32_t low, int32_t high)
{
	return token >= low && token < high;
}

static void draw(const struct method *m, enum stream stream, uint64_t index, int length, struct sequence *out)
{
	task_of(m)->make(m, 64, 101, stream, index, length, out);
}

/* Where the fact's key stands; all else is as it should be for n values. */
static int read_sequence(const struct sequence *s, int n, int length)
{
	int fact = 1, question = length - n;
	assert_int_equal(s->token[0], BOS);
	while (fact < question && !in_range(s->token[fact], KEY, VALUE))
		fact++;
	assert_true(fact + n < question);
	bool seen[VOCABULARY] = { false };
	for (int i = 1; i <= n; i++) {
		int32_t value = s->token[fact + i];
		assert_true(in_range(value, VALUE, FILLER) && !seen[value]);
		seen[value] = true;
	}
	assert_memory_equal(s->token + fact, s->token + question, (size_t)n * sizeof *s->token);
	for (int t = 1; t < question; t++)
		assert_true((t >= fact && t <= fact + n) || s->token[t] >= FILLER);
	return fact;
}

static void assert_scored(const struct sequence *s, int n, int fact, int length)
{
	int question = length - n;
	for (int t = 0; t < length; t++) {
		assert_true(s->position[t] == t);
		if (t >= question) {
			assert_int_equal(s->target[t], s->token[fact + 1 + t - question]);
			assert_int_equal(s->distance[t], length - n - 1 - fact);
			assert_int_equal(s->token[t - s->distance[t]], s->target[t]);
			assert_int_equal(s->group[t], NEEDLE_GROUP);
		} else if (s->token[t] == ECHO) {
			assert_int_equal(s->target[t], s->token[t - 1]);
			assert_int_equal(s->distance[t], 1);
			assert_int_equal(s->group[t], ECHO_GROUP);
		} else {
			assert_true(s->target[t] == -1 && s->distance[t] == 0);
		}
	}
}

static void test_sequences(void **state)
{
	(void)state;
	static const struct {
		const char *label;
		int values, length;
	} row[] = { { "needle", 4, 10 }, { "needle", 4, 11 }, { "needle", 4, 64 }, { "needle", 4, 2048 },
		    { "needle(values=1)", 1, 4 }, { "needle(values=1)", 1, 65 }, { "needle(values=16)", 16, 34 },
		    { "needle(values=16)", 16, 200 } };
	for (int i = 0; i < 8; i++) {
		struct method m = task_labelled(row[i].label);
		struct sequence s = sequence_new(row[i].length, 0x5a);
		for (uint64_t k = 0; k < 300; k++) {
			draw(&m, k % 2 ? STREAM_TRAIN : STREAM_REPORT, k, row[i].length, &s);
			int fact = read_sequence(&s, row[i].values, row[i].length);
			assert_scored(&s, row[i].values, fact, row[i].length);
		}
		sequence_free(&s);
	}
}

/* Every depth as often, from right behind BOS to right before the question. */
static void test_law(void **state)
{
	(void)state;
	enum { SAMPLES = 20000, LENGTH = 40, DEPTHS = 31 };
	static int depth[LENGTH], key[32], pair[32 * 31], filler[32], echoes[2];
	struct method m = method_default(task_named("needle"));
	struct sequence s = sequence_new(LENGTH, 0x5a);
	for (uint64_t k = 0; k < SAMPLES; k++) {
		draw(&m, k % 2 ? STREAM_TRAIN : STREAM_REPORT, k, LENGTH, &s);
		int fact = read_sequence(&s, 4, LENGTH);
		int a = s.token[fact + 1] - VALUE, b = s.token[fact + 4] - VALUE;
		depth[fact]++;
		key[s.token[fact] - KEY]++;
		pair[a * 31 + b - (b > a)]++;
		for (int t = 1; t < LENGTH - 4; t++) {
			if (t >= fact && t <= fact + 4)
				continue;
			echoes[s.token[t] == ECHO]++;
			if (s.token[t] != ECHO)
				filler[s.token[t] - FILLER]++;
		}
	}
	assert_int_equal(depth[0], 0);
	assert_drawn(depth + 1, NULL, DEPTHS, "depth");
	assert_drawn(key, NULL, 32, "key");
	assert_drawn(pair, NULL, 32 * 31, "first and last value");
	assert_drawn(filler, NULL, 32, "fillers");
	assert_drawn(echoes, (const double[]){ 0.75, 0.25 }, 2, "echoes");
	sequence_free(&s);
}

static void test_solve(void **state)
{
	(void)state;
	static const int length[] = { 34, 64, 300 };
	int32_t target[300];
	for (int n = 1; n <= 16; n++) {
		char label[32];
		snprintf(label, sizeof label, "needle(values=%d)", n);
		struct method m = task_labelled(label);
		for (int i = 0; i < 3; i++) {
			struct sequence s = sequence_new(length[i], 0x5a);
			for (uint64_t k = 0; k < 200; k++) {
				draw(&m, STREAM_TUNE, k, length[i], &s);
				task_of(&m)->solve(&m, s.token, length[i], target);
				assert_memory_equal(target, s.target, (size_t)length[i] * sizeof *target);
			}
			sequence_free(&s);
		}
	}
}

static void test_solve_by_hand(void **state)
{
	(void)state;
	static const int32_t token[] = { 0, 97, 70, 5, 40, 50, 97, 97, 80, 5, 40 };
	static const int32_t damaged[] = { 0, 97, 70, 5, 40, 50, 97, 97, 80, 9, 64 };
	static const int32_t want[] = { -1, 0, -1, -1, -1, -1, 50, 97, -1, 40, 50 };
	int32_t target[11];
	struct method m = task_labelled("needle(values=2)");
	task_of(&m)->solve(&m, token, 11, target);
	assert_memory_equal(target, want, sizeof want);
	/* From the fact alone, whatever the question repeats. */
	task_of(&m)->solve(&m, damaged, 11, target);
	assert_memory_equal(target, want, sizeof want);
}

static void test_filler(void **state)
{
	(void)state;
	struct method m = method_default(task_named("needle"));
	struct sequence s = sequence_new(64, 0x5a);
	for (uint64_t k = 0; k < 200; k++) {
		draw(&m, STREAM_REPORT, k, 64, &s);
		int fact = read_sequence(&s, 4, 64);
		for (int t = 1; t < 64; t++) {
			bool inside = (t > fact && t <= fact + 4) || t > 60;
			assert_int_equal(task_of(&m)->may_insert(&m, &s, 64, t), !inside && s.token[t] != ECHO);
		}
		struct rng r = rng_at(1, STREAM_TUNE, k);
		assert_true(in_range(task_of(&m)->filler(&m, &r), FILLER, ECHO));
	}
	sequence_free(&s);
}

static void assert_reader(int train_length, const double *want)
{
	static int32_t token[] = { 0, 66, 5, 40, 41, 42, 67, 97, 5, 40, 41 };
	static int32_t target[] = { -1, -1, -1, -1, -1, -1, -1, 67, 40, 41, 42 };
	uint8_t group[11] = { [7] = ECHO_GROUP };
	double p[11];
	struct method m = task_labelled("needle(values=3)");
	struct sequence s = { .token = token, .target = target, .group = group };
	const struct task_reference *r = reference_named(&m, "the ideal reader of the last train_length tokens");
	r->probability(&m, &s, train_length, 11, p);
	for (int t = 0; t < 11; t++)
		assert_close(p[t], t >= 8 ? want[t - 8] : 0, 1e-15);
	reference_named(&m, "guessing among the stated values")->probability(&m, &s, train_length, 11, p);
	for (int t = 0; t < 11; t++)
		assert_true(p[t] == (t >= 8 ? 1.0 / 3 : 0));
}

static void test_reader_by_hand(void **state)
{
	(void)state;
	assert_reader(6, (const double[]){ 1, 1, 1 });
	/* 41 and 42 are in sight; then 42 and the 40 answered; then the two answered. */
	assert_reader(5, (const double[]){ 1 / 30.0, 1 / 30.0, 1 / 30.0 });
	assert_reader(3, (const double[]){ 1 / 32.0, 1 / 31.0, 1 / 30.0 });
	assert_reader(1, (const double[]){ 1 / 32.0, 1 / 31.0, 1 / 31.0 });
}

static void test_check(void **state)
{
	(void)state;
	struct method m = method_default(task_named("needle")), most = task_labelled("needle(values=16)"), bad;
	assert_err(task_of(&m)->check(&m, 64, 9), ERR_USAGE, "need 10");
	assert_err(task_of(&m)->check(&m, 64, INT_MIN), ERR_USAGE, "--needle-values");
	assert_err(task_of(&most)->check(&most, 64, 33), ERR_USAGE, "need 34");
	assert_ok(task_of(&m)->check(&m, 1, 10));
	assert_ok(task_of(&m)->check(&m, 1, INT_MAX));
	assert_err(method_parse("task", task_at, "needle(values=0)", &bad), ERR_USAGE, "values");
	assert_err(method_parse("task", task_at, "needle(values=17)", &bad), ERR_USAGE, "values");
	assert_true(task_of(&m)->floor(&m, 64, NEEDLE_GROUP) == 1 && task_of(&m)->floor(&m, 64, ECHO_GROUP) == 1);
	assert_int_equal(task_of(&m)->vocabulary(&m), VOCABULARY);
	assert_string_equal(task_of(&m)->groups[NEEDLE_GROUP], "needle");
	assert_string_equal(task_of(&m)->groups[ECHO_GROUP], "echo");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequences), cmocka_unit_test(test_law),
		cmocka_unit_test(test_solve),	  cmocka_unit_test(test_solve_by_hand),
		cmocka_unit_test(test_filler),	  cmocka_unit_test(test_reader_by_hand),
		cmocka_unit_test(test_check),
	};
	return cmocka_run_group_tests_name("data needle", tests, NULL, NULL);
}
