#include "runs/run/run_train.h"

#include "model/base/io.h"
#include "model/base/lease.h"
#include "runs/progress.h"
#include "runs/run/run_checkpoint.h"
#include "runs/run/run_folder.h"
#include "runs/run/run_log.h"
#include "runs/run/run_model.h"
#include "runs/stop.h"
#include "train/course.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_STEPS 50     /* lines of train.jsonl between writing them */
#define TIMING_STEPS 100 /* between lines of timing.jsonl */
#define TIMING_SECONDS 5.0

/* A run while it trains. */
struct running {
	const char *folder;
	const struct config *config;
	const struct model *base; /* whose values it starts from; NULL: by the seed */
	const struct lease *lease;
	bool resume;
	bool begun; /* has it come to where it goes on from? */
	char *log_path, *timing_path;
	struct text_builder log;
	int lines; /* in `log` */
	struct progress progress;
	double before;      /* seconds that earlier processes have spent on it */
	int64_t first;      /* steps done by them */
	int64_t tokens;     /* trained on by this one */
	double timed;       /* seconds of the last line of timing.jsonl */
	int64_t timed_step; /* and its step */
	struct save_every every;
	double saved;       /* seconds at the last checkpoint */
	struct run_trained *trained;
};

static struct err check_job(const struct config *c, struct train_plan *plan)
{
	struct train_plan unused;
	struct save_every every;
	TRY(save_every_parse(c->run.save_every, &every));
	return train_plan(&c->model, &c->data, &c->train, plan ? plan : &unused);
}

struct err run_train_check(const struct config *c, struct train_plan *plan)
{
	if (course_tunes(&c->train))
		return err_usage("`ropewalk finetune DIR --out=DIR2` makes such a run and continues it.",
				 "base: the run goes on from the weights of another, which are not at hand");
	return check_job(c, plan);
}

/* Of the steps after `first`. */
static int64_t tokens_of(const struct running *r, int64_t first, int64_t last)
{
	const struct config *c = r->config;
	return course_tokens(&c->model, &c->train, last) - course_tokens(&c->model, &c->train, first);
}

static double seconds_of(const struct running *r)
{
	return r->before + clock_seconds() - r->progress.start;
}

/* Not behind the lines of a process that has taken the run over. */
static struct err flush_log(struct running *r)
{
	if (!r->lines)
		return OK;
	TRY(lease_check(r->lease));
	struct err e = io_append(r->log_path, r->log.data, r->log.size);
	r->log.size = 0;
	r->lines = 0;
	return e;
}

static struct err log_timing(struct running *r, const struct step_report *s)
{
	double now = seconds_of(r);
	bool due = s->step % TIMING_STEPS == 0 || now - r->timed >= TIMING_SECONDS || s->step == s->steps;
	if (!due)
		return OK;
	TRY(lease_check(r->lease));
	struct text_builder b = { 0 };
	run_log_timing(&b, s->step, now, (double)tokens_of(r, r->timed_step, s->step) / (now - r->timed));
	r->timed = now;
	r->timed_step = s->step;
	struct err e = io_append(r->timing_path, b.data, b.size);
	text_builder_free(&b);
	return e;
}

/* The logs first, down to the disk: a checkpoint is worth nothing without the lines of its steps. */
static struct err save(struct running *r, struct training *t)
{
	TRY(lease_check(r->lease));
	TRY(flush_log(r));
	TRY(io_sync(r->log_path));
	TRY(io_sync(r->timing_path));
	TRY(run_checkpoint_save(r->folder, r->config, t));
	r->saved = clock_seconds();
	return OK;
}

static bool save_due(const struct running *r, const struct step_report *s)
{
	if (r->every.steps)
		return s->step % r->every.steps == 0;
	return clock_seconds() - r->saved >= r->every.seconds;
}

/* After the last step run_end saves, and nothing is left to stop. */
static struct err save_or_stop(struct running *r, struct training *t, const struct step_report *s)
{
	if (s->step == s->steps)
		return OK;
	struct err stop = stop_error();
	if (stop.code || save_due(r, s))
		TRY(save(r, t));
	if (!stop.code)
		return OK;
	return err_stopped((int)stop.code - ERR_STOPPED, NULL, "%.300s: %s, step %" PRId64 " of %" PRId64 " is saved",
			   r->folder, stop.text, s->step, s->steps);
}

static struct err after_step(void *data, struct training *t, const struct step_report *s)
{
	struct running *r = data;
	int64_t done = s->step - r->first;
	r->tokens += s->tokens;
	double seconds = clock_seconds() - r->progress.start;
	*r->trained = (struct run_trained){ .steps = s->step, .loss = s->loss, .accuracy = s->accuracy,
					    .seconds = seconds_of(r),
					    .tokens_per_second = (double)r->tokens / seconds };
	run_log_line(&r->log, s);
	if (++r->lines >= LOG_STEPS)
		TRY(flush_log(r));
	progress_show(&r->progress, (double)done / (double)(s->steps - r->first),
		      "step %" PRId64 " of %" PRId64 ", loss %.4f, accuracy %.1f %%, %.0f tokens/s", s->step, s->steps,
		      s->loss, 100 * s->accuracy, r->trained->tokens_per_second);
	TRY(log_timing(r, s));
	return save_or_stop(r, t, s);
}

