#ifndef ROPEWALK_ATTENTION_H
#define ROPEWALK_ATTENTION_H

#include "model/position/zones.h"

/* Causal attention that streams: for each (sequence, head), blocks of queries by blocks of keys, with a running softmax
 * (Milakov and Gimelshein 2018, 1805.02867; Dao et al. 2022, 2205.14135, algorithm 1), so nothing of size T x T exists.
 * The backward pass makes each tile again from q, k, v and the rows' log-sum-exp.
 *
 * Row n = b T + t of a sequence b; q, k, v of a row stand one after the other in `qkv` [B T][3 C], a head's D reals
 * together. The encoding and the zones enter through their hooks (position.h, scaling.h). */

struct attention; /* scratch and shapes; one serves all layers */

struct attention_request {
	const struct place *place; /* T and positions set; must outlive the attention, as must the zones */
	const struct zones *zones; /* [1], or with `each` one a sequence, alike in their intervals */
	const struct pair_sets *pairs; /* NULL: all scaled */
	int B, threads;
	int layers; /* that are at work at once */
	bool each;  /* sequences differ in their positions */
	bool ssmax; /* see struct attention_layer */
	bool gradients;
	bool turned_keys; /* keys stand in `qkv` as attention_turn_key left them, and are not rotated again */
};

/* Places the scratch in the arena; NULL while measuring. */
struct attention *attention_place(const struct attention_request *request, struct arena *a);

/* To be called when the zones have changed: their positions or frequencies, not their intervals. */
void attention_moved(struct attention *a);

/* The most queries that are at work together. */
#define QUERY_BLOCK 96

/* What a probe is shown: some queries of one head against some keys. */
struct attention_look {
	int layer, index, thread; /* head `index` = b H + h, by which thread */
	int rows;                 /* of one block of queries, */
	const int *query;         /* [rows] rising: which tokens of the sequence */
	const struct tile *tile;  /* row r sees columns low[r] .. high[r] - 1 of it; q and k are rotated */
	int key;                  /* the token of its first column */
	const real *logits;       /* [rows][TILE_STRIDE] final ones; -inf where the encoding masks a key */
};

/* Looks on in a forward pass and changes nothing. A block of queries is shown tile by tile, then `finish` is called,
 * with `tile` and `logits` NULL; all by one thread, but several heads at once. Rows that are not wanted may be left
 * out. */
struct attention_probe {
	void (*look)(void *data, const struct attention_look *at);
	void (*finish)(void *data, const struct attention_look *at);
	void *data;
};

/* One layer's arrays. N = B T. */
struct attention_layer {
	int index; /* 0 .. layers - 1 */
	const struct place_parameters own; /* the encoding's parameters */
	const real *ssmax; /* [H] s: query i is multiplied by s ln(i + 1) (Nakanishi 2025, 2501.19399, equation 3) */
	const real *qkv;  /* [N][3C] as projected, not rotated */
	real *gate;       /* [N][H][gate_reals] as `gate` makes them; the forward pass completes them (gates_ready) */
	real *output;     /* [N][C] */
	real *lse;        /* [B][H][T] log-sum-exp of each row's logits */
	real *saved;      /* [B][H][T][saved_reals] */
	real *scores;     /* [B][H][T][T] takes the logits of the keys that are seen; NULL: they are not kept */
	const int32_t *wanted; /* [N] negative where no one reads the output row, which may then be left out; or NULL */
	const struct attention_probe *probe; /* or NULL */
};

/* What a backward pass takes and makes: d_output [N][C] (0 where not wanted) -> d_qkv [N][3C] and d_gate
 * [N][H][gate_reals], both overwritten. */
struct attention_gradients {
	const real *d_output;
	real *d_qkv, *d_gate;
};

/* The gradients of a layer's parameters: those of the encoding are added to, `ssmax` [H] is overwritten. */
struct attention_parameters {
	struct place_gradients own;
	real *ssmax;
};

/* A whole layer: makes its table (`prepare`), then the output. Backward also makes the parameters' gradients. Not inside
 * a parallel region. */
void attention_forward(struct attention *a, const struct attention_layer *l);
void attention_backward(struct attention *a, const struct attention_layer *l, struct attention_gradients g,
			struct attention_parameters to);

/* The same in parts, for who takes some sequences through all layers: makes the layer's table; then, inside a parallel
 * region, each head `index` = b H + h in any order; after all of the backward pass, the parameter gradients. Only where
 * attention_in_parts: not if layers or queries differ in their angles. The bits are the same. */
bool attention_in_parts(const struct attention *a);
void attention_prepare(struct attention *a, const struct attention_layer *l);
void attention_head_forward(const struct attention *a, const struct attention_layer *l, int index, int thread);
void attention_head_backward(const struct attention *a, const struct attention_layer *l, struct attention_gradients g,
			     int index, int thread);
void attention_finish(struct attention *a, const struct attention_layer *l, struct attention_parameters to);

/* One query of each sequence at a time, for who decodes: t = 0, 1, 2 ..., with q, k, v and gates of the rows up to it.
 * attention_enter_row makes the layer's table and the angles, where they are not there already; outside a parallel
 * region. Then, inside one, each head's row. */
void attention_enter_row(struct attention *a, const struct attention_layer *l, int t);
void attention_row_forward(const struct attention *a, const struct attention_layer *l, int index, int t, int thread);

/* Rotates head `index`'s key t, k [D], in place, by the zone that holds query t. Only where zones_turn_once. */
void attention_turn_key(const struct attention *a, const struct attention_layer *l, int index, int t, int thread,
			real *k);

#endif
