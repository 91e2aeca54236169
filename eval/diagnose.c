#include "eval/diagnose.h"

#include "data/batch.h"
#include "eval/parts.h"
#include "model/attention.h"
#include "model/base/threads.h"
#include "model/position/rope.h"
#include "model/positions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One attention row at work: sums over the keys it has met so far, those of exp relative to the greatest logit. */
struct row {
	double greatest, sum, weighted; /* sum of e, and of e (logit - greatest), e = exp(logit - greatest) */
	double share[KEY_CLASSES], beyond, previous; /* sums of e */
	int64_t keys;
	/* Sums over keys, less what the first has: of logits, their squares, the part of outside pairs, and products. */
	double first, linear, square, part_first, part_linear, cross;
};

/* Sums over rows. */
struct sums {
	int64_t queries, sources;
	double entropy, share[KEY_CLASSES], beyond, deviation, peak, variance, covariance, link;
};

enum { QUERY = 1, SOURCE = 2 };

struct watch {
	const struct diagnose_request *request;
	struct place place;
	struct diagnosis *result;
	bool *filler;             /* [V] */
	int *outside;             /* [2 pairs] components of those that are outside */
	int components;
	int T;
	const struct batch *lot;
	uint8_t *kind;            /* [N] of the lot's tokens: QUERY, SOURCE or both */
	size_t tokens;            /* that `kind` has room for */
	int most;                 /* sequences */
	struct row *row;          /* [threads][QUERY_BLOCK] */
	struct sums *sums;        /* [layers][most][H] of the lot */
	struct sums *total;       /* [layers][H] */
	struct arena memory;
};

/* ---- one row ---- */

static void row_start(struct row *r)
{
	*r = (struct row){ .greatest = -INFINITY };
}

/* A greater logit makes all there is so far less. */
static void raise(struct row *r, double greatest)
{
	if (!(greatest > r->greatest))
		return;
	double less = r->greatest > -INFINITY ? r->greatest - greatest : 0, by = exp(less);
	r->weighted = by * (r->weighted + less * r->sum);
	r->sum *= by;
	for (int c = 0; c < KEY_CLASSES; c++)
		r->share[c] *= by;
	r->beyond *= by;
	r->previous *= by;
	r->greatest = greatest;
}

static void add_spread(struct row *r, double logit, double part)
{
	if (r->keys++ == 0) {
		r->first = logit;
		r->part_first = part;
	}
	double x = logit - r->first, y = part - r->part_first;
	r->linear += x;
	r->square += x * x;
	r->part_linear += y;
	r->cross += x * y;
}

/* `kind` [T] of the sequence. */
static enum key_class class_of(const struct watch *w, const struct sequence *s, const uint8_t *kind, int query, int key)
{
	int right = query - s->distance[query];
	int32_t token = s->token[key];
	if (key == right)
		return KEY_RIGHT;
	if (key == right - 1)
		return KEY_BEFORE;
	if (key == query)
		return KEY_SELF;
	if (key == 0)
		return KEY_BOS;
	if (token == s->token[right] || token == s->token[query])
		return KEY_ALIKE;
	if (kind[key] & SOURCE)
		return KEY_RIVAL;
	return w->filler[token] ? KEY_FILLER : KEY_REST;
}

/* The logit of a key from the outside pairs alone. */
static double part_of(const struct watch *w, const struct tile *t, int r, int column)
{
	const real *q = t->q + (size_t)r * (size_t)t->q_stride, *k = t->k + (size_t)column * (size_t)t->k_stride;
	double sum = 0;
	for (int i = 0; i < w->components; i++)
		sum += (double)q[w->outside[i]] * (double)k[w->outside[i]];
	return sum * (double)t->scale;
}

static double greatest_of(const struct tile *t, int r, const real *logit)
{
	double greatest = -INFINITY;
	for (int j = t->low[r]; j < t->high[r]; j++)
		greatest = fmax(greatest, (double)logit[j]);
	return greatest;
}

