#ifndef ROPEWALK_TESTS_STUDY_CASE_H
#define ROPEWALK_TESTS_STUDY_CASE_H

#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/run/run_folder.h"
#include "runs/show/table.h"

#include <math.h>
#include <stdlib.h>

#include "tests/support.h"

/* A study whose runs' folders are written by hand, so that every number in a table is known. */
static char folder[FOLDER_PATH];
static struct study study;
static struct grid grid;
static struct results results;

static int set_up(void **state)
{
	(void)state;
	return folder_make(folder);
}

static int tear_down(void **state)
{
	(void)state;
	results_free(&results);
	grid_free(&grid);
	study_free(&study);
	return folder_remove(folder);
}

static void build(const char *text)
{
	assert_ok(study_parse("f", text, &study));
	assert_ok(grid_build(&study, &grid));
	assert_ok(study_folder_write(folder, &study, "ropewalk study by-hand"));
}

/* Makes a cell's folder with a record of this status and commit. */
static char *make_run(int cell, const char *status, const char *commit)
{
	char *path = io_join(folder, grid.cell[cell].name);
	assert_ok(run_folder_create(path, &grid.cell[cell].config, "", false));
	json_t *record;
	assert_ok(run_record_read(path, &record));
	json_object_set_new(record, "status", json_string(status));
	json_object_set_new(record, "commit", json_string(commit));
	assert_ok(run_record_write(path, record));
	json_decref(record);
	return path;
}

static struct row new_row(const struct cell *c, int scaling, int length, const char *group, double perplexity,
			  double accuracy)
{
	const struct config *o = &c->config;
	return (struct row){
		.run = c->name, .encoding = label_of(&o->model.encoding), .scaling = c->scaling_label[scaling],
		.task = label_of(&o->data.task), .factor = 1, .group = group, .seed = o->train.seed,
		.eval_seed = o->eval.eval_seed, .train_length = o->model.train_length, .length = c->length[length],
		.multiple = c->multiple[length], .sequences = o->eval.sequences, .protocol = "by hand",
		.cell = { .scored = 10, .nll = log(perplexity), .perplexity = perplexity, .floor = 1,
			  .accuracy = accuracy },
	};
}

/* Rows of one scaling of a finished cell, a perplexity and an accuracy for every length. */
static inline void write_rows(const char *path, int cell, int scaling, const double (*number)[2])
{
	const struct cell *c = &grid.cell[cell];
	struct row rows[16];
	int count = 0;
	for (int i = 0; i < c->lengths; i++) {
		rows[count++] = new_row(c, scaling, i, "recall", number[i][0], number[i][1]);
		rows[count++] = new_row(c, scaling, i, "echo", 2 * number[i][0], 0.5);
	}
	char *csv = run_folder_csv(path, &c->config.eval, c->scaling_label[scaling], false);
	assert_ok(rows_write(csv, rows, count));
	free(csv);
}

static void read_back(void)
{
	results_free(&results);
	assert_ok(results_read(folder, &study, &grid, &results));
}

/* Two seeds, two scalings, two lengths; the second seed, which this commit trained, lacks ntk. */
static inline void two_seeds(const char *commit)
{
	build("seed = 1, 2\nscaling = none, ntk\nmultiples = 1, 4\nsequences = 3\n");
	char *first = make_run(0, "finished", "a"), *second = make_run(1, "finished", commit);
	write_rows(first, 0, 0, (const double[][2]){ { 1, 1 }, { 9, 0.6 } });
	write_rows(first, 0, 1, (const double[][2]){ { 1, 1 }, { 2, 0.9 } });
	write_rows(second, 1, 0, (const double[][2]){ { 1.21, 0.98 }, { 4, 0.7 } });
	free(first);
	free(second);
	read_back();
}

#endif
