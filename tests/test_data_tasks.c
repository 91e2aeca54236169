#include "tests/sequence_case.h"

#include <limits.h>

/* What holds for every task of the list, under every choice of its options. */

enum { TRAIN_LENGTH = 128, LONGEST = 1024, SEQUENCES = 12 };

typedef void visitor(const struct method *m);

/* An integer at either end of its range, a switch or a choice at each value; other kinds are left alone. */
static void each_value(const struct method *plain, int index, visitor *visit)
{
	const struct option *o = &plain->entry->options[index];
	int64_t value = 0, most = -1, step = 1;
	if (o->kind == OPTION_INTEGER) {
		value = (int64_t)o->least;
		most = (int64_t)o->most;
		step = most > value ? most - value : 1;
	} else if (o->kind == OPTION_SWITCH || o->kind == OPTION_CHOICE) {
		most = 0;
		for (const char *c = o->choices; *c; c++)
			most += *c == '|';
	}
	for (; value <= most; value += step) {
		struct method m = *plain;
		method_set(&m, index, (union option_value){ .integer = value });
		visit(&m);
	}
}

/* Each task of the list with its defaults, then with one option at a time set to something else. */
static void each_task(visitor *visit)
{
	assert_non_null(task_at(0));
	for (int i = 0; task_at(i); i++) {
		struct method plain = task_ready(task_at(i));
		visit(&plain);
		for (int j = 0; plain.entry->options && plain.entry->options[j].name; j++)
			each_value(&plain, j, visit);
	}
}

static struct err check(const struct method *m, int length)
{
	return task_of(m)->check(m, TRAIN_LENGTH, length);
}

static int least_length(const struct method *m)
{
	int length = 1;
	while (length < LONGEST && check(m, length).code)
		length++;
	if (length == LONGEST)
		fail_msg("%s makes no length below %d", m->entry->name, LONGEST);
	return length;
}

static int groups_of(const struct method *m)
{
	int count = 0;
	while (count < TASK_GROUPS && task_of(m)->groups[count])
		count++;
	return count;
}

/* Calls `visit` with sequences of some lengths, the least first, and all streams that a task is made for. */
static void each_sequence(const struct method *m, void (*visit)(const struct method *m, struct sequence *s, int length))
{
	static const enum stream stream[] = { STREAM_TRAIN, STREAM_TUNE, STREAM_REPORT };
	int least = least_length(m), length[] = { least, least + 1, TRAIN_LENGTH, 2 * TRAIN_LENGTH + 1, LONGEST };
	for (int i = 0; i < 5; i++) {
		if (length[i] < least)
			continue;
		struct sequence s = sequence_new(length[i], 0x5a);
		for (uint64_t k = 0; k < SEQUENCES; k++) {
			task_of(m)->make(m, TRAIN_LENGTH, 41, stream[k % 3], k, length[i], &s);
			visit(m, &s, length[i]);
		}
		sequence_free(&s);
	}
}

/* ---- lengths ---- */

static void assert_border(const struct method *m)
{
	int least = least_length(m);
	char number[16];
	snprintf(number, sizeof number, "%d", least);
	for (int length = -1; length < least; length++) {
		assert_err(check(m, length), ERR_USAGE, number);
		assert_true(check(m, length).hint[0]);
	}
	assert_err(check(m, INT_MIN), ERR_USAGE, number);
	for (int length = least; length <= LONGEST; length++)
		assert_ok(check(m, length));
}

static void test_borders(void **state)
{
	(void)state;
	each_task(assert_border);
}

/* ---- what a sequence holds ---- */

static void assert_sane(const struct method *m, struct sequence *s, int length)
{
	int V = task_of(m)->vocabulary(m), scored = 0;
	for (int t = 0; t < length; t++) {
		assert_true(s->token[t] >= 0 && s->token[t] < V);
		assert_true(s->target[t] >= -1 && s->target[t] < V);
		assert_true(s->position[t] >= 0 && s->position[t] < length);
		assert_true(task_placed(m) || s->position[t] == t);
		if (s->target[t] < 0) {
			assert_int_equal(s->distance[t], 0);
			continue;
		}
		scored++;
		assert_true(s->group[t] < groups_of(m));
		assert_true(s->distance[t] >= 1 && s->distance[t] <= length);
	}
	assert_true(scored > 0);
}

static void assert_solved(const struct method *m, struct sequence *s, int length)
{
	int32_t *target = TAKE(int32_t, length);
	memset(target, 0x5a, (size_t)length * sizeof *target);
	task_of(m)->solve(m, s->token, length, target);
	if (target[length - 1] == TARGET_BEYOND)
		target[length - 1] = s->target[length - 1];
	assert_memory_equal(target, s->target, (size_t)length * sizeof *target);
	free(target);
}

static void assert_sequence(const struct method *m, struct sequence *s, int length)
{
	assert_sane(m, s, length);
	assert_solved(m, s, length);
}

static void assert_sequences(const struct method *m)
{
	each_sequence(m, assert_sequence);
}

static void test_sequences(void **state)
{
	(void)state;
	each_task(assert_sequences);
}

