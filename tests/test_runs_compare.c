#include "runs/show/compare.h"

#include <jansson.h>
#include <string.h>

#include "tests/study_case.h"

/* Methods against each other and the formats of tables, on numbers written by hand. */

#define SEEDS 5

/* Five seeds at 4x: the second scaling's NLL is below the first one's by `gain`, that of a third one above by 1. */
static void seeds_of(const char *scalings, const double gain[SEEDS])
{
	char text[160];
	snprintf(text, sizeof text, "seed = 1, 2, 3, 4, 5\nscaling = %s\nmultiples = 1, 4\nsequences = 3\n", scalings);
	build(text);
	for (int i = 0; i < SEEDS; i++) {
		char *path = make_run(i, "finished", "a");
		const double nll = 2 + 0.1 * i, more[3] = { 0, -gain[i], 1 };
		for (int j = 0; j < grid.cell[i].scalings - grid.cell[i].references && j < 3; j++)
			write_rows(path, i, j, (const double[][2]){ { 1, 1 }, { exp(nll + more[j]), j == 1 ? 0.7 : 0.5 } });
		free(path);
	}
	read_back();
}

static void five_seeds(const double gain[SEEDS])
{
	seeds_of("none, ntk", gain);
}

static const double steady[SEEDS] = { 0.1, 0.2, 0.3, 0.4, 0.5 }, doubtful[SEEDS] = { 0.5, -0.4, 0.6, -0.2, 0.1 };

/* Differences -0.1 ... -0.5: mean -0.3, interval -0.3 -+ 2.776445 sqrt(0.025 / 5). */
static void test_paired(void **state)
{
	(void)state;
	five_seeds(steady);
	const struct contender none = { 0, 0, false }, ntk = { 0, 1, false };
	struct paired p = paired(&results, &ntk, &none, 4, "recall", CONFIDENCE);
	assert_int_equal(p.seeds, 5);
	assert_int_equal(p.wins, 5);
	assert_true(p.same_weights);
	assert_close(p.nll.mean, -0.3, 1e-9);
	assert_close(p.nll.low, -0.3 - 2.7764451052 * sqrt(0.005), 1e-9);
	assert_close(p.nll.high, -0.3 + 2.7764451052 * sqrt(0.005), 1e-9);
	assert_close(p.least, -0.5, 1e-9);
	assert_close(p.greatest, -0.1, 1e-9);
	assert_close(p.accuracy, 0.2, 1e-12);
	p = paired(&results, &none, &ntk, 4, "recall", CONFIDENCE);
	assert_int_equal(p.wins, 0);
	assert_close(p.nll.mean, 0.3, 1e-9);
	p = paired(&results, &none, &ntk, 4, "far", CONFIDENCE);
	assert_int_equal(p.seeds, 0);
}

static void test_best(void **state)
{
	(void)state;
	bool best[3];
	five_seeds(steady);
	struct contender *who = contenders(&results);
	assert_int_equal(arrlen(who), 3);
	assert_true(who[2].reference && !who[1].reference);
	contenders_best(&results, who, 3, 4, "recall", best);
	assert_true(!best[0] && best[1] && !best[2]);
	/* Equal to the bit at 1x: both. */
	contenders_best(&results, who, 3, 1, "recall", best);
	assert_true(best[0] && best[1]);
	arrfree(who);
}

static void test_not_to_be_told_apart(void **state)
{
	(void)state;
	bool best[3];
	five_seeds(doubtful);
	struct contender *who = contenders(&results);
	contenders_best(&results, who, 3, 4, "recall", best);
	assert_true(best[0] && best[1] && !best[2]);
	arrfree(who);
}

/* Mean difference -0.28, t = 3.25 of 4 degrees of freedom: past 2.78, the quantile of 0.975, but not past 3.50, that of
 * 0.9875, which a correction for two others would take. */
static void test_each_row_on_its_own(void **state)
{
	(void)state;
	bool best[4];
	seeds_of("none, ntk, linear", (const double[]){ 0, 0.2, 0.3, 0.4, 0.5 });
	struct contender *who = contenders(&results);
	assert_int_equal(arrlen(who), 4);
	contenders_best(&results, who, 4, 4, "recall", best);
	arrfree(who);
	assert_true(!best[0] && best[1] && !best[2]);
}

