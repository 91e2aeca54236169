#include "tests/symbols_case.h"

#include <limits.h>

/* The task copy: what the study says, drawn as often as it says. */

static struct reading read_sequence(const struct sequence *s, int length)
{
	struct reading r = read_symbols(s, length);
	assert_memory_equal(s->token + r.start, s->token + r.separator + 1, (size_t)r.n * sizeof *s->token);
	return r;
}

static void assert_scored(const struct sequence *s, const struct reading *r, int length)
{
	for (int t = 0; t < length; t++) {
		bool scored = t >= r->separator && t < r->end - 1;
		assert_int_equal(s->target[t], scored ? s->token[t + 1] : -1);
		assert_int_equal(s->distance[t], scored ? r->separator - r->start : 0);
		assert_true(!scored || s->token[t - s->distance[t]] == s->target[t]);
		assert_true(!scored || s->group[t] == 0);
		assert_true(s->position[t] == t);
	}
}

static void draw(const struct method *m, uint64_t seed, enum stream stream, uint64_t index, int length,
		 struct sequence *out)
{
	task_of(m)->make(m, 64, seed, stream, index, length, out);
}

static void test_with_gap(void **state)
{
	(void)state;
	static const int length[] = { 34, 35, 64, 257, 2048 };
	static const enum stream stream[] = { STREAM_TRAIN, STREAM_TUNE, STREAM_REPORT };
	struct method m = method_default(task_named("copy"));
	for (int i = 0; i < 5; i++) {
		struct sequence s = sequence_new(length[i], 0x5a);
		for (uint64_t k = 0; k < 600; k++) {
			draw(&m, 101, stream[k % 3], k, length[i], &s);
			struct reading r = read_sequence(&s, length[i]);
			assert_scored(&s, &r, length[i]);
			assert_distinct(s.token + r.start, r.n);
			assert_true(r.n == 16 || (k % 3 == 0 && r.n >= 4 && r.n < 16));
			assert_true(r.start < length[i] - 2 * r.n && r.separator < length[i] - r.n);
		}
		sequence_free(&s);
	}
}

/* Each 64 symbols are the alphabet, in an order of its own. */
static void assert_shuffles(const int32_t *token, int n)
{
	for (int first = 0; first < n; first += SYMBOLS)
		assert_distinct(token + first, n - first < SYMBOLS ? n - first : SYMBOLS);
	for (int first = SYMBOLS; first + SYMBOLS <= n; first += SYMBOLS)
		assert_memory_not_equal(token + first, token + first - SYMBOLS, SYMBOLS * sizeof *token);
}

static void test_classical(void **state)
{
	(void)state;
	static const int length[] = { 4, 5, 6, 9, 10, 64, 65, 130, 131, 400, 2048 };
	struct method m = task_labelled("copy(gap=0)");
	for (int i = 0; i < 11; i++) {
		int most = (length[i] - 2) / 2, least = most < 4 ? most : 4;
		struct sequence s = sequence_new(length[i], 0x5a);
		for (uint64_t k = 0; k < 100; k++) {
			bool train = k % 2;
			draw(&m, 101, train ? STREAM_TRAIN : STREAM_REPORT, k, length[i], &s);
			struct reading r = read_sequence(&s, length[i]);
			assert_scored(&s, &r, length[i]);
			assert_shuffles(s.token + r.start, r.n);
			assert_true(r.start == 1 && r.separator == r.n + 1);
			assert_true(train ? r.n >= least && r.n <= most : r.n == most);
		}
		sequence_free(&s);
	}
}

/* ---- as often as it says ---- */

enum { SAMPLES = 30000 };

