#ifndef ROPEWALK_TESTS_SCORES_CASE_H
#define ROPEWALK_TESTS_SCORES_CASE_H

#include "model/base/safetensors.h"
#include "tests/support.h"

/* Files for the command `scores`, in the folder of tests/program.h. */

/* A tensor (a, b, c, d) of the next in.safetensors, of doubles that are zero, to be filled; names are kept as they are.
 * scores_added(i) is the i-th since the last put. */
double *scores_add(const char *name, int rank, int64_t a, int64_t b, int64_t c, int64_t d);
double *scores_added(int index);
void scores_normal(const char *name, uint64_t seed, int rank, int64_t a, int64_t b, int64_t c, int64_t d);
void scores_positions(int T, const double *positions);

/* Writes in.safetensors and forgets what was added. */
void scores_put(void);

/* A thread is enough, and sooner there than two. */
#define FILES " --threads=1 --input=in.safetensors --output=out.safetensors"

/* Runs on in.safetensors with these flags, and gives what was written. */
struct safetensors scores_run(const char *flags);

/* A tensor of reals that must be there. */
const struct tensor *scores_tensor(const struct safetensors *file, const char *name);

#endif
