#include "model/base/phase.h"
#include "model/base/threads.h"
#include "model/base/vec.h"
#include "model/embedding.h"
#include "model/linear.h"
#include "model/loss.h"
#include "model/norm.h"
#include "model/swiglu.h"
#include "model/transformer_parts.h"

#include <string.h>

/* Output rows of a weight's gradient, and tokens of the embedding's, computed in one go. */
#define WEIGHT_BLOCK 64

struct pass {
	struct transformer *t;
	const real *value;
	real *gradient;
	int layer;
};

/* Adds the chunks' sums of a norm's weight gradient, in order. which: 0 or 1, of the slot's two. */
static void sum_norm(const struct transformer *t, int chunks, int which, real *d_w)
{
	for (size_t c = 0; c < t->C; c++) {
		double sum = 0;
		for (int chunk = 0; chunk < chunks; chunk++)
			sum += t->norm_slot[((size_t)chunk * 2 + (size_t)which) * t->C + c];
		d_w[c] = (real)sum;
	}
}

static double *norm_slot(const struct transformer *t, int chunk, int which)
{
	double *slot = t->norm_slot + ((size_t)chunk * 2 + (size_t)which) * t->C;
	memset(slot, 0, t->C * sizeof *slot);
	return slot;
}

/* Loss -> logits -> final norm -> d_x of the wanted rows. */
static void head_chunk(int chunk, int thread, void *data)
{
	struct pass *p = data;
	struct transformer *t = p->t;
	const struct layout *l = &t->model->layout;
	struct row_scratch *s = &t->scratch[thread];
	size_t first, V = (size_t)t->model->V;
	int rows = chunk_rows((size_t)t->R, chunk, &first), C = (int)t->C;
	real *d_logits = t->probability + first * V;
	double *d_norm = norm_slot(t, chunk, 0);
	phase_enter(PHASE_HEAD);
	cross_entropy_back(rows, (int)V, t->row_target + first, 1 / (double)t->scored, d_logits);
	linear_back_input(rows, C, (int)V, d_logits, (int)V, p->value + l->head, 0, s->normed, C);
	memset(t->d_x + first * t->C, 0, (size_t)rows * t->C * sizeof(real));
	rmsnorm_back(rows, C, t->x + first * t->C, p->value + l->norm, t->head_rstd + first, s->normed,
		     t->d_x + first * t->C, d_norm);
}

static void head_weight_block(int block, int thread, void *data)
{
	struct pass *p = data;
	struct transformer *t = p->t;
	int V = t->model->V, C = (int)t->C, first = block * WEIGHT_BLOCK, last = first + WEIGHT_BLOCK;
	phase_enter(PHASE_HEAD);
	(void)thread;
	linear_back_weight(t->R, C, t->probability, V, t->head_normed, C, first, last < V ? last : V,
			   p->gradient + t->model->layout.head);
}

/* Back through the SwiGLU branch, then to attention's output. */
static void unmix_chunk(int chunk, int thread, void *data)
{
	struct pass *p = data;
	struct transformer *t = p->t;
	const struct layer_layout *at = &t->model->layout.layer[p->layer];
	const struct layer_activations *a = &t->layer[p->layer];
	struct row_scratch *s = &t->scratch[thread];
	size_t first;
	int rows = chunk_rows(rows_after_attention(t, p->layer), chunk, &first), C = (int)t->C, F = (int)t->F;
	const real *d_middle = t->d_x + first * t->C;
	if (F) {
		real *to = t->d_middle + first * t->C, *d_gate_up = t->d_gate_up + first * 2 * t->F;
		linear_back_input(rows, F, C, t->d_x + first * t->C, C, p->value + at->down, 0, s->hidden, F);
		swiglu_back(rows, F, a->gate_up + first * 2 * t->F, s->hidden, d_gate_up, s->sigmoid);
		linear_back_input(rows, C, 2 * F, d_gate_up, 2 * F, p->value + at->gate, 0, s->normed, C);
		memcpy(to, d_middle, (size_t)rows * t->C * sizeof(real));
		rmsnorm_back(rows, C, a->middle + first * t->C, p->value + at->post_norm, a->post_rstd + first,
			     s->normed, to, norm_slot(t, chunk, 1));
		d_middle = to;
	}
	if (!last_layer(t, p->layer)) {
		linear_back_input(rows, C, C, d_middle, C, p->value + at->o, 0, t->d_output + first * t->C, C);
		return;
	}
	linear_back_input(rows, C, C, d_middle, C, p->value + at->o, 0, s->normed, C);
	for (int r = 0; r < rows; r++)
		memcpy(t->d_output + (size_t)t->row[first + (size_t)r] * t->C, s->normed + (size_t)r * t->C,
		       t->C * sizeof(real));
}

