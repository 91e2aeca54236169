#ifndef ROPEWALK_RNG_H
#define ROPEWALK_RNG_H

#include <stdint.h>

/* Counter-based random numbers: Philox4x32-10 (Salmon et al., SC 2011, section 3.3). Every number is a function of
 * (seed, stream, index, draw), so any batch can be made again on its own and no state is ever saved. */

/* The purposes numbers are drawn for; different streams never share a counter. */
enum stream {
	STREAM_TRAIN = 1,    /* training batches */
	STREAM_TUNE = 2,     /* anything that chooses an option */
	STREAM_REPORT = 3,   /* what tables show */
	STREAM_INIT = 4,     /* initial weights */
	STREAM_LENGTH = 5,   /* lengths of training batches */
	STREAM_POSITION = 6, /* positions of tokens */
	STREAM_SAMPLE = 7,   /* tokens drawn from a model */
};

/* One application of the cipher: 10 rounds. */
void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

struct rng {
	uint32_t key[2];     /* the seed */
	uint32_t counter[4]; /* block, stream, index low, index high */
	uint32_t word[4];    /* the current block */
	int left;            /* words of it not handed out yet */
	double spare;        /* second value of the last normal pair */
	int has_spare;
};

/* The generator of item `index` of a stream. */
struct rng rng_at(uint64_t seed, enum stream stream, uint64_t index);

uint32_t rng_word(struct rng *r);                  /* uniform over 32 bits */
uint32_t rng_below(struct rng *r, uint32_t limit); /* uniform over 0 .. limit - 1, without bias; limit >= 1 */
double rng_uniform(struct rng *r);                 /* uniform over (0, 1), 53 bits */
double rng_normal(struct rng *r);                  /* N(0, 1), Box and Muller 1958 */

/* A uniform permutation of item[0 .. count - 1] (Fisher and Yates). */
void rng_shuffle(struct rng *r, int32_t *item, int count);

#endif
