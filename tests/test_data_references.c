#include "tests/sequence_case.h"

/* Baselines: distributions over the vocabulary, and as right as they claim. The ideal readers are held against samples:
 * what they expect of a guess, summed over all that see alike, must be how often the guess came true. */

static const char window[] = "the ideal reader of the last train_length tokens";

/* ---- any task: a distribution wherever its group is scored ---- */

static void assert_distribution(const struct method *m, const struct task_reference *r, struct sequence *s,
				int train_length, int length)
{
	int V = task_of(m)->vocabulary(m);
	double *p = TAKE(double, length), *sum = TAKE(double, length);
	bool *mine = TAKE(bool, length);
	r->probability(m, s, train_length, length, p);
	for (int t = 0; t < length; t++) {
		mine[t] = s->target[t] >= 0 && s->group[t] == r->group;
		assert_true(mine[t] ? p[t] > 0 && p[t] <= 1 : p[t] == 0);
		sum[t] = 0;
	}
	for (int v = 0; v < V; v++) {
		for (int t = 0; t < length; t++)
			if (mine[t])
				s->target[t] = v;
		r->probability(m, s, train_length, length, p);
		for (int t = 0; t < length; t++)
			sum[t] += p[t];
	}
	for (int t = 0; t < length; t++)
		assert_close(sum[t], mine[t], 1e-12);
	free(p);
	free(sum);
	free(mine);
}

static void test_distributions(void **state)
{
	(void)state;
	static const struct {
		int train_length, length;
	} row[] = { { 64, 64 }, { 64, 200 }, { 20, 130 }, { 3, 90 }, { 1, 80 } };
	for (int i = 0; task_at(i); i++) {
		struct method m = task_ready(task_at(i));
		for (const struct task_reference *r = task_of(&m)->references; r && r->name; r++) {
			assert_true(r->group >= 0 && r->group < TASK_GROUPS && task_of(&m)->groups[r->group]);
			assert_ptr_equal(reference_named(&m, r->name), r);
			for (int j = 0; j < 5; j++) {
				struct sequence s = sequence_new(row[j].length, 0x5a);
				make(&m, 64, 31, (uint64_t)j, row[j].length, &s);
				assert_distribution(&m, r, &s, row[j].train_length, row[j].length);
				sequence_free(&s);
			}
		}
	}
}

/* Who sees everything knows everything. */
static void test_window_sees_all(void **state)
{
	(void)state;
	static const char *const label[] = { "recall", "recall(pairs=1)", "recall(grow=filler)", "copy",
					     "copy(gap=0)" };
	double p[300];
	for (int i = 0; i < 5; i++) {
		struct method m = task_labelled(label[i]);
		for (int length = 64; length <= 300; length += 118) {
			struct sequence s = sequence_new(length, 0x5a);
			make(&m, 64, 32, 0, length, &s);
			reference_named(&m, window)->probability(&m, &s, length, length, p);
			for (int t = 0; t < length; t++)
				assert_true(p[t] == (s.target[t] >= 0 && s.group[t] == 0));
			sequence_free(&s);
		}
	}
}

/* ---- what was expected against what came true ---- */

struct bucket {
	double expected, variance, hits;
	int count;
};

static void add_guess(struct bucket *b, double p, bool hit)
{
	b->expected += p;
	b->variance += p * (1 - p);
	b->hits += hit;
	b->count++;
}

/* Returns whether the bucket was full enough to judge. */
static bool assert_calibrated(const struct bucket *b, const char *what, int i, int j)
{
	double sd = sqrt(b->variance);
	if (!(fabs(b->hits - b->expected) <= 4.5 * sd + 1e-9 * b->expected))
		fail_msg("%s, bucket %d %d: %g of %d came true, expected %g +- %g", what, i, j, b->hits, b->count,
			 b->expected, sd);
	return b->count > 300;
}

/* ---- recall ---- */

enum { KEY = 2, VALUE = 34, RECALL_FILLER = 66, PAIRS = 8, SAMPLES = 12000 };

/* What the reader of tokens first .. t sees of the query at t: pairs not wholly seen, whether its first token is the
 * value of one of them, how often this key was asked for before, whether other keys were that it cannot answer. */
struct view {
	int hidden, asked;
	bool torn, answered, others;
};

static bool in_range(int32_t token, int32_t low, int32_t high)
{
	return token >= low && token < high;
}

