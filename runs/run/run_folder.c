#include "runs/run/run_folder.h"

#include "model/base/io.h"
#include "model/base/lease.h"
#include "model/base/stb.h"
#include "runs/run/run_checkpoint.h"
#include "runs/run/run_origin.h"
#include "runs/version.h"

#include <ctype.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

/* The record is not among them: it is replaced first, so that a run that is being cleared is never "finished". */
static const char *const run_files[] = { RUN_MODEL, RUN_CONFIG, RUN_COMMAND, RUN_LOG, RUN_TIMING, "eval-*.csv",
					 "tune-*.csv", "by_position-*.csv", "recall_grid-*.csv",
					 "calibration-*.csv", RUN_CHECKPOINTS, RUN_BROKEN_ONES };
#define RUN_FILES ((int)(sizeof run_files / sizeof run_files[0]))

static bool ours(const char *name)
{
	for (int i = 0; i < RUN_FILES; i++)
		if (!fnmatch(run_files[i], name, 0))
			return true;
	return false;
}

struct err run_folder_empty(const char *folder, bool *empty)
{
	char **name;
	int count;
	*empty = true;
	TRY(io_list(folder, &name, &count));
	for (int i = 0; i < count; i++)
		*empty &= !strcmp(name[i], LEASE_FILE) || !fnmatch(IO_TEMPORARY, name[i], 0);
	io_names_free(name, count);
	return OK;
}

struct err run_folder_check(const char *path, bool force)
{
	bool empty;
	if (!*path)
		return err_usage("Give a new folder, as in --out=runs/out/NAME.", "--out: a folder is needed");
	if (!io_exists(path))
		return OK;
	if (!io_is_folder(path))
		return err_usage("Give a folder that does not exist yet.", "%s: is a file", path);
	TRY(run_folder_empty(path, &empty));
	if (empty)
		return OK;
	const char *status = run_folder_status(path);
	if (force && (!strcmp(status, "absent") || !strcmp(status, "a study")))
		return err_usage("Give another --out: runs alone are replaced or continued.",
				 "%s: holds other things than a run (there is no " RUN_RECORD " of one)", path);
	if (force)
		return OK;
	return err_usage("Give another --out, --resume to continue the run that is there, or --force to replace it.",
			 "%s: is not empty", path);
}

static struct err remove_file(const char *folder, const char *name)
{
	char *path = io_join(folder, name);
	struct err e = io_remove(path);
	free(path);
	return e;
}

/* Removes a run's files, and no others. The config first: without it nobody goes on with what is left of the others. */
static struct err clear(const char *folder)
{
	char **name;
	int count;
	TRY(io_list(folder, &name, &count));
	struct err e = remove_file(folder, RUN_CONFIG);
	for (int i = 0; i < count && !e.code; i++)
		if (ours(name[i]))
			e = remove_file(folder, name[i]);
	io_names_free(name, count);
	return e;
}

static struct err write_file(const char *folder, const char *name, const char *text)
{
	char *path = io_join(folder, name);
	struct err e = io_write(path, text, strlen(text));
	free(path);
	return e;
}

static json_t *new_record(const struct config *c)
{
	char identity[IDENTITY_TEXT], started[32];
	time_t now = time(NULL);
	strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	json_t *record = version_json();
	json_object_set_new(record, "status", json_string("running"));
	json_object_set_new(record, "started", json_string(started));
	json_object_set_new(record, "identity", json_string(config_identity(c, LIST_TRAINING, identity)));
	json_object_set_new(record, "evaluations", json_object());
	return record;
}

struct err run_folder_create(const char *path, const struct config *c, const char *command_line, bool force)
{
	TRY(run_folder_check(path, force));
	TRY(io_make_folder(path));
	json_t *record = new_record(c);
	struct err e = run_record_write(path, record);
	json_decref(record);
	TRY(e);
	TRY(clear(path));
	struct text_builder text = { 0 };
	text_add(&text, "%s\n", command_line);
	e = write_file(path, RUN_COMMAND, text.data);
	if (!e.code) {
		text.size = 0;
		config_print(c, LIST_TRAINING, &text);
		e = write_file(path, RUN_CONFIG, text.data);
	}
	text_builder_free(&text);
	return e;
}

