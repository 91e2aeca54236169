#include "model/position/inspection.h"

#include <math.h>

/* Sinusoidal absolute positions (Vaswani et al. 2017, 1706.03762, section 3.5): PE[p][2m] = sin(p 10000^(-2m/C)),
 * PE[p][2m+1] = cos(the same), times `scale`, added to the token embedding. */

enum { SCALE };
static const struct option options[] = {
	[SCALE] = { .name = "scale", .kind = OPTION_NUMBER, .initial = "1.4142135623730951", .least = -1e6, .most = 1e6,
		    .results = true, .help = "factor of the table; sqrt(2) gives it the embedding's RMS of 1" },
	{ 0 },
};

static double inv_freq_of(const struct place *p, int pair)
{
	return pow(10000, -2.0 * pair / p->C);
}

static double value_at(const struct place *p, double position, int c)
{
	double angle = position * inv_freq_of(p, c / 2);
	return p->method->value[SCALE].number * (c % 2 ? cos(angle) : sin(angle));
}

static void embed(const struct place *p, struct place_parameters own, int first, int last, real *vector)
{
	(void)own;
	for (int t = first; t < last; t++)
		for (int c = 0; c < p->C; c++)
			vector[(size_t)t * (size_t)p->C + (size_t)c] = (real)value_at(p, p->positions[t], c);
}

/* Nothing of it is learned. */
static void embed_back(const struct place *p, struct place_parameters own, const real *d_vector,
		       struct place_gradients to)
{
	(void)p, (void)own, (void)d_vector, (void)to;
}

static struct err inspect(const struct inspection *in, struct report *to)
{
	const struct place *p = in->place;
	double *table, *wavelength, *rotations, *longest;
	int pairs = (p->C + 1) / 2;
	report_table(to, NULL, "pair", pairs);
	TRY(report_column(to, "wavelengths", "wavelength", 0, &wavelength));
	TRY(report_column(to, "rotations", "rotations trained", 0, &rotations));
	TRY(report_column(to, "rotations_at_length", "at length", 0, &longest));
	for (int m = 0; m < pairs; m++) {
		wavelength[m] = 2 * M_PI / inv_freq_of(p, m);
		rotations[m] = p->train_length / wavelength[m];
		longest[m] = p->T / wavelength[m];
	}
	report_table(to, NULL, "position", p->T);
	TRY(report_column(to, "table", "", p->C, &table));
	for (int t = 0; t < p->T; t++)
		for (int c = 0; c < p->C; c++)
			table[(size_t)t * (size_t)p->C + (size_t)c] = value_at(p, p->positions[t], c);
	report_note(to, "A pair is a sine and a cosine of one wavelength, in tokens. --format=json gives the table.");
	return OK;
}

const struct position position_sinusoidal = {
	.entry = { .name = "sinusoidal", .help = "fixed sines and cosines added to the token embedding",
		   .paper = "Vaswani et al. 2017, 1706.03762, section 3.5", .options = options },
	.inspect = inspect,
	.embed = embed,
	.embed_back = embed_back,
};
