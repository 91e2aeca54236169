#include "model/attention_tile.h"

#include "model/base/vec.h"

#include <math.h>
#include <string.h>

void attention_shape(struct attention *a, const struct attention_request *q)
{
	const struct place *p = q->place;
	const struct position *position = p->position;
	*a = (struct attention){
		.place = p, .zones = q->zones, .sequences = q->each ? q->B : 1, .B = q->B, .T = p->T, .C = p->C,
		.H = p->H, .D = p->D, .F = place_pairs(p), .ssmax = q->ssmax,
		.gate_reals = position->gate_reals, .carry_reals = position->carry_reals,
		.saved_reals = position->saved_reals,
		.table_reals = position->table_reals ? position->table_reals(p) : 0,
		.gradients = q->gradients, .rotates = position->rotate,
		.half = position->half_layout && position->half_layout(p),
		.rotates_keys = position->rotate && !q->turned_keys,
		.learns_frequencies = position->prepares_inv_freq && position->prepares_inv_freq(p),
		.scale = (real)(position->scale ? position->scale(p) : 1 / sqrt(p->D)),
		.angles_of = -1,
	};
}

void attention_thread_place(const struct attention *a, struct attention_thread *t, struct arena *arena)
{
	size_t tile = (size_t)QUERY_BLOCK * TILE_STRIDE, D = (size_t)a->D, T = (size_t)a->T;
	size_t together = (size_t)a->zones->together, turned = product_turned_reals(a->T, a->D);
	*t = (struct attention_thread){ 0 };
	t->logits = ARENA_TAKE(arena, real, tile);
	t->q = ARENA_TAKE(arena, real, together * QUERY_BLOCK * D);
	t->k = ARENA_TAKE(arena, real, together * T * D);
	t->k_turned = ARENA_TAKE(arena, real, together * turned);
	t->v = ARENA_TAKE(arena, real, T * D);
	t->range = ARENA_TAKE(arena, real, QUERY_BLOCK * D);
	t->position = ARENA_TAKE(arena, double, QUERY_BLOCK);
	t->alone = ARENA_TAKE(arena, double, QUERY_BLOCK);
	t->centre = ARENA_TAKE(arena, double, together);
	t->accumulator = ARENA_TAKE(arena, real, QUERY_BLOCK * D);
	t->greatest = ARENA_TAKE(arena, real, QUERY_BLOCK);
	t->sum = ARENA_TAKE(arena, real, QUERY_BLOCK);
	t->correction = ARENA_TAKE(arena, real, QUERY_BLOCK);
	t->carry = ARENA_TAKE(arena, real, (size_t)QUERY_BLOCK * (size_t)a->carry_reals);
	t->low = ARENA_TAKE(arena, int, QUERY_BLOCK);
	t->high = ARENA_TAKE(arena, int, QUERY_BLOCK);
	t->columns = ARENA_TAKE(arena, struct span, (size_t)ROW_BLOCKS);
	t->read = ARENA_TAKE(arena, struct span, (size_t)ROW_BLOCKS);
	t->rows = ARENA_TAKE(arena, struct span, (size_t)COLUMN_BLOCKS);
	if (!a->gradients)
		return;
	t->unscaled = ARENA_TAKE(arena, real, a->ssmax ? together * QUERY_BLOCK * D : 0);
	t->raw = ARENA_TAKE(arena, real, a->place->position->logits_back_reads_raw ? tile : 0);
	t->d_logits = ARENA_TAKE(arena, real, tile);
	t->d_q = ARENA_TAKE(arena, real, together * QUERY_BLOCK * D);
	t->d_k = ARENA_TAKE(arena, real, together * T * D);
	t->d_v = ARENA_TAKE(arena, real, T * D);
	t->v_turned = ARENA_TAKE(arena, real, turned);
	t->d_output = ARENA_TAKE(arena, real, QUERY_BLOCK * D);
	t->delta = ARENA_TAKE(arena, real, QUERY_BLOCK);
}

