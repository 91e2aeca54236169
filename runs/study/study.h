#ifndef ROPEWALK_STUDY_H
#define ROPEWALK_STUDY_H

#include "runs/study/shard.h"
#include "runs/study/study_folder.h"
#include "runs/study/team.h"

/* Running a study: every cell is trained once and evaluated where rows are missing. */

struct study_job {
	const char *folder;
	const struct study *study;
	const struct grid *grid;
	bool force;         /* train and evaluate all anew */
	const char *token;  /* with force: what this process computes anew is marked by it, and not computed again by
			     * others with the same; NULL: nobody has */
	struct shard shard; /* which cells */
	struct team team;
	bool dry;           /* print the plan on stdout, and touch nothing */
	int jobs;           /* processes that divide the cells; below 2: this one */
	int64_t threads;    /* as the option: of all together */
	const char *save_every; /* as the option */
	const char *command_line;
	char **argv;        /* the same as it came, from the command's name on, NULL behind the last; for jobs */
};

/* Member of a run's record.json: the token of the --force that computed it. */
#define STUDY_FORCED "forced"

/* Refuses the folder of another study (study_folder_continues) unless `force` is set. Checks every cell that is to be
 * trained and the space on the disk, prints the plan on stderr, then works through the cells; what is finished is
 * skipped, and training goes on from checkpoints. Each cell is claimed by a lease on its folder, so that any number of
 * processes, on any machines that share the folder, divide the cells between them; at the end it waits for those that
 * others have. A cell that fails is reported on stderr and does not stop the others; `failed` counts those without all
 * of their rows, the diverged among them. Errors: what stops the study as a whole, before any work, or a signal. */
struct err study_run(const struct study_job *job, int *failed);

#endif
