#ifndef ROPEWALK_LIMIT_H
#define ROPEWALK_LIMIT_H

#include "model/options.h"
#include "model/base/err.h"

/* The limit: the matrix products of a training step alone, as a user of the BLAS library would call them. Each thread
 * calls the library, single-threaded, on its whole share of the batch: B T / threads rows and B H / threads heads, with
 * operands of its own. There is nothing else: no data, no softmax, no norm, no sum over threads. Per layer the four
 * linear layers (q, k, v as one; o; gate and up as one; down), the head on all rows, each forward, for the gradient of
 * its input, and for that of its weights; per head the full T x T products, two forward and four backward. */

struct limit; /* operands */

/* `batch` sequences of train_length tokens of a vocabulary of V, for threads_count() threads. */
struct err limit_open(const struct model_options *options, int V, int batch, struct limit **out);
void limit_close(struct limit *l); /* NULL too */

/* All products once. Not inside a parallel region. Returns the floating-point operations of the calls it made. */
double limit_run(struct limit *l);

/* The same from the sizes alone, which is how every rate of the bench is counted: with N the weights that
 * are multiplied, 6 N B T + 12 layers B H T^2 D. */
double limit_flop(const struct model_options *options, int V, int batch);

/* That of a forward pass of `batch` sequences of `length` tokens: 2 N B T + 4 layers B H T^2 D. */
double forward_flop(const struct model_options *options, int V, int batch, int length);

#endif
