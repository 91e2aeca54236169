#include "runs/study/merge_cell.h"

#include "model/base/io.h"
#include "model/base/lease.h"
#include "model/base/stb.h"
#include "runs/run/run_checkpoint.h"
#include "runs/run/run_folder.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* What becomes of a run's file. What is in none of the patterns stays where it is; the record comes last. */
enum kind {
	KIND_NONE,
	KIND_SAME,  /* its bytes are the job's alone: the same wherever it was done */
	KIND_ROWS,  /* the same, but one may have more lines than another */
	KIND_FIRST, /* it has clocks or paths in it: the first is kept */
};
static const struct {
	const char *pattern;
	enum kind kind;
} kinds[] = {
	{ RUN_MODEL, KIND_SAME },    { RUN_LOG, KIND_SAME },	   { "*.csv", KIND_ROWS },
	{ RUN_CONFIG, KIND_FIRST },  { RUN_COMMAND, KIND_FIRST },  { RUN_TIMING, KIND_FIRST },
	{ RUN_CHECKPOINTS, KIND_FIRST },
};

static enum kind kind_of(const char *name)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!fnmatch(kinds[i].pattern, name, 0))
			return kinds[i].kind;
	return KIND_NONE;
}

/* ---- Files ---- */

struct file {
	char *path, *data; /* data NULL: not there */
	size_t size;
};

static void file_free(struct file *f)
{
	free(f->path);
	free(f->data);
}

static struct err file_read(const char *folder, const char *name, struct file *out)
{
	*out = (struct file){ .path = io_join(folder, name) };
	return io_exists(out->path) ? io_read(out->path, &out->data, &out->size) : OK;
}

static bool same_bytes(const struct file *a, const struct file *b)
{
	return a->size == b->size && !memcmp(a->data, b->data, a->size);
}

/* Are all lines of `a` in `b`? */
static bool lines_within(const struct file *a, const struct file *b)
{
	struct {
		char *key;
		int value;
	} *lines = NULL;
	char *copy = strdup(b->data), *rest = NULL;
	BUG_IF(!copy, "no memory for a file");
	sh_new_arena(lines);
	for (char *l = strtok_r(copy, "\n", &rest); l; l = strtok_r(NULL, "\n", &rest))
		shput(lines, l, 1);
	free(copy);
	copy = strdup(a->data);
	BUG_IF(!copy, "no memory for a file");
	bool within = true;
	for (char *l = strtok_r(copy, "\n", &rest); l && within; l = strtok_r(NULL, "\n", &rest))
		within = shgeti(lines, l) >= 0;
	free(copy);
	shfree(lines);
	return within;
}

static struct err differ(const struct file *a, const struct file *b)
{
	return err_failed("Two machines have computed the model, with other last bits (record.json names program, BLAS "
			  "and core of each). Move one of the two folders away.",
			  "%.250s and %.250s differ", a->path, b->path);
}

/* Of two files that are there, the one to keep. */
static struct err better(enum kind kind, const struct file *a, const struct file *b, bool *second)
{
	*second = false;
	if (kind == KIND_FIRST || same_bytes(a, b))
		return OK;
	if (kind == KIND_SAME)
		return differ(a, b);
	if (lines_within(b, a))
		return OK;
	*second = lines_within(a, b);
	return *second ? OK : differ(a, b);
}

/* ---- A cell in several folders ---- */

/* Those of the folders in which the cell has come to its end: paths of the run, stb_ds. */
static struct err ended(const struct cell *c, const char *const *from, int count, char ***path)
{
	enum cell_status status, first = CELL_ABSENT;
	*path = NULL;
	for (int i = 0; i < count; i++) {
		char *found;
		TRY(study_folder_find(from[i], c, &found, &status));
		if (status < CELL_FINISHED) {
			free(found);
			continue;
		}
		arrput(*path, found);
		if (first && status != first)
			return err_failed("Move the folder of the one that is wrong away.", "%.250s and %.250s differ: "
					  "one has diverged", (*path)[0], found);
		first = status;
	}
	return OK;
}

static void paths_free(char **path)
{
	for (int i = 0; i < arrlen(path); i++)
		free(path[i]);
	arrfree(path);
}

