#ifndef ROPEWALK_TRANSFORMER_PARTS_H
#define ROPEWALK_TRANSFORMER_PARTS_H

#include "model/attention.h"
#include "model/base/threads.h"
#include "model/base/vec.h"
#include "model/linear.h"
#include "model/transformer.h"

/* The inside of a transformer: private to transformer.c (its memory), forward.c and backward.c.
 *
 * Work is cut into chunks of rows, and these make groups: of whole sequences, which need no other group from the
 * embedding to the loss and back. With enough groups each goes through all layers at once, while its rows are in the
 * cache; else all threads share each layer. Either way the same chunks are worked on, so the bits are the same. Chunks
 * depend on B and T alone: about ROW_CHUNKS of them while they have between ROW_CHUNK_LEAST and ROW_CHUNK rows, so that
 * a few threads finish together and weights are not read too often. */

#define ROW_CHUNK 256
#define ROW_CHUNK_LEAST 64
#define ROW_CHUNKS 8

/* The fewest where sequences are of one token, as in a step of decoding. */
#define STEP_CHUNK VEC_LANES

/* Consecutive rows: all of them, and the wanted ones among them. */
struct chunk {
	size_t first, wanted_first;
	int rows, wanted;
};

/* Consecutive sequences and their chunks. */
struct group {
	int sequence, sequences, chunk, chunks;
};

/* One layer's activations, kept for the backward pass, which leaves in `x`, `middle` and `gate_up` their gradients. */
struct layer_activations {
	real *x;                   /* [N][C] the residual stream as the layer meets it */
	real *normed, *rstd;       /* [N][C], [N] after the input norm */
	real *qkv, *d_qkv;         /* [N][3C] */
	real *gate, *output, *lse, *saved; /* see struct attention_layer */
	real *middle;              /* [N][C] the stream after attention; without an MLP the stream above */
	real *post_normed, *post_rstd;
	real *gate_up;             /* [N][2F] */
	real *hidden;              /* [N][F] */
	double *norm_slot;         /* [chunks][2C] the norms' gradients by chunk */
	real *gate_slot;           /* [chunks][position_reals] */
};

/* One thread's scratch for a chunk of rows. */
struct row_scratch {
	real *normed, *rstd;     /* [ROW_CHUNK][C], [ROW_CHUNK] */
	real *hidden;            /* [ROW_CHUNK][F] */
	real *sigmoid;           /* [F] */
	real *logits;            /* [ROW_CHUNK][V] */
	real *residual;          /* [ROW_CHUNK][C] */
	double *sum;             /* [C] */
};

/* Part of the gradient of weights that share their input, x [rows][in], d_y [rows][out]: rows first .. last - 1 of
 * d_w [out][in]. Of at most WEIGHT_ROWS rows, over all tokens, so that no sum is split. */
#define WEIGHT_ROWS 256
struct weight_task {
	size_t rows;
	const real *d_y, *x;
	int in, out, first, last;
	real *d_w;
};

/* The matrices, four a layer, then the head. */
enum matrix { MATRIX_QKV, MATRIX_O, MATRIX_GATE_UP, MATRIX_DOWN, LAYER_MATRICES };
struct matrix_weight {
	int out, in; /* 0: there is none */
	struct linear_weight weight;
};

struct transformer {
	const struct model *model;
	struct transformer_request request; /* as it was opened */
	struct place place;
	struct zones *zones;      /* [sequences] */
	struct method scaling;
	double *positions;        /* [sequences][T] */
	int sequences;            /* whose positions differ: 1 or B */
	struct arena zone_memory; /* as it was before the zones were placed */
	struct attention *attention;
	struct arena memory;
	int B, T;
	size_t N, C, F;
	struct chunk *chunk;
	struct group *group;
	int chunks, groups;
	bool gradients;
	bool ready; /* a forward pass has been made that no backward pass has used up */
	size_t position_reals; /* of the encoding's tensors of one layer */

