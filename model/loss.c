#include "model/loss.h"

#include "model/base/vec.h"

#include <math.h>
#include <string.h>

/* In double: next to a likely target's 1 the others are too small for a float sum. */
static double sum_in_double(const real *x, int n)
{
	double lane[VEC_LANES] = { 0 }, sum = 0;
	int i = 0;
	for (; i + VEC_LANES <= n; i += VEC_LANES)
		for (int j = 0; j < VEC_LANES; j++)
			lane[j] += (double)x[i + j];
	for (int j = 0; i + j < n; j++)
		lane[j] += (double)x[i + j];
	for (int j = 0; j < VEC_LANES; j++)
		sum += lane[j];
	return sum;
}

static int32_t first_equal(const real *x, int n, real value)
{
	for (int i = 0; i < n; i++)
		if (x[i] == value)
			return i;
	return 0;
}

void cross_entropy(int rows, int V, const int32_t *target, real *logits, double *nll, int32_t *best)
{
	for (int r = 0; r < rows; r++, logits += V) {
		nll[r] = 0;
		best[r] = -1;
		if (target[r] < 0)
			continue;
		real greatest = vec_max(logits, V);
		double margin = (double)greatest - (double)logits[target[r]];
		best[r] = first_equal(logits, V, greatest);
		vec_exp_sum(logits, V, greatest);
		/* Apart from the likeliest token's 1, next to which the rest would lose its digits. */
		real top = logits[best[r]];
		logits[best[r]] = 0;
		double rest = sum_in_double(logits, V);
		logits[best[r]] = top;
		nll[r] = log1p(rest) + margin;
		vec_scale(logits, (real)(1 / (1 + rest)), V);
	}
}

void cross_entropy_back(int rows, int V, const int32_t *target, double scale, real *probability)
{
	for (int r = 0; r < rows; r++, probability += V) {
		if (target[r] < 0) {
			memset(probability, 0, (size_t)V * sizeof *probability);
			continue;
		}
		probability[target[r]] -= (real)1;
		vec_scale(probability, (real)scale, V);
	}
}
