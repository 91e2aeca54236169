#ifndef ROPEWALK_TESTS_LAYER_CASE_H
#define ROPEWALK_TESTS_LAYER_CASE_H

#include "model/scores.h"
#include "tests/support.h"

/* One attention layer of an encoding on given q, k, v, through the tiles that training runs (model/scores.h). */

struct layer_case {
	struct model model;      /* the encoding's own tensors, initialised */
	int H, T, D;
	double *positions;       /* [T] 0, 1, 2 ... */
	real *q, *k, *v, *x;     /* [H][T][D] three times, [T][H D]: N(0, 1) */
	real *scores, *output;   /* [H][T][T], [H][T][D] of the last run */
};

void layer_open(struct layer_case *c, const char *encoding, int train_length, int H, int T, int D);
void layer_close(struct layer_case *c);

/* The encoding's tensor model.layers.0.self_attn.position.NAME. */
real *layer_tensor(const struct layer_case *c, const char *name);

/* Under a scaling, without an error. */
void layer_run(struct layer_case *c, const struct method *scaling);

/* q_i.k_j of a head, in double. */
double layer_product(const struct layer_case *c, int head, int i, int j);

/* The score found; fails the test where it is not `wanted`, or not -inf if that is. */
void layer_check(const struct layer_case *c, int head, int i, int j, double wanted, double tolerance);

#endif
