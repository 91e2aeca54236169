#include "model/base/phase.h"
#include "model/base/threads.h"
#include "model/base/vec.h"
#include "model/embedding.h"
#include "model/linear.h"
#include "model/loss.h"
#include "model/norm.h"
#include "model/swiglu.h"
#include "model/transformer_parts.h"

#include <stdlib.h>
#include <string.h>

/* Tokens of the embedding's gradient that are computed in one go. */
#define TOKEN_ROWS 64

struct pass {
	struct transformer *t;
	const real *value;
	real *gradient;
	int layer; /* that all threads share */
};

static double *clear_norm(double *slot, size_t C)
{
	memset(slot, 0, C * sizeof *slot);
	return slot;
}

/* One of the two norms' slots of a layer. */
static double *norm_slot(const struct transformer *t, int layer, int chunk, int which)
{
	return t->layer[layer].norm_slot + ((size_t)chunk * 2 + (size_t)which) * t->C;
}

/* Loss -> logits -> final norm -> gradient of the stream, of the wanted rows. */
static void head_rows(struct pass *p, int chunk, int thread)
{
	struct transformer *t = p->t;
	const struct layout *l = &t->model->layout;
	struct row_scratch *s = &t->scratch[thread];
	size_t first = t->chunk[chunk].wanted_first, V = (size_t)t->model->V;
	int rows = t->chunk[chunk].wanted, C = (int)t->C;
	real *d_logits = t->probability + first * V, *x = t->x + first * t->C;
	double *d_norm = clear_norm(t->norm_slot + (size_t)chunk * t->C, t->C);
	phase_enter(PHASE_HEAD);
	cross_entropy_back(rows, (int)V, t->row_target + first, 1 / (double)t->scored, d_logits);
	linear_back_input(rows, C, (int)V, d_logits, (int)V, head_matrix(t), s->normed, C);
	rmsnorm_back(rows, C, x, p->value + l->norm, t->head_rstd + first, s->normed, NULL, x, d_norm);
	phase_enter(PHASE_ELEMENTWISE);
}

/* What attention's output of a chunk of the last layer has as gradient: 0 but for the wanted rows. */
static void scatter_output(const struct transformer *t, int chunk, const real *wanted)
{
	const struct chunk *k = &t->chunk[chunk];
	memset(t->d_output + k->first * t->C, 0, (size_t)k->rows * t->C * sizeof(real));
	for (int r = 0; r < k->wanted; r++, wanted += t->C)
		memcpy(t->d_output + (size_t)t->row[k->wanted_first + (size_t)r] * t->C, wanted, t->C * sizeof(real));
}

/* Back through the SwiGLU branch, then to attention's output. */
static void unmix_rows(struct pass *p, int layer, int chunk, int thread)
{
	struct transformer *t = p->t;
	const struct layer_layout *at = &t->model->layout.layer[layer];
	const struct layer_activations *a = &t->layer[layer];
	struct row_scratch *s = &t->scratch[thread];
	size_t first;
	int rows = chunk_after_attention(t, layer, chunk, &first), C = (int)t->C, F = (int)t->F;
	const real *d_above = stream_above(t, layer) + first * t->C, *d_middle = d_above;
	bool last = last_layer(t, layer);
	if (F) {
		real *middle = a->middle + first * t->C, *gate_up = a->gate_up + first * 2 * t->F;
		linear_back_input(rows, F, C, d_above, C, matrix(t, layer, MATRIX_DOWN), s->hidden, F);
		swiglu_back(rows, F, gate_up, s->hidden, gate_up, s->sigmoid);
		linear_back_input(rows, C, 2 * F, gate_up, 2 * F, matrix(t, layer, MATRIX_GATE_UP), s->normed, C);
		rmsnorm_back(rows, C, middle, p->value + at->post_norm, a->post_rstd + first, s->normed, d_above,
			     middle, clear_norm(norm_slot(t, layer, chunk, 1), t->C));
		d_middle = middle;
	}
	linear_back_input(rows, C, C, d_middle, C, matrix(t, layer, MATRIX_O),
			  last ? s->normed : t->d_output + first * t->C, C);
	if (last)
		scatter_output(t, chunk, s->normed);
}