static struct view look(const struct sequence *s, int first, int t)
{
	struct view v = { .torn = in_range(s->token[first], VALUE, RECALL_FILLER) };
	bool known[RECALL_FILLER] = { false };
	for (int i = 0; i < t; i++)
		v.hidden += i < first && in_range(s->token[i], KEY, VALUE) &&
			    in_range(s->token[i + 1], VALUE, RECALL_FILLER);
	for (int i = first; i < t; i++) {
		if (!in_range(s->token[i], KEY, VALUE))
			continue;
		if (in_range(s->token[i + 1], VALUE, RECALL_FILLER))
			known[s->token[i]] = true;
		else if (s->token[i] == s->token[t])
			v.asked++;
		else
			v.others |= !known[s->token[i]];
	}
	v.answered = known[s->token[t]];
	return v;
}

enum { SEEN = 12, RECALL_LENGTH = 48 };

/* Guesses, made without knowing the target, of every query that the reader has no answer to: the value at the edge of
 * what it sees; the value after that in the alphabet; the last value seen. */
static int32_t guess_of(const struct sequence *s, int kind, int first, int t)
{
	int32_t edge = s->token[first];
	if (kind == 0)
		return edge;
	if (kind == 1)
		return in_range(edge, VALUE, RECALL_FILLER) ? VALUE + (edge - VALUE + 1) % 32 : VALUE;
	while (t > first && !in_range(s->token[t], VALUE, RECALL_FILLER))
		t--;
	return s->token[t];
}

static void try_guess(const struct method *m, struct sequence *s, int kind, struct bucket b[2][PAIRS + 1][8])
{
	double p[RECALL_LENGTH];
	int32_t truth[RECALL_LENGTH];
	memcpy(truth, s->target, sizeof truth);
	for (int t = SEEN; t < RECALL_LENGTH; t++)
		if (truth[t] >= 0 && s->group[t] == 0)
			s->target[t] = guess_of(s, kind, t - SEEN + 1, t);
	reference_named(m, window)->probability(m, s, SEEN, RECALL_LENGTH, p);
	for (int t = SEEN; t < RECALL_LENGTH; t++) {
		if (truth[t] < 0 || s->group[t] != 0 || s->target[t] < 0)
			continue;
		struct view v = look(s, t - SEEN + 1, t);
		int asked = v.asked < 3 ? v.asked : 3;
		if (v.answered)
			assert_true(p[t] == (s->target[t] == truth[t]));
		else
			add_guess(&b[v.torn][v.hidden][asked * 2 + v.others], p[t], s->target[t] == truth[t]);
	}
	memcpy(s->target, truth, sizeof truth);
}

static void test_recall_posterior(void **state)
{
	(void)state;
	static struct bucket bucket[3][2][PAIRS + 1][8];
	struct method m = method_default(task_named("recall"));
	struct sequence s = sequence_new(RECALL_LENGTH, 0x5a);
	for (uint64_t k = 0; k < SAMPLES; k++) {
		make(&m, RECALL_LENGTH, 33, k, RECALL_LENGTH, &s);
		for (int kind = 0; kind < 3; kind++)
			try_guess(&m, &s, kind, bucket[kind]);
	}
	sequence_free(&s);
	int full[3] = { 0 };
	for (int kind = 0; kind < 3; kind++)
		for (int i = 0; i < 2 * (PAIRS + 1); i++)
			for (int j = 0; j < 8; j++)
				full[kind] += assert_calibrated(&bucket[kind][i / (PAIRS + 1)][i % (PAIRS + 1)][j],
								"recall", i, j);
	assert_true(full[0] > 30 && full[1] > 30 && full[2] > 30);
	/* One pair unseen, its value at the edge: nothing is left to guess. */
	for (int j = 0; j < 8; j++) {
		const struct bucket *sure = &bucket[0][1][1][j];
		assert_true(sure->hits == sure->count && sure->expected == sure->count);
	}
	assert_true(bucket[0][1][1][0].count > 0);
}

