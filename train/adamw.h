#ifndef ROPEWALK_ADAMW_H
#define ROPEWALK_ADAMW_H

#include "model/layout.h"
#include "train/options.h"

/* Adam with decoupled weight decay (Loshchilov and Hutter 2019, 1711.05101, algorithm 2), by the layout table. */

/* Rate of step i (from 0): lr min(1, (i+1)/warmup) (f + (1-f)/2 (1 + cos(pi i / steps))), f = lr_floor. */
double adamw_rate(const struct train_options *o, int64_t step);

/* Global norm of a gradient, the same bits for any number of threads: fixed blocks in order, in double. */
double gradient_norm(const struct layout *l, const real *gradient);

/* One update of `value`; m and v are the moments. `scale` multiplies the gradient first (clipping). Step counts from 0.
 * Decay acts on rows of the table marked so: value -= rate * weight_decay * value. */
void adamw_update(const struct layout *l, const struct train_options *o, int64_t step, double scale,
		  const real *gradient, real *m, real *v, real *value);

#endif
