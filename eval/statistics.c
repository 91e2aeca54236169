#include "eval/statistics.h"

#include <math.h>

/* A(t | df) = P(|T| <= t), angle = atan(t / sqrt(df)). */
static double central_share(double angle, int df)
{
	double cosine = cos(angle), term = 1, sum = 0;
	if (df % 2) {
		term = cosine;
		for (int k = 1; k <= df - 2; k += 2, term *= cosine * cosine * (k - 1) / k)
			sum += term;
		return 2 / M_PI * (angle + (df > 1 ? sin(angle) * sum : 0));
	}
	for (int k = 0; k <= df - 2; k += 2, term *= cosine * cosine * (k - 1) / k)
		sum += term;
	return sin(angle) * sum;
}

double student_cdf(double t, int df)
{
	double share = central_share(atan(fabs(t) / sqrt(df)), df);
	return t < 0 ? 0.5 - share / 2 : 0.5 + share / 2;
}

double student_quantile(double p, int df) /* NOLINT(misc-no-recursion): once, for the other half */
{
	if (p < 0.5)
		return -student_quantile(1 - p, df);
	double low = 0, high = 1;
	while (student_cdf(high, df) < p && high < 1e300)
		high *= 2;
	for (int i = 0; i < 200 && low < high; i++) {
		double middle = low + (high - low) / 2;
		if (middle <= low || middle >= high)
			break;
		if (student_cdf(middle, df) < p)
			low = middle;
		else
			high = middle;
	}
	return high;
}

struct interval mean_interval(const double *x, int n, double confidence)
{
	struct interval r = { .n = n, .low = NAN, .high = NAN };
	double squares = 0;
	for (int i = 0; i < n; i++)
		r.mean += x[i] / n;
	for (int i = 0; i < n; i++)
		squares += (x[i] - r.mean) * (x[i] - r.mean);
	if (n < 2)
		return r;
	r.sd = sqrt(squares / (n - 1));
	double half = student_quantile(0.5 + confidence / 2, n - 1) * r.sd / sqrt(n);
	r.low = r.mean - half;
	r.high = r.mean + half;
	return r;
}

double empirical_logit(double k, double n)
{
	return log((k + 0.5) / (n - k + 0.5));
}

double logistic(double x)
{
	return 1 / (1 + exp(-x));
}

double sign_test(int wins, int losses)
{
	int n = wins + losses, most = wins > losses ? wins : losses;
	double term = ldexp(1, -n), tail = 0; /* of n out of n, then of one less each time */
	for (int k = n; k >= most; k--) {
		tail += term;
		term *= (double)k / (n - k + 1);
	}
	return fmin(2 * tail, 1);
}

static int sign_of(double x)
{
	return (x > 0) - (x < 0);
}

double kendall_tau(const double *x, const double *y, int n)
{
	double agree = 0, untied_x = 0, untied_y = 0;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < i; j++) {
			int a = sign_of(x[i] - x[j]), b = sign_of(y[i] - y[j]);
			agree += a * b;
			untied_x += a != 0;
			untied_y += b != 0;
		}
	return agree / sqrt(untied_x * untied_y);
}
