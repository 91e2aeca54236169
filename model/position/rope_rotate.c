#include "model/position/rope.h"

/* Rows to fetch ahead. */
#define AHEAD 8

/* Where the halves of pair m stand in a row: at `step` m, and `apart` behind it. Both are constants where rows are
 * turned, so that each layout has loops of its own. */
struct pairing {
	int step, apart;
};

static struct pairing pairing_of(const struct rotation *r)
{
	return r->half ? (struct pairing){ 1, r->F } : (struct pairing){ 2, 1 };
}

static inline void turn_row(int F, int step, int apart, const real *cosine, const real *sine, const real *from,
			    real *to)
{
	for (int m = 0; m < F; m++) {
		real x = from[step * m], y = from[step * m + apart];
		to[step * m] = x * cosine[m] - y * sine[m];
		to[step * m + apart] = x * sine[m] + y * cosine[m];
	}
}

void rope_rotate(const struct rotation *r, const real *from, int from_stride, real *to)
{
	int F = r->F;
	for (int row = 0; row < r->rows; row++, from += from_stride, to += r->D) {
		/* Rows stand far apart, in a pattern that the processor does not foresee. */
		for (int i = 0; row + AHEAD < r->rows && i < r->D; i += (int)(64 / sizeof(real)))
			__builtin_prefetch(from + AHEAD * from_stride + i);
		const real *cosine = r->cosine + (size_t)row * (size_t)F, *sine = r->sine + (size_t)row * (size_t)F;
		if (r->half)
			turn_row(F, 1, F, cosine, sine, from, to);
		else
			turn_row(F, 2, 1, cosine, sine, from, to);
		for (int d = 2 * F; d < r->D; d++)
			to[d] = from[d];
	}
}

/* d/d angle of (x', y') is (-y', x'); d/d factor is (x', y') / factor. */
static void frequency_gradient(const struct rotation *r, const real *from, int from_stride, const real *d_to,
			       struct rotation_gradient g)
{
	int F = r->F;
	struct pairing at = pairing_of(r);
	for (int row = 0; row < r->rows; row++, from += from_stride, d_to += r->D)
		for (int m = 0; m < F; m++) {
			size_t turn = (size_t)row * (size_t)F + (size_t)m;
			int first = at.step * m, second = first + at.apart;
			double x = (double)from[first], y = (double)from[second];
			double turned_x = x * (double)r->cosine[turn] - y * (double)r->sine[turn];
			double turned_y = x * (double)r->sine[turn] + y * (double)r->cosine[turn];
			double d_x = (double)d_to[first], d_y = (double)d_to[second];
			g.inv_freq[m] += r->positions[row] * (d_y * turned_x - d_x * turned_y);
			*g.attention_factor += (d_x * turned_x + d_y * turned_y) / r->attention_factor;
		}
}

static inline void turn_row_back(int F, int step, int apart, const real *cosine, const real *sine, const real *d_to,
				 real *d_from)
{
	for (int m = 0; m < F; m++) {
		real d_x = d_to[step * m], d_y = d_to[step * m + apart];
		d_from[step * m] += d_x * cosine[m] + d_y * sine[m];
		d_from[step * m + apart] += d_y * cosine[m] - d_x * sine[m];
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
		if (r->half)
			turn_row_back(F, 1, F, cosine, sine, d_to, d_from);
		else
			turn_row_back(F, 2, 1, cosine, sine, d_to, d_from);
		for (int d = 2 * F; d < r->D; d++)
			d_from[d] += d_to[d];
	}
}
