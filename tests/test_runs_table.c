#include "runs/show/chance.h"
#include "runs/show/notes.h"
#include "runs/show/wrap.h"

#include <stdio.h>
#include <string.h>

#include "tests/study_case.h"

static void test_numbers(void **state)
{
	(void)state;
	static const struct {
		double value;
		const char *text;
	} perplexity[] = { { 1, "1.00" },    { 9.994, "9.99" }, { 9.996, "10.0" },     { 38.64, "38.6" },
			   { 99.96, "100" }, { 1234, "1234" },  { 12345678, "1.2e+07" } },
	  accuracy[] = { { 1, "100" }, { 0.9996, "100" }, { 0.9994, "99.9" }, { 0.051, "5.1" }, { 0, "0.0" } };
	char text[SHORT_TEXT];
	for (size_t i = 0; i < sizeof perplexity / sizeof *perplexity; i++)
		assert_string_equal(perplexity_text(perplexity[i].value, text), perplexity[i].text);
	for (size_t i = 0; i < sizeof accuracy / sizeof *accuracy; i++)
		assert_string_equal(accuracy_text(accuracy[i].value, text), accuracy[i].text);
}

static void test_wrap(void **state)
{
	(void)state;
	const char **line = wrap("yarn(ramp=rotations,beta_slow=1,beta_fast=4)", 30, " ,(", 2);
	assert_int_equal(arrlen(line), 2);
	assert_string_equal(line[0], "yarn(ramp=rotations,");
	assert_string_equal(line[1], "  beta_slow=1,beta_fast=4)");
	arrfree(line);
	line = wrap("one two three", 7, " ", 2);
	assert_int_equal(arrlen(line), 2);
	assert_string_equal(line[0], "one two");
	assert_string_equal(line[1], "  three");
	arrfree(line);
	line = wrap("unbreakable", 4, " ", 2);
	assert_int_equal(arrlen(line), 1);
	arrfree(line);
	line = wrap("", 4, " ", 2);
	assert_int_equal(arrlen(line), 1);
	arrfree(line);
}

static void test_summary(void **state)
{
	(void)state;
	two_seeds("a");
	struct summary s = results_summary(&results, 0, 0, 4, "recall");
	assert_int_equal(s.state, SUMMARY_FOUND);
	assert_int_equal(s.seeds, 2);
	assert_int_equal(s.done, 2);
	assert_close(s.perplexity, 6, 1e-12);
	assert_close(s.least, 4, 1e-12);
	assert_close(s.greatest, 9, 1e-12);
	assert_close(s.accuracy, 0.65, 1e-12);
	assert_int_equal(s.scored, 10);
	assert_int_equal(s.length, 256);
	s = results_summary(&results, 0, 1, 4, "recall");
	assert_int_equal(s.done, 1);
	assert_close(s.perplexity, 2, 1e-12);
	assert_int_equal(results_summary(&results, 0, 0, 2, "recall").state, SUMMARY_IMPOSSIBLE);
	assert_int_equal(results_summary(&results, 0, 0, 4, "far").state, SUMMARY_ABSENT);
}

static void test_rows_of_other_evaluations(void **state)
{
	(void)state;
	two_seeds("a");
	results_free(&results);
	grid_free(&grid);
	study_free(&study);
	build("seed = 1, 2\nscaling = none, ntk\nmultiples = 1, 4\nsequences = 4\n");
	read_back();
	assert_int_equal(results_summary(&results, 0, 0, 4, "recall").state, SUMMARY_ABSENT);
}

static void test_reached_and_order(void **state)
{
	(void)state;
	two_seeds("a");
	struct reached n = results_reached(&results, 0);
	assert_int_equal(n.seeds, 2);
	assert_int_equal(n.known, 2);
	assert_int_equal(n.reached, 1);
	struct order o = results_order(&results, 0, 1, 0);
	assert_int_equal(o.compared, 1);
	assert_int_equal(o.better, 1);
	o = results_order(&results, 0, 0, 1);
	assert_int_equal(o.compared, 1);
	assert_int_equal(o.better, 0);
}

