#include "rng.h"

#include "err.h"

#include <math.h>

static void round_once(uint32_t x[4], const uint32_t key[2])
{
	uint64_t even = (uint64_t)0xd2511f53 * x[0];
	uint64_t odd = (uint64_t)0xcd9e8d57 * x[2];
	x[0] = (uint32_t)(odd >> 32) ^ x[1] ^ key[0];
	x[1] = (uint32_t)odd;
	x[2] = (uint32_t)(even >> 32) ^ x[3] ^ key[1];
	x[3] = (uint32_t)even;
}

void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
	uint32_t x[4] = { counter[0], counter[1], counter[2], counter[3] };
	uint32_t k[2] = { key[0], key[1] };
	for (int round = 0; round < 10; round++) {
		round_once(x, k);
		k[0] += 0x9e3779b9; /* the golden ratio */
		k[1] += 0xbb67ae85; /* sqrt(3) - 1 */
	}
	for (int i = 0; i < 4; i++)
		out[i] = x[i];
}

struct rng rng_at(uint64_t seed, enum stream stream, uint64_t index)
{
	return (struct rng){
		.key = { (uint32_t)seed, (uint32_t)(seed >> 32) },
		.counter = { 0, (uint32_t)stream, (uint32_t)index, (uint32_t)(index >> 32) },
	};
}

uint32_t rng_word(struct rng *r)
{
	if (!r->left) {
		philox4x32(r->counter, r->key, r->word);
		r->counter[0]++;
		r->left = 4;
		BUG_IF(r->counter[0] == 0, "more than 2^34 words were drawn for one item");
	}
	return r->word[4 - r->left--];
}

/* Lemire 2019: the high word of word * limit, without the low words that would come up once too often. */
uint32_t rng_below(struct rng *r, uint32_t limit)
{
	BUG_IF(limit < 1, "a number below 0 was asked for");
	uint64_t product = (uint64_t)rng_word(r) * limit;
	if ((uint32_t)product < limit) {
		uint32_t excess = -limit % limit; /* 2^32 mod limit */
		while ((uint32_t)product < excess)
			product = (uint64_t)rng_word(r) * limit;
	}
	return (uint32_t)(product >> 32);
}

double rng_uniform(struct rng *r)
{
	uint64_t bits;
	do {
		bits = (uint64_t)rng_word(r) << 32;
		bits = (bits | rng_word(r)) >> 11;
	} while (!bits);
	return (double)bits * 0x1p-53;
}

double rng_normal(struct rng *r)
{
	if (r->has_spare) {
		r->has_spare = 0;
		return r->spare;
	}
	double radius = sqrt(-2 * log(rng_uniform(r)));
	double angle = 2 * M_PI * rng_uniform(r);
	r->spare = radius * sin(angle);
	r->has_spare = 1;
	return radius * cos(angle);
}

void rng_shuffle(struct rng *r, int32_t *item, int count)
{
	for (int i = count - 1; i > 0; i--) {
		int j = (int)rng_below(r, (uint32_t)i + 1);
		int32_t swap = item[i];
		item[i] = item[j];
		item[j] = swap;
	}
}
