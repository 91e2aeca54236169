#include "model/decode.h"

#include "model/transformer_parts.h"

#include <stdio.h>
#include <string.h>

/* One layer's cache: rows of all sequences as struct attention_layer has them. */
struct layer_cache {
	real *qkv;  /* [B][T][3C] */
	real *gate; /* [B][T][H][gate_reals] */
};

struct decoder {
	struct decoder_request request;
	struct method scaling; /* as it is decoded */
	bool recomputes;       /* by runs of the sequence so far */
	struct place place;
	struct zones zones;
	double *positions; /* [T] */
	int t;             /* tokens taken */
	struct transformer *inner; /* B sequences of one token, or of those so far */
	struct arena memory;

	/* With a cache. */
	struct attention *attention;
	struct layer_cache *layer;
	real *output;     /* [B][T][C] of the layer at work, as are these */
	real *lse, *saved; /* [B][H][T], [B][H][T][saved_reals] */
	real *vector;     /* [T][C] what the encoding adds to the embeddings */
	int layer_at_work;

	int32_t *token; /* without: [B][T], and room for as many */
};

static struct method scaling_or_none(const struct decoder_request *q)
{
	return q->scaling ? *q->scaling : method_default(scaling_at(0));
}

/* The request as it is configured once, for the longest length: no step decides on a factor. */
static struct decoder_request configured(const struct decoder_request *q, struct method *scaling)
{
	struct decoder_request c = *q;
	struct method asked = scaling_or_none(q);
	double length = q->positions ? 0 : q->T;
	for (int t = 0; q->positions && t < q->T; t++)
		length = q->positions[t] + 1 > length ? q->positions[t] + 1 : length;
	*scaling = scaling_resolved(&asked, &q->model->options, length);
	c.scaling = scaling;
	return c;
}

static bool recomputes(const struct decoder_request *q)
{
	return q->cache == CACHE_RECOMPUTE && q->scaling && scaling_by_length(q->scaling);
}

/* Of one token a sequence; or of the sequences so far, up to all. */
static struct transformer_request inner_request(const struct decoder_request *q)
{
	if (!recomputes(q))
		return (struct transformer_request){ .model = q->model, .B = q->B, .T = 1 };
	return (struct transformer_request){ .model = q->model, .B = q->B, .T = q->T, .T_least = 1,
					     .positions = q->positions, .scaling = q->scaling };
}

/* ---- memory ---- */

static void place_layers(struct decoder *d, struct arena *a)
{
	const struct place *p = &d->place;
	size_t rows = (size_t)d->request.B * (size_t)p->T, C = (size_t)p->C, H = (size_t)p->H;
	size_t gates = H * (size_t)p->position->gate_reals;
	d->layer = ARENA_TAKE(a, struct layer_cache, (size_t)p->layers);
	for (int l = 0; l < p->layers; l++) {
		struct layer_cache c = { .qkv = ARENA_TAKE(a, real, rows * 3 * C) };
		c.gate = ARENA_TAKE(a, real, rows * gates);
		if (d->layer)
			d->layer[l] = c;
	}
	d->output = ARENA_TAKE(a, real, rows * C);
	d->lse = ARENA_TAKE(a, real, rows * H);
	d->saved = ARENA_TAKE(a, real, rows * H * (size_t)p->position->saved_reals);
	d->vector = ARENA_TAKE(a, real, p->position->embed ? (size_t)p->T * C : 0);
}

static void place_cached(struct decoder *d, struct arena *a)
{
	const struct decoder_request *q = &d->request;
	scaling_zones(&d->scaling, &q->model->options, &d->place, a, &d->zones);
	struct attention_request attention = { .place = &d->place, .zones = &d->zones, .B = q->B,
					       .threads = threads_count(), .layers = d->place.layers,
					       .ssmax = q->model->options.ssmax,
					       .turned_keys = q->cache == CACHE_ROTATED };
	d->attention = attention_place(&attention, a);
	place_layers(d, a);
}

