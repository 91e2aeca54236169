#include "model/position/distance_bias.h"
#include "model/position/inspection.h"

#include <math.h>
#include <stdio.h>

/* T5's relative bias (Raffel et al. 2019, 1910.10683, section 2.1): logit = scale q.k + table[bucket(i - j)][h]. One
 * table [buckets][H], zero at first, serves all layers, or there is one a layer. Half the buckets are single
 * distances; the other half widen logarithmically up to max_distance, and the last takes all beyond. Unlike T5 itself,
 * q.k keeps its scale. */

enum { BUCKETS, MAX_DISTANCE, PER_LAYER };
static const struct option options[] = {
	[BUCKETS] = { .name = "buckets", .kind = OPTION_INTEGER, .initial = "16", .least = 2, .most = 65536,
		      .results = true, .help = "rows of the table" },
	[MAX_DISTANCE] = { .name = "max_distance", .kind = OPTION_INTEGER, .initial = "32", .least = 2, .most = 1048576,
			   .unit = "tokens", .results = true,
			   .help = "from here on all distances share the last bucket" },
	[PER_LAYER] = { .name = "per_layer", .kind = OPTION_SWITCH, .initial = "off", .results = true,
			.help = "a table of its own for each layer" },
	{ 0 },
};

static struct err check(const struct model_options *o, int D)
{
	int64_t buckets = o->encoding.value[BUCKETS].integer, most = o->encoding.value[MAX_DISTANCE].integer;
	(void)D;
	if (most > buckets / 2)
		return OK;
	return err_usage("Half the buckets are single distances; the rest must reach further.",
			 "t5_max_distance: %lld is not above half the %lld buckets", (long long)most,
			 (long long)buckets);
}

static int bucket_of(int64_t distance, int64_t buckets, int64_t most)
{
	int64_t single = buckets / 2;
	if (distance < single)
		return (int)distance;
	if (distance >= most)
		return (int)buckets - 1;
	double share = log((double)distance / (double)single) / log((double)most / (double)single);
	/* Where the share is a whole number of buckets its rounding must not fall below it. */
	int64_t bucket = single + (int64_t)(share * (double)(buckets - single) + 1e-9);
	return (int)(bucket < buckets - 1 ? bucket : buckets - 1);
}

static void declare(const struct model_options *o, struct layout *l, int layer)
{
	int rows = (int)o->encoding.value[BUCKETS].integer, H = (int)o->heads;
	bool per_layer = o->encoding.value[PER_LAYER].integer;
	if (layer < 0 && !per_layer)
		layout_add(l, INIT_ZEROS, 0, false, rows, H, "model.position.table");
	if (layer >= 0 && per_layer)
		layout_add(l, INIT_ZEROS, 0, false, rows, H, "model.layers.%d.self_attn.position.table", layer);
}

static bool is_per_layer(const struct place *p)
{
	return p->method->value[PER_LAYER].integer;
}

static const real *own_table(const struct place *p, struct place_parameters own)
{
	return is_per_layer(p) ? own.layer : own.shared;
}

/* The prepared table is the bias of a head by distance, 0 .. max_distance. */
static size_t table_reals(const struct place *p)
{
	return (size_t)p->method->value[MAX_DISTANCE].integer + 1;
}

static void prepare(const struct place *p, struct place_parameters own, struct prepared *to)
{
	int64_t buckets = p->method->value[BUCKETS].integer, most = p->method->value[MAX_DISTANCE].integer;
	const real *table = own_table(p, own);
	for (int64_t distance = 0; distance <= most; distance++)
		for (int h = 0; h < p->H; h++)
			to->table[h * (most + 1) + distance] =
				table[bucket_of(distance, buckets, most) * p->H + h];
}

static void prepare_back(const struct place *p, struct place_parameters own, const struct prepared *made,
			 const real *d_table, const double *d_inv_freq, double d_attention_factor,
			 struct place_gradients to)
{
	int64_t buckets = p->method->value[BUCKETS].integer, most = p->method->value[MAX_DISTANCE].integer;
	real *table = is_per_layer(p) ? to.layer : to.shared;
	(void)own, (void)made, (void)d_inv_freq, (void)d_attention_factor;
	for (int64_t distance = 0; distance <= most; distance++)
		for (int h = 0; h < p->H; h++)
			table[bucket_of(distance, buckets, most) * p->H + h] += d_table[h * (most + 1) + distance];
}

