#include "model/transformer.h"

#include "model/transformer_parts.h"

#include <string.h>

struct err model_open(const struct model_options *options, int V, struct model *out)
{
	*out = (struct model){ .options = *options, .V = V };
	struct err e = layout_build(&out->options, V, &out->layout);
	if (!e.code)
		e = arena_reserve(&out->memory, out->layout.size * sizeof(real), "the model");
	if (e.code) {
		model_close(out);
		return e;
	}
	out->value = ARENA_TAKE(&out->memory, real, out->layout.size);
	return OK;
}

void model_close(struct model *m)
{
	layout_free(&m->layout);
	arena_free(&m->memory);
	*m = (struct model){ 0 };
}

void model_inherit(struct model *m, const struct model *from)
{
	for (int i = 0; i < layout_count(&m->layout); i++) {
		const struct parameter *to = &m->layout.parameter[i], *p = layout_find(&from->layout, to->name);
		if (p && p->size == to->size)
			memcpy(m->value + to->offset, from->value + p->offset, p->size * sizeof(real));
	}
}

static size_t chunk_size(size_t rows, int T)
{
	size_t even = (rows / ROW_CHUNKS + VEC_LANES) / VEC_LANES * VEC_LANES;
	size_t least = T == 1 ? STEP_CHUNK : ROW_CHUNK_LEAST;
	return even < least ? least : even > ROW_CHUNK ? ROW_CHUNK : even;
}

/* Cuts B sequences of T rows into groups and chunks: some sequences a chunk, or some chunks a sequence. */
static void place_chunks(struct transformer *t, struct arena *a)
{
	int T = t->T, most = (int)chunk_size(t->N, T), together = T < most ? most / T : 1;
	int parts = (T + most - 1) / most;
	t->groups = (t->B + together - 1) / together;
	t->chunks = t->groups * parts;
	t->group = ARENA_TAKE(a, struct group, (size_t)t->groups);
	t->chunk = ARENA_TAKE(a, struct chunk, (size_t)t->chunks);
	for (int g = 0; t->chunk && g < t->groups; g++) {
		int sequence = g * together, left = t->B - sequence, sequences = left < together ? left : together;
		t->group[g] = (struct group){ sequence, sequences, g * parts, parts };
		for (int part = 0; part < parts; part++) {
			int from = parts == 1 ? 0 : part * most, to = parts == 1 ? sequences * T : from + most;
			to = parts > 1 && to > T ? T : to;
			t->chunk[g * parts + part] = (struct chunk){
				.first = (size_t)sequence * (size_t)T + (size_t)from, .rows = to - from
			};
		}
	}
}

/* One layer's activations. Without gradients all layers use the same. */
static struct layer_activations place_layer(const struct transformer *t, struct arena *a)
{
	size_t N = t->N, C = t->C, F = t->F, heads = (size_t)t->place.H;
	const struct position *position = t->place.position;
	struct layer_activations l = { 0 };
	l.x = ARENA_TAKE(a, real, N * C);
	l.middle = t->gradients && F ? ARENA_TAKE(a, real, N * C) : l.x;
	l.normed = ARENA_TAKE(a, real, N * C);
	l.rstd = ARENA_TAKE(a, real, N);
	l.qkv = ARENA_TAKE(a, real, N * 3 * C);
	l.gate = ARENA_TAKE(a, real, N * heads * (size_t)position->gate_reals);
	l.output = ARENA_TAKE(a, real, N * C);
	l.lse = ARENA_TAKE(a, real, N * heads);
	l.saved = ARENA_TAKE(a, real, N * heads * (size_t)position->saved_reals);
	if (F) {
		l.post_normed = ARENA_TAKE(a, real, N * C);
		l.post_rstd = ARENA_TAKE(a, real, N);
		l.gate_up = ARENA_TAKE(a, real, N * 2 * F);
		l.hidden = ARENA_TAKE(a, real, N * F);
	}
	if (!t->gradients)
		return l;
	size_t chunks = (size_t)t->chunks;
	l.d_qkv = ARENA_TAKE(a, real, N * 3 * C);
	l.norm_slot = ARENA_TAKE(a, double, chunks * 2 * C);
	l.gate_slot = ARENA_TAKE(a, real, position->gate ? chunks * t->position_reals : 0);
	return l;
}

