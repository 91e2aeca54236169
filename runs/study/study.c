#include "runs/study/study.h"

#include "runs/run/run_folder.h"
#include "runs/study/estimate.h"
#include "runs/study/jobs.h"
#include "runs/study/study_work.h"

static struct err make_plan(const struct study_job *job, struct plan *plan)
{
	if (!job->force)
		TRY(study_folder_continues(job->folder, job->grid));
	TRY(plan_make(plan));
	if (job->force && !job->dry && job->team.size > 1 && team_speaks(&job->team))
		TRY(plan_forget_forced(plan));
	TRY(plan_disk_suffices(plan));
	/* One of a team speaks for all. */
	if (!team_speaks(&job->team))
		return OK;
	plan_estimate(plan);
	plan_print(plan, job->dry, job->dry ? stdout : stderr);
	return OK;
}

static struct err work(struct plan *plan, int *failed)
{
	const struct study_job *job = plan->job;
	if (!job->team.worker)
		TRY(study_folder_write(job->folder, job->study, job->command_line));
	int jobs = jobs_count(plan);
	struct err e = jobs > 1 ? jobs_work(plan, jobs, failed) : study_work(plan, failed);
	return run_folder_gone(e, job->folder);
}

struct err study_run(const struct study_job *job, int *failed)
{
	struct plan plan = { .job = job };
	*failed = 0;
	TRY(study_folder_check(job->folder));
	struct err e = make_plan(job, &plan);
	if (!e.code && !job->dry)
		e = work(&plan, failed);
	plan_free(&plan);
	return e;
}
