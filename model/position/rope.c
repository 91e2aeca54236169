#include "model/position/rope.h"

#include <math.h>

/* RoPE and what has been made of it: rotary_dim (GPT-NeoX's rotary_pct) rotates a part of each head; p_rope (Barbero et
 * al. 2024, 2410.06205) keeps the fastest pairs alone turning, with their exponents; frequencies can be
 * learned; some layers, or after training all, can go without. */

enum { THETA, LAYOUT, ROTARY_DIM, P_ROPE, LEARNED, NOPE_EVERY, DROPPED };
enum { INTERLEAVED, HALF };
enum { FIXED, ON, TEMPERED };
static const struct option options[] = {
	[THETA] = { .name = "theta", .kind = OPTION_NUMBER, .initial = "500", .least = 1, .most = 1e300,
		    .results = true, .help = "base of the frequencies theta^(-2m/D)" },
	[LAYOUT] = { .name = "layout", .kind = OPTION_CHOICE, .initial = "interleaved", .choices = "interleaved|half",
		     .results = true,
		     .help = "pairs are (2m, 2m+1), as published, or (m, m+D/2), as Hugging Face's LLaMA has them" },
	[ROTARY_DIM] = { .name = "rotary_dim", .kind = OPTION_INTEGER, .initial = "0", .least = 0, .most = 65536,
			 .results = true, .shared = true,
			 .help = "how many components of a head are rotated, the first ones; 0: all" },
	[P_ROPE] = { .name = "p_rope", .kind = OPTION_NUMBER, .initial = "1", .least = 0, .most = 1, .results = true,
		     .shared = true, .help = "share of the pairs that turn, the fastest ones; the rest stand still" },
	[LEARNED] = { .name = "learned", .kind = OPTION_CHOICE, .initial = "off", .choices = "off|on|tempered",
		      .results = true,
		      .help = "frequencies are learned; tempered: and a factor of cosines and sines" },
	[NOPE_EVERY] = { .name = "nope_every", .kind = OPTION_INTEGER, .initial = "0", .least = 0, .most = 1000,
			 .unit = "layers", .results = true, .shared = true,
			 .help = "each n-th layer goes without rotation; 0: none" },
	[DROPPED] = { .name = "dropped", .kind = OPTION_SWITCH, .initial = "off", .choices = "off|on", .most = 1,
		      .results = true,
		      .help = "no layer rotates: what is left when rope is removed during training (drop_rope_at)" },
	{ 0 },
};

void rope_frequencies(double rope_theta, int D, double *inv_freq)
{
	for (int m = 0; m < D / 2; m++)
		inv_freq[m] = pow(rope_theta, -2.0 * m / D);
}

struct err rope_check(const struct model_options *o, int D)
{
	if (D % 2 == 0)
		return OK;
	return err_usage("Choose a width that is an even multiple of the heads.",
			 "head_dim: %d (width %lld / heads %lld) is odd, and %s rotates pairs", D, (long long)o->width,
			 (long long)o->heads, o->encoding.entry->name);
}

static int64_t chosen(const struct place *p, int option)
{
	return p->method->value[option].integer;
}

static struct err check_learned(const struct place *p)
{
	if (chosen(p, LEARNED) == FIXED)
		return OK;
	if ((int)(p->method->value[P_ROPE].number * p->D) / 2 == 0)
		return err_usage("Leave one of them out.",
				 "learned: p_rope %g leaves no pair whose frequency could be learned",
				 p->method->value[P_ROPE].number);
	if (chosen(p, NOPE_EVERY) == 1)
		return err_usage("Leave one of them out.",
				 "learned: with nope_every 1 no layer has frequencies to learn");
	return OK;
}

static struct err check(const struct model_options *o, int D)
{
	struct place p = place_of(o);
	long long rotary_dim = chosen(&p, ROTARY_DIM);
	p.D = rotary_dim ? (int)rotary_dim : D;
	if (rotary_dim > D)
		return err_usage("It is a part of head_dim, which is width / heads.",
				 "rotary_dim: %lld is more than the head_dim %d", rotary_dim, D);
	if (rotary_dim % 2)
		return err_usage("Choose an even number.", "rotary_dim: %lld is odd, and rope rotates pairs",
				 rotary_dim);
	if (!rotary_dim)
		TRY(rope_check(o, D));
	return check_learned(&p);
}

static double theta(const struct place *p)
{
	return p->method->value[THETA].number;
}

static int rotary_dim(const struct place *p)
{
	return chosen(p, ROTARY_DIM) ? (int)chosen(p, ROTARY_DIM) : p->D;
}

static bool half_layout(const struct place *p)
{
	return chosen(p, LAYOUT) == HALF;
}

static bool rotates_layer(const struct place *p, int layer)
{
	int64_t every = chosen(p, NOPE_EVERY);
	return !chosen(p, DROPPED) && !(every && (layer + 1) % every == 0);
}

static void limit(const struct place *p, double *inv_freq)
{
	int D = rotary_dim(p);
	for (int m = (int)(p->method->value[P_ROPE].number * D) / 2; m < D / 2; m++)
		inv_freq[m] = 0;
}

/* ---- learned: inv_freq_m = theta_m exp(log_ratio_m), attention factor = exp(log_attention_factor) ---- */

static bool learns(const struct place *p)
{
	return chosen(p, LEARNED) != FIXED;
}

static void declare(const struct model_options *o, struct layout *l, int layer)
{
	struct place p = place_of(o);
	if (layer >= 0 || !learns(&p))
		return;
	layout_add(l, INIT_ZEROS, 0, false, 0, rotary_dim(&p) / 2, "model.position.log_ratio");
	if (chosen(&p, LEARNED) == TEMPERED)
		layout_add(l, INIT_ZEROS, 0, false, 0, 1, "model.position.log_attention_factor");
}

static void prepare(const struct place *p, struct place_parameters own, struct prepared *to)
{
	int D = rotary_dim(p);
	if (!learns(p))
		return;
	rope_frequencies(theta(p), D, to->inv_freq);
	for (int m = 0; m < D / 2; m++)
		to->inv_freq[m] *= exp((double)own.shared[m]);
	limit(p, to->inv_freq);
	*to->attention_factor = chosen(p, LEARNED) == TEMPERED ? exp((double)own.shared[D / 2]) : 1;
}

static void prepare_back(const struct place *p, struct place_parameters own, const struct prepared *made,
			 const real *d_table, const double *d_inv_freq, double d_attention_factor,
			 struct place_gradients to)
{
	int F = rotary_dim(p) / 2;
	(void)own, (void)d_table;
	if (!learns(p))
		return;
	for (int m = 0; m < F; m++)
		to.shared[m] += (real)(d_inv_freq[m] * made->inv_freq[m]);
	if (chosen(p, LEARNED) == TEMPERED)
		to.shared[F] += (real)(d_attention_factor * *made->attention_factor);
}

const struct position position_rope = {
	.entry = { .name = "rope", .help = "rotates pairs of q and k by position",
		   .paper = "Su et al. 2021, 2104.09864", .options = options },
	.any_order = true,
	.check = check,
	.declare = declare,
	.inspect = rope_inspect,
	.prepares_inv_freq = learns,
	.prepare = prepare,
	.prepare_back = prepare_back,
	.rope_theta = theta,
	.rotary_dim = rotary_dim,
	.half_layout = half_layout,
	.limit_inv_freq = limit,
	.rotates_layer = rotates_layer,
	.rotate = rope_rotate,
	.rotate_back = rope_rotate_back,
};