/* Intervals of the mean NLL 2.2 with sd sqrt(0.025), and of accuracies that are all 1/2. */
static void test_interval_cells(void **state)
{
	(void)state;
	five_seeds(steady);
	struct summary s = results_summary(&results, 0, 0, 4, "recall");
	assert_close(s.nll.mean, 2.2, 1e-9);
	assert_close(s.nll.high, 2.2 + 2.7764451052 * sqrt(0.005), 1e-9);
	assert_close(logistic(s.logit.low), 0.5, 1e-9);
	struct sheet sheet;
	assert_ok(table_sheet(&results, "recall", &sheet));
	assert_string_equal(sheet.row[0].cell[1].line[0], "9.03 / 50.0");
	assert_string_equal(sheet.row[0].cell[1].line[1], "[7.42 - 11.0]");
	assert_string_equal(sheet.row[0].cell[1].line[2], "[50.0 - 50.0 %]");
	assert_non_null(strstr(sheet.title, "[95 % t interval"));
	assert_true(sheet.row[1].cell[1].best && !sheet.row[0].cell[1].best);
	sheet_free(&sheet);
}

/* Rows by sequence of one scaling at 4x: three sequences of 2 scored tokens. */
static void write_sequences(int cell, int scaling, const double nll_sum[3])
{
	struct sequence_row row[3];
	const struct cell *c = &grid.cell[cell];
	char *path = io_join(folder, c->name);
	char *csv = run_folder_csv(path, &c->config.eval, c->scaling_label[scaling], true);
	for (int i = 0; i < 3; i++)
		row[i] = (struct sequence_row){
			.run = c->name, .scaling = c->scaling_label[scaling], .task = "recall", .group = "recall",
			.seed = c->config.train.seed, .eval_seed = 1, .length = 256, .sequences = 3, .sequence = i,
			.tally = { .scored = 2, .nll_sum = nll_sum[i] },
		};
	assert_ok(sequence_rows_write(csv, row, 3));
	free(csv);
	free(path);
}

/* Rows of 4x whose nll is 1, with the error that three sequences of NLL 1, 2, 3 give. */
static void two_noisy_seeds(const double second[3])
{
	build("seed = 1, 2\nscaling = none, ntk\nmultiples = 4\nsequences = 3\n");
	for (int i = 0; i < 2; i++) {
		char *path = make_run(i, "finished", "a");
		for (int j = 0; j < 2; j++) {
			struct row row = new_row(&grid.cell[i], j, 0, "recall", M_E, 0.5);
			row.cell.scored = 6;
			row.cell.nll_se = sqrt(3) / 6;
			char *csv = run_folder_csv(path, &grid.cell[i].config.eval, grid.cell[i].scaling_label[j],
						   false);
			assert_ok(rows_write(csv, &row, 1));
			free(csv);
			write_sequences(i, j, i ? second : (const double[]){ 1, 2, 3 });
		}
		free(path);
	}
	write_sequences(1, 1, (const double[]){ 2, 2, 2 });
	read_back();
}

/* sqrt(3/2 (1 + 0 + 1)) / 6 for one seed. Seeds that find the same sequences hard do not average that out; seeds that
 * find opposite ones hard do. */
static void test_error_by_sequence(void **state)
{
	(void)state;
	two_noisy_seeds((const double[]){ 1, 2, 3 });
	struct summary s = results_summary(&results, 0, 0, 4, "recall");
	assert_true(s.noisy);
	assert_close(s.nll_se, sqrt(3) / 6, 1e-12);
	struct sheet sheet;
	assert_ok(table_sheet(&results, "recall", &sheet));
	assert_string_equal(sheet.row[0].cell[0].line[2], "+-0.78 eval");
	sheet_free(&sheet);
	/* Differences: seed 1 none; seed 2 has -1, 0, 1 of 2 tokens a sequence, over 12 tokens in all. */
	const struct contender none = { 0, 0, false }, ntk = { 0, 1, false };
	struct paired p = paired(&results, &none, &ntk, 4, "recall", CONFIDENCE);
	assert_close(p.nll_se, sqrt(1.5 * 2) / 12, 1e-12);
}

static void test_opposite_errors(void **state)
{
	(void)state;
	two_noisy_seeds((const double[]){ 3, 2, 1 });
	struct summary s = results_summary(&results, 0, 0, 4, "recall");
	assert_false(s.noisy);
	assert_close(s.nll_se, 0, 1e-12);
}

static void test_damaged_sequences(void **state)
{
	(void)state;
	two_noisy_seeds((const double[]){ 1, 2, 3 });
	char *path = io_join(folder, grid.cell[1].name), *csv = run_folder_csv(path, &grid.cell[1].config.eval, "none", true);
	assert_ok(io_append(csv, "what\n", 5));
	read_back();
	results_summary(&results, 0, 0, 4, "recall");
	assert_int_equal(results.late->code, ERR_USAGE);
	assert_non_null(strstr(results.late->text, "damaged"));
	free(csv);
	free(path);
}

/* A file cut at a line's end, or edited: its rows no longer make the one beside it. */
static void test_sequences_that_do_not_add_up(void **state)
{
	(void)state;
	two_noisy_seeds((const double[]){ 1, 2, 3 });
	write_sequences(0, 0, (const double[]){ 1, 2, 3.5 });
	read_back();
	results_summary(&results, 0, 0, 4, "recall");
	assert_int_equal(results.late->code, ERR_USAGE);
	assert_non_null(strstr(results.late->text, "do not add up"));
}

