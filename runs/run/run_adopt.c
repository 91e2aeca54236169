#include "runs/run/run_adopt.h"

#include "model/base/io.h"
#include "model/base/lease.h"
#include "runs/run/run_folder.h"
#include "runs/run/run_model.h"
#include "runs/run/run_train.h"

#include <stdlib.h>
#include <string.h>

/* What a finished run has to give. */
struct source {
	const char *folder;
	struct lease *lock;
	struct model model;
	json_t *record;
	struct file {
		const char *name;
		char *data;
		size_t size;
	} log[2];
};

static struct err check_source(const struct config *c, const struct config *theirs, const struct source *s)
{
	char one[IDENTITY_TEXT], other[IDENTITY_TEXT];
	if (strcmp(config_training_identity(c, one), config_training_identity(theirs, other)))
		return err_failed(NULL, "%s: trained otherwise", s->folder);
	const char *made_with = json_string_value(json_object_get(s->record, "real"));
	if (!made_with || strcmp(made_with, REAL_NAME))
		return err_failed(NULL, "%s: trained in %s, this is %s", s->folder, made_with ? made_with : "?",
				  REAL_NAME);
	return OK;
}

static struct err read_source(const struct config *c, struct source *s)
{
	struct config theirs = { .scope = c->scope };
	char *folder;
	TRY(run_folder_open(s->folder, &theirs, &folder));
	free(folder);
	TRY(run_record_read(s->folder, &s->record));
	TRY(check_source(c, &theirs, s));
	for (int i = 0; i < 2 && c->train.steps; i++) {
		char *path = io_join(s->folder, s->log[i].name);
		struct err e = io_read(path, &s->log[i].data, &s->log[i].size);
		free(path);
		TRY(e);
	}
	return run_model_read(s->folder, &theirs, &s->model);
}

static void source_close(struct source *s)
{
	model_close(&s->model);
	json_decref(s->record);
	free(s->log[0].data);
	free(s->log[1].data);
	lease_release(s->lock);
}

/* Locked, so that nobody trains it anew while it is copied. */
static struct err source_open(const char *folder, const struct config *c, struct source *s)
{
	*s = (struct source){ .folder = folder, .log = { { .name = RUN_LOG }, { .name = RUN_TIMING } } };
	struct err e = lease_take(folder, &s->lock);
	if (!e.code)
		e = read_source(c, s);
	if (e.code)
		source_close(s);
	return e;
}

/* All the source's record says of its training, under the names of this run. */
static struct err record_end(const char *path, const struct source *s)
{
	json_t *mine, *record = json_copy(s->record);
	struct err e = run_record_read(path, &mine);
	if (!e.code) {
		json_object_set(record, "identity", json_object_get(mine, "identity"));
		json_object_set(record, "started", json_object_get(mine, "started"));
		json_object_set_new(record, "evaluations", json_object());
		json_object_del(record, "searches");
		json_object_set_new(record, "weights_of", json_string(run_folder_name(s->folder)));
		json_object_set_new(record, "wall_seconds", json_real(0));
		e = run_record_write(path, record);
		json_decref(mine);
	}
	json_decref(record);
	return e;
}

static struct err write_run(const char *path, const struct config *c, const char *command_line, struct source *s)
{
	TRY(run_folder_create(path, c, command_line, c->run.force));
	for (int i = 0; i < 2 && c->train.steps; i++) {
		char *file = io_join(path, s->log[i].name);
		struct err e = io_write(file, s->log[i].data, s->log[i].size);
		free(file);
		TRY(e);
	}
	s->model.options = c->model;
	TRY(run_model_write(path, c, &s->model));
	return record_end(path, s);
}

static struct err write_locked(const char *path, const struct config *c, const char *command_line, struct source *s)
{
	struct lease *lock;
	/* What was fine-tuned can be taken over as it is. */
	TRY(run_train_check_from(c, NULL));
	TRY(run_folder_check(path, c->run.force));
	TRY(run_model_fits(path, run_model_space(c, s->model.layout.size)));
	TRY(io_make_folder(path));
	TRY(lease_take(path, &lock));
	struct err e = write_run(path, c, command_line, s);
	if (e.code)
		run_record_update(path, json_pack("{s:s, s:s}", "status", "failed", "error", e.text));
	lease_release(lock);
	return run_folder_gone(e, path);
}

struct err run_adopt(const char *path, const struct config *c, const char *command_line, const char *from,
		     bool *adopted, struct err *why)
{
	struct source s;
	struct err e = source_open(from, c, &s);
	*why = e;
	*adopted = !e.code;
	if (e.code)
		return OK;
	e = write_locked(path, c, command_line, &s);
	source_close(&s);
	return e;
}
