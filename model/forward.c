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

/* Positions whose vectors are made in one go. */
#define VECTOR_CHUNK 16

struct pass {
	struct transformer *t;
	const real *value;
	const int32_t *token;
	real *logits; /* [N][V], or with `last` [B][V], or NULL */
	bool last;    /* of each sequence's last token alone */
	int layer;    /* that all threads share */
	const struct attend *attend; /* NULL: attention of the sequences themselves */
};

/* Of one sequence. */
static int vector_chunks(const struct transformer *t)
{
	return (t->T + VECTOR_CHUNK - 1) / VECTOR_CHUNK;
}

static void vector_chunk(int chunk, int thread, void *data)
{
	struct pass *p = data;
	struct transformer *t = p->t;
	int chunks = vector_chunks(t), sequence = chunk / chunks;
	int first = chunk % chunks * VECTOR_CHUNK, last = first + VECTOR_CHUNK;
	struct place place = place_of_sequence(t, sequence);
	(void)thread;
	place.position->embed(&place, own_parameters(t, 0, p->value), first, last < t->T ? last : t->T,
			      t->vector + (size_t)sequence * (size_t)t->T * t->C);
}

/* Every matrix, for all rows of the pass. */
static void pack_matrix(int index, int thread, void *data)
{
	struct pass *p = data;
	const struct matrix_weight *m = &p->t->matrix[index];
	(void)thread;
	if (m->out && m->in)
		linear_pack(m->out, m->in, m->weight);
}

static void embed_rows(struct pass *p, int chunk)
{
	struct transformer *t = p->t;
	const struct chunk *k = &t->chunk[chunk];
	int C = (int)t->C;
	real *x = t->layer[0].x + k->first * t->C;
	embedding(k->rows, C, p->token + k->first, p->value + t->model->layout.embedding, x);
	for (int r = 0; t->place.position->embed && r < k->rows; r++)
		vec_add(x + (size_t)r * t->C,
			t->vector + (k->first + (size_t)r) % ((size_t)t->sequences * (size_t)t->T) * t->C, C);
}

/* x -> norm -> q, k, v (and the encoding's gates). */
static void project_rows(struct pass *p, int layer, int chunk)
{
	struct transformer *t = p->t;
	const struct layer_layout *at = &t->model->layout.layer[layer];
	const struct layer_activations *a = &t->layer[layer];
	size_t first = t->chunk[chunk].first, gates = (size_t)t->place.H * (size_t)t->place.position->gate_reals;
	int rows = t->chunk[chunk].rows, C = (int)t->C;
	real *normed = a->normed + first * t->C;
	rmsnorm(rows, C, t->model->options.rms_eps, a->x + first * t->C, p->value + at->input_norm, normed,
		a->rstd + first);
	linear(rows, C, 3 * C, normed, C, matrix(t, layer, MATRIX_QKV), NULL,
	       a->qkv + first * 3 * t->C, 3 * C);
	if (t->place.position->gate)
		t->place.position->gate(&t->place, own_parameters(t, layer, p->value), rows, normed,
					a->gate + first * gates);
}

/* The stream before attention and attention's output, of the wanted rows of the last layer. */
static void gather_rows(const struct transformer *t, size_t first, int rows, real *stream, real *output)
{
	const struct layer_activations *a = &t->layer[t->place.layers - 1];
	for (int r = 0; r < rows; r++) {
		size_t from = (size_t)t->row[first + (size_t)r] * t->C;
		memcpy(stream + (size_t)r * t->C, a->x + from, t->C * sizeof(real));
		memcpy(output + (size_t)r * t->C, a->output + from, t->C * sizeof(real));
	}
}

