#include "runs/study/study_work.h"

#include "model/base/io.h"
#include "model/base/lease.h"
#include "model/base/stb.h"
#include "runs/progress.h"
#include "runs/run/run_adopt.h"
#include "runs/run/run_eval.h"
#include "runs/run/run_folder.h"
#include "runs/run/run_train.h"
#include "runs/stop.h"
#include "runs/study/study_tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How this process is getting on. */
struct study_work {
	struct plan *plan;
	double start, last;   /* seconds of clock_seconds: of all, of what was last added to the record */
	double begun;         /* and of the cell at work */
	double done;          /* cell_work of what it has done itself */
	int failed;
	int waiting;          /* cells of this pass that other processes have, or that wait for such a cell */
	bool moved;           /* did this pass bring any cell to its end? */
	char holder[LEASE_HOLDER];
};

/* Scalings first .. last - 1 that lack the same lengths. */
static struct err evaluate_alike(const struct cell *c, const struct cell_plan *p, int first, int last,
				 const struct config *config)
{
	const bool *wanted = &p->wanted[first * c->lengths];
	struct run_evaluation e = { .folder = p->path, .config = config, .scaling = &c->scaling[first],
				    .scalings = last - first, .skip = true };
	int *length = NULL;
	double *multiple = NULL;
	for (int i = 0; i < c->lengths; i++)
		if (wanted[i]) {
			arrput(length, c->length[i]);
			arrput(multiple, c->multiple[i]);
		}
	e.length = length;
	e.multiple = multiple;
	e.lengths = (int)arrlen(length);
	struct err error = e.lengths ? run_evaluate(&e, NULL) : OK;
	arrfree(length);
	arrfree(multiple);
	return error;
}

static struct err evaluate_cell(const struct cell *c, const struct cell_plan *p, const struct config *config)
{
	size_t row = (size_t)c->lengths * sizeof *p->wanted;
	for (int first = 0, last; first < c->scalings; first = last) {
		last = first + 1;
		while (last < c->scalings &&
		       !memcmp(&p->wanted[first * c->lengths], &p->wanted[last * c->lengths], row))
			last++;
		TRY(evaluate_alike(c, p, first, last, config));
	}
	return OK;
}

/* From its sibling if that has come to weights, else by training: from the weights of its base, whose lease this gives
 * up, or from the seed. */
static struct err train_cell(const struct plan *plan, int index, const struct config *config, struct lease **base,
			     const char *what)
{
	const struct cell *c = &plan->job->grid->cell[index];
	const struct cell_plan *p = &plan->cell[index];
	const char *command_line = plan->job->command_line;
	struct run_trained trained;
	if (p->sibling >= 0) {
		const char *from = plan->cell[p->sibling].path;
		bool adopted;
		struct err why;
		TRY(run_adopt(p->path, config, command_line, from, &adopted, &why));
		if (adopted)
			return OK;
		fprintf(stderr, "%s: trained by itself: %s\n", run_folder_name(p->path), why.text);
	}
	if (c->tuned)
		return tune_train(p->path, config, plan->cell[c->base].path, &plan->job->grid->cell[c->base].config,
				  base, command_line, what);
	return run_train(p->path, config, command_line, what, &trained);
}

/* Processes that were started together do not do it once more. */
static struct err mark_forced(const struct plan *plan, const char *path)
{
	if (!plan->job->force || !plan->job->token)
		return OK;
	return run_record_update(path, json_pack("{s:s}", STUDY_FORCED, plan->job->token));
}

static struct err work_on(const struct plan *plan, int index, struct lease **base, const char *what)
{
	const struct cell *c = &plan->job->grid->cell[index];
	const struct cell_plan *p = &plan->cell[index];
	struct config config = c->config;
	config.run.threads = plan->job->threads;
	config.run.save_every = plan->job->save_every;
	config.run.force = true;
	config.run.resume = !p->anew;
	if (p->train) {
		TRY(train_cell(plan, index, &config, base, what));
		TRY(mark_forced(plan, p->path));
	}
	return evaluate_cell(c, p, &config);
}