static void test_recall_by_hand(void **state)
{
	(void)state;
	int32_t token[] = { 0, 5, 40, 6, 41, 7, 42, 66, 5, 6, 7, 98 };
	int32_t target[] = { -1, -1, -1, -1, -1, -1, -1, -1, 40, 41, 42, 7 };
	uint8_t group[12] = { [11] = 1 };
	static const struct {
		int train_length;
		double p[3];
	} row[] = {
		{ 1, { 1 / 32.0, 1 / 32.0, 1 / 32.0 } }, { 3, { 1 / 48.0, 1 / 32.0, 1 / 32.0 } },
		{ 4, { 1 / 32.0, 1 / 48.0, 1 / 32.0 } }, { 5, { 1 / 64.0, 1 / 32.0, 17 / 48.0 } },
		{ 6, { 1 / 32.0, 33 / 64.0, 1 } },	 { 7, { 1, 1, 1 } },
		{ 8, { 1, 1, 1 } },
	};
	struct sequence s = { .token = token, .target = target, .group = group };
	struct method m = method_default(task_named("recall"));
	for (int i = 0; i < 7; i++) {
		double p[12];
		reference_named(&m, window)->probability(&m, &s, row[i].train_length, 12, p);
		for (int t = 0; t < 12; t++)
			assert_close(p[t], t >= 8 && t < 11 ? row[i].p[t - 8] : 0, 1e-15);
	}
}

/* ---- copy ---- */

enum { SYMBOL = 2, COPY_FILLER = 66, SEP = 1, COPY_LENGTH = 80 };

/* The unseen symbols, by what stands in the last `seen` tokens; returns how many. */
static int unseen(const struct sequence *s, int seen, int t, bool out[COPY_FILLER])
{
	int count = COPY_FILLER - SYMBOL;
	for (int v = 0; v < COPY_FILLER; v++)
		out[v] = v >= SYMBOL;
	for (int i = t - seen + 1 > 0 ? t - seen + 1 : 0; i <= t; i++) {
		if (!in_range(s->token[i], SYMBOL, COPY_FILLER))
			continue;
		count -= out[s->token[i]];
		out[s->token[i]] = false;
	}
	return count;
}

/* With a gap all symbols are distinct, so that what the reader sees rules itself out. */
static void test_copy_posterior(void **state)
{
	(void)state;
	static struct bucket bucket[COPY_FILLER];
	struct method m = method_default(task_named("copy"));
	struct sequence s = sequence_new(COPY_LENGTH, 0x5a);
	double p[COPY_LENGTH];
	int blind = 0;
	for (uint64_t k = 0; k < SAMPLES / 2; k++) {
		make(&m, 64, 34, k, COPY_LENGTH, &s);
		int seen = 4 + (int)(k % 40);
		reference_named(&m, window)->probability(&m, &s, seen, COPY_LENGTH, p);
		for (int t = 0; t < COPY_LENGTH; t++) {
			if (s.target[t] < 0)
				continue;
			if (s.distance[t] < seen) {
				assert_true(p[t] == 1);
				continue;
			}
			bool left[COPY_FILLER];
			int count = unseen(&s, seen, t, left), first = SYMBOL;
			assert_true(left[s.target[t]]);
			assert_close(p[t], 1.0 / count, 1e-15);
			while (!left[first])
				first++;
			add_guess(&bucket[count], 1.0 / count, s.target[t] == first);
			blind++;
		}
	}
	sequence_free(&s);
	int full = 0;
	for (int i = 0; i < COPY_FILLER; i++)
		full += assert_calibrated(&bucket[i], "copy", i, 0);
	assert_true(full > 10 && blind > 1000);
}

/* Symbols of another shuffle rule nothing out: they come as often as those not seen. */
static void test_copy_shuffles(void **state)
{
	(void)state;
	enum { LENGTH = 302, LAST = 40 };
	struct bucket other = { 0 }, same = { 0 };
	struct method m = task_labelled("copy(gap=0)");
	struct sequence s = sequence_new(LENGTH, 0x5a);
	double p[LENGTH];
	for (uint64_t k = 0; k < 500; k++) {
		make(&m, 64, 35, k, LENGTH, &s);
		/* Symbol 74 is the eleventh of the second shuffle; behind it are the last ten, before them others. */
		int t = 151 + 74;
		assert_int_equal(s.token[151], SEP);
		int32_t truth = s.target[t];
		for (int back = 1; back < LAST; back++) {
			s.target[t] = s.token[t + 1 - back];
			reference_named(&m, window)->probability(&m, &s, LAST, LENGTH, p);
			bool ruled_out = back <= 10;
			assert_true(ruled_out ? p[t] == 0 : p[t] == 0 || fabs(p[t] - 1 / 54.0) < 1e-15);
			add_guess(ruled_out ? &same : &other, p[t], s.target[t] == truth);
		}
	}
	sequence_free(&s);
	assert_calibrated(&other, "another shuffle", 0, 0);
	assert_true(same.hits == 0 && other.hits > 100);
}

