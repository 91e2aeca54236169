#include "runs/run/run_train.h"

#include "model/base/io.h"
#include "model/base/lease.h"
#include "runs/progress.h"
#include "runs/run/run_folder.h"
#include "runs/run/run_model.h"

#include <inttypes.h>
#include <stdlib.h>

#define LOG_STEPS 50       /* lines of train.jsonl a crash may lose */
#define TIMING_STEPS 100 /* between lines of timing.jsonl */
#define TIMING_SECONDS 5.0

/* A run while it trains. */
struct running {
	char *log_path, *timing_path;
	struct text_builder log;
	int lines; /* in `log` */
	struct progress progress;
	double timed;       /* seconds of the last line of timing.jsonl */
	int64_t timed_step; /* and its step */
	struct run_trained *trained;
};

struct err run_train_check(const struct config *c, struct train_plan *plan)
{
	struct train_plan unused;
	const struct task *task = task_of(&c->data.task);
	int T = (int)c->model.train_length;
	TRY(task->check(&c->data.task, T, T));
	return train_plan(&c->model, &c->data, &c->train, plan ? plan : &unused);
}

static struct err flush_log(struct running *r)
{
	if (!r->lines)
		return OK;
	TRY(io_append(r->log_path, r->log.data, r->log.size));
	r->log.size = 0;
	r->lines = 0;
	return OK;
}

/* Only what the job alone determines: no times. */
static void log_step(struct running *r, const struct step_report *s)
{
	char loss[NUMBER_TEXT], norm[NUMBER_TEXT], lr[NUMBER_TEXT], accuracy[NUMBER_TEXT];
	text_add(&r->log, "{\"step\":%" PRId64 ",\"loss\":%s,\"grad_norm\":%s,\"lr\":%s,\"accuracy\":%s}\n", s->step,
		 number_to_text(s->loss, loss), number_to_text(s->grad_norm, norm), number_to_text(s->lr, lr),
		 number_to_text(s->accuracy, accuracy));
	r->lines++;
}

static struct err log_timing(struct running *r, const struct step_report *s)
{
	double now = clock_seconds() - r->progress.start;
	bool due = s->step % TIMING_STEPS == 0 || now - r->timed >= TIMING_SECONDS || s->step == s->steps;
	if (!due)
		return OK;
	struct text_builder b = { 0 };
	double rate = (double)((s->step - r->timed_step) * s->tokens) / (now - r->timed);
	text_add(&b, "{\"step\":%" PRId64 ",\"seconds\":%.3f,\"tokens_per_second\":%.0f}\n", s->step, now, rate);
	r->timed = now;
	r->timed_step = s->step;
	struct err e = io_append(r->timing_path, b.data, b.size);
	text_builder_free(&b);
	return e;
}

static struct err after_step(void *data, const struct step_report *s)
{
	struct running *r = data;
	double seconds = clock_seconds() - r->progress.start;
	*r->trained = (struct run_trained){ .steps = s->step, .loss = s->loss, .accuracy = s->accuracy,
					    .seconds = seconds,
					    .tokens_per_second = (double)(s->step * s->tokens) / seconds };
	log_step(r, s);
	if (r->lines >= LOG_STEPS)
		TRY(flush_log(r));
	progress_show(&r->progress, (double)s->step / (double)s->steps,
		      "step %" PRId64 " of %" PRId64 ", loss %.4f, accuracy %.1f %%, %.0f tokens/s", s->step, s->steps,
		      s->loss, 100 * s->accuracy, r->trained->tokens_per_second);
	return log_timing(r, s);
}

static struct err train_in(const char *folder, const struct config *c, struct running *r)
{
	struct model m = { 0 };
	const struct train_hooks hooks = { .step = after_step, .data = r };
	struct err e = model_open(&c->model, task_of(&c->data.task)->vocabulary(&c->data.task), &m);
	if (!e.code) {
		layout_initialise(&m.layout, (uint64_t)c->train.seed, m.value);
		e = train_run(&m, &c->data, &c->train, &hooks);
		struct err flushed = flush_log(r);
		e = e.code ? e : flushed;
	}
	if (!e.code)
		e = run_model_write(folder, c, &m);
	model_close(&m);
	return e;
}

static const char *status_of(const struct err *e)
{
	return e->code == ERR_NONE ? "finished" : e->code == ERR_DIVERGED ? "diverged" : "failed";
}

static struct err record_end(const char *folder, const struct err *e, const struct run_trained *t, double seconds)
{
	json_t *more = json_pack("{s:s, s:f, s:I, s:f, s:f}", "status", status_of(e), "wall_seconds", seconds, "steps",
				 (json_int_t)t->steps, "loss", t->loss, "accuracy", t->accuracy);
	if (e->code)
		json_object_set_new(more, "error", json_string(e->text));
	return run_record_update(folder, more);
}

static struct err train_locked(const char *path, const struct config *c, const char *command_line, const char *what,
			       struct run_trained *out)
{
	TRY(run_folder_create(path, c, command_line, c->run.force));
	struct running r = { .trained = out };
	r.log_path = io_join(path, RUN_LOG);
	r.timing_path = io_join(path, RUN_TIMING);
	progress_start(&r.progress, what);
	struct err e = train_in(path, c, &r);
	progress_end(&r.progress);
	out->seconds = clock_seconds() - r.progress.start;
	struct err recorded = record_end(path, &e, out, out->seconds);
	text_builder_free(&r.log);
	free(r.log_path);
	free(r.timing_path);
	return e.code ? e : recorded;
}

struct err run_train(const char *path, const struct config *c, const char *command_line, const char *what,
		     struct run_trained *out)
{
	struct lease *lock;
	struct train_plan plan;
	*out = (struct run_trained){ 0 };
	TRY(run_train_check(c, &plan));
	TRY(run_folder_check(path, c->run.force));
	TRY(run_model_fits(path, run_model_space(c, plan.parameters)));
	TRY(io_make_folder(path));
	TRY(lease_take(path, &lock));
	struct err e = train_locked(path, c, command_line, what, out);
	lease_release(lock);
	return e;
}