/* The file of this name to keep; its data is NULL where none has it. */
static struct err best_file(char **path, const char *name, struct file *best)
{
	bool second;
	*best = (struct file){ 0 };
	for (int i = 0; i < arrlen(path); i++) {
		struct file next;
		struct err e = file_read(path[i], name, &next);
		second = !best->data && next.data;
		if (!e.code && best->data && next.data)
			e = better(kind_of(name), best, &next, &second);
		file_free(second ? best : &next);
		if (second)
			*best = next;
		TRY(e);
	}
	return OK;
}

/* Calls for each name of a run's file in the folders, each once. */
typedef struct err file_action(char **path, const char *name, const char *into);

static struct err each_name(char **path, int which, file_action *action, const char *into)
{
	char **name;
	int count;
	TRY(io_list(path[which], &name, &count));
	struct err e = OK;
	for (int i = 0; i < count && !e.code; i++) {
		bool seen = false;
		for (int j = 0; j < which && !seen; j++) {
			char *earlier = io_join(path[j], name[i]);
			seen = io_exists(earlier);
			free(earlier);
		}
		/* Of checkpoints and the like the first folder's are enough. */
		enum kind kind = kind_of(name[i]);
		if (kind != KIND_NONE && !seen && !(kind == KIND_FIRST && which))
			e = action(path, name[i], into);
	}
	io_names_free(name, count);
	return e;
}

static struct err each_file(char **path, file_action *action, const char *into)
{
	for (int i = 0; i < arrlen(path); i++)
		TRY(each_name(path, i, action, into));
	return OK;
}

static struct err check_file(char **path, const char *name, const char *into)
{
	struct file best;
	(void)into;
	struct err e = best_file(path, name, &best);
	file_free(&best);
	return e;
}

/* Of a run that has finished one folder at least has the weights. */
static struct err check_model(char **path)
{
	bool there = !arrlen(path) || strcmp(run_folder_status(path[0]), "finished") != 0;
	for (int i = 0; i < arrlen(path) && !there; i++) {
		char *model = io_join(path[i], RUN_MODEL);
		there = io_exists(model);
		free(model);
	}
	if (there)
		return OK;
	return err_failed("Put it back, or move the folder away: the model is then missing, and can be trained again.",
			  "%s/" RUN_MODEL ": is missing, though the run has finished", path[0]);
}

struct err merge_cell_check(const struct cell *c, const char *const *from, int count)
{
	char **path;
	struct err e = ended(c, from, count, &path);
	if (!e.code)
		e = check_model(path);
	if (!e.code)
		e = each_file(path, check_file, NULL);
	paths_free(path);
	return e;
}

static struct err copy_file(char **path, const char *name, const char *into)
{
	struct file best, there = { 0 };
	TRY(best_file(path, name, &best));
	struct err e = file_read(into, name, &there);
	if (!e.code && best.data && !(there.data && same_bytes(&there, &best)))
		e = io_write(there.path, best.data, best.size);
	file_free(&there);
	file_free(&best);
	return e;
}

/* The first's record, and what the others say of evaluations that it does not have. */
static struct err copy_record(char **path, const char *into)
{
	static const char *const member[] = { "evaluations", "searches" };
	json_t *record, *other;
	TRY(run_record_read(path[0], &record));
	struct err e = OK;
	for (int i = 1; i < arrlen(path) && !e.code; i++) {
		e = run_record_read(path[i], &other);
		for (int m = 0; m < 2 && !e.code; m++) {
			json_t *more = json_object_get(other, member[m]), *mine = json_object_get(record, member[m]);
			if (mine)
				json_object_update_missing(mine, more);
			else if (more)
				json_object_set(record, member[m], more);
		}
		json_decref(e.code ? NULL : other);
	}
	if (!e.code)
		e = run_record_write(into, record);
	json_decref(record);
	return e;
}

static struct err copy_locked(char **path, const char *into)
{
	struct lease *lease;
	TRY(io_make_folder(into));
	TRY(lease_take(into, &lease));
	struct err e = each_file(path, copy_file, into);
	if (!e.code)
		e = copy_record(path, into);
	lease_release(lease);
	return e;
}

struct err merge_cell(const struct cell *c, const char *const *from, int count, const char *into)
{
	char **path, *found = NULL;
	enum cell_status status = CELL_ABSENT;
	struct err e = ended(c, from, count, &path);
	if (!e.code && arrlen(path))
		e = study_folder_find(into, c, &found, &status);
	if (!e.code && arrlen(path)) {
		char *target = status ? strdup(found) : io_join(into, run_folder_name(path[0]));
		e = copy_locked(path, target);
		free(target);
	}
	free(found);
	paths_free(path);
	return e;
}