/* The gradient of the stream inside a layer, of a chunk's rows: what the last layer has of rows that are not wanted
 * is 0. */
static const real *stream_inside(const struct transformer *t, int layer, int chunk, real *scratch)
{
	const struct chunk *k = &t->chunk[chunk];
	const real *inside = t->F ? t->layer[layer].middle : stream_above(t, layer);
	if (!last_layer(t, layer))
		return inside + k->first * t->C;
	memset(scratch, 0, (size_t)k->rows * t->C * sizeof(real));
	for (size_t r = k->wanted_first; r < k->wanted_first + (size_t)k->wanted; r++)
		memcpy(scratch + ((size_t)t->row[r] - k->first) * t->C, inside + r * t->C, t->C * sizeof(real));
	return scratch;
}

/* Back through q, k, v, the gates and the input norm. */
static void unproject_rows(struct pass *p, int layer, int chunk, int thread)
{
	struct transformer *t = p->t;
	const struct position *position = t->place.position;
	const struct layer_layout *at = &t->model->layout.layer[layer];
	const struct layer_activations *a = &t->layer[layer];
	struct row_scratch *s = &t->scratch[thread];
	size_t first = t->chunk[chunk].first, gates = (size_t)t->place.H * (size_t)position->gate_reals;
	int rows = t->chunk[chunk].rows, C = (int)t->C;
	real *x = a->x + first * t->C;
	linear_back_input(rows, C, 3 * C, a->d_qkv + first * 3 * t->C, 3 * C, matrix(t, layer, MATRIX_QKV), s->normed,
			  C);
	if (position->gate) {
		real *slot = a->gate_slot + (size_t)chunk * t->position_reals;
		memset(slot, 0, t->position_reals * sizeof *slot);
		position->gate_back(&t->place, own_parameters(t, layer, p->value), rows, a->normed + first * t->C,
				    a->gate + first * gates, t->d_gate + first * gates, s->normed,
				    (struct place_gradients){ .layer = slot });
	}
	rmsnorm_back(rows, C, x, p->value + at->input_norm, a->rstd + first, s->normed,
		     stream_inside(t, layer, chunk, s->residual), x,
		     clear_norm(norm_slot(t, layer, chunk, 0), t->C));
}

static struct attention_gradients attention_gradients(const struct transformer *t, int layer)
{
	return (struct attention_gradients){ t->d_output, t->layer[layer].d_qkv, t->d_gate };
}

/* A group back through all layers. */
static void group_backward(int index, int thread, void *data)
{
	struct pass *p = data;
	struct transformer *t = p->t;
	const struct group *g = &t->group[index];
	int end = g->chunk + g->chunks, H = t->place.H;
	for (int chunk = g->chunk; chunk < end; chunk++)
		head_rows(p, chunk, thread);
	for (int layer = t->place.layers - 1; layer >= 0; layer--) {
		struct attention_layer attention = attention_layer(t, layer);
		for (int chunk = g->chunk; chunk < end; chunk++)
			unmix_rows(p, layer, chunk, thread);
		for (int head = g->sequence * H; head < (g->sequence + g->sequences) * H; head++)
			attention_head_backward(t->attention, &attention, attention_gradients(t, layer), head, thread);
		phase_enter(PHASE_ELEMENTWISE);
		for (int chunk = g->chunk; chunk < end; chunk++)
			unproject_rows(p, layer, chunk, thread);
	}
}

static void head_chunk(int chunk, int thread, void *data)
{
	head_rows(data, chunk, thread);
}

static void unmix_chunk(int chunk, int thread, void *data)
{
	struct pass *p = data;
	unmix_rows(p, p->layer, chunk, thread);
}

