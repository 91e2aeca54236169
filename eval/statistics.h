#ifndef ROPEWALK_STATISTICS_H
#define ROPEWALK_STATISTICS_H

/* The statistics of tables: what a handful of seeds allows to be said. */

/* Student's t of `df` degrees of freedom (at least 1): P(T <= t), in closed form (Abramowitz and Stegun 1964, 26.7.3 and
 * 26.7.4), and its inverse, the t below which the share p lies. */
double student_cdf(double t, int df);
double student_quantile(double p, int df);

/* Mean of x [n] with the two-sided interval that holds the true mean at this confidence (0.95), if x are independent
 * and about normal: mean -+ t sd / sqrt(n), n - 1 degrees of freedom. Below two values sd is 0 and the interval has no
 * ends (NaN). */
struct interval {
	int n;
	double mean, sd, low, high;
};
struct interval mean_interval(const double *x, int n, double confidence);

/* Empirical logit ln((k + 1/2) / (n - k + 1/2)) of k out of n, finite at 0 and n (Haldane 1956), and back to a share. */
double empirical_logit(double k, double n);
double logistic(double x);

/* Sign test (Arbuthnott 1710): two-sided p of so many wins and losses if both were equally likely, exact:
 * min(1, 2 P(X >= max(wins, losses))), X binomial of n = wins + losses and 1/2. Ties are to be left out. 1 for none; n
 * at most 1000, past which 2^-n ends. */
double sign_test(int wins, int losses);

/* Kendall's tau-b of x and y [n] (Kendall 1945, Biometrika 33): pairs in the same order less pairs in the opposite one,
 * over sqrt(pairs not tied in x, times pairs not tied in y); 1 the same order, -1 the reverse. NaN where all of x or
 * all of y are equal. */
double kendall_tau(const double *x, const double *y, int n);

#endif