static void place_activations(struct transformer *t, struct arena *a)
{
	size_t N = t->N, C = t->C, layers = (size_t)t->place.layers;
	t->layer = ARENA_TAKE(a, struct layer_activations, layers);
	struct layer_activations shared = { 0 };
	for (size_t l = 0; l < layers; l++) {
		if (l == 0 || t->gradients)
			shared = place_layer(t, a);
		if (t->layer)
			t->layer[l] = shared;
	}
	t->x = ARENA_TAKE(a, real, N * C);
	t->gathered = ARENA_TAKE(a, real, N * C);
	t->wanted = ARENA_TAKE(a, int32_t, N);
	t->vector = ARENA_TAKE(a, real, t->place.position->embed ? (size_t)t->sequences * (size_t)t->T * C : 0);
	t->row = ARENA_TAKE(a, int32_t, N);
	t->row_target = ARENA_TAKE(a, int32_t, N);
	t->row_best = ARENA_TAKE(a, int32_t, N);
	t->row_nll = ARENA_TAKE(a, double, N);
	t->nll = ARENA_TAKE(a, double, N);
	t->best = ARENA_TAKE(a, int32_t, N);
	if (!t->gradients)
		return;
	t->head_normed = ARENA_TAKE(a, real, N * C);
	t->head_rstd = ARENA_TAKE(a, real, N);
	t->probability = ARENA_TAKE(a, real, N * (size_t)t->model->V);
}

static struct matrix_weight place_matrix(const struct transformer *t, struct arena *a, size_t out, size_t in,
					 size_t offset)
{
	size_t reals = out && in ? linear_panel_reals((int)out, (int)in) : 0;
	return (struct matrix_weight){
		.out = (int)out, .in = (int)in,
		.weight = { .w = t->model->value + offset, .forward = reals ? ARENA_TAKE(a, real, reals) : NULL,
			    .backward = reals && t->gradients ? ARENA_TAKE(a, real, reals) : NULL },
	};
}

static void place_matrices(struct transformer *t, struct arena *a)
{
	size_t C = t->C, F = t->F, V = (size_t)t->model->V;
	int layers = t->place.layers;
	const struct layout *l = &t->model->layout;
	struct matrix_weight *to = ARENA_TAKE(a, struct matrix_weight, (size_t)(layers * LAYER_MATRICES + 1));
	t->matrix = to;
	for (int layer = 0; layer <= layers; layer++) {
		struct matrix_weight w[LAYER_MATRICES];
		bool head = layer == layers;
		const struct layer_layout *at = head ? NULL : &l->layer[layer];
		w[0] = head ? place_matrix(t, a, V, C, l->head) : place_matrix(t, a, 3 * C, C, at->q);
		if (!head) {
			w[MATRIX_O] = place_matrix(t, a, C, C, at->o);
			w[MATRIX_GATE_UP] = place_matrix(t, a, 2 * F, C, at->gate);
			w[MATRIX_DOWN] = place_matrix(t, a, F ? C : 0, F, at->down);
		}
		for (int i = 0; to && i < (head ? 1 : LAYER_MATRICES); i++)
			to[layer * LAYER_MATRICES + i] = w[i];
	}
}

static void place_gradients(struct transformer *t, struct arena *a)
{
	size_t N = t->N, C = t->C, heads = (size_t)t->place.H, V = (size_t)t->model->V;
	const struct position *position = t->place.position;
	t->token = ARENA_TAKE(a, int32_t, N);
	t->d_output = ARENA_TAKE(a, real, N * C);
	t->d_gate = ARENA_TAKE(a, real, N * heads * (size_t)position->gate_reals);
	t->norm_slot = ARENA_TAKE(a, double, (size_t)t->chunks * C);
	int parts = weight_parts(3 * (int)C) + 2 * weight_parts((int)C) + weight_parts(2 * (int)t->F);
	t->task = ARENA_TAKE(a, struct weight_task, (size_t)(t->place.layers * parts + weight_parts((int)V)));
	t->start = ARENA_TAKE(a, int32_t, V + 1);
	t->order = ARENA_TAKE(a, int32_t, N);
}

