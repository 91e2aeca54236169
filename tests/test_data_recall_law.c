#include "tests/recall_case.h"

/* Recall draws what the study says, as often as it says: Pearson's chi-square with fixed seeds. */

enum { SAMPLES = 20000 };

/* Which of the pairs stated so far, in order of statement, each query asks for. */
static void count_asked(const struct sequence *s, int length, int asked[9][8])
{
	int32_t stated[8];
	int n = 0;
	for (int t = 1; t < length; t++) {
		if (!key(s->token[t]))
			continue;
		if (s->target[t] < 0) {
			stated[n++] = s->token[t];
			continue;
		}
		int i = 0;
		while (i < n && stated[i] != s->token[t])
			i++;
		assert_true(i < n);
		asked[n][i]++;
	}
}

static void test_queries_are_uniform(void **state)
{
	(void)state;
	struct method m = recall(8, "all");
	struct sequence s = sequence_new(64, 0x5a);
	int asked[9][8] = { { 0 } };
	for (uint64_t k = 0; k < SAMPLES; k++) {
		make(&m, 64, 11, k, 64, &s);
		count_asked(&s, 64, asked);
	}
	for (int n = 2; n <= 8; n++)
		assert_drawn(asked[n], NULL, n, "pair asked for");
	sequence_free(&s);
}

static void test_tokens_are_uniform(void **state)
{
	(void)state;
	enum { ORDERED = 32 * 31 };
	static int keys[ORDERED], values[32 * 32], last_value[32], fillers[32];
	struct method m = recall(8, "all");
	struct sequence s = sequence_new(64, 0x5a);
	for (uint64_t k = 0; k < SAMPLES; k++) {
		make(&m, 64, 12, k, 64, &s);
		int32_t stated[8][2];
		int n = 0;
		for (int t = 1; t < 64; t++) {
			if (value(s.token[t])) {
				stated[n][0] = s.token[t - 1] - KEY;
				stated[n++][1] = s.token[t] - VALUE;
			} else if (filler(s.token[t])) {
				fillers[s.token[t] - FILLER]++;
			}
		}
		assert_int_equal(n, 8);
		/* The second key is one of 31: those above the first move down by one. */
		keys[stated[0][0] * 31 + stated[1][0] - (stated[1][0] > stated[0][0])]++;
		values[stated[0][1] * 32 + stated[1][1]]++;
		last_value[stated[7][1]]++;
	}
	assert_drawn(keys, NULL, ORDERED, "first two keys");
	assert_drawn(values, NULL, 32 * 32, "first two values");
	assert_drawn(last_value, NULL, 32, "last value");
	assert_drawn(fillers, NULL, 32, "fillers");
	sequence_free(&s);
}

static double choose(int n, int k)
{
	return k < 0 || k > n ? 0 : exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1));
}

/* M items of which N are pairs, shuffled; then the first pair changes places with item 0. Item j > 0 is a pair where it
 * was one and not the first: N/M - C(M-1-j, N-1) / C(M, N). */
static double pair_at(int m, int n, int j)
{
	return j == 0 ? 1 : (double)n / m - choose(m - 1 - j, n - 1) / choose(m, n);
}

/* The second pair is item j: one pair at one of the j items before, N - 2 among the M - 1 - j after. */
static double second_pair_at(int m, int n, int j)
{
	return j * choose(m - 1 - j, n - 2) / choose(m, n);
}

static void assert_pairs_at(const int *at, int m, int n)
{
	assert_int_equal(at[0], SAMPLES);
	assert_true(fabs(pair_at(m, n, 1) - (double)n * (n - 1) / (m * (m - 1.0))) < 1e-12);
	for (int j = 1; j < m; j++) {
		double p = pair_at(m, n, j), sd = sqrt(SAMPLES * p * (1 - p));
		if (!(fabs(at[j] - SAMPLES * p) < 4.5 * sd))
			fail_msg("item %d is a pair %d times, expected %g +- %g", j, at[j], SAMPLES * p, sd);
	}
}

static void test_places_of_items(void **state)
{
	(void)state;
	enum { N = 8, M = 55 };
	int at[M] = { 0 }, second[M] = { 0 }, last[ITEMS] = { 0 }, middle[ITEMS] = { 0 };
	double p[M], kinds[ITEMS];
	struct method m = recall(N, "all");
	struct sequence s = sequence_new(64, 0x5a);
	for (uint64_t k = 0; k < SAMPLES; k++) {
		make(&m, 64, 13, k, 64, &s);
		enum item kind[64];
		assert_int_equal(read_items(&s, 64, kind), M);
		for (int j = 0, pairs = 0; j < M; j++) {
			at[j] += kind[j] == PAIR;
			pairs += kind[j] == PAIR;
			second[j] += kind[j] == PAIR && pairs == 2;
		}
		middle[kind[20]]++;
		last[kind[M - 1]]++;
	}
	assert_pairs_at(at, M, N);
	for (int j = 0; j < M; j++)
		p[j] = second_pair_at(M, N, j);
	assert_drawn(second + 1, p + 1, M - 1, "place of the second pair");
	for (int i = 0; i < 2; i++) {
		kinds[PAIR] = pair_at(M, N, i ? M - 1 : 20);
		kinds[QUERY] = (1 - kinds[PAIR]) * 16 / 47;
		kinds[ECHO_ITEM] = (1 - kinds[PAIR]) * 11 / 47;
		kinds[FILLER_ITEM] = (1 - kinds[PAIR]) * 20 / 47;
		assert_drawn(i ? last : middle, kinds, ITEMS, i ? "last item" : "item 20");
	}
	sequence_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queries_are_uniform),
		cmocka_unit_test(test_tokens_are_uniform),
		cmocka_unit_test(test_places_of_items),
	};
	return cmocka_run_group_tests_name("data recall_law", tests, NULL, NULL);
}