/* The table above its second rule: what follows are the references. */
static char *table_of(const char *group)
{
	struct text_builder b = { 0 };
	struct sheet sheet;
	assert_ok(table_sheet(&results, group, &sheet));
	sheet_text(&sheet, false, &b);
	sheet_free(&sheet);
	char *rule = strstr(strstr(b.data, "--\n") + 3, "\n---");
	if (rule)
		rule[1] = '\0';
	return b.data;
}

static void test_text(void **state)
{
	(void)state;
	two_seeds("a");
	char *text = table_of("recall");
	static const char wanted[] =
		"recall: perplexity / accuracy in %; (least - greatest perplexity over seeds)\n"
		"encoding rope; task recall; train_length 64; seed 1, 2\n"
		"                                                                        1x              4x\n"
		"-------------------------------------------------------------------------------------------\n"
		"none                                                           1.10 / 99.0*    6.00 / 65.0*\n"
		"                                                             (1.00 - 1.21)   (4.00 - 9.00)\n"
		"ntk                                                             1.00 / 100     2.00 / 90.0\n"
		"                                                              1 of 2 seeds    1 of 2 seeds\n";
	assert_string_equal(text, wanted);
	free(text);
}

static void test_above_the_floor(void **state)
{
	(void)state;
	build("scaling = linear(factor=8), none\nmultiples = 1\n");
	char *path = make_run(0, "finished", "a");
	write_rows(path, 0, 0, (const double[][2]){ { 4.77, 0.77 } });
	write_rows(path, 0, 1, (const double[][2]){ { 1.05, 1 } });
	read_back();
	char *text = table_of("recall");
	assert_non_null(strstr(text, "!4.77 / 77.0\n"));
	assert_non_null(strstr(text, " 1.05 / 100\n"));
	free(text);
	struct text_builder b = { 0 };
	notes_text(&results, &b);
	assert_ptr_equal(strstr(b.data, "reached the floor in 1 of 1 seeds"), b.data);
	b.size = 0;
	write_rows(path, 0, 1, (const double[][2]){ { 1.5, 1 } });
	read_back();
	notes_text(&results, &b);
	assert_ptr_equal(strstr(b.data, "warning: reached the floor in 0 of 1 seeds"), b.data);
	text_builder_free(&b);
	free(path);
}

/* Without a known floor no model is above it, none has reached it, and its colour counts from 0 nats. */
static void test_unknown_floor(void **state)
{
	(void)state;
	build("scaling = none\nmultiples = 1\n");
	char *path = make_run(0, "finished", "a");
	struct row row = new_row(&grid.cell[0], 0, 0, "recall", 4.77, 0.77);
	row.cell.floor = NAN;
	char *csv = run_folder_csv(path, &grid.cell[0].config.eval, "none", false);
	assert_ok(rows_write(csv, &row, 1));
	free(csv);
	read_back();
	struct sheet sheet;
	assert_ok(table_sheet(&results, "recall", &sheet));
	assert_string_equal(sheet.row[0].cell[0].line[0], "4.77 / 77.0");
	assert_close(sheet.row[0].cell[0].heat, log(4.77) / log(99), 1e-12);
	sheet_free(&sheet);
	struct text_builder b = { 0 };
	notes_text(&results, &b);
	assert_null(strstr(b.data, "reached the floor"));
	text_builder_free(&b);
	free(path);
}

static void test_chance(void **state)
{
	(void)state;
	two_seeds("a");
	const struct cell *c = &grid.cell[0];
	struct chance_request q = { .task = &c->config.data.task, .train_length = 64, .length = 64, .sequences = 20,
				    .eval_seed = 1 };
	struct eval_reference reference[EVAL_REFERENCES];
	int count;
	assert_ok(chance(&q, reference, &count));
	assert_true(count >= 2);
	assert_close(reference[0].perplexity, 32, 1e-9);
	assert_close(reference[0].accuracy, 1.0 / 32, 1e-9);
	assert_true(reference[1].perplexity > 1 && reference[1].perplexity < 8);
	assert_true(reference[1].accuracy > 1.0 / 8 && reference[1].accuracy < 1);
	struct text_builder b = { 0 };
	struct sheet sheet;
	assert_ok(table_sheet(&results, "recall", &sheet));
	sheet_text(&sheet, false, &b);
	sheet_free(&sheet);
	assert_non_null(strstr(b.data, "reference: window (the last 64 keys)"));
	assert_non_null(strstr(b.data, "reference: uniform over the values"));
	assert_non_null(strstr(b.data, "32.0 / 3.1"));
	text_builder_free(&b);
}

