#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/run/run_folder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/program.h"
#include "tests/support.h"

/* The files beside eval-METHOD.csv: what explains its numbers, by which protocol; kept, made again and kept apart. */

#define TINY "--layers=1 --width=16 --heads=1 --hidden=16 --batch=2 --train-length=32 --steps=2 "
#define EVAL "eval run --multiples=1,2 --sequences=3 "
#define NONE "none-afc5064e"
#define LAST "-protocol-last-tokens-16-span-64--"

static int start(void **state)
{
	(void)state;
	program_start();
	program_works("train " TINY "--out=run");
	program_works("train " TINY "--seed=5 --out=other");
	program_works(EVAL);
	shell("mkdir first && cp run/*.csv first");
	return 0;
}

static int stop(void **state)
{
	(void)state;
	program_stop();
	return 0;
}

/* What `eval` says on stderr. */
static void says(const char *line, const char *text)
{
	struct program_run r = program_run(line);
	if (r.code || !strstr(r.err, text))
		fail_msg("%s: exit %d, no '%s': %s", line, r.code, text, r.err);
	program_run_free(&r);
}

static struct measure_row *read_measure(enum measure_kind m, const char *name)
{
	struct measure_row *rows = NULL;
	char *path = program_path(name);
	assert_true(io_exists(path));
	assert_ok(measure_rows_read(m, path, &rows));
	free(path);
	return rows;
}

static struct row *read_rows(const char *name)
{
	struct row *rows = NULL;
	char *path = program_path(name);
	assert_ok(rows_read(path, &rows));
	free(path);
	return rows;
}

/* Adds up to the rows of the table; sorted by length; every bin once. */
static void adds_up(const struct row *whole, enum measure_kind m, const struct measure_row *rows)
{
	int64_t scored = 0;
	double nll = 0, accuracy = 0;
	for (int i = 0; i < arrlen(rows); i++) {
		const struct row *r = &rows[i].row;
		assert_true(i == 0 || rows[i - 1].row.length <= r->length);
		if (r->length != whole->length || strcmp(r->group, whole->group))
			continue;
		scored += r->cell.scored;
		nll += (double)r->cell.scored * r->cell.nll;
		accuracy += (double)r->cell.scored * r->cell.accuracy;
		assert_string_equal(r->protocol, whole->protocol);
		assert_true(m != MEASURE_BY_POSITION || rows[i].positions == 1);
		assert_true(m != MEASURE_RECALL_GRID || rows[i].distance_seen == (rows[i].distance < 32));
	}
	assert_int_equal(scored, whole->cell.scored);
	if (!scored)
		return;
	assert_close(nll / (double)scored, whole->cell.nll, 1e-9);
	assert_close(accuracy / (double)scored, whole->cell.accuracy, 1e-9);
}

static void test_sums(void **state)
{
	(void)state;
	struct row *rows = read_rows("run/eval-" NONE ".csv");
	struct measure_row *bins = read_measure(MEASURE_BY_POSITION, "run/by_position-" NONE ".csv");
	struct measure_row *grid = read_measure(MEASURE_RECALL_GRID, "run/recall_grid-" NONE ".csv");
	assert_int_equal(arrlen(rows), 10);
	for (int i = 0; i < arrlen(rows); i++) {
		adds_up(&rows[i], MEASURE_BY_POSITION, bins);
		if (!strcmp(rows[i].group, "recall"))
			adds_up(&rows[i], MEASURE_RECALL_GRID, grid);
	}
	arrfree(rows);
	arrfree(bins);
	arrfree(grid);
}

static void test_columns(void **state)
{
	(void)state;
	static const struct {
		const char *name, *header;
	} file[] = {
		{ "run/by_position-" NONE ".csv",
		  "run,encoding,scaling,factor,task,group,seed,eval_seed,train_length,length,multiple,sequences,"
		  "position,positions,scored,nll,nll_se,accuracy,protocol\n" },
		{ "run/recall_grid-" NONE ".csv",
		  "run,encoding,scaling,factor,task,group,seed,eval_seed,train_length,length,multiple,sequences,"
		  "distance,position_seen,distance_seen,scored,nll,accuracy,protocol\n" },
	};
	for (int i = 0; i < 2; i++) {
		char *text = program_file(file[i].name, NULL);
		assert_int_equal(strncmp(text, file[i].header, strlen(file[i].header)), 0);
		free(text);
	}
}