/* The gradient of the stream inside a layer, for rows first .. first + rows - 1 of all: what the last layer has of rows
 * that are not wanted is 0. */
static void residual_rows(const struct transformer *t, int layer, size_t first, int rows, real *to)
{
	const real *d_middle = t->F ? t->d_middle : t->d_x;
	if (!last_layer(t, layer)) {
		memcpy(to, d_middle + first * t->C, (size_t)rows * t->C * sizeof(real));
		return;
	}
	for (int r = 0; r < rows; r++, to += t->C) {
		int32_t from = t->wanted[first + (size_t)r];
		if (from < 0)
			memset(to, 0, t->C * sizeof(real));
		else
			memcpy(to, d_middle + (size_t)from * t->C, t->C * sizeof(real));
	}
}

/* Back through q, k, v, the gates and the input norm. */
static void unproject_chunk(int chunk, int thread, void *data)
{
	struct pass *p = data;
	struct transformer *t = p->t;
	const struct position *position = t->place.position;
	const struct layer_layout *at = &t->model->layout.layer[p->layer];
	const struct layer_activations *a = &t->layer[p->layer];
	struct row_scratch *s = &t->scratch[thread];
	size_t first, gates = (size_t)(t->place.H * position->gate_reals);
	int rows = chunk_rows(t->N, chunk, &first), C = (int)t->C;
	real *d_below = t->d_below + first * t->C;
	linear_back_input(rows, C, 3 * C, t->d_qkv + first * 3 * t->C, 3 * C, p->value + at->q, 0, s->normed, C);
	if (position->gate) {
		real *slot = t->gate_slot + (size_t)chunk * t->position_reals;
		memset(slot, 0, t->position_reals * sizeof *slot);
		position->gate_back(&t->place, own_parameters(t, p->layer, p->value), rows, a->normed + first * t->C,
				    a->gate + first * gates, t->d_gate + first * gates, s->normed,
				    (struct place_gradients){ .layer = slot });
	}
	residual_rows(t, p->layer, first, rows, d_below);
	rmsnorm_back(rows, C, a->x + first * t->C, p->value + at->input_norm, a->rstd + first, s->normed, d_below,
		     norm_slot(t, chunk, 0));
}

/* A group of weights that share their input: x [rows][in], d_y [rows][out] -> d_w [out][in]. */
struct product {
	size_t rows;
	const real *d_y, *x;
	int in, out;
	size_t weight;
};

static int layer_products(const struct transformer *t, int layer, struct product product[4])
{
	const struct layer_layout *at = &t->model->layout.layer[layer];
	const struct layer_activations *a = &t->layer[layer];
	int C = (int)t->C, F = (int)t->F;
	size_t rows = rows_after_attention(t, layer);
	const real *output = last_layer(t, layer) ? t->gathered : a->output;
	product[0] = (struct product){ t->N, t->d_qkv, a->normed, C, 3 * C, at->q };
	product[1] = (struct product){ rows, F ? t->d_middle : t->d_x, output, C, C, at->o };
	product[2] = (struct product){ rows, t->d_gate_up, a->post_normed, C, 2 * F, at->gate };
	product[3] = (struct product){ rows, t->d_x, a->hidden, F, C, at->down };
	return F ? 4 : 2;
}

static int blocks_of(int out)
{
	return (out + WEIGHT_BLOCK - 1) / WEIGHT_BLOCK;
}

