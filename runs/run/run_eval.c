#include "runs/run/run_eval.h"

#include "model/base/io.h"
#include "model/base/lease.h"
#include "model/base/stb.h"
#include "runs/progress.h"
#include "runs/run/run_examine.h"
#include "runs/run/run_folder.h"
#include "runs/run/run_model.h"
#include "runs/version.h"
#include "train/course.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What one call has computed so far, and the model it is computed with. */
struct work {
	const struct lease *lease;
	struct model model;
	struct done {
		int scaling, length;
		struct eval_result result;
	} *done; /* stb_ds array */
};

/* One scaling's files while they are worked on. */
struct table {
	const char *label;
	char *path, *sequences_path;
	struct row *rows;                /* stb_ds arrays */
	struct sequence_row *sequences;
	int computed, reused;
	double seconds;
};

const char *run_protocol(const struct config *c)
{
	struct text_builder b = { 0 };
	method_identity(&c->data.task, &b);
	text_add(&b, "; stream ");
	config_value(c, "stream", &b);
	if (c->eval.kv != EVAL_KV_OFF) {
		text_add(&b, "; kv ");
		eval_kv_name(c->eval.kv, &b);
	}
	text_add(&b, "; every scored token of whole sequences that do not overlap; targets by the task");
	const char *kept = text_keep(b.data);
	text_builder_free(&b);
	return kept;
}

static struct eval_request request_of(const struct run_evaluation *e, const struct model *m, int scaling, int length)
{
	return (struct eval_request){
		.model = m,
		.data = &e->config->data,
		.scaling = &e->scaling[scaling],
		.length = e->length[length],
		.sequences = (int)e->config->eval.sequences,
		.eval_seed = (uint64_t)e->config->eval.eval_seed,
		.tune = e->config->eval.stream == EVAL_TUNE,
		.kv = (int)e->config->eval.kv,
	};
}

static struct err check_one(const struct run_evaluation *e, const struct model *m, int scaling, int length)
{
	struct eval_request request = request_of(e, m, scaling, length);
	return err_at(eval_check(&request), "%s at length %d", label_of(&e->scaling[scaling]), e->length[length]);
}

/* A model that is laid out but has no values, for checks. */
static struct err outline(const struct config *c, struct model *m)
{
	*m = (struct model){ .options = course_model(&c->model, &c->train, c->train.steps),
			     .V = task_of(&c->data.task)->vocabulary(&c->data.task) };
	return layout_build(&m->options, m->V, &m->layout);
}

/* What a scored sequence takes in a table's rows and as text, with room to grow, while a table is made. */
#define SEQUENCE_BYTES (2 * sizeof(struct sequence_row) + 256)

/* Rows of all lengths of a table are there at once, and of all scalings what is compared. */
static struct err rows_fit(const struct run_evaluation *e)
{
	const char *ignored[EVAL_GROUPS];
	size_t groups = (size_t)eval_group_names(task_of(&e->config->data.task), ignored);
	size_t row = SEQUENCE_BYTES + (size_t)e->scalings * sizeof(struct eval_tally);
	struct arena all = { 0 };
	char need[32], have[MEMORY_AVAILABLE_TEXT];
	arena_take(&all, (size_t)e->config->eval.sequences * groups * (size_t)e->lengths, row);
	if (all.used <= memory_available())
		return OK;
	return err_usage("Choose fewer --sequences.",
			 "the tables of %" PRId64 " sequences at %d length%s need %s, and %s",
			 e->config->eval.sequences, e->lengths, e->lengths > 1 ? "s" : "",
			 memory_text(all.used, need), memory_available_text(have));
}

struct err run_evaluate_fits(const struct run_evaluation *e)
{
	struct model m;
	struct err error = outline(e->config, &m);
	if (!error.code)
		error = rows_fit(e);
	for (int s = 0; s < e->scalings && !error.code; s++)
		for (int l = 0; l < e->lengths && !error.code; l++) {
			struct eval_request request = request_of(e, &m, s, l);
			error = err_at(eval_check_size(&request), "%s at length %d", label_of(&e->scaling[s]),
				       e->length[l]);
		}
	layout_free(&m.layout);
	return error;
}

struct err run_evaluate_check(const struct run_evaluation *e)
{
	struct model m;
	TRY(e->skip ? rows_fit(e) : run_evaluate_fits(e));
	struct err error = outline(e->config, &m);
	for (int s = 0; s < e->scalings && !error.code && !e->skip; s++)
		for (int l = 0; l < e->lengths && !error.code; l++)
			error = check_one(e, &m, s, l);
	layout_free(&m.layout);
	return error;
}