/* The folder of a run named by its own path or by that of its model; free() it. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!io_exists(path) || io_is_folder(path))
		return strdup(path);
	return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

static struct err check_finished(const char *folder, const char *path)
{
	const char *status;
	TRY(run_record_status(folder, &status));
	if (!io_exists(path))
		return err_usage("`ropewalk train --out=DIR` makes a run.", "%s: no such folder", path);
	if (!strcmp(status, "absent"))
		return err_usage("Give the folder that `ropewalk train` made, or the model.safetensors in it.",
				 "%s: not a run: %s has no %s", path, folder, RUN_RECORD);
	if (!strcmp(status, "a study"))
		return err_usage("Name one of the runs' folders in it.", "%s: is a study, not a run", folder);
	if (strcmp(status, "finished"))
		return err_usage(!strcmp(status, "diverged") ? "Train it again with --force." :
				 "Wait until it has finished, or continue it with --resume: the file `command` in it says how.",
				 "%s: has no finished model: the run's status is %s", folder, status);
	return OK;
}

struct err run_folder_config(const char *folder, struct config *c)
{
	struct scope scope = { .command = "a run", .lists = LIST_TRAINING };
	struct config run;
	config_init(&run, &scope, NULL);
	char *path = io_join(folder, RUN_CONFIG);
	struct err e = config_read(&run, path);
	free(path);
	TRY(e);
	c->model = run.model;
	c->data = run.data;
	c->train = run.train;
	return OK;
}

struct err run_folder_begun(const char *folder, bool *begun)
{
	static const char *const those[] = { "running", "stopped", "failed", "finished" };
	const char *status;
	*begun = false;
	TRY(run_record_status(folder, &status));
	char *config = io_join(folder, RUN_CONFIG);
	for (int i = 0; i < 4; i++)
		*begun |= !strcmp(status, those[i]);
	*begun = *begun && io_exists(config);
	free(config);
	return OK;
}

/* The parts of the versions that can change a bit of the results. */
static bool same_program(const json_t *a, const json_t *b)
{
	static const char *const part[] = { "commit", "compiler", "flags", "blas" };
	for (int i = 0; i < 4; i++)
		if (!json_equal(json_object_get(a, part[i]), json_object_get(b, part[i])))
			return false;
	return true;
}

struct err run_folder_resume(const char *folder, const struct config *c)
{
	static const char hint[] = "Resume with the options it began with, or train again with --force.";
	struct config theirs = { .scope = c->scope };
	json_t *record;
	TRY(run_folder_config(folder, &theirs));
	TRY(origin_compare(c, &theirs, folder, hint));
	TRY(run_record_read(folder, &record));
	json_t *now = version_json();
	if (!same_program(record, now)) {
		fprintf(stderr, "warning: %s: goes on with another version of the program than it began with: the last "
				"bits may differ\n", folder);
		json_object_set(record, "resumed_by", now);
	}
	json_object_set_new(record, "status", json_string("running"));
	json_object_del(record, "error");
	struct err e = run_record_write(folder, record);
	json_decref(record);
	json_decref(now);
	return e;
}

struct err run_folder_open(const char *path, struct config *c, char **folder)
{
	char *found = folder_of(path);
	struct err e = check_finished(found, path);
	if (!e.code)
		e = run_folder_config(found, c);
	*folder = e.code ? NULL : found;
	if (e.code)
		free(found);
	return e;
}

struct err run_folder_gone(struct err e, const char *folder)
{
	if ((e.code != ERR_FAILED && e.code != ERR_USAGE) || io_is_folder(folder))
		return e;
	return err_failed("Put it back or start again: what was saved in it is used.",
			  "%.300s: has gone: it was moved or removed while the program was at work in it", folder);
}

/* Bytes; as JSON it takes a hundred times as much memory. */
#define RECORD_MOST (1 << 24)

struct err run_record_read(const char *folder, json_t **record)
{
	char *path = io_join(folder, RUN_RECORD), *text = NULL;
	size_t size;
	json_error_t error;
	struct err e = io_read(path, &text, &size);
	if (!e.code && size > RECORD_MOST)
		e = err_usage("Train the run again with --force.", "%s: damaged: it has %zu bytes, a record at most %d",
			      path, size, RECORD_MOST);
	*record = e.code ? NULL : json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
	if (!e.code && !json_is_object(*record))
		e = err_usage("Train the run again with --force.", "%s: damaged: line %d: %s", path,
			       *record ? 1 : error.line, *record ? "not an object" : error.text);
	if (e.code) {
		json_decref(*record);
		*record = NULL;
	}
	free(text);
	free(path);
	return e;
}

