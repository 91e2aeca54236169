#ifndef ROPEWALK_RELATIVE_H
#define ROPEWALK_RELATIVE_H

#include "model/position/position.h"

/* For encodings that have a vector for each distance (or for a range of distances): x_r . vector[index(i - j)] is added
 * to the tile's element (r, j), where x has the tile's rows, or, `by_key`, x_j . vector[index(i - j)], where it has the
 * tile's columns. Products are made of all vectors that a few rows meet; each element then takes the one it needs. */
struct relative {
	/* Of distances 0 or more: 0 .. count - 1, never rising, or never falling, with the distance. */
	int (*index)(const struct place *p, double distance);
	int count;
	const real *vectors; /* as relative_table lays them out */
	bool by_key;
};

/* Room for `count` vectors of D and their second form behind them, and making the second from the first. A gradient has
 * the first form alone. */
size_t relative_reals(int count, int D);
void relative_table(int count, int D, real *vectors);

/* to[r][j] += x . vector. Rows of `to` are TILE_STRIDE apart, of x `x_stride`; what is not seen stays. */
void relative_dots(const struct place *p, const struct tile *t, const struct relative *v, const real *x, int x_stride,
		   real *to);

/* From weights of the tile's elements, which may be gradients of what relative_dots adds. */
struct relative_sums {
	real *rows; /* row r (by_key: j) += sum over j (r) of weight[r][j] vector: gradient of x; NULL: not wanted */
	int rows_stride;
	const real *x;
	int x_stride;
	real *vectors; /* += sum of weight[r][j] x_r (x_j), the gradient of the vectors; NULL: not wanted */
};
void relative_sums(const struct place *p, const struct tile *t, const struct relative *v, const real *weight,
		   struct relative_sums to);

#endif