static struct err load_model(const struct run_evaluation *e, struct model *m)
{
	return m->value ? OK : run_model_read(e->folder, e->config, m);
}

static bool wanted(const struct row *r, const struct run_evaluation *e, int length)
{
	return r->length == e->length[length] && r->eval_seed == e->config->eval.eval_seed &&
	       r->sequences == e->config->eval.sequences && row_stream(r) == e->config->eval.stream &&
	       row_kv(r) == e->config->eval.kv && !strcmp(r->task, label_of(&e->config->data.task));
}

static bool wanted_sequence(const struct sequence_row *r, const struct run_evaluation *e, int length)
{
	return r->length == e->length[length] && r->eval_seed == e->config->eval.eval_seed &&
	       r->sequences == e->config->eval.sequences && !strcmp(r->task, label_of(&e->config->data.task));
}

static bool there(const struct table *t, const struct run_evaluation *e, int length)
{
	const char *name[EVAL_GROUPS];
	int64_t groups = eval_group_names(task_of(&e->config->data.task), name), rows = 0, sequences = 0;
	for (ptrdiff_t i = 0; i < arrlen(t->rows); i++)
		rows += wanted(&t->rows[i], e, length);
	for (ptrdiff_t i = 0; i < arrlen(t->sequences); i++)
		sequences += wanted_sequence(&t->sequences[i], e, length);
	return rows == groups && sequences == groups * e->config->eval.sequences;
}

/* Takes the rows of this length out, and returns where new ones belong: behind those of lesser lengths. */
static ptrdiff_t make_place(struct table *t, const struct run_evaluation *e, int length)
{
	ptrdiff_t kept = 0, place = 0;
	for (ptrdiff_t i = 0; i < arrlen(t->rows); i++) {
		if (wanted(&t->rows[i], e, length))
			continue;
		t->rows[kept++] = t->rows[i];
		place = t->rows[i].length <= e->length[length] ? kept : place;
	}
	arrsetlen(t->rows, (size_t)kept);
	return place;
}

static ptrdiff_t make_sequence_place(struct table *t, const struct run_evaluation *e, int length)
{
	ptrdiff_t kept = 0, place = 0;
	for (ptrdiff_t i = 0; i < arrlen(t->sequences); i++) {
		if (wanted_sequence(&t->sequences[i], e, length))
			continue;
		t->sequences[kept++] = t->sequences[i];
		place = t->sequences[i].length <= e->length[length] ? kept : place;
	}
	arrsetlen(t->sequences, (size_t)kept);
	return place;
}

static void put_rows(struct table *t, const struct run_evaluation *e, int length, const struct eval_result *result)
{
	const struct config *c = e->config;
	struct row row = {
		.run = run_folder_name(e->folder),
		.encoding = label_of(&c->model.encoding),
		.scaling = t->label,
		.task = label_of(&c->data.task),
		.factor = result->factor,
		.seed = c->train.seed,
		.eval_seed = c->eval.eval_seed,
		.train_length = c->model.train_length,
		.length = e->length[length],
		.multiple = e->multiple[length],
		.sequences = c->eval.sequences,
		.protocol = run_protocol(c),
	};
	ptrdiff_t place = make_place(t, e, length);
	arrinsn(t->rows, (size_t)place, (size_t)result->groups);
	for (int g = 0; g < result->groups; g++) {
		row.group = text_keep(result->group[g]);
		row.cell = result->cell[g];
		t->rows[place + g] = row;
	}
}

static void put_sequence_rows(struct table *t, const struct run_evaluation *e, int length,
			      const struct eval_result *result)
{
	const struct config *c = e->config;
	struct sequence_row row = {
		.run = run_folder_name(e->folder),
		.scaling = t->label,
		.task = label_of(&c->data.task),
		.seed = c->train.seed,
		.eval_seed = c->eval.eval_seed,
		.length = e->length[length],
		.sequences = c->eval.sequences,
	};
	ptrdiff_t place = make_sequence_place(t, e, length), count = (ptrdiff_t)result->sequences * result->groups;
	arrinsn(t->sequences, (size_t)place, (size_t)count);
	for (int s = 0; s < result->sequences; s++)
		for (int g = 0; g < result->groups; g++) {
			ptrdiff_t i = (ptrdiff_t)s * result->groups + g;
			row.sequence = s;
			row.group = text_keep(result->group[g]);
			row.tally = result->tally[i];
			t->sequences[place + i] = row;
		}
}

