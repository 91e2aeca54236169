#include "model/base/threads.h"
#include "tests/recall_case.h"

#include <limits.h>
#include <math.h>

/* ---- what a sequence holds ---- */

static void test_counts(void **state)
{
	(void)state;
	static const struct {
		const char *grow;
		int pairs, train_length, length, queries, echoes, fillers;
	} row[] = {
		{ "all", 8, 64, 64, 16, 11, 20 },       { "all", 8, 64, 128, 38, 27, 46 },
		{ "all", 8, 64, 2048, 710, 507, 814 },  { "all", 8, 64, 63, 16, 11, 19 },
		{ "all", 8, 64, 65, 16, 12, 20 },       { "all", 8, 64, 1001, 344, 246, 394 },
		{ "all", 8, 64, 20, 1, 0, 2 },          { "all", 8, 64, 21, 1, 1, 2 },
		{ "all", 1, 64, 64, 21, 15, 25 },       { "all", 32, 64, 128, 22, 15, 26 },
		{ "filler", 8, 64, 64, 16, 11, 20 },    { "filler", 8, 64, 128, 16, 11, 84 },
		{ "filler", 8, 64, 2048, 16, 11, 2004 }, { "filler", 8, 64, 44, 16, 11, 0 },
		{ "filler", 8, 100, 3200, 29, 20, 3134 },
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct method m = recall(row[i].pairs, row[i].grow);
		struct sequence s = sequence_new(row[i].length, 0x5a);
		make(&m, row[i].train_length, 101, i, row[i].length, &s);
		int count[ITEMS], scored[2] = { 0 };
		count_kinds(&s, row[i].length, count);
		for (int t = 0; t < row[i].length; t++)
			if (s.target[t] >= 0)
				scored[s.group[t]]++;
		assert_int_equal(count[PAIR], row[i].pairs);
		assert_int_equal(count[QUERY], row[i].queries);
		assert_int_equal(count[ECHO_ITEM], row[i].echoes);
		assert_int_equal(count[FILLER_ITEM], row[i].fillers);
		assert_int_equal(scored[RECALL_GROUP], row[i].queries);
		assert_int_equal(scored[ECHO_GROUP], row[i].echoes);
		sequence_free(&s);
	}
}

/* Place of the value stated with a key, looked for among all tokens; -1 if it is stated more than once or never. */
static int place_of_value(const struct sequence *s, int length, int32_t wanted)
{
	int place = -1;
	for (int t = 1; t + 1 < length; t++) {
		if (s->token[t] != wanted || !value(s->token[t + 1]))
			continue;
		if (place >= 0)
			return -1;
		place = t + 1;
	}
	return place;
}

static void assert_not_scored(const struct sequence *s, int t)
{
	assert_int_equal(s->target[t], -1);
	assert_int_equal(s->distance[t], 0);
}

static void assert_key(const struct sequence *s, int length, int t)
{
	int place = place_of_value(s, length, s->token[t]);
	assert_true(place > 0 && place <= t + 1);
	if (place == t + 1) {
		assert_not_scored(s, t);
		return;
	}
	assert_int_equal(s->target[t], s->token[place]);
	assert_int_equal(s->group[t], RECALL_GROUP);
	assert_int_equal(s->distance[t], t - place);
	assert_true(s->distance[t] >= 1);
}

static void assert_invariants(const struct sequence *s, int length)
{
	assert_int_equal(s->token[0], BOS);
	assert_not_scored(s, 0);
	assert_true(key(s->token[1]) && value(s->token[2]));
	for (int t = 0; t < length; t++)
		assert_true(s->position[t] == t);
	for (int t = 1; t < length; t++) {
		if (key(s->token[t])) {
			assert_key(s, length, t);
		} else if (s->token[t] == ECHO) {
			assert_int_equal(s->target[t], s->token[t - 1]);
			assert_int_equal(s->group[t], ECHO_GROUP);
			assert_int_equal(s->distance[t], 1);
		} else {
			assert_true(value(s->token[t]) ? key(s->token[t - 1]) : filler(s->token[t]));
			assert_not_scored(s, t);
		}
	}
}

static void test_invariants(void **state)
{
	(void)state;
	static const struct {
		const char *grow;
		int pairs, length, sequences;
	} row[] = {
		{ "all", 8, 64, 4000 },	  { "all", 8, 257, 100 }, { "all", 1, 33, 500 },  { "all", 32, 128, 300 },
		{ "filler", 8, 64, 500 }, { "filler", 8, 44, 500 }, { "filler", 3, 512, 50 }, { "all", 8, 2048, 4 },
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct method m = recall(row[i].pairs, row[i].grow);
		struct sequence s = sequence_new(row[i].length, 0x5a);
		for (int k = 0; k < row[i].sequences; k++) {
			make(&m, 64, 101 + i, (uint64_t)k, row[i].length, &s);
			assert_invariants(&s, row[i].length);
		}
		sequence_free(&s);
	}
}

