#ifndef ROPEWALK_TIMING_H
#define ROPEWALK_TIMING_H

/* Statistics of repeated measurements. */

struct timing {
	int count;
	double best, median;
	double spread; /* between the quartiles, as a share of the median */
};

/* Of `count` seconds; all 0 of none. */
struct timing timing_of(const double *seconds, int count);

/* Two things that were measured in turn: how much longer the first takes. */
struct ratio {
	double paired; /* median of the ratios of neighbours, what drifts in common being divided out */
	double best;   /* best over best */
};
struct ratio ratio_of(const double *first, const double *second, int count);

/* y = a + b x by least squares; both NaN with fewer than two different x. */
void line_fit(const double *x, const double *y, int count, double *a, double *b);

#endif