	struct layer_activations *layer;
	struct matrix_weight *matrix; /* [layers LAYER_MATRICES + 1] */
	real *vector; /* [sequences][T][C] what the encoding adds to the embeddings */

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

	int32_t *token;          /* [N] of the last forward pass */
	real *d_output, *d_gate; /* [N][C], [N][H][gate_reals] */
	double *norm_slot;       /* [chunks][C] the final norm's gradient by chunk */
	struct weight_task *task; /* of the last backward pass */
	int tasks;
	int32_t *start, *order;   /* see embedding_sort */
	struct row_scratch *scratch; /* [threads] */
};

static inline struct linear_weight matrix(const struct transformer *t, int layer, enum matrix which)
{
	return t->matrix[layer * LAYER_MATRICES + (int)which].weight;
}

static inline struct linear_weight head_matrix(const struct transformer *t)
{
	return matrix(t, t->place.layers, (enum matrix)0);
}

/* The encoding's parameters (and gradients) of a layer within a slab. */
static inline struct place_parameters own_parameters(const struct transformer *t, int layer, const real *value)
{
	const struct layout *l = &t->model->layout;
	return (struct place_parameters){ .shared = value + l->position, .layer = value + l->layer[layer].position };
}

/* The place of one sequence, or of all if they are alike. */
static inline struct place place_of_sequence(const struct transformer *t, int sequence)
{
	struct place p = t->place;
	p.positions = t->positions + (size_t)sequence * (size_t)t->T;
	return p;
}

static inline bool last_layer(const struct transformer *t, int layer)
{
	return layer + 1 == t->place.layers;
}

static inline struct attention_layer attention_layer(const struct transformer *t, int layer)
{
	const struct layer_activations *a = &t->layer[layer];
	return (struct attention_layer){ .index = layer, .own = own_parameters(t, layer, t->model->value),
					 .ssmax = t->model->value + t->model->layout.layer[layer].ssmax,
					 .qkv = a->qkv, .gate = a->gate, .output = a->output, .lse = a->lse,
					 .saved = a->saved, .wanted = last_layer(t, layer) ? t->wanted : NULL,
					 .probe = t->request.probe };
}

/* Rows of what follows a layer's attention: all of them, in the last layer the wanted ones, gathered. */
static inline size_t rows_after_attention(const struct transformer *t, int layer)
{
	return last_layer(t, layer) ? (size_t)t->R : t->N;
}

/* The same of a chunk; returns how many. */
static inline int chunk_after_attention(const struct transformer *t, int layer, int chunk, size_t *first)
{
	const struct chunk *c = &t->chunk[chunk];
	*first = last_layer(t, layer) ? c->wanted_first : c->first;
	return last_layer(t, layer) ? c->wanted : c->rows;
}

/* The stream above a layer. */
static inline real *stream_above(const struct transformer *t, int layer)
{
	return last_layer(t, layer) ? t->x : t->layer[layer + 1].x;
}

/* How many tasks the gradient of `out` rows is cut into. */
static inline int weight_parts(int out)
{
	return (out + WEIGHT_ROWS - 1) / WEIGHT_ROWS;
}

/* For decode.c: what takes the place of attention between a layer's projections (x -> layer.qkv, layer.gate) and
 * layer.output; called outside of parallel regions. transformer_step takes one token a sequence through all layers so,
 * adding t->vector to the embeddings as it is, with the matrices of the last transformer_pack; logits [B][V], NULL: not
 * wanted. transformer_vectors: an encoding's vectors [T][C]. */
struct attend {
	void (*layer)(int layer, void *data);
	void *data;
};
void transformer_pack(struct transformer *t);
void transformer_step(struct transformer *t, const int32_t *token, const struct attend *attend, real *logits);
void transformer_vectors(const struct model *m, const struct place *p, real *vector);

/* Does each group go through all layers at once? */
static inline bool groups_alone(const struct transformer *t)
{
	return t->groups >= threads_count() && attention_in_parts(t->attention);
}

#endif