static void test_states(void **state)
{
	(void)state;
	build("encoding = rope, alibi, nope\nscaling = none, ntk\nmultiples = 1, 2\n[encoding=nope]\nlayers = 3\n");
	free(make_run(0, "diverged", "a"));
	free(make_run(1, "finished", "a"));
	read_back();
	assert_int_equal(results_summary(&results, 0, 0, 1, "recall").state, SUMMARY_DIVERGED);
	assert_int_equal(results_summary(&results, 1, 0, 1, "recall").state, SUMMARY_ABSENT);
	assert_int_equal(results_summary(&results, 1, 1, 1, "recall").state, SUMMARY_IMPOSSIBLE);
	assert_string_equal(table_label(&results, 1, 1), "alibi, ntk");
	assert_string_equal(table_label(&results, 2, 0), "nope, none [1]");
	struct text_builder b = { 0 };
	notes_text(&results, &b);
	assert_non_null(strstr(b.data, "warning: diverged in training: rope-"));
	assert_non_null(strstr(b.data, "(1 of 3 models)"));
	assert_non_null(strstr(b.data, "[1] encoding=nope: layers=3.\n"));
	assert_non_null(strstr(b.data, "rope: reached the floor in 0 of 1 seeds"));
	text_builder_free(&b);
}

/* The fields of a record by column name, "" where absent; fails if there is no such column. */
static const char *field_of(const struct csv *csv, int record, const char *column)
{
	for (int i = 0; i < arrlen(csv->record[0]); i++)
		if (!strcmp(csv->record[0][i], column))
			return csv->record[record][i];
	fail_msg("no column %s", column);
	return NULL;
}

/* The record of a method, multiple and group. */
static int record_of(const struct csv *csv, const char *scaling, const char *multiple, const char *group)
{
	for (int i = 1; i < arrlen(csv->record); i++)
		if (!strcmp(field_of(csv, i, "scaling"), scaling) && !strcmp(field_of(csv, i, "group"), group) &&
		    !strcmp(field_of(csv, i, "multiple"), multiple))
			return i;
	fail_msg("no record of %s at %s", scaling, multiple);
	return 0;
}

static void read_long(struct csv *csv)
{
	struct text_builder b = { 0 };
	struct records records = { 0 };
	assert_ok(table_long(&results, NULL, &records));
	records_csv(&records, true, &b);
	assert_ok(csv_parse("t", b.data, csv));
	for (int i = 0; i < arrlen(csv->record); i++)
		assert_int_equal(arrlen(csv->record[i]), arrlen(csv->record[0]));
	records_free(&records);
	text_builder_free(&b);
}

static void test_csv(void **state)
{
	(void)state;
	two_seeds("a");
	struct csv csv;
	read_long(&csv);
	int methods = 0;
	for (int i = 1; i < arrlen(csv.record); i++)
		methods += !strcmp(field_of(&csv, i, "kind"), "method");
	assert_int_equal(methods, 2 * 2 * 5);
	int i = record_of(&csv, "none", "4", "recall");
	static const char *const wanted[][2] = {
		{ "encoding", "rope" }, { "length", "256" }, { "seeds", "2" }, { "seeds_done", "2" },
		{ "perplexity", "6" }, { "perplexity_least", "4" }, { "perplexity_greatest", "9" },
		{ "perplexity_low", "" }, { "accuracy", "0.6499999999999999" }, { "floor", "1" }, { "scored", "10" },
		{ "sequences", "3" }, { "state", "found" }, { "axes", "" }, { "best", "1" },
	};
	for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++)
		assert_string_equal(field_of(&csv, i, wanted[k][0]), wanted[k][1]);
	i = record_of(&csv, "ntk", "4", "recall");
	assert_string_equal(field_of(&csv, i, "seeds_done"), "1");
	assert_string_equal(field_of(&csv, i, "perplexity"), "2");
	assert_string_equal(field_of(&csv, i, "best"), "0");
	i = record_of(&csv, "ntk", "4", "far");
	assert_string_equal(field_of(&csv, i, "state"), "absent");
	assert_string_equal(field_of(&csv, i, "perplexity"), "");
	i = record_of(&csv, "window", "4", "recall");
	assert_string_equal(field_of(&csv, i, "kind"), "reference");
	i = record_of(&csv, "uniform over the values", "4", "recall");
	assert_string_equal(field_of(&csv, i, "kind"), "baseline");
	csv_free(&csv);
}

