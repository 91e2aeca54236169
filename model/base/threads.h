#ifndef ROPEWALK_THREADS_H
#define ROPEWALK_THREADS_H

#include <stdbool.h>
#include <stddef.h>

/* OpenMP behind one file, so that the program also builds without it. Results never depend on the number of threads:
 * what a parallel loop computes for an index depends on that index alone. */

#define THREADS_MOST 1024

/* Starts with `count` threads (THREADS_MOST at most); 0 takes OMP_NUM_THREADS if set, else the physical cores this
 * process may run on. Returns the number in force. Products stay single-threaded in each (blas_start). */
int threads_start(int count);

/* Bytes of address space that the stack of each thread but the first takes: OMP_STACKSIZE, else the system's default. */
size_t threads_stack(void);

/* The core that a processor of the system's numbering belongs to, named by the first of its hardware threads; where the
 * system does not say, each processor is one. */
int threads_core(int processor);

int threads_count(void);   /* in force */
int threads_self(void);    /* the calling thread, 0 .. count - 1; 0 outside of threads_each */
bool threads_openmp(void); /* was the program built with OpenMP? */

/* Calls body(index, thread, data) for every index of 0 .. count - 1; each thread has a share of neighbouring ones and
 * takes from the others' when done. Must not be nested. The body runs inside a parallel region even for a single index,
 * where a BLAS call is single-threaded. */
void threads_each(int count, void (*body)(int index, int thread, void *data), void *data);

/* The same for few tasks of unequal size, the largest first: each thread takes the next. */
void threads_take(int count, void (*body)(int index, int thread, void *data), void *data);

#endif
