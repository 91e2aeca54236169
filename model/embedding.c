#include "model/embedding.h"

#include <string.h>

void embedding(int rows, int C, const int32_t *token, const real *table, real *x)
{
	for (int r = 0; r < rows; r++)
		memcpy(x + (long)r * C, table + (long)token[r] * C, (size_t)C * sizeof *x);
}

void embedding_sort(int rows, int V, const int32_t *token, int32_t *start, int32_t *order)
{
	memset(start, 0, (size_t)(V + 1) * sizeof *start);
	for (int r = 0; r < rows; r++)
		start[token[r] + 1]++;
	for (int v = 0; v < V; v++)
		start[v + 1] += start[v];
	for (int r = 0; r < rows; r++)
		order[start[token[r]]++] = r;
	/* Placing moved every start to its end, which is the next one's start. */
	memmove(start + 1, start, (size_t)V * sizeof *start);
	start[0] = 0;
}

void embedding_back(int C, const int32_t *start, const int32_t *order, int first, int last, const real *d_x,
		    real *d_table, double *sum)
{
	for (int v = first; v < last; v++) {
		if (start[v] == start[v + 1])
			continue;
		memset(sum, 0, (size_t)C * sizeof *sum);
		for (int i = start[v]; i < start[v + 1]; i++) {
			const real *row = d_x + (long)order[i] * C;
			for (int c = 0; c < C; c++)
				sum[c] += (double)row[c];
		}
		for (int c = 0; c < C; c++)
			d_table[(long)v * C + c] += (real)sum[c];
	}
}
