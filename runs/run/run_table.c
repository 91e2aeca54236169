#include "runs/run/run_table.h"

#include "eval/by_position.h"
#include "eval/recall_grid.h"
#include "eval/tally.h"
#include "model/base/stb.h"
#include "runs/run/run_folder.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct eval_options *options_of(const struct table *t)
{
	return &t->evaluation->config->eval;
}

/* Choosing an option needs no explanation. */
static bool has_measures(const struct table *t)
{
	return options_of(t)->stream == EVAL_REPORT;
}

bool table_wants(const struct table *t, const struct row *r, int length)
{
	const struct eval_options *o = options_of(t);
	return r->length == t->evaluation->length[length] && r->eval_seed == o->eval_seed &&
	       r->sequences == o->sequences && row_stream(r) == o->stream && row_kv(r) == o->kv &&
	       row_protocol_is(r, &o->protocol) && !strcmp(r->task, label_of(&t->evaluation->config->data.task));
}

static bool wants_sequence(const struct table *t, const struct sequence_row *r, int length)
{
	const struct eval_options *o = options_of(t);
	return r->length == t->evaluation->length[length] && r->eval_seed == o->eval_seed &&
	       r->sequences == o->sequences && !strcmp(r->task, label_of(&t->evaluation->config->data.task));
}

static int groups_of(const struct table *t, const char *name[EVAL_GROUPS])
{
	return eval_group_names(task_of(&t->evaluation->config->data.task), name);
}

/* One sum, added up in another order? */
static bool same_number(double a, double b)
{
	return fabs(a - b) <= 1e-9 * (1 + fabs(b));
}

/* The tally of each sequence in a group; false unless each is there once. */
static bool read_tally(const struct table *t, int length, const char *group, struct eval_tally *tally)
{
	int64_t found = 0, sequences = options_of(t)->sequences;
	for (int64_t i = 0; i < sequences; i++)
		tally[i].scored = -1;
	for (ptrdiff_t i = 0; i < arrlen(t->sequences); i++) {
		const struct sequence_row *r = &t->sequences[i];
		if (strcmp(r->group, group) || !wants_sequence(t, r, length))
			continue;
		if (tally[r->sequence].scored >= 0)
			return false;
		tally[r->sequence] = r->tally;
		found++;
	}
	return found == sequences;
}

/* Is a row what the rows by sequence come to? */
static bool is_of_sequences(const struct table *t, const struct row *r, int length)
{
	int sequences = (int)options_of(t)->sequences;
	struct eval_tally *tally = stb_reallocate(NULL, (size_t)sequences * sizeof *tally);
	struct eval_cell cell = { .scored = -1 };
	if (read_tally(t, length, r->group, tally))
		cell = tally_cell(tally, sequences, 1, 0);
	free(tally);
	return cell.scored == r->cell.scored && same_number(r->cell.nll, cell.nll) &&
	       same_number(r->cell.nll_se, cell.nll_se) && same_number(r->cell.accuracy, cell.accuracy) &&
	       same_number(r->cell.exact, cell.exact);
}

/* Does what a measure has of a row's group add up to the row? */
static bool is_measured_by(const struct table *t, enum measure_kind m, const struct row *row, int length)
{
	int64_t scored = 0;
	double nll = 0, correct = 0, all = (double)row->cell.scored;
	for (ptrdiff_t i = 0; i < arrlen(t->measure[m]); i++) {
		const struct row *r = &t->measure[m][i].row;
		if (strcmp(r->group, row->group) || !table_wants(t, r, length))
			continue;
		scored += r->cell.scored;
		nll += r->cell.nll * (double)r->cell.scored;
		correct += r->cell.accuracy * (double)r->cell.scored;
	}
	return scored == row->cell.scored &&
	       (!scored || (same_number(nll / all, row->cell.nll) && same_number(correct / all, row->cell.accuracy)));
}

/* Windows that are cut from documents may leave out some of the grid's. */
static bool is_measured(const struct table *t, const struct row *r, int length)
{
	const char *first = task_of(&t->evaluation->config->data.task)->groups[0];
	if (!is_measured_by(t, MEASURE_BY_POSITION, r, length))
		return false;
	return strcmp(r->group, first) || protocol_cuts(&options_of(t)->protocol, (int)r->length) ||
	       is_measured_by(t, MEASURE_RECALL_GRID, r, length);
}

