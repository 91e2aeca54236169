#ifndef ROPEWALK_PHASES_H
#define ROPEWALK_PHASES_H

#include "model/position/position.h"

/* Cosines and sines of a tile's positions, counted from its first key's, in double: what products need to make
 * functions of a difference, f(i - j), out of functions of i and of j. Where positions are consecutive all are powers
 * of a few. */

/* Frequencies that are worked on together; where there are fewer, the rest are 0. */
#define PHASE_WAVES 16

/* What makes the phases of w_m = 10000^(-m/F), m = 0 .. F - 1, kept in a prepared table. */
size_t phases_reals(int F);
void phases_prepare(int F, real *prepared);

struct phases {
	const struct tile *tile;
	bool even; /* keys are consecutive, and rows whole steps apart */
	double frequency[PHASE_WAVES];
	double first_cosine[PHASE_WAVES], first_sine[PHASE_WAVES]; /* of the first row */
	double cosine[TILE_COLUMNS][PHASE_WAVES], sine[TILE_COLUMNS][PHASE_WAVES]; /* of keys; if even, of any step */
};

/* Frequencies from, from + 1 ... of a tile: phases of all its keys. */
void phases_of(const struct tile *t, int F, const real *prepared, int from, struct phases *out);
/* Those of one row. */
void phases_of_row(const struct phases *p, int r, double cosine[PHASE_WAVES], double sine[PHASE_WAVES]);

#endif