static void unproject_chunk(int chunk, int thread, void *data)
{
	struct pass *p = data;
	unproject_rows(p, p->layer, chunk, thread);
}

static struct attention_parameters attention_parameters(const struct pass *p, int layer)
{
	const struct layout *l = &p->t->model->layout;
	return (struct attention_parameters){
		.own = { p->gradient + l->position, p->gradient + l->layer[layer].position },
		.ssmax = p->gradient + l->layer[layer].ssmax,
	};
}

/* All threads share each layer. */
static void layers_backward(struct pass *p)
{
	struct transformer *t = p->t;
	threads_each(t->chunks, head_chunk, p);
	for (p->layer = t->place.layers - 1; p->layer >= 0; p->layer--) {
		struct attention_layer layer = attention_layer(t, p->layer);
		threads_each(t->chunks, unmix_chunk, p);
		attention_backward(t->attention, &layer, attention_gradients(t, p->layer),
				   attention_parameters(p, p->layer));
		threads_each(t->chunks, unproject_chunk, p);
	}
}

/* Appends a gradient as even tasks. */
static void add_tasks(struct transformer *t, struct weight_task w)
{
	int each = (w.out + weight_parts(w.out) - 1) / weight_parts(w.out);
	each = (each + VEC_LANES - 1) / VEC_LANES * VEC_LANES;
	for (w.first = 0; w.first < w.out; w.first = w.last) {
		w.last = w.first + each < w.out ? w.first + each : w.out;
		t->task[t->tasks++] = w;
	}
}

/* The groups of weights that share their input: x [rows][in], d_y [rows][out] -> d_w [out][in]. */
static void layer_tasks(const struct pass *p, int layer)
{
	struct transformer *t = p->t;
	const struct layer_layout *at = &t->model->layout.layer[layer];
	const struct layer_activations *a = &t->layer[layer];
	int C = (int)t->C, F = (int)t->F;
	size_t rows = rows_after_attention(t, layer);
	const real *output = last_layer(t, layer) ? t->gathered : a->output, *d_above = stream_above(t, layer);
	const real *d_middle = F ? a->middle : d_above;
	real *to = p->gradient;
	add_tasks(t, (struct weight_task){ t->N, a->d_qkv, a->normed, C, 3 * C, 0, 0, to + at->q });
	add_tasks(t, (struct weight_task){ rows, d_middle, output, C, C, 0, 0, to + at->o });
	if (!F)
		return;
	add_tasks(t, (struct weight_task){ rows, a->gate_up, a->post_normed, C, 2 * F, 0, 0, to + at->gate });
	add_tasks(t, (struct weight_task){ rows, d_above, a->hidden, F, C, 0, 0, to + at->down });
}

static double cost(const struct weight_task *w)
{
	return (double)w->rows * w->in * (w->last - w->first);
}

static int dearest_first(const void *a, const void *b)
{
	double x = cost(a), y = cost(b);
	return (x < y) - (x > y);
}

static void run_task(int index, int thread, void *data)
{
	const struct pass *p = data;
	const struct weight_task *w = &p->t->task[index];
	(void)thread;
	linear_back_weight((int)w->rows, w->in, w->d_y, w->out, w->x, w->in, w->first, w->last, w->d_w);
}

/* Every matrix's gradient, as one list of tasks. */
static void weights_backward(struct pass *p)
{
	struct transformer *t = p->t;
	struct weight_task head = { (size_t)t->R, t->probability, t->head_normed, (int)t->C, t->model->V, 0, 0,
				    p->gradient + t->model->layout.head };
	t->tasks = 0;
	add_tasks(t, head);
	for (int layer = 0; layer < t->place.layers; layer++)
		layer_tasks(p, layer);
	qsort(t->task, (size_t)t->tasks, sizeof *t->task, dearest_first);
	threads_take(t->tasks, run_task, p);
}

