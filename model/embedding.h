#ifndef ROPEWALK_EMBEDDING_H
#define ROPEWALK_EMBEDDING_H

#include "model/base/real.h"

#include <stdint.h>

/* x [rows][C] = table [V][C] at the tokens [rows]. */
void embedding(int rows, int C, const int32_t *token, const real *table, real *x);

/* The rows in which each token stands, in order of token, then row (a counting sort): start [V + 1], order [rows].
 * Token v stands in rows order[start[v]] .. order[start[v + 1] - 1]. */
void embedding_sort(int rows, int V, const int32_t *token, int32_t *start, int32_t *order);

/* Adds to d_table [V][C] for tokens first .. last - 1 the rows of d_x [rows][C], each token's in index order, summed in
 * double. sum [C] is scratch. */
void embedding_back(int C, const int32_t *start, const int32_t *order, int first, int last, const real *d_x,
		    real *d_table, double *sum);

#endif
