#include "runs/bench/timing.h"

#include "model/base/stb.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Of sorted values, between neighbours in proportion: share 0.5 is the median. */
static double quantile(const double *sorted, int count, double share)
{
	double at = share * (count - 1);
	int below = (int)at, above = below + 1 < count ? below + 1 : below;
	return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

struct timing timing_of(const double *seconds, int count)
{
	struct timing t = { .count = count };
	double *sorted = NULL;
	if (count < 1)
		return t;
	for (int i = 0; i < count; i++)
		arrput(sorted, seconds[i]);
	qsort(sorted, (size_t)count, sizeof *sorted, ascending);
	t.best = sorted[0];
	t.median = quantile(sorted, count, 0.5);
	t.spread = (quantile(sorted, count, 0.75) - quantile(sorted, count, 0.25)) / t.median;
	arrfree(sorted);
	return t;
}

struct ratio ratio_of(const double *first, const double *second, int count)
{
	double *ratio = NULL;
	for (int i = 0; i < count; i++)
		arrput(ratio, first[i] / second[i]);
	struct ratio r = { .paired = timing_of(ratio, count).median,
			   .best = timing_of(first, count).best / timing_of(second, count).best };
	arrfree(ratio);
	return r;
}

void line_fit(const double *x, const double *y, int count, double *a, double *b)
{
	double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
	for (int i = 0; i < count; i++) {
		mean_x += x[i] / count;
		mean_y += y[i] / count;
	}
	for (int i = 0; i < count; i++) {
		xx += (x[i] - mean_x) * (x[i] - mean_x);
		xy += (x[i] - mean_x) * (y[i] - mean_y);
	}
	*b = xx > 0 ? xy / xx : NAN;
	*a = xx > 0 ? mean_y - *b * mean_x : NAN;
}
