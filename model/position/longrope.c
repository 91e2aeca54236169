#include "model/position/longrope_lists.h"
#include "model/position/zones.h"

#include <math.h>

/* LongRoPE (Ding et al. 2024, 2402.13753): each pair is divided by a number of its own, found by search, out of one
 * list up to the trained length and another beyond it. As in the authors' code and Hugging Face's, q and k are also
 * multiplied by sqrt(1 + ln s / ln train_length), at every length. So a factor of 1 is not the unscaled model, unless
 * the lists say so: those of no file are all 1. A deployed system changes lists where what it has read crosses the
 * trained length, which `block` and decoding do too; the temperature is that of its configuration and stays. */

enum { FACTOR, LISTS, ATTENTION_FACTOR, BLOCK };
static const struct option options[] = {
	[FACTOR] = FACTOR_OPTION,
	[LISTS] = { .name = "file", .kind = OPTION_TEXT, .initial = "", .unit = "path", .results = true,
		    .load = longrope_load,
		    .help = "lists short = ... and long = ..., or Hugging Face's JSON; none: all numbers are 1" },
	[ATTENTION_FACTOR] = { .name = "attention_factor", .kind = OPTION_NUMBER, .initial = "auto", .choices = "auto",
			       .least = 1e-6, .most = 1e6, .results = true, .shared = true,
			       .help = "factor of cosines and sines, used as it is; "
				       "auto: sqrt(1 + ln s / ln train_length)" },
	[BLOCK] = BLOCK_OPTION,
	{ 0 },
};

static struct err check(const struct scaling_request *r)
{
	const char *file = r->method->value[LISTS].text;
	int count = longrope_lists(file).count;
	if (count && count != r->D / 2)
		return err_usage("The lists have to be those of a model of this head_dim.",
				 "longrope: %s: its lists have %d numbers, and there are %d pairs", file, count,
				 r->D / 2);
	if (r->train_length == 1 && r->factor > 1 && !(r->method->value[ATTENTION_FACTOR].number > 0))
		return err_usage("Give attention_factor, or a train_length of 2 or more.",
				 "longrope: attention_factor: auto divides by ln train_length, which is 0");
	return OK;
}

static double attention_factor_of(const struct scaling_request *r)
{
	double given = r->method->value[ATTENTION_FACTOR].number;
	if (given > 0)
		return given;
	return r->factor > 1 ? sqrt(1 + log(r->factor) / log(r->train_length)) : 1;
}

static void frequencies(const struct scaling_request *r, double *inv_freq, double *attention_factor)
{
	struct longrope_lists lists = longrope_lists(r->method->value[LISTS].text);
	const double *by = r->length > r->train_length ? lists.long_factor : lists.short_factor;
	scaling_base(r, inv_freq);
	for (int m = 0; by && m < r->D / 2; m++)
		inv_freq[m] /= by[m];
	*attention_factor = attention_factor_of(r);
}

static const char *rule(const struct method *own)
{
	return *own->value[LISTS].text ? "lists: short where length <= train_length, long beyond" : NULL;
}

const struct scaling scaling_longrope = {
	.entry = { .name = "longrope", .help = "each pair divided by a number of a list, and a temperature",
		   .paper = "Ding et al. 2024, 2402.13753", .options = options, .joins = scaling_joins },
	.tempers = true,
	.check = check,
	.frequencies = frequencies,
	.zones = zones_by_block_option,
	.zoned = has_block,
	.rule = rule,
};