static int place_of_distance(const struct place *p, double distance)
{
	int most = (int)p->method->value[MAX_DISTANCE].integer;
	return distance < most ? (int)distance : most;
}

static real bias(const struct place *p, const struct tile *t, const void *own, double distance)
{
	(void)own;
	return t->table[place_of_distance(p, distance)];
}

static void bias_back(const struct place *p, const struct tile *t, double distance, double d_bias,
		      struct tile_gradient g)
{
	(void)t;
	g.table[place_of_distance(p, distance)] += (real)d_bias;
}

static void logits(const struct place *p, const struct tile *t, real *logit)
{
	distance_bias(p, t, bias, NULL, logit);
}

static void logits_back(const struct place *p, const struct tile *t, const real *raw, real *d_logit,
			struct tile_gradient g)
{
	(void)raw;
	distance_bias_back(p, t, bias_back, d_logit, g);
}

static int tables_of(const struct place *p)
{
	return is_per_layer(p) ? p->layers : 1;
}

/* What is the same for all distances of a bucket: which they are, and a model's bias. */
static struct err report_buckets(const struct inspection *in, struct report *to)
{
	const struct place *p = in->place;
	int buckets = (int)p->method->value[BUCKETS].integer, most = (int)p->method->value[MAX_DISTANCE].integer;
	char (*range)[REPORT_WORD];
	double *bias;
	report_table(to, NULL, "bucket", buckets);
	TRY(report_words(to, "bucket_distances", "distances", &range));
	for (int b = 0; b < buckets; b++)
		snprintf(range[b], REPORT_WORD, "none");
	for (int first = 0, last; first <= most; first = last + 1) {
		int b = bucket_of(first, buckets, most);
		for (last = first; last < most && bucket_of(last + 1, buckets, most) == b;)
			last++;
		const char *format = last == most ? "%d and beyond" : first == last ? "%d" : "%d - %d";
		snprintf(range[b], REPORT_WORD, format, first, last);
	}
	if (!in->own)
		return OK;
	int rows = tables_of(p) * p->H;
	TRY(report_column(to, "bucket_bias", "head", rows, &bias));
	for (int b = 0; b < buckets; b++)
		for (int i = 0; i < rows; i++)
			bias[b * rows + i] = (double)own_table(p, in->own[i / p->H])[b * p->H + i % p->H];
	return OK;
}

static struct err inspect(const struct inspection *in, struct report *to)
{
	const struct place *p = in->place;
	int64_t buckets = p->method->value[BUCKETS].integer, most = p->method->value[MAX_DISTANCE].integer;
	double *bucket, *bias;
	TRY(report_buckets(in, to));
	report_table(to, NULL, "distance", p->T);
	TRY(report_column(to, "buckets", "", 0, &bucket));
	for (int distance = 0; distance < p->T; distance++)
		bucket[distance] = bucket_of(distance, buckets, most);
	if (!in->own) {
		report_note(to, "The bias of each bucket and head is learned: give a model to see it.");
		return OK;
	}
	report_table(to, NULL, "head", tables_of(p) * p->H);
	TRY(report_column(to, "bias", "", p->T, &bias));
	for (int i = 0; i < tables_of(p) * p->H; i++)
		for (int distance = 0; distance < p->T; distance++)
			bias[(size_t)i * (size_t)p->T + (size_t)distance] =
				(double)own_table(p, in->own[i / p->H])[(int)bucket[distance] * p->H + i % p->H];
	report_note(to, "Nats that each head adds to the logits of keys at these distances%s.",
		    is_per_layer(p) ? "; the heads of the first layer come first" : ", the same in all layers");
	return OK;
}

const struct position position_t5 = {
	.entry = { .name = "t5", .help = "a learned bias a head and bucket of distances",
		   .paper = "Raffel et al. 2019, 1910.10683, section 2.1", .options = options },
	.check = check,
	.declare = declare,
	.inspect = inspect,
	.table_reals = table_reals,
	.prepare = prepare,
	.prepare_back = prepare_back,
	.logits = logits,
	.logits_back = logits_back,
};
