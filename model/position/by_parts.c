#include "model/position/scaling.h"

#include <math.h>

/* NTK-by-parts and YaRN (Peng et al. 2023, 2309.00071, sections 3.2 and 3.4): slow pairs are interpolated, fast ones
 * kept, those between blended along a ramp: theta' = (1 - kept) theta / s + kept theta. The two ramps in use differ:
 *   rotations  kept = (rho - beta_slow) / (beta_fast - beta_slow), rho = train_length theta / 2 pi (the paper's)
 *   pairs      linear in the pair's index between the pairs that turn beta_fast and beta_slow times (the authors' code,
 *              Hugging Face, ggml), rounded outwards where `truncate` is on
 * YaRN also multiplies cosines and sines by the attention factor 0.1 ln s + 1 (equation 22), so logits by its square.
 */

enum { FACTOR, RAMP, BETA_FAST, BETA_SLOW, TRUNCATE, ATTENTION_FACTOR };
enum { PAIRS, ROTATIONS };

#define COMMON_ROWS(ramp)											\
	[FACTOR] = FACTOR_OPTION,										\
	[RAMP] = { .name = "ramp", .kind = OPTION_CHOICE, .initial = ramp, .choices = "pairs|rotations",	\
		   .results = true, .shared = true,								\
		   .help = "what the ramp between kept and interpolated pairs is linear in" },			\
	[BETA_FAST] = { .name = "beta_fast", .kind = OPTION_NUMBER, .initial = "32", .least = 1e-6, .most = 1e9,\
			.unit = "rotations", .results = true, .shared = true,					\
			.help = "pairs that turn more often within train_length are kept" },			\
	[BETA_SLOW] = { .name = "beta_slow", .kind = OPTION_NUMBER, .initial = "1", .least = 1e-6, .most = 1e9,	\
			.unit = "rotations", .results = true, .shared = true,					\
			.help = "pairs that turn less often are interpolated" },				\
	[TRUNCATE] = { .name = "truncate", .kind = OPTION_SWITCH, .initial = "on", .choices = "off|on",		\
		       .results = true, .most = 1, .shared = true,						\
		       .help = "round the ends of the ramp over pairs outwards" },

static const struct option by_parts_options[] = {
	COMMON_ROWS("rotations")
	[ATTENTION_FACTOR] = { .name = "attention_factor", .kind = OPTION_NUMBER, .initial = "1", .least = 1e-6,
			       .most = 1e6, .results = true, .shared = true, .help = "factor of cosines and sines" },
	{ 0 },
};

static const struct option yarn_options[] = {
	COMMON_ROWS("pairs")
	[ATTENTION_FACTOR] = { .name = "attention_factor", .kind = OPTION_NUMBER, .initial = "auto", .choices = "auto",
			       .least = 1e-6, .most = 1e6, .results = true, .shared = true,
			       .help = "factor of cosines and sines, used as it is; auto: 0.1 ln s + 1" },
	{ 0 },
};

static struct err check(const struct scaling_request *r)
{
	double fast = r->method->value[BETA_FAST].number, slow = r->method->value[BETA_SLOW].number;
	if (fast >= slow)
		return OK;
	return err_usage("Pairs above beta_fast rotations are kept, those below beta_slow interpolated.",
			 "%s: beta_fast %g is below beta_slow %g", r->method->entry->name, fast, slow);
}

/* The pair index, as a real number, that turns `rotations` times within train_length. */
static double pair_that_turns(const struct scaling_request *r, double rotations)
{
	return r->D * log(r->train_length / (rotations * 2 * M_PI)) / (2 * log(r->rope_theta));
}

static double kept_by_pairs(const struct scaling_request *r, int m)
{
	bool truncate = r->method->value[TRUNCATE].integer;
	double low = pair_that_turns(r, r->method->value[BETA_FAST].number);
	double high = pair_that_turns(r, r->method->value[BETA_SLOW].number);
	low = fmax(truncate ? floor(low) : low, 0);
	high = fmin(truncate ? ceil(high) : high, r->D - 1);
	/* Past the ends the published clamps turn the ramp around: where every pair turns beta_fast times all are kept,
	 * where none turns beta_slow times all are interpolated. */
	if (low > r->D - 1)
		return 1;
	if (high < low)
		return 0;
	if (high == low)
		high += 0.001;
	return 1 - fmin(1, fmax(0, (m - low) / (high - low)));
}

static double kept_by_rotations(const struct scaling_request *r, double theta)
{
	double fast = r->method->value[BETA_FAST].number, slow = r->method->value[BETA_SLOW].number;
	double rotations = r->train_length * theta / (2 * M_PI);
	if (rotations >= fast)
		return 1;
	return rotations <= slow ? 0 : (rotations - slow) / (fast - slow);
}

static double kept_of(const struct scaling_request *r, int m, double theta)
{
	return r->method->value[RAMP].integer == PAIRS ? kept_by_pairs(r, m) : kept_by_rotations(r, theta);
}

static void ramp(const struct scaling_request *r, double *kept)
{
	scaling_base(r, kept);
	for (int m = 0; m < r->D / 2; m++)
		kept[m] = kept_of(r, m, kept[m]);
}

static void frequencies(const struct scaling_request *r, double *inv_freq)
{
	scaling_base(r, inv_freq);
	/* The blend would round; a factor of 1 changes nothing. */
	if (r->factor == 1)
		return;
	for (int m = 0; m < r->D / 2; m++) {
		double theta = inv_freq[m], kept = kept_of(r, m, theta);
		inv_freq[m] = (1 - kept) * (theta / r->factor) + kept * theta;
	}
}

static void by_parts(const struct scaling_request *r, double *inv_freq, double *attention_factor)
{
	frequencies(r, inv_freq);
	*attention_factor = r->method->value[ATTENTION_FACTOR].number;
}

static void yarn(const struct scaling_request *r, double *inv_freq, double *attention_factor)
{
	double given = r->method->value[ATTENTION_FACTOR].number;
	frequencies(r, inv_freq);
	*attention_factor = given > 0 ? given : r->factor > 1 ? 0.1 * log(r->factor) + 1 : 1;
}

const struct scaling scaling_ntk_by_parts = {
	.entry = { .name = "ntk_by_parts", .help = "slow pairs interpolated, fast ones kept, a ramp between",
		   .paper = "Peng et al. 2023, 2309.00071, section 3.2", .options = by_parts_options,
		   .joins = scaling_joins },
	.check = check,
	.frequencies = by_parts,
	.ramp = ramp,
};

const struct scaling scaling_yarn = {
	.entry = { .name = "yarn", .help = "ntk_by_parts and a temperature: q and k times 0.1 ln s + 1",
		   .paper = "Peng et al. 2023, 2309.00071, section 3.4", .options = yarn_options,
		   .joins = scaling_joins },
	.tempers = true,
	.check = check,
	.frequencies = yarn,
	.ramp = ramp,
};