/* ---- Reuse ---- */

/* A length counts as done only with its measures, whole; what is made again is as it was. */
static void test_made_again(void **state)
{
	(void)state;
	static const char *const loss[] = {
		"rm run/by_position-*",
		"rm run/recall_grid-*",
		"sed -i '$d' run/by_position-*",
		"sed -i '2d' run/recall_grid-*",
	};
	says(EVAL, "2 of 2 lengths are there already");
	for (size_t i = 0; i < sizeof loss / sizeof loss[0]; i++) {
		struct program_run r;
		shell(loss[i]);
		r = program_run(EVAL);
		assert_int_equal(r.code, 0);
		assert_null(strstr(r.err, "2 of 2 lengths"));
		program_run_free(&r);
		shell("for f in first/*; do cmp $f run/$(basename $f) || exit 1; done");
	}
}

#define CHANGE(file, what) "f=$(ls run/" file ") && awk -F, -v OFS=, '" what " 1' $f >x && mv x $f"

/* And only where they add up: by_position, the grid and the rows by sequence to the table's. */
static void test_changed(void **state)
{
	(void)state;
	static const char *const change[] = {
		CHANGE("by_position-*", "NR == 2 { $16 += 1 }"),
		CHANGE("recall_grid-*", "NR == 3 { $17 += 1 }"),
		CHANGE("recall_grid-*", "NR == 3 { $18 = 1 - $18 }"),
		CHANGE("eval-*-sequences.csv", "NR == 2 { $11 += 1 }"),
		CHANGE("eval-*-sequences.csv", "NR == 7 { $9 = 0 }"),
		CHANGE("eval-" NONE ".csv", "NR == 2 { $15 *= 2 }"),
		CHANGE("eval-" NONE ".csv", "NR == 2 { $19 = 1 - $19 }"),
	};
	for (size_t i = 0; i < sizeof change / sizeof change[0]; i++) {
		shell(change[i]);
		shell("! (for f in first/*; do cmp -s $f run/$(basename $f) || exit 1; done)");
		says(EVAL, "1 of 2 lengths are there already");
		shell("for f in first/*; do cmp $f run/$(basename $f) || exit 1; done");
	}
	shell(CHANGE("eval-" NONE ".csv", "NR == 2 { $11 = 2 }"));
	program_refuses(EVAL, "eval-" NONE, ":2: a damaged row: its multiple");
	shell("cp first/* run");
}

/* Lengths that are added later, in whatever order, make the same files. */
static void test_added(void **state)
{
	(void)state;
	shell("rm run/*.csv");
	program_works("eval run --multiples=2 --sequences=3");
	says(EVAL, "1 of 2 lengths are there already");
	shell("for f in first/*; do cmp $f run/$(basename $f) || exit 1; done");
}

static void test_damaged(void **state)
{
	(void)state;
	static const struct {
		const char *damage, *name, *what;
	} file[] = {
		{ "truncate -s -5 run/by_position-*", "by_position", "a quoted field does not end" },
		{ "truncate -s -1 run/recall_grid-*", "recall_grid", "the last row is not complete" },
		{ "sed -i '2s/,recall,recall,/,recall,recall,x/' run/by_position-*", "by_position",
		  ":2: a damaged row: its seed" },
		{ "sed -i '3s/,1,1,\\([0-9]*\\),/,2,1,\\1,/' run/recall_grid-*", "recall_grid",
		  ":3: a damaged row: its position_seen" },
		{ "sed -i '1s/position/place/' run/by_position-*", "by_position", ":1: not the columns" },
	};
	for (size_t i = 0; i < sizeof file / sizeof file[0]; i++) {
		shell(file[i].damage);
		program_refuses(EVAL, file[i].name, file[i].what);
		shell("cp first/* run");
	}
}

