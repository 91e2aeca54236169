#include "tests/throwaway.h"

#include "model/base/vec.h"
#include "model/position/rope.h"

#include <math.h>
#include <string.h>

/* ---- learned vectors a distance: table [2][DISTANCES][D] for keys, then values, the same for all heads ---- */

#define DISTANCES 7

static void distance_declare(const struct model_options *o, struct layout *l, int layer)
{
	int D = (int)(o->width / o->heads);
	if (layer >= 0)
		layout_add(l, INIT_NORMAL, 0.5, false, 2 * DISTANCES, D, "model.layers.%d.self_attn.position.vectors",
			   layer);
}

static size_t distance_reals(const struct place *p)
{
	return (size_t)(2 * DISTANCES * p->D);
}

static void distance_prepare(const struct place *p, struct place_parameters own, struct prepared *to)
{
	for (int h = 0; h < p->H; h++)
		memcpy(to->table + (size_t)h * distance_reals(p), own.layer, distance_reals(p) * sizeof(real));
}

static void distance_prepare_back(const struct place *p, struct place_parameters own, const struct prepared *made,
				  const real *d_table, const double *d_inv_freq, double d_attention_factor,
				  struct place_gradients to)
{
	(void)own, (void)made, (void)d_inv_freq, (void)d_attention_factor;
	for (int h = 0; h < p->H; h++)
		vec_add(to.layer, d_table + (size_t)h * distance_reals(p), (int)distance_reals(p));
}

static size_t distance_row(const struct tile *t, int r, int j)
{
	double distance = t->query_positions[r] - t->key_positions[j];
	return (size_t)t->D * (size_t)(distance < DISTANCES - 1 ? distance : DISTANCES - 1);
}

static void distance_logits(const struct place *p, const struct tile *t, real *logit)
{
	(void)p;
	for (int r = 0; r < t->rows; r++, logit += TILE_STRIDE)
		for (int j = t->low[r]; j < t->high[r]; j++)
			logit[j] = t->scale *
				   (logit[j] + vec_dot(t->q + r * t->q_stride, t->table + distance_row(t, r, j), t->D));
}

static void distance_logits_back(const struct place *p, const struct tile *t, const real *raw, real *d_logit,
				 struct tile_gradient g)
{
	(void)p, (void)raw;
	for (int r = 0; r < t->rows; r++, d_logit += TILE_STRIDE)
		for (int j = t->low[r]; j < t->high[r]; j++) {
			d_logit[j] *= t->scale;
			vec_axpy(g.q + r * g.q_stride, d_logit[j], t->table + distance_row(t, r, j), t->D);
			vec_axpy(g.table + distance_row(t, r, j), d_logit[j], t->q + r * t->q_stride, t->D);
		}
}

static void distance_values(const struct place *p, const struct tile *t, const real *probability, real *output)
{
	size_t values = (size_t)(DISTANCES * t->D);
	(void)p;
	for (int r = 0; r < t->rows; r++, probability += TILE_STRIDE)
		for (int j = t->low[r]; j < t->high[r]; j++)
			vec_axpy(output + r * t->D, probability[j], t->table + values + distance_row(t, r, j), t->D);
}

static void distance_values_back(const struct place *p, const struct tile *t, const real *probability,
				 const real *d_output, int d_output_stride, real *d_probability, struct tile_gradient g)
{
	size_t values = (size_t)(DISTANCES * t->D);
	(void)p;
	for (int r = 0; r < t->rows; r++, probability += TILE_STRIDE, d_probability += TILE_STRIDE)
		for (int j = t->low[r]; j < t->high[r]; j++) {
			size_t row = values + distance_row(t, r, j);
			d_probability[j] += vec_dot(d_output + r * d_output_stride, t->table + row, t->D);
			vec_axpy(g.table + row, probability[j], d_output + r * d_output_stride, t->D);
		}
}

const struct position throwaway_distance_vectors = {
	.entry = { .name = "distance_vectors" },
	.declare = distance_declare,
	.table_reals = distance_reals,
	.prepare = distance_prepare,
	.prepare_back = distance_prepare_back,
	.logits = distance_logits,
	.logits_back = distance_logits_back,
	.values = distance_values,
	.values_back = distance_values_back,
};

