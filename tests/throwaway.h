#ifndef ROPEWALK_TESTS_THROWAWAY_H
#define ROPEWALK_TESTS_THROWAWAY_H

#include "model/position/zones.h"

/* Encodings and a scaling that exist to prove the hooks: each uses some that no listed one needs yet. */

/* Learned vectors a clipped distance on q.k and on the values (after Shaw et al. 2018): logits, values, prepare. */
extern const struct position throwaway_distance_vectors;
/* Gates from x, their logarithms summed along the row (after Lin et al. 2025): gate, carry, saved. */
extern const struct position throwaway_forget;
/* Gates from q.k inside logits, counted to positions that pick learned vectors (after Golovneva et al. 2024). */
extern const struct position throwaway_contextual;
/* Learned inverse frequencies and attention factor: prepares_inv_freq, rotate_back's own gradients. */
extern const struct position throwaway_frequencies;

/* RoPE whose scores decay with the distance (after Sun et al. 2022): centred on the block of queries. */
extern const struct position throwaway_decay;

/* All of them, then NULL. */
extern const struct position *const throwaway_encodings[];

/* Distances clipped at 5, as a second zone of the same queries with constant positions (after Su 2023's ReRoPE). */
extern const struct scaling throwaway_clipped;

#endif