/* From the newest checkpoint whose steps the log has, or from the start. */
static struct err run_start(void *data, struct training *t)
{
	struct running *r = data;
	struct run_logged logged;
	int64_t lines = 0, step = 0;
	if (r->resume) {
		TRY(run_log_steps(r->folder, &lines));
		TRY(run_checkpoint_load(r->folder, r->config, lines, t, &step));
		TRY(run_folder_resume(r->folder, r->config));
		TRY(run_log_cut(r->folder, step, &logged));
		int64_t tokens = tokens_of(r, 0, step);
		*r->trained = (struct run_trained){ .steps = step, .loss = logged.loss, .accuracy = logged.accuracy };
		if (logged.seconds > 0)
			r->trained->tokens_per_second = (double)tokens / logged.seconds;
		r->before = r->timed = logged.seconds;
		r->first = r->timed_step = step;
		fprintf(stderr, "%s: goes on after step %" PRId64 " of %" PRId64 "\n", r->folder, step,
			r->config->train.steps);
	}
	if (!step)
		training_begin(t);
	if (!step && r->base)
		memcpy(training_state(t).model->value, r->base->value, r->base->layout.size * sizeof(real));
	r->begun = true;
	r->saved = clock_seconds();
	return OK;
}

static struct err run_end(void *data, struct training *t)
{
	struct running *r = data;
	TRY(save(r, t));
	return run_model_write(r->folder, r->config, training_state(t).model);
}

static struct err train_in(struct running *r)
{
	const struct config *c = r->config;
	struct model m = { 0 };
	const struct train_hooks hooks = { .start = run_start, .step = after_step, .end = run_end, .data = r };
	struct err e = model_open(&c->model, task_of(&c->data.task)->vocabulary(&c->data.task), &m);
	if (!e.code)
		e = train_run(&m, &c->data, &c->train, &hooks);
	/* What was trained before an error is worth seeing, though no checkpoint stands there. */
	struct err flushed = lease_check(r->lease).code ? OK : flush_log(r);
	model_close(&m);
	return e.code ? e : flushed;
}

static const char *status_of(const struct err *e)
{
	if (e->code == ERR_NONE)
		return "finished";
	return e->code == ERR_DIVERGED ? "diverged" : stop_is(e) ? "stopped" : "failed";
}

/* A run that could not be continued is as it was, and its record too. */
static struct err record_end(const struct running *r, const struct err *e)
{
	const struct run_trained *t = r->trained;
	if (r->resume && !r->begun)
		return OK;
	json_t *more = json_pack("{s:s, s:f, s:I, s:f, s:f}", "status", status_of(e), "wall_seconds", t->seconds,
				 "steps", (json_int_t)t->steps, "loss", t->loss, "accuracy", t->accuracy);
	if (e->code)
		json_object_set_new(more, "error", json_string(e->text));
	return run_record_update(r->folder, more);
}

static struct err train_there(struct running *r)
{
	r->log_path = io_join(r->folder, RUN_LOG);
	r->timing_path = io_join(r->folder, RUN_TIMING);
	struct err e = train_in(r);
	progress_end(&r->progress);
	r->trained->seconds = seconds_of(r);
	struct err recorded = lease_check(r->lease);
	if (!recorded.code)
		recorded = record_end(r, &e);
	text_builder_free(&r->log);
	free(r->log_path);
	free(r->timing_path);
	return e.code ? e : recorded;
}

static struct err train_locked(const char *path, const struct config *c, const struct model *base,
			       const char *command_line, const char *what, const struct lease *lease,
			       struct run_trained *out)
{
	struct running r = { .folder = path, .config = c, .base = base, .lease = lease, .trained = out };
	TRY(save_every_parse(c->run.save_every, &r.every));
	if (c->run.resume)
		TRY(run_folder_begun(path, &r.resume));
	if (r.resume)
		TRY(run_checkpoint_there(path, &r.resume));
	if (!r.resume)
		TRY(run_folder_create(path, c, command_line, c->run.force || c->run.resume));
	progress_start(&r.progress, what);
	return train_there(&r);
}

struct err run_train_from(const char *path, const struct config *c, const struct model *base,
			  const char *command_line, const char *what, struct run_trained *out)
{
	struct lease *lease;
	struct train_plan plan;
	*out = (struct run_trained){ 0 };
	TRY(base ? check_job(c, &plan) : run_train_check(c, &plan));
	TRY(run_folder_check(path, c->run.force || c->run.resume));
	TRY(run_model_fits(path, run_model_space(c, plan.parameters)));
	TRY(io_make_folder(path));
	TRY(lease_take(path, &lease));
	struct err e = train_locked(path, c, base, command_line, what, lease, out);
	lease_release(lease);
	return run_folder_gone(e, path);
}

struct err run_train(const char *path, const struct config *c, const char *command_line, const char *what,
		     struct run_trained *out)
{
	return run_train_from(path, c, NULL, command_line, what, out);
}

struct err run_train_check_from(const struct config *c, struct train_plan *plan)
{
	return check_job(c, plan);
}
