#include "model/position/position.h"

#include <math.h>

/* Sinusoidal absolute positions (Vaswani et al. 2017, 1706.03762, section 3.5): PE[p][2m] = sin(p 10000^(-2m/C)),
 * PE[p][2m+1] = cos(the same), times `scale`, added to the token embedding. */

enum { SCALE };
static const struct option options[] = {
	[SCALE] = { .name = "scale", .kind = OPTION_NUMBER, .initial = "1.4142135623730951", .least = -1e6, .most = 1e6,
		    .results = true, .help = "factor of the table; sqrt(2) gives it the embedding's RMS of 1" },
	{ 0 },
};

static void embed(const struct place *p, struct place_parameters own, int first, int last, real *vector)
{
	double scale = p->method->value[SCALE].number;
	(void)own;
	for (int t = first; t < last; t++)
		for (int c = 0; c < p->C; c++) {
			double angle = p->positions[t] * pow(10000, -(double)(c / 2 * 2) / p->C);
			vector[(size_t)t * (size_t)p->C + (size_t)c] =
				(real)(scale * (c % 2 ? cos(angle) : sin(angle)));
		}
}

/* Nothing of it is learned. */
static void embed_back(const struct place *p, struct place_parameters own, const real *d_vector,
		       struct place_gradients to)
{
	(void)p, (void)own, (void)d_vector, (void)to;
}

const struct position position_sinusoidal = {
	.entry = { .name = "sinusoidal", .help = "fixed sines and cosines added to the token embedding",
		   .options = options },
	.embed = embed,
	.embed_back = embed_back,
};
