#include "model/position/rope.h"
#include "model/position/zones.h"

#include <math.h>

/* NTK-aware base change (bloc97 2023; Peng et al. 2023, 2309.00071, section 3.1): theta_m s^(-2m/(D-2)). The fastest
 * pair stays, the slowest is divided by s. */
static void ntk_by(const struct scaling_request *r, double ratio, double *inv_freq, double *attention_factor)
{
	rope_frequencies(r->rope_theta * pow(ratio, (double)r->D / (r->D - 2)), r->D, inv_freq);
	*attention_factor = 1;
}

static struct err ntk_check(const struct scaling_request *r)
{
	if (r->D > 2)
		return OK;
	return err_usage("Use a larger head_dim, or linear.",
			 "%s: needs a head_dim above 2: its exponent is D / (D - 2)", r->method->entry->name);
}

static const struct option options[] = { FACTOR_OPTION, { 0 } };

static void ntk_frequencies(const struct scaling_request *r, double *inv_freq, double *attention_factor)
{
	ntk_by(r, r->factor, inv_freq, attention_factor);
}

const struct scaling scaling_ntk = {
	.entry = { .name = "ntk", .help = "larger base: fast pairs kept, the slowest divided by the factor",
		   .paper = "bloc97 2023; Peng et al. 2023, 2309.00071, section 3.1", .options = options,
		   .joins = scaling_joins },
	.check = ntk_check,
	.frequencies = ntk_frequencies,
};

/* Dynamic NTK (emozilla 2023; Peng et al. 2023, section 3.3), with the factor of Hugging Face's version as alpha: ntk
 * by max(1, alpha length / train_length - (alpha - 1)). */
enum { ALPHA, BLOCK };
static const struct option dynamic_options[] = {
	[ALPHA] = { .name = "alpha", .kind = OPTION_NUMBER, .initial = "1", .least = 1, .most = 1e9, .results = true,
		    .shared = true, .help = "ratio = max(1, alpha length / train_length - (alpha - 1))" },
	[BLOCK] = BLOCK_OPTION,
	{ 0 },
};

static double dynamic_ratio(const struct scaling_request *r)
{
	double alpha = r->method->value[ALPHA].number;
	return fmax(1, alpha * r->length / r->train_length - (alpha - 1));
}

static const char *dynamic_rule(const struct method *own)
{
	(void)own;
	return "ratio max(1, alpha length / train_length - (alpha - 1))" BLOCK_RULE;
}

static void dynamic_frequencies(const struct scaling_request *r, double *inv_freq, double *attention_factor)
{
	ntk_by(r, dynamic_ratio(r), inv_freq, attention_factor);
}

const struct scaling scaling_dynamic = {
	.entry = { .name = "dynamic", .help = "ntk by the length reached so far",
		   .paper = "emozilla 2023; Peng et al. 2023, 2309.00071, section 3.3", .options = dynamic_options,
		   .joins = scaling_joins },
	.check = ntk_check,
	.frequencies = dynamic_frequencies,
	.zones = zones_by_block_option,
	.zoned = has_block,
	.ratio = dynamic_ratio,
	.rule = dynamic_rule,
};

/* Qwen's steps (Qwen 2023, modeling_qwen.py): ntk by max(1, 2^ceil(log2(length / train_length) + 1) - 1), which is 1
 * within training and then 3, 7, 15 ... up to 2, 4, 8 times its length. */
enum { STEPS_BLOCK };
static const struct option steps_options[] = { [STEPS_BLOCK] = BLOCK_OPTION, { 0 } };

static double steps_ratio(const struct scaling_request *r)
{
	int power;
	/* length / train_length = part 2^power, 0.5 <= part < 1: a logarithm could round up at a power of two. */
	double part = frexp(r->length / r->train_length, &power);
	return fmax(1, exp2((part > 0.5 ? power : power - 1) + 1) - 1);
}

static const char *steps_rule(const struct method *own)
{
	(void)own;
	return "ratio max(1, 2^ceil(log2(length / train_length) + 1) - 1)" BLOCK_RULE;
}

static void steps_frequencies(const struct scaling_request *r, double *inv_freq, double *attention_factor)
{
	ntk_by(r, steps_ratio(r), inv_freq, attention_factor);
}

const struct scaling scaling_dynamic_qwen = {
	.entry = { .name = "dynamic_qwen", .help = "ntk by a ratio that grows with the length in steps: 1, 3, 7",
		   .paper = "Qwen 2023, modeling_qwen.py", .options = steps_options, .joins = scaling_joins },
	.check = ntk_check,
	.frequencies = steps_frequencies,
	.zones = zones_by_block_option,
	.zoned = has_block,
	.ratio = steps_ratio,
	.rule = steps_rule,
};
