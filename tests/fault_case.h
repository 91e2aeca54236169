#ifndef ROPEWALK_TESTS_FAULT_CASE_H
#define ROPEWALK_TESTS_FAULT_CASE_H

#include "model/base/err.h"
#include "tests/tree.h"

/* Work on files that is disturbed at every place in turn. */
struct fault_case {
	void (*prepare)(const char *root);    /* the old state, in an empty folder; may be NULL */
	struct err (*work)(const char *root); /* may be called again after an error */
	void (*loads)(const char *root);      /* fails the test unless what stands there can be used; may be NULL */
	struct tree_kinds kinds;
	bool sums_up;                         /* its error counts what has failed; the reasons stood on stderr */
	int stride;                           /* every so many operations or states, where there is no time for all */
};

int fault_stride(const struct fault_case *c); /* 1 with FAULTS=all in the environment */

/* The k-th operation on files fails, for every k; and from the k-th on none that needs space on the disk succeeds. Each
 * time: an error with the path, the reason and advice, or the work is done all the same; no descriptor is left open, no
 * temporary file and no claim; what stands there is old or new, and loads; and working again, undisturbed, gives the
 * bytes of work that was never disturbed. Returns how many operations there are. */
int fault_sweep(const struct fault_case *c);

/* Reads and writes that come short, of one byte and of half, change nothing. */
void fault_short(const struct fault_case *c);

/* Power goes at every fsync, before it, and at the end. What had not been synced is lost, kept, kept in part, or
 * became garbage or zeros, in every file; operations on folders are lost from any of them on. What is found then
 * loads, and working again gives the bytes of work that was never disturbed. After the end of the work nothing may
 * be lost: it said that it was done. Returns how many different states were met. */
int power_loss(const struct fault_case *c);

#endif
