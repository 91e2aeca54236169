#ifndef ROPEWALK_RELATIVE_H
#define ROPEWALK_RELATIVE_H

#include "model/position/position.h"

/* For encodings that have a vector for each distance (or for a range of distances): what x_r . vector[index(i - j)] adds
 * to the tile's element (r, j), where x is the tile's rows of some matrix, or, `by_key`, x_j . vector[index(i - j)] of
 * its columns. Products are made of all vectors that a few rows meet; each element then takes the one it needs. */
struct relative {
	int (*index)(const struct place *p, double distance); /* of distances 0 or more: 0 .. count - 1 */
	int count;
	const real *vectors; /* as relative_table lays them out */
	bool by_key;
};

/* Room for `count` vectors of D and their second form behind them, and making the second from the first. A gradient has
 * the first form alone. */
size_t relative_reals(int count, int D);
void relative_table(int count, int D, real *vectors);

/* to[r][j] += x . vector. Rows of `to` are TILE_STRIDE apart, those of x `x_stride`; what is not seen is left alone. */
void relative_dots(const struct place *p, const struct tile *t, const struct relative *v, const real *x, int x_stride,
		   real *to);

/* From weights of the tile's elements: sum[r] += sum over j of weight[r][j] vector (by_key: sum[j], over r), which is
 * also the gradient of x; NULL: not wanted. */
void relative_sums(const struct place *p, const struct tile *t, const struct relative *v, const real *weight, real *sum,
		   int sum_stride);
/* And the gradient of the vectors: += sum of weight[r][j] x_r (x_j). */
void relative_vectors_back(const struct place *p, const struct tile *t, const struct relative *v, const real *weight,
			   const real *x, int x_stride, real *d_vectors);

#endif
