#include "data/stretch.h"
#include "tests/recall_case.h"

/* Stretching: the same questions and answers, filler anywhere it may stand, each arrangement as likely. */

enum { L = 40, SEED = 9 };

static void open(struct stretch *s, const struct method *task, int length)
{
	struct batch_source source = { .task = task, .train_length = L, .length = length, .seed = SEED,
				       .stream = STREAM_REPORT };
	struct err e = stretch_open(&source, s);
	if (e.code)
		fail_msg("%s", e.text);
}

/* The tasks of the list that can be stretched. */
static int stretchable(struct method *out)
{
	int count = 0;
	for (int i = 0; task_at(i); i++) {
		struct method m = method_default(task_at(i));
		if (task_of(&m)->may_insert)
			out[count++] = m;
	}
	assert_true(count > 0);
	return count;
}

/* The long sequence's targets are what another reading of its tokens finds. */
static void targets_hold(const struct method *task, const struct stretch *s, int T)
{
	int32_t *target = malloc((size_t)T * sizeof *target);
	assert_non_null(target);
	task_of(task)->solve(task, s->sequence.token, T, target);
	assert_memory_equal(target, s->sequence.target, (size_t)T * sizeof *target);
	free(target);
}

static void test_targets(void **state)
{
	(void)state;
	struct method task[16];
	int count = stretchable(task);
	static const int lengths[] = { L, L + 1, 2 * L, 8 * L };
	for (int i = 0; i < count; i++) {
		for (int j = 0; j < 4; j++) {
			struct stretch s;
			open(&s, &task[i], lengths[j]);
			for (uint64_t index = 0; index < 50; index++) {
				stretch_make(&s, index);
				targets_hold(&task[i], &s, lengths[j]);
			}
			stretch_close(&s);
		}
	}
}

/* Every token, target and group of the original where `origin` says, the last at the end; else filler. */
static void same_questions(const struct stretch *s, int T)
{
	int scored = 0, filled = 0;
	for (int t = 0, at = 0; t < L; t++, at++) {
		for (; at < s->origin[t]; at++, filled++) {
			assert_true(filler(s->sequence.token[at]));
			assert_int_equal(s->sequence.target[at], -1);
			assert_int_equal(s->sequence.distance[at], 0);
		}
		assert_int_equal(s->sequence.token[at], s->original.token[t]);
		assert_int_equal(s->sequence.target[at], s->original.target[t]);
		scored += s->original.target[t] >= 0;
		if (s->original.target[t] >= 0)
			assert_int_equal(s->sequence.group[at], s->original.group[t]);
	}
	assert_int_equal(s->origin[0], 0);
	assert_int_equal(s->origin[L - 1], T - 1);
	assert_int_equal(filled, T - L);
	assert_true(scored > 0);
	for (int t = 0; t < T; t++)
		assert_true(s->sequence.position[t] == t);
}

/* A query's evidence is the value, which stands `distance` before it. */
static void distances_reach_the_evidence(const struct stretch *s, int T)
{
	for (int t = 0; t < T; t++)
		if (s->sequence.target[t] >= 0)
			assert_int_equal(s->sequence.token[t - s->sequence.distance[t]], s->sequence.target[t]);
}

static void test_questions(void **state)
{
	(void)state;
	struct method task = recall(8, "all");
	struct sequence made = sequence_new(L, 0);
	struct stretch s;
	open(&s, &task, 3 * L);
	for (uint64_t index = 0; index < 100; index++) {
		stretch_make(&s, index);
		make(&task, L, SEED, index, L, &made);
		assert_true(same_sequence(&made, &s.original, L));
		same_questions(&s, 3 * L);
		distances_reach_the_evidence(&s, 3 * L);
	}
	sequence_free(&made);
	stretch_close(&s);
}

/* A pure function of the source and the index, whatever was made before; another for another of them. */
static void test_pure(void **state)
{
	(void)state;
	enum { T = 2 * L };
	struct method task = recall(8, "all");
	struct stretch one, other;
	open(&one, &task, T);
	open(&other, &task, T);
	stretch_make(&one, 7);
	stretch_make(&other, 3);
	assert_memory_not_equal(one.sequence.token, other.sequence.token, T * sizeof(int32_t));
	stretch_make(&other, 7);
	assert_true(same_sequence(&one.sequence, &other.sequence, T));
	assert_memory_equal(one.origin, other.origin, L * sizeof(int));
	int origin[L];
	memcpy(origin, one.origin, sizeof origin);
	stretch_close(&other);
	open(&other, &task, T + 1);
	stretch_make(&other, 7);
	assert_memory_equal(one.original.token, other.original.token, L * sizeof(int32_t));
	assert_memory_not_equal(origin, other.origin, sizeof origin);
	stretch_close(&one);
	stretch_close(&other);
}

/* Not stretched, it is as made. */
static void test_unstretched(void **state)
{
	(void)state;
	struct method task = recall(8, "all");
	struct stretch s;
	open(&s, &task, L);
	stretch_make(&s, 5);
	assert_true(same_sequence(&s.original, &s.sequence, L));
	stretch_close(&s);
}

/* A tiny task: 0 0 0 1 0, filler 2; filler may stand before tokens 1, 2 and 4. */
enum { TINY = 5, ADDED = 3, PLACES = 3, ARRANGEMENTS = 10 }; /* 10: C(ADDED + PLACES - 1, ADDED) */

static struct err tiny_check(const struct method *task, int train_length, int length)
{
	(void)task, (void)train_length, (void)length;
	return OK;
}