static void report_failure(const struct study_work *w, int index, const struct err *e)
{
	const struct cell_plan *p = &w->plan->cell[index];
	const char *name = p->path ? run_folder_name(p->path) : w->plan->job->grid->cell[index].name;
	progress_clear();
	fprintf(stderr, "ropewalk: %s: %s\n", name, e->text);
	if (*e->hint)
		fprintf(stderr, "  %s\n", e->hint);
}

#define PRIOR 0.1

double study_seconds_left(double left, double done, double elapsed)
{
	double prior = PRIOR * (left + done);
	double seconds = prior + done > 0 ? left * (prior + elapsed) / (prior + done) : 0;
	/* The cells at work are counted whole. */
	return done > 0 ? seconds : left - elapsed;
}

/* By what this process has done itself and the estimate. Others that were started with it do a share. */
static double seconds_left(const struct study_work *w)
{
	const struct cell_plan *cell = w->plan->cell;
	double left = 0, now = clock_seconds();
	bool estimated = false;
	for (int i = 0; i < arrlen(cell); i++) {
		left += cell[i].over ? 0 : cell_work(&cell[i]);
		estimated |= cell[i].seconds > 0;
	}
	if (estimated)
		left = study_seconds_left(left, w->done, w->begun - w->start) - (now - w->begun);
	else
		left = w->done > 0 ? left / w->done * (w->begun - w->start) - (now - w->begun) : 0;
	int team = w->plan->job->team.size;
	return left > 0 ? left / (team > 1 ? team : 1) : 0;
}

/* "2 of 5, about 1 min 20 s left" */
static const char *standing(void *work, char text[120])
{
	const struct study_work *w = work;
	char time[32];
	int over = 0, all = 0;
	double left = seconds_left(w);
	for (int i = 0; i < arrlen(w->plan->cell); i++) {
		all += !w->plan->cell[i].foreign;
		over += !w->plan->cell[i].foreign && w->plan->cell[i].over;
	}
	int n = snprintf(text, 120, "%d of %d", over + (over < all), all);
	if (left > 0)
		snprintf(text + n, 120 - (size_t)n, ", about %s left", duration_about(left, time));
	return text;
}

/* To the process that reads this one's stderr, or to the user. */
static void announce(struct study_work *w, int index)
{
	char text[120];
	w->begun = clock_seconds();
	progress_clear();
	if (w->plan->job->team.worker)
		fprintf(stderr, "%c%c%d\n", PROGRESS_MESSAGE, STUDY_BEGUN, index);
	else
		fprintf(stderr, "%s%s: %s\n", progress_speaker_name(), standing(w, text),
			run_folder_name(w->plan->cell[index].path));
}

/* There is nothing more to do for it. */
static void end_cell(struct study_work *w, int index)
{
	w->plan->cell[index].over = true;
	if (w->plan->job->team.worker)
		fprintf(stderr, "%c%c%d\n", PROGRESS_MESSAGE, STUDY_OVER, index);
}

/* Is the cell whose weights this one takes over at hand? If it has come to nothing, this one trains by itself. Its lease
 * keeps other processes from it meanwhile. */
static struct err sibling_ready(struct study_work *w, const struct cell_plan *p, struct lease **lease, bool *ready)
{
	*lease = NULL;
	*ready = true;
	if (p->sibling < 0)
		return OK;
	const struct cell_plan *sibling = &w->plan->cell[p->sibling];
	bool finished = !strcmp(run_folder_status(sibling->path), "finished");
	*ready = finished || sibling->over;
	if (!finished)
		return OK;
	TRY(lease_try(sibling->path, lease, w->holder));
	*ready = *lease;
	return OK;
}

/* Are the weights at hand that a cell to be fine-tuned goes on from? The lease is that of their run. */
static struct err base_ready(struct study_work *w, int index, struct lease **lease, bool *ready)
{
	const struct cell *c = &w->plan->job->grid->cell[index];
	*lease = NULL;
	*ready = true;
	if (!c->tuned || !w->plan->cell[index].train)
		return OK;
	const struct cell_plan *base = &w->plan->cell[c->base];
	const char *status = base->path ? run_folder_status(base->path) : "damaged";
	if (!strcmp(status, "finished")) {
		TRY(lease_try(base->path, lease, w->holder));
		*ready = *lease;
		return OK;
	}
	*ready = false;
	if (base->over)
		return err_failed("Mend what became of it, and call the study again.",
				  "its base, %s, has no weights: %s", w->plan->job->grid->cell[c->base].name, status);
	return OK;
}

