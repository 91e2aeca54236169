#include "model/position/zones.h"

#include <math.h>

/* NTK-by-parts and YaRN (Peng et al. 2023, 2309.00071, sections 3.2 and 3.4): slow pairs are interpolated, fast ones
 * kept, those between blended along a ramp: theta' = (1 - kept) theta / s + kept theta. The two ramps in use differ:
 *   rotations  kept = (rho - beta_slow) / (beta_fast - beta_slow), rho = train_length theta / 2 pi (the paper's)
 *   pairs      linear in the pair's index between the pairs that turn beta_fast and beta_slow times (the authors' code,
 *              Hugging Face, ggml), rounded outwards where `truncate` is on
 * YaRN also multiplies cosines and sines by the attention factor 0.1 ln s + 1 (equation 22), so logits by its square.
 * Llama 3's rule is the first ramp under other names. */

/* Where yarn has a factor, dynamic_yarn has a block: its factor is the ratio of the lengths. */
enum { FACTOR, BLOCK = FACTOR, RAMP, BETA_FAST, BETA_SLOW, TRUNCATE, ATTENTION_FACTOR, MSCALE, MSCALE_ALL_DIM,
       SOFTMAX_SCALE };
enum { PAIRS, ROTATIONS };

#define RAMP_ROWS(ramp)											\
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

#define TEMPERATURE_ROWS										\
	[ATTENTION_FACTOR] = { .name = "attention_factor", .kind = OPTION_NUMBER, .initial = "auto",		\
			       .choices = "auto", .least = 1e-6, .most = 1e6, .results = true, .shared = true,	\
			       .help = "factor of cosines and sines, used as it is; auto: 0.1 ln s + 1" },	\
	[MSCALE] = { .name = "mscale", .kind = OPTION_NUMBER, .initial = "0", .least = 0, .most = 1e3,		\
		     .results = true, .shared = true,								\
		     .help = "where mscale_all_dim is not 0 either, auto is (0.1 mscale ln s + 1) / "		\
			     "(0.1 mscale_all_dim ln s + 1); alone it does nothing, as in Hugging Face" },	\
	[MSCALE_ALL_DIM] = { .name = "mscale_all_dim", .kind = OPTION_NUMBER, .initial = "0", .least = 0,	\
			     .most = 1e3, .results = true, .shared = true, .help = "see mscale" },		\
	[SOFTMAX_SCALE] = { .name = "softmax_scale", .kind = OPTION_SWITCH, .initial = "off",			\
			    .choices = "off|on", .most = 1, .results = true, .shared = true,			\
			    .help = "auto is multiplied by 0.1 mscale_all_dim ln s + 1, as DeepSeek's scale "	\
				    "of the softmax is by its square" },

static const struct option by_parts_options[] = {
	[FACTOR] = FACTOR_OPTION,
	RAMP_ROWS("rotations")
	[ATTENTION_FACTOR] = { .name = "attention_factor", .kind = OPTION_NUMBER, .initial = "1", .least = 1e-6,
			       .most = 1e6, .results = true, .shared = true, .help = "factor of cosines and sines" },
	{ 0 },
};

static const struct option yarn_options[] = {
	[FACTOR] = FACTOR_OPTION,
	RAMP_ROWS("pairs")
	TEMPERATURE_ROWS
	{ 0 },
};

static const struct option dynamic_yarn_options[] = {
	[BLOCK] = BLOCK_OPTION,
	RAMP_ROWS("pairs")
	TEMPERATURE_ROWS
	{ 0 },
};

