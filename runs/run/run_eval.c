#include "runs/run/run_eval.h"

#include "eval/by_position.h"
#include "eval/calibration.h"
#include "model/base/io.h"
#include "model/base/lease.h"
#include "model/base/stb.h"
#include "runs/progress.h"
#include "runs/run/run_examine.h"
#include "runs/run/run_folder.h"
#include "runs/run/run_model.h"
#include "runs/run/run_table.h"
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
	} *done; /* stb_ds array, as is this */
	struct fitted {
		int scaling, length;
		struct calibration result;
	} *fitted;
};

/* How sequences are decoded and seen, where that is not as usual. */
static void add_way(const struct eval_options *o, struct text_builder *b)
{
	if (o->kv != EVAL_KV_OFF) {
		text_add(b, "; kv ");
		eval_kv_name(o->kv, b);
	}
	if (protocol_kind_of(&o->protocol) != PROTOCOL_ALL) {
		text_add(b, "; protocol ");
		protocol_name(&o->protocol, b);
	}
}

const char *run_protocol(const struct config *c)
{
	struct text_builder b = { 0 };
	method_identity(&c->data.task, &b);
	text_add(&b, "; stream ");
	config_value(c, "stream", &b);
	add_way(&c->eval, &b);
	text_add(&b, "; ");
	protocol_words(&c->eval.protocol, &b);
	text_add(&b, "; targets by the task");
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
		.protocol = &e->config->eval.protocol,
		.measures = e->config->eval.stream == EVAL_REPORT,
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

/* What a scored sequence takes in a table's rows and as text, with room to grow, while a table is made; and a row of its
 * measures. */
#define SEQUENCE_BYTES (2 * sizeof(struct sequence_row) + 256)
#define MEASURE_BYTES (2 * sizeof(struct measure_row) + 256)

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

/* Those of the measures, likewise: they grow with the lengths. */
static struct err measures_fit(const struct run_evaluation *e)
{
	const char *ignored[EVAL_GROUPS];
	size_t groups = (size_t)eval_group_names(task_of(&e->config->data.task), ignored);
	struct arena all = { 0 };
	char need[32], have[MEMORY_AVAILABLE_TEXT];
	arena_take(&all, (size_t)e->lengths * groups * POSITION_BINS, MEASURE_BYTES);
	for (int l = 0; l < e->lengths; l++)
		arena_take(&all, 2 * (size_t)e->length[l], MEASURE_BYTES);
	if (all.used <= memory_available() || e->config->eval.stream == EVAL_TUNE)
		return OK;
	return err_usage("Choose smaller --multiples.", "the tables by position and distance need %s, and %s",
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
			error = eval_check_size(&request);
			if (!error.code && e->config->eval.calibrate)
				error = calibration_check_size(&request);
			error = err_at(error, "%s at length %d", label_of(&e->scaling[s]), e->length[l]);
		}
	if (!error.code)
		error = measures_fit(e);
	layout_free(&m.layout);
	return error;
}

struct err run_evaluate_check(const struct run_evaluation *e)
{
	struct model m;
	TRY(e->skip ? rows_fit(e) : run_evaluate_fits(e));
	struct err error = outline(e->config, &m);
	if (!error.code && e->config->eval.calibrate && e->scalings && e->lengths) {
		struct eval_request any = request_of(e, &m, 0, 0);
		error = calibration_check(&any);
	}
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
	table_put(t, length, &result);
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

/* The fit of an earlier scaling that gives this length the same zones; NULL if there is none. */
static const struct fitted *same_fitted(const struct run_evaluation *e, const struct work *w, int scaling, int length)
{
	for (ptrdiff_t i = 0; i < arrlen(w->fitted); i++)
		if (w->fitted[i].length == length &&
		    scaling_same(&e->scaling[w->fitted[i].scaling], &e->scaling[scaling], &e->config->model,
				 e->length[length]))
			return &w->fitted[i];
	return NULL;
}

static struct err calibrate(const struct run_evaluation *e, struct work *w, struct table *t, int scaling, int length)
{
	const struct fitted *same = same_fitted(e, w, scaling, length);
	if (same) {
		struct calibration result = same->result;
		struct scaling_request request =
			scaling_request(&e->scaling[scaling], &e->config->model, e->length[length]);
		result.factor = scaling_factor(&request);
		table_put_calibration(t, length, &result);
		return OK;
	}
	TRY(load_model(e, &w->model));
	struct eval_request request = request_of(e, &w->model, scaling, length);
	struct fitted fitted = { .scaling = scaling, .length = length };
	struct progress progress;
	char what[120];
	snprintf(what, sizeof what, "calibrate %.40s %.40s at %d", run_folder_name(e->folder), t->label,
		 e->length[length]);
	progress_start(&progress, what);
	struct err error = calibration_run(&request, progress_tokens, &progress, &fitted.result);
	progress_end(&progress);
	t->seconds += clock_seconds() - progress.start;
	TRY(error);
	arrput(w->fitted, fitted);
	table_put_calibration(t, length, &fitted.result);
	return OK;
}

/* The record's member for evaluations of this stream. */
static const char *record_member(const struct run_evaluation *e)
{
	return e->config->eval.stream == EVAL_TUNE ? "searches" : "evaluations";
}

/* And its name there of one scaling's: its label, and how it was decoded and seen. */
static const char *record_name(const struct run_evaluation *e, const struct table *t)
{
	struct text_builder b = { 0 };
	text_add(&b, "%s", t->label);
	add_way(&e->config->eval, &b);
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
static struct err write_table(const struct run_evaluation *e, const struct work *w, const struct table *t)
{
	if (!t->computed && !t->calibrated)
		return OK;
	TRY(lease_check(w->lease));
	TRY(table_write_parts(t));
	TRY(record_evaluation(e, t));
	return table_write_rows(t);
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
	if (!e->force && table_has(t, length))
		t->reused++;
	else
		TRY(compute(e, w, t, scaling, length));
	if (e->config->eval.calibrate && (e->force || !table_has_calibration(t, length)))
		TRY(calibrate(e, w, t, scaling, length));
	for (ptrdiff_t i = 0; rows && i < arrlen(t->rows); i++)
		if (table_wants(t, &t->rows[i], length))
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
	struct err written = write_table(e, w, &t);
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
	arrfree(w.fitted);
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
