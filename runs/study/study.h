#ifndef ROPEWALK_STUDY_H
#define ROPEWALK_STUDY_H

#include "runs/study/study_folder.h"

/* Running a study: every cell is trained once and evaluated where rows are missing. */

struct study_job {
	const char *folder;
	const struct study *study;
	const struct grid *grid;
	bool force; /* train and evaluate all anew */
	int64_t threads;
	const char *save_every; /* as the option */
	const char *command_line;
};

/* Refuses the folder of another study (study_folder_continues) unless `force` is set. Checks every cell that is to be
 * trained and the space on the disk, prints the plan on stderr, then works through the cells; what is finished is
 * skipped, and training goes on from checkpoints. Each cell is claimed by a lease on its folder, so that any number of
 * processes, on any machines that share the folder, divide the cells between them; at the end it waits for those that
 * others have. A cell that fails is reported on stderr and does not stop the others; `failed` counts those without all
 * of their rows, the diverged among them. Errors: what stops the study as a whole, before any work, or a signal. */
struct err study_run(const struct study_job *job, int *failed);

#endif
