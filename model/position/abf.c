#include "model/position/scaling.h"

/* Adjusted base frequency (Xiong et al. 2023, 2309.16039; Roziere et al. 2023, 2308.12950, take 1e6): RoPE of another
 * base. The papers train on with it; here it is the evaluation alone that has it. */

enum { THETA };
static const struct option options[] = {
	[THETA] = { .name = "theta", .kind = OPTION_NUMBER, .initial = "500000", .least = 1, .most = 1e300,
		    .results = true, .help = "base of the frequencies, in place of the model's" },
	{ 0 },
};

static double base(const struct scaling_request *r)
{
	return r->method->value[THETA].number;
}

const struct scaling scaling_abf = {
	.entry = { .name = "abf", .help = "another base, whatever the length",
		   .paper = "Xiong et al. 2023, 2309.16039", .options = options, .joins = scaling_joins },
	.base = base,
};