/* Files of another run under this one's names. */
static void test_moved(void **state)
{
	(void)state;
	program_works("eval other --multiples=1,2 --sequences=3");
	shell("cp other/by_position-* run");
	program_refuses(EVAL, "by_position-" NONE ".csv", "holds results of another run");
	shell("cp first/* run");
}

/* ---- Streams and protocols ---- */

static void test_tune_has_none(void **state)
{
	(void)state;
	program_works(EVAL "--stream=tune --scaling=linear");
	shell("ls run/tune-linear-* && ! ls run/*linear* | grep -v tune-");
}

static void test_protocols_apart(void **state)
{
	(void)state;
	program_works(EVAL "--protocol=last");
	program_works(EVAL "--protocol=half");
	says(EVAL, "2 of 2 lengths are there already");
	says(EVAL "--protocol=last(tokens=16)", "2 of 2 lengths are there already");
	says(EVAL "--protocol=last --last-span=64", "2 of 2 lengths are there already");
	shell("[ $(ls run/eval-" NONE "*-sequences.csv | wc -l) = 3 ]");
	shell("ls run/eval-" NONE LAST "*.csv run/by_position-" NONE LAST "*.csv run/recall_grid-" NONE LAST "*.csv");
	shell("grep -c '; protocol last(tokens=16,span=64); ' $(ls run/eval-" NONE LAST "* | grep -v sequences) | "
	      "grep -qx 10");
	shell("grep -q '\"none; protocol last(tokens=16,span=64)\"' run/record.json");
	/* Another span makes other documents. */
	program_works("eval run --multiples=1,2,4 --sequences=3 --protocol=last");
	shell("ls run/eval-" NONE "-protocol-last-tokens-16-span-128--*.csv");
	shell("for f in first/*; do cmp $f run/$(basename $f) || exit 1; done");
	/* And under one another's names they are found out. */
	shell("for f in $(ls run/eval-" NONE LAST "* | grep -v sequences); do cp run/eval-" NONE ".csv $f; done");
	program_refuses(EVAL "--protocol=last", LAST, "holds results of another run or stream");
	shell("rm run/*protocol*");
}

/* The floor is not known where a window is less than its document. */
static void test_floors(void **state)
{
	(void)state;
	program_works(EVAL "--protocol=sliding(stride=8)");
	shell("mv $(ls run/eval-" NONE "-protocol-sliding-* | grep -v sequences) run/x");
	struct row *rows = read_rows("run/x");
	int known = 0;
	for (int i = 0; i < arrlen(rows); i++) {
		assert_true(!rows[i].cell.scored || isnan(rows[i].cell.floor) == (rows[i].length == 32));
		known += rows[i].cell.scored && !isnan(rows[i].cell.floor);
	}
	assert_true(known > 0);
	arrfree(rows);
	shell("rm run/x run/*protocol*");
}

static void test_refusals(void **state)
{
	(void)state;
	program_refuses(EVAL "--protocol=lasting", "last", NULL);
	program_refuses(EVAL "--protocol=last(tokens=33)", "protocol: last: tokens: 33 is more than the 32", NULL);
	program_refuses(EVAL "--protocol=last(span=63)", "a document of 63 tokens has no window of 64", NULL);
	program_refuses(EVAL "--protocol=half --last-tokens=3", "--last-tokens: has no effect", NULL);
	program_refuses(EVAL "--calibrate=on --kv=rotated", "calibrate: not token by token", NULL);
}

/* ---- Calibration ---- */

