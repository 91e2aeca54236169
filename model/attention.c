#include "model/attention.h"

#include "model/attention_tile.h"
#include "model/base/phase.h"
#include "model/base/threads.h"

#include <math.h>
#include <string.h>

/* Positions whose angles are made in one go. */
#define ANGLE_CHUNK 64

struct attention *attention_place(const struct attention_request *q, struct arena *arena)
{
	struct attention measured, *placed = ARENA_TAKE(arena, struct attention, 1), *a = placed ? placed : &measured;
	attention_shape(a, q);
	size_t F = (size_t)a->F, jobs = (size_t)a->B * (size_t)a->H, layers = (size_t)q->layers;
	place_pair_sets(q->place, q->pairs, arena, &a->pairs);
	size_t angles = attention_angles(a, a->sequences, 0, 0, SIDE_QUERY);
	a->cosine = ARENA_TAKE(arena, real, angles);
	a->sine = ARENA_TAKE(arena, real, angles);
	a->table = ARENA_TAKE(arena, real, layers * (size_t)a->H * a->table_reals);
	if (q->gradients) {
		a->table_slot = ARENA_TAKE(arena, real, layers * jobs * a->table_reals);
		a->d_table = ARENA_TAKE(arena, real, (size_t)a->H * a->table_reals);
		a->frequency_slot = ARENA_TAKE(arena, double, a->learns_frequencies ? jobs * (F + 1) : 0);
		a->d_frequency = ARENA_TAKE(arena, double, a->learns_frequencies ? F + 1 : 0);
		a->ssmax_slot = ARENA_TAKE(arena, double, a->ssmax ? layers * jobs : 0);
	}
	a->thread = ARENA_TAKE(arena, struct attention_thread, (size_t)q->threads);
	for (int t = 0; t < q->threads; t++) {
		struct attention_thread scratch;
		attention_thread_place(a, &scratch, arena);
		if (a->thread)
			a->thread[t] = scratch;
	}
	return placed;
}

/* A pair's frequency and what its cosine and sine are multiplied by. */
struct turn {
	double inv_freq, factor;
};

static struct turn turn_of(const struct attention *a, const struct zone *z, int set, int m)
{
	switch ((enum pair_kind)a->pairs.kind[(size_t)set * (size_t)a->F + (size_t)m]) {
	case PAIR_SCALED:
		return (struct turn){ z->inv_freq[m], z->attention_factor };
	case PAIR_TRAINED:
		return (struct turn){ a->pairs.trained[m], 1 };
	case PAIR_STILL:
		return (struct turn){ 0, 1 };
	case PAIR_REMOVED:
		break;
	}
	return (struct turn){ 0, 0 };
}

/* One piece of a zone's cosines and sines: positions first .. last - 1 of one side. */
static void make_angles(const struct attention *a, const struct zone *z, int set, const double *position, int first,
			int last, size_t at)
{
	for (int m = 0; m < a->F; m++) {
		struct turn turn = turn_of(a, z, set, m);
		for (int i = first; i < last; i++) {
			double angle = position[i] * turn.inv_freq;
			size_t item = at + (size_t)i * (size_t)a->F + (size_t)m;
			/* Zones may hold many keys at one position, and sines are dear. */
			if (i > first && position[i] == position[i - 1]) {
				a->cosine[item] = a->cosine[item - (size_t)a->F];
				a->sine[item] = a->sine[item - (size_t)a->F];
				continue;
			}
			a->cosine[item] = (real)(turn.factor * cos(angle));
			a->sine[item] = (real)(turn.factor * sin(angle));
		}
	}
}

static void angle_job(int index, int thread, void *data)
{
	const struct attention *a = data;
	int chunks = (a->T + ANGLE_CHUNK - 1) / ANGLE_CHUNK, first = index % chunks * ANGLE_CHUNK;
	int last = first + ANGLE_CHUNK, side = index / chunks % 2, zone = index / chunks / 2 % a->together;
	int set = index / chunks / 2 / a->together % a->pairs.count;
	int sequence = index / chunks / 2 / a->together / a->pairs.count;
	const struct zone *z = &a->zones[sequence].zone[a->group + zone];
	bool query = side == SIDE_QUERY;
	int count = query ? z->end - z->begin : z->end;
	(void)thread;
	if (last > count)
		last = count;
	make_angles(a, z, set, query ? z->query_position : z->key_position, first, last,
		    attention_angles(a, sequence, set, zone, (enum side)side));
}

