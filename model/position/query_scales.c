#include "model/position/scaling.h"

#include <math.h>

/* Scalings of the query alone, before any bias, for any encoding.
 *
 * Log-n (Su 2021, kexue.fm 8823; Chiang and Cholak 2022, 2202.12172): max(1, ln(p + 1) / ln(train_length)) of the query
 * at position p, as in the code of ReRoPE, Self-Extend and Qwen; Su's own formula is not held at 1. */

static struct err logn_check(const struct scaling_request *r)
{
	if (r->train_length > 1)
		return OK;
	return err_usage("Train on more than one token.", "logn: ln(train_length) is 0");
}

static double logn(const struct scaling_request *r, double position)
{
	return fmax(1, log1p(position) / log(r->train_length));
}

static const char *logn_rule(const struct method *own)
{
	(void)own;
	return "queries at position p times max(1, ln(p + 1) / ln(train_length))";
}

const struct scaling scaling_logn = {
	.entry = { .name = "logn",
		   .help = "queries past train_length times ln(p + 1) / ln(train_length); for any encoding",
		   .paper = "Su 2021, kexue.fm 8823; Chiang and Cholak 2022, 2202.12172", .joins = scaling_joins },
	.any_encoding = true,
	.check = logn_check,
	.query_scale = logn,
	.rule = logn_rule,
};

/* YaRN's temperature alone (Peng et al. 2023, 2309.00071, equation 22): q.k divided by t, sqrt(1/t) = 0.1 ln s + 1. */
enum { FACTOR, VALUE };
static const struct option options[] = {
	[FACTOR] = FACTOR_OPTION,
	[VALUE] = { .name = "value", .kind = OPTION_NUMBER, .initial = "auto", .choices = "auto", .least = 1e-6,
		    .most = 1e6, .results = true,
		    .help = "t, which divides q.k; auto: 1 / (0.1 ln factor + 1)^2" },
	{ 0 },
};

static double temperature(const struct scaling_request *r, double position)
{
	double t = r->method->value[VALUE].number, root = 0.1 * log(r->factor) + 1;
	(void)position;
	return t > 0 ? 1 / t : root * root;
}

static bool settled(const struct method *own)
{
	return own->value[VALUE].number > 0;
}

const struct scaling scaling_temperature = {
	.entry = { .name = "temperature", .help = "yarn's temperature alone; for any encoding",
		   .paper = "Peng et al. 2023, 2309.00071, equation 22", .options = options, .joins = scaling_joins },
	.any_encoding = true,
	.tempers = true,
	.settled = settled,
	.query_scale = temperature,
};
