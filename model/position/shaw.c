#include "model/base/vec.h"
#include "model/position/distance_bias.h"
#include "model/position/inspection.h"
#include "model/position/relative.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Relative position representations (Shaw et al. 2018, 1803.02155, equations 3 and 4):
 *
 *	logit = scale q_i.(k_j + aK[c]),  output_i = sum over j of p_ij (v_j + aV[c]),  c = clip(j - i, -K, K) + K
 *
 * with two tables [2K + 1][D] a layer, the same for all heads. No key stands behind its query, so only rows 0 .. K are
 * reached. Distances are taken in whole tokens. */

enum { MAX_DISTANCE, VALUES };
static const struct option options[] = {
	[MAX_DISTANCE] = { .name = "max_distance", .kind = OPTION_INTEGER, .initial = "16", .least = 1, .most = 65536,
			   .unit = "tokens", .results = true, .help = "from here on all distances share a vector" },
	[VALUES] = { .name = "values", .kind = OPTION_SWITCH, .initial = "on", .least = 0, .most = 1, .results = true,
		     .help = "vectors for the values too, not for the keys alone" },
	{ 0 },
};

static int max_distance(const struct place *p)
{
	return (int)p->method->value[MAX_DISTANCE].integer;
}

static bool has_values(const struct place *p)
{
	return p->method->value[VALUES].integer != 0;
}

static size_t tables(const struct place *p)
{
	return has_values(p) ? 2 : 1;
}

static void declare(const struct model_options *o, struct layout *l, int layer)
{
	int rows = 2 * (int)o->encoding.value[MAX_DISTANCE].integer + 1, D = (int)(o->width / o->heads);
	if (layer < 0)
		return;
	layout_add(l, INIT_NORMAL, 1 / sqrt(D), false, rows, D, "model.layers.%d.self_attn.position.keys", layer);
	if (o->encoding.value[VALUES].integer)
		layout_add(l, INIT_NORMAL, 1 / sqrt(D), false, rows, D, "model.layers.%d.self_attn.position.values",
			   layer);
}

/* The row of a distance; the prepared tables have those that are reached. */
static int row_of(const struct place *p, double distance)
{
	int K = max_distance(p);
	return distance < K ? K - (int)distance : 0;
}

static size_t vectors_reals(const struct place *p)
{
	return relative_reals(max_distance(p) + 1, p->D);
}

static struct relative vectors_of(const struct place *p, const real *vectors)
{
	return (struct relative){ .index = row_of, .count = max_distance(p) + 1, .vectors = vectors };
}

static size_t table_reals(const struct place *p)
{
	return vectors_reals(p) * tables(p);
}

static void prepare(const struct place *p, struct place_parameters own, struct prepared *to)
{
	size_t reached = (size_t)(max_distance(p) + 1) * (size_t)p->D, all = 2 * reached - (size_t)p->D;
	real *table = to->table;
	for (int h = 0; h < p->H; h++)
		for (size_t values = 0; values < tables(p); values++, table += vectors_reals(p)) {
			memcpy(table, own.layer + values * all, reached * sizeof *table);
			relative_table(max_distance(p) + 1, p->D, table);
		}
}

static void prepare_back(const struct place *p, struct place_parameters own, const struct prepared *made,
			 const real *d_table, const double *d_inv_freq, double d_attention_factor,
			 struct place_gradients to)
{
	size_t reached = (size_t)(max_distance(p) + 1) * (size_t)p->D, all = 2 * reached - (size_t)p->D;
	(void)own, (void)made, (void)d_inv_freq, (void)d_attention_factor;
	for (int h = 0; h < p->H; h++)
		for (size_t values = 0; values < tables(p); values++, d_table += vectors_reals(p))
			vec_add(to.layer + values * all, d_table, (int)reached);
}

static void logits(const struct place *p, const struct tile *t, real *logit)
{
	struct relative keys = vectors_of(p, t->table);
	relative_dots(p, t, &keys, t->q, t->q_stride, logit);
	tile_scale(t, logit);
}

static void logits_back(const struct place *p, const struct tile *t, const real *raw, real *d_logit,
			struct tile_gradient g)
{
	struct relative keys = vectors_of(p, t->table);
	(void)raw;
	tile_scale(t, d_logit);
	relative_sums(p, t, &keys, d_logit, (struct relative_sums){ g.q, g.q_stride, t->q, t->q_stride, g.table });
}

static void values(const struct place *p, const struct tile *t, const real *probability, real *output)
{
	struct relative vectors = vectors_of(p, t->table + vectors_reals(p));
	if (has_values(p))
		relative_sums(p, t, &vectors, probability,
			      (struct relative_sums){ .rows = output, .rows_stride = t->D });
}

static void values_back(const struct place *p, const struct tile *t, const real *probability, const real *d_output,
			int d_output_stride, real *d_probability, struct tile_gradient g)
{
	struct relative vectors = vectors_of(p, t->table + vectors_reals(p));
	if (!has_values(p))
		return;
	relative_dots(p, t, &vectors, d_output, d_output_stride, d_probability);
	relative_sums(p, t, &vectors, probability,
		      (struct relative_sums){ .x = d_output, .x_stride = d_output_stride,
					      .vectors = g.table + vectors_reals(p) });
}

/* Lengths of the vectors [layers] by distance, from the table `values` (0: the keys'). */
static struct err report_lengths(const struct inspection *in, struct report *to, const char *name, size_t values)
{
	const struct place *p = in->place;
	int K = max_distance(p);
	double *length;
	TRY(report_column(to, name, values ? "|value| layer" : "|key| layer", p->layers, &length));
	for (int distance = 0; distance <= K; distance++)
		for (int layer = 0; layer < p->layers; layer++) {
			size_t row = values * (size_t)(2 * K + 1) + (size_t)(K - distance);
			const real *v = in->own[layer].layer + row * (size_t)p->D;
			length[distance * p->layers + layer] = sqrt(vec_sum_squares(v, p->D));
		}
	return OK;
}

static struct err inspect(const struct inspection *in, struct report *to)
{
	const struct place *p = in->place;
	int K = max_distance(p);
	char (*range)[REPORT_WORD];
	double *row;
	report_number(to, "table_rows", 2 * K + 1);
	report_table(to, NULL, "distance", K + 1);
	TRY(report_words(to, "row_distances", "distances", &range));
	TRY(report_column(to, "rows", "row", 0, &row));
	for (int distance = 0; distance <= K; distance++) {
		snprintf(range[distance], REPORT_WORD, distance < K ? "%d" : "%d and beyond", distance);
		row[distance] = row_of(p, distance);
	}
	report_note(to, "The tables have %d rows of %d, the same for all heads; keys before their query reach rows 0 - "
			"%d.", 2 * K + 1, p->D, K);
	if (!in->own) {
		report_note(to, "The vectors are learned: give a model to see their lengths.");
		return OK;
	}
	TRY(report_lengths(in, to, "key_lengths", 0));
	return has_values(p) ? report_lengths(in, to, "value_lengths", 1) : OK;
}

const struct position position_shaw = {
	.entry = { .name = "shaw", .help = "learned vectors by distance, added to the keys and the values",
		   .paper = "Shaw et al. 2018, 1803.02155", .options = options },
	.declare = declare,
	.inspect = inspect,
	.table_reals = table_reals,
	.prepare = prepare,
	.prepare_back = prepare_back,
	.logits = logits,
	.logits_back = logits_back,
	.values = values,
	.values_back = values_back,
};