/* Makes the angles of the zones group .. group + together - 1 unless they are there already. */
static void enter_group(struct attention *a, int group)
{
	int together = 1;
	while (group + together < a->zones->count &&
	       a->zones->zone[group + together].begin == a->zones->zone[group].begin)
		together++;
	bool fresh = a->angles_of == group && !a->learns_frequencies;
	a->group = group;
	a->together = together;
	if (!a->rotates || fresh)
		return;
	threads_each(a->sequences * a->pairs.count * 2 * together * ((a->T + ANGLE_CHUNK - 1) / ANGLE_CHUNK),
		     angle_job, a);
	a->angles_of = group;
}

void attention_moved(struct attention *a)
{
	a->angles_of = -1;
}

bool attention_in_parts(const struct attention *a)
{
	return !a->learns_frequencies && a->zones->count == a->zones->together;
}

static struct prepared prepared_of(struct attention *a, const struct attention_layer *l)
{
	const struct zone *z = &a->zones->zone[0];
	struct prepared to = { .table = a->table + (size_t)l->index * (size_t)a->H * a->table_reals };
	if (a->learns_frequencies) {
		to.inv_freq = z->inv_freq;
		to.attention_factor = &a->zones->zone[0].attention_factor;
	}
	return to;
}

static void make_table(struct attention *a, const struct attention_layer *l)
{
	struct prepared to = prepared_of(a, l);
	if (a->place->position->prepare)
		a->place->position->prepare(a->place, l->own, &to);
	/* What it learned is for every zone. */
	for (int s = 0; a->learns_frequencies && s < a->sequences; s++)
		for (struct zone *z = a->zones[s].zone; z < a->zones[s].zone + a->zones[s].count; z++) {
			memmove(z->inv_freq, to.inv_freq, (size_t)a->F * sizeof *z->inv_freq);
			z->attention_factor = *to.attention_factor;
		}
}

void attention_prepare(struct attention *a, const struct attention_layer *l)
{
	BUG_IF(!attention_in_parts(a), "heads do not stand alone");
	make_table(a, l);
	enter_group(a, 0);
}

/* Where the block of queries that begins with `first` ends. */
static int block_end(const struct attention_head *h, int first)
{
	const struct zone *z = h->zone;
	const struct position *position = h->a->place->position;
	int last = first + QUERY_BLOCK < z->end ? first + QUERY_BLOCK : z->end;
	if (!position->centred_span)
		return last;
	double most = position->centred_span(h->a->place);
	for (int zone = 0; zone < h->a->together; zone++) {
		const double *at = z[zone].query_position + (first - z->begin);
		for (int i = 1; i < last - first; i++)
			if (at[i] - at[0] > most)
				last = first + i;
	}
	return last;
}

void attention_head_forward(const struct attention *a, const struct attention_layer *l, int index, int thread)
{
	struct attention_head head = attention_head(a, l, index, thread);
	const struct zone *z = head.zone;
	bool centred = a->place->position->centred;
	phase_enter(PHASE_ATTENTION);
	if (a->group == 0 && a->place->position->gates_ready)
		a->place->position->gates_ready(a->place, head.gate, a->H * a->gate_reals);
	attention_enter_values(&head);
	if (!centred)
		attention_enter_keys(&head);
	for (int i = z->begin, end; i < z->end; i = end) {
		end = block_end(&head, i);
		attention_rows(&head, i, end);
	}
}

/* The first zone of the group that holds query t; groups are entered in order, but for the first again. */
static int group_of(const struct attention *a, int t)
{
	const struct zone *zone = a->zones->zone;
	int group = zone[a->group].begin <= t ? a->group : 0;
	while (zone[group].end <= t)
		group++;
	return group;
}

void attention_enter_row(struct attention *a, const struct attention_layer *l, int t)
{
	if (t == 0 || a->learns_frequencies)
		make_table(a, l);
	enter_group(a, group_of(a, t));
}

void attention_row_forward(const struct attention *a, const struct attention_layer *l, int index, int t, int thread)
{
	struct attention_head head = attention_head(a, l, index, thread);
	struct place so_far = *a->place;
	phase_enter(PHASE_ATTENTION);
	head.keys = so_far.T = t + 1;
	if (so_far.position->gates_ready)
		so_far.position->gates_ready(&so_far, head.gate, a->H * a->gate_reals);
	attention_enter_values(&head);
	if (!so_far.position->centred)
		attention_enter_keys(&head);
	attention_rows(&head, t, t + 1);
	phase_enter(PHASE_ELEMENTWISE);
}

void attention_turn_key(const struct attention *a, const struct attention_layer *l, int index, int t, int thread,
			real *k)
{
	struct attention_head head = attention_head(a, l, index, thread);
	if (!a->rotates)
		return;
	struct rotation r = attention_rotation(&head, 0, SIDE_KEY, t, 1);
	a->place->position->rotate(&r, k, a->D, head.scratch->range);
	memcpy(k, head.scratch->range, (size_t)a->D * sizeof *k);
}

