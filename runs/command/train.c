#include "model/base/arena.h"
#include "model/base/lease.h"
#include "runs/arguments.h"
#include "runs/progress.h"
#include "runs/run/run_checkpoint.h"
#include "runs/run/run_folder.h"
#include "runs/run/run_model.h"
#include "runs/run/run_origin.h"
#include "runs/run/run_train.h"
#include "runs/stop.h"
#include "train/course.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void print_plan(const struct config *c, const struct train_plan *p)
{
	char slabs[32], activations[32];
	fprintf(stderr, "%s, %s, train_length %" PRId64 ", seed %" PRId64 "\n", label_of(&c->model.encoding),
		label_of(&c->data.task), c->model.train_length, c->train.seed);
	fprintf(stderr, "%zu parameters; memory: weights, gradients and moments %s, activations and batch %s\n",
		p->parameters, memory_text(p->slabs, slabs), memory_text(p->activations + p->batch, activations));
	int64_t longest = course_longest(&c->model, &c->train), shortest = course_shortest(&c->model, &c->train);
	fprintf(stderr, "%" PRId64 " steps of ", c->train.steps);
	if (shortest < longest)
		fprintf(stderr, "%" PRId64 " to ", c->train.batch * shortest);
	fprintf(stderr, "%" PRId64 " tokens\n", c->train.batch * longest);
}

static void print_result(const struct config *c, const struct run_trained *t)
{
	char time[32];
	if (!t->steps)
		printf("0 steps, initial weights: %s\n", c->run.out);
	else
		printf("loss %.4f, accuracy %.1f %%, %" PRId64 " steps in %s, %.0f tokens/s: %s\n", t->loss,
		       100 * t->accuracy, t->steps, duration_text(t->seconds, time), t->tokens_per_second, c->run.out);
}

static struct err read_result(const struct config *c, struct run_trained *t, const char **why)
{
	json_t *record;
	TRY(run_record_read(c->run.out, &record));
	*t = (struct run_trained){ .steps = json_integer_value(json_object_get(record, "steps")),
				   .loss = json_number_value(json_object_get(record, "loss")),
				   .accuracy = json_number_value(json_object_get(record, "accuracy")),
				   .seconds = json_number_value(json_object_get(record, "wall_seconds")) };
	t->tokens_per_second = (double)course_tokens(&c->model, &c->train, t->steps) / t->seconds;
	const char *text = json_string_value(json_object_get(record, "error"));
	*why = text_keep(text ? text : "the record does not say how");
	json_decref(record);
	return OK;
}

/* A run that will not train any more: its end is told again. A model that is lost comes from the last checkpoint. */
static struct err ended(const struct config *c, bool *over)
{
	const char *status, *why;
	struct run_trained t;
	struct model m;
	TRY(run_record_status(c->run.out, &status));
	*over = !strcmp(status, "finished") || !strcmp(status, "diverged");
	if (!*over)
		return OK;
	TRY(read_result(c, &t, &why));
	if (!strcmp(status, "diverged"))
		return err_diverged("It would diverge again: train with other options, into another --out or with "
				    "--force.", "%s: has diverged: %s", c->run.out, why);
	struct err e = run_model_read(c->run.out, c, &m);
	bool there = false;
	if (e.code)
		TRY(run_checkpoint_there(c->run.out, &there));
	if (there) {
		fprintf(stderr, "warning: %s\n  It is made again from the last checkpoint.\n", e.text);
		*over = false;
		return OK;
	}
	TRY(e);
	model_close(&m);
	lease_tidy(c->run.out);
	fprintf(stderr, "%s: has finished already\n", c->run.out);
	print_result(c, &t);
	return OK;
}

/* Options that are not given are those of the run; those that are given must be, too. */
static struct err resume_options(struct config *c)
{
	static const char hint[] = "Leave the option out: a run goes on with the options it began with.";
	struct config theirs = { .scope = c->scope };
	if (c->run.force)
		return err_usage("--resume continues what is there, --force replaces it.",
				 "--resume, --force: choose one of them");
	const char *status;
	bool begun;
	TRY(run_record_status(c->run.out, &status));
	TRY(run_folder_begun(c->run.out, &begun));
	if (!begun && strcmp(status, "diverged")) {
		fprintf(stderr, "%s: no run has begun there: beginning one\n", c->run.out);
		return config_finish(c, true);
	}
	TRY(run_folder_config(c->run.out, &theirs));
	config_inherit(c, LIST_TRAINING, &theirs);
	TRY(config_finish(c, true));
	TRY(origin_compare(c, &theirs, c->run.out, hint));
	config_take_methods(c, LIST_TRAINING, &theirs);
	return OK;
}

/* " --save-every=100", quoted. */
static void add_option(const struct config *c, const char *name, struct text_builder *b)
{
	struct text_builder word = { 0 };
	text_add(&word, "--");
	for (const char *s = name; *s; s++)
		text_add(&word, "%c", *s == '_' ? '-' : *s);
	text_add(&word, "=");
	config_value(c, name, &word);
	text_add(b, " ");
	shell_quote(word.data, b);
	text_builder_free(&word);
}

/* What to do after an end before the end; a reason of its own stays in front. */
static struct err with_resume(struct err e, const struct config *c)
{
	bool begun = false;
	if (e.code == ERR_FAILED)
		run_folder_begun(c->run.out, &begun);
	if (!stop_is(&e) && !begun)
		return e;
	struct text_builder b = { 0 };
	text_add(&b, "%s%s: ropewalk train --resume", e.hint,
		 stop_is(&e) ? "It goes on with" : *e.hint ? " Then go on with" : "Go on with");
	for (const struct option *o = run_option_rows; o->name; o++)
		if (config_given(c, o->name) && strcmp(o->name, "resume") && strcmp(o->name, "force"))
			add_option(c, o->name, &b);
	snprintf(e.hint, sizeof e.hint, "%s", b.data);
	text_builder_free(&b);
	return e;
}

static struct err run(struct invocation *in)
{
	struct config *c = &in->config;
	struct train_plan plan;
	struct run_trained done;
	bool over = false;
	TRY(run_folder_check(c->run.out, c->run.force || c->run.resume));
	TRY(c->run.resume ? resume_options(c) : config_finish(c, true));
	TRY(run_train_check(c, &plan));
	if (c->run.resume)
		TRY(ended(c, &over));
	if (over)
		return OK;
	TRY(command_start(c));
	stop_catch();
	print_plan(c, &plan);
	TRY(with_resume(run_train(c->run.out, c, in->line, "train", &done), c));
	print_result(c, &done);
	return OK;
}

const struct command command_train = {
	.name = "train",
	.words = "",
	.help = "train one model into a folder of its own",
	.more = "Prints the loss, the accuracy and the speed. Writes config, record.json, train.jsonl (a line a\n"
		"step), timing.jsonl and model.safetensors into the folder --out; runs/README.md says what is in each.\n"
		"Checkpoints are written now and then (--save-every); control-C saves one and stops, and --resume goes\n"
		"on from the last, to the same numbers as without a stop.\n"
		"Examples:\n"
		"  ropewalk train --out=runs/out/rope-101\n"
		"  ropewalk train --encoding='alibi(slopes=spread)' --seed=102 --out=runs/out/alibi-102\n"
		"  ropewalk train --resume --out=runs/out/alibi-102",
	.lists = LIST_TRAINING | LIST_RUN,
	.run = run,
};
