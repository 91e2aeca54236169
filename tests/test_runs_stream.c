#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/run/run_folder.h"
#include "runs/study/grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/program.h"
#include "tests/support.h"

/* The stream `tune`: what is looked at to choose an option never mixes with what is reported. */

#define TINY "--layers=1 --width=16 --heads=1 --hidden=16 --batch=2 --train-length=32 --steps=2 "
#define EVAL "--multiples=1,2 --sequences=3 "

static int start(void **state)
{
	(void)state;
	program_start();
	program_works("train " TINY "--out=run");
	return 0;
}

/* Rows of one file of a run. */
static struct row *read_rows(const char *run, int64_t stream, const char *label)
{
	struct eval_options eval = { .stream = stream };
	char *folder = program_path(run), *path = run_folder_csv(folder, &eval, label, false);
	struct row *rows = NULL;
	assert_ok(rows_read(path, &rows));
	free(folder);
	free(path);
	return rows;
}

static bool has_sequences(const char *run, int64_t stream, const char *label)
{
	struct eval_options eval = { .stream = stream };
	char *folder = program_path(run), *path = run_folder_csv(folder, &eval, label, true);
	bool there = io_exists(path);
	free(folder);
	free(path);
	return there;
}

/* stderr of a run that works. */
static char *said(const char *line)
{
	struct program_run r = program_run(line);
	if (r.code)
		fail_msg("%s: exit %d, %s", line, r.code, r.err);
	free(r.out);
	return r.err;
}

static void test_files_apart(void **state)
{
	(void)state;
	program_works("eval run " EVAL "--scaling=ntk --stream=tune");
	assert_true(has_sequences("run", EVAL_TUNE, "ntk"));
	assert_false(has_sequences("run", EVAL_REPORT, "ntk"));
	program_works("eval run " EVAL "--scaling=ntk");
	struct row *tune = read_rows("run", EVAL_TUNE, "ntk"), *report = read_rows("run", EVAL_REPORT, "ntk");
	assert_int_equal(arrlen(tune), arrlen(report));
	assert_int_not_equal(arrlen(tune), 0);
	for (int i = 0; i < arrlen(tune); i++) {
		assert_int_equal(row_stream(&tune[i]), EVAL_TUNE);
		assert_int_equal(row_stream(&report[i]), EVAL_REPORT);
		assert_string_equal(tune[i].group, report[i].group);
		if (tune[i].cell.scored && report[i].cell.scored)
			assert_true(tune[i].cell.nll != report[i].cell.nll);
	}
	arrfree(tune);
	arrfree(report);
}

/* The next tests go on with what test_files_apart has left. */
static void test_reuse(void **state)
{
	(void)state;
	char *again = said("eval run " EVAL "--scaling=ntk --stream=tune");
	char *forced = said("eval run " EVAL "--scaling=ntk --stream=tune --force");
	assert_non_null(strstr(again, "2 of 2 lengths are there already"));
	assert_null(strstr(forced, "there already"));
	free(again);
	free(forced);
	char *record = program_file("run/record.json", NULL);
	assert_non_null(strstr(record, "\"searches\""));
	free(record);
}

static void assert_searched(const char *const *expected, int count)
{
	const char **label = NULL;
	char *folder = program_path("run");
	assert_ok(run_folder_searched(folder, &label));
	assert_int_equal(arrlen(label), count);
	for (int i = 0; i < count; i++)
		assert_string_equal(label[i], expected[i]);
	arrfree(label);
	free(folder);
}

static void test_searched(void **state)
{
	(void)state;
	assert_searched((const char *const[]){ "ntk" }, 1);
	program_works("eval run --multiples=2 --sequences=2 --stream=tune "
		      "--scaling=ntk(factor=4),linear,ntk(factor=2)");
	assert_searched((const char *const[]){ "linear", "ntk", "ntk(factor=2)", "ntk(factor=4)" }, 4);
	program_put("run/tune-none-afc5064e.csv", "run\n", 4);
	const char **label = NULL;
	char *folder = program_path("run"), *path = program_path("run/tune-none-afc5064e.csv");
	assert_err(run_folder_searched(folder, &label), ERR_USAGE, "not the columns");
	assert_ok(io_remove(path));
	arrfree(label);
	free(folder);
	free(path);
}

