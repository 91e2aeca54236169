#include "tests/sequence_case.h"

/* The ideal readers of the tasks made of one statement and one answer: sure of what they see, and right about the rest
 * as often as they claim. What they say by hand is in each task's tests. */

static const char window[] = "the ideal reader of the last train_length tokens";

static const char *const label[] = { "copy", "induction", "induction(segment=32)", "needle", "needle(values=16)",
				     "reverse", "sort" };
/* Without a gap, of lengths at which s has more symbols than the alphabet. */
static const char *const full[] = { "copy(gap=off)", "reverse(gap=off)", "sort(gap=off)" };
enum { LABELS = sizeof label / sizeof *label, FULL = sizeof full / sizeof *full };

static void test_sees_all(void **state)
{
	(void)state;
	double p[300];
	for (int i = 0; i < LABELS + FULL; i++) {
		struct method m = task_labelled(i < LABELS ? label[i] : full[i - LABELS]);
		for (int length = 66; length <= 300; length += 117) {
			struct sequence s = sequence_new(length, 0x5a);
			make(&m, 64, 32, 0, length, &s);
			reference_named(&m, window)->probability(&m, &s, length, length, p);
			for (int t = 0; t < length; t++)
				assert_true(p[t] == (s.target[t] >= 0 && s.group[t] == 0));
			sequence_free(&s);
		}
	}
}

/* Evidence in sight is enough. (In reverse and sort others may be, too, by elimination.) */
static void test_near_is_known(void **state)
{
	(void)state;
	double p[200];
	for (int i = 0; i < LABELS; i++) {
		struct method m = task_labelled(label[i]);
		bool exact = strcmp(m.entry->name, "sort") != 0;
		struct sequence s = sequence_new(200, 0x5a);
		int far = 0;
		for (uint64_t k = 0; k < 30; k++) {
			int seen = 20 + (int)k * 3;
			make(&m, 64, 36, k, 200, &s);
			reference_named(&m, window)->probability(&m, &s, seen, 200, p);
			for (int t = 0; t < 200 && exact; t++) {
				if (s.target[t] < 0 || s.group[t] != 0)
					continue;
				assert_int_equal(p[t] == 1, s.distance[t] < seen);
				far += s.distance[t] >= seen;
			}
		}
		assert_true(!exact || far > 50);
		sequence_free(&s);
	}
}

/* ---- what was expected against what came true ---- */

enum { BUCKETS = 24, SAMPLES = 2000 };
struct bucket {
	double expected, variance;
	int hits, count;
};

/* Leaves one scored token of the first group, drawn, and returns its place. */
static int keep_one(struct sequence *s, int length, struct rng *r)
{
	int kept = -1, count = 0;
	for (int t = 0; t < length; t++)
		if (s->target[t] >= 0 && s->group[t] == 0 && !rng_below(r, (uint32_t)++count))
			kept = t;
	for (int t = 0; t < length; t++)
		if (t != kept)
			s->target[t] = -1;
	assert_true(kept >= 0);
	return kept;
}

/* Adds what the reader gives to each second token of the vocabulary where t is next, by size of probability. */
static void add_guesses(const struct method *m, struct sequence *s, int seen, int length, int t, struct bucket *b)
{
	double *p = TAKE(double, length);
	double claimed[BUCKETS] = { 0 };
	int32_t truth = s->target[t];
	int hit = -1;
	for (int v = 0; v < task_of(m)->vocabulary(m); v += 2) {
		s->target[t] = v;
		reference_named(m, window)->probability(m, s, seen, length, p);
		assert_true(p[t] > 0 || v != truth); /* nothing true is ruled out */
		int i = p[t] > 0 ? (int)(-3 * log(p[t])) : BUCKETS - 1;
		i = i < BUCKETS ? i : BUCKETS - 1;
		claimed[i] += p[t];
		if (v == truth)
			hit = i;
	}
	for (int i = 0; i < BUCKETS; i++) {
		b[i].expected += claimed[i];
		b[i].variance += fmax(0, claimed[i] * (1 - claimed[i]));
		b[i].hits += i == hit;
		b[i].count += claimed[i] > 0;
	}
	s->target[t] = truth;
	free(p);
}

/* One token of each sequence, so that all trials are independent; what is in sight does not depend on the target. */
static void assert_calibrated(const char *name, int length)
{
	struct bucket b[BUCKETS] = { 0 };
	struct method m = task_labelled(name);
	struct sequence s = sequence_new(length, 0x5a);
	int judged = 0;
	for (uint64_t k = 0; k < SAMPLES; k++) {
		struct rng r = rng_at(38, STREAM_TUNE, k);
		make(&m, 64, 37, k, length, &s);
		int t = keep_one(&s, length, &r), seen = 1 + (int)rng_below(&r, (uint32_t)length * 2 / 3);
		add_guesses(&m, &s, seen, length, t, b);
	}
	for (int i = 0; i < BUCKETS; i++) {
		double sd = sqrt(b[i].variance);
		if (!(fabs(b[i].hits - b[i].expected) <= 4.5 * sd + 1e-6))
			fail_msg("%s, bucket %d: %d of %d came true, expected %g +- %g", name, i, b[i].hits,
				 b[i].count, b[i].expected, sd);
		judged += b[i].variance > 1;
	}
	assert_true(judged > 0);
	sequence_free(&s);
}

static void test_calibrated(void **state)
{
	(void)state;
	for (int i = 0; i < LABELS; i++)
		assert_calibrated(label[i], 80);
}

static void test_calibrated_without_gap(void **state)
{
	(void)state;
	for (int i = 0; i < FULL; i++)
		assert_calibrated(full[i], 180);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sees_all),
		cmocka_unit_test(test_near_is_known),
		cmocka_unit_test(test_calibrated),
		cmocka_unit_test(test_calibrated_without_gap),
	};
	return cmocka_run_group_tests_name("data readers", tests, NULL, NULL);
}
