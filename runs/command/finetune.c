#include "model/base/io.h"
#include "model/base/lease.h"
#include "runs/command/command.h"
#include "runs/run/run_eval.h"
#include "runs/run/run_folder.h"
#include "runs/run/run_model.h"
#include "runs/run/run_origin.h"
#include "runs/run/run_train.h"
#include "runs/run/run_tuning.h"
#include "runs/show/tuned.h"
#include "runs/stop.h"
#include "train/course.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct finetune_options {
	int64_t format, control;
};

static const struct option own_rows[] = {
	{ .name = "format", .kind = OPTION_CHOICE, .initial = "text", .choices = FORMAT_CHOICES, .unit = "",
	  .help = FORMAT_HELP, .offset = offsetof(struct finetune_options, format) },
	{ .name = "control", .kind = OPTION_SWITCH, .initial = "on", .least = 0, .most = 1, .choices = "off|on",
	  .unit = "", .help = "also fine-tune without scaling, by the same batches, into the folder none in --out",
	  .offset = offsetof(struct finetune_options, control) },
	{ 0 },
};

/* One of the two trainings. */
struct tuning {
	char *folder;
	const char *what;
	struct config config;
};

struct job {
	struct config *c;      /* as given */
	struct config base;    /* the base's options, with those of the evaluation */
	char *folder;          /* the base's */
	struct model model;    /* and its weights */
	const char *line;
	int64_t control;
	struct tuning tuning[2];
	int *length, lengths;
	double *multiple;
};

static struct train_options train_options_of(const struct job *j)
{
	const struct config *c = j->c;
	struct train_options t = j->base.train;
	for (const struct option *o = train_option_rows; o->name; o++)
		if (config_given(c, o->name))
			option_put(o, &t, option_get(o, &c->train));
	t.length = c->train.length;
	t.length_least = c->train.length_least;
	t.drop_rope_at = c->train.drop_rope_at;
	if (!config_given(c, "steps"))
		t.steps = TUNING_STEPS;
	if (!config_given(c, "lr"))
		t.lr = TUNING_RATE * j->base.train.lr;
	if (!config_given(c, "warmup"))
		t.warmup = (int64_t)(TUNING_WARMUP * (double)t.steps);
	if (!config_given(c, "batch"))
		t.batch = tuning_batch(&j->base, t.length);
	return t;
}

static void set_tuning(const struct job *j, struct tuning *t, char *folder, const char *what,
		       const struct method *scaling, const struct train_options *train)
{
	*t = (struct tuning){ .folder = folder, .what = what, .config = j->base };
	t->config.model = course_model(&j->base.model, &j->base.train, j->base.train.steps);
	t->config.model.trained_scaling = *scaling;
	t->config.train = *train;
	t->config.run = j->c->run;
	t->config.run.out = text_keep(folder);
}

static struct err check_given(const struct config *c)
{
	if (course_tunes(&c->train))
		return err_usage("Leave it out.", "--base: the folder that is named says it");
	if (!*c->run.out)
		return err_usage("Give a new folder, as in --out=runs/out/NAME.", "--out: a folder is needed");
	if (c->run.resume && c->run.force)
		return err_usage("--resume continues what is there, --force replaces it.",
				 "--resume, --force: choose one of them");
	if (!config_given(c, "scaling"))
		return err_usage("Give one, as in --scaling=yarn.", "--scaling: is missing");
	if (!c->train.length)
		return err_usage("Give the length to train at, as in --length=256.", "--length: is missing");
	return OK;
}

/* The one scaling that is asked for. */
static struct err take_scaling(struct config *c, struct method *out)
{
	struct method *scaling;
	int count;
	TRY(config_scalings(c, true, &scaling, &count));
	*out = scaling[0];
	free(scaling);
	if (count > 1)
		return err_usage("Fine-tune once for each.", "--scaling: %d are given, and one is taken", count);
	if (!strcmp(out->entry->name, "none"))
		return err_usage("Name a scaling: none is the control anyway.", "--scaling: is none");
	return OK;
}

static struct err open_base(struct job *j, const char *path)
{
	const char *sum;
	struct scope scope = { .command = "a run", .lists = LIST_TRAINING | LIST_EVAL | LIST_RUN };
	config_init(&j->base, &scope, NULL);
	TRY(run_folder_open(path, &j->base, &j->folder));
	TRY(run_model_read(j->folder, &j->base, &j->model));
	TRY(run_model_sum(j->folder, &sum));
	j->base.eval = j->c->eval;
	j->base.train.base = sum;
	if (j->c->train.length < j->base.model.train_length)
		return err_usage("Give a greater one.",
				 "--length: %" PRId64 " is less than the %" PRId64 " that the base was trained at",
				 j->c->train.length, j->base.model.train_length);
	return OK;
}

/* A new run may not take the place of its base, nor may the control in it. */
static struct err check_folder(const struct job *j, const struct tuning *t)
{
	if (io_same(j->folder, t->folder))
		return err_usage("Give another --out.", "--out: %s is the base itself", t->folder);
	return run_folder_check(t->folder, j->c->run.force || j->c->run.resume);
}

static struct err plan(struct job *j, const struct method *asked)
{
	const struct config *c = j->c;
	struct train_options train = train_options_of(j);
	struct method none = method_default(scaling_at(0));
	TRY(scaling_check(asked, &j->model.options, (double)train.length));
	struct method scaling = scaling_resolved(asked, &j->model.options, (double)train.length);
	set_tuning(j, &j->tuning[0], strdup(c->run.out), "finetune", &scaling, &train);
	set_tuning(j, &j->tuning[1], io_join(c->run.out, TUNED_CONTROL), "control", &none, &train);
	for (int i = 0; i <= j->control; i++) {
		TRY(run_train_check_from(&j->tuning[i].config, NULL));
		TRY(check_folder(j, &j->tuning[i]));
	}
	return config_at(c, "multiples", eval_lengths(c->eval.multiples, (int)j->base.model.train_length, &j->base.data,
						      &j->length, &j->multiple, &j->lengths));
}