/* ---- forgetting: gate_t = ln sigmoid(w_h.x_t + c_h); logit = scale q.k + sum of gates over j < t <= i ---- */

static void forget_declare(const struct model_options *o, struct layout *l, int layer)
{
	if (layer < 0)
		return;
	layout_add(l, INIT_NORMAL, 0.3, true, (int)o->heads, (int)o->width, "model.layers.%d.self_attn.position.weight",
		   layer);
	layout_add(l, INIT_ONES, 0, false, 0, (int)o->heads, "model.layers.%d.self_attn.position.bias", layer);
}

static void forget_gate(const struct place *p, struct place_parameters own, int rows, const real *x, real *gate)
{
	const real *bias = own.layer + p->H * p->C;
	for (int r = 0; r < rows; r++)
		for (int h = 0; h < p->H; h++) {
			double z = (double)(vec_dot(own.layer + h * p->C, x + r * p->C, p->C) + bias[h]);
			gate[r * p->H + h] = (real)-log1p(exp(-z));
		}
}

static void forget_gate_back(const struct place *p, struct place_parameters own, int rows, const real *x,
			     const real *gate, const real *d_gate, real *d_x, struct place_gradients to)
{
	for (int r = 0; r < rows; r++)
		for (int h = 0; h < p->H; h++) {
			real d_z = d_gate[r * p->H + h] * (real)-expm1((double)gate[r * p->H + h]);
			vec_axpy(d_x + r * p->C, d_z, own.layer + h * p->C, p->C);
			vec_axpy(to.layer + h * p->C, d_z, x + r * p->C, p->C);
			to.layer[p->H * p->C + h] += d_z;
		}
}

/* carry: the sum of gates so far, and (backward) of gradients so far. saved: the sum over all keys of the row. */
static void forget_logits(const struct place *p, const struct tile *t, real *logit)
{
	(void)p;
	for (int r = 0; r < t->rows; r++, logit += TILE_STRIDE) {
		real sum = t->carry[2 * r];
		if (t->backward) {
			for (int j = t->low[r]; j < t->high[r]; j++) {
				sum += t->key_gate[j * t->gate_stride];
				logit[j] = t->scale * logit[j] + t->saved[r] - sum;
			}
			continue;
		}
		for (int j = t->high[r] - 1; j >= t->low[r]; j--) {
			logit[j] = t->scale * logit[j] + sum;
			sum += t->key_gate[j * t->gate_stride];
		}
		t->carry[2 * r] = t->saved[r] = sum;
	}
}

static void forget_logits_back(const struct place *p, const struct tile *t, const real *raw, real *d_logit,
			       struct tile_gradient g)
{
	(void)p, (void)raw;
	for (int r = 0; r < t->rows; r++, d_logit += TILE_STRIDE)
		for (int j = t->low[r]; j < t->high[r]; j++) {
			g.key_gate[j * t->gate_stride] += t->carry[2 * r + 1];
			t->carry[2 * r + 1] += d_logit[j];
			t->carry[2 * r] += t->key_gate[j * t->gate_stride];
			d_logit[j] *= t->scale;
		}
}

const struct position throwaway_forget = {
	.entry = { .name = "forget" },
	.declare = forget_declare,
	.gate_reals = 1,
	.gate = forget_gate,
	.gate_back = forget_gate_back,
	.carry_reals = 2,
	.saved_reals = 1,
	.logits = forget_logits,
	.logits_back = forget_logits_back,
};

/* ---- contextual: g = sigmoid(scale q.k); p_ij = sum of g over j <= t <= i; logit = scale q.k + q.e(p), with the
 * smooth e(p) = sum of cos(w p) vectors[w], so that differences meet no kinks ---- */

#define WAVES 4

static void contextual_declare(const struct model_options *o, struct layout *l, int layer)
{
	if (layer < 0)
		layout_add(l, INIT_NORMAL, 0.2, false, WAVES, (int)(o->width / o->heads), "model.position.table");
}

static size_t contextual_reals(const struct place *p)
{
	return (size_t)(WAVES * p->D);
}

static void contextual_prepare(const struct place *p, struct place_parameters own, struct prepared *to)
{
	for (int h = 0; h < p->H; h++)
		memcpy(to->table + (size_t)h * contextual_reals(p), own.shared, contextual_reals(p) * sizeof(real));
}

