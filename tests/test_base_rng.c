#include "model/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Random123, kat_vectors, philox4x32 10. */
static void published_answers(void **state)
{
	(void)state;
	static const struct {
		uint32_t counter[4], key[2], out[4];
	} known[] = {
		{ { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
		{ { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
		  { 0xffffffff, 0xffffffff },
		  { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
		{ { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
		  { 0xa4093822, 0x299f31d0 },
		  { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		uint32_t out[4];
		philox4x32(known[i].counter, known[i].key, out);
		for (int k = 0; k < 4; k++)
			assert_int_equal(out[k], known[i].out[k]);
	}
}

/* Words come from blocks 0, 1, 2, ... of the documented counter, in order. */
static void words_follow_the_counter(void **state)
{
	(void)state;
	const uint32_t key[2] = { 0x89abcdef, 0x01234567 };
	struct rng r = rng_at(0x0123456789abcdef, STREAM_TUNE, 0xfedcba9876543210);
	for (uint32_t block = 0; block < 5; block++) {
		const uint32_t counter[4] = { block, STREAM_TUNE, 0x76543210, 0xfedcba98 };
		uint32_t expected[4];
		philox4x32(counter, key, expected);
		for (int k = 0; k < 4; k++)
			assert_int_equal(rng_word(&r), expected[k]);
	}
}

static void same_place_same_numbers(void **state)
{
	(void)state;
	struct rng a = rng_at(7, STREAM_TRAIN, 41), b = rng_at(7, STREAM_TRAIN, 41);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(rng_word(&a), rng_word(&b));
		assert_int_equal(rng_below(&a, 1000), rng_below(&b, 1000));
		assert_true(rng_uniform(&a) == rng_uniform(&b));
		assert_true(rng_normal(&a) == rng_normal(&b));
	}
}

struct block {
	uint32_t word[4];
};

static int by_words(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct block));
}

/* Neighbouring seeds, streams and indices, and indices and seeds that differ in the high word alone. */
static void no_block_comes_twice(void **state)
{
	(void)state;
	static const uint64_t seed[] = { 1, 2, 1ull << 32, (1ull << 32) + 1 };
	static const uint64_t index[] = { 0, 1, 2, 3, 1ull << 32, 2ull << 32, UINT64_MAX };
	enum { SEEDS = 4, INDICES = 7, STREAMS = 4, BLOCKS = 500, ALL = SEEDS * INDICES * STREAMS * BLOCKS };
	struct block *all = malloc(ALL * sizeof *all);
	assert_non_null(all);
	int count = 0;
	for (int s = 0; s < SEEDS; s++)
		for (int i = 0; i < INDICES; i++)
			for (int stream = STREAM_TRAIN; stream <= STREAM_INIT; stream++) {
				struct rng r = rng_at(seed[s], (enum stream)stream, index[i]);
				for (int b = 0; b < BLOCKS; b++, count++)
					for (int k = 0; k < 4; k++)
						all[count].word[k] = rng_word(&r);
			}
	assert_int_equal(count, ALL);
	qsort(all, ALL, sizeof *all, by_words);
	int twice = 0;
	for (int i = 1; i < ALL; i++)
		twice += !by_words(&all[i - 1], &all[i]);
	free(all);
	assert_int_equal(twice, 0);
}

static double chi_square(const int *count, int cells, double expected)
{
	double sum = 0;
	for (int c = 0; c < cells; c++)
		sum += (count[c] - expected) * (count[c] - expected) / expected;
	return sum;
}

/* Within 5 standard deviations of its mean, on both sides. */
static void assert_uniform(const int *count, int cells, double expected)
{
	double freedom = cells - 1, chi = chi_square(count, cells, expected);
	assert_true(fabs(chi - freedom) < 5 * sqrt(2 * freedom));
}

static void below_is_uniform(void **state)
{
	(void)state;
	static const uint32_t limit[] = { 2, 3, 7, 10, 64, 1000 };
	for (size_t i = 0; i < sizeof limit / sizeof *limit; i++) {
		int count[1000] = { 0 };
		struct rng r = rng_at(2024, STREAM_TRAIN, i);
		for (uint32_t n = 0; n < 200 * limit[i]; n++) {
			uint32_t drawn = rng_below(&r, limit[i]);
			assert_true(drawn < limit[i]);
			count[drawn]++;
		}
		assert_uniform(count, (int)limit[i], 200);
	}
}

/* 3 x 2^30 values from 2^32 words: without rejection a product makes every third value twice as likely, a remainder
 * every value of the first third. */
static void below_rejects_the_excess(void **state)
{
	(void)state;
	int residue[3] = { 0 }, third[3] = { 0 };
	struct rng r = rng_at(5, STREAM_TRAIN, 0);
	for (int n = 0; n < 30000; n++) {
		uint32_t drawn = rng_below(&r, 3u << 30);
		assert_true(drawn < 3u << 30);
		residue[drawn % 3]++;
		third[drawn >> 30]++;
	}
	assert_uniform(residue, 3, 10000);
	assert_uniform(third, 3, 10000);
}

static void below_keeps_to_its_limit(void **state)
{
	(void)state;
	static const uint32_t limit[] = { 1, 2, 3, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff };
	for (size_t i = 0; i < sizeof limit / sizeof *limit; i++) {
		struct rng r = rng_at(11, STREAM_REPORT, i);
		uint32_t greatest = 0;
		for (int n = 0; n < 4000; n++) {
			uint32_t drawn = rng_below(&r, limit[i]);
			assert_true(drawn < limit[i]);
			greatest = drawn > greatest ? drawn : greatest;
		}
		assert_true(greatest >= limit[i] - 1 - limit[i] / 100);
	}
}

static void below_nothing_is_a_bug(void **state)
{
	(void)state;
	int status = 0;
	pid_t child = fork();
	if (!child) {
		struct rng r = rng_at(1, STREAM_TRAIN, 0);
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
		fclose(stderr);
		_exit((int)rng_below(&r, 0));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* Half of all words are refused for 2^31 + 1; what comes is still spread evenly. */
static void below_just_above_half(void **state)
{
	(void)state;
	int count[16] = { 0 };
	struct rng r = rng_at(12, STREAM_REPORT, 0);
	for (int n = 0; n < 16000; n++)
		count[rng_below(&r, 0x80000001) * 16ull / 0x80000001]++;
	assert_uniform(count, 16, 1000);
}

static void uniform_is_open_and_even(void **state)
{
	(void)state;
	enum { DRAWS = 200000, CELLS = 100 };
	int count[CELLS] = { 0 }, low_bit = 0;
	double sum = 0, squares = 0;
	struct rng r = rng_at(3, STREAM_TUNE, 9);
	for (int n = 0; n < DRAWS; n++) {
		double u = rng_uniform(&r);
		assert_true(u > 0 && u < 1);
		count[(int)(u * CELLS)]++;
		sum += u;
		squares += u * u;
		double grid = u * 0x1p53;
		assert_true(grid == floor(grid));
		low_bit += (uint64_t)grid & 1;
	}
	assert_uniform(count, CELLS, (double)DRAWS / CELLS);
	assert_true(fabs(sum / DRAWS - 0.5) < 5 * sqrt(1 / 12.0 / DRAWS));
	assert_true(fabs(squares / DRAWS - 1 / 3.0) < 5 * sqrt(4 / 45.0 / DRAWS));
	assert_true(abs(low_bit - DRAWS / 2) < 5 * sqrt(DRAWS / 4.0));
}

/* The two ends: words of nothing but zeros are drawn again, words of nothing but ones stay below 1. */
static void uniform_excludes_its_ends(void **state)
{
	(void)state;
	struct rng zeros = { .word = { 0, 0, 0, 1u << 11 }, .left = 4 };
	assert_true(rng_uniform(&zeros) == 0x1p-53);
	struct rng ones = { .word = { 0, 0, 0xffffffff, 0xffffffff }, .left = 2 };
	assert_true(rng_uniform(&ones) == 1 - 0x1p-53);
}

/* Moments of a normal sample, each within 5 of its standard errors, and no correlation inside a pair. */
static void normal_moments(void **state)
{
	(void)state;
	enum { PAIRS = 200000, DRAWS = 2 * PAIRS };
	double moment[5] = { 0 }, product = 0;
	struct rng r = rng_at(17, STREAM_INIT, 0);
	for (int p = 0; p < PAIRS; p++) {
		double pair[2];
		pair[0] = rng_normal(&r);
		pair[1] = rng_normal(&r);
		product += pair[0] * pair[1];
		for (int i = 0; i < 2; i++)
			for (int k = 1; k <= 4; k++)
				moment[k] += pow(pair[i], k) / DRAWS;
	}
	assert_true(fabs(moment[1]) < 5 * sqrt(1.0 / DRAWS));
	assert_true(fabs(moment[2] - 1) < 5 * sqrt(2.0 / DRAWS));
	assert_true(fabs(moment[3]) < 5 * sqrt(15.0 / DRAWS));
	assert_true(fabs(moment[4] - 3) < 5 * sqrt(96.0 / DRAWS));
	assert_true(fabs(product / PAIRS) < 5 * sqrt(1.0 / PAIRS));
}

static void normal_distribution(void **state)
{
	(void)state;
	enum { DRAWS = 200000, CELLS = 64 };
	int count[CELLS] = { 0 };
	struct rng r = rng_at(18, STREAM_INIT, 0);
	for (int n = 0; n < DRAWS; n++)
		count[(int)(0.5 * erfc(-rng_normal(&r) / sqrt(2)) * CELLS)]++;
	assert_uniform(count, CELLS, (double)DRAWS / CELLS);
}

static void shuffle_permutes(void **state)
{
	(void)state;
	enum { COUNT = 257 };
	for (int count = 0; count <= COUNT; count++) {
		int32_t item[COUNT + 1];
		int seen[COUNT + 1] = { 0 };
		struct rng r = rng_at(1, STREAM_TRAIN, (uint64_t)count);
		for (int i = 0; i <= COUNT; i++)
			item[i] = i;
		rng_shuffle(&r, item, count);
		for (int i = 0; i < count; i++) {
			assert_in_range(item[i], 0, count - 1);
			seen[item[i]]++;
		}
		for (int i = 0; i < count; i++)
			assert_int_equal(seen[i], 1);
		assert_int_equal(item[count], count);
	}
}

static void shuffle_is_uniform(void **state)
{
	(void)state;
	int count[24] = { 0 };
	struct rng r = rng_at(99, STREAM_TRAIN, 0);
	for (int n = 0; n < 24000; n++) {
		int32_t item[4] = { 0, 1, 2, 3 };
		int rank = 0;
		rng_shuffle(&r, item, 4);
		for (int i = 0; i < 3; i++) {
			int smaller = 0;
			for (int j = i + 1; j < 4; j++)
				smaller += item[j] < item[i];
			rank = rank * (4 - i) + smaller;
		}
		count[rank]++;
	}
	assert_uniform(count, 24, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_answers),
		cmocka_unit_test(words_follow_the_counter),
		cmocka_unit_test(same_place_same_numbers),
		cmocka_unit_test(no_block_comes_twice),
		cmocka_unit_test(below_is_uniform),
		cmocka_unit_test(below_rejects_the_excess),
		cmocka_unit_test(below_keeps_to_its_limit),
		cmocka_unit_test(below_nothing_is_a_bug),
		cmocka_unit_test(below_just_above_half),
		cmocka_unit_test(uniform_is_open_and_even),
		cmocka_unit_test(uniform_excludes_its_ends),
		cmocka_unit_test(normal_moments),
		cmocka_unit_test(normal_distribution),
		cmocka_unit_test(shuffle_permutes),
		cmocka_unit_test(shuffle_is_uniform),
	};
	return cmocka_run_group_tests_name("base rng", tests, NULL, NULL);
}