/* Attention's output -> o -> residual; then norm -> SwiGLU -> residual. */
static void mix_rows(struct pass *p, int layer, int chunk, int thread)
{
	struct transformer *t = p->t;
	const struct layer_layout *at = &t->model->layout.layer[layer];
	const struct layer_activations *a = &t->layer[layer];
	size_t first;
	int rows = chunk_after_attention(t, layer, chunk, &first), C = (int)t->C, F = (int)t->F;
	bool last = last_layer(t, layer);
	const real *output = (last ? t->gathered : a->output) + first * t->C;
	real *above = stream_above(t, layer) + first * t->C;
	real *middle = F && t->gradients ? a->middle + first * t->C : above;
	if (last)
		gather_rows(t, first, rows, middle, t->gathered + first * t->C);
	linear(rows, C, C, output, C, matrix(t, layer, MATRIX_O),
	       last ? middle : a->x + first * t->C, middle, C);
	if (!F)
		return;
	/* Without gradients layers share these, and gathered rows would stand where another group's are. */
	size_t place = t->gradients ? first : t->chunk[chunk].first;
	real *normed = a->post_normed + place * t->C, *hidden = a->hidden + place * t->F;
	real *gate_up = a->gate_up + place * 2 * t->F;
	rmsnorm(rows, C, t->model->options.rms_eps, middle, p->value + at->post_norm, normed, a->post_rstd + place);
	linear(rows, C, 2 * F, normed, C, matrix(t, layer, MATRIX_GATE_UP), NULL,
	       gate_up, 2 * F);
	swiglu(rows, F, gate_up, hidden, t->scratch[thread].sigmoid);
	linear(rows, F, C, hidden, F, matrix(t, layer, MATRIX_DOWN), middle, above,
	       C);
}

/* Final norm -> logits -> loss. */
static void head_rows(struct pass *p, int chunk, int thread)
{
	struct transformer *t = p->t;
	const struct layout *l = &t->model->layout;
	struct row_scratch *s = &t->scratch[thread];
	size_t first = t->chunk[chunk].wanted_first, V = (size_t)t->model->V;
	int rows = t->chunk[chunk].wanted, C = (int)t->C;
	real *normed = t->gradients ? t->head_normed + first * t->C : s->normed;
	real *logits = t->gradients ? t->probability + first * V : s->logits;
	phase_enter(PHASE_HEAD);
	rmsnorm(rows, C, t->model->options.rms_eps, t->x + first * t->C, p->value + l->norm, normed,
		t->gradients ? t->head_rstd + first : s->rstd);
	linear(rows, C, (int)V, normed, C, head_matrix(t), NULL, logits,
	       (int)V);
	for (int r = 0; p->logits && r < rows; r++) {
		size_t row = (size_t)t->row[first + (size_t)r] / (p->last ? (size_t)t->T : 1);
		memcpy(p->logits + row * V, logits + (size_t)r * V, V * sizeof(real));
	}
	cross_entropy(rows, (int)V, t->row_target + first, logits, t->row_nll + first, t->row_best + first);
	phase_enter(PHASE_ELEMENTWISE);
}

/* A group through all layers. */
static void group_forward(int index, int thread, void *data)
{
	struct pass *p = data;
	struct transformer *t = p->t;
	const struct group *g = &t->group[index];
	int end = g->chunk + g->chunks, H = t->place.H;
	for (int chunk = g->chunk; chunk < end; chunk++)
		embed_rows(p, chunk);
	for (int layer = 0; layer < t->place.layers; layer++) {
		struct attention_layer attention = attention_layer(t, layer);
		for (int chunk = g->chunk; chunk < end; chunk++)
			project_rows(p, layer, chunk);
		for (int head = g->sequence * H; head < (g->sequence + g->sequences) * H; head++)
			attention_head_forward(t->attention, &attention, head, thread);
		phase_enter(PHASE_ELEMENTWISE);
		for (int chunk = g->chunk; chunk < end; chunk++)
			mix_rows(p, layer, chunk, thread);
	}
	for (int chunk = g->chunk; chunk < end; chunk++)
		head_rows(p, chunk, thread);
}

static void embed_chunk(int chunk, int thread, void *data)
{
	(void)thread;
	embed_rows(data, chunk);
}

static void project_chunk(int chunk, int thread, void *data)
{
	struct pass *p = data;
	(void)thread;
	project_rows(p, p->layer, chunk);
}

static void mix_chunk(int chunk, int thread, void *data)
{
	struct pass *p = data;
	mix_rows(p, p->layer, chunk, thread);
}

static void head_chunk(int chunk, int thread, void *data)
{
	head_rows(data, chunk, thread);
}

/* All threads share each layer. */
static void layers_forward(struct pass *p)
{
	struct transformer *t = p->t;
	threads_each(t->chunks, embed_chunk, p);
	for (p->layer = 0; p->layer < t->place.layers; p->layer++) {
		struct attention_layer layer = attention_layer(t, p->layer);
		threads_each(t->chunks, project_chunk, p);
		if (p->attend)
			p->attend->layer(p->layer, p->attend->data);
		else
			attention_forward(t->attention, &layer);
		threads_each(t->chunks, mix_chunk, p);
	}
	threads_each(t->chunks, head_chunk, p);
}