static void contextual_prepare_back(const struct place *p, struct place_parameters own, const struct prepared *made,
				    const real *d_table, const double *d_inv_freq, double d_attention_factor,
				    struct place_gradients to)
{
	(void)own, (void)made, (void)d_inv_freq, (void)d_attention_factor;
	for (int h = 0; h < p->H; h++)
		vec_add(to.shared, d_table + (size_t)h * contextual_reals(p), (int)contextual_reals(p));
}

static double frequency(int wave)
{
	return 0.1 * (wave + 1);
}

static real gate_of(const struct tile *t, real raw)
{
	return (real)(1 / (1 + exp(-(double)(t->scale * raw))));
}

static real contextual_term(const struct tile *t, int r, real position)
{
	real sum = 0;
	for (int w = 0; w < WAVES; w++)
		sum += (real)cos(frequency(w) * (double)position) *
		       vec_dot(t->q + r * t->q_stride, t->table + w * t->D, t->D);
	return sum;
}

/* Adds to the gradients of q and the vectors; returns that of the position. */
static real contextual_term_back(const struct tile *t, int r, real position, real d, struct tile_gradient g)
{
	const real *q = t->q + r * t->q_stride;
	real d_position = 0;
	for (int w = 0; w < WAVES; w++) {
		double angle = frequency(w) * (double)position;
		vec_axpy(g.q + r * g.q_stride, d * (real)cos(angle), t->table + w * t->D, t->D);
		vec_axpy(g.table + w * t->D, d * (real)cos(angle), q, t->D);
		d_position -= d * (real)(frequency(w) * sin(angle)) * vec_dot(q, t->table + w * t->D, t->D);
	}
	return d_position;
}

/* carry: the sum of gates so far, and (backward) of positions' gradients so far. saved: the sum over all keys. */
static void contextual_logits(const struct place *p, const struct tile *t, real *logit)
{
	(void)p;
	for (int r = 0; r < t->rows; r++, logit += TILE_STRIDE) {
		real sum = t->carry[2 * r];
		if (t->backward) {
			for (int j = t->low[r]; j < t->high[r]; j++) {
				real gate = gate_of(t, logit[j]);
				logit[j] = t->scale * logit[j] + contextual_term(t, r, t->saved[r] - sum);
				sum += gate;
			}
			continue;
		}
		for (int j = t->high[r] - 1; j >= t->low[r]; j--) {
			sum += gate_of(t, logit[j]);
			logit[j] = t->scale * logit[j] + contextual_term(t, r, sum);
		}
		t->carry[2 * r] = t->saved[r] = sum;
	}
}

static void contextual_logits_back(const struct place *p, const struct tile *t, const real *raw, real *d_logit,
				   struct tile_gradient g)
{
	(void)p;
	for (int r = 0; r < t->rows; r++, raw += TILE_STRIDE, d_logit += TILE_STRIDE)
		for (int j = t->low[r]; j < t->high[r]; j++) {
			real gate = gate_of(t, raw[j]), d = d_logit[j], *carry = t->carry + 2 * r;
			carry[1] += contextual_term_back(t, r, t->saved[r] - carry[0], d, g);
			carry[0] += gate;
			d_logit[j] = t->scale * (d + carry[1] * gate * ((real)1 - gate));
		}
}

const struct position throwaway_contextual = {
	.entry = { .name = "contextual" },
	.declare = contextual_declare,
	.table_reals = contextual_reals,
	.prepare = contextual_prepare,
	.prepare_back = contextual_prepare_back,
	.carry_reals = 2,
	.saved_reals = 1,
	.logits = contextual_logits,
	.logits_back_reads_raw = true,
	.logits_back = contextual_logits_back,
};

/* ---- learned frequencies: inv_freq = exp(parameter), attention factor = exp(last parameter) ---- */

static void frequencies_declare(const struct model_options *o, struct layout *l, int layer)
{
	int F = (int)(o->width / o->heads / 2);
	if (layer >= 0)
		layout_add(l, INIT_NORMAL, 0.5, false, 0, F + 1, "model.layers.%d.self_attn.position.log_inv_freq",
			   layer);
}

static bool frequencies_prepared(const struct place *p)
{
	(void)p;
	return true;
}