static void test_echo_of_echo(void **state)
{
	(void)state;
	struct method m = recall(8, "all");
	struct sequence s = sequence_new(64, 0x5a);
	int seen = 0;
	for (uint64_t k = 0; k < 100; k++) {
		make(&m, 64, 7, k, 64, &s);
		for (int t = 1; t < 64; t++) {
			if (s.token[t] != ECHO || s.token[t - 1] != ECHO)
				continue;
			assert_int_equal(s.target[t], ECHO);
			seen++;
		}
	}
	assert_true(seen > 0);
	sequence_free(&s);
}

/* ---- solve ---- */

static void assert_solved(const struct method *m, int train_length, uint64_t seed, int sequences, int length)
{
	struct sequence s = sequence_new(length, 0x5a);
	int32_t *target = malloc((size_t)length * sizeof *target);
	assert_non_null(target);
	for (int k = 0; k < sequences; k++) {
		make(m, train_length, seed, (uint64_t)k, length, &s);
		task_of(m)->solve(m, s.token, length, target);
		assert_memory_equal(target, s.target, (size_t)length * sizeof *target);
	}
	free(target);
	sequence_free(&s);
}

static void test_solve(void **state)
{
	(void)state;
	static const int length[] = { 69, 127, 128, 300, 2048 };
	for (int pairs = 1; pairs <= 32; pairs++) {
		struct method all = recall(pairs, "all"), grown = recall(pairs, "filler");
		assert_solved(&all, 64, 101, 20, 2 * pairs + 4);
		for (int i = 0; i < 5; i++) {
			assert_solved(&all, 64, 101 + (uint64_t)i, 5, length[i]);
			assert_solved(&grown, 69, 201 + (uint64_t)i, 5, length[i]);
		}
	}
	struct method m = recall(8, "all");
	for (uint64_t seed = 0; seed < 50; seed++)
		assert_solved(&m, 64, seed, 40, 64);
}

static void test_solve_by_hand(void **state)
{
	(void)state;
	static const int32_t token[] = { 0, 5, 40, 98, 98, 5, 66, 9, 33, 61, 5, 98, 33 };
	static const int32_t want[] = { -1, -1, -1, 40, 98, 40, -1, -1, -1, -1, 40, 5, 61 };
	int32_t target[13];
	struct method m = recall(8, "all");
	task_of(&m)->solve(&m, token, 13, target);
	assert_memory_equal(target, want, sizeof want);
}

/* ---- a pure function of its arguments ---- */

static void test_same_arguments(void **state)
{
	(void)state;
	struct method all = recall(8, "all"), grown = recall(8, "filler");
	struct sequence a = sequence_new(200, 0x5a), b = sequence_new(200, 0xa5);
	for (uint64_t k = 0; k < 100; k++) {
		make(&all, 64, 101, k, 200, &a);
		make(&all, 64, 101, k, 200, &b);
		assert_true(same_sequence(&a, &b, 200));
		make(&grown, 200, 101, k, 200, &b);
		assert_true(same_sequence(&a, &b, 200));
		make(&grown, 199, 101, k, 200, &b);
		assert_false(same_sequence(&a, &b, 200));
	}
	sequence_free(&a);
	sequence_free(&b);
}

enum { PARALLEL = 200, PARALLEL_LENGTH = 64 };
struct parallel {
	struct method method;
	struct sequence s[PARALLEL];
};

static void make_one(int index, int thread, void *data)
{
	(void)thread;
	struct parallel *p = data;
	task_of(&p->method)->make(&p->method, 64, 101, STREAM_REPORT, (uint64_t)index, PARALLEL_LENGTH, &p->s[index]);
}

static void test_threads(void **state)
{
	(void)state;
	struct parallel *p = malloc(sizeof *p);
	assert_non_null(p);
	p->method = recall(8, "all");
	for (int i = 0; i < PARALLEL; i++)
		p->s[i] = sequence_new(PARALLEL_LENGTH, 0x5a);
	threads_start(2);
	threads_each(PARALLEL, make_one, p);
	struct sequence alone = sequence_new(PARALLEL_LENGTH, 0xa5);
	for (int i = PARALLEL - 1; i >= 0; i--) {
		make(&p->method, 64, 101, (uint64_t)i, PARALLEL_LENGTH, &alone);
		assert_true(same_sequence(&p->s[i], &alone, PARALLEL_LENGTH));
		sequence_free(&p->s[i]);
	}
	sequence_free(&alone);
	free(p);
}

