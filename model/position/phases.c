#include "model/position/phases.h"

#include "model/position/distance_bias.h"

#include <math.h>
#include <string.h>

/* Of each frequency its number, cosine and sine, as doubles among reals. */
enum { FREQUENCY, COSINE, SINE, KEPT };
#define DOUBLE_REALS (sizeof(double) / sizeof(real))

size_t phases_reals(int F)
{
	return (size_t)F * KEPT * DOUBLE_REALS;
}

void phases_prepare(int F, real *prepared)
{
	for (int m = 0; m < F; m++, prepared += KEPT * DOUBLE_REALS) {
		double w = pow(10000, -(double)m / F), kept[KEPT] = { w, cos(w), sin(w) };
		memcpy(prepared, kept, sizeof kept);
	}
}

/* (c, s) = (a, b) (x, y) as complex numbers, for every frequency. */
static void multiply(const double *a, const double *b, const double *x, const double *y, double *c, double *s)
{
	for (int m = 0; m < PHASE_WAVES; m++) {
		double product = a[m] * x[m] - b[m] * y[m];
		s[m] = a[m] * y[m] + b[m] * x[m];
		c[m] = product;
	}
}

/* Phases of steps 0 .. count - 1 out of those of one step: each half of the powers makes the other. */
static void make_powers(struct phases *p, int count, double *cosine, double *sine)
{
	for (int m = 0; m < PHASE_WAVES; m++) {
		p->cosine[0][m] = 1;
		p->sine[0][m] = 0;
	}
	for (int half = 1; half < count; half *= 2) {
		for (int n = half; n < 2 * half && n < count; n++)
			multiply(p->cosine[n - half], p->sine[n - half], cosine, sine, p->cosine[n], p->sine[n]);
		multiply(cosine, sine, cosine, sine, cosine, sine);
	}
}

static void make_angles(const struct phases *p, double position, double *cosine, double *sine)
{
	double steps = position - p->tile->key_positions[0];
	for (int m = 0; m < PHASE_WAVES; m++) {
		cosine[m] = cos(steps * p->frequency[m]);
		sine[m] = sin(steps * p->frequency[m]);
	}
}

void phases_of(const struct tile *t, int F, const real *prepared, int from, struct phases *p)
{
	struct distance_line line;
	double cosine[PHASE_WAVES], sine[PHASE_WAVES];
	double rows = t->query_positions[t->rows - 1] - t->query_positions[0];
	p->tile = t;
	p->even = distance_line(t, &line) && rows < TILE_COLUMNS;
	for (int m = 0; m < PHASE_WAVES; m++) {
		double kept[KEPT] = { 0, 1, 0 };
		if (from + m < F)
			memcpy(kept, prepared + (size_t)(from + m) * KEPT * DOUBLE_REALS, sizeof kept);
		p->frequency[m] = kept[FREQUENCY];
		cosine[m] = kept[COSINE];
		sine[m] = kept[SINE];
	}
	if (!p->even) {
		for (int j = 0; j < t->columns; j++)
			make_angles(p, t->key_positions[j], p->cosine[j], p->sine[j]);
		return;
	}
	make_angles(p, t->query_positions[0], p->first_cosine, p->first_sine);
	make_powers(p, t->columns > rows ? t->columns : (int)rows + 1, cosine, sine);
}

void phases_of_row(const struct phases *p, int r, double cosine[PHASE_WAVES], double sine[PHASE_WAVES])
{
	const double *position = p->tile->query_positions;
	if (!p->even) {
		make_angles(p, position[r], cosine, sine);
		return;
	}
	int steps = (int)(position[r] - position[0]);
	multiply(p->first_cosine, p->first_sine, p->cosine[steps], p->sine[steps], cosine, sine);
}