static void place_scratch(struct transformer *t, struct arena *a)
{
	size_t C = t->C, F = t->F;
	t->scratch = ARENA_TAKE(a, struct row_scratch, (size_t)threads_count());
	for (int i = 0; i < threads_count(); i++) {
		struct row_scratch s;
		s.normed = ARENA_TAKE(a, real, ROW_CHUNK * C);
		s.rstd = ARENA_TAKE(a, real, ROW_CHUNK);
		s.hidden = ARENA_TAKE(a, real, ROW_CHUNK * F);
		s.sigmoid = ARENA_TAKE(a, real, F);
		s.logits = ARENA_TAKE(a, real, t->gradients ? 0 : (size_t)ROW_CHUNK * (size_t)t->model->V);
		s.residual = ARENA_TAKE(a, real, t->gradients ? ROW_CHUNK * C : 0);
		s.sum = ARENA_TAKE(a, double, C);
		if (t->scratch)
			t->scratch[i] = s;
	}
}

static bool decreases(const double *position, int T)
{
	for (int t = 1; t < T; t++)
		if (position[t] < position[t - 1])
			return true;
	return false;
}

static void take_positions(struct transformer *t, const double *given)
{
	size_t T = (size_t)t->T, count = (size_t)t->sequences * T;
	for (size_t i = 0; i < count; i++)
		t->positions[i] = given ? given[i] : (double)(i % T);
	t->place.unordered = false;
	for (size_t s = 0; s < (size_t)t->sequences; s++)
		t->place.unordered |= decreases(t->positions + s * T, t->T);
	t->place.positions = t->positions;
}

/* The zones of each sequence, measured or placed; returns those of the first. */
static struct zones place_zones(struct transformer *t, struct arena *a)
{
	struct zones first = { 0 };
	for (int s = 0; s < t->sequences; s++) {
		struct place p = t->positions ? place_of_sequence(t, s) : t->place;
		struct zones z;
		scaling_zones(&t->scaling, &t->model->options, &p, a, &z);
		if (t->zones)
			t->zones[s] = z;
		first = s ? first : z;
	}
	return first;
}

/* The whole workspace, measured or placed; returns it when placed. */
static struct transformer *place(const struct transformer_request *q, const struct method *scaling, struct arena *a)
{
	struct transformer measured, *placed = ARENA_TAKE(a, struct transformer, 1), *t = placed ? placed : &measured;
	*t = (struct transformer){ .model = q->model, .request = *q, .place = place_of(&q->model->options), .B = q->B,
				   .T = q->T, .gradients = q->gradients };
	t->N = (size_t)q->B * (size_t)q->T;
	t->C = (size_t)t->place.C;
	t->F = (size_t)q->model->options.hidden;
	place_chunks(t, a);
	t->position_reals = q->model->layout.layer[0].position_reals;
	t->place.T = q->T;
	t->scaling = *scaling;
	t->sequences = q->each ? q->B : 1;
	t->positions = ARENA_TAKE(a, double, (size_t)t->sequences * (size_t)q->T);
	t->zones = ARENA_TAKE(a, struct zones, (size_t)t->sequences);
	t->zone_memory = *a;
	if (t->positions)
		take_positions(t, q->positions);
	struct zones first = place_zones(t, a);
	struct attention_request attention = { .place = &t->place, .zones = t->zones ? t->zones : &first, .B = q->B,
					       .pairs = q->pairs, .threads = threads_count(),
					       .layers = t->place.layers, .each = q->each,
					       .ssmax = q->model->options.ssmax, .gradients = q->gradients };
	t->attention = attention_place(&attention, a);
	place_activations(t, a);
	place_matrices(t, a);
	if (q->gradients)
		place_gradients(t, a);
	place_scratch(t, a);
	return placed;
}

