#include "model/position/inspection.h"

static struct err inspect(const struct inspection *in, struct report *to)
{
	(void)in;
	report_note(to, "Nothing depends on position: order is known from the causal mask alone.");
	return OK;
}

/* No positional encoding: the causal mask alone tells positions apart (Haviv et al. 2022, 2203.16634; Kazemnejad et al.
 * 2023, 2305.19466). */
const struct position position_nope = {
	.entry = { .name = "nope", .help = "none: order is known from the causal mask alone",
		   .paper = "Haviv et al. 2022, 2203.16634; Kazemnejad et al. 2023, 2305.19466" },
	.any_order = true,
	.inspect = inspect,
};