static void test_csv_axes(void **state)
{
	(void)state;
	build("encoding = alibi(slopes=spread)\nwidth = 32, 64\nscaling = ntk(factor=8)\nmultiples = 1\n");
	read_back();
	struct csv csv;
	read_long(&csv);
	int i = record_of(&csv, "ntk(factor=8)", "1", "recall");
	assert_string_equal(field_of(&csv, i, "encoding"), "alibi(slopes=spread)");
	assert_string_equal(field_of(&csv, i, "state"), "n/a");
	assert_string_equal(field_of(&csv, i, "axes"), "width=32");
	csv_free(&csv);
}

/* Joins the lines of a paragraph again. */
static void unwrap(char *text)
{
	char *to = text;
	for (const char *s = text; *s; s++) {
		bool cut = !strncmp(s, "\n  ", 3);
		*to++ = cut ? ' ' : *s;
		s += cut ? 2 : 0;
	}
	*to = '\0';
}

/* Two models of two versions, with everything that has a note. */
static void noteworthy(void)
{
	build("seed = 1, 2\nmultiples = 1, 4\nscaling = none, ntk, linear(factor=8), dynamic(block=64), "
	      "yarn(ramp=rotations,beta_fast=32)\n");
	char *first = make_run(0, "finished", "a"), *second = make_run(1, "finished", "b");
	write_rows(first, 0, 0, (const double[][2]){ { 1, 1 }, { 9, 0.6 } });
	write_rows(first, 0, 1, (const double[][2]){ { 1, 1 }, { 2, 0.9 } });
	write_rows(second, 1, 0, (const double[][2]){ { 1.05, 1 }, { 9, 0.6 } });
	free(first);
	free(second);
	read_back();
}

static void test_notes(void **state)
{
	(void)state;
	noteworthy();
	struct text_builder b = { 0 };
	notes_text(&results, &b);
	for (const char *line = b.data; line; line = strchr(line + 1, '\n'))
		assert_true(strcspn(line + 1, "\n") <= PAGE_WIDTH);
	unwrap(b.data);
	static const char *const part[] = {
		"warning: 1 of 2 models were trained by another version",
		"warning: beta_fast is above train_length / 2 pi = 10.2",
		"reached the floor in 2 of 2 seeds",
		"protocol: by hand.",
		"recall 1x 10 4x 10; echo 1x 10 4x 10",
		"seeds: 1, 2.",
		"factor auto = max(1, length / train_length): ntk; yarn(",
		"factor fixed as given, at every length: linear(factor=8).",
		"6 of 16 pairs (38%)",
		"ntk beat none in 1 of 1",
		"caution: as the sequence grows each key is queried more often",
		"command: ropewalk study by-hand\n",
	};
	for (size_t i = 0; i < sizeof part / sizeof *part; i++)
		if (!strstr(b.data, part[i]))
			fail_msg("'%s' is not in:\n%s", part[i], b.data);
	assert_null(strstr(b.data, "warning: reached"));
	text_builder_free(&b);
}