/* At length 36 the first s starts at 1, 2 or 3, and the last place for SEP is 19. */
static void test_places_are_uniform(void **state)
{
	(void)state;
	static const double want[] = { 1 / 9.0, 1 / 9.0, 1 / 9.0, 1 / 6.0, 1 / 6.0, 1 / 3.0 };
	int places[6] = { 0 }, counts[13] = { 0 }, fillers[32] = { 0 };
	struct method m = method_default(task_named("copy"));
	struct sequence s = sequence_new(36, 0x5a);
	for (uint64_t k = 0; k < SAMPLES; k++) {
		draw(&m, 11, STREAM_REPORT, k, 36, &s);
		struct reading r = read_sequence(&s, 36);
		int first = r.start == 1 ? 0 : r.start == 2 ? 3 : 5;
		places[first + r.separator - 16 - r.start]++;
		for (int t = r.end; t < 36; t++)
			fillers[s.token[t] - FILLER]++;
		draw(&m, 11, STREAM_TRAIN, k, 36, &s);
		counts[read_sequence(&s, 36).n - 4]++;
	}
	assert_drawn(places, want, 6, "places of s and SEP");
	assert_drawn(counts, NULL, 13, "symbols in training");
	assert_drawn(fillers, NULL, 32, "fillers");
	sequence_free(&s);
}

static void test_places_in_training(void **state)
{
	(void)state;
	int start[40] = { 0 }, separator[40] = { 0 };
	struct method m = method_default(task_named("copy"));
	struct sequence s = sequence_new(40, 0x5a);
	for (uint64_t k = 0; k < SAMPLES; k++) {
		draw(&m, 12, STREAM_TRAIN, k, 40, &s);
		struct reading r = read_sequence(&s, 40);
		if (r.n != 4)
			continue;
		start[r.start]++;
		if (r.start == 20)
			separator[r.separator]++;
	}
	assert_int_equal(start[0], 0);
	assert_drawn(start + 1, NULL, 31, "start of 4 symbols");
	assert_drawn(separator + 24, NULL, 12, "SEP after 4 symbols at 20");
	sequence_free(&s);
}

static void test_symbols_are_uniform(void **state)
{
	(void)state;
	enum { ORDERED = 64 * 63 };
	static int pair[ORDERED], across[64 * 64], counts[30];
	struct method gap = method_default(task_named("copy")), classical = task_labelled("copy(gap=off)");
	struct sequence s = sequence_new(34, 0x5a), c = sequence_new(134, 0x5a);
	for (uint64_t k = 0; k < SAMPLES; k++) {
		draw(&gap, 13, STREAM_REPORT, k, 34, &s);
		int a = s.token[1] - SYMBOL, b = s.token[2] - SYMBOL;
		pair[a * 63 + b - (b > a)]++;
		draw(&classical, 13, STREAM_TRAIN, k, 66, &c);
		int n = read_sequence(&c, 66).n;
		assert_true(n >= 4 && n <= 32);
		counts[n - 4]++;
		draw(&classical, 13, STREAM_REPORT, k, 134, &c);
		across[(c.token[1] - SYMBOL) * 64 + c.token[1 + SYMBOLS] - SYMBOL]++;
	}
	assert_drawn(pair, NULL, ORDERED, "first two symbols");
	assert_drawn(across, NULL, 64 * 64, "first symbols of two shuffles");
	assert_drawn(counts, NULL, 29, "symbols in training, without a gap");
	sequence_free(&s);
	sequence_free(&c);
}

/* ---- solve, filler, lengths, options ---- */

static void test_solve_by_hand(void **state)
{
	(void)state;
	static const int32_t token[] = { 0, 70, 5, 9, 9, 80, 66, 1, 5, 9, 9, 77, 90 };
	static const int32_t want[] = { -1, -1, -1, -1, -1, -1, -1, 5, 9, 9, -1, -1, -1 };
	int32_t target[13];
	struct method m = method_default(task_named("copy"));
	task_of(&m)->solve(&m, token, 13, target);
	assert_memory_equal(target, want, sizeof want);
	/* From the first s alone, whatever stands behind SEP. */
	int32_t damaged[] = { 0, 70, 5, 9, 9, 80, 66, 1, 33, 0, 98, 77, 90 };
	task_of(&m)->solve(&m, damaged, 13, target);
	assert_memory_equal(target, want, sizeof want);
}

