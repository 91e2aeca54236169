#include "model/position/inspection.h"
#include "model/position/rope.h"

#include <math.h>
#include <stdio.h>

/* xPos (Sun et al. 2022, 2212.10554): RoPE, and pair m of q_i times zeta_m^(i/B), of k_j times
 * zeta_m^(-j/B), zeta_m = (2m/D + gamma) / (1 + gamma) <= 1, so that its part of q.k fades by zeta_m^((i-j)/B). Powers
 * count from the centre of the block of queries, which leaves q.k as it is. A RoPE scaling changes the angles alone. */

enum { THETA, GAMMA, SCALE_BASE };
static const struct option options[] = {
	[THETA] = { .name = "theta", .kind = OPTION_NUMBER, .initial = "500", .least = 1, .most = 1e300,
		    .results = true, .help = "base of the frequencies theta^(-2m/D)" },
	[GAMMA] = { .name = "gamma", .kind = OPTION_NUMBER, .initial = "0.4", .least = 0.01, .most = 1e6,
		    .results = true, .help = "pair m fades by zeta_m = (2m/D + gamma) / (1 + gamma)" },
	[SCALE_BASE] = { .name = "scale_base", .kind = OPTION_NUMBER, .initial = "512", .least = 1, .most = 1e9,
			 .unit = "tokens", .results = true, .help = "distance over which a pair fades by its zeta" },
	{ 0 },
};

/* ln zeta_m / B, the growth of a pair of q by position: 0 or less. */
static double growth(const struct place *p, int m)
{
	double gamma = p->method->value[GAMMA].number;
	return log((2.0 * m / p->D + gamma) / (1 + gamma)) / p->method->value[SCALE_BASE].number;
}

/* Powers of a block's queries, and of the keys that they see, are at most e^GREATEST: so that no product overflows, not
 * even those of keys behind a query. Keys behind the block have no use: any number will do that is finite. */
#define GREATEST 36
static double span(const struct place *p)
{
	return -GREATEST / growth(p, 0);
}

/* exp(growth (position - centre)) of some pairs: of a row, times those of whole numbers of positions further on. */
#define PAIRS 64
#define STEPS 16
struct powers {
	int pairs;
	double rate[PAIRS], base[PAIRS], step[STEPS][PAIRS];
	double position; /* of base */
};

static void powers_start(struct powers *w, const struct rotation *r, int first)
{
	w->pairs = r->F - first < PAIRS ? r->F - first : PAIRS;
	w->position = NAN;
	for (int m = 0; m < w->pairs; m++)
		w->rate[m] = (r->side == SIDE_QUERY ? 1 : -1) * growth(r->place, first + m);
	for (int s = 0; s < STEPS && s < r->rows; s++)
		for (int m = 0; m < w->pairs; m++)
			w->step[s][m] = exp(w->rate[m] * s);
}

/* Which step from the base a row is; a new base if none. */
static int powers_enter(struct powers *w, const struct rotation *r, int row)
{
	double steps = r->positions[row] - w->position;
	if (steps >= 0 && steps < STEPS && steps == floor(steps) && steps < r->rows)
		return (int)steps;
	w->position = r->positions[row];
	for (int m = 0; m < w->pairs; m++)
		w->base[m] = exp(fmin(w->rate[m] * (w->position - r->centre), GREATEST));
	return 0;
}

/* Below the normal numbers powers are 0: what else they are is slow and as good as nothing. */
static inline real power(const struct powers *w, int step, int m)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): powers_enter comes first */
	double power = w->base[m] * w->step[step][m];
	power = power < exp(GREATEST) ? power : exp(GREATEST);
	return (real)(power > 2e-38 ? power : 0);
}

static void rotate_pairs(const struct rotation *r, int first, const real *from, int from_stride, real *to)
{
	struct powers w;
	size_t F = (size_t)r->F;
	powers_start(&w, r, first);
	for (int row = 0; row < r->rows; row++, from += from_stride, to += r->D) {
		const real *cosine = r->cosine + (size_t)row * F + first, *sine = r->sine + (size_t)row * F + first;
		int step = powers_enter(&w, r, row);
		for (int m = 0; m < w.pairs; m++) {
			real x = from[2 * m] * power(&w, step, m), y = from[2 * m + 1] * power(&w, step, m);
			to[2 * m] = x * cosine[m] - y * sine[m];
			to[2 * m + 1] = x * sine[m] + y * cosine[m];
		}
	}
}

static void rotate(const struct rotation *r, const real *from, int from_stride, real *to)
{
	for (int m = 0; m < r->F; m += PAIRS)
		rotate_pairs(r, m, from + 2 * m, from_stride, to + 2 * m);
}

static void rotate_pairs_back(const struct rotation *r, int first, const real *d_to, real *d_from, int d_from_stride)
{
	struct powers w;
	size_t F = (size_t)r->F;
	powers_start(&w, r, first);
	for (int row = 0; row < r->rows; row++, d_to += r->D, d_from += d_from_stride) {
		const real *cosine = r->cosine + (size_t)row * F + first, *sine = r->sine + (size_t)row * F + first;
		int step = powers_enter(&w, r, row);
		for (int m = 0; m < w.pairs; m++) {
			real d_x = d_to[2 * m] * power(&w, step, m), d_y = d_to[2 * m + 1] * power(&w, step, m);
			d_from[2 * m] += d_x * cosine[m] + d_y * sine[m];
			d_from[2 * m + 1] += d_y * cosine[m] - d_x * sine[m];
		}
	}
}

static void rotate_back(const struct rotation *r, const real *from, int from_stride, const real *d_to, real *d_from,
			int d_from_stride, struct rotation_gradient g)
{
	(void)from, (void)from_stride, (void)g;
	for (int m = 0; m < r->F; m += PAIRS)
		rotate_pairs_back(r, m, d_to + 2 * m, d_from + 2 * m, d_from_stride);
}

static double theta(const struct place *p)
{
	return p->method->value[THETA].number;
}

static struct err inspect(const struct inspection *in, struct report *to)
{
	const struct place *p = in->place;
	double *zeta, *trained, *longest, distance = zones_longest_distance(in->zones);
	char heading[32];
	TRY(rope_inspect(in, to));
	report_table(to, NULL, "pair", p->D / 2);
	TRY(report_column(to, "zeta", "zeta", 0, &zeta));
	snprintf(heading, sizeof heading, "trained: left at %d", p->train_length - 1);
	TRY(report_column(to, "trained_decays", heading, 0, &trained));
	snprintf(heading, sizeof heading, "left at %.0f", distance);
	TRY(report_column(to, "decays", heading, 0, &longest));
	for (int m = 0; m < p->D / 2; m++) {
		zeta[m] = exp(growth(p, m) * p->method->value[SCALE_BASE].number);
		trained[m] = exp(growth(p, m) * (p->train_length - 1));
		longest[m] = exp(growth(p, m) * distance);
	}
	report_note(to, "A pair's part of q.k is multiplied by zeta^(r / %g) at distance r: what is left of it at the "
			"longest of training and of this length.", p->method->value[SCALE_BASE].number);
	return OK;
}

const struct position position_xpos = {
	.entry = { .name = "xpos", .help = "rope whose pairs fade with the distance",
		   .paper = "Sun et al. 2022, 2212.10554", .options = options },
	.check = rope_check,
	.inspect = inspect,
	.rope_theta = theta,
	.centred = true,
	.centred_span = span,
	.rotate = rotate,
	.rotate_back = rotate_back,
};
