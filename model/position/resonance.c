#include "model/position/scaling.h"

#include <math.h>

/* Resonance RoPE (Wang et al. 2024, 2403.00071): every wavelength is rounded to whole tokens, half to even, after all
 * other scaling: theta' = 2 pi / round(2 pi / theta). A pair then meets the same angles in every turn. */
static void after(const struct scaling_request *r, double *inv_freq)
{
	for (int m = 0; m < r->D / 2; m++)
		inv_freq[m] = 2 * M_PI / fmax(1, rint(2 * M_PI / inv_freq[m]));
}

const struct scaling scaling_resonance = {
	.entry = { .name = "resonance", .help = "wavelengths rounded to whole tokens, after all else",
		   .paper = "Wang et al. 2024, 2403.00071", .joins = scaling_joins },
	.after = after,
};
