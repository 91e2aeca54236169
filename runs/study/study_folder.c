#include "runs/study/study_folder.h"

#include "model/base/io.h"
#include "model/base/lease.h"
#include "model/base/stb.h"
#include "runs/run/run_folder.h"
#include "runs/stop.h"
#include "runs/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The name of the entry that ends in "-" and these digits, the first by alphabet; NULL if there is none. free() it. */
static struct err entry_with(const char *folder, const char *digits, char **found)
{
	char **name;
	int count;
	*found = NULL;
	if (!io_exists(folder))
		return OK;
	TRY(io_list(folder, &name, &count));
	for (int i = 0; i < count && !*found; i++) {
		size_t n = strlen(name[i]);
		if (n >= 9 && name[i][n - 9] == '-' && !strncmp(name[i] + n - 8, digits, 8))
			*found = strdup(name[i]);
	}
	io_names_free(name, count);
	return OK;
}

static struct err read_status(const char *path, enum cell_status *out)
{
	const char *status;
	struct err e = run_record_status(path, &status);
	if (e.code == ERR_USAGE)
		snprintf(e.hint, sizeof e.hint, "Repair it, or move the folder away: the model is then trained anew.");
	*out = !strcmp(status, "finished") ? CELL_FINISHED :
	       !strcmp(status, "diverged") ? CELL_DIVERGED : CELL_UNFINISHED;
	return e;
}

static struct err check_identity(const char *path, const struct cell *c)
{
	static const char hint[] = "Move the folder away, or choose another --out.";
	struct config config;
	char identity[IDENTITY_TEXT];
	config_init(&config, &study_scope, NULL);
	char *file = io_join(path, RUN_CONFIG);
	struct err e = config_read(&config, file);
	if (!e.code)
		e = config_finish(&config, false);
	if (e.code == ERR_USAGE)
		snprintf(e.hint, sizeof e.hint, "Repair it, or move the folder away: the model is then trained anew.");
	if (!e.code && strcmp(config_identity(&config, LIST_TRAINING, identity), c->identity))
		e = err_failed(hint, "%s: these are not the options of %s: it is the folder of another model", file,
			       c->name);
	free(file);
	return e;
}

struct err study_folder_find(const char *folder, const struct cell *c, char **path, enum cell_status *status)
{
	char *entry;
	*path = NULL;
	TRY(entry_with(folder, c->identity, &entry));
	*path = io_join(folder, entry ? entry : c->name);
	*status = CELL_ABSENT;
	struct err e = entry ? read_status(*path, status) : OK;
	free(entry);
	if (!e.code)
		e = *status >= CELL_FINISHED ? check_identity(*path, c) : OK;
	if (e.code) {
		free(*path);
		*path = NULL;
	}
	return e;
}

const char *study_folder_file(const char *folder)
{
	char *path = io_join(folder, STUDY_FILE);
	const char *kept = text_keep(path);
	free(path);
	return kept;
}

static bool has_file(const char *folder, const char *name)
{
	char *path = io_join(folder, name);
	bool there = io_exists(path) && !io_is_folder(path);
	free(path);
	return there;
}

static bool empty_file(const char *folder, const char *name)
{
	char *path = io_join(folder, name), *text = NULL;
	size_t size = 0;
	struct err e = io_read(path, &text, &size);
	free(text);
	free(path);
	return !e.code && !size;
}

struct err study_folder_check(const char *folder)
{
	static const char hint[] = "Choose another folder with --out.";
	if (!io_exists(folder))
		return OK;
	if (!io_is_folder(folder))
		return err_usage(hint, "%s: not a folder", folder);
	/* In this order: another process may begin the study in between, with this file first. */
	bool empty;
	TRY(run_folder_empty(folder, &empty));
	if (empty || has_file(folder, STUDY_FILE))
		return OK;
	return err_usage(hint, "%s: holds other things than a study", folder);
}

static bool has_cell(const struct grid *g, const struct cell *c)
{
	for (int i = 0; i < arrlen(g->cell); i++)
		if (!strcmp(g->cell[i].identity, c->identity))
			return true;
	return false;
}

/* How many of the folder's own models are there; -1 if the other grid has one of them. */
static struct err models_lost(const char *folder, const struct grid *own, const struct grid *other, int *lost)
{
	*lost = 0;
	for (int i = 0; i < arrlen(own->cell); i++) {
		char *entry;
		if (has_cell(other, &own->cell[i])) {
			*lost = -1;
			return OK;
		}
		TRY(entry_with(folder, own->cell[i].identity, &entry));
		*lost += entry != NULL;
		free(entry);
	}
	return OK;
}

