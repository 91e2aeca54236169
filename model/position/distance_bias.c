#include "model/position/distance_bias.h"

#include <math.h>

/* Distances that a line holds, from the greatest down by ones: as many as a tile of neighbouring queries has. */
#define LINE (2 * TILE_COLUMNS)
struct line {
	double greatest;
	int count;
};

static double distance(const struct tile *t, int r, int j)
{
	return t->query_positions[r] - t->key_positions[j];
}

/* Do all distances stand in a line, and all that are seen at or above 0? */
static bool line_of(const struct tile *t, struct line *line)
{
	double first = t->key_positions[0];
	bool even = t->rows > 0;
	for (int j = 0; j < t->columns; j++)
		even &= t->key_positions[j] == first + j;
	if (!even)
		return false;
	line->greatest = t->query_positions[t->rows - 1] - first;
	line->count = t->columns;
	for (int r = 0; r < t->rows; r++) {
		double before = t->query_positions[t->rows - 1] - t->query_positions[r];
		if (before != floor(before) || before + t->columns > LINE)
			return false;
		if (t->high[r] > t->low[r] && distance(t, r, t->high[r] - 1) < 0)
			return false;
		int count = (int)before + t->columns;
		line->count = count > line->count ? count : line->count;
	}
	return true;
}

/* Where a row's columns begin on the line. */
static int row_start(const struct tile *t, int r)
{
	return (int)(t->query_positions[t->rows - 1] - t->query_positions[r]);
}

/* How many of a line's distances are not negative; those behind them are of keys that no row sees. */
static int line_seen(const struct line *line)
{
	double seen = floor(line->greatest) + 1;
	return seen < line->count ? (int)seen : line->count;
}

static void add_row(int n, real scale, const real *restrict bias, real *restrict logit)
{
	for (int j = 0; j < n; j++)
		logit[j] = logit[j] * scale + bias[j];
}

void distance_bias(const struct place *p, const struct tile *t, distance_bias_at *bias, const void *own,
		   real *logits)
{
	struct line line;
	real at[LINE];
	if (!line_of(t, &line)) {
		for (int r = 0; r < t->rows; r++, logits += TILE_STRIDE)
			for (int j = t->low[r]; j < t->high[r]; j++)
				logits[j] = logits[j] * t->scale + bias(p, t, own, distance(t, r, j));
		return;
	}
	int seen = line_seen(&line);
	for (int i = 0; i < seen; i++)
		at[i] = bias(p, t, own, line.greatest - i);
	for (int r = 0; r < t->rows; r++, logits += TILE_STRIDE)
		add_row(t->high[r] - t->low[r], t->scale, at + row_start(t, r) + t->low[r], logits + t->low[r]);
}

static void add_row_back(int n, real scale, real *restrict d_logit, double *restrict sum)
{
	for (int j = 0; j < n; j++) {
		sum[j] += (double)d_logit[j];
		d_logit[j] *= scale;
	}
}

static void scale_rows(const struct tile *t, real *d_logits)
{
	for (int r = 0; r < t->rows; r++, d_logits += TILE_STRIDE)
		for (int j = t->low[r]; j < t->high[r]; j++)
			d_logits[j] *= t->scale;
}

void distance_bias_back(const struct place *p, const struct tile *t, distance_bias_at_back *back, real *d_logits,
			struct tile_gradient g)
{
	struct line line;
	double sum[LINE];
	if (!back) {
		scale_rows(t, d_logits);
		return;
	}
	if (!line_of(t, &line)) {
		for (int r = 0; r < t->rows; r++)
			for (int j = t->low[r]; j < t->high[r]; j++)
				back(p, t, distance(t, r, j), (double)d_logits[r * TILE_STRIDE + j], g);
		scale_rows(t, d_logits);
		return;
	}
	int seen = line_seen(&line);
	for (int i = 0; i < seen; i++)
		sum[i] = 0;
	for (int r = 0; r < t->rows; r++, d_logits += TILE_STRIDE)
		add_row_back(t->high[r] - t->low[r], t->scale, d_logits + t->low[r], sum + row_start(t, r) + t->low[r]);
	for (int i = 0; i < seen; i++)
		back(p, t, line.greatest - i, sum[i], g);
}
