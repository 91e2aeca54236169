#ifndef ROPEWALK_STUDY_WORK_H
#define ROPEWALK_STUDY_WORK_H

#include "runs/study/study_plan.h"

/* Works through a plan's cells in this process, beside any others on the same folder, and waits at the end for those
 * that others have. Reports on stderr. `failed` counts the cells without all of their rows. Errors: to be stopped, and
 * what stops the study as a whole. */
struct err study_work(struct plan *plan, int *failed);

/* Seconds that the rest of the work may take: `left` and `done` as estimated (cell_work), `elapsed` in truth. The estimate
 * counts like a tenth of the whole work done at its speed, so that a first small cell does not say all. */
double study_seconds_left(double left, double done, double elapsed);

/* What a worker of --jobs tells the process that has started it, each as a line PROGRESS_MESSAGE, letter, number of the
 * cell: it has begun with a cell; there is nothing more to do for it. */
#define STUDY_BEGUN '+'
#define STUDY_OVER '='

#endif
