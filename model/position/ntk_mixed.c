#include "model/position/scaling.h"

#include <math.h>

/* NTK-mixed (Su 2023, bojone/rerope, ntk_patch.py): theta_m exp(-a (m + 1)^exponent) with a = ln s / F^exponent,
 * F = D / 2, which is theta_m / s^(((m + 1) / F)^exponent): between linear (exponent 0) and a change of base
 * (exponent 1), the slowest pair divided by exactly s. The published code has s = 12 fixed. */

enum { FACTOR, EXPONENT };
static const struct option options[] = {
	[FACTOR] = FACTOR_OPTION,
	[EXPONENT] = { .name = "exponent", .kind = OPTION_NUMBER, .initial = "0.75", .least = 0, .most = 100,
		       .results = true, .help = "how a pair's rank tells: 0 divides all alike (linear)" },
	{ 0 },
};

static void frequencies(const struct scaling_request *r, double *inv_freq, double *attention_factor)
{
	int F = r->D / 2;
	double exponent = r->method->value[EXPONENT].number;
	scaling_base(r, inv_freq);
	*attention_factor = 1;
	for (int m = 0; m < F; m++)
		inv_freq[m] /= pow(r->factor, pow((m + 1.0) / F, exponent));
}

const struct scaling scaling_ntk_mixed = {
	.entry = { .name = "ntk_mixed", .help = "between linear and ntk; the slowest pair divided by the factor",
		   .paper = "Su 2023, bojone/rerope", .options = options, .joins = scaling_joins },
	.frequencies = frequencies,
};