struct attention_head attention_head(const struct attention *a, const struct attention_layer *l, int index, int thread)
{
	size_t b = (size_t)(index / a->H), head = (size_t)(index % a->H), T = (size_t)a->T;
	size_t C = (size_t)a->C, G = (size_t)a->gate_reals, H = (size_t)a->H, S = (size_t)a->saved_reals;
	const real *qkv = l->qkv + b * T * 3 * C + head * (size_t)a->D;
	int sequence = a->sequences > 1 ? (int)b : 0;
	return (struct attention_head){
		.a = a, .scratch = &a->thread[thread], .head = (int)head, .sequence = sequence,
		.set = a->F ? a->pairs.set[(size_t)l->index * H + head] : 0,
		.zone = &a->zones[sequence].zone[a->group], .keys = a->zones[sequence].zone[a->group].end,
		.ssmax = a->ssmax ? l->ssmax[head] : 1,
		/* Gates and saved reals stand by row, so with them all rows are kept. */
		.wanted = l->wanted && !G && !S ? l->wanted + b * T : NULL,
		.q = qkv, .k = qkv + C, .v = qkv + 2 * C,
		.gate = G ? l->gate + (b * T * H + head) * G : NULL,
		.output = l->output + b * T * C + head * (size_t)a->D,
		.lse = l->lse + (size_t)index * T,
		.saved = S ? l->saved + (size_t)index * T * S : NULL,
		.scores = l->scores ? l->scores + (size_t)index * T * T : NULL,
		.probe = l->probe, .layer = l->index, .index = index, .thread = thread,
		.table = a->table_reals ? a->table + ((size_t)l->index * H + head) * a->table_reals : NULL,
	};
}

void attention_head_gradients(struct attention_head *h, const struct attention_layer *l, struct attention_gradients g,
			      int index)
{
	const struct attention *a = h->a;
	size_t b = (size_t)(index / a->H), head = (size_t)(index % a->H), T = (size_t)a->T;
	size_t C = (size_t)a->C, G = (size_t)a->gate_reals, H = (size_t)a->H;
	h->d_output = g.d_output + b * T * C + head * (size_t)a->D;
	h->d_q = g.d_qkv + b * T * 3 * C + head * (size_t)a->D;
	h->d_k = h->d_q + C;
	h->d_v = h->d_q + 2 * C;
	h->d_gate = G ? g.d_gate + (b * T * H + head) * G : NULL;
	size_t slot = (size_t)l->index * (size_t)(a->B * a->H) + (size_t)index;
	h->d_table = a->table_reals ? a->table_slot + slot * a->table_reals : NULL;
	h->d_frequency = a->learns_frequencies ? a->frequency_slot + (size_t)index * (size_t)(a->F + 1) : NULL;
	h->d_ssmax = a->ssmax ? a->ssmax_slot + slot : NULL;
}

size_t attention_angles(const struct attention *a, int sequence, int set, int zone, enum side side)
{
	int at = (sequence * a->pairs.count + set) * a->zones->together + zone;
	return (size_t)(2 * at + (int)side) * (size_t)a->T * (size_t)a->F;
}

struct rotation attention_rotation(const struct attention_head *h, int zone, enum side side, int first, int rows)
{
	const struct attention *a = h->a;
	const struct zone *z = &h->zone[zone];
	size_t at = attention_angles(a, h->sequence, h->set, zone, side) + (size_t)first * (size_t)a->F;
	return (struct rotation){
		.place = a->place, .rows = rows, .D = a->D, .F = a->F, .head = h->head, .side = side, .half = a->half,
		.positions = (side == SIDE_QUERY ? z->query_position : z->key_position) + first,
		.centre = a->place->position->centred ? h->scratch->centre[zone] : 0, .inv_freq = z->inv_freq,
		.attention_factor = z->attention_factor,
		.cosine = a->cosine + at, .sine = a->sine + at, .table = h->table,
	};
}

