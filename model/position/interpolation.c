#include "model/position/scaling.h"

/* No scaling, and position interpolation (Chen et al. 2023, 2306.15595, equation 4): theta / s. */

const struct scaling scaling_none = {
	.entry = { .name = "none", .help = "the trained frequencies at every length" },
	.any_encoding = true,
};

static void linear_frequencies(const struct scaling_request *r, double *inv_freq, double *attention_factor)
{
	scaling_base(r, inv_freq);
	*attention_factor = 1;
	for (int m = 0; m < r->D / 2; m++)
		inv_freq[m] /= r->factor;
}

static const struct option options[] = { FACTOR_OPTION, { 0 } };

const struct scaling scaling_linear = {
	.entry = { .name = "linear", .help = "position interpolation: all frequencies divided by the factor",
		   .paper = "Chen et al. 2023, 2306.15595; kaiokendev 2023", .options = options,
		   .joins = scaling_joins },
	.frequencies = linear_frequencies,
};
