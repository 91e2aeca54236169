#ifndef ROPEWALK_ATTENTION_H
#define ROPEWALK_ATTENTION_H

#include "model/position/scaling.h"

/* Causal attention that streams: for each (sequence, head), blocks of queries by blocks of keys, with a running softmax
 * (Milakov and Gimelshein 2018, 1805.02867; Dao et al. 2022, 2205.14135, algorithm 1), so nothing of size T x T exists.
 * The backward pass makes each tile again from q, k, v and the rows' log-sum-exp.
 *
 * Row n = b T + t of a sequence b; q, k, v of a row stand one after the other in `qkv` [B T][3 C], a head's D reals
 * together. The encoding and the zones enter through their hooks (position.h, scaling.h). */

struct attention; /* scratch and shapes; one serves all layers */

struct attention_request {
	const struct place *place; /* T and positions set; must outlive the attention, as must the zones */
	const struct zones *zones;
	int B, threads;
	bool gradients;
};

/* Places the scratch in the arena; NULL while measuring. */
struct attention *attention_place(const struct attention_request *request, struct arena *a);

/* One layer's arrays. N = B T. */
struct attention_layer {
	const struct place_parameters own; /* the encoding's parameters */
	const real *qkv;  /* [N][3C] as projected, not rotated */
	const real *gate; /* [N][H][gate_reals] */
	real *output;     /* [N][C] */
	real *lse;        /* [B][H][T] log-sum-exp of each row's logits */
	real *saved;      /* [B][H][T][saved_reals] */
	real *scores;     /* [B][H][T][T] takes the logits of the keys that are seen; NULL: they are not kept */
	const int32_t *wanted; /* [N] negative where no one reads the output row, which may then be left out; or NULL */
};

/* Makes the table of this layer (`prepare`), then the output. Not inside a parallel region. */
void attention_forward(struct attention *a, const struct attention_layer *l);

/* d_output [N][C] (0 where not wanted) -> d_qkv [N][3C], overwritten; d_gate [N][H][gate_reals], overwritten; adds to
 * the encoding's parameter gradients. */
void attention_backward(struct attention *a, const struct attention_layer *l, const real *d_output, real *d_qkv,
			real *d_gate, struct place_gradients own);

#endif