bool table_has(const struct table *t, int length)
{
	const char *ignored[EVAL_GROUPS];
	int64_t groups = groups_of(t, ignored), rows = 0, sequences = 0;
	bool whole = true;
	for (ptrdiff_t i = 0; i < arrlen(t->rows); i++) {
		if (!table_wants(t, &t->rows[i], length))
			continue;
		rows++;
		whole = whole && is_of_sequences(t, &t->rows[i], length);
		whole = whole && (!has_measures(t) || is_measured(t, &t->rows[i], length));
	}
	for (ptrdiff_t i = 0; i < arrlen(t->sequences); i++)
		sequences += wants_sequence(t, &t->sequences[i], length);
	return whole && rows == groups && sequences == groups * options_of(t)->sequences;
}

static double nll_sum(const struct measure_row *m)
{
	return m->row.cell.nll * (double)m->row.cell.scored;
}

/* Of all groups, with one temperature; near and far are the first group, it and the others all. */
static bool adds_up(const struct measure_row *const *row, int groups)
{
	const struct measure_row *first = row[0], *near = row[1], *far = row[2], *all = row[groups - 1];
	if (!first || !near || !far || !all)
		return false;
	double sum = nll_sum(first);
	int64_t scored = first->row.cell.scored;
	for (int g = 0; g < groups; g++)
		if (!row[g] || row[g]->temperature != all->temperature)
			return false;
	for (int g = 3; g < groups - 1; g++) {
		scored += row[g]->row.cell.scored;
		sum += nll_sum(row[g]);
	}
	return near->row.cell.scored + far->row.cell.scored == first->row.cell.scored &&
	       scored == all->row.cell.scored && same_number(nll_sum(near) + nll_sum(far), nll_sum(first)) &&
	       same_number(sum, nll_sum(all));
}

bool table_has_calibration(const struct table *t, int length)
{
	const char *name[EVAL_GROUPS];
	const struct measure_row *row[EVAL_GROUPS] = { 0 }, *m = t->measure[MEASURE_CALIBRATION];
	int groups = groups_of(t, name), rows = 0;
	for (ptrdiff_t i = 0; i < arrlen(m); i++) {
		if (!table_wants(t, &m[i].row, length))
			continue;
		rows++;
		for (int g = 0; g < groups; g++)
			row[g] = strcmp(name[g], m[i].row.group) ? row[g] : &m[i];
	}
	return rows == groups && adds_up(row, groups);
}

/* Takes the rows of this length out, and returns where new ones belong: behind those of lesser lengths. */
static ptrdiff_t make_place(struct table *t, int length)
{
	ptrdiff_t kept = 0, place = 0;
	for (ptrdiff_t i = 0; i < arrlen(t->rows); i++) {
		if (table_wants(t, &t->rows[i], length))
			continue;
		t->rows[kept++] = t->rows[i];
		place = t->rows[i].length <= t->evaluation->length[length] ? kept : place;
	}
	arrsetlen(t->rows, (size_t)kept);
	return place;
}

static ptrdiff_t make_sequence_place(struct table *t, int length)
{
	ptrdiff_t kept = 0, place = 0;
	for (ptrdiff_t i = 0; i < arrlen(t->sequences); i++) {
		if (wants_sequence(t, &t->sequences[i], length))
			continue;
		t->sequences[kept++] = t->sequences[i];
		place = t->sequences[i].length <= t->evaluation->length[length] ? kept : place;
	}
	arrsetlen(t->sequences, (size_t)kept);
	return place;
}

static ptrdiff_t make_measure_place(struct table *t, enum measure_kind m, int length)
{
	ptrdiff_t kept = 0, place = 0;
	struct measure_row *rows = t->measure[m];
	for (ptrdiff_t i = 0; i < arrlen(rows); i++) {
		if (table_wants(t, &rows[i].row, length))
			continue;
		rows[kept++] = rows[i];
		place = rows[i].row.length <= t->evaluation->length[length] ? kept : place;
	}
	arrsetlen(t->measure[m], (size_t)kept);
	return place;
}

/* What all rows of a length begin with. */
static struct row head_of(const struct table *t, int length, double factor)
{
	const struct run_evaluation *e = t->evaluation;
	const struct config *c = e->config;
	return (struct row){
		.run = run_folder_name(e->folder),
		.encoding = label_of(&c->model.encoding),
		.scaling = t->label,
		.task = label_of(&c->data.task),
		.factor = factor,
		.seed = c->train.seed,
		.eval_seed = c->eval.eval_seed,
		.train_length = c->model.train_length,
		.length = e->length[length],
		.multiple = e->multiple[length],
		.sequences = c->eval.sequences,
		.protocol = run_protocol(c),
	};
}