/* The result of an earlier scaling that gives this length the same zones; NULL if there is none. */
static const struct done *same_done(const struct run_evaluation *e, const struct work *w, int scaling, int length)
{
	for (ptrdiff_t i = 0; i < arrlen(w->done); i++)
		if (w->done[i].length == length && scaling_same(&e->scaling[w->done[i].scaling], &e->scaling[scaling],
								&e->config->model, w->done[i].result.reach))
			return &w->done[i];
	return NULL;
}

static void put(struct table *t, const struct run_evaluation *e, int scaling, int length,
		const struct eval_result *from)
{
	struct eval_result result = *from;
	struct scaling_request request = scaling_request(&e->scaling[scaling], &e->config->model, from->reach);
	result.factor = scaling_factor(&request);
	put_rows(t, e, length, &result);
	put_sequence_rows(t, e, length, &result);
	t->computed++;
}

static struct err compute(const struct run_evaluation *e, struct work *w, struct table *t, int scaling, int length)
{
	const struct done *same = same_done(e, w, scaling, length);
	if (same) {
		put(t, e, scaling, length, &same->result);
		return OK;
	}
	TRY(load_model(e, &w->model));
	struct eval_request request = request_of(e, &w->model, scaling, length);
	struct done done = { .scaling = scaling, .length = length };
	struct progress progress;
	char what[120];
	snprintf(what, sizeof what, "eval %.40s %.40s at %d", run_folder_name(e->folder), t->label,
		 e->length[length]);
	progress_start(&progress, what);
	struct err error = eval_run(&request, progress_tokens, &progress, &done.result);
	progress_end(&progress);
	t->seconds += clock_seconds() - progress.start;
	if (!error.code)
		error = eval_result_finite(&done.result, t->label, e->length[length]);
	if (error.code) {
		eval_result_free(&done.result);
		return error;
	}
	put(t, e, scaling, length, &done.result);
	arrput(w->done, done);
	return OK;
}

/* Files that were moved here from another run. */
static struct err check_owner(const struct run_evaluation *e, const struct table *t)
{
	static const char hint[] = "Remove the file: `ropewalk eval` and `ropewalk study` make it again.";
	const struct config *c = e->config;
	const char *encoding = label_of(&c->model.encoding);
	for (ptrdiff_t i = 0; i < arrlen(t->rows); i++) {
		const struct row *r = &t->rows[i];
		if (r->seed != c->train.seed || r->train_length != c->model.train_length ||
		    strcmp(r->encoding, encoding) || strcmp(r->scaling, t->label) || row_stream(r) != c->eval.stream ||
		    row_kv(r) != c->eval.kv)
			return err_usage(hint, "%s: holds results of another run or stream: %s, scaling %s, seed "
					  "%" PRId64 ", %s", t->path, r->encoding, r->scaling, r->seed, r->protocol);
	}
	for (ptrdiff_t i = 0; i < arrlen(t->sequences); i++) {
		const struct sequence_row *r = &t->sequences[i];
		if (r->seed != c->train.seed || strcmp(r->scaling, t->label))
			return err_usage(hint, "%s: holds results of another run: scaling %s, seed %" PRId64,
					  t->sequences_path, r->scaling, r->seed);
	}
	return OK;
}

static struct err table_open(const struct run_evaluation *e, int scaling, struct table *t)
{
	*t = (struct table){ .label = label_of(&e->scaling[scaling]) };
	t->path = run_folder_csv(e->folder, &e->config->eval, t->label, false);
	t->sequences_path = run_folder_csv(e->folder, &e->config->eval, t->label, true);
	struct err error = rows_read(t->path, &t->rows);
	if (!error.code)
		error = sequence_rows_read(t->sequences_path, &t->sequences);
	if (!error.code)
		error = check_owner(e, t);
	if (!error.code || !e->force)
		return error;
	arrsetlen(t->rows, 0);
	arrsetlen(t->sequences, 0);
	return OK;
}

static void table_close(struct table *t)
{
	arrfree(t->rows);
	arrfree(t->sequences);
	free(t->path);
	free(t->sequences_path);
}

/* The record's member for evaluations of this stream. */
static const char *record_member(const struct run_evaluation *e)
{
	return e->config->eval.stream == EVAL_TUNE ? "searches" : "evaluations";
}

/* And its name there of one scaling's: its label, and how it was decoded. */
static const char *record_name(const struct run_evaluation *e, const struct table *t)
{
	struct text_builder b = { 0 };
	if (e->config->eval.kv == EVAL_KV_OFF)
		return t->label;
	text_add(&b, "%s; kv ", t->label);
	eval_kv_name(e->config->eval.kv, &b);
	const char *kept = text_keep(b.data);
	text_builder_free(&b);
	return kept;
}