enum { LOW_FREQ_FACTOR = FACTOR + 1, HIGH_FREQ_FACTOR };
static const struct option llama3_options[] = {
	[FACTOR] = FACTOR_OPTION,
	[LOW_FREQ_FACTOR] = { .name = "low_freq_factor", .kind = OPTION_NUMBER, .initial = "1", .least = 1e-6,
			      .most = 1e9, .unit = "rotations", .results = true, .shared = true,
			      .help = "pairs that turn less often within train_length are interpolated" },
	[HIGH_FREQ_FACTOR] = { .name = "high_freq_factor", .kind = OPTION_NUMBER, .initial = "4", .least = 1e-6,
			       .most = 1e9, .unit = "rotations", .results = true, .shared = true,
			       .help = "pairs that turn more often are kept" },
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

static double kept_by_rotations(const struct scaling_request *r, double theta, double slow, double fast)
{
	double rotations = r->train_length * theta / (2 * M_PI);
	if (rotations >= fast)
		return 1;
	return rotations <= slow ? 0 : (rotations - slow) / (fast - slow);
}

/* The share of pair m, of frequency theta, that is kept. */
typedef double (*kept_of)(const struct scaling_request *r, int m, double theta);

static double kept_by_ramp(const struct scaling_request *r, int m, double theta)
{
	const union option_value *value = r->method->value;
	if (value[RAMP].integer == PAIRS)
		return kept_by_pairs(r, m);
	return kept_by_rotations(r, theta, value[BETA_SLOW].number, value[BETA_FAST].number);
}

static void blend(const struct scaling_request *r, kept_of kept, double *inv_freq)
{
	scaling_base(r, inv_freq);
	/* The blend would round; a factor of 1 changes nothing. */
	if (r->factor == 1)
		return;
	for (int m = 0; m < r->D / 2; m++) {
		double theta = inv_freq[m], share = kept(r, m, theta);
		inv_freq[m] = (1 - share) * (theta / r->factor) + share * theta;
	}
}

static void fill_ramp(const struct scaling_request *r, kept_of kept, double *share)
{
	scaling_base(r, share);
	for (int m = 0; m < r->D / 2; m++)
		share[m] = kept(r, m, share[m]);
}

static void ramp(const struct scaling_request *r, double *kept)
{
	fill_ramp(r, kept_by_ramp, kept);
}

static void by_parts(const struct scaling_request *r, double *inv_freq, double *attention_factor)
{
	blend(r, kept_by_ramp, inv_freq);
	*attention_factor = r->method->value[ATTENTION_FACTOR].number;
}

/* ---- YaRN. ---- */

static double temperature(double mscale, double factor)
{
	return factor > 1 ? 0.1 * mscale * log(factor) + 1 : 1;
}

/* With both mscales the ratio; with one alone what there is with none (Hugging Face; DeepSeek's own code takes mscale
 * alone as 0.1 mscale ln s + 1). All components turn here, so that a factor of the softmax's scale is one of the
 * cosines and sines, squared. */
static double yarn_attention_factor(const struct scaling_request *r)
{
	const union option_value *value = r->method->value;
	double mscale = value[MSCALE].number, all = value[MSCALE_ALL_DIM].number;
	if (value[ATTENTION_FACTOR].number > 0)
		return value[ATTENTION_FACTOR].number;
	double automatic = mscale > 0 && all > 0 ? temperature(mscale, r->factor) / temperature(all, r->factor) :
						   temperature(1, r->factor);
	return value[SOFTMAX_SCALE].integer ? automatic * temperature(all, r->factor) : automatic;
}

static void yarn(const struct scaling_request *r, double *inv_freq, double *attention_factor)
{
	blend(r, kept_by_ramp, inv_freq);
	*attention_factor = yarn_attention_factor(r);
}

/* Within the trained length nothing at all is changed, an attention factor that was given included. */
static void dynamic_yarn(const struct scaling_request *r, double *inv_freq, double *attention_factor)
{
	struct scaling_request now = *r;
	now.factor = scaling_length_ratio(r);
	yarn(&now, inv_freq, attention_factor);
	if (now.factor == 1)
		*attention_factor = 1;
}

/* ---- Llama 3. ---- */

static struct err llama3_check(const struct scaling_request *r)
{
	double low = r->method->value[LOW_FREQ_FACTOR].number, high = r->method->value[HIGH_FREQ_FACTOR].number;
	if (high >= low)
		return OK;
	return err_usage("Pairs above high_freq_factor rotations are kept, those below low_freq_factor interpolated.",
			 "llama3: high_freq_factor %g is below low_freq_factor %g", high, low);
}

static double llama3_kept(const struct scaling_request *r, int m, double theta)
{
	(void)m;
	return kept_by_rotations(r, theta, r->method->value[LOW_FREQ_FACTOR].number,
				 r->method->value[HIGH_FREQ_FACTOR].number);
}

static void llama3_ramp(const struct scaling_request *r, double *kept)
{
	fill_ramp(r, llama3_kept, kept);
}

static void llama3(const struct scaling_request *r, double *inv_freq, double *attention_factor)
{
	blend(r, llama3_kept, inv_freq);
	*attention_factor = 1;
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

const struct scaling scaling_dynamic_yarn = {
	.entry = { .name = "dynamic_yarn", .help = "yarn by the length reached so far",
		   .paper = "Peng et al. 2023, 2309.00071, sections 3.3 and 3.4", .options = dynamic_yarn_options,
		   .joins = scaling_joins },
	.tempers = true,
	.check = check,
	.frequencies = dynamic_yarn,
	.ramp = ramp,
	.zones = zones_by_block_option,
	.zoned = has_block,
	.ratio = scaling_length_ratio,
	.rule = scaling_length_rule,
};

const struct scaling scaling_llama3 = {
	.entry = { .name = "llama3", .help = "ntk_by_parts under Llama 3's names and numbers",
		   .paper = "Llama team 2024, 2407.21783", .options = llama3_options, .joins = scaling_joins },
	.check = llama3_check,
	.frequencies = llama3,
	.ramp = llama3_ramp,
};
