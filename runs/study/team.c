#include "runs/study/team.h"

#include "model/base/text.h"
#include "runs/options.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#define PROCESSES 1000000 /* at most: anything above is no number of processes */

/* What launchers put into the environment of each process. */
static const struct launcher {
	const char *rank, *size;
	const char *job, *step; /* of the job; NULL or not there: "" */
} launchers[] = {
	{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", NULL },
	{ "PMI_RANK", "PMI_SIZE", "PMI_JOBID", NULL },
	{ "SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID", "SLURM_STEP_ID" },
};
#define LAUNCHERS ((int)(sizeof launchers / sizeof launchers[0]))

/* A number of the environment, 0 .. PROCESSES. */
static bool number_of(const char *name, int *out)
{
	int64_t number;
	const char *text = getenv(name);
	if (!text || !text_to_integer(text, &number) || number < 0 || number > PROCESSES)
		return false;
	*out = (int)number;
	return true;
}

static const char *text_of(const char *name)
{
	const char *text = name ? getenv(name) : NULL;
	return text ? text : "";
}

static bool launched_by(const struct launcher *l, struct team *t)
{
	if (!number_of(l->rank, &t->rank) || !number_of(l->size, &t->size) || t->rank >= t->size)
		return false;
	if (*text_of(l->job))
		snprintf(t->token, sizeof t->token, "%.60s%s%.60s", text_of(l->job), l->step ? "." : "",
			 text_of(l->step));
	return true;
}

static bool worker_of_jobs(struct team *t)
{
	const char *text = getenv(TEAM_WORKER);
	t->worker = text && sscanf(text, "%d/%d %d %127s", &t->rank, &t->size, &t->threads, t->token) == 4 &&
		    t->rank >= 0 && t->rank < t->size && t->threads > 0;
	return t->worker;
}

struct team team_find(void)
{
	struct team t = { .size = 1 };
	if (worker_of_jobs(&t))
		return t;
	for (int i = 0; i < LAUNCHERS; i++) {
		t = (struct team){ .size = 1 };
		if (launched_by(&launchers[i], &t))
			return t;
	}
	return (struct team){ .size = 1 };
}

bool team_speaks(const struct team *t)
{
	return !t->worker && !t->rank;
}

const char *team_name(const struct team *t)
{
	char text[48];
	if (t->size < 2 || t->worker)
		return "";
	snprintf(text, sizeof text, "[rank %d of %d] ", t->rank, t->size);
	return text_keep(text);
}

void team_follow(void)
{
#ifdef __linux__
	prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
}

/* Numbers of a job array may begin anywhere and leave some out. */
static struct err part_of_array(int *index, int *count)
{
	int id = 0, least = 1, step = 1;
	bool good = number_of("SLURM_ARRAY_TASK_ID", &id) && number_of("SLURM_ARRAY_TASK_COUNT", count);
	number_of("SLURM_ARRAY_TASK_MIN", &least);
	number_of("SLURM_ARRAY_TASK_STEP", &step);
	*index = good && step > 0 && id >= least ? (id - least) / step + 1 : 0;
	if (*index >= 1 && *index <= *count && (id - least) % step == 0)
		return OK;
	return err_usage("Number the array evenly, as in --array=1-8, or give --shard=I/N.",
			 "--shard=auto: SLURM_ARRAY_TASK_ID=%.40s of %.40s tasks from %d on in steps of %d is no part",
			 text_of("SLURM_ARRAY_TASK_ID"), text_of("SLURM_ARRAY_TASK_COUNT"), least, step);
}

struct err team_part(int *index, int *count)
{
	if (getenv("SLURM_ARRAY_TASK_ID"))
		return part_of_array(index, count);
	struct team t;
	for (int i = 0; i < LAUNCHERS; i++) {
		if (!getenv(launchers[i].rank))
			continue;
		if (!launched_by(&launchers[i], &t))
			return err_usage("Give --shard=I/N.", "--shard=auto: %s=%.40s and %s=%.40s are no part",
					 launchers[i].rank, text_of(launchers[i].rank), launchers[i].size,
					 text_of(launchers[i].size));
		*index = t.rank + 1;
		*count = t.size;
		return OK;
	}
	return err_usage("Give --shard=I/N, or start it by mpirun, srun or sbatch --array.",
			 "--shard=auto: the environment has no number of this process");
}
