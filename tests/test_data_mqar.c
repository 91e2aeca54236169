#include "tests/sequence_case.h"

/* Multi-query associative recall, held against the paper's rule of generation. */

enum { L = 64, SEQUENCES = 3000 };

static struct err check(const char *label, int length)
{
	struct method m = task_labelled(label);
	return task_of(&m)->check(&m, L, length);
}

static void sequence(const struct method *m, uint64_t index, int length, struct sequence *s)
{
	make(m, L, 9, index, length, s);
}

/* Keys of the lower half, values of the upper, all distinct; each key once more, at an even place. */
static void assert_form(const char *label, int pairs, int V, int length)
{
	struct method m = task_labelled(label);
	struct sequence s = sequence_new(length, 0x5a);
	for (uint64_t k = 0; k < 50; k++) {
		int asked = 0;
		sequence(&m, k, length, &s);
		for (int i = 0; i < pairs; i++) {
			int32_t key = s.token[2 * i], value = s.token[2 * i + 1];
			int again = 0;
			assert_true(key >= 1 && key < V / 2 && value >= V / 2 && value < V);
			for (int j = 0; j < i; j++)
				assert_true(key != s.token[2 * j] && value != s.token[2 * j + 1]);
			for (int t = 2 * pairs; t < length; t++) {
				if (s.token[t] != key)
					continue;
				again++;
				assert_true(t % 2 == 0 && s.target[t] == value);
				assert_int_equal(s.distance[t], t - 2 * i - 1);
			}
			assert_int_equal(again, 1);
		}
		for (int t = 0; t < length; t++)
			asked += s.target[t] >= 0;
		assert_int_equal(asked, pairs);
	}
	sequence_free(&s);
}

static void test_form(void **state)
{
	(void)state;
	assert_form("mqar", 4, 8192, L);
	assert_form("mqar(vocabulary=40,pairs=16)", 16, 40, L);
	assert_form("mqar(vocabulary=16,pairs=7,power=0)", 7, 16, 29);
	assert_form("mqar(pairs=64,power=1)", 64, 8192, 512);
}

/* The first key's gap is drawn from all, in twos of tokens. */
static void assert_gaps(const char *label, double power)
{
	enum { GAPS = (L - 8) / 2 };
	struct method m = task_labelled(label);
	struct sequence s = sequence_new(L, 0x5a);
	int count[GAPS] = { 0 };
	double p[GAPS], sum = 0;
	for (int g = 0; g < GAPS; g++)
		sum += p[g] = pow(g + 1, power - 1);
	for (int g = 0; g < GAPS; g++)
		p[g] /= sum;
	for (uint64_t k = 0; k < SEQUENCES; k++) {
		sequence(&m, k, L, &s);
		for (int t = 8; t < L; t++)
			count[(t - 8) / 2] += s.token[t] == s.token[0];
	}
	assert_drawn(count, p, GAPS, label);
	sequence_free(&s);
}

/* The second's is drawn from those left, each 1 / (1 - p) times as likely, where the first took one of probability
 * p. */
static void test_gaps_left(void **state)
{
	(void)state;
	enum { GAPS = 3, LENGTH = 2 * 2 + 2 * GAPS };
	static const double w[GAPS] = { 1, 1 / 2.0, 1 / 3.0 };
	struct method m = task_labelled("mqar(pairs=2,power=0)");
	struct sequence s = sequence_new(LENGTH, 0x5a);
	int count[GAPS * GAPS] = { 0 };
	double p[GAPS * GAPS] = { 0 }, sum = w[0] + w[1] + w[2];
	for (int a = 0; a < GAPS; a++)
		for (int b = 0; b < GAPS; b++)
			p[a * GAPS + b] = a == b ? 0 : w[a] / sum * w[b] / (sum - w[a]);
	for (uint64_t k = 0; k < SEQUENCES; k++) {
		int gap[2] = { 0 };
		sequence(&m, k, LENGTH, &s);
		for (int t = 4; t < LENGTH; t++)
			for (int i = 0; i < 2; i++)
				if (s.token[t] == s.token[2 * i])
					gap[i] = (t - 4) / 2;
		count[gap[0] * GAPS + gap[1]]++;
	}
	for (int i = 0; i < GAPS; i++)
		assert_int_equal(count[i * GAPS + i], 0);
	int six[6], n = 0;
	double wanted[6];
	for (int i = 0; i < GAPS * GAPS; i++)
		if (p[i] > 0) {
			six[n] = count[i];
			wanted[n++] = p[i];
		}
	assert_drawn(six, wanted, 6, "pairs of gaps");
	sequence_free(&s);
}

static void test_gaps(void **state)
{
	(void)state;
	assert_gaps("mqar", 0.01);
	assert_gaps("mqar(power=1)", 1);
	assert_gaps("mqar(power=2)", 2);
}

static void test_filler(void **state)
{
	(void)state;
	struct method zero = task_labelled("mqar(filler=zero)"), random = task_labelled("mqar(vocabulary=64)");
	struct sequence s = sequence_new(L, 0x5a);
	int count[64] = { 0 };
	for (uint64_t k = 0; k < SEQUENCES; k++) {
		sequence(&zero, k, L, &s);
		for (int t = 8; t < L; t++)
			assert_true((s.token[t] == 0) == (s.target[t] < 0));
		sequence(&random, k, L, &s);
		for (int t = 8; t < L; t++)
			if (s.target[t] < 0)
				count[s.token[t]]++;
	}
	/* A key comes up less: not where it is one of the four of its sequence. */
	for (int v = 0; v < 64; v++) {
		double expected = SEQUENCES * 52.0 / 60 * (v >= 1 && v < 32 ? 27 / 31.0 : 1);
		assert_true(fabs(count[v] - expected) < 5 * sqrt(expected));
	}
	sequence_free(&s);
}

static void test_refused(void **state)
{
	(void)state;
	assert_err(check("mqar", 15), ERR_USAGE, "length 15 is too short: 4 pairs");
	assert_ok(check("mqar", 16));
	assert_ok(check("mqar(vocabulary=16,pairs=7)", 64));
	assert_err(check("mqar(vocabulary=16,pairs=8)", 64), ERR_USAGE, "a vocabulary of 16 has 7 keys");
}

static void test_guessing(void **state)
{
	(void)state;
	struct method m = task_labelled("mqar");
	struct sequence s = sequence_new(L, 0x5a);
	double p[L];
	sequence(&m, 0, L, &s);
	reference_named(&m, "guessing among the stated values")->probability(&m, &s, L, L, p);
	for (int t = 0; t < L; t++)
		assert_true(p[t] == (s.target[t] >= 0 ? 0.25 : 0));
	reference_named(&m, "uniform over the values")->probability(&m, &s, L, L, p);
	for (int t = 0; t < L; t++)
		assert_true(p[t] == (s.target[t] >= 0 ? 1 / 4096.0 : 0));
	sequence_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_form),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_gaps_left),
		cmocka_unit_test(test_filler),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_guessing),
	};
	return cmocka_run_group_tests_name("data mqar", tests, NULL, NULL);
}
