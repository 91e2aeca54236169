#include "model/position/distance_bias.h"

#include <math.h>

/* Longer tables are for longer sequences alone. */
#define SPAN 2048

size_t distance_span(const struct place *p)
{
	int span = p->train_length < SPAN / 32 ? 32 * p->train_length : SPAN;
	return (size_t)(p->T > span ? p->T : span);
}

int distance_place(size_t span, double distance)
{
	return distance >= 0 && distance < (double)span && distance == floor(distance) ? (int)distance : -1;
}

static double distance(const struct tile *t, int r, int j)
{
	return t->query_positions[r] - t->key_positions[j];
}

bool distance_line(const struct tile *t, struct distance_line *line)
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
		if (before != floor(before) || before + t->columns > DISTANCE_LINE)
			return false;
		if (t->high[r] > t->low[r] && distance(t, r, t->high[r] - 1) < 0)
			return false;
		int count = (int)before + t->columns;
		line->count = count > line->count ? count : line->count;
	}
	return true;
}

int distance_line_row(const struct tile *t, int r)
{
	return (int)(t->query_positions[t->rows - 1] - t->query_positions[r]);
}

/* Those behind the last at 0 are of keys that no row sees. */
int distance_line_seen(const struct distance_line *line)
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
	struct distance_line line;
	real at[DISTANCE_LINE];
	if (!distance_line(t, &line)) {
		for (int r = 0; r < t->rows; r++, logits += TILE_STRIDE)
			for (int j = t->low[r]; j < t->high[r]; j++)
				logits[j] = logits[j] * t->scale + bias(p, t, own, distance(t, r, j));
		return;
	}
	int seen = distance_line_seen(&line);
	for (int i = 0; i < seen; i++)
		at[i] = bias(p, t, own, line.greatest - i);
	for (int r = 0; r < t->rows; r++, logits += TILE_STRIDE)
		add_row(t->high[r] - t->low[r], t->scale, at + distance_line_row(t, r) + t->low[r], logits + t->low[r]);
}

static void add_row_back(int n, real scale, real *restrict d_logit, double *restrict sum)
{
	for (int j = 0; j < n; j++) {
		sum[j] += (double)d_logit[j];
		d_logit[j] *= scale;
	}
}

void tile_scale(const struct tile *t, real *logits)
{
	for (int r = 0; r < t->rows; r++, logits += TILE_STRIDE)
		for (int j = t->low[r]; j < t->high[r]; j++)
			logits[j] *= t->scale;
}

void distance_bias_back(const struct place *p, const struct tile *t, distance_bias_at_back *back, real *d_logits,
			struct tile_gradient g)
{
	struct distance_line line;
	double sum[DISTANCE_LINE];
	if (!back) {
		tile_scale(t, d_logits);
		return;
	}
	if (!distance_line(t, &line)) {
		for (int r = 0; r < t->rows; r++)
			for (int j = t->low[r]; j < t->high[r]; j++)
				back(p, t, distance(t, r, j), (double)d_logits[r * TILE_STRIDE + j], g);
		tile_scale(t, d_logits);
		return;
	}
	int seen = distance_line_seen(&line);
	for (int i = 0; i < seen; i++)
		sum[i] = 0;
	for (int r = 0; r < t->rows; r++, d_logits += TILE_STRIDE)
		add_row_back(t->high[r] - t->low[r], t->scale, d_logits + t->low[r],
			     sum + distance_line_row(t, r) + t->low[r]);
	for (int i = 0; i < seen; i++)
		back(p, t, line.greatest - i, sum[i], g);
}
