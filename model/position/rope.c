#include "model/position/rope.h"

#include "model/position/inspection.h"

#include <math.h>

enum { THETA, DROPPED };
static const struct option options[] = {
	[THETA] = { .name = "theta", .kind = OPTION_NUMBER, .initial = "500", .least = 1, .most = 1e300,
		    .results = true, .help = "base of the frequencies theta^(-2m/D)" },
	[DROPPED] = { .name = "dropped", .kind = OPTION_SWITCH, .initial = "off", .least = 0, .most = 1,
		      .choices = "off|on", .unit = "", .results = true,
		      .help = "no layer rotates: what is left when rope is removed during training (drop_rope_at)" },
	{ 0 },
};

/* Rows to fetch ahead. */
#define AHEAD 8

void rope_rotate(const struct rotation *r, const real *from, int from_stride, real *to)
{
	int F = r->F;
	for (int row = 0; row < r->rows; row++, from += from_stride, to += r->D) {
		/* Rows stand far apart, in a pattern that the processor does not foresee. */
		for (int i = 0; row + AHEAD < r->rows && i < r->D; i += (int)(64 / sizeof(real)))
			__builtin_prefetch(from + AHEAD * from_stride + i);
		const real *cosine = r->cosine + (size_t)row * (size_t)F, *sine = r->sine + (size_t)row * (size_t)F;
		for (int m = 0; m < F; m++) {
			real x = from[2 * m], y = from[2 * m + 1];
			to[2 * m] = x * cosine[m] - y * sine[m];
			to[2 * m + 1] = x * sine[m] + y * cosine[m];
		}
		for (int d = 2 * F; d < r->D; d++)
			to[d] = from[d];
	}
}

/* d/d angle of (x', y') is (-y', x'); d/d factor is (x', y') / factor. */
static void frequency_gradient(const struct rotation *r, const real *from, int from_stride, const real *d_to,
			       struct rotation_gradient g)
{
	int F = r->F;
	for (int row = 0; row < r->rows; row++, from += from_stride, d_to += r->D)
		for (int m = 0; m < F; m++) {
			size_t at = (size_t)row * (size_t)F + (size_t)m;
			double x = (double)from[2 * m], y = (double)from[2 * m + 1];
			double turned_x = x * (double)r->cosine[at] - y * (double)r->sine[at];
			double turned_y = x * (double)r->sine[at] + y * (double)r->cosine[at];
			double d_x = (double)d_to[2 * m], d_y = (double)d_to[2 * m + 1];
			g.inv_freq[m] += r->positions[row] * (d_y * turned_x - d_x * turned_y);
			*g.attention_factor += (d_x * turned_x + d_y * turned_y) / r->attention_factor;
		}
}

void rope_rotate_back(const struct rotation *r, const real *from, int from_stride, const real *d_to, real *d_from,
		      int d_from_stride, struct rotation_gradient g)
{
	int F = r->F;
	if (g.inv_freq)
		frequency_gradient(r, from, from_stride, d_to, g);
	for (int row = 0; row < r->rows; row++, d_to += r->D, d_from += d_from_stride) {
		const real *cosine = r->cosine + (size_t)row * (size_t)F, *sine = r->sine + (size_t)row * (size_t)F;
		for (int m = 0; m < F; m++) {
			real d_x = d_to[2 * m], d_y = d_to[2 * m + 1];
			d_from[2 * m] += d_x * cosine[m] + d_y * sine[m];
			d_from[2 * m + 1] += d_y * cosine[m] - d_x * sine[m];
		}
		for (int d = 2 * F; d < r->D; d++)
			d_from[d] += d_to[d];
	}
}

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

static double theta(const struct place *p)
{
	return p->method->value[THETA].number;
}

static bool rotates_layer(const struct place *p, int layer)
{
	(void)layer;
	return !p->method->value[DROPPED].integer;
}

static struct err inspect(const struct inspection *in, struct report *to)
{
	TRY(rope_inspect(in, to));
	if (!rotates_layer(in->place, 0))
		report_note(to, "Dropped: no layer turns by them.");
	return OK;
}

const struct position position_rope = {
	.entry = { .name = "rope", .help = "rotates adjacent pairs of q and k by position",
		   .paper = "Su et al. 2021, 2104.09864", .options = options },
	.any_order = true,
	.check = rope_check,
	.inspect = inspect,
	.rope_theta = theta,
	.rotates_layer = rotates_layer,
	.rotate = rope_rotate,
	.rotate_back = rope_rotate_back,
};
