#include "runs/run/run_checkpoint.h"

#include "model/base/blas.h"
#include "model/base/io.h"
#include "model/weights.h"
#include "runs/run/run_origin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT 2
#define NAME "checkpoint-%010" PRId64 ".safetensors"

/* What else the last bits of the numbers depend on and is the user's choice. */
static int choices(struct metadata out[2])
{
	struct blas_report blas = blas_report();
	out[0] = (struct metadata){ "products", text_keep(blas.products) };
	out[1] = (struct metadata){ "real", REAL_NAME };
	return 2;
}

static const char *usual_interval(void)
{
	const struct option *o = run_option_rows;
	while (strcmp(o->name, "save_every"))
		o++;
	return o->initial;
}

struct err save_every_parse(const char *text, struct save_every *out)
{
	static const char hint[] = "Give steps, as in --save-every=500, or seconds, as in --save-every=60s.";
	char number[40];
	text = text ? text : usual_interval();
	size_t length = strlen(text);
	*out = (struct save_every){ 0 };
	if (length < 2 || text[length - 1] != 's' || length > sizeof number) {
		if (!text_to_integer(text, &out->steps) || out->steps < 1 || out->steps > 1000000000)
			return err_usage(hint, "--save-every: %.60s: not a number of steps from 1 to 1000000000, or of "
					 "seconds", text);
		return OK;
	}
	snprintf(number, sizeof number, "%.*s", (int)length - 1, text);
	if (!text_to_number(number, &out->seconds) || !(out->seconds >= 0.001) || !(out->seconds <= 1e9))
		return err_usage(hint, "--save-every: %.60s: seconds go from 0.001s to 1e9s", text);
	return OK;
}

/* The step of a checkpoint's name; false for other names. */
static bool step_of(const char *name, int64_t *step)
{
	char again[64];
	if (sscanf(name, "checkpoint-%" SCNd64, step) != 1)
		return false;
	snprintf(again, sizeof again, NAME, *step);
	return !strcmp(name, again);
}

static char *path_of(const char *folder, int64_t step)
{
	char name[64];
	snprintf(name, sizeof name, NAME, step);
	return io_join(folder, name);
}

static struct err write_checkpoint(const char *path, const struct config *c, struct training *t)
{
	struct origin origin;
	origin_open(c, &origin);
	struct metadata metadata[4] = { origin.metadata[0], origin.metadata[1] };
	struct err e = checkpoint_write(t, path, metadata, 2 + choices(metadata + 2));
	origin_close(&origin);
	return e;
}

struct err run_checkpoint_there(const char *folder, bool *there)
{
	char **name;
	int count;
	int64_t step;
	*there = false;
	TRY(io_list(folder, &name, &count));
	for (int i = 0; i < count; i++)
		*there |= step_of(name[i], &step);
	io_names_free(name, count);
	return OK;
}

/* The newest stand at the end. */
static struct err remove_old(const char *folder)
{
	char **name;
	int count, kept = 0;
	int64_t step;
	TRY(io_list(folder, &name, &count));
	struct err e = OK;
	for (int i = count - 1; i >= 0 && !e.code; i--) {
		if (!step_of(name[i], &step) || ++kept <= KEPT)
			continue;
		char *path = io_join(folder, name[i]);
		e = io_remove(path);
		free(path);
	}
	io_names_free(name, count);
	return e;
}

struct err run_checkpoint_save(const char *folder, const struct config *c, struct training *t)
{
	char *path = path_of(folder, *training_state(t).step);
	struct err e = write_checkpoint(path, c, t);
	free(path);
	return e.code ? e : remove_old(folder);
}

static struct err check_choices(const struct safetensors *file, const char *path, const char *hint)
{
	struct metadata choice[2];
	for (int i = 0; i < choices(choice); i++) {
		const char *theirs = safetensors_metadata(file, choice[i].key);
		if (!theirs || strcmp(theirs, choice[i].value))
			return err_usage(hint, "%.300s: %s is %.40s there, and %.40s here", path, choice[i].key,
					 theirs ? theirs : "missing", choice[i].value);
	}
	return OK;
}

/* The options stand in a checked part of the file, so that they are compared before anything else can differ. */
static struct err check_options(const struct config *c, const struct safetensors *file, const char *path)
{
	static const char hint[] = "Resume with the options it began with, or train again with --force.";
	struct model_options options = { 0 };
	int V;
	if (weights_format_options(file, CHECKPOINT_FORMAT, &options, &V).code)
		return OK;
	TRY(origin_check(c, file, &options, path, hint));
	return check_choices(file, path, hint);
}

/* An error is the file's if `damaged`, else one to end with. */
static struct err read_checkpoint(const char *path, const struct config *c, struct training *t, bool *damaged)
{
	struct safetensors file = { 0 };
	struct err e = safetensors_read(path, &file);
	*damaged = e.code == ERR_USAGE;
	TRY(e);
	e = check_options(c, &file, path);
	if (!e.code) {
		e = checkpoint_read(t, &file, path);
		*damaged = e.code == ERR_USAGE;
	}
	safetensors_free(&file);
	return e;
}

static struct err set_aside(const char *path, const struct err *why)
{
	struct text_builder to = { 0 };
	text_add(&to, "%s" RUN_BROKEN, path);
	struct err e = io_rename(path, to.data);
	if (!e.code)
		fprintf(stderr, "warning: %s\n  It is called %s now, and an older one is taken.\n", why->text, to.data);
	text_builder_free(&to);
	return e;
}

static struct err load_one(const char *path, int64_t step, const struct config *c, int64_t most, struct training *t,
			   bool *loaded)
{
	bool damaged;
	*loaded = false;
	/* Left there it would count as newer than those that are written from here on, and they would be removed. */
	if (step > most) {
		struct err e = err_usage(NULL, "%s: train.jsonl ends before it, at step %" PRId64, path, most);
		return set_aside(path, &e);
	}
	struct err e = read_checkpoint(path, c, t, &damaged);
	if (!e.code && *training_state(t).step != step) {
		e = err_usage(NULL, "%s: its step is %" PRId64, path, *training_state(t).step);
		damaged = true;
	}
	*loaded = !e.code;
	return damaged ? set_aside(path, &e) : e;
}

struct err run_checkpoint_load(const char *folder, const struct config *c, int64_t most, struct training *t,
			       int64_t *step)
{
	char **name;
	int count;
	bool loaded = false;
	TRY(io_list(folder, &name, &count));
	struct err e = OK;
	for (int i = count - 1; i >= 0 && !e.code && !loaded; i--) {
		if (!step_of(name[i], step))
			continue;
		char *path = io_join(folder, name[i]);
		e = load_one(path, *step, c, most, t, &loaded);
		free(path);
	}
	io_names_free(name, count);
	*step = loaded ? *step : 0;
	return e;
}