static void test_differences(void **state)
{
	(void)state;
	struct sheet sheet;
	five_seeds(steady);
	assert_ok(table_against_check(&results, "none"));
	table_differences(&results, "recall", "none", &sheet);
	assert_int_equal(arrlen(sheet.row), 2); /* not itself */
	assert_string_equal(sheet.row[0].label, "ntk");
	assert_string_equal(sheet.row[0].cell[1].line[0], "x0.74 / +20.0");
	assert_string_equal(sheet.row[0].cell[1].line[1], "[0.61 - 0.90]");
	assert_string_equal(sheet.row[0].cell[1].line[2], "wins 5 of 5");
	assert_string_equal(sheet.row[0].cell[0].line[2], "equal");
	assert_non_null(strstr(sheet.title, "same weights"));
	sheet_free(&sheet);
	assert_err(table_against_check(&results, "yarn"), ERR_USAGE, "no row of");
	assert_ok(table_against_check(&results, "ntk(factor=auto)"));
	assert_ok(table_against_check(&results, "none [1]"));
	assert_err(table_against_check(&results, "ntk(factor=8)"), ERR_USAGE, "The rows are: none; ntk; window.");
	assert_err(table_against_check(&results, "wndow"), ERR_USAGE, "Did you mean window?");
	assert_ok(table_against_check(&results, ""));
}

/* Rows of another encoding are held against the one named, seed by seed. */
static void test_against_another_encoding(void **state)
{
	(void)state;
	struct sheet sheet;
	build("encoding = rope, alibi\nseed = 1, 2\nmultiples = 4\nsequences = 3\n");
	for (int i = 0; i < 4; i++) {
		char *path = make_run(i, "finished", "a");
		write_rows(path, i, 0, (const double[][2]){ { i < 2 ? 4 : 2, i < 2 ? 0.5 : 0.75 } });
		free(path);
	}
	read_back();
	table_differences(&results, "recall", "rope", &sheet);
	assert_string_equal(sheet.row[0].label, "alibi");
	assert_string_equal(sheet.row[0].cell[0].line[0], "x0.50 / +25.0");
	assert_non_null(strstr(sheet.title, "trained apart"));
	sheet_free(&sheet);
}

/* --- Formats. ---------------------------------------------------------------------------------------------------- */

static char *render(void (*how)(const struct sheet *s, struct text_builder *b))
{
	struct text_builder b = { 0 };
	struct sheet sheet;
	assert_ok(table_sheet(&results, "recall", &sheet));
	how(&sheet, &b);
	sheet_free(&sheet);
	return b.data;
}

static void coloured(const struct sheet *s, struct text_builder *b)
{
	sheet_text(s, true, b);
}

static void plain(const struct sheet *s, struct text_builder *b)
{
	sheet_text(s, false, b);
}

static void test_markdown(void **state)
{
	(void)state;
	five_seeds(steady);
	char *text = render(sheet_markdown);
	assert_non_null(strstr(text, "\n| | 1x | 4x |\n|---|---:|---:|\n"));
	assert_non_null(strstr(text, "| none | **1.00 / 100"));
	assert_non_null(strstr(text, " | 9.03 / 50.0<br>[7.42 - 11.0]<br>[50.0 - 50.0 %] |\n"));
	free(text);
}

static void test_latex(void **state)
{
	(void)state;
	five_seeds(steady);
	char *text = render(sheet_latex);
	assert_non_null(strstr(text, "\\toprule"));
	assert_non_null(strstr(text, "\\begin{tabular}{lrr}"));
	assert_non_null(strstr(text, "\\shortstack[r]{9.03 / 50.0 \\\\{} [7.42 - 11.0] \\\\{} [50.0 - 50.0 \\%]}"));
	assert_non_null(strstr(text, "\\textbf{"));
	assert_non_null(strstr(text, "\\midrule\nreference: window"));
	free(text);
	/* Signs that other letters stand for in LaTeX's font encoding. */
	struct sheet sheet = { .title = "a|b" };
	struct text_builder b = { 0 };
	arrput(sheet.column, "\"1\"");
	snprintf(sheet_add(&sheet, "<p>")->cell[0].line[0], SHEET_TEXT, ">1000");
	sheet_latex(&sheet, &b);
	assert_non_null(strstr(b.data, "\\caption{a\\textbar{}b"));
	assert_non_null(strstr(b.data, " & ''1''"));
	assert_non_null(strstr(b.data, "\\textless{}p\\textgreater{} & \\textgreater{}1000 "));
	text_builder_free(&b);
	sheet_free(&sheet);
}

