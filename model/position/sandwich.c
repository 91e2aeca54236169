#include "model/position/distance_bias.h"
#include "model/position/inspection.h"

#include <math.h>
#include <stdio.h>

/* Sandwich (Chi et al. 2022, 2212.10356, section 5): logit = scale q.k + bias(i - j), what the inner product of two
 * sinusoidal position vectors of width dbar leaves when it is compressed by 8 (h + 1) / H:
 *	bias(r) = (sum over k of cos(r 10000^(-2k / dbar)) - dbar / 2) / (8 (h + 1) / H)
 * with dbar / 2 frequencies from k = start on. Not learned. The constant, as in NeMo, makes the bias 0 at distance 0
 * and leaves the softmax alone. */

enum { WIDTH, START };
static const struct option options[] = {
	[WIDTH] = { .name = "width", .kind = OPTION_INTEGER, .initial = "128", .least = 2, .most = 65536,
		    .results = true, .help = "dbar, width of the position vectors whose products are taken; even" },
	[START] = { .name = "start", .kind = OPTION_INTEGER, .initial = "0", .least = 0, .most = 1, .results = true,
		    .help = "first k of the frequencies 10000^(-2k / width): 0, or 1 as in NeMo" },
	{ 0 },
};

static struct err check(const struct model_options *o, int D)
{
	int64_t width = o->encoding.value[WIDTH].integer;
	(void)D;
	if (width % 2 == 0)
		return OK;
	return err_usage("Each frequency has a sine and a cosine.", "sandwich_width: %lld is odd", (long long)width);
}

/* The biases before they are compressed, of `count` distances from `first` on by ones. A cosine is turned from each to
 * the next, over so few that no more than the last digits are lost. */
#define CHUNK 64
static void shapes_at(const struct place *p, double first, int count, double shape[CHUNK])
{
	int64_t width = p->method->value[WIDTH].integer, start = p->method->value[START].integer;
	for (int i = 0; i < count; i++)
		shape[i] = -(double)width / 2; /* even */
	for (int64_t k = start; k < start + width / 2; k++) {
		double frequency = pow(10000, -2.0 * (double)k / (double)width);
		double turn_cos = cos(frequency), turn_sin = sin(frequency);
		double x = cos(first * frequency), y = sin(first * frequency);
		for (int i = 0; i < count; i++) {
			double next = x * turn_cos - y * turn_sin;
			shape[i] += x;
			y = y * turn_cos + x * turn_sin;
			x = next;
		}
	}
}

static double shape_at(const struct place *p, double distance)
{
	double shape[CHUNK];
	shapes_at(p, distance, 1, shape);
	return shape[0];
}

static double compression(const struct place *p, int head)
{
	return 8.0 * (head + 1) / p->H;
}

/* A head's table is its bias by distance. */
static size_t table_reals(const struct place *p)
{
	return distance_span(p);
}

static void prepare(const struct place *p, struct place_parameters own, struct prepared *to)
{
	size_t span = distance_span(p);
	double shape[CHUNK];
	(void)own;
	for (size_t first = 0; first < span; first += CHUNK) {
		int count = first + CHUNK < span ? CHUNK : (int)(span - first);
		shapes_at(p, (double)first, count, shape);
		for (int h = 0; h < p->H; h++)
			for (int i = 0; i < count; i++)
				to->table[(size_t)h * span + first + (size_t)i] = (real)(shape[i] / compression(p, h));
	}
}

/* Nothing of it is learned. */
static void prepare_back(const struct place *p, struct place_parameters own, const struct prepared *made,
			 const real *d_table, const double *d_inv_freq, double d_attention_factor,
			 struct place_gradients to)
{
	(void)p, (void)own, (void)made, (void)d_table, (void)d_inv_freq, (void)d_attention_factor, (void)to;
}

static real bias(const struct place *p, const struct tile *t, const void *own, double distance)
{
	int r = distance_place(*(const size_t *)own, distance);
	return r >= 0 ? t->table[r] : (real)(shape_at(p, distance) / compression(p, t->head));
}

static void logits(const struct place *p, const struct tile *t, real *logit)
{
	size_t span = distance_span(p);
	distance_bias(p, t, bias, &span, logit);
}

static void logits_back(const struct place *p, const struct tile *t, const real *raw, real *d_logit,
			struct tile_gradient g)
{
	(void)raw;
	distance_bias_back(p, t, NULL, d_logit, g);
}

static struct err report_heads(const struct inspection *in, struct report *to)
{
	const struct place *p = in->place;
	double *divided, *trained, *longest, distance = zones_longest_distance(in->zones);
	char heading[32];
	report_table(to, NULL, "head", p->H);
	TRY(report_column(to, "compressions", "compression", 0, &divided));
	snprintf(heading, sizeof heading, "trained: nats at %d", p->train_length - 1);
	TRY(report_column(to, "trained_penalties", heading, 0, &trained));
	snprintf(heading, sizeof heading, "nats at %.0f", distance);
	TRY(report_column(to, "penalties", heading, 0, &longest));
	for (int h = 0; h < p->H; h++) {
		divided[h] = compression(p, h);
		trained[h] = -shape_at(p, p->train_length - 1) / divided[h];
		longest[h] = -shape_at(p, distance) / divided[h];
	}
	return OK;
}

/* The biases at 0 and at the powers of two. */
static struct err inspect(const struct inspection *in, struct report *to)
{
	const struct place *p = in->place;
	double *distance, *bias;
	int rows = 1;
	while (ldexp(1, rows - 1) < p->T)
		rows++;
	TRY(report_heads(in, to));
	report_table(to, NULL, "", rows);
	TRY(report_column(to, "distances", "distance", 0, &distance));
	TRY(report_column(to, "biases", "head", p->H, &bias));
	for (int i = 0; i < rows; i++) {
		distance[i] = i ? ldexp(1, i - 1) : 0;
		double shape = shape_at(p, distance[i]);
		for (int h = 0; h < p->H; h++)
			bias[i * p->H + h] = shape / compression(p, h);
	}
	report_note(to, "Nats that a key loses at the longest distance of training and of this length. The loss grows "
			"about as the logarithm of the distance, in waves.");
	return OK;
}

const struct position position_sandwich = {
	.entry = { .name = "sandwich", .help = "a fixed penalty a head, the inner product of sinusoidal positions",
		   .paper = "Chi et al. 2022, 2212.10356", .options = options },
	.check = check,
	.inspect = inspect,
	.table_reals = table_reals,
	.prepare = prepare,
	.prepare_back = prepare_back,
	.logits = logits,
	.logits_back = logits_back,
};