static void frequencies_prepare(const struct place *p, struct place_parameters own, struct prepared *to)
{
	for (int m = 0; m < p->D / 2; m++)
		to->inv_freq[m] = exp((double)own.layer[m] - 2);
	*to->attention_factor = exp((double)own.layer[p->D / 2] / 4);
}

static void frequencies_prepare_back(const struct place *p, struct place_parameters own, const struct prepared *made,
				     const real *d_table, const double *d_inv_freq, double d_attention_factor,
				     struct place_gradients to)
{
	(void)own, (void)d_table;
	for (int m = 0; m < p->D / 2; m++)
		to.layer[m] += (real)(d_inv_freq[m] * made->inv_freq[m]);
	to.layer[p->D / 2] += (real)(d_attention_factor * *made->attention_factor / 4);
}

const struct position throwaway_frequencies = {
	.entry = { .name = "frequencies" },
	.check = rope_check,
	.declare = frequencies_declare,
	.prepares_inv_freq = frequencies_prepared,
	.prepare = frequencies_prepare,
	.prepare_back = frequencies_prepare_back,
	.rotate = rope_rotate,
	.rotate_back = rope_rotate_back,
};

/* ---- decay: RoPE, q times exp(rate (i - centre)), k times exp(-rate (j - centre)), so q.k times exp(rate (i - j))
 * ---- */

#define RATE (-0.02)

static real decay_of(const struct rotation *r, int row)
{
	double exponent = RATE * (r->positions[row] - r->centre);
	return (real)exp(r->side == SIDE_QUERY ? exponent : -exponent);
}

static void decay_rotate(const struct rotation *r, const real *from, int from_stride, real *to)
{
	rope_rotate(r, from, from_stride, to);
	for (int row = 0; row < r->rows; row++)
		vec_scale(to + row * r->D, decay_of(r, row), r->D);
}

static void decay_rotate_back(const struct rotation *r, const real *from, int from_stride, const real *d_to,
			      real *d_from, int d_from_stride, struct rotation_gradient g)
{
	real scaled[64];
	BUG_IF(r->D > 64, "made for small heads");
	for (int row = 0; row < r->rows; row++) {
		struct rotation one = *r;
		one.rows = 1;
		one.positions += row;
		one.cosine += row * (r->D / 2);
		one.sine += row * (r->D / 2);
		memcpy(scaled, d_to + row * r->D, (size_t)r->D * sizeof(real));
		vec_scale(scaled, decay_of(r, row), r->D);
		rope_rotate_back(&one, from + row * from_stride, from_stride, scaled, d_from + row * d_from_stride,
				 d_from_stride, g);
	}
}

static double decay_theta(const struct place *p)
{
	(void)p;
	return 500;
}

const struct position throwaway_decay = {
	.entry = { .name = "decay" },
	.check = rope_check,
	.rope_theta = decay_theta,
	.centred = true,
	.rotate = decay_rotate,
	.rotate_back = decay_rotate_back,
};

const struct position *const throwaway_encodings[] = {
	&throwaway_distance_vectors, &throwaway_forget, &throwaway_contextual,
	&throwaway_frequencies,	     &throwaway_decay,	NULL,
};

/* ---- two zones of the same queries ---- */

#define CLIP 5

static void clipped_zones(const struct zones_request *q, struct arena *a, struct zones *out)
{
	const struct place *p = q->place;
	struct zone *zone = ARENA_TAKE(a, struct zone, 2);
	struct zone near = zone_plain(q, a, 0, p->T), far = zone_plain(q, a, 0, p->T);
	int *low = ARENA_TAKE(a, int, (size_t)p->T), *high = ARENA_TAKE(a, int, (size_t)p->T);
	double *query = ARENA_TAKE(a, double, (size_t)p->T), *key = ARENA_TAKE(a, double, (size_t)p->T);
	for (int i = 0; zone && i < p->T; i++) {
		low[i] = i < CLIP ? 0 : i - CLIP + 1;
		high[i] = low[i];
		query[i] = CLIP;
		key[i] = 0;
	}
	near.low = low;
	far.high = high;
	far.query_position = query;
	far.key_position = key;
	if (zone) {
		zone[0] = near;
		zone[1] = far;
	}
	*out = (struct zones){ .zone = zone, .count = 2, .together = 2 };
}

const struct scaling throwaway_clipped = {
	.entry = { .name = "clipped", .joins = scaling_joins },
	.zones = clipped_zones,
};