/* Adds the chunks' sums of a norm's weight gradient, in order; they are `stride` apart. */
static void sum_norm(const struct transformer *t, const double *slot, size_t stride, real *d_w)
{
	for (size_t c = 0; c < t->C; c++) {
		double sum = 0;
		for (int chunk = 0; chunk < t->chunks; chunk++)
			sum += slot[(size_t)chunk * stride + c];
		d_w[c] = (real)sum;
	}
}

/* Gradients that chunks have slots for. */
static void slots_backward(const struct pass *p)
{
	const struct transformer *t = p->t;
	const struct layout *l = &t->model->layout;
	sum_norm(t, t->norm_slot, t->C, p->gradient + l->norm);
	for (int layer = 0; layer < t->place.layers; layer++) {
		const struct layer_layout *at = &l->layer[layer];
		const struct layer_activations *a = &t->layer[layer];
		sum_norm(t, a->norm_slot, 2 * t->C, p->gradient + at->input_norm);
		if (t->F)
			sum_norm(t, a->norm_slot + t->C, 2 * t->C, p->gradient + at->post_norm);
		for (int chunk = 0; t->place.position->gate && chunk < t->chunks; chunk++)
			vec_add(p->gradient + at->position, a->gate_slot + (size_t)chunk * t->position_reals,
				(int)t->position_reals);
	}
}

static void embedding_block(int block, int thread, void *data)
{
	struct pass *p = data;
	struct transformer *t = p->t;
	int V = t->model->V, first = block * TOKEN_ROWS, last = first + TOKEN_ROWS;
	embedding_back((int)t->C, t->start, t->order, first, last < V ? last : V, t->layer[0].x,
		       p->gradient + t->model->layout.embedding, t->scratch[thread].sum);
}

/* The encoding's vectors: gradients summed over sequences, in order, then to its parameters. */
static void vectors_backward(struct pass *p)
{
	struct transformer *t = p->t;
	size_t each = (size_t)t->T * t->C, count = (size_t)t->sequences * each, all = (size_t)t->B * each;
	for (size_t i = 0; i < count; i++) {
		double sum = 0;
		for (size_t n = i; n < all; n += count)
			sum += (double)t->layer[0].x[n];
		t->vector[i] = (real)sum;
	}
	struct place_gradients own = { .shared = p->gradient + t->model->layout.position };
	for (int s = 0; s < t->sequences; s++) {
		struct place place = place_of_sequence(t, s);
		place.position->embed_back(&place, own_parameters(t, 0, p->value), t->vector + (size_t)s * each, own);
	}
}

/* What is added to: the embedding and the encoding's tensors. The rest is overwritten. */
static void clear_gradient(const struct pass *p)
{
	const struct transformer *t = p->t;
	const struct layer_layout *layer = t->model->layout.layer;
	memset(p->gradient, 0, layer[0].input_norm * sizeof *p->gradient);
	for (int i = 0; i < t->place.layers; i++)
		memset(p->gradient + layer[i].position, 0, layer[i].position_reals * sizeof *p->gradient);
}

void transformer_backward(struct transformer *t, real *gradient)
{
	struct pass p = { .t = t, .value = t->model->value, .gradient = gradient };
	int V = t->model->V;
	BUG_IF(!t->ready, "no forward pass that kept what a backward pass needs");
	BUG_IF(!t->scored, "no token was scored");
	t->ready = false;
	clear_gradient(&p);
	if (groups_alone(t)) {
		threads_each(t->groups, group_backward, &p);
		for (int layer = t->place.layers - 1; layer >= 0; layer--) {
			struct attention_layer attention = attention_layer(t, layer);
			attention_finish(t->attention, &attention, attention_parameters(&p, layer));
		}
	} else {
		layers_backward(&p);
	}
	weights_backward(&p);
	slots_backward(&p);
	embedding_sort((int)t->N, V, t->token, t->start, t->order);
	threads_each((V + TOKEN_ROWS - 1) / TOKEN_ROWS, embedding_block, &p);
	if (t->place.position->embed)
		vectors_backward(&p);
}
