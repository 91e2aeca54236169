#include "tests/support.h"

#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/run/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The CSV files: what is written reads back, and what is damaged is refused with its line. */

static char path[40];

static int start(void **state)
{
	(void)state;
	strcpy(path, "/tmp/ropewalk-rows-XXXXXX");
	int file = mkstemp(path);
	return file < 0 || close(file);
}

static int stop(void **state)
{
	(void)state;
	return unlink(path);
}

static struct row example(void)
{
	return (struct row){
		.run = "a \"quoted\" run", .encoding = "rope", .scaling = "yarn(ramp=rotations,beta_fast=4)",
		.task = "two\nlines", .factor = 1.0 / 3, .group = "recall", .seed = 101, .eval_seed = 9007199254740991,
		.train_length = 64, .length = 96, .multiple = 1.5, .sequences = 16,
		.cell = { .scored = 432, .nll = 812.284581168377713, .nll_se = 1e-300, .perplexity = INFINITY, .floor = 1,
			  .accuracy = 0.37109375, .exact = 0 },
		.protocol = "a; b",
	};
}

static void same_row(const struct row *a, const struct row *b)
{
	assert_string_equal(a->run, b->run);
	assert_string_equal(a->encoding, b->encoding);
	assert_string_equal(a->scaling, b->scaling);
	assert_string_equal(a->task, b->task);
	assert_string_equal(a->group, b->group);
	assert_string_equal(a->protocol, b->protocol);
	assert_true(a->factor == b->factor && a->multiple == b->multiple);
	assert_true(a->seed == b->seed && a->eval_seed == b->eval_seed && a->sequences == b->sequences);
	assert_true(a->train_length == b->train_length && a->length == b->length);
	assert_memory_equal(&a->cell, &b->cell, sizeof a->cell);
}

static void test_rows_read_back(void **state)
{
	(void)state;
	struct row rows[2] = { example(), example() }, *again = NULL;
	rows[1].group = "far";
	rows[1].cell = (struct eval_cell){ .scored = 0 };
	assert_ok(rows_write(path, rows, 2));
	assert_ok(rows_read(path, &again));
	assert_int_equal(arrlen(again), 2);
	same_row(&rows[0], &again[0]);
	same_row(&rows[1], &again[1]);
	arrfree(again);
}

static void test_sequences_read_back(void **state)
{
	(void)state;
	struct sequence_row row = {
		.run = "r", .scaling = "ntk(factor=8,x=1)", .task = "recall", .group = "all", .seed = 1,
		.eval_seed = 2, .length = 64, .sequences = 5, .sequence = 4,
		.tally = { .scored = 27, .correct = 3, .nll_sum = 0.1 },
	};
	struct sequence_row *again = NULL;
	assert_ok(sequence_rows_write(path, &row, 1));
	assert_ok(sequence_rows_read(path, &again));
	assert_int_equal(arrlen(again), 1);
	assert_string_equal(again->scaling, row.scaling);
	assert_int_equal(again->sequence, 4);
	assert_memory_equal(&again->tally, &row.tally, sizeof row.tally);
	arrfree(again);
}

static void test_columns(void **state)
{
	(void)state;
	struct row row = example();
	char *text;
	size_t size;
	row.cell.scored = 0;
	assert_ok(rows_write(path, &row, 1));
	assert_ok(io_read(path, &text, &size));
	assert_string_equal(text, "run,encoding,scaling,factor,task,group,seed,eval_seed,train_length,length,multiple,"
				  "sequences,scored,nll,nll_se,perplexity,floor,accuracy,exact,protocol\n"
				  "\"a \"\"quoted\"\" run\",rope,\"yarn(ramp=rotations,beta_fast=4)\","
				  "0.3333333333333333,\"two\nlines\",recall,101,9007199254740991,64,96,1.5,16,0,"
				  ",,,,,,a; b\n");
	free(text);
}

/* An empty field in CSV, null in JSON, NaN when it is read. */
static void test_unknown_floor(void **state)
{
	(void)state;
	struct row row = example(), *again = NULL;
	struct records records = { 0 };
	struct text_builder json = { 0 };
	char *text;
	size_t size;
	row.cell.floor = NAN;
	assert_ok(rows_write(path, &row, 1));
	assert_ok(io_read(path, &text, &size));
	assert_non_null(strstr(text, ",inf,,0.37109375,0,a; b\n"));
	free(text);
	assert_ok(rows_read(path, &again));
	assert_true(isnan(again->cell.floor) && again->cell.accuracy == row.cell.accuracy);
	rows_records(again, 1, &records);
	records_json(&records, 0, &json);
	assert_non_null(strstr(json.data, "\"floor\": null, \"accuracy\": 0.37109375"));
	text_builder_free(&json);
	records_free(&records);
	arrfree(again);
}

static void test_no_file_is_no_rows(void **state)
{
	(void)state;
	struct row *rows = NULL;
	assert_ok(rows_read("/nonexistent/file.csv", &rows));
	assert_int_equal(arrlen(rows), 0);
}

