#include "model/position/inspection.h"

#include <math.h>

/* Sinusoidal absolute positions (Vaswani et al. 2017, 1706.03762, section 3.5): PE[p][2m] = sin(p 10000^(-2m/C)),
 * PE[p][2m+1] = cos(the same), times `scale`, added to the token embedding. The other layouts have all sines
 * first, then all cosines; that of the authors' tensor2tensor (and fairseq) also has other frequencies,
 * 10000^(-m/(C/2 - 1)), so that the slowest is 1/10000, and a 0 in the last column of an odd width. */

enum { SCALE, LAYOUT };
enum { INTERLEAVED, CONCATENATED, TENSOR2TENSOR };
static const struct option options[] = {
	[SCALE] = { .name = "scale", .kind = OPTION_NUMBER, .initial = "1.4142135623730951", .least = -1e6, .most = 1e6,
		    .results = true, .help = "factor of the table; sqrt(2) gives it the embedding's RMS of 1" },
	[LAYOUT] = { .name = "layout", .kind = OPTION_CHOICE, .initial = "interleaved",
		     .choices = "interleaved|concatenated|tensor2tensor", .results = true,
		     .help = "interleaved: sine and cosine of a frequency side by side, as in the paper; concatenated: "
			     "all sines, then all cosines; tensor2tensor: likewise, with frequencies from 1 to "
			     "1/10000" },
	{ 0 },
};

static int layout_of(const struct place *p)
{
	return (int)p->method->value[LAYOUT].integer;
}

static int pairs_of(const struct place *p)
{
	return layout_of(p) == TENSOR2TENSOR ? p->C / 2 : (p->C + 1) / 2;
}

static double inv_freq_of(const struct place *p, int pair)
{
	int steps = pairs_of(p) > 2 ? pairs_of(p) - 1 : 1;
	return layout_of(p) == TENSOR2TENSOR ? pow(10000, -(double)pair / steps) : pow(10000, -2.0 * pair / p->C);
}

static double value_at(const struct place *p, double position, int c)
{
	int pairs = pairs_of(p);
	bool interleaved = layout_of(p) == INTERLEAVED, cosine = interleaved ? c % 2 : c >= pairs;
	int pair = interleaved ? c / 2 : cosine ? c - pairs : c;
	if (pair >= pairs)
		return 0;
	double angle = position * inv_freq_of(p, pair);
	return p->method->value[SCALE].number * (cosine ? cos(angle) : sin(angle));
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
	int pairs = pairs_of(p);
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
	.any_order = true,
	.inspect = inspect,
	.embed = embed,
	.embed_back = embed_back,
};