static void assert_copy(const char *label, struct sequence *s, int length, int train_length, int first,
			const double *want, int count)
{
	double p[300];
	struct method m = task_labelled(label);
	reference_named(&m, window)->probability(&m, s, train_length, length, p);
	for (int t = 0; t < length; t++)
		assert_true(s->target[t] >= 0 || p[t] == 0);
	for (int i = 0; i < count; i++)
		assert_close(p[first + i], want[i], 1e-15);
}

static void test_copy_by_hand(void **state)
{
	(void)state;
	int32_t token[] = { 0, 66, 2, 3, 4, 5, 67, 1, 2, 3, 4, 5, 68 };
	int32_t target[] = { -1, -1, -1, -1, -1, -1, -1, 2, 3, 4, 5, -1, -1 };
	uint8_t group[13] = { 0 };
	struct sequence s = { .token = token, .target = target, .group = group };
	assert_copy("copy", &s, 13, 6, 7, (const double[]){ 1, 1, 1, 1 }, 4);
	assert_copy("copy", &s, 13, 5, 7, (const double[]){ 1 / 61.0, 1 / 61.0, 1 / 61.0, 1 / 61.0 }, 4);
	assert_copy("copy", &s, 13, 2, 7, (const double[]){ 1 / 64.0, 1 / 63.0, 1 / 62.0, 1 / 62.0 }, 4);
	assert_copy("copy", &s, 13, 1, 7, (const double[]){ 1 / 64.0, 1 / 63.0, 1 / 63.0, 1 / 63.0 }, 4);
	double p[13];
	struct method m = task_labelled("copy");
	reference_named(&m, "guessing among the symbols of s")->probability(&m, &s, 64, 13, p);
	for (int t = 0; t < 13; t++)
		assert_true(p[t] == (t >= 7 && t < 11 ? 0.25 : 0));
	reference_named(&m, "uniform over the symbols")->probability(&m, &s, 64, 13, p);
	for (int t = 0; t < 13; t++)
		assert_true(p[t] == (t >= 7 && t < 11 ? 1 / 64.0 : 0));
}

/* s is the alphabet and once more backwards. One place short of seeing the symbol, all others of its shuffle are seen:
 * it must be the one that is missing. */
static void test_copy_twice_the_alphabet(void **state)
{
	(void)state;
	enum { N = 128, LENGTH = 2 * N + 2, AGAIN = N + 1 };
	struct sequence s = sequence_new(LENGTH, 0);
	s.token[0] = 0;
	s.token[AGAIN] = SEP;
	for (int i = 0; i < N; i++)
		s.token[1 + i] = s.token[AGAIN + 1 + i] = SYMBOL + (i < 64 ? i : 127 - i);
	for (int t = 0; t < LENGTH; t++)
		s.target[t] = t >= AGAIN && t < AGAIN + N ? s.token[t + 1] : -1;
	double one[N], two[] = { 1 / 64.0, 1 / 63.0, 1 / 62.0, 1 / 61.0, 1 / 61.0 };
	for (int i = 0; i < N; i++)
		one[i] = 1;
	assert_copy("copy(gap=0)", &s, LENGTH, N + 1, AGAIN, one, N);
	assert_copy("copy(gap=0)", &s, LENGTH, N, AGAIN, one, N);
	assert_copy("copy(gap=0)", &s, LENGTH, 3, AGAIN + 64, two, 5);
	sequence_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distributions),
		cmocka_unit_test(test_window_sees_all),
		cmocka_unit_test(test_recall_posterior),
		cmocka_unit_test(test_recall_by_hand),
		cmocka_unit_test(test_copy_posterior),
		cmocka_unit_test(test_copy_shuffles),
		cmocka_unit_test(test_copy_by_hand),
		cmocka_unit_test(test_copy_twice_the_alphabet),
	};
	return cmocka_run_group_tests_name("data references", tests, NULL, NULL);
}