static int compare_rows(const void *a, const void *b)
{
	return memcmp(a, b, 64);
}

/* Three streams at one seed, and one of them at two more seeds and at indices past 32 bits. */
static void test_no_sequence_twice(void **state)
{
	(void)state;
	enum { EACH = 10000, RUNS = 6 };
	static const struct {
		enum stream stream;
		uint64_t seed, first;
	} run[RUNS] = { { STREAM_TRAIN, 1, 0 }, { STREAM_TUNE, 1, 0 }, { STREAM_REPORT, 1, 0 }, { STREAM_TRAIN, 2, 0 },
			{ STREAM_TRAIN, 1ull << 32 | 1, 0 }, { STREAM_TRAIN, 1, 1ull << 32 } };
	uint8_t (*row)[64] = malloc((size_t)EACH * RUNS * sizeof *row);
	assert_non_null(row);
	struct method m = recall(8, "all");
	struct sequence s = sequence_new(64, 0x5a);
	for (size_t i = 0; i < (size_t)EACH * RUNS; i++) {
		int r = (int)(i / EACH);
		task_of(&m)->make(&m, 64, run[r].seed, run[r].stream, run[r].first + i % EACH, 64, &s);
		for (int t = 0; t < 64; t++)
			row[i][t] = (uint8_t)s.token[t];
	}
	qsort(row, (size_t)EACH * RUNS, sizeof *row, compare_rows);
	for (size_t i = 1; i < (size_t)EACH * RUNS; i++)
		assert_true(compare_rows(row[i - 1], row[i]));
	free(row);
	sequence_free(&s);
}

/* ---- lengths and options ---- */

static void assert_least(const struct method *m, int train_length, int length, const char *least)
{
	struct err e = task_of(m)->check(m, train_length, length);
	assert_int_equal(e.code, ERR_USAGE);
	if (!strstr(e.text, least))
		fail_msg("\"%s\" lacks %s", e.text, least);
	assert_true(e.hint[0]);
}

static void assert_taken(const struct method *m, int train_length, int length)
{
	assert_int_equal(task_of(m)->check(m, train_length, length).code, ERR_NONE);
}

static void test_check(void **state)
{
	(void)state;
	struct method m = recall(8, "all"), one = recall(1, "all"), most = recall(32, "all");
	assert_least(&m, 64, 19, "at least 20");
	assert_least(&m, 64, 1, "at least 20");
	assert_least(&m, 64, INT_MIN, "at least 20");
	assert_taken(&m, 64, 20);
	assert_taken(&m, 10, 64); /* the counts do not depend on it */
	assert_taken(&m, 64, INT_MAX);
	assert_least(&one, 64, 5, "at least 6");
	assert_taken(&one, 64, 6);
	assert_least(&most, 64, 67, "at least 68");
	assert_taken(&most, 64, 68);
}

static void test_check_filler(void **state)
{
	(void)state;
	struct method m = recall(8, "filler");
	assert_least(&m, 64, 43, "at least 44");
	assert_taken(&m, 64, 44);
	assert_taken(&m, 64, INT_MAX);
	assert_least(&m, 19, 64, "train_length 19");
	assert_least(&m, 19, 64, "at least 20");
	assert_taken(&m, 20, 64);
	assert_taken(&m, INT_MAX, INT_MAX);
	/* 17 + 751619270 + 536870907: percentages of 2^31 do not overflow. */
	assert_least(&m, INT_MAX, 64, "at least 1288490194");
}

static void test_options(void **state)
{
	(void)state;
	const struct entry *e = recall_entry();
	struct method m = method_default(e), same = recall(8, "all");
	int pairs = method_find(e, "pairs"), grow = method_find(e, "grow");
	assert_int_equal(m.value[pairs].integer, 8);
	assert_int_equal(m.value[grow].integer, same.value[grow].integer);
	assert_true(e->options[pairs].results && e->options[grow].results);
	union option_value v;
	assert_int_equal(option_parse(&e->options[pairs], "0", &v).code, ERR_USAGE);
	assert_int_equal(option_parse(&e->options[pairs], "33", &v).code, ERR_USAGE);
	assert_int_equal(option_parse(&e->options[grow], "queries", &v).code, ERR_USAGE);
}

