#include "runs/plot/subject.h"

#include "eval/protocol.h"
#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/plot/chart.h"
#include "runs/run/run_folder.h"
#include "runs/show/once.h"
#include "runs/show/tuned.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* Every row of the run's files of a kind. */
static struct err read_rows(const char *folder, struct row **rows)
{
	char **name;
	int count;
	struct err e = OK;
	TRY(io_list(folder, &name, &count));
	for (int i = 0; i < count && !e.code; i++) {
		if (fnmatch("eval-*.csv", name[i], 0) || !fnmatch("*-sequences.csv", name[i], 0))
			continue;
		char *path = io_join(folder, name[i]);
		e = rows_read(path, rows);
		free(path);
	}
	io_names_free(name, count);
	return e;
}

static bool same_evaluation(const struct row *a, const struct row *b)
{
	return a->eval_seed == b->eval_seed && a->sequences == b->sequences && row_kv(a) == row_kv(b) &&
	       !strcmp(row_protocol(a), row_protocol(b));
}

/* A row of the evaluation that most rows are of; NULL if there is none. */
static const struct row *commonest(const struct row *rows)
{
	const struct row *found = NULL;
	int most = 0;
	for (int i = 0; i < arrlen(rows); i++) {
		int count = 0;
		for (int j = 0; j < arrlen(rows); j++)
			count += same_evaluation(&rows[i], &rows[j]);
		if (count > most) {
			most = count;
			found = &rows[i];
		}
	}
	return found;
}

/* How many evaluations there are beside that of a row. */
static int count_others(const struct row *rows, const struct row *like)
{
	int count = 0;
	for (int i = 0; i < arrlen(rows); i++) {
		bool first = !same_evaluation(&rows[i], like);
		for (int j = 0; j < i && first; j++)
			first = !same_evaluation(&rows[i], &rows[j]);
		count += first;
	}
	return count;
}

static struct err add_scalings(const struct row *rows, const struct row *like, struct cell *cell)
{
	for (int i = 0; i < arrlen(rows); i++) {
		if (!same_evaluation(&rows[i], like) || !once(&cell->scaling_label, rows[i].scaling))
			continue;
		cell->scaling = stb_reallocate(cell->scaling, arrlenu(cell->scaling_label) * sizeof *cell->scaling);
		TRY(method_parse("scaling", scaling_at, rows[i].scaling, &cell->scaling[cell->scalings]));
		cell->scalings++;
	}
	return OK;
}

static int by_length(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void add_lengths(const struct row *rows, const struct row *like, struct cell *cell)
{
	int *length = NULL;
	for (int i = 0; i < arrlen(rows); i++) {
		bool there = !same_evaluation(&rows[i], like);
		for (int j = 0; j < arrlen(length); j++)
			there |= length[j] == (int)rows[i].length;
		if (!there)
			arrput(length, (int)rows[i].length);
	}
	BUG_IF(!length, "an evaluation without a row");
	qsort(length, arrlenu(length), sizeof *length, by_length);
	cell->lengths = (int)arrlen(length);
	cell->length = stb_reallocate(NULL, arrlenu(length) * sizeof *cell->length);
	cell->multiple = stb_reallocate(NULL, arrlenu(length) * sizeof *cell->multiple);
	memcpy(cell->length, length, arrlenu(length) * sizeof *length);
	for (int i = 0; i < cell->lengths; i++)
		cell->multiple[i] = (double)length[i] / (double)cell->config.model.train_length;
	arrfree(length);
}

/* What it was evaluated under, from its rows. */
static struct err set_evaluation(const char *folder, const struct row *rows, struct cell *cell, int *others)
{
	const struct row *like = commonest(rows);
	if (!like)
		return err_usage("`ropewalk eval` measures it.", "%s: this run has not been evaluated", folder);
	*others = count_others(rows, like);
	cell->config.eval.eval_seed = like->eval_seed;
	cell->config.eval.sequences = like->sequences;
	cell->config.eval.stream = row_stream(like);
	cell->config.eval.kv = row_kv(like);
	if (*row_protocol(like))
		TRY(method_parse("protocol", protocol_at, row_protocol(like), &cell->config.eval.protocol));
	add_lengths(rows, like, cell);
	return add_scalings(rows, like, cell);
}

static struct err make_cell(const char *folder, struct cell *cell, int *others)
{
	struct row *rows = NULL;
	config_init(&cell->config, &study_scope, NULL);
	TRY(run_folder_config(folder, &cell->config));
	config_identity(&cell->config, LIST_TRAINING, cell->identity);
	config_training_identity(&cell->config, cell->trained);
	cell->name = run_folder_name(folder);
	cell->label = cell->axes = "";
	struct err e = read_rows(folder, &rows);
	if (!e.code)
		e = set_evaluation(folder, rows, cell, others);
	arrfree(rows);
	return e;
}

/* As results_read does of a study's cells. */
static struct err read_results(const char *folder, struct subject *s)
{
	const struct cell *cell = s->grid.cell;
	const char *status = run_folder_status(folder);
	struct cell_results c = { .folder = text_keep(folder) };
	s->results = (struct results){ .study = &s->study, .grid = &s->grid, .folder = c.folder };
	c.status = !strcmp(status, "finished") ? CELL_FINISHED :
		   !strcmp(status, "diverged") ? CELL_DIVERGED : CELL_UNFINISHED;
	s->results.late = calloc(1, sizeof *s->results.late);
	BUG_IF(!s->results.late, "no memory for an error");
	struct err e = cell_results_read(cell, true, &c);
	arrput(s->results.cell, c);
	return e;
}

static struct err open_run(const char *folder, struct subject *s)
{
	struct cell cell = { 0 };
	struct err e = make_cell(folder, &cell, &s->others);
	s->run = true;
	arrput(s->grid.cell, cell);
	s->grid.groups = 1;
	for (int i = 0; i < cell.lengths; i++)
		arrput(s->grid.multiple, cell.multiple[i]);
	return e.code ? e : read_results(folder, s);
}

struct err subject_open(const char *folder, struct subject *out)
{
	*out = (struct subject){ .folder = text_keep(folder) };
	char *study = io_join(folder, STUDY_FILE);
	bool run = !io_exists(study) && tuned_is_run(folder);
	free(study);
	struct err e = run ? open_run(folder, out) : study_folder_open(folder, &out->study, &out->grid);
	if (!e.code && !run)
		e = results_read(folder, &out->study, &out->grid, &out->results);
	if (e.code == ERR_USAGE && !run && !io_is_folder(folder))
		e = err_usage("Name a folder that `ropewalk study` or `ropewalk train` "
			      "made.", "%s: no such folder", folder);
	if (e.code)
		subject_close(out);
	return e;
}

void subject_close(struct subject *s)
{
	results_free(&s->results);
	grid_free(&s->grid);
	study_free(&s->study);
	*s = (struct subject){ 0 };
}

const char *subject_others(const struct subject *s)
{
	if (!s->others)
		return "";
	return chart_text("%s: %d other evaluation%s of this run (other sequences, protocol or cache) %s left out",
			  run_folder_name(s->folder), s->others, s->others > 1 ? "s" : "",
			  s->others > 1 ? "are" : "is");
}