/* position [sequences][T]; NULL: 0 .. T - 1. */
static struct err check_positions(const struct model_options *o, const struct method *scaling, const double *position,
				  int sequences, int T)
{
	struct place p = place_of(o);
	double largest = position ? position[0] : T - 1;
	for (size_t i = 0; position && i < (size_t)sequences * (size_t)T; i++)
		largest = position[i] > largest ? position[i] : largest;
	const struct method *zoned = scaling_zoned(scaling);
	bool in_order = zoned && scaling_of(zoned)->in_order, ordered = true;
	for (int s = 0; position && s < sequences; s++)
		ordered = ordered && !decreases(position + (size_t)s * (size_t)T, T);
	if (!ordered && !p.position->any_order)
		return err_usage("Use rope, learned or sinusoidal.",
				 "positions: they decrease along a sequence, which %s does not take",
				 o->encoding.entry->name);
	if (!ordered && in_order)
		return err_usage("Use a scaling that changes frequencies.",
				 "positions: they decrease along a sequence, where %s cannot tell near keys from far ones",
				 zoned->entry->name);
	if (p.position->reach)
		TRY(p.position->reach(&p, largest));
	return scaling_check(scaling, o, largest + 1);
}

static struct err check(const struct transformer_request *q, const struct method *scaling)
{
	if ((int64_t)q->B * q->T > INT32_MAX)
		return err_usage("Choose a smaller batch or length.",
				 "a batch of %d sequences of %d tokens is too large: together they may have %d", q->B,
				 q->T, INT32_MAX);
	return check_positions(&q->model->options, scaling, q->positions, q->each ? q->B : 1, q->T);
}

static struct method scaling_or_none(const struct transformer_request *q)
{
	return q->scaling ? *q->scaling : method_default(scaling_at(0));
}

/* Chunks are cut anew for each length, so the longest need not take the most. */
struct err transformer_bytes(const struct transformer_request *request, size_t *bytes)
{
	struct method scaling = scaling_or_none(request);
	struct transformer_request q = *request;
	TRY(check(request, &scaling));
	*bytes = 0;
	for (q.T = q.T_least ? q.T_least : q.T; q.T <= request->T; q.T++) {
		struct arena measure = { 0 };
		place(&q, &scaling, &measure);
		*bytes = measure.used > *bytes ? measure.used : *bytes;
	}
	return OK;
}

struct err transformer_open(const struct transformer_request *request, struct transformer **out)
{
	struct method scaling = scaling_or_none(request);
	struct arena memory;
	size_t bytes;
	*out = NULL;
	TRY(transformer_bytes(request, &bytes));
	TRY(arena_reserve(&memory, bytes, "the batch"));
	*out = place(request, &scaling, &memory);
	(*out)->memory = memory;
	return OK;
}

struct err transformer_move(struct transformer *t, const double *positions)
{
	struct arena memory = t->zone_memory;
	TRY(check_positions(&t->model->options, &t->scaling, positions, t->sequences, t->T));
	take_positions(t, positions);
	place_zones(t, &memory);
	attention_moved(t->attention);
	return OK;
}

struct err transformer_resize(struct transformer *t, int T, const double *positions)
{
	struct transformer_request opened = t->request, q = opened;
	struct method scaling = t->scaling;
	struct arena memory = t->memory;
	BUG_IF(!q.T_least || T < q.T_least || T > q.T, "a transformer of %d to %d tokens resized to %d", q.T_least, q.T,
	       T);
	q.T = T;
	q.positions = positions;
	TRY(check(&q, &scaling));
	memory.used = 0;
	t = place(&q, &scaling, &memory);
	t->memory = memory;
	t->request = opened;
	return OK;
}

void transformer_close(struct transformer *t)
{
	if (!t)
		return;
	/* The workspace stands in the arena it describes. */
	struct arena memory = t->memory;
	arena_free(&memory);
}
