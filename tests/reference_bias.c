#include "tests/reference_bias.h"

#include "tests/reference.h"
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A pair of positions, and what their bias is made of. */
struct pair {
	const struct model *model;
	const struct method *encoding;
	int head, H;
	const real *own[6]; /* the encoding's tensors, in the order of `biases` */
	double query, distance;
};

static double option(const struct pair *p, const char *name)
{
	int index = method_find(p->encoding->entry, name);
	if (index < 0)
		fail_msg("%s has no option %s", p->encoding->entry->name, name);
	return p->encoding->entry->options[index].kind == OPTION_NUMBER ?
		       p->encoding->value[index].number :
		       (double)p->encoding->value[index].integer;
}

static double alibi(const struct pair *p)
{
	return -reference_slope(option(p, "slopes") == 1, p->head, p->H) * p->distance;
}

static double t5(const struct pair *p)
{
	int bucket = reference_bucket((int)option(p, "buckets"), (int)option(p, "max_distance"),
				      (int)floor(p->distance));
	return (double)p->own[0][bucket * p->H + p->head];
}

static double hard_alibi(const struct pair *p)
{
	double windows = option(p, "windows") > 0 ? option(p, "windows") : ceil(p->H / 2.0);
	bool seen = p->head >= windows || p->distance < option(p, "step") * (p->head + 1);
	return seen ? 0 : -INFINITY;
}

static double kerple(const struct pair *p)
{
	double a = fmax((double)p->own[0][p->head], 0.01);
	double power = fmax((double)p->own[1][p->head], 0.01);
	if (option(p, "kernel") == 0)
		return -power * log(1 + a * p->distance);
	return -a * pow(p->distance, fmin(power, 2));
}

static double fire(const struct pair *p)
{
	int W = (int)option(p, "width");
	double given = option(p, "init_length");
	double length = given > 0 ? given : (double)p->model->options.train_length / 4;
	double c = (double)*p->own[0], threshold = fabs((double)*p->own[1] * length);
	double normaliser = log(fabs(c * fmax(threshold, p->query)) + 1) + option(p, "eps");
	double x = log(fabs(c * p->distance) + 1) / normaliser, sum = (double)p->own[5][p->head];
	const real *w1 = p->own[2], *b1 = p->own[3], *w2 = p->own[4];
	for (int n = 0; n < W; n++)
		sum += (double)w2[p->head * W + n] * fmax(0, (double)w1[n] * x + (double)b1[n]);
	return sum;
}

/* Sums that were made are kept. */
static double sum_of_cosines(double distance, double width, double start)
{
	static struct {
		double distance, width, start, sum;
	} kept[4096];
	size_t place = (size_t)(distance * 8) % 4096;
	if (kept[place].width != width || kept[place].start != start || kept[place].distance != distance) {
		kept[place].width = width, kept[place].start = start, kept[place].distance = distance;
		kept[place].sum = 0;
		for (double k = start; k < start + width / 2; k++)
			kept[place].sum += cos(distance / pow(10000, 2 * k / width));
	}
	return kept[place].sum;
}

static double sandwich(const struct pair *p)
{
	double width = option(p, "width"), sum = sum_of_cosines(p->distance, width, option(p, "start"));
	return (sum - width / 2) * p->H / (8 * (p->head + 1));
}

static const struct {
	const char *name;
	double (*bias)(const struct pair *p);
	const char *tensor[6];
} biases[] = {
	{ "alibi", alibi, { NULL } },
	{ "t5", t5, { "table" } },
	{ "hard_alibi", hard_alibi, { NULL } },
	{ "kerple", kerple, { "a", "p" } },
	{ "fire", fire, { "c", "L_multiplier", "mlp.0.weight", "mlp.0.bias", "mlp.2.weight", "mlp.2.bias" } },
	{ "sandwich", sandwich, { NULL } },
};

static int index_of(const struct entry *e)
{
	for (int i = 0; i < (int)(sizeof biases / sizeof *biases); i++)
		if (!strcmp(biases[i].name, e->name))
			return i;
	return -1;
}

bool reference_has_bias(const struct entry *e)
{
	return index_of(e) >= 0;
}

/* The encoding's own tensor of the layer, or else of all layers. */
static const real *own(const struct model *m, int layer, const char *name)
{
	char full[96];
	snprintf(full, sizeof full, "model.layers.%d.self_attn.position.%s", layer, name);
	const struct parameter *at = layout_find(&m->layout, full);
	if (!at) {
		snprintf(full, sizeof full, "model.position.%s", name);
		at = layout_find(&m->layout, full);
	}
	if (!at)
		fail_msg("the layout has no %s", full);
	return m->value + at->offset;
}

void reference_biases(const struct model *m, int layer, int head, int T, const double *query, const double *distance,
		      double *bias)
{
	struct pair p = { .model = m, .encoding = &m->options.encoding, .head = head, .H = (int)m->options.heads };
	int index = index_of(p.encoding->entry);
	for (int i = 0; index >= 0 && i < 6 && biases[index].tensor[i]; i++)
		p.own[i] = own(m, layer, biases[index].tensor[i]);
	for (int i = 0; i < T; i++)
		for (int j = 0; j <= i; j++) {
			p.query = query[i];
			p.distance = distance[i * T + j];
			bias[i * T + j] = index < 0 || isnan(p.distance) ? 0 : biases[index].bias(&p);
		}
}
