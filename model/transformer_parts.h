#ifndef ROPEWALK_TRANSFORMER_PARTS_H
#define ROPEWALK_TRANSFORMER_PARTS_H

#include "model/attention.h"
#include "model/base/vec.h"
#include "model/transformer.h"

/* The inside of a transformer: private to transformer.c (its memory), forward.c and backward.c. N = B T rows. All work
 * but attention's is by row, in chunks whose size depends on the number of rows alone: about ROW_CHUNKS of them while
 * they have between ROW_CHUNK_LEAST and ROW_CHUNK rows, so that a few threads finish together and weights are not read
 * too often. */

#define ROW_CHUNK 256
#define ROW_CHUNK_LEAST 64
#define ROW_CHUNKS 8

/* One layer's activations, kept for the backward pass. */
struct layer_activations {
	real *x;                   /* [N][C] the residual stream as the layer meets it */
	real *normed, *rstd;       /* [N][C], [N] after the input norm */
	real *qkv;                 /* [N][3C] */
	real *gate, *output, *lse, *saved; /* see struct attention_layer */
	real *middle;              /* [N][C] the stream after attention */
	real *post_normed, *post_rstd;
	real *gate_up;             /* [N][2F] */
	real *hidden;              /* [N][F] */
};

/* One thread's scratch for a chunk of rows. */
struct row_scratch {
	real *normed, *rstd;     /* [ROW_CHUNK][C], [ROW_CHUNK] */
	real *hidden;            /* [ROW_CHUNK][F] */
	real *sigmoid;           /* [F] */
	real *logits;            /* [ROW_CHUNK][V] */
	double *sum;             /* [C] */
};

struct transformer {
	const struct model *model;
	struct place place;
	struct zones zones;
	struct attention *attention;
	struct arena memory;
	int B, T, chunks;
	size_t N, C, F;
	bool gradients;
	size_t position_reals; /* of the encoding's tensors of one layer */

	struct layer_activations *layer;
	real *vector; /* [T][C] what the encoding adds to the embeddings */

	/* What follows the last layer's attention works on the wanted rows alone, gathered: the R rows that are scored
	 * (or all). */
	int R;
	int64_t scored;
	int32_t *row;      /* [R] which rows these are */
	int32_t *wanted;   /* [N] where each row is among them, or -1 */
	real *x;           /* [R][C] the stream after the last layer */
	real *gathered;    /* [R][C] its attention's output */
	int32_t *row_target, *row_best;
	double *row_nll;
	real *head_normed, *head_rstd; /* [R][C], [R] */
	real *probability;             /* [R][V] */
	double *nll;                   /* [N] */
	int32_t *best;                 /* [N] */

	int32_t *token;                         /* [N] of the last forward pass */
	real *d_x, *d_middle, *d_below;         /* [N][C] gradients of the stream after, inside and before a layer */
	real *d_output, *d_qkv, *d_gate, *d_gate_up;
	double *norm_slot;                      /* [chunks][2C] norm weights' gradients by chunk */
	real *gate_slot;                        /* [chunks][position_reals] */
	int32_t *start, *order;                 /* see embedding_sort */
	struct row_scratch *scratch;            /* [threads] */
};

/* The encoding's parameters (and gradients) of a layer within a slab. */
static inline struct place_parameters own_parameters(const struct transformer *t, int layer, const real *value)
{
	const struct layout *l = &t->model->layout;
	return (struct place_parameters){ .shared = value + l->position, .layer = value + l->layer[layer].position };
}

static inline bool last_layer(const struct transformer *t, int layer)
{
	return layer + 1 == t->place.layers;
}

static inline struct attention_layer attention_layer(const struct transformer *t, int layer)
{
	const struct layer_activations *a = &t->layer[layer];
	return (struct attention_layer){ .own = own_parameters(t, layer, t->model->value), .qkv = a->qkv,
					 .gate = a->gate, .output = a->output, .lse = a->lse, .saved = a->saved,
					 .wanted = last_layer(t, layer) ? t->wanted : NULL };
}

/* Rows of what follows a layer's attention. */
static inline size_t rows_after_attention(const struct transformer *t, int layer)
{
	return last_layer(t, layer) ? (size_t)t->R : t->N;
}

static inline size_t chunk_size(size_t rows)
{
	size_t even = (rows / ROW_CHUNKS + VEC_LANES) / VEC_LANES * VEC_LANES;
	return even < ROW_CHUNK_LEAST ? ROW_CHUNK_LEAST : even > ROW_CHUNK ? ROW_CHUNK : even;
}

static inline int chunks_of(size_t rows)
{
	return (int)((rows + chunk_size(rows) - 1) / chunk_size(rows));
}

/* No number of rows up to this one is cut into more chunks. */
static inline size_t most_chunks(size_t rows)
{
	return rows / ROW_CHUNK + ROW_CHUNKS + 1;
}

/* Rows first .. first + count - 1 of a chunk; returns count. */
static inline int chunk_rows(size_t rows, int chunk, size_t *first)
{
	*first = (size_t)chunk * chunk_size(rows);
	return (int)(rows - *first < chunk_size(rows) ? rows - *first : chunk_size(rows));
}

#endif
