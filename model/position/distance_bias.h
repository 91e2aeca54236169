#ifndef ROPEWALK_DISTANCE_BIAS_H
#define ROPEWALK_DISTANCE_BIAS_H

#include "model/position/position.h"

/* For encodings whose hooks `logits` and `logits_back` add a bias that a head has for a distance: logit = scale q.k +
 * bias(distance). Where a tile's positions are consecutive, its rows are stretches of one line of biases, so that each
 * distance is asked for once. */

/* The bias at a distance, 0 or more. `own` is what distance_bias was given. */
typedef real distance_bias_at(const struct place *p, const struct tile *t, const void *own, double distance);
/* Adds d_bias, a sum over pairs at this distance, to the gradients of what the bias is made of. */
typedef void distance_bias_at_back(const struct place *p, const struct tile *t, double distance, double d_bias,
				   struct tile_gradient g);

void distance_bias(const struct place *p, const struct tile *t, distance_bias_at *bias, const void *own,
		   real *logits);
/* `back` is NULL for biases without parameters. */
void distance_bias_back(const struct place *p, const struct tile *t, distance_bias_at_back *back, real *d_logits,
			struct tile_gradient g);

/* What is dear to compute is made in `prepare` for the whole distances 0 .. span - 1: those of T tokens in a row, and
 * of positions that skip within 32 times the trained length (or 2048). The place of a distance among these; -1 if it is
 * none of them. */
size_t distance_span(const struct place *p);
int distance_place(size_t span, double distance);

/* A line: do all distances of a tile go down by ones from the greatest, and are all that are seen at or above 0? Then
 * column j of row r stands at distance_line_row(r) + j of it, and the first distance_line_seen are not negative. */
#define DISTANCE_LINE (2 * TILE_COLUMNS)
struct distance_line {
	double greatest;
	int count; /* at most DISTANCE_LINE */
};
bool distance_line(const struct tile *t, struct distance_line *line);
int distance_line_row(const struct tile *t, int r);
int distance_line_seen(const struct distance_line *line);

/* Multiplies what is seen of a tile by its scale. */
void tile_scale(const struct tile *t, real *logits);

#endif
