#include "runs/show/calibrated.h"
#include "runs/show/growth.h"
#include "runs/show/usable.h"

#include <stdio.h>

#include "tests/study_case.h"

/* What the tables say beyond perplexity and accuracy: usable length, what more context is worth, calibration. */

static struct usable usable_of(int scaling)
{
	return usable_length(&results, &(struct contender){ 0, scaling, false }, "recall");
}

#define FOUR "scaling = none, ntk, linear, yarn\nmultiples = 0.5, 1, 2, 4\nreferences = off\n"

static void test_usable(void **state)
{
	(void)state;
	build(FOUR);
	char *path = make_run(0, "finished", "a");
	/* A bound that is met exactly holds for the perplexity, not for the accuracy; what is below 1x is not asked. */
	write_rows(path, 0, 0, (const double[][2]){ { 9, 0.1 }, { 1, 1 }, { 1.0999, 0.91 }, { 1.2, 0.9 } });
	/* Contiguous: 4x is good again. */
	write_rows(path, 0, 1, (const double[][2]){ { 1, 1 }, { 1, 1 }, { 1.2, 0.8 }, { 1, 1 } });
	write_rows(path, 0, 2, (const double[][2]){ { 1, 1 }, { 2, 0.9 }, { 2.1, 1 }, { 1.5, 0.99 } });
	free(path);
	read_back();
	struct usable u = usable_of(0);
	assert_true(u.perplexity == 2 && !u.perplexity_open && u.accuracy == 2 && !u.accuracy_open);
	u = usable_of(1);
	assert_true(u.perplexity == 1 && u.accuracy == 1);
	u = usable_of(2);
	assert_true(u.perplexity == 4 && u.perplexity_open && u.accuracy == 0 && !u.accuracy_open);
	u = usable_of(3);
	assert_true(isnan(u.perplexity) && isnan(u.accuracy));
	struct sheet sheet;
	assert_true(usable_sheet(&results, &sheet));
	static const char *const wanted[] = { "2x / 2x", "1x / 1x", ">= 4x / none", "- / -" };
	assert_string_equal(sheet.column[0], "recall");
	for (int i = 0; i < 4; i++)
		assert_string_equal(sheet.row[i].cell[0].line[0], wanted[i]);
	sheet_free(&sheet);
}

/* What is not computed yet is not the end. */
static void test_not_computed(void **state)
{
	(void)state;
	build("scaling = none\nmultiples = 1, 2\nreferences = off\n");
	char *path = make_run(0, "finished", "a");
	struct row row = new_row(&grid.cell[0], 0, 0, "recall", 1, 1);
	char *csv = run_folder_csv(path, &grid.cell[0].config.eval, "none", false);
	assert_ok(rows_write(csv, &row, 1));
	free(csv);
	free(path);
	read_back();
	assert_true(isnan(usable_of(0).perplexity));
}

static void test_over_seeds(void **state)
{
	(void)state;
	build("seed = 1, 2\nscaling = none\nmultiples = 1, 4\nreferences = off\n");
	for (int i = 0; i < 2; i++) {
		char *path = make_run(i, "finished", "a");
		/* At 4x the geometric mean is 2.16, the mean 2.225. */
		write_rows(path, i, 0, (const double[][2]){ { 2, 1 }, { i ? 1.7 : 2.75, i ? 0.85 : 0.97 } });
		free(path);
	}
	read_back();
	assert_true(usable_of(0).perplexity == 4 && usable_of(0).accuracy == 4);
}

static void test_nothing_beyond(void **state)
{
	(void)state;
	struct sheet sheet;
	build("scaling = none\nmultiples = 1\n");
	read_back();
	assert_false(usable_sheet(&results, &sheet));
	results_free(&results);
	grid_free(&grid);
	study_free(&study);
	build("scaling = none\nmultiples = 2, 4\n");
	read_back();
	assert_false(usable_sheet(&results, &sheet));
}

/* ---- What more context is worth ---- */

/* Three documents of 2 scored tokens. */
static void write_grown(const char *path, int cell, const double nll[2][3])
{
	const struct cell *c = &grid.cell[cell];
	struct row rows[2];
	struct sequence_row by[6];
	struct text_builder protocol = { 0 };
	text_add(&protocol, "x; protocol ");
	protocol_name(&c->config.eval.protocol, &protocol);
	text_add(&protocol, "; y");
	for (int l = 0; l < 2; l++) {
		double sum = 0;
		for (int i = 0; i < 3; i++) {
			by[3 * l + i] = (struct sequence_row){
				.run = c->name, .scaling = "none", .task = "recall", .group = "recall",
				.seed = c->config.train.seed, .eval_seed = 1, .length = c->length[l], .sequences = 3,
				.sequence = i, .tally = { .scored = 2, .nll_sum = nll[l][i] },
			};
			sum += nll[l][i];
		}
		rows[l] = new_row(c, 0, l, "recall", exp(sum / 6), 0.5);
		rows[l].protocol = text_keep(protocol.data);
		rows[l].cell.scored = 6;
	}
	char *csv = run_folder_csv(path, &c->config.eval, "none", false);
	assert_ok(rows_write(csv, rows, 2));
	free(csv);
	csv = run_folder_csv(path, &c->config.eval, "none", true);
	assert_ok(sequence_rows_write(csv, by, 6));
	free(csv);
	text_builder_free(&protocol);
}

