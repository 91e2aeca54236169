#ifndef ROPEWALK_TEAM_H
#define ROPEWALK_TEAM_H

#include "model/base/err.h"

#include <stdbool.h>

/* Which of several processes on one study this is, as whoever started them says in the environment: mpirun and others
 * (OMPI_COMM_WORLD_RANK and _SIZE, PMI_RANK and PMI_SIZE), srun (SLURM_PROCID and SLURM_NTASKS), or `study --jobs`
 * (TEAM_WORKER). */

struct team {
	int rank, size;  /* 0 .. size - 1; size 1: alone */
	bool worker;     /* of --jobs: the process that started it speaks for it */
	int threads;     /* of a worker: its share */
	char token[128]; /* the same in all of them, and in no other team; "" if there is none */
};

/* "RANK/SIZE THREADS TOKEN" */
#define TEAM_WORKER "ROPEWALK_WORKER"

struct team team_find(void);

/* The one that prints plan and tables for all. */
bool team_speaks(const struct team *t);

/* "[rank 1 of 3] " before this process's lines of progress, "" for one alone; kept. */
const char *team_name(const struct team *t);

/* A worker ends, saved, when the process that started it does, where the system can tell it (Linux). */
void team_follow(void);

/* Part and number of parts, from 1, of a job array (SLURM_ARRAY_TASK_ID, _COUNT, _MIN, _STEP), else of the processes of
 * a launcher. An error if the environment says neither, or nonsense. */
struct err team_part(int *index, int *count);

#endif