static void print_plan(const struct job *j)
{
	const struct config *t = &j->tuning[0].config;
	fprintf(stderr, "%s: %" PRId64 " steps with scaling %s at length %" PRId64 ", batch %" PRId64 " (%" PRId64
		" tokens; %" PRId64 " in the base), lr %g, warmup %" PRId64 "\n", j->folder, t->train.steps,
		label_of(&t->model.trained_scaling), t->train.length, t->train.batch, t->train.batch * t->train.length,
		j->base.train.batch * course_longest(&j->base.model, &j->base.train), t->train.lr, t->train.warmup);
}

/* A run that has finished as it was asked for is not trained again. */
static struct err is_finished(const struct tuning *t, bool *finished)
{
	struct config theirs = { .scope = t->config.scope };
	*finished = t->config.run.resume && !strcmp(run_folder_status(t->folder), "finished");
	if (!*finished)
		return OK;
	TRY(run_folder_config(t->folder, &theirs));
	return origin_compare(&t->config, &theirs, t->folder, "Resume with the options it began with, or train again "
			      "with --force.");
}

static struct err train_one(const struct job *j, struct tuning *t)
{
	struct run_trained done;
	bool finished;
	TRY(is_finished(t, &finished));
	if (finished)
		return OK;
	struct err e = run_train_from(t->folder, &t->config, &j->model, j->line, t->what, &done);
	if (stop_is(&e))
		snprintf(e.hint, sizeof e.hint, "It goes on with the same command and --resume.");
	TRY(e);
	if (done.steps)
		fprintf(stderr, "%s: loss %.4f, accuracy %.1f %%\n", t->folder, done.loss, 100 * done.accuracy);
	else
		fprintf(stderr, "%s: 0 steps, the base's weights\n", t->folder);
	return OK;
}

static struct err evaluate(const struct job *j, const char *folder, const struct config *c,
			   const struct method *scaling, int scalings)
{
	struct run_evaluation e = { .folder = folder, .config = c, .scaling = scaling, .scalings = scalings,
				    .length = j->length, .multiple = j->multiple, .lengths = j->lengths, .skip = true };
	struct err error = run_evaluate(&e, NULL);
	if (stop_is(&error))
		snprintf(error.hint, sizeof error.hint, "It goes on with the same command and --resume.");
	return error;
}

static struct err evaluate_all(const struct job *j)
{
	const struct tuning *tuned = &j->tuning[0], *control = &j->tuning[1];
	const struct method none = control->config.model.trained_scaling, both[] = {
		none, tuned->config.model.trained_scaling
	};
	struct config base = j->base;
	base.train.base = "none";
	TRY(run_folder_config(j->folder, &base));
	TRY(evaluate(j, j->folder, &base, both, 2));
	TRY(evaluate(j, tuned->folder, &tuned->config, &both[1], 1));
	return j->control ? evaluate(j, control->folder, &control->config, &none, 1) : OK;
}

static struct err work(struct job *j)
{
	const struct finetune_options *own = j->c->own;
	TRY(command_start(j->c));
	stop_catch();
	print_plan(j);
	for (int i = 0; i <= j->control; i++)
		TRY(train_one(j, &j->tuning[i]));
	TRY(evaluate_all(j));
	TRY(tuned_record(j->tuning[0].folder, &j->tuning[0].config, j->control));
	return tuned_print(j->folder, j->tuning[0].folder, (enum format)own->format);
}

static struct err run(struct invocation *in)
{
	struct config *c = &in->config;
	struct job j = { .c = c, .line = in->line, .control = ((struct finetune_options *)c->own)->control };
	struct method scaling;
	TRY(config_finish(c, true));
	TRY(check_given(c));
	TRY(take_scaling(c, &scaling));
	struct err e = open_base(&j, in->word[0]);
	if (!e.code)
		e = plan(&j, &scaling);
	if (!e.code)
		e = work(&j);
	for (int i = 0; i < 2; i++)
		free(j.tuning[i].folder);
	model_close(&j.model);
	free(j.folder);
	free(j.length);
	free(j.multiple);
	return e;
}

const struct command command_finetune = {
	.name = "finetune",
	.words = "DIR",
	.help = "train a run on at a longer length under a RoPE scaling",
	.more = "DIR is a finished run's folder, or the model.safetensors in it. Its weights go on, with a fresh\n"
		"optimiser, under --scaling at --length, for --steps (200); a batch keeps its tokens unless --batch\n"
		"is given; lr is 0.3 of the base's and warmup 0.1 of the steps unless given; what else is not given\n"
		"is the base's. --out becomes a run, in it none, the control, trained as long without scaling.\n"
		"Prints a table of the base and both; `ropewalk table DIR DIR2` prints it again.\n"
		"Example:\n"
		"  ropewalk finetune runs/out/rope-101 --scaling=yarn --length=256 --out=runs/out/rope-101-yarn",
	.least = 1,
	.most = 1,
	.lists = LIST_TRAIN | LIST_EVAL | LIST_RUN | LIST_OWN,
	.without = "references|stream|kv|protocol|calibrate|base",
	.own = own_rows,
	.own_size = sizeof(struct finetune_options),
	.run = run,
};