static void tiny_make(const struct method *task, int train_length, uint64_t seed, enum stream stream, uint64_t index,
		      int length, struct sequence *out)
{
	(void)task, (void)train_length, (void)seed, (void)stream, (void)index;
	for (int t = 0; t < length; t++) {
		out->token[t] = t == 3;
		out->target[t] = -1;
		out->group[t] = 0;
		out->distance[t] = 0;
		out->position[t] = t;
	}
}

static bool tiny_may_insert(const struct method *task, const struct sequence *s, int length, int t)
{
	(void)task, (void)length;
	return s->token[t] != 1;
}

static int32_t tiny_filler(const struct method *task, struct rng *r)
{
	(void)task, (void)r;
	return 2;
}

static const struct task tiny = {
	.entry = { .name = "tiny" },
	.check = tiny_check,
	.make = tiny_make,
	.may_insert = tiny_may_insert,
	.filler = tiny_filler,
};

/* Every way to divide the filler among the places comes up, each as often: chi squared on 9 degrees of freedom exceeds
 * 27.9 once in a thousand. */
static void test_uniform(void **state)
{
	(void)state;
	enum { DRAWS = 20000 };
	struct method task = { .entry = &tiny.entry };
	struct batch_source source = { .task = &task, .train_length = TINY, .length = TINY + ADDED, .seed = SEED,
				       .stream = STREAM_REPORT };
	int count[ADDED + 1][ADDED + 1] = { 0 }, seen = 0;
	struct stretch s;
	assert_int_equal(stretch_open(&source, &s).code, ERR_NONE);
	for (uint64_t index = 0; index < DRAWS; index++) {
		stretch_make(&s, index);
		int first = s.origin[1] - 1, second = s.origin[2] - s.origin[1] - 1;
		assert_int_equal(s.origin[3], s.origin[2] + 1);
		assert_int_equal(s.origin[4], TINY + ADDED - 1);
		count[first][second]++;
	}
	stretch_close(&s);
	double expected = (double)DRAWS / ARRANGEMENTS, chi = 0;
	for (int i = 0; i <= ADDED; i++)
		for (int j = 0; j <= ADDED; j++) {
			seen += count[i][j] > 0;
			if (i + j <= ADDED)
				chi += (count[i][j] - expected) * (count[i][j] - expected) / expected;
		}
	assert_int_equal(seen, ARRANGEMENTS);
	if (!(chi < 27.9))
		fail_msg("chi squared is %g", chi);
}

/* A task whose tokens are the very words it draws, and filler likewise. */
static void drawn_make(const struct method *task, int train_length, uint64_t seed, enum stream stream, uint64_t index,
		       int length, struct sequence *out)
{
	tiny_make(task, train_length, seed, stream, index, length, out);
	struct rng r = rng_at(seed, stream, index);
	for (int t = 0; t < length; t++)
		out->token[t] = (int32_t)rng_word(&r);
}

static int32_t drawn_filler(const struct method *task, struct rng *r)
{
	(void)task;
	return (int32_t)rng_word(r);
}

static bool anywhere(const struct method *task, const struct sequence *s, int length, int t)
{
	(void)task, (void)s, (void)length, (void)t;
	return true;
}

/* No word is drawn twice, by `make` or for filler, in any sequence at any length. */
static void test_own_draws(void **state)
{
	(void)state;
	enum { SEQUENCES = 20, LENGTHS = 3, WORDS = 4 * L, ALL = SEQUENCES * (LENGTHS * WORDS) };
	struct task drawn = tiny;
	drawn.make = drawn_make;
	drawn.may_insert = anywhere;
	drawn.filler = drawn_filler;
	struct method task = { .entry = &drawn.entry };
	static int32_t word[ALL];
	int words = 0;
	for (int i = 0; i < LENGTHS; i++) {
		int length = (i + 2) * L;
		struct stretch s;
		open(&s, &task, length);
		for (uint64_t index = 0; index < SEQUENCES; index++) {
			stretch_make(&s, index);
			for (int t = 0, at = 0; at < length; at++) {
				bool original = t < L && s.origin[t] == at;
				if (!original || i == 0)
					word[words++] = s.sequence.token[at];
				t += original;
			}
		}
		stretch_close(&s);
	}
	for (int i = 0; i < words; i++)
		for (int j = 0; j < i; j++)
			assert_int_not_equal(word[i], word[j]);
}

static void refused(const struct method *task, int train_length, int length, const char *part)
{
	struct batch_source source = { .task = task, .train_length = train_length, .length = length, .seed = SEED,
				       .stream = STREAM_REPORT };
	struct stretch s;
	struct err e = stretch_open(&source, &s);
	stretch_close(&s);
	assert_int_equal(e.code, ERR_USAGE);
	if (!strstr(e.text, part) && !strstr(e.hint, part))
		fail_msg("'%s' (%s) does not say '%s'", e.text, e.hint, part);
}

static void test_refused(void **state)
{
	(void)state;
	struct method task = recall(8, "all");
	refused(&task, L, L - 1, "less than train_length 40");
	refused(&task, 10, 20, "too short");
	struct task rigid = tiny;
	rigid.may_insert = NULL;
	rigid.filler = NULL;
	task = (struct method){ .entry = &rigid.entry };
	refused(&task, TINY, 2 * TINY, "the task tiny cannot be stretched");
	refused(&task, TINY, 2 * TINY, "recall");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_questions),
		cmocka_unit_test(test_pure),
		cmocka_unit_test(test_unstretched),
		cmocka_unit_test(test_uniform),
		cmocka_unit_test(test_own_draws),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests_name("data stretch", tests, NULL, NULL);
}