static struct decoder *place(const struct decoder_request *q, struct arena *a)
{
	struct decoder measured, *placed = ARENA_TAKE(a, struct decoder, 1), *d = placed ? placed : &measured;
	struct method scaling = scaling_or_none(q);
	*d = (struct decoder){ .request = *q, .recomputes = recomputes(q), .place = place_of(&q->model->options) };
	d->scaling = d->recomputes ? scaling : scaling_by_query(&scaling);
	d->request.scaling = NULL; /* it need not stay */
	d->positions = ARENA_TAKE(a, double, (size_t)q->T);
	for (int t = 0; d->positions && t < q->T; t++) {
		d->positions[t] = q->positions ? q->positions[t] : t;
		d->place.unordered |= t && d->positions[t] < d->positions[t - 1];
	}
	d->place.T = q->T;
	d->place.positions = d->positions;
	if (d->recomputes)
		d->token = ARENA_TAKE(a, int32_t, 2 * (size_t)q->B * (size_t)q->T);
	else
		place_cached(d, a);
	return placed;
}

/* ---- checks ---- */

static struct err refuse_rotated(const struct method *scaling)
{
	return err_usage("Use unrotated.",
			 "a cache of rotated keys: under %s a key is at other places for other queries, so no single "
			 "rotation of it can be kept", scaling->entry->name);
}

/* Only zones at hand tell where they see a key. */
static struct err check_turns(const struct decoder_request *q)
{
	struct arena measure = { 0 }, memory;
	struct decoder_request unrotated = *q;
	unrotated.cache = CACHE_UNROTATED;
	if (place_of(&q->model->options).position->centred)
		return err_usage("Use unrotated.",
				 "a cache of rotated keys: %s rotates them by the distance to their query, so no "
				 "single rotation of one can be kept", q->model->options.encoding.entry->name);
	place(&unrotated, &measure);
	TRY(arena_reserve(&memory, measure.used, "a decoder"));
	const struct decoder *d = place(&unrotated, &memory);
	bool once = zones_turn_once(&d->zones);
	arena_free(&memory);
	struct method scaling = scaling_or_none(q);
	return once ? OK : refuse_rotated(&scaling);
}

/* Blocks of one query are zones, of which a scaling has one kind. */
static struct err check_scaling(const struct decoder_request *q)
{
	struct method scaling = scaling_or_none(q), by_query = scaling_by_query(&scaling);
	struct err e = q->cache == CACHE_RECOMPUTE ? OK : scaling_joins(&by_query);
	if (e.code)
		snprintf(e.hint, sizeof e.hint, "Use recompute, or leave one of them out.");
	return err_at(e, "decoding by the length of each query");
}

/* What no memory holds need not be known to the byte, which asks for every length. */
static struct err inner_bytes(const struct decoder_request *q, size_t *bytes)
{
	struct transformer_request inner = inner_request(q);
	struct transformer_request whole = { .model = q->model, .B = q->B, .T = q->T, .positions = q->positions,
					     .scaling = q->scaling };
	TRY(transformer_bytes(&whole, bytes));
	TRY(check_scaling(q));
	return recomputes(q) && *bytes > memory_available() ? OK : transformer_bytes(&inner, bytes);
}

static struct err configured_bytes(const struct decoder_request *q, size_t *bytes)
{
	struct arena measure = { 0 };
	size_t inner;
	TRY(inner_bytes(q, &inner));
	place(q, &measure);
	arena_take(&measure, inner, 1);
	*bytes = measure.used;
	return q->cache == CACHE_ROTATED ? check_turns(q) : OK;
}

struct err decoder_bytes(const struct decoder_request *q, size_t *bytes)
{
	struct method scaling;
	struct decoder_request once = configured(q, &scaling);
	return configured_bytes(&once, bytes);
}

struct err decoder_open(const struct decoder_request *request, struct decoder **out)
{
	struct method scaling;
	struct decoder_request q = configured(request, &scaling);
	struct transformer_request inner = inner_request(&q);
	struct transformer *transformer;
	struct arena memory, measure = { 0 };
	size_t bytes;
	*out = NULL;
	TRY(configured_bytes(&q, &bytes));
	TRY(transformer_open(&inner, &transformer));
	place(&q, &measure);
	struct err e = arena_reserve(&memory, measure.used, "decoding");
	if (e.code) {
		transformer_close(transformer);
		return e;
	}
	*out = place(&q, &memory);
	(*out)->inner = transformer;
	(*out)->memory = memory;
	return OK;
}