static void look_row(const struct watch *w, const struct attention_look *at, const struct sequence *s, int r,
		     bool query_row, struct row *row)
{
	const uint8_t *kind = w->kind + (size_t)(at->index / w->place.H) * (size_t)w->T;
	const struct tile *t = at->tile;
	const real *logit = at->logits + (size_t)r * TILE_STRIDE;
	int query = at->query[r], train_length = (int)w->request->eval.model->options.train_length;
	bool parts = w->components && place_rotates(&w->place, at->layer);
	raise(row, greatest_of(t, r, logit));
	for (int j = t->low[r]; j < t->high[r]; j++) {
		int key = at->key + j;
		double less = (double)logit[j] - row->greatest, e = exp(less);
		if (logit[j] == (real)-INFINITY)
			continue;
		row->sum += e;
		if (key == query - 1)
			row->previous += e;
		if (!query_row)
			continue;
		row->weighted += e * less;
		row->share[class_of(w, s, kind, query, key)] += e;
		if (query - key >= train_length)
			row->beyond += e;
		add_spread(row, (double)logit[j], parts ? part_of(w, t, r, j) : 0);
	}
}

static void add_query(const struct row *r, struct sums *to)
{
	double n = (double)r->keys, mean = r->linear / n;
	double variance = fmax(0, r->square / n - mean * mean);
	to->queries++;
	to->entropy += log(r->sum) - r->weighted / r->sum;
	for (int c = 0; c < KEY_CLASSES; c++)
		to->share[c] += r->share[c] / r->sum;
	to->beyond += r->beyond / r->sum;
	to->deviation += sqrt(variance);
	to->peak += r->greatest - (r->first + mean);
	to->variance += variance;
	to->covariance += r->cross / n - mean * (r->part_linear / n);
}

/* ---- the probe ---- */

static int kind_of(const struct watch *w, const struct attention_look *at, int r)
{
	const struct place *p = &w->place;
	size_t n = (size_t)(at->index / p->H) * (size_t)w->T + (size_t)at->query[r];
	bool last = at->layer + 1 == p->layers;
	return w->kind[n] & (last ? QUERY : QUERY | SOURCE);
}

static struct row *rows_of(const struct watch *w, const struct attention_look *at)
{
	return w->row + (size_t)at->thread * QUERY_BLOCK;
}

static void look(void *data, const struct attention_look *at)
{
	const struct watch *w = data;
	struct sequence s = batch_sequence(w->lot, at->index / w->place.H);
	for (int r = 0; r < at->rows; r++) {
		int kind = kind_of(w, at, r);
		if (kind)
			look_row(w, at, &s, r, kind & QUERY, rows_of(w, at) + r);
	}
}

static void finish(void *data, const struct attention_look *at)
{
	struct watch *w = data;
	struct sums *to = w->sums + (size_t)at->layer * (size_t)w->most * (size_t)w->place.H + at->index;
	for (int r = 0; r < at->rows; r++) {
		struct row *row = rows_of(w, at) + r;
		int kind = kind_of(w, at, r);
		if (kind & QUERY)
			add_query(row, to);
		if (kind & SOURCE) {
			to->sources++;
			to->link += row->previous / row->sum;
		}
		row_start(row);
	}
}

/* ---- lots ---- */

static void enter(void *data, const struct batch *lot, int count)
{
	struct watch *w = data;
	int T = w->T;
	size_t heads = (size_t)w->place.layers * (size_t)w->most * (size_t)w->place.H;
	BUG_IF((size_t)lot->count * (size_t)T > w->tokens, "a lot of %d sequences", lot->count);
	w->lot = lot;
	memset(w->kind, 0, w->tokens);
	memset(w->sums, 0, heads * sizeof *w->sums);
	for (int b = 0; b < count; b++) {
		struct sequence s = batch_sequence(lot, b);
		uint8_t *kind = w->kind + (size_t)b * (size_t)T;
		for (int t = 0; t < T; t++)
			if (s.target[t] >= 0 && s.group[t] == w->request->group) {
				kind[t] |= QUERY;
				kind[t - s.distance[t]] |= SOURCE;
			}
	}
}

static void add_sums(const struct sums *from, struct sums *to)
{
	to->queries += from->queries;
	to->sources += from->sources;
	to->entropy += from->entropy;
	for (int c = 0; c < KEY_CLASSES; c++)
		to->share[c] += from->share[c];
	to->beyond += from->beyond;
	to->deviation += from->deviation;
	to->peak += from->peak;
	to->variance += from->variance;
	to->covariance += from->covariance;
	to->link += from->link;
}