static void clear_head(const struct attention_head *h)
{
	const struct attention *a = h->a;
	size_t H = (size_t)a->H, G = (size_t)a->gate_reals, D = (size_t)a->D;
	for (size_t t = 0; t < (size_t)a->T; t++) {
		for (size_t part = 0; part < 3; part++)
			memset(h->d_q + t * 3 * H * D + part * H * D, 0, D * sizeof(real));
		if (G)
			memset(h->d_gate + t * H * G, 0, G * sizeof(real));
	}
	if (a->table_reals)
		memset(h->d_table, 0, a->table_reals * sizeof(real));
	if (a->learns_frequencies)
		memset(h->d_frequency, 0, (size_t)(a->F + 1) * sizeof(double));
	if (a->ssmax)
		*h->d_ssmax = 0;
}

void attention_head_backward(const struct attention *a, const struct attention_layer *l, struct attention_gradients g,
			     int index, int thread)
{
	struct attention_head head = attention_head(a, l, index, thread);
	const struct zone *z = head.zone;
	bool centred = a->place->position->centred;
	phase_enter(PHASE_ATTENTION_BACK);
	attention_head_gradients(&head, l, g, index);
	if (a->group == 0)
		clear_head(&head);
	attention_enter_values(&head);
	if (!centred)
		attention_enter_keys(&head);
	for (int i = z->begin, end; i < z->end; i = end) {
		end = block_end(&head, i);
		attention_rows_back(&head, i, end);
	}
	if (!centred)
		attention_leave_keys(&head);
	attention_leave_values(&head);
	if (a->group + a->together == a->zones->count && a->place->position->gates_ready_back)
		a->place->position->gates_ready_back(a->place, head.gate, head.d_gate, a->H * a->gate_reals);
}

struct job {
	struct attention *a;
	const struct attention_layer *l;
	struct attention_gradients g;
};

static void forward_job(int index, int thread, void *data)
{
	struct job *job = data;
	attention_head_forward(job->a, job->l, index, thread);
}

static void backward_job(int index, int thread, void *data)
{
	struct job *job = data;
	attention_head_backward(job->a, job->l, job->g, index, thread);
}

static void each_group(struct job *job, void (*body)(int index, int thread, void *data))
{
	struct attention *a = job->a;
	for (int group = 0; group < a->zones->count; group += a->together) {
		enter_group(a, group);
		threads_each(a->B * a->H, body, job);
	}
}

void attention_forward(struct attention *a, const struct attention_layer *l)
{
	struct job job = { .a = a, .l = l };
	make_table(a, l);
	each_group(&job, forward_job);
}

/* Sums the private slots over sequences, in order. */
static void sum_slots(struct attention *a, int layer)
{
	size_t H = (size_t)a->H, R = a->table_reals, F = a->learns_frequencies ? (size_t)a->F + 1 : 0;
	const real *slot = a->table_slot + (size_t)layer * (size_t)a->B * H * R;
	for (size_t h = 0; h < H; h++)
		for (size_t r = 0; r < R; r++) {
			double sum = 0;
			for (size_t b = 0; b < (size_t)a->B; b++)
				sum += (double)slot[(b * H + h) * R + r];
			a->d_table[h * R + r] = (real)sum;
		}
	for (size_t f = 0; f < F; f++) {
		a->d_frequency[f] = 0;
		for (size_t job = 0; job < (size_t)a->B * H; job++)
			a->d_frequency[f] += a->frequency_slot[job * F + f];
	}
}

/* Of each head, its slots over sequences, in order. */
static void sum_ssmax(const struct attention *a, int layer, real *d_ssmax)
{
	size_t H = (size_t)a->H;
	const double *slot = a->ssmax_slot + (size_t)layer * (size_t)a->B * H;
	for (size_t h = 0; h < H; h++) {
		double sum = 0;
		for (size_t b = 0; b < (size_t)a->B; b++)
			sum += slot[b * H + h];
		d_ssmax[h] = (real)sum;
	}
}

void attention_finish(struct attention *a, const struct attention_layer *l, struct attention_parameters to)
{
	const struct position *position = a->place->position;
	struct prepared made = prepared_of(a, l);
	if (a->ssmax)
		sum_ssmax(a, l->index, to.ssmax);
	if (!position->prepare_back)
		return;
	sum_slots(a, l->index);
	position->prepare_back(a->place, l->own, &made, a->d_table, a->d_frequency,
			       a->learns_frequencies ? a->d_frequency[a->F] : 0, to.own);
}

void attention_backward(struct attention *a, const struct attention_layer *l, struct attention_gradients g,
			struct attention_parameters to)
{
	struct job job = { .a = a, .l = l, .g = g };
	make_table(a, l);
	each_group(&job, backward_job);
	attention_finish(a, l, to);
}