static void test_table(void **state)
{
	(void)state;
	struct method m = recall(8, "all");
	const struct task *task = task_of(&m);
	assert_string_equal(task->groups[0], "recall");
	assert_string_equal(task->groups[1], "echo");
	assert_null(task->groups[2]);
	assert_int_equal(task->vocabulary(&m), VOCABULARY);
	for (int length = 64; length <= 2048; length *= 2)
		for (int group = 0; group < 2; group++)
			assert_true(task->floor(&m, length, group) == 1.0);
	int count = 0;
	while (task_at(count))
		count++;
	assert_true(count > 0);
	assert_null(task_at(-1));
}

/* ---- references ---- */

static const struct task_reference *reference(const struct method *m, const char *name)
{
	const struct task_reference *r = reference_named(m, name);
	assert_int_equal(r->group, RECALL_GROUP);
	return r;
}

/* Share of the values standing before t that are the target. */
static double counted(const struct sequence *s, int t)
{
	int equal = 0, all = 0;
	for (int i = t - 1; i >= 0; i--) {
		all += value(s->token[i]);
		equal += value(s->token[i]) && s->token[i] == s->target[t];
	}
	return (double)equal / all;
}

enum { REFERENCE_LENGTH = 128 };

static void assert_probabilities(const struct method *m, struct sequence *s)
{
	double guess[REFERENCE_LENGTH], uniform[REFERENCE_LENGTH], sum[2][REFERENCE_LENGTH] = { { 0 } };
	const struct task_reference *by_guess = reference(m, "guessing among the stated values");
	const struct task_reference *by_chance = reference(m, "uniform over the values");
	/* The true target first, then every value in its place. */
	for (int32_t v = VALUE - 1; v < FILLER; v++) {
		for (int t = 0; t < REFERENCE_LENGTH; t++)
			if (v >= VALUE && key(s->token[t]) && s->target[t] >= 0)
				s->target[t] = v;
		by_guess->probability(m, s, 64, REFERENCE_LENGTH, guess);
		by_chance->probability(m, s, 64, REFERENCE_LENGTH, uniform);
		for (int t = 0; t < REFERENCE_LENGTH; t++) {
			bool query = key(s->token[t]) && s->target[t] >= 0;
			assert_true(uniform[t] == (query ? 1.0 / 32 : 0));
			assert_true(guess[t] == (query ? counted(s, t) : 0));
			sum[0][t] += v >= VALUE ? guess[t] : 0;
			sum[1][t] += v >= VALUE ? uniform[t] : 0;
			assert_true(v >= VALUE || !query || guess[t] > 0);
		}
	}
	for (int t = 0; t < REFERENCE_LENGTH; t++) {
		double want = key(s->token[t]) && s->target[t] >= 0 ? 1 : 0;
		assert_true(fabs(sum[0][t] - want) < 1e-12 && fabs(sum[1][t] - want) < 1e-12);
	}
}

static void test_references(void **state)
{
	(void)state;
	static const int pairs[] = { 1, 8, 32 };
	struct sequence s = sequence_new(REFERENCE_LENGTH, 0x5a);
	for (int i = 0; i < 3; i++) {
		struct method m = recall(pairs[i], "all");
		for (uint64_t k = 0; k < 10; k++) {
			make(&m, 64, 14, k, REFERENCE_LENGTH, &s);
			assert_probabilities(&m, &s);
		}
	}
	sequence_free(&s);
}

/* A value no pair has yet cannot be the target: the guess gives it nothing. */
static void test_references_by_hand(void **state)
{
	(void)state;
	int32_t token[] = { 0, 5, 40, 5, 6, 40, 98, 7, 41, 7, 5 };
	int32_t target[] = { -1, -1, -1, 40, -1, -1, 40, -1, -1, 41, 50 };
	uint8_t group[11] = { [6] = ECHO_GROUP };
	struct sequence s = { .token = token, .target = target, .group = group };
	double p[11];
	struct method m = recall(8, "all");
	reference(&m, "guessing among the stated values")->probability(&m, &s, 64, 11, p);
	for (int t = 0; t < 11; t++)
		assert_true(p[t] == (t == 3 ? 1 : t == 9 ? 1.0 / 3 : 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_invariants),
		cmocka_unit_test(test_echo_of_echo),
		cmocka_unit_test(test_solve),
		cmocka_unit_test(test_solve_by_hand),
		cmocka_unit_test(test_same_arguments),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_no_sequence_twice),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_check_filler),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_references),
		cmocka_unit_test(test_references_by_hand),
	};
	return cmocka_run_group_tests_name("data recall", tests, NULL, NULL);
}