/* Files of one stream under the names of the other's. */
static void test_moved_files(void **state)
{
	(void)state;
	char *folder = program_path("run");
	for (int sequences = 0; sequences < 2; sequences++) {
		char *from = run_folder_csv(folder, &(struct eval_options){ .stream = EVAL_TUNE }, "ntk", sequences);
		char *to = run_folder_csv(folder, &(struct eval_options){ .stream = EVAL_REPORT }, "ntk", sequences);
		assert_int_equal(rename(from, to), 0);
		free(from);
		free(to);
	}
	free(folder);
	struct program_run r = program_run("eval run " EVAL "--scaling=ntk");
	assert_int_equal(r.code, 2);
	assert_non_null(strstr(r.err, "another run or stream"));
	program_run_free(&r);
}

/* Training again removes what belonged to the old weights. */
static void test_trained_again(void **state)
{
	(void)state;
	program_works("train " TINY "--seed=7 --out=run --force");
	assert_searched(NULL, 0);
}

#define STUDY "encoding = rope\nlayers = 1\nwidth = 16\nheads = 1\nhidden = 16\nbatch = 2\ntrain_length = 32\n" \
	      "steps = 2\nmultiples = 1, 2\nsequences = 2\nscaling = none, ntk\n"

static void test_study(void **state)
{
	(void)state;
	static const char text[] = STUDY "stream = tune\n";
	program_put("tuned.study", text, strlen(text));
	program_put("told.study", STUDY, strlen(STUDY));
	program_works("study tuned.study --out=grid");
	struct program_run again = program_run("study tuned.study --out=grid");
	char *told = said("study told.study --out=grid");
	assert_non_null(strstr(again.err, "0 to train, 0 to evaluate, 1 finished"));
	assert_non_null(strstr(again.out, "stream tune"));
	assert_null(strstr(again.out, "stream report"));
	assert_non_null(strstr(told, "0 to train, 1 to evaluate, 0 finished"));
	/* All of it is to be computed: what the search has is not taken for it. */
	int missing = -1, possible = 0;
	const char *line = strstr(told, "evaluation: ");
	assert_true(line && sscanf(line, "evaluation: %d of %d", &missing, &possible) == 2);
	assert_int_equal(missing, possible);
	program_run_free(&again);
	free(told);
}

static void test_owner(void **state)
{
	(void)state;
	struct study s;
	struct grid g;
	assert_ok(study_parse("f", STUDY "stream = tune\n", &s));
	assert_ok(grid_build(&s, &g));
	const struct cell *c = &g.cell[0];
	struct row row = { .encoding = "rope", .scaling = "none", .task = "recall", .seed = c->config.train.seed,
			   .eval_seed = c->config.eval.eval_seed, .train_length = 32, .sequences = 2,
			   .protocol = "recall(pairs=8); stream tune; every scored token" };
	assert_true(cell_owns(c, 0, &row));
	row.protocol = "recall(pairs=8); stream report; every scored token";
	assert_false(cell_owns(c, 0, &row));
	char *path = cell_csv(c, "x", 0);
	assert_non_null(strstr(path, "x/tune-none-"));
	free(path);
	grid_free(&g);
	study_free(&s);
	assert_err(study_parse("f", STUDY "stream = tune, report\n", &s), ERR_USAGE, "one value");
	program_refuses("eval run --stream=tuna", "stream", "tune");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files_apart),
		cmocka_unit_test(test_reuse),
		cmocka_unit_test(test_searched),
		cmocka_unit_test(test_moved_files),
		cmocka_unit_test(test_trained_again),
		cmocka_unit_test(test_study),
		cmocka_unit_test(test_owner),
	};
	return cmocka_run_group_tests_name("runs stream", tests, start, program_teardown);
}
