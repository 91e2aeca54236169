#include "model/position/zones.h"

/* No scaling, and position interpolation (Chen et al. 2023, 2306.15595, equation 4): theta / s. */

const struct scaling scaling_none = {
	.entry = { .name = "none", .help = "the trained frequencies at every length" },
	.any_encoding = true,
};

static void divide_by(double factor, const struct scaling_request *r, double *inv_freq, double *attention_factor)
{
	scaling_base(r, inv_freq);
	*attention_factor = 1;
	for (int m = 0; m < r->D / 2; m++)
		inv_freq[m] /= factor;
}

static void linear_frequencies(const struct scaling_request *r, double *inv_freq, double *attention_factor)
{
	divide_by(r->factor, r, inv_freq, attention_factor);
}

static const struct option options[] = { FACTOR_OPTION, { 0 } };

const struct scaling scaling_linear = {
	.entry = { .name = "linear", .help = "position interpolation: all frequencies divided by the factor",
		   .paper = "Chen et al. 2023, 2306.15595; kaiokendev 2023", .options = options,
		   .joins = scaling_joins },
	.frequencies = linear_frequencies,
};

/* By the length reached (jquesnelle/yarn, LlamaDynamicScaledRotaryEmbedding, which shrinks the positions instead). */
static const struct option dynamic_options[] = { BLOCK_OPTION, { 0 } };

static void dynamic_frequencies(const struct scaling_request *r, double *inv_freq, double *attention_factor)
{
	divide_by(scaling_length_ratio(r), r, inv_freq, attention_factor);
}

const struct scaling scaling_dynamic_linear = {
	.entry = { .name = "dynamic_linear", .help = "linear by the length reached so far",
		   .paper = "emozilla 2023, jquesnelle/yarn", .options = dynamic_options, .joins = scaling_joins },
	.frequencies = dynamic_frequencies,
	.zones = zones_by_block_option,
	.zoned = has_block,
	.ratio = scaling_length_ratio,
	.rule = scaling_length_rule,
};