static struct err record_evaluation(const struct run_evaluation *e, const struct table *t)
{
	json_t *record;
	TRY(run_record_read(e->folder, &record));
	json_t *all = json_object_get(record, record_member(e)), *one = version_json();
	double before = json_number_value(json_object_get(json_object_get(all, record_name(e, t)), "wall_seconds"));
	json_object_set_new(one, "wall_seconds", json_real(before + t->seconds));
	if (!json_is_object(all)) {
		all = json_object();
		json_object_set_new(record, record_member(e), all);
	}
	json_object_set_new(all, record_name(e, t), one);
	struct err error = run_record_write(e->folder, record);
	json_decref(record);
	return error;
}

/* Not into a folder that others have taken over meanwhile: the rows there, and its model, may be others by now. The
 * rows come last: with them the work counts as done, and the record is not looked at again. */
static struct err table_write(const struct run_evaluation *e, const struct work *w, const struct table *t)
{
	if (!t->computed)
		return OK;
	TRY(lease_check(w->lease));
	TRY(sequence_rows_write(t->sequences_path, t->sequences, (int)arrlen(t->sequences)));
	TRY(record_evaluation(e, t));
	return rows_write(t->path, t->rows, (int)arrlen(t->rows));
}

/* Numbers of another version beside ours: the reader must know. */
static void warn_of_version(const char *folder, const char *what, const json_t *made_by)
{
	const char *commit = json_string_value(json_object_get(made_by, "commit"));
	char shown[64];
	if (!commit || !strcmp(commit, version_commit()))
		return;
	text_printable(commit, shown, sizeof shown);
	fprintf(stderr, "%s: %s by commit %s; this is %s\n", folder, what, shown, version_commit());
}

static void report_reuse(const struct run_evaluation *e, const struct table *t)
{
	json_t *record;
	if (!t->reused || run_record_read(e->folder, &record).code)
		return;
	fprintf(stderr, "%s: %s: %d of %d lengths are there already (--force computes them anew)\n", e->folder,
		t->label, t->reused, e->lengths);
	warn_of_version(e->folder, "evaluated",
			json_object_get(json_object_get(record, record_member(e)), record_name(e, t)));
	json_decref(record);
}

/* What stands in the table for this length, computed if it is missing. With `skip`, nothing for what cannot be. */
static struct err fill_length(const struct run_evaluation *e, struct work *w, struct table *t, int scaling,
			      int length, struct row **rows)
{
	struct model shape;
	TRY(outline(e->config, &shape));
	struct err error = check_one(e, &shape, scaling, length);
	layout_free(&shape.layout);
	if (error.code == ERR_USAGE && e->skip) {
		fprintf(stderr, "%s: %s\n", e->folder, error.text);
		return OK;
	}
	TRY(error);
	if (!e->force && there(t, e, length))
		t->reused++;
	else
		TRY(compute(e, w, t, scaling, length));
	for (ptrdiff_t i = 0; rows && i < arrlen(t->rows); i++)
		if (wanted(&t->rows[i], e, length))
			arrput(*rows, t->rows[i]);
	return OK;
}

static struct err evaluate_scaling(const struct run_evaluation *e, struct work *w, int scaling, struct row **rows)
{
	struct table t;
	struct err error = table_open(e, scaling, &t);
	for (int l = 0; l < e->lengths && !error.code; l++)
		error = fill_length(e, w, &t, scaling, l, rows);
	if (!error.code)
		report_reuse(e, &t);
	struct err written = table_write(e, w, &t);
	table_close(&t);
	return error.code ? error : written;
}

static struct err evaluate_locked(const struct run_evaluation *e, const struct lease *lease, struct row **rows)
{
	json_t *record;
	TRY(run_record_read(e->folder, &record));
	warn_of_version(e->folder, "trained", record);
	json_decref(record);
	struct work w = { .lease = lease };
	struct err error = OK;
	for (int s = 0; s < e->scalings && !error.code; s++) {
		error = lease_check(lease);
		if (!error.code)
			error = evaluate_scaling(e, &w, s, rows);
	}
	for (ptrdiff_t i = 0; i < arrlen(w.done); i++)
		eval_result_free(&w.done[i].result);
	arrfree(w.done);
	model_close(&w.model);
	return error;
}

struct err run_evaluate(const struct run_evaluation *e, struct row **rows)
{
	struct lease *lease;
	TRY(run_evaluate_check(e));
	TRY(lease_take(e->folder, &lease));
	struct err error = evaluate_locked(e, lease, rows);
	lease_release(lease);
	return run_folder_gone(error, e->folder);
}
