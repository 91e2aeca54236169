#include "model/position/scaling.h"

#include <math.h>

/* Giraffe (Pal et al. 2023, 2308.10882), whatever the length; after other parts of a scaling:
 *   power       theta_m (1 - 2m/D)^power: the slower a pair, the more it is slowed; the fastest stays
 *   truncation  with c = 2 pi / cut, frequencies below c/8 become 0 and those from there to c become c/16
 * As in the authors' code, which divides by a factor first (linear+giraffe) and truncates last. */

enum { KIND, POWER, CUT };
enum { BY_POWER, BY_TRUNCATION };
static const struct option options[] = {
	[KIND] = { .name = "kind", .kind = OPTION_CHOICE, .initial = "power", .choices = "power|truncation|both",
		   .results = true, .help = "what is done to slow pairs" },
	[POWER] = { .name = "power", .kind = OPTION_NUMBER, .initial = "0.5", .least = 0, .most = 100, .results = true,
		    .help = "exponent of 1 - 2m/D; 0 changes nothing" },
	[CUT] = { .name = "cut", .kind = OPTION_NUMBER, .initial = "auto", .choices = "auto", .least = 1, .most = 1e9,
		  .unit = "tokens", .results = true,
		  .help = "wavelengths above it are truncated; auto: train_length" },
	{ 0 },
};

static struct err check(const struct scaling_request *r)
{
	bool truncates = r->method->value[KIND].integer == BY_TRUNCATION;
	if (truncates && method_changed(r->method, POWER))
		return err_usage("Leave it out, or give kind=both.", "giraffe: power has no effect on kind truncation");
	if (r->method->value[KIND].integer == BY_POWER && method_changed(r->method, CUT))
		return err_usage("Leave it out, or give kind=truncation or both.",
				 "giraffe: cut has no effect on kind power");
	return OK;
}

static void slow_down(double power, int pairs, double *inv_freq)
{
	for (int m = 0; m < pairs; m++)
		inv_freq[m] *= pow(1 - (double)m / pairs, power);
}

static void truncate_below(double least, int pairs, double *inv_freq)
{
	for (int m = 0; m < pairs; m++)
		if (inv_freq[m] < least)
			inv_freq[m] = inv_freq[m] < least / 8 ? 0 : least / 16;
}

static void after(const struct scaling_request *r, double *inv_freq)
{
	const union option_value *value = r->method->value;
	if (value[KIND].integer != BY_TRUNCATION)
		slow_down(value[POWER].number, r->D / 2, inv_freq);
	if (value[KIND].integer != BY_POWER) {
		double cut = value[CUT].number > 0 ? value[CUT].number : r->train_length;
		truncate_below(2 * M_PI / cut, r->D / 2, inv_freq);
	}
}

const struct scaling scaling_giraffe = {
	.entry = { .name = "giraffe", .help = "slow pairs slowed by a power of their rank, or truncated",
		   .paper = "Pal et al. 2023, 2308.10882", .options = options, .joins = scaling_joins },
	.check = check,
	.after = after,
};