static struct err work_when_ready(struct study_work *w, int index)
{
	struct cell_plan *p = &w->plan->cell[index];
	struct lease *lease, *base = NULL;
	bool ready;
	TRY(sibling_ready(w, p, &lease, &ready));
	struct err e = ready ? base_ready(w, index, &base, &ready) : OK;
	if (e.code || !ready) {
		lease_release(lease);
		w->waiting += !e.code;
		return e;
	}
	announce(w, index);
	e = work_on(w->plan, index, &base, run_folder_name(p->path));
	lease_release(base);
	lease_release(lease);
	w->done += cell_work(p);
	end_cell(w, index);
	return e;
}

/* A cell that this process has the lease of: whatever others have done for it is seen now. */
static struct err work_claimed(struct study_work *w, int index)
{
	TRY(plan_renew(w->plan, index));
	struct cell_plan *p = &w->plan->cell[index];
	if (cell_has_work(p))
		return work_when_ready(w, index);
	end_cell(w, index);
	w->failed += p->diverged;
	return OK;
}

static struct err claim_and_work(struct study_work *w, int index)
{
	struct lease *lease;
	char *path = strdup(w->plan->cell[index].path);
	BUG_IF(!path, "no memory for a path");
	struct err e = io_make_folder(path);
	if (!e.code)
		e = lease_try(path, &lease, w->holder);
	if (!e.code && !lease)
		w->waiting++;
	if (!e.code && lease) {
		e = work_claimed(w, index);
		lease_release(lease);
	}
	free(path);
	return e;
}

static struct err add_seconds(struct study_work *w)
{
	double now = clock_seconds();
	TRY(study_folder_add_seconds(w->plan->job->folder, now - w->last));
	w->last = now;
	return OK;
}

static struct err visit(struct study_work *w, int index)
{
	struct cell_plan *p = &w->plan->cell[index];
	/* Left to the user, whom the plan has told. */
	if (p->damaged.code) {
		w->failed++;
		end_cell(w, index);
		return OK;
	}
	plan_heed_base(w->plan, index);
	bool had_work = cell_has_work(p);
	struct err e = had_work ? claim_and_work(w, index) : OK;
	p = &w->plan->cell[index];
	if (!had_work) {
		lease_tidy(p->path);
		end_cell(w, index);
		w->failed += p->diverged;
		return OK;
	}
	if (e.code && !stop_is(&e)) {
		report_failure(w, index, &e);
		w->failed++;
		end_cell(w, index);
	}
	w->moved |= p->over;
	if (p->over || stop_is(&e))
		TRY(add_seconds(w));
	return stop_is(&e) ? e : OK;
}

static struct err pass(struct study_work *w)
{
	w->waiting = 0;
	w->moved = false;
	for (int i = 0; i < arrlen(w->plan->cell); i++) {
		TRY(stop_error());
		if (!w->plan->cell[i].over)
			TRY(visit(w, i));
	}
	return OK;
}

#define WAIT_SECONDS 1

/* Until the others have finished their cells, or have died, which leaves the cells to this process. */
static struct err work(struct study_work *w)
{
	struct progress progress;
	struct err e;
	progress_start(&progress, "study");
	while (!(e = pass(w)).code && w->waiting) {
		if (w->moved)
			continue;
		progress_show(&progress, 0, "waiting for %d models that other processes are at work on (%s)",
			      w->waiting, w->holder);
		nanosleep(&(struct timespec){ .tv_sec = WAIT_SECONDS }, NULL);
	}
	progress_end(&progress);
	return e;
}

struct err study_work(struct plan *plan, int *failed)
{
	double now = clock_seconds();
	struct study_work w = { .plan = plan, .start = now, .last = now, .begun = now };
	if (!plan->job->team.worker)
		progress_part_of(standing, &w);
	struct err e = work(&w);
	progress_part_of(NULL, NULL);
	*failed = w.failed;
	return e;
}