static void put_rows(struct table *t, int length, const struct eval_result *result)
{
	struct row row = head_of(t, length, result->factor);
	ptrdiff_t place = make_place(t, length);
	arrinsn(t->rows, (size_t)place, (size_t)result->groups);
	for (int g = 0; g < result->groups; g++) {
		row.group = text_keep(result->group[g]);
		row.cell = result->cell[g];
		t->rows[place + g] = row;
	}
}

static void put_sequence_rows(struct table *t, int length, const struct eval_result *result)
{
	const struct config *c = t->evaluation->config;
	struct sequence_row row = {
		.run = run_folder_name(t->evaluation->folder),
		.scaling = t->label,
		.task = label_of(&c->data.task),
		.seed = c->train.seed,
		.eval_seed = c->eval.eval_seed,
		.length = t->evaluation->length[length],
		.sequences = c->eval.sequences,
	};
	ptrdiff_t place = make_sequence_place(t, length), count = (ptrdiff_t)result->sequences * result->groups;
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

/* Puts rows [stb_ds array] in the place of those of this length. */
static void replace_measures(struct table *t, enum measure_kind m, int length, struct measure_row *rows)
{
	ptrdiff_t place = make_measure_place(t, m, length), count = arrlen(rows);
	if (!count)
		return;
	arrinsn(t->measure[m], (size_t)place, (size_t)count);
	memcpy(t->measure[m] + place, rows, (size_t)count * sizeof *rows);
}

static void put_by_position(struct table *t, int length, const struct eval_result *result)
{
	const struct by_position *b = result->by_position;
	struct measure_row *rows = NULL, row = { .row = head_of(t, length, result->factor) };
	for (int g = 0; g < result->groups; g++)
		for (int i = 0; i < b->bins; i++) {
			row.row.cell = by_position_cell(b, g, i);
			row.row.group = text_keep(result->group[g]);
			row.position = (int64_t)i * b->width;
			row.positions = b->length - row.position < b->width ? b->length - row.position : b->width;
			if (row.row.cell.scored)
				arrput(rows, row);
		}
	replace_measures(t, MEASURE_BY_POSITION, length, rows);
	arrfree(rows);
}

static void put_recall_grid(struct table *t, int length, const struct eval_result *result)
{
	const struct recall_grid *g = result->recall_grid;
	struct measure_row *rows = NULL, row = { .row = head_of(t, length, result->factor) };
	row.row.group = text_keep(result->group[0]);
	for (int distance = 1; distance <= g->length; distance++)
		for (int seen = 0; seen < 2; seen++) {
			const struct eval_tally *tally = recall_grid_at(g, distance, seen);
			if (!tally->scored)
				continue;
			double scored = (double)tally->scored;
			row.row.cell = (struct eval_cell){ .scored = tally->scored, .nll = tally->nll_sum / scored,
							   .accuracy = (double)tally->correct / scored };
			row.distance = distance;
			row.position_seen = seen;
			row.distance_seen = distance < g->train_length;
			arrput(rows, row);
		}
	replace_measures(t, MEASURE_RECALL_GRID, length, rows);
	arrfree(rows);
}

void table_put(struct table *t, int length, const struct eval_result *result)
{
	put_rows(t, length, result);
	put_sequence_rows(t, length, result);
	if (has_measures(t)) {
		put_by_position(t, length, result);
		put_recall_grid(t, length, result);
	}
	t->computed++;
}

void table_put_calibration(struct table *t, int length, const struct calibration *c)
{
	struct measure_row *rows = NULL, row = { .row = head_of(t, length, c->factor), .temperature = c->temperature };
	for (int g = 0; g < c->groups; g++) {
		row.row.group = text_keep(c->group[g]);
		row.row.cell = c->cell[g];
		arrput(rows, row);
	}
	replace_measures(t, MEASURE_CALIBRATION, length, rows);
	arrfree(rows);
	t->calibrated = true;
}

/* Was the row measured of this run, its stream and by its protocol? */
static bool is_own(const struct table *t, const struct row *r)
{
	const struct config *c = t->evaluation->config;
	return r->seed == c->train.seed && r->train_length == c->model.train_length &&
	       !strcmp(r->encoding, label_of(&c->model.encoding)) && !strcmp(r->scaling, t->label) &&
	       row_stream(r) == c->eval.stream && row_kv(r) == c->eval.kv && row_protocol_is(r, &c->eval.protocol);
}

#define REMOVE "Remove the file: `ropewalk eval` and `ropewalk study` make it again."

static struct err check_row(const struct table *t, const char *path, const struct row *r)
{
	if (is_own(t, r))
		return OK;
	return err_usage(REMOVE, "%s: holds results of another run or stream: %s, scaling %s, seed %" PRId64 ", %s", path,
			 r->encoding, r->scaling, r->seed, r->protocol);
}

/* Rows of one evaluation share their texts (text_keep). */
static bool same_origin(const struct row *a, const struct row *b)
{
	return a->seed == b->seed && a->train_length == b->train_length && a->encoding == b->encoding &&
	       a->scaling == b->scaling && a->protocol == b->protocol;
}

static struct err check_measure(const struct table *t, enum measure_kind m)
{
	const struct measure_row *rows = t->measure[m];
	for (ptrdiff_t i = 0; i < arrlen(rows); i++)
		if (!i || !same_origin(&rows[i].row, &rows[i - 1].row))
			TRY(check_row(t, t->measure_path[m], &rows[i].row));
	return OK;
}

/* Files that were moved here from another run. */
static struct err check_owner(const struct table *t)
{
	for (ptrdiff_t i = 0; i < arrlen(t->rows); i++)
		TRY(check_row(t, t->path, &t->rows[i]));
	for (ptrdiff_t i = 0; i < arrlen(t->sequences); i++) {
		const struct sequence_row *r = &t->sequences[i];
		if (r->seed != t->evaluation->config->train.seed || strcmp(r->scaling, t->label))
			return err_usage(REMOVE, "%s: holds results of another run: scaling %s, seed %" PRId64,
					  t->sequences_path, r->scaling, r->seed);
	}
	for (enum measure_kind m = 0; m < MEASURE_KINDS; m++)
		TRY(check_measure(t, m));
	return OK;
}

struct err table_open(const struct run_evaluation *e, int scaling, struct table *t)
{
	*t = (struct table){ .evaluation = e, .label = label_of(&e->scaling[scaling]) };
	t->path = run_folder_csv(e->folder, &e->config->eval, t->label, false);
	t->sequences_path = run_folder_csv(e->folder, &e->config->eval, t->label, true);
	struct err error = rows_read(t->path, &t->rows);
	if (!error.code)
		error = sequence_rows_read(t->sequences_path, &t->sequences);
	for (enum measure_kind m = 0; m < MEASURE_KINDS && has_measures(t); m++) {
		t->measure_path[m] = run_folder_measure(e->folder, &e->config->eval, t->label, m);
		if (!error.code)
			error = measure_rows_read(m, t->measure_path[m], &t->measure[m]);
	}
	if (!error.code)
		error = check_owner(t);
	if (!error.code || !e->force)
		return error;
	arrsetlen(t->rows, 0);
	arrsetlen(t->sequences, 0);
	for (enum measure_kind m = 0; m < MEASURE_KINDS; m++)
		arrsetlen(t->measure[m], 0);
	return OK;
}

void table_close(struct table *t)
{
	arrfree(t->rows);
	arrfree(t->sequences);
	free(t->path);
	free(t->sequences_path);
	for (enum measure_kind m = 0; m < MEASURE_KINDS; m++) {
		arrfree(t->measure[m]);
		free(t->measure_path[m]);
	}
}

struct err table_write_parts(const struct table *t)
{
	if (t->computed)
		TRY(sequence_rows_write(t->sequences_path, t->sequences, (int)arrlen(t->sequences)));
	for (enum measure_kind m = 0; m < MEASURE_KINDS && has_measures(t); m++) {
		bool changed = m == MEASURE_CALIBRATION ? t->calibrated : t->computed;
		if (changed)
			TRY(measure_rows_write(m, t->measure_path[m], t->measure[m], (int)arrlen(t->measure[m])));
	}
	return OK;
}

struct err table_write_rows(const struct table *t)
{
	return t->computed ? rows_write(t->path, t->rows, (int)arrlen(t->rows)) : OK;
}