struct err study_folder_continues(const char *folder, const struct grid *g)
{
	static const char hint[] = "Give another --out, or --force to make this the folder's study (the runs stay).";
	struct study s;
	struct grid own;
	if (!has_file(folder, STUDY_FILE) || empty_file(folder, STUDY_FILE))
		return OK;
	struct err e = study_folder_open(folder, &s, &own);
	if (e.code) {
		snprintf(e.hint, sizeof e.hint, "%s", hint);
		return e;
	}
	int lost;
	e = models_lost(folder, &own, g, &lost);
	grid_free(&own);
	study_free(&s);
	if (e.code || lost <= 0)
		return e;
	return err_usage(hint, "%s: holds another study: none of its %d models is one of this study's", folder, lost);
}

static struct err write_text(const char *folder, const char *name, const char *text)
{
	char *path = io_join(folder, name);
	struct err e = io_write(path, text, strlen(text));
	free(path);
	return e;
}

/* For as long as a small file takes: whoever has it is soon done with it. */
static struct err take_turn(const char *folder, struct lease **lease)
{
	char holder[LEASE_HOLDER];
	for (;;) {
		TRY(lease_try(folder, lease, holder));
		if (*lease)
			return OK;
		TRY(stop_error());
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	}
}

struct err study_folder_write(const char *folder, const struct study *s, const char *command_line)
{
	struct text_builder study = { 0 }, command = { 0 };
	/* Never empty, so that a file cut off is told from a study of defaults. */
	text_add(&study, "# See runs/README.md.\n");
	study_print(s, &study);
	text_add(&command, "%s\n", command_line);
	struct lease *lease = NULL;
	struct err e = io_make_folder(folder);
	if (!e.code)
		e = take_turn(folder, &lease);
	if (!e.code)
		e = write_text(folder, STUDY_FILE, study.data);
	if (!e.code)
		e = write_text(folder, STUDY_COMMAND, command.data);
	lease_release(lease);
	text_builder_free(&study);
	text_builder_free(&command);
	return e;
}

struct err study_folder_open(const char *folder, struct study *s, struct grid *g)
{
	if (!has_file(folder, STUDY_FILE))
		return err_usage("Name a folder that `ropewalk study` made, as runs/out/scaling.",
				 "%s: not a study's folder: there is no `" STUDY_FILE "` in it", folder);
	if (empty_file(folder, STUDY_FILE))
		return err_usage("`ropewalk study FILE --out=FOLDER` puts it back; finished models stay.",
				 "%s/" STUDY_FILE ": is empty", folder);
	char *path = io_join(folder, STUDY_FILE);
	struct err e = study_read(path, s);
	free(path);
	if (e.code)
		return e;
	e = grid_build(s, g);
	if (e.code)
		study_free(s);
	return e;
}

const char *study_folder_command(const char *folder)
{
	char *path = io_join(folder, STUDY_COMMAND), *text = NULL;
	size_t size;
	struct err e = io_read(path, &text, &size);
	free(path);
	if (e.code)
		return "";
	text[strcspn(text, "\n")] = '\0';
	const char *kept = text_keep(text);
	free(text);
	return kept;
}

double study_folder_seconds(const char *folder)
{
	json_t *record = NULL;
	if (run_record_read(folder, &record).code)
		return 0;
	double seconds = json_number_value(json_object_get(record, "seconds"));
	json_decref(record);
	return seconds;
}

/* The record with its seconds so far, as the program that works on it now. */
static json_t *renewed_record(const char *folder)
{
	json_t *old = NULL, *record = version_json();
	run_record_read(folder, &old);
	json_t *seconds = json_object_get(old, "seconds"), *merged = json_object_get(old, "merged");
	json_object_set_new(record, "status", json_string("a study"));
	json_object_set_new(record, "seconds", json_real(json_number_value(seconds)));
	if (json_is_object(merged))
		json_object_set(record, "merged", merged);
	json_decref(old);
	return record;
}

static void add_seconds(json_t *record, double seconds)
{
	seconds += json_number_value(json_object_get(record, "seconds"));
	json_object_set_new(record, "seconds", json_real(seconds));
}

struct err study_folder_add_seconds(const char *folder, double seconds)
{
	struct lease *lease;
	TRY(take_turn(folder, &lease));
	json_t *record = renewed_record(folder);
	add_seconds(record, seconds);
	struct err e = run_record_write(folder, record);
	json_decref(record);
	lease_release(lease);
	return e;
}

struct err study_folder_add_merged(const char *folder, const char *from, double seconds)
{
	struct lease *lease;
	TRY(take_turn(folder, &lease));
	json_t *record = renewed_record(folder), *merged = json_object_get(record, "merged");
	if (!merged) {
		merged = json_object();
		json_object_set_new(record, "merged", merged);
	}
	add_seconds(record, seconds - json_number_value(json_object_get(merged, from)));
	json_object_set_new(merged, from, json_real(seconds));
	struct err e = run_record_write(folder, record);
	json_decref(record);
	lease_release(lease);
	return e;
}