static void leave(void *data, int count)
{
	struct watch *w = data;
	int H = w->place.H;
	for (int layer = 0; layer < w->place.layers; layer++) {
		const struct sums *lot = w->sums + (size_t)layer * (size_t)w->most * (size_t)H;
		for (int i = 0; i < count * H; i++)
			add_sums(&lot[i], &w->total[layer * H + i % H]);
	}
}

/* ---- pairs ---- */

static bool learns(const struct place *p)
{
	return p->position->prepares_inv_freq && p->position->prepares_inv_freq(p);
}

static int count_pairs(const struct place *p)
{
	for (int layer = 0; layer < p->layers; layer++)
		if (place_rotates(p, layer))
			return place_pairs(p);
	return 0;
}

/* inv_freq [pairs] in force and the largest angle that each pair reaches in a sequence at the positions 0 .. T - 1. */
static struct err reach(const struct model *m, const struct method *scaling, int T, double *inv_freq, double *angle)
{
	struct place p = place_of(&m->options);
	struct arena measure = { 0 }, memory = { 0 };
	struct zones zones;
	p.T = T;
	arena_take(&measure, (size_t)T, sizeof(double));
	scaling_zones(scaling, &m->options, &p, &measure, &zones);
	TRY(arena_reserve(&memory, measure.used, "the zones of a sequence"));
	double *position = ARENA_TAKE(&memory, double, (size_t)T);
	for (int t = 0; t < T; t++)
		position[t] = t;
	p.positions = position;
	scaling_zones(scaling, &m->options, &p, &memory, &zones);
	if (learns(&p))
		parts_frequencies(m, scaling, T, inv_freq);
	for (int i = 0; i < place_pairs(&p); i++)
		angle[i] = 0;
	for (struct zone *z = zones.zone; z < zones.zone + zones.count; z++) {
		struct zones one = { .zone = z, .count = 1, .together = 1 };
		double distance = zones_longest_distance(&one);
		for (int i = 0; i < place_pairs(&p); i++) {
			inv_freq[i] = learns(&p) ? inv_freq[i] : z->inv_freq[i];
			angle[i] = fmax(angle[i], distance * inv_freq[i]);
		}
	}
	arena_free(&memory);
	return OK;
}

/* Tokens at consecutive positions that reach as far as T of these do. */
static int reached(const struct diagnose_request *r, bool training, int T)
{
	const struct model_options *o = &r->eval.model->options;
	struct numbering n = { .options = o, .training = training, .task = r->eval.data->task.entry->name,
			       .placed = task_placed(&r->eval.data->task) };
	return o->positions == POSITIONS_RANDOMIZED ? (int)positions_reach(&n, T) : T;
}

static struct err find_pairs(const struct diagnose_request *r, struct diagnosis *d)
{
	const struct model *m = r->eval.model;
	size_t F = (size_t)d->pairs;
	struct arena memory;
	if (!d->pairs)
		return OK;
	TRY(arena_reserve(&memory, 4 * F * sizeof(double), "what pairs turn by"));
	double *number = ARENA_TAKE(&memory, double, 4 * F);
	struct err e = reach(m, &m->options.trained_scaling, reached(r, true, r->trained_length), number, number + F);
	if (!e.code)
		e = reach(m, r->eval.scaling, reached(r, false, r->eval.length), number + 2 * F, number + 3 * F);
	for (size_t i = 0; i < F && !e.code; i++) {
		struct diagnosed_pair *p = &d->pair[i];
		*p = (struct diagnosed_pair){ number[i], number[2 * F + i], number[F + i], number[3 * F + i], false };
		p->outside = rope_angle_is_new(p->trained_angle, p->angle, p->trained_inv_freq);
		d->outside += p->outside;
	}
	arena_free(&memory);
	return e;
}

static void list_components(struct watch *w)
{
	const struct diagnosis *d = w->result;
	const struct position *position = w->place.position;
	bool half = position->half_layout && position->half_layout(&w->place);
	/* A hook makes logits of more than q.k. */
	for (int m = 0; m < d->pairs && !position->logits; m++) {
		if (!d->pair[m].outside)
			continue;
		w->outside[w->components++] = half ? m : 2 * m;
		w->outside[w->components++] = half ? m + d->pairs : 2 * m + 1;
	}
}

