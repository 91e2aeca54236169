#ifndef ROPEWALK_DISTANCE_BIAS_H
#define ROPEWALK_DISTANCE_BIAS_H

#include "model/position/position.h"

/* For encodings whose hooks `logits` and `logits_back` add a bias that a head has for a distance: logit = scale q.k +
 * bias(distance). Where a tile's positions are consecutive, its rows are stretches of one line of biases, so that each
 * distance is asked for once. */

/* Distances that a tile of consecutive positions has: they stand in a line from the greatest down by ones, as many as a
 * tile of neighbouring queries has, and those of a row are a stretch of it. */
#define DISTANCE_LINE (2 * TILE_COLUMNS)
struct distance_line {
	double greatest;
	int count, seen; /* the first `seen` are 0 or more; those behind them are of keys that no row sees */
};

/* Do all distances stand in a line, and all that are seen at or above 0? */
bool distance_line(const struct tile *t, struct distance_line *line);
/* Where a row's columns begin on the line. */
int distance_line_start(const struct tile *t, int r);

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

/* Multiplies what is seen of a tile by its scale. */
void tile_scale(const struct tile *t, real *logits);

#endif