/* Each part counts with its own options; what has no factor is under no rule. */
static void test_notes_of_parts(void **state)
{
	(void)state;
	build("multiples = 1, 4\nscaling = none, rerope+logn, ntk(factor=2)+temperature, temperature(value=0.5), "
	      "logn+yarn(ramp=rotations,beta_fast=32)\n");
	char *run = make_run(0, "finished", "a");
	write_rows(run, 0, 0, (const double[][2]){ { 1, 1 }, { 9, 0.6 } });
	free(run);
	read_back();
	struct text_builder b = { 0 };
	notes_text(&results, &b);
	unwrap(b.data);
	static const char *const part[] = {
		"so the ramp over rotations leaves no pair unscaled: logn+yarn(",
		"length / train_length): ntk(factor=2)+temperature; logn+yarn(ramp=rotations,beta_fast=32).",
		"factor fixed as given, at every length: ntk(factor=2)+temperature.",
		"in full: rerope(w=0)+logn; ntk(factor=2)+temperature(factor=auto, value=auto); "
		"temperature(factor=auto, value=0.5)",
	};
	for (size_t i = 0; i < sizeof part / sizeof *part; i++)
		if (!strstr(b.data, part[i]))
			fail_msg("'%s' is not in:\n%s", part[i], b.data);
	text_builder_free(&b);
}

/* What goes by the length and is no factor is said too, each rule once, of the rows it is of. */
static void test_notes_of_rules(void **state)
{
	(void)state;
	build("multiples = 1, 4\nscaling = none, dynamic, dynamic(block=64)+logn, dynamic_linear, "
	      "abf+dynamic_yarn, dynamic_qwen, leaky_rerope, leaky_rerope(k=2), self_extend, self_extend(group=3)\n");
	char *run = make_run(0, "finished", "a");
	write_rows(run, 0, 0, (const double[][2]){ { 1, 1 }, { 9, 0.6 } });
	free(run);
	read_back();
	struct text_builder b = { 0 };
	notes_text(&results, &b);
	unwrap(b.data);
	static const char *const part[] = {
		"\nratio max(1, alpha length / train_length - (alpha - 1)), length that of the sequence or, with block, up "
		"to the end of the query's block: dynamic; dynamic(block=64)+logn.\n",
		"\nratio max(1, length / train_length), length that of the sequence or, with block, up to the end of the "
		"query's block: dynamic_linear; abf+dynamic_yarn.\n",
		"\nratio max(1, 2^ceil(log2(length / train_length) + 1) - 1), length that of the sequence or, with block, "
		"up to the end of the query's block: dynamic_qwen.\n",
		"\nk auto = max(1, (length - w) / (train_length - w)): leaky_rerope.\n",
		"\ngroup 0 = max(1, ceil((length - w) / (train_length - w))): self_extend.\n",
		"\nqueries at position p times max(1, ln(p + 1) / ln(train_length)): dynamic(block=64)+logn.\n",
	};
	for (size_t i = 0; i < sizeof part / sizeof *part; i++)
		if (!strstr(b.data, part[i]))
			fail_msg("'%s' is not in:\n%s", part[i], b.data);
	text_builder_free(&b);
}

static void test_damaged(void **state)
{
	(void)state;
	two_seeds("a");
	char *path = io_join(folder, grid.cell[1].name), *csv = run_folder_csv(path, &grid.cell[1].config.eval, "none", false);
	assert_ok(io_append(csv, "what\n", 5));
	results_free(&results);
	assert_err(results_read(folder, &study, &grid, &results), ERR_USAGE, "damaged");
	free(csv);
	free(path);
}

static void test_not_a_study(void **state)
{
	(void)state;
	assert_err(study_folder_open(folder, &study, &grid), ERR_USAGE, "not a study's folder");
	assert_err(study_folder_open("/nowhere", &study, &grid), ERR_USAGE, "not a study's folder");
}

#define TABLE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_wrap),
		TABLE_TEST(test_summary),
		TABLE_TEST(test_rows_of_other_evaluations),
		TABLE_TEST(test_reached_and_order),
		TABLE_TEST(test_text),
		TABLE_TEST(test_above_the_floor),
		TABLE_TEST(test_unknown_floor),
		TABLE_TEST(test_chance),
		TABLE_TEST(test_states),
		TABLE_TEST(test_csv),
		TABLE_TEST(test_csv_axes),
		TABLE_TEST(test_notes),
		TABLE_TEST(test_notes_of_parts),
		TABLE_TEST(test_notes_of_rules),
		TABLE_TEST(test_damaged),
		TABLE_TEST(test_not_a_study),
	};
	return cmocka_run_group_tests_name("runs table", tests, NULL, NULL);
}