static void test_growth(void **state)
{
	(void)state;
	build("seed = 1, 2\nscaling = none\nmultiples = 1, 4\nsequences = 3\nreferences = off\nprotocol = last\n");
	for (int i = 0; i < 2; i++) {
		char *path = make_run(i, "finished", "a");
		write_grown(path, i, i ? (const double[2][3]){ { 2, 3, 4 }, { 1, 1, 1 } }
				       : (const double[2][3]){ { 1, 2, 3 }, { 1, 1, 4 } });
		free(path);
	}
	read_back();
	assert_true(growth_known(&results));
	struct contender who = { 0, 0, false };
	struct growth g = growth(&results, &who, 4, "recall");
	assert_int_equal(g.seeds, 2);
	/* Seed 1: (0 - 1 + 1) / 6; seed 2: (-1 - 2 - 3) / 6. Documents, both together: -1, -3, -2. */
	assert_close(g.nll, -0.5, 1e-12);
	assert_close(g.nll_se, sqrt(1.5 * (1 + 1 + 0)) / 12, 1e-12);
	g = growth(&results, &who, 1, "recall");
	assert_true(g.nll == 0 && g.nll_se == 0);
	struct sheet sheet;
	growth_sheet(&results, "recall", &sheet);
	assert_string_equal(sheet.row[0].cell[1].line[0], "-0.500");
	assert_string_equal(sheet.row[0].cell[1].line[1], "+-0.14");
	sheet_free(&sheet);
	struct records records = { 0 };
	struct text_builder b = { 0 };
	assert_ok(table_long(&results, NULL, &records));
	records_csv(&records, true, &b);
	assert_non_null(strstr(b.data, ",growth,growth_se\n"));
	assert_non_null(strstr(b.data, ",-0.5,0.144337"));
	records_free(&records);
	text_builder_free(&b);
}

/* Rows of another protocol, or another span, are not these. */
static void test_other_protocols(void **state)
{
	(void)state;
	build("scaling = none\nmultiples = 1, 4\nsequences = 3\nreferences = off\nprotocol = last\n");
	char *path = make_run(0, "finished", "a");
	write_grown(path, 0, (const double[2][3]){ { 1, 2, 3 }, { 1, 1, 4 } });
	read_back();
	assert_int_equal(results_summary(&results, 0, 0, 4, "recall").done, 1);
	results_free(&results);
	static const char *const other[] = { "last(span=512)", "last(tokens=16)", "all", "sliding" };
	for (int i = 0; i < 4; i++) {
		char text[160];
		snprintf(text, sizeof text, "scaling = none\nmultiples = 1, 4\nsequences = 3\nreferences = off\n"
					    "protocol = %s\n", other[i]);
		struct row mine = new_row(&grid.cell[0], 0, 0, "recall", 2, 1);
		mine.protocol = "x; protocol last(tokens=32,span=256); y";
		grid_free(&grid);
		study_free(&study);
		build(text);
		assert_false(cell_owns(&grid.cell[0], 0, &mine));
	}
	free(path);
}

/* ---- Calibration ---- */

static void test_calibrated(void **state)
{
	(void)state;
	build("seed = 1, 2\nscaling = none\nmultiples = 1, 4\nsequences = 3\nreferences = off\ncalibrate = on\n");
	for (int i = 0; i < 2; i++) {
		const struct cell *c = &grid.cell[i];
		char *path = make_run(i, "finished", "a");
		struct measure_row row = { .row = new_row(c, 0, 1, "recall", i ? 4 : 9, 0),
					   .temperature = i ? 1 : 4 };
		char *csv = run_folder_measure(path, &c->config.eval, "none", MEASURE_CALIBRATION);
		assert_ok(measure_rows_write(MEASURE_CALIBRATION, csv, &row, 1));
		free(csv);
		free(path);
	}
	read_back();
	assert_true(calibrated_known(&results));
	struct calibrated c = calibrated(&results, &(struct contender){ 0, 0, false }, 4, "recall");
	assert_int_equal(c.seeds, 2);
	assert_close(c.perplexity, 6, 1e-12);
	assert_close(c.temperature, 2, 1e-12);
	struct sheet sheet;
	calibrated_sheet(&results, "recall", &sheet);
	assert_string_equal(sheet.row[0].cell[0].line[0], "-");
	assert_string_equal(sheet.row[0].cell[1].line[0], "6.00 / 2.00");
	sheet_free(&sheet);
}

#define USABLE_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		USABLE_TEST(test_usable),	   USABLE_TEST(test_not_computed),
		USABLE_TEST(test_over_seeds),	   USABLE_TEST(test_nothing_beyond),
		USABLE_TEST(test_growth),	   USABLE_TEST(test_other_protocols),
		USABLE_TEST(test_calibrated),
	};
	return cmocka_run_group_tests_name("usable length", tests, NULL, NULL);
}