static void weight_block(int block, int thread, void *data)
{
	struct pass *p = data;
	struct transformer *t = p->t;
	struct product product[4], *w = product;
	(void)thread;
	layer_products(t, p->layer, product);
	while (block >= blocks_of(w->out))
		block -= blocks_of(w++->out);
	int first = block * WEIGHT_BLOCK, last = first + WEIGHT_BLOCK;
	linear_back_weight((int)w->rows, w->in, w->d_y, w->out, w->x, w->in, first, last < w->out ? last : w->out,
			   p->gradient + w->weight);
}

static void layer_weights(struct pass *p)
{
	struct transformer *t = p->t;
	const struct layer_layout *at = &t->model->layout.layer[p->layer];
	struct product product[4];
	int blocks = 0;
	for (int i = layer_products(t, p->layer, product) - 1; i >= 0; i--)
		blocks += blocks_of(product[i].out);
	threads_each(blocks, weight_block, p);
	sum_norm(t, t->chunks, 0, p->gradient + at->input_norm);
	if (t->F)
		sum_norm(t, chunks_of(rows_after_attention(t, p->layer)), 1, p->gradient + at->post_norm);
	for (int chunk = 0; t->place.position->gate && chunk < t->chunks; chunk++)
		vec_add(p->gradient + at->position, t->gate_slot + (size_t)chunk * t->position_reals,
			(int)t->position_reals);
}

static void layer_backward(struct pass *p)
{
	struct transformer *t = p->t;
	struct attention_layer layer = attention_layer(t, p->layer);
	const struct layout *l = &t->model->layout;
	struct place_gradients own = { p->gradient + l->position, p->gradient + l->layer[p->layer].position };
	if (last_layer(t, p->layer))
		memset(t->d_output, 0, t->N * t->C * sizeof(real));
	threads_each(chunks_of(rows_after_attention(t, p->layer)), unmix_chunk, p);
	attention_backward(t->attention, &layer, t->d_output, t->d_qkv, t->d_gate, own);
	threads_each(t->chunks, unproject_chunk, p);
	layer_weights(p);
	real *below = t->d_below;
	t->d_below = t->d_x;
	t->d_x = below;
}

static void embedding_block(int block, int thread, void *data)
{
	struct pass *p = data;
	struct transformer *t = p->t;
	int V = t->model->V, first = block * WEIGHT_BLOCK, last = first + WEIGHT_BLOCK;
	embedding_back((int)t->C, t->start, t->order, first, last < V ? last : V, t->d_x,
		       p->gradient + t->model->layout.embedding, t->scratch[thread].sum);
}

/* The encoding's vectors: gradients summed over sequences, in order, then to its parameters. */
static void vectors_backward(struct pass *p)
{
	struct transformer *t = p->t;
	for (size_t i = 0; i < (size_t)t->T * t->C; i++) {
		double sum = 0;
		for (size_t b = 0; b < (size_t)t->B; b++)
			sum += (double)t->d_x[b * (size_t)t->T * t->C + i];
		t->vector[i] = (real)sum;
	}
	struct place_gradients own = { .shared = p->gradient + t->model->layout.position };
	t->place.position->embed_back(&t->place, own_parameters(t, 0, p->value), t->vector, own);
}

void transformer_backward(struct transformer *t, real *gradient)
{
	struct pass p = { .t = t, .value = t->model->value, .gradient = gradient };
	const struct layout *l = &t->model->layout;
	int V = t->model->V, chunks = chunks_of((size_t)t->R);
	BUG_IF(!t->gradients, "this transformer keeps nothing for a backward pass");
	BUG_IF(!t->scored, "no token was scored");
	memset(gradient, 0, l->size * sizeof *gradient);
	threads_each(chunks, head_chunk, &p);
	sum_norm(t, chunks, 0, gradient + l->norm);
	threads_each(blocks_of(V), head_weight_block, &p);
	for (p.layer = t->place.layers - 1; p.layer >= 0; p.layer--)
		layer_backward(&p);
	embedding_sort((int)t->N, V, t->token, t->start, t->order);
	threads_each(blocks_of(V), embedding_block, &p);
	if (t->place.position->embed)
		vectors_backward(&p);
}