struct err run_record_write(const char *folder, const json_t *record)
{
	char *text = json_dumps(record, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
	BUG_IF(!text, "a record cannot be written as JSON");
	struct text_builder b = { 0 };
	text_add(&b, "%s\n", text);
	struct err e = write_file(folder, RUN_RECORD, b.data);
	text_builder_free(&b);
	free(text);
	return e;
}

struct err run_record_update(const char *folder, json_t *more)
{
	json_t *record;
	struct err e = run_record_read(folder, &record);
	if (!e.code) {
		json_object_update(record, more);
		e = run_record_write(folder, record);
		json_decref(record);
	}
	json_decref(more);
	return e;
}

struct err run_record_status(const char *folder, const char **status)
{
	json_t *record;
	char *path = io_join(folder, RUN_RECORD);
	bool there = io_exists(path);
	free(path);
	*status = there ? "damaged" : "absent";
	if (!there)
		return OK;
	TRY(run_record_read(folder, &record));
	const char *text = json_string_value(json_object_get(record, "status"));
	if (text)
		*status = text_keep(text);
	json_decref(record);
	return OK;
}

const char *run_folder_status(const char *folder)
{
	const char *status;
	struct err e = run_record_status(folder, &status);
	return e.code ? "damaged" : status;
}

/* "." and ".." say nothing of the folder's name. */
static bool ends_in_dots(const char *path)
{
	const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
	return !strcmp(last, ".") || !strcmp(last, "..");
}

const char *run_folder_name(const char *path)
{
	char *resolved = ends_in_dots(path) ? realpath(path, NULL) : NULL;
	path = resolved ? resolved : path;
	size_t length = strlen(path);
	while (length > 1 && path[length - 1] == '/')
		length--;
	size_t start = length;
	while (start && path[start - 1] != '/')
		start--;
	char *name = strndup(path + start, length - start);
	const char *kept = text_keep(name);
	free(name);
	free(resolved);
	return kept;
}

void run_folder_method(const char *label, struct text_builder *b)
{
	bool dash = false;
	for (const char *s = label; *s; s++) {
		bool plain = (*s & 0x80) == 0 && (isalnum((unsigned char)*s) || *s == '_' || *s == '.');
		if (plain)
			text_add(b, "%c", *s);
		else if (!dash)
			text_add(b, "-");
		dash = !plain;
	}
	text_add(b, "-%08" PRIx32, (uint32_t)XXH3_64bits(label, strlen(label)));
}

static char *csv_path(const char *folder, const char *what, const struct eval_options *eval, const char *label,
		      const char *end)
{
	struct text_builder name = { 0 }, protocol = { 0 };
	text_add(&name, "%s-", what);
	run_folder_method(label, &name);
	if (eval->kv != EVAL_KV_OFF) {
		text_add(&name, "-kv-");
		eval_kv_name(eval->kv, &name);
	}
	protocol_name(&eval->protocol, &protocol);
	if (protocol.size) {
		text_add(&name, "-protocol-");
		run_folder_method(protocol.data, &name);
	}
	text_add(&name, "%s", end);
	char *path = io_join(folder, name.data);
	text_builder_free(&name);
	text_builder_free(&protocol);
	return path;
}

char *run_folder_csv(const char *folder, const struct eval_options *eval, const char *label, bool sequences)
{
	return csv_path(folder, eval->stream == EVAL_TUNE ? "tune" : "eval", eval, label,
			sequences ? "-sequences.csv" : ".csv");
}

char *run_folder_measure(const char *folder, const struct eval_options *eval, const char *label, enum measure_kind m)
{
	return csv_path(folder, measure_name(m), eval, label, ".csv");
}

static struct err add_searched(const char *path, const char ***label)
{
	struct row *rows = NULL;
	struct err e = rows_read(path, &rows);
	for (ptrdiff_t i = 0; i < arrlen(rows); i++) {
		ptrdiff_t at = 0;
		while (at < arrlen(*label) && strcmp((*label)[at], rows[i].scaling) < 0)
			at++;
		if (at == arrlen(*label) || strcmp((*label)[at], rows[i].scaling))
			arrins(*label, (size_t)at, rows[i].scaling);
	}
	arrfree(rows);
	return e;
}

struct err run_folder_searched(const char *folder, const char ***label)
{
	char **name;
	int count;
	if (!io_exists(folder))
		return OK;
	TRY(io_list(folder, &name, &count));
	struct err e = OK;
	for (int i = 0; i < count && !e.code; i++) {
		if (fnmatch("tune-*.csv", name[i], 0) || !fnmatch("*-sequences.csv", name[i], 0))
			continue;
		char *path = io_join(folder, name[i]);
		e = add_searched(path, label);
		free(path);
	}
	io_names_free(name, count);
	return e;
}

const char *label_of(const struct method *m)
{
	struct text_builder b = { 0 };
	method_label(m, &b);
	const char *kept = text_keep(b.data);
	text_builder_free(&b);
	return kept;
}