static void test_calibration(void **state)
{
	(void)state;
	says(EVAL "--calibrate=on", "2 of 2 lengths are there already");
	struct measure_row *rows = read_measure(MEASURE_CALIBRATION, "run/calibration-" NONE ".csv");
	assert_int_equal(arrlen(rows), 10);
	for (int i = 0; i < 10; i++)
		assert_true(rows[i].temperature > 0 && (!rows[i].row.cell.scored || rows[i].row.cell.nll > 0));
	arrfree(rows);
	shell("cp run/calibration-* kept");
	program_works(EVAL "--calibrate=on");
	shell("cmp run/calibration-" NONE ".csv kept && sed -i '$d' run/calibration-*");
	program_works(EVAL "--calibrate=on --threads=2");
	shell("cmp run/calibration-" NONE ".csv kept");
	static const char *const change[] = {
		CHANGE("calibration-*", "NR == 2 { $14 *= 2 }"),
		CHANGE("calibration-*", "NR == 2 { $15 += 1; $16 *= exp(1) }"),
		CHANGE("calibration-*", "NR == 5 { $15 += 1; $16 *= exp(1) }"),
	};
	for (size_t i = 0; i < sizeof change / sizeof change[0]; i++) {
		shell(change[i]);
		program_works(EVAL "--calibrate=on");
		shell("cmp run/calibration-" NONE ".csv kept");
	}
	shell("for f in first/*; do cmp $f run/$(basename $f) || exit 1; done");
}

/* ---- Kills ---- */

/* Killed while it works, it leaves no length that counts as done without its measures. */
static void test_killed(void **state)
{
	(void)state;
	shell("rm run/*.csv");
	for (int i = 1; i <= 6; i++) {
		char line[200];
		snprintf(line, sizeof line, "timeout -s KILL 0.%02d ropewalk " EVAL "--scaling=none,linear >/dev/null "
					    "2>&1; true", 4 * i);
		shell(line);
		shell("for f in run/eval-*.csv; do [ -e $f ] || continue; m=$(basename $f | sed 's/^eval-//; "
		      "s/-sequences//'); case $f in *-sequences.csv) ;; *) [ -e run/by_position-$m ] && "
		      "[ -e run/recall_grid-$m ] || exit 1 ;; esac; done");
	}
	program_works(EVAL);
	shell("for f in first/*; do cmp $f run/$(basename $f) || exit 1; done");
}

/* ---- Studies ---- */

#define STUDY "study s.study --out=st "

/* Options of the evaluation alone train nothing anew. */
static void test_study(void **state)
{
	(void)state;
	static const char text[] = "layers = 1\nwidth = 16\nheads = 1\nhidden = 16\nbatch = 2\ntrain_length = 32\n"
				   "steps = 2\nscaling = none\nmultiples = 1, 2\nsequences = 3\nreferences = off\n";
	program_put("s.study", text, strlen(text));
	says(STUDY, "1 to train, 1 to evaluate");
	says(STUDY, "0 to train, 0 to evaluate, 1 finished");
	shell("rm st/*/by_position-*");
	says(STUDY, "evaluation: 2 of 2");
	says(STUDY "--protocol=last", "0 to train, 1 to evaluate");
	says(STUDY "--protocol=last", "0 to train, 0 to evaluate, 1 finished");
	says(STUDY "--calibrate=on", "evaluation: 2 of 2");
	says(STUDY "--calibrate=on", "0 to train, 0 to evaluate, 1 finished");
	program_refuses("study s.study --out=u --protocol=all,half", "protocol: takes one value in a study", NULL);
}

static void test_force_clears(void **state)
{
	(void)state;
	program_works("train " TINY "--out=run --force");
	shell("! ls run | grep csv");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),	       cmocka_unit_test(test_columns),
		cmocka_unit_test(test_made_again),     cmocka_unit_test(test_added),
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_damaged),	       cmocka_unit_test(test_moved),
		cmocka_unit_test(test_tune_has_none),  cmocka_unit_test(test_protocols_apart),
		cmocka_unit_test(test_floors),	       cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_calibration),    cmocka_unit_test(test_killed),
		cmocka_unit_test(test_study),	       cmocka_unit_test(test_force_clears),
	};
	return cmocka_run_group_tests_name("runs measures", tests, start, stop);
}