static void assert_floor_and_groups(const struct method *m)
{
	int V = task_of(m)->vocabulary(m), count[TASK_GROUPS] = { 0 };
	assert_true(V > 1 && groups_of(m) > 0);
	for (int length = least_length(m); length <= LONGEST; length += 93)
		for (int group = 0; group < groups_of(m); group++) {
			double floor = task_of(m)->floor(m, length, group);
			assert_true(isnan(floor) || (floor >= 1 && floor <= V));
		}
	struct sequence s = sequence_new(LONGEST, 0x5a);
	for (uint64_t k = 0; k < SEQUENCES; k++) {
		make(m, TRAIN_LENGTH, 42, k, LONGEST, &s);
		for (int t = 0; t < LONGEST; t++)
			if (s.target[t] >= 0)
				count[s.group[t]]++;
	}
	for (int group = 0; group < groups_of(m); group++)
		assert_true(count[group] > 0);
	sequence_free(&s);
}

static void test_floors_and_groups(void **state)
{
	(void)state;
	each_task(assert_floor_and_groups);
}

/* ---- a pure function of its arguments ---- */

static void assert_pure(const struct method *m)
{
	static const struct {
		uint64_t seed;
		enum stream stream;
		uint64_t index;
	} from[] = { { 1, STREAM_TRAIN, 0 },	   { 1, STREAM_TUNE, 0 },    { 1, STREAM_REPORT, 0 },
		     { 2, STREAM_TRAIN, 0 },	   { 1ull << 32 | 1, STREAM_TRAIN, 0 },
		     { 1, STREAM_TRAIN, 1 },	   { 1, STREAM_TRAIN, 1ull << 32 } };
	enum { COUNT = sizeof from / sizeof *from };
	int least = least_length(m), length = least > TRAIN_LENGTH ? least : TRAIN_LENGTH;
	struct sequence s[COUNT], again = sequence_new(length, 0xa5);
	for (int i = 0; i < COUNT; i++) {
		s[i] = sequence_new(length, 0x5a);
		task_of(m)->make(m, TRAIN_LENGTH, from[i].seed, from[i].stream, from[i].index, length, &s[i]);
	}
	for (int i = COUNT - 1; i >= 0; i--) {
		task_of(m)->make(m, TRAIN_LENGTH, from[i].seed, from[i].stream, from[i].index, length, &again);
		assert_true(same_sequence(&s[i], &again, length));
		if (!task_placed(m))
			assert_memory_equal(s[i].position, s[0].position, (size_t)length * sizeof *s[i].position);
		for (int j = 0; j < i; j++)
			assert_memory_not_equal(s[i].token, s[j].token, (size_t)length * sizeof *s[i].token);
	}
	for (int i = 0; i < COUNT; i++)
		sequence_free(&s[i]);
	sequence_free(&again);
}

static void test_pure(void **state)
{
	(void)state;
	each_task(assert_pure);
}

/* ---- stretching by filler ---- */

static bool predicts_next(const int32_t *token, const int32_t *target, int length)
{
	for (int t = 0; t < length; t++)
		if (target[t] >= 0 && (t + 1 == length || target[t] != token[t + 1]))
			return false;
	return true;
}

/* Up to `most` fillers at every place that may have them, at least one; then every target is what it was, and a text
 * whose targets are its next tokens still is one. */
static void assert_stretched(const struct method *m, struct sequence *s, int length, int most)
{
	int room = length * (most + 1), to = 0, inserted = 0;
	int32_t *token = TAKE(int32_t, room), *want = TAKE(int32_t, room), *target = TAKE(int32_t, room);
	struct rng r = rng_at(43, STREAM_TUNE, (uint64_t)length);
	for (int t = 0; t < length; t++) {
		int fillers = 0;
		if (t > 0 && task_of(m)->may_insert(m, s, length, t))
			fillers = 1 + (int)rng_below(&r, (uint32_t)most);
		for (int i = 0; i < fillers; i++, to++) {
			token[to] = task_of(m)->filler(m, &r);
			want[to] = -1;
			assert_true(token[to] >= 0 && token[to] < task_of(m)->vocabulary(m));
		}
		inserted += fillers;
		token[to] = s->token[t];
		want[to++] = s->target[t];
	}
	assert_true(inserted > 0);
	task_of(m)->solve(m, token, to, target);
	assert_memory_equal(target, want, (size_t)to * sizeof *target);
	assert_true(!predicts_next(s->token, s->target, length) || predicts_next(token, want, to));
	free(token);
	free(want);
	free(target);
}

static void stretch(const struct method *m, struct sequence *s, int length)
{
	assert_stretched(m, s, length, 1);
	assert_stretched(m, s, length, 4);
}

static void stretch_all(const struct method *m)
{
	assert_true(!task_of(m)->may_insert == !task_of(m)->filler);
	if (task_of(m)->may_insert)
		each_sequence(m, stretch);
}

static void test_stretching(void **state)
{
	(void)state;
	each_task(stretch_all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_borders),
		cmocka_unit_test(test_sequences),
		cmocka_unit_test(test_floors_and_groups),
		cmocka_unit_test(test_pure),
		cmocka_unit_test(test_stretching),
	};
	return cmocka_run_group_tests_name("data tasks", tests, NULL, NULL);
}
