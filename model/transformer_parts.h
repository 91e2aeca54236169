#ifndef ROPEWALK_TRANSFORMER_PARTS_H
#define ROPEWALK_TRANSFORMER_PARTS_H

#include "model/attention.h"
#include "model/transformer.h"

/* The inside of a transformer: private to transformer.c (its memory), forward.c and backward.c. N = B T rows. All work
 * but attention's is by row: chunks of ROW_CHUNK rows, whatever the number of threads. */

#define ROW_CHUNK 128

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
	real *x, *normed, *rstd; /* [ROW_CHUNK][C], [ROW_CHUNK][C], [ROW_CHUNK] */
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
	real *x;      /* [N][C] the stream after the last layer */
	real *vector; /* [T][C] what the encoding adds to the embeddings */

	/* The head works on the rows that are scored (or on all), gathered: R rows. */
	int R;
	int64_t scored;
	int32_t *row, *row_target, *row_best;
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

/* Rows first .. first + count - 1 of a chunk. */
static inline int chunk_rows(size_t N, int chunk, size_t *first)
{
	*first = (size_t)chunk * ROW_CHUNK;
	return (int)(N - *first < ROW_CHUNK ? N - *first : ROW_CHUNK);
}

/* The encoding's parameters (and gradients) of a layer within a slab. */
static inline struct place_parameters own_parameters(const struct transformer *t, int layer, const real *value)
{
	const struct layout *l = &t->model->layout;
	return (struct place_parameters){ .shared = value + l->position, .layer = value + l->layer[layer].position };
}

static inline struct attention_layer attention_layer(const struct transformer *t, int layer)
{
	const struct layer_activations *a = &t->layer[layer];
	return (struct attention_layer){ .own = own_parameters(t, layer, t->model->value), .qkv = a->qkv, .gate = a->gate,
					 .output = a->output, .lse = a->lse, .saved = a->saved };
}

#endif