/* Do the head's pairs turn by the zone's frequencies, so that these have a gradient? */
static bool turns_by_zone(const struct attention_head *h)
{
	return h->a->pairs.kind[(size_t)h->set * (size_t)h->a->F] == PAIR_SCALED;
}

struct rotation_gradient attention_rotation_gradient(const struct attention_head *h)
{
	bool wanted = h->d_frequency && turns_by_zone(h);
	return (struct rotation_gradient){
		.inv_freq = wanted ? h->d_frequency : NULL,
		.attention_factor = wanted ? h->d_frequency + h->a->F : NULL,
		.table = h->d_table,
	};
}

static size_t keys_at(const struct attention_head *h, int zone)
{
	return (size_t)zone * (size_t)h->a->T * (size_t)h->a->D;
}

static real *turned_keys(const struct attention_head *h, int zone)
{
	return h->scratch->k_turned + (size_t)zone * product_turned_reals(h->a->T, h->a->D);
}

struct attention_keys attention_keys(const struct attention_head *h, int zone, int key)
{
	const struct attention_thread *s = h->scratch;
	size_t at = (size_t)key * (size_t)h->a->D, zone_at = keys_at(h, zone) + at;
	return (struct attention_keys){
		.k = s->k + zone_at, .v = s->v + at, .k_turned = turned_keys(h, zone) + at,
		.v_turned = h->d_v ? s->v_turned + at : NULL,
		.d_k = h->d_k ? s->d_k + zone_at : NULL, .d_v = h->d_v ? s->d_v + at : NULL,
	};
}

static void copy_rows(int rows, int D, const real *from, size_t stride, real *to)
{
	for (int r = 0; r < rows; r++, from += stride, to += D)
		memcpy(to, from, (size_t)D * sizeof *to);
}

static void add_rows(int rows, int D, const real *from, real *to, size_t stride)
{
	for (int r = 0; r < rows; r++, from += D, to += stride)
		vec_add(to, from, D);
}

void attention_enter_keys(struct attention_head *h)
{
	const struct attention *a = h->a;
	int keys = h->keys, row = 3 * a->C;
	for (int zone = 0; zone < a->together; zone++) {
		real *k = h->scratch->k + keys_at(h, zone);
		if (a->rotates_keys) {
			struct rotation r = attention_rotation(h, zone, SIDE_KEY, 0, keys);
			a->place->position->rotate(&r, h->k, row, k);
		} else {
			copy_rows(keys, a->D, h->k, (size_t)row, k);
		}
		product_turn(keys, a->D, k, a->D, turned_keys(h, zone));
		if (h->d_k)
			memset(h->scratch->d_k + keys_at(h, zone), 0, (size_t)keys * (size_t)a->D * sizeof(real));
	}
}

void attention_leave_keys(struct attention_head *h)
{
	const struct attention *a = h->a;
	int keys = h->zone->end, row = 3 * a->C;
	for (int zone = 0; zone < a->together; zone++) {
		const real *d_k = h->scratch->d_k + keys_at(h, zone);
		if (!a->rotates) {
			add_rows(keys, a->D, d_k, h->d_k, (size_t)row);
			continue;
		}
		struct rotation r = attention_rotation(h, zone, SIDE_KEY, 0, keys);
		a->place->position->rotate_back(&r, h->k, row, d_k, h->d_k, row, attention_rotation_gradient(h));
	}
}

void attention_enter_values(struct attention_head *h)
{
	const struct attention *a = h->a;
	struct attention_thread *s = h->scratch;
	int keys = h->keys;
	copy_rows(keys, a->D, h->v, 3 * (size_t)a->C, s->v);
	if (!h->d_v)
		return;
	product_turn(keys, a->D, s->v, a->D, s->v_turned);
	memset(s->d_v, 0, (size_t)keys * (size_t)a->D * sizeof(real));
}

void attention_leave_values(struct attention_head *h)
{
	const struct attention *a = h->a;
	add_rows(h->zone->end, a->D, h->scratch->d_v, h->d_v, 3 * (size_t)a->C);
}