static bool row_wanted(const struct pass *p, size_t n, int32_t target)
{
	if (p->last)
		return p->logits && (n + 1) % (size_t)p->t->T == 0;
	return p->logits || target >= 0;
}

/* Which rows are wanted; target NULL: none is scored. */
static void choose_rows(const struct pass *p, const int32_t *targets)
{
	struct transformer *t = p->t;
	t->R = 0;
	t->scored = 0;
	for (size_t n = 0; n < t->N; n++) {
		int32_t token = p->token[n], target = targets ? targets[n] : -1;
		BUG_IF(token < 0 || token >= t->model->V, "token %d at row %zu of %d", token, n, t->model->V);
		BUG_IF(target >= t->model->V, "target %d at row %zu of %d", target, n, t->model->V);
		t->scored += target >= 0;
		t->wanted[n] = -1;
		if (!row_wanted(p, n, target))
			continue;
		t->wanted[n] = t->R;
		t->row[t->R] = (int32_t)n;
		t->row_target[t->R++] = target;
	}
	for (int c = 0, r = 0; c < t->chunks; c++) {
		struct chunk *k = &t->chunk[c];
		k->wanted_first = (size_t)r;
		while (r < t->R && (size_t)t->row[r] < k->first + (size_t)k->rows)
			r++;
		k->wanted = r - (int)k->wanted_first;
	}
}

static struct outcome collect(struct transformer *t)
{
	struct outcome o = { .scored = t->scored, .nll = t->nll, .best = t->best };
	memset(t->nll, 0, t->N * sizeof *t->nll);
	memset(t->best, 0xff, t->N * sizeof *t->best);
	for (int r = 0; r < t->R; r++) {
		if (t->row_target[r] < 0)
			continue;
		t->nll[t->row[r]] = t->row_nll[r];
		t->best[t->row[r]] = t->row_best[r];
		o.nll_sum += t->row_nll[r];
		o.correct += t->row_best[r] == t->row_target[r];
	}
	return o;
}

void transformer_pack(struct transformer *t)
{
	struct pass p = { .t = t };
	threads_take(t->place.layers * LAYER_MATRICES + 1, pack_matrix, &p);
}

static void through(struct pass *p)
{
	struct transformer *t = p->t;
	if (t->place.position->embed)
		threads_each(t->sequences * vector_chunks(t), vector_chunk, p);
	transformer_pack(t);
	if (!groups_alone(t)) {
		layers_forward(p);
		return;
	}
	for (int layer = 0; layer < t->place.layers; layer++) {
		struct attention_layer attention = attention_layer(t, layer);
		attention_prepare(t->attention, &attention);
	}
	threads_each(t->groups, group_forward, p);
}

struct outcome transformer_forward(struct transformer *t, const int32_t *token, const int32_t *target, real *logits)
{
	struct pass p = { .t = t, .value = t->model->value, .token = token, .logits = logits };
	choose_rows(&p, target);
	if (t->gradients)
		memcpy(t->token, token, t->N * sizeof *token);
	through(&p);
	t->ready = t->gradients;
	return collect(t);
}

void transformer_last(struct transformer *t, const int32_t *token, real *logits)
{
	struct pass p = { .t = t, .value = t->model->value, .token = token, .logits = logits, .last = true };
	BUG_IF(t->gradients, "the last token alone has no gradients");
	choose_rows(&p, NULL);
	through(&p);
}

void transformer_step(struct transformer *t, const int32_t *token, const struct attend *attend, real *logits)
{
	struct pass p = { .t = t, .value = t->model->value, .token = token, .logits = logits, .last = true,
			  .attend = attend };
	BUG_IF(t->T != 1 || t->gradients, "a step is one token a sequence, without gradients");
	choose_rows(&p, NULL);
	layers_forward(&p);
}

void transformer_vectors(const struct model *m, const struct place *p, real *vector)
{
	struct place_parameters own = { .shared = m->value + m->layout.position,
					.layer = m->value + m->layout.layer[0].position };
	if (p->position->embed)
		p->position->embed(p, own, 0, p->T, vector);
}
