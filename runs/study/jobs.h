#ifndef ROPEWALK_JOBS_H
#define ROPEWALK_JOBS_H

#include "runs/study/study_plan.h"

/* A study's cells divided between processes that this one starts, each with its share of the threads on cores of its
 * own: the same command line, told in the environment that it is a worker (team.h). They divide the cells by leases, as
 * any processes do. */

/* How many processes to start: the job's `jobs`, but no more than there are threads, cells with work, or models that
 * fit into memory side by side; says on stderr why it is fewer. 1: none. */
int jobs_count(const struct plan *plan);

/* Starts them, shows their progress together, passes signals on and waits for all. A worker that dies is reported; the
 * others go on with its cell. `failed` as study_work. Errors: none can be started; to be stopped. */
struct err jobs_work(struct plan *plan, int jobs, int *failed);

#endif