void decoder_close(struct decoder *d)
{
	if (!d)
		return;
	/* The workspace stands in the arena it describes. */
	struct arena memory = d->memory;
	transformer_close(d->inner);
	arena_free(&memory);
}

/* ---- steps ---- */

void decoder_restart(struct decoder *d)
{
	d->t = 0;
}

static struct attention_layer attention_of(const struct decoder *d, int layer)
{
	const struct layer_cache *c = &d->layer[layer];
	struct attention_layer l = attention_layer(d->inner, layer);
	l.qkv = c->qkv;
	l.gate = c->gate;
	l.output = d->output;
	l.lse = d->lse;
	l.saved = d->saved;
	l.wanted = NULL;
	return l;
}

/* One head of one sequence: its new row joins the cache and attends to it. */
static void head_job(int index, int thread, void *data)
{
	const struct decoder *d = data;
	const struct layer_activations *from = &d->inner->layer[d->layer_at_work];
	const struct layer_cache *to = &d->layer[d->layer_at_work];
	struct attention_layer l = attention_of(d, d->layer_at_work);
	size_t C = (size_t)d->place.C, H = (size_t)d->place.H, D = (size_t)d->place.D;
	size_t G = (size_t)d->place.position->gate_reals, b = (size_t)index / H, h = (size_t)index % H;
	size_t row = b * (size_t)d->place.T + (size_t)d->t;
	for (size_t part = 0; part < 3; part++)
		memcpy(to->qkv + (row * 3 + part) * C + h * D, from->qkv + (b * 3 + part) * C + h * D,
		       D * sizeof(real));
	if (G)
		memcpy(to->gate + (row * H + h) * G, from->gate + (b * H + h) * G, G * sizeof(real));
	if (d->request.cache == CACHE_ROTATED)
		attention_turn_key(d->attention, &l, index, d->t, thread, to->qkv + (row * 3 + 1) * C + h * D);
	attention_row_forward(d->attention, &l, index, d->t, thread);
	memcpy(from->output + b * C + h * D, d->output + row * C + h * D, D * sizeof(real));
}

static void attend_layer(int layer, void *data)
{
	struct decoder *d = data;
	struct attention_layer l = attention_of(d, layer);
	d->layer_at_work = layer;
	attention_enter_row(d->attention, &l, d->t);
	threads_each(d->request.B * d->place.H, head_job, d);
}

static void cached_step(struct decoder *d, const int32_t *token, real *logits)
{
	struct attend attend = { .layer = attend_layer, .data = d };
	size_t C = (size_t)d->place.C;
	if (d->t == 0) {
		transformer_pack(d->inner);
		transformer_vectors(d->request.model, &d->place, d->vector);
	}
	if (d->place.position->embed)
		memcpy(d->inner->vector, d->vector + (size_t)d->t * C, C * sizeof(real));
	transformer_step(d->inner, token, &attend, logits);
}

static void recomputed_step(struct decoder *d, const int32_t *token, real *logits)
{
	size_t B = (size_t)d->request.B, T = (size_t)d->request.T, t = (size_t)d->t + 1;
	int32_t *so_far = d->token + B * T; /* [B][t] */
	for (size_t b = 0; b < B; b++)
		d->token[b * T + t - 1] = token[b];
	if (!logits)
		return;
	for (size_t b = 0; b < B; b++)
		memcpy(so_far + b * t, d->token + b * T, t * sizeof *token);
	struct err e = transformer_resize(d->inner, (int)t, d->positions);
	BUG_IF(e.code, "decoding: %s", e.text);
	transformer_last(d->inner, so_far, logits);
}

void decoder_step(struct decoder *d, const int32_t *token, real *logits)
{
	BUG_IF(d->t >= d->request.T, "step %d of a decoder of %d", d->t, d->request.T);
	if (d->recomputes)
		recomputed_step(d, token, logits);
	else
		cached_step(d, token, logits);
	d->t++;
}