static void refuses(const char *text, size_t size, const char *part)
{
	struct row *rows = NULL;
	assert_ok(io_write(path, text, size));
	assert_err(rows_read(path, &rows), ERR_USAGE, part);
	arrfree(rows);
}

static void refuse_row(struct row row, const char *column)
{
	struct row *rows = NULL;
	char part[60];
	row.task = "recall";
	snprintf(part, sizeof part, ":2: a damaged row: its %s is '", column);
	assert_ok(rows_write(path, &row, 1));
	assert_err(rows_read(path, &rows), ERR_USAGE, part);
	arrfree(rows);
}

/* Numbers that no evaluation gives are not averaged with the others. */
static void test_impossible_rows(void **state)
{
	(void)state;
	static const struct {
		const char *column;
		size_t offset;
		double number;
		int64_t integer;
	} bad[] = {
#define BAD(name, field, number) { #name, offsetof(struct row, field), number, 0 }
#define BAD_INTEGER(name, field, integer) { #name, offsetof(struct row, field), 0, integer }
		BAD(factor, factor, -1), BAD(factor, factor, INFINITY), BAD(multiple, multiple, -2),
		BAD(multiple, multiple, INFINITY), BAD(nll, cell.nll, -5), BAD(nll_se, cell.nll_se, -1),
		BAD(perplexity, cell.perplexity, 10), BAD(perplexity, cell.perplexity, INFINITY),
		BAD(perplexity, cell.perplexity, -1), BAD(floor, cell.floor, -1), BAD(accuracy, cell.accuracy, 7),
		BAD(exact, cell.exact, 1.5), BAD_INTEGER(length, length, 0),
		BAD_INTEGER(train_length, train_length, -1), BAD_INTEGER(sequences, sequences, 0),
		BAD_INTEGER(scored, cell.scored, -1),
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct row row = example();
		char *field = (char *)&row + bad[i].offset;
		row.cell.nll = 2;
		row.cell.perplexity = exp(2);
		if (bad[i].number != 0)
			memcpy(field, &bad[i].number, sizeof bad[i].number);
		else
			memcpy(field, &bad[i].integer, sizeof bad[i].integer);
		refuse_row(row, bad[i].column);
	}
}

/* What nothing was scored for has no numbers, which would be lost when the rows are written again. */
static void test_numbers_of_nothing(void **state)
{
	(void)state;
	struct row row = example();
	char *text;
	size_t size;
	row.task = "recall";
	assert_ok(rows_write(path, &row, 1));
	assert_ok(io_read(path, &text, &size));
	memcpy(strstr(text, ",432,"), ",000,", 5);
	refuses(text, size, ":2: a damaged row: its nll is '812.");
	free(text);
}

static void test_damaged_files(void **state)
{
	(void)state;
	struct row rows[2] = { example(), example() };
	char *text;
	size_t size;
	rows[0].task = rows[1].task = "recall";
	assert_ok(rows_write(path, rows, 2));
	assert_ok(io_read(path, &text, &size));
	refuses(text, size - 20, ":3: a damaged row: it has 17 fields where there are 20");
	refuses(text, (size_t)(strstr(text, "quoted") - text), ":2: a quoted field does not end");
	refuses("a,b\n", 4, ":1: not the columns");
	refuses("", 0, ":1: not the columns");
	char *number = strstr(text, "812.284");
	*number = 'x';
	refuses(text, size, ":2: a damaged row: its nll is 'x12.28");
	free(text);
}

static void test_fields(void **state)
{
	(void)state;
	static const char *const fields[][2] = { { "", "" }, { "plain text", "plain text" }, { "a,b", "\"a,b\"" },
						 { "\"", "\"\"\"\"" }, { "a\rb", "\"a\rb\"" }, { "\n", "\"\n\"" } };
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
		struct text_builder b = { 0 };
		struct csv csv;
		text_add(&b, "x,");
		csv_field(&b, fields[i][0]);
		assert_string_equal(b.data + 2, fields[i][1]);
		text_add(&b, "\r\nlast");
		assert_ok(csv_parse("text", b.data, &csv));
		assert_int_equal(arrlen(csv.record), 2);
		assert_int_equal(arrlen(csv.record[0]), 2);
		assert_string_equal(csv.record[0][1], fields[i][0]);
		assert_string_equal(csv.record[1][0], "last");
		csv_free(&csv);
		text_builder_free(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_read_back), cmocka_unit_test(test_sequences_read_back),
		cmocka_unit_test(test_columns),	       cmocka_unit_test(test_no_file_is_no_rows),
		cmocka_unit_test(test_unknown_floor),
		cmocka_unit_test(test_impossible_rows),
		cmocka_unit_test(test_numbers_of_nothing),
		cmocka_unit_test(test_damaged_files),  cmocka_unit_test(test_fields),
	};
	return cmocka_run_group_tests_name("runs rows", tests, start, stop);
}