/* Colour adds escapes and nothing else. */
static void test_colour(void **state)
{
	(void)state;
	five_seeds(steady);
	char *with = render(coloured), *without = render(plain), *to = with;
	assert_non_null(strstr(with, "\033[38;5;40m1.00 / 100"));
	assert_null(strchr(without, '\033'));
	for (const char *s = with; *s; s++) {
		if (*s == '\033')
			s = strchr(s, 'm');
		else
			*to++ = *s;
	}
	*to = '\0';
	assert_string_equal(with, without);
	free(with);
	free(without);
}

static void test_json(void **state)
{
	(void)state;
	five_seeds(steady);
	struct records rows = { 0 }, seeds = { 0 };
	struct text_builder b = { 0 };
	json_error_t error;
	assert_ok(table_long(&results, "none", &rows));
	records_json(&rows, 0, &b);
	json_t *json = json_loads(b.data, JSON_REJECT_DUPLICATES, &error), *row;
	size_t i, found = 0;
	if (!json)
		fail_msg("line %d: %s", error.line, error.text);
	json_array_foreach(json, i, row) {
		assert_int_equal(json_object_size(row), arrlen(rows.column));
		if (strcmp(json_string_value(json_object_get(row, "scaling")), "ntk") ||
		    strcmp(json_string_value(json_object_get(row, "group")), "recall") ||
		    json_number(row, "multiple") != 4)
			continue;
		found++;
		assert_close(json_number(row, "ratio"), exp(-0.3), 1e-9);
		assert_close(json_number(row, "perplexity_high"), exp(1.9), 1e-9); /* ntk's are all 1.9 */
		assert_int_equal(json_number(row, "wins"), 5);
	}
	assert_int_equal(found, 1);
	json_decref(json);
	b.size = 0;
	table_seeds(&results, &seeds);
	records_json(&seeds, 0, &b);
	json = json_loads(b.data, JSON_REJECT_DUPLICATES, &error);
	assert_int_equal(json_array_size(json), 5 * 2 * 2 * 2);
	json_decref(json);
	records_free(&rows);
	records_free(&seeds);
	text_builder_free(&b);
}

static void test_wide(void **state)
{
	(void)state;
	five_seeds(steady);
	struct records rows = { 0 };
	struct text_builder b = { 0 };
	table_wide(&results, &rows);
	records_csv(&rows, true, &b);
	struct csv csv;
	assert_ok(csv_parse("t", b.data, &csv));
	assert_int_equal(arrlen(csv.record), 1 + 3 * 5);
	assert_non_null(strstr(b.data, ",perplexity_1x,accuracy_1x,perplexity_4x,accuracy_4x,"
				    "usable_perplexity,usable_accuracy\n"));
	csv_free(&csv);
	records_free(&rows);
	text_builder_free(&b);
}

static void test_records(void **state)
{
	(void)state;
	struct records r = { 0 };
	struct text_builder b = { 0 };
	records_begin(&r);
	record_text(&r, "name", "a \"b\"\n");
	record_number(&r, "x", INFINITY);
	records_begin(&r);
	record_number(&r, "x", NAN);
	record_integer(&r, "n", -3);
	records_csv(&r, true, &b);
	assert_string_equal(b.data, "name,x,n\n\"a \"\"b\"\"\n\",inf,\n,,-3\n");
	b.size = 0;
	records_json(&r, 0, &b);
	assert_string_equal(b.data, "[\n  {\"name\": \"a \\\"b\\\"\\u000a\", \"x\": \"inf\", \"n\": null},\n"
				    "  {\"name\": null, \"x\": null, \"n\": -3}\n]");
	b.size = 0;
	json_text(&b, "\303\251 \377 \303");
	assert_string_equal(b.data, "\"\303\251 \\ufffd \\ufffd\"");
	records_free(&r);
	text_builder_free(&b);
}

#define COMPARE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		COMPARE_TEST(test_paired),
		COMPARE_TEST(test_best),
		COMPARE_TEST(test_not_to_be_told_apart),
		COMPARE_TEST(test_each_row_on_its_own),
		COMPARE_TEST(test_interval_cells),
		COMPARE_TEST(test_error_by_sequence),
		COMPARE_TEST(test_opposite_errors),
		COMPARE_TEST(test_damaged_sequences),
		COMPARE_TEST(test_sequences_that_do_not_add_up),
		COMPARE_TEST(test_differences),
		COMPARE_TEST(test_against_another_encoding),
		COMPARE_TEST(test_markdown),
		COMPARE_TEST(test_latex),
		COMPARE_TEST(test_colour),
		COMPARE_TEST(test_json),
		COMPARE_TEST(test_wide),
		cmocka_unit_test(test_records),
	};
	return cmocka_run_group_tests_name("runs compare", tests, NULL, NULL);
}