static void test_filler(void **state)
{
	(void)state;
	struct method gap = method_default(task_named("copy")), classical = task_labelled("copy(gap=0)");
	struct sequence s = sequence_new(64, 0x5a);
	for (uint64_t k = 0; k < 200; k++) {
		const struct method *m = k % 2 ? &gap : &classical;
		draw(m, 21, STREAM_REPORT, k, 64, &s);
		struct reading r = read_sequence(&s, 64);
		for (int t = 1; t < 64; t++) {
			bool inside = (t > r.start && t < r.start + r.n) || (t > r.separator && t < r.end);
			assert_int_equal(task_of(m)->may_insert(m, &s, 64, t), !inside);
		}
		struct rng rng = rng_at(1, STREAM_TUNE, k);
		int32_t filler = task_of(m)->filler(m, &rng);
		assert_true(filler >= FILLER && filler < VOCABULARY);
	}
	sequence_free(&s);
}

/* The next symbol stands one position ahead of SEP and of each copied symbol; all else is where it was. */
static void test_coupled(void **state)
{
	(void)state;
	struct method coupled = task_labelled("copy(coupled=on)"), plain = method_default(task_named("copy"));
	struct sequence s = sequence_new(64, 0x5a), other = sequence_new(64, 0x5a);
	assert_true(task_placed(&coupled) && !task_placed(&plain));
	for (uint64_t k = 0; k < 50; k++) {
		draw(&coupled, 21, STREAM_TRAIN, k, 64, &s);
		draw(&plain, 21, STREAM_TRAIN, k, 64, &other);
		struct reading r = read_sequence(&s, 64);
		for (int t = 0; t < 64; t++) {
			bool copied = t >= r.separator && t <= r.separator + r.n;
			double source = r.start + t - r.separator - 1;
			assert_true(s.position[t] == (copied ? source : t) && other.position[t] == t);
			assert_true(s.token[t] == other.token[t] && s.target[t] == other.target[t]);
		}
	}
	sequence_free(&s);
	sequence_free(&other);
}

static void test_check(void **state)
{
	(void)state;
	struct method gap = method_default(task_named("copy")), classical = task_labelled("copy(gap=off)");
	const struct task *task = task_of(&gap);
	static const int refused[] = { 33, 1, 0, -1, INT_MIN };
	for (int i = 0; i < 5; i++) {
		assert_err(task->check(&gap, 64, refused[i]), ERR_USAGE, "need 34");
		assert_err(task->check(&gap, 64, refused[i]), ERR_USAGE, "greater length");
	}
	assert_err(task->check(&classical, 64, 3), ERR_USAGE, "need 4");
	assert_err(task->check(&classical, 64, INT_MIN), ERR_USAGE, "need 4");
	assert_ok(task->check(&gap, 64, 34));
	assert_ok(task->check(&gap, 1, INT_MAX));
	assert_ok(task->check(&classical, 64, 4));
	assert_ok(task->check(&classical, 1, INT_MAX));
}

static void test_table(void **state)
{
	(void)state;
	struct method m = method_default(task_named("copy")), off;
	const struct task *task = task_of(&m);
	assert_string_equal(task->groups[0], "copy");
	assert_null(task->groups[1]);
	assert_int_equal(task->vocabulary(&m), VOCABULARY);
	assert_true(task->floor(&m, 64, 0) == 1 && task->floor(&m, 2048, 0) == 1);
	int gap = method_find(m.entry, "gap");
	assert_int_equal(m.value[gap].integer, 1);
	assert_true(m.entry->options[gap].results);
	off = task_labelled("copy(gap=0)");
	assert_int_equal(off.value[gap].integer, 0);
	assert_err(method_parse("task", task_at, "copy(gap=2)", &off), ERR_USAGE, "gap");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_with_gap),
		cmocka_unit_test(test_classical),
		cmocka_unit_test(test_places_are_uniform),
		cmocka_unit_test(test_places_in_training),
		cmocka_unit_test(test_symbols_are_uniform),
		cmocka_unit_test(test_solve_by_hand),
		cmocka_unit_test(test_filler),
		cmocka_unit_test(test_coupled),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_table),
	};
	return cmocka_run_group_tests_name("data copy", tests, NULL, NULL);
}