/* ---- all of it ---- */

/* A task tells its filler by drawing it: so often that no token is missed. */
static void list_filler(const struct method *method, int V, bool *filler)
{
	const struct task *task = task_of(method);
	struct rng r = rng_at(0, STREAM_REPORT, 0);
	memset(filler, 0, (size_t)V * sizeof *filler);
	for (int i = 0; task->filler && i < 64 * V; i++)
		filler[task->filler(method, &r)] = true;
}

static void place(struct arena *a, struct watch *w)
{
	size_t V = (size_t)w->request->eval.model->V, H = (size_t)w->place.H, layers = (size_t)w->place.layers;
	w->filler = ARENA_TAKE(a, bool, V);
	w->outside = ARENA_TAKE(a, int, 2 * (size_t)w->result->pairs);
	w->kind = ARENA_TAKE(a, uint8_t, w->tokens);
	w->row = ARENA_TAKE(a, struct row, (size_t)threads_count() * QUERY_BLOCK);
	w->sums = ARENA_TAKE(a, struct sums, layers * (size_t)w->most * H);
	w->total = ARENA_TAKE(a, struct sums, layers * H);
}

static struct err watch_open(struct watch *w)
{
	const struct eval_request *q = &w->request->eval;
	struct arena measure = { 0 };
	w->place = place_of(&q->model->options);
	w->T = q->length;
	w->most = eval_lot(q);
	w->tokens = (size_t)w->most * (size_t)q->length;
	place(&measure, w);
	TRY(arena_reserve(&w->memory, measure.used, "a diagnosis"));
	place(&w->memory, w);
	list_filler(&q->data->task, q->model->V, w->filler);
	list_components(w);
	for (int i = 0; i < threads_count() * QUERY_BLOCK; i++)
		row_start(&w->row[i]);
	memset(w->total, 0, (size_t)w->place.layers * (size_t)w->place.H * sizeof *w->total);
	return OK;
}

static struct diagnosed_head means(const struct watch *w, const struct sums *s, int layer)
{
	double n = (double)s->queries;
	struct diagnosed_head h = { .queries = s->queries, .sources = s->sources, .outside = NAN };
	if (s->sources)
		h.link = s->link / (double)s->sources;
	if (w->result->pairs && !w->place.position->logits && place_rotates(&w->place, layer) && s->variance > 0)
		h.outside = s->covariance / s->variance;
	if (!s->queries)
		return h;
	h.entropy = s->entropy / n;
	for (int c = 0; c < KEY_CLASSES; c++)
		h.share[c] = s->share[c] / n;
	h.beyond = s->beyond / n;
	h.deviation = s->deviation / n;
	h.peak = s->peak / n;
	return h;
}

static struct err result_open(const struct diagnose_request *r, struct diagnosis *out)
{
	struct place p = place_of(&r->eval.model->options);
	*out = (struct diagnosis){ .layers = p.layers, .heads = p.H, .pairs = count_pairs(&p) };
	out->head = calloc((size_t)p.layers * (size_t)p.H, sizeof *out->head);
	out->pair = calloc((size_t)out->pairs + 1, sizeof *out->pair);
	if (!out->head || !out->pair)
		return err_failed("Choose fewer --multiples.", "no memory for what is found of %d heads", p.H);
	return find_pairs(r, out);
}

struct err diagnose_run(const struct diagnose_request *request, eval_progress *progress, void *data,
			struct diagnosis *out)
{
	struct watch w = { .request = request, .result = out };
	struct attention_probe probe = { .look = look, .finish = finish, .data = &w };
	struct eval_watch watch = { .probe = &probe, .enter = enter, .leave = leave, .data = &w };
	struct eval_request eval = request->eval;
	struct err e = result_open(request, out);
	eval.watch = &watch;
	if (!e.code)
		e = watch_open(&w);
	if (!e.code)
		e = eval_run(&eval, progress, data, &out->result);
	for (int i = 0; i < out->layers * out->heads && !e.code; i++)
		out->head[i] = means(&w, &w.total[i], i / out->heads);
	arena_free(&w.memory);
	return e;
}

void diagnosis_free(struct diagnosis *d)
{
	eval_result_free(&d->result);
	free(d->head);
	free(d->pair);
	*d = (struct diagnosis){ 0 };
}
