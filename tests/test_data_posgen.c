#include "tests/sequence_case.h"

/* PosGen: the three rules by hand, and that a sum has its terms where the distances say. */

enum { BOS = 17 };

static void assert_continues(const char *label, const int32_t *number, int count)
{
	struct method m = task_labelled(label);
	int drawn = (int)(m.value[1].integer + m.value[2].integer);
	int32_t token[16] = { BOS }, target[16];
	memcpy(token + 1, number, (size_t)(count - 1) * sizeof *number);
	task_of(&m)->solve(&m, token, count, target);
	for (int t = 0; t < count; t++)
		assert_int_equal(target[t], t < drawn ? -1 : number[t]);
}

static void test_by_hand(void **state)
{
	(void)state;
	assert_continues("posgen(kind=recursive)", (const int32_t[]){ 1, 2, 3, 4, 10, 2, 2, 1 }, 8);
	assert_continues("posgen(kind=cot)", (const int32_t[]){ 1, 2, 3, 4, 10, 1, 16, 11 }, 8);
	assert_continues("posgen", (const int32_t[]){ 1, 2, 3, 4, 10, 1, 0, 13, 0 }, 9);
	assert_continues("posgen(far=2,near=1)", (const int32_t[]){ 1, 2, 3, 6, 9, 14, 2 }, 7);
	assert_continues("posgen(far=2,near=1,kind=cot)", (const int32_t[]){ 1, 2, 3, 6, 9, 12, 15, 1 }, 8);
}

static void test_begins_with_drawn_numbers(void **state)
{
	(void)state;
	enum { LENGTH = 5 };
	struct method m = task_labelled("posgen");
	struct sequence s = sequence_new(LENGTH, 0x5a);
	int count[17] = { 0 };
	assert_int_equal(task_of(&m)->vocabulary(&m), 18);
	for (uint64_t k = 0; k < 2000; k++) {
		make(&m, 64, 5, k, LENGTH, &s);
		assert_int_equal(s.token[0], BOS);
		for (int t = 1; t < LENGTH; t++)
			count[s.token[t]]++;
	}
	assert_drawn(count, NULL, 17, "numbers");
	sequence_free(&s);
}

/* One more in the token that is `distance` away makes the sum one more (recursive and cot: another term may be the same
 * token where near and far meet); a token farther away does not matter. */
static void assert_distances(const char *label)
{
	enum { LENGTH = 90 };
	struct method m = task_labelled(label);
	struct sequence s = sequence_new(LENGTH, 0x5a);
	int32_t target[LENGTH];
	make(&m, 64, 5, 1, LENGTH, &s);
	for (int t = 0; t < LENGTH; t++) {
		if (s.target[t] < 0)
			continue;
		for (int far = t - s.distance[t]; far >= 1; far--) {
			int32_t was = s.token[far];
			s.token[far] = (was + 1) % 17;
			task_of(&m)->solve(&m, s.token, LENGTH, target);
			s.token[far] = was;
			assert_true((target[t] != s.target[t]) == (far == t - s.distance[t]));
		}
	}
	sequence_free(&s);
}

static void test_distances(void **state)
{
	(void)state;
	assert_distances("posgen(kind=recursive)");
	assert_distances("posgen(kind=cot)");
	assert_distances("posgen(kind=semi_recursive)");
	assert_distances("posgen(far=3,near=2)");
}

static void test_refused(void **state)
{
	(void)state;
	struct method m = task_labelled("posgen(far=2,near=5)");
	assert_err(task_of(&m)->check(&m, 64, 7), ERR_USAGE, "BOS and the 7 numbers drawn need 8");
	assert_ok(task_of(&m)->check(&m, 64, 8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_begins_with_drawn_numbers),
		cmocka_unit_test(test_distances),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests_name("data posgen", tests, NULL, NULL);
}
