#ifndef ROPEWALK_ROPE_H
#define ROPEWALK_ROPE_H

#include "model/position/position.h"

/* The rotation of pairs, for encodings built on it: (x, y) -> a (x cos - y sin, x sin + y cos), angle = position
 * inv_freq[m], a the attention factor (Su et al. 2021, 2104.09864, equation 34). The pairs are (2m, 2m+1), or with
 * r->half (m, m+F); what is behind the 2 F first components is copied. Rows x_half = x[P], P = 0, 2, 4 .. 1, 3, 5 ..,
 * turned in halves are x turned and then permuted. Backward adds to d_from, and to the gradients of inv_freq and of
 * the attention factor where those are wanted. */
void rope_rotate(const struct rotation *r, const real *from, int from_stride, real *to);
void rope_rotate_back(const struct rotation *r, const real *from, int from_stride, const real *d_to, real *d_from,
		      int d_from_stride, struct rotation_gradient g);

/* theta_m = rope_theta^(-2m/D), m = 0 .. D/2 - 1 (section 3.2.2). */
void rope_frequencies(double rope_theta, int D, double *inv_freq);

/* Does a pair meet an angle that training did not, where the largest of training and now are these? It has met all of
 * them if it went round the circle, and one less than a token's `step` (its trained inv_freq) beyond its last is as good
 * as met: an interpolated position never reaches the whole length. */
bool rope_angle_is_new(double trained, double angle, double step);

/* The `inspect` hook of encodings with `rope_theta`: the pairs before and after scaling, and the angles they reach. */
struct err rope_inspect(const struct inspection *in, struct report *to);

/* Refuses an odd head_dim: pairs need both halves. */
struct err rope_check(const struct model_options *options, int D);

#endif
