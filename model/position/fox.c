#include "model/position/inspection.h"

#include "model/base/vec.h"

#include <math.h>
#include <string.h>

/* FoX, the forgetting transformer (Lin et al. 2025, 2503.02130): logit = scale q.k + sum of ln f_t over
 * j < t <= i, f_t = sigmoid(w_h.x_t + c_h) of the layer's normed input x. Positions are not looked at, and keys that a
 * row does not see are forgotten over like others. At first w ~ N(0, 1/C) and c = 0, as its authors have it, so that f
 * is about 1/2. */

/* A head's gate: ln f; and the sum of all up to its own, as the two parts of a number of twice the digits, so that the
 * difference of two sums is as exact as itself, however long the sequence. */
enum { LOG_FORGET, SUM, SUM_REST, GATE_REALS };

static void declare(const struct model_options *o, struct layout *l, int layer)
{
	if (layer < 0)
		return;
	layout_add(l, INIT_NORMAL, 1 / sqrt((double)o->width), true, (int)o->heads, (int)o->width,
		   "model.layers.%d.self_attn.position.weight", layer);
	layout_add(l, INIT_ZEROS, 0, false, 0, (int)o->heads, "model.layers.%d.self_attn.position.bias", layer);
}

/* ln sigmoid(z) without overflow. */
static double log_sigmoid(double z)
{
	return z < 0 ? z - log1p(exp(z)) : -log1p(exp(-z));
}

static void gate(const struct place *p, struct place_parameters own, int rows, const real *x, real *to)
{
	const real *bias = own.layer + p->H * p->C;
	for (int r = 0; r < rows; r++, x += p->C)
		for (int h = 0; h < p->H; h++, to += GATE_REALS)
			to[LOG_FORGET] =
				(real)log_sigmoid((double)vec_dot(own.layer + h * p->C, x, p->C) + (double)bias[h]);
}

static void gate_back(const struct place *p, struct place_parameters own, int rows, const real *x, const real *gate,
		      const real *d_gate, real *d_x, struct place_gradients to)
{
	real *d_bias = to.layer + p->H * p->C;
	for (int r = 0; r < rows; r++, x += p->C, d_x += p->C)
		for (int h = 0; h < p->H; h++, gate += GATE_REALS, d_gate += GATE_REALS) {
			/* 1 - f */
			real d_z = d_gate[LOG_FORGET] * (real)-expm1((double)gate[LOG_FORGET]);
			vec_axpy(d_x, d_z, own.layer + h * p->C, p->C);
			vec_axpy(to.layer + h * p->C, d_z, x, p->C);
			d_bias[h] += d_z;
		}
}

static void gates_ready(const struct place *p, real *gate, int stride)
{
	double sum = 0;
	for (int t = 0; t < p->T; t++, gate += stride) {
		sum += (double)gate[LOG_FORGET];
		gate[SUM] = (real)sum;
		gate[SUM_REST] = (real)(sum - (double)gate[SUM]);
	}
}

/* ln f_t is in the sums of t and of all later tokens; the first token's is in no difference of two. */
static void gates_ready_back(const struct place *p, const real *gate, real *d_gate, int stride)
{
	double sum = 0;
	(void)gate;
	for (int t = p->T - 1; t > 0; t--) {
		real *d = d_gate + (size_t)t * (size_t)stride;
		sum += (double)d[SUM];
		d[LOG_FORGET] = (real)sum;
	}
}

static void add_row(int n, real scale, const real *own, const real *restrict sum, const real *restrict rest,
		    real *restrict logit)
{
	for (int j = 0; j < n; j++)
		logit[j] = logit[j] * scale + ((own[SUM] - sum[j]) + (own[SUM_REST] - rest[j]));
}

static void logits(const struct place *p, const struct tile *t, real *logit)
{
	real sum[TILE_COLUMNS], rest[TILE_COLUMNS];
	(void)p;
	for (int j = 0; j < t->columns; j++) {
		sum[j] = t->key_gate[j * t->gate_stride + SUM];
		rest[j] = t->key_gate[j * t->gate_stride + SUM_REST];
	}
	for (int r = 0; r < t->rows; r++, logit += TILE_STRIDE)
		add_row(t->high[r] - t->low[r], t->scale, t->query_gate + r * t->gate_stride, sum + t->low[r],
			rest + t->low[r], logit + t->low[r]);
}

static void add_row_back(int n, real scale, real *restrict d_logit, double *restrict sum)
{
	for (int j = 0; j < n; j++) {
		sum[j] += (double)d_logit[j];
		d_logit[j] *= scale;
	}
}

static void logits_back(const struct place *p, const struct tile *t, const real *raw, real *d_logit,
			struct tile_gradient g)
{
	double sum[TILE_COLUMNS];
	(void)p, (void)raw;
	memset(sum, 0, (size_t)t->columns * sizeof *sum);
	for (int r = 0; r < t->rows; r++, d_logit += TILE_STRIDE) {
		int n = t->high[r] - t->low[r];
		g.query_gate[r * t->gate_stride + SUM] += vec_sum(d_logit + t->low[r], n);
		add_row_back(n, t->scale, d_logit + t->low[r], sum + t->low[r]);
	}
	for (int j = 0; j < t->columns; j++)
		g.key_gate[j * t->gate_stride + SUM] -= (real)sum[j];
}

static void fill_layer(const struct place *p, const real *own, double *forget, double *half, double *spread)
{
	const real *bias = own + p->H * p->C;
	for (int h = 0; h < p->H; h++) {
		double log_forget = log_sigmoid((double)bias[h]);
		forget[h] = exp(log_forget);
		half[h] = -M_LN2 / log_forget;
		spread[h] = sqrt(vec_sum_squares(own + h * p->C, p->C));
	}
}

static struct err inspect(const struct inspection *in, struct report *to)
{
	const struct place *p = in->place;
	double *forget, *half, *spread;
	if (!in->own) {
		report_note(to, "A key at distance r loses the last r gates' sum of -ln f nats; f depends on the text: "
				"give a model to see what it is about.");
		return OK;
	}
	report_table(to, NULL, "layer", p->layers);
	TRY(report_column(to, "forget", "f at x = 0, head", p->H, &forget));
	TRY(report_column(to, "half_lives", "half-life, head", p->H, &half));
	TRY(report_column(to, "weight_norms", "|w|, head", p->H, &spread));
	for (int layer = 0; layer < p->layers; layer++)
		fill_layer(p, in->own[layer].layer, forget + layer * p->H, half + layer * p->H, spread + layer * p->H);
	report_note(to, "f = sigmoid(w.x + c): at x = 0 it is sigmoid(c), and weights halve in as many tokens as "
			"given; the deviation of w.x over tokens is about |w|.");
	return OK;
}

const struct position position_fox = {
	.entry = { .name = "fox", .help = "a gate a head and token, by which all earlier keys are forgotten",
		   .paper = "Lin et al. 2025, 2503.02130" },
	.any_order = true,
	.declare = declare,
	.inspect = inspect,
	.gate_reals = GATE_REALS,
	.gate = gate,
	.gate_back = gate_back,
	.gates_ready = gates_ready,
	.gates_ready_back = gates_ready_back,
	.logits = logits,
	.logits_back = logits_back,
};
