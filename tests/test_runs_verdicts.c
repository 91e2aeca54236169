#include "runs/show/print.h"
#include "runs/show/stability.h"
#include "runs/show/verdicts.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/study_case.h"

/* Bands, published numbers, orders and stability, on numbers written by hand. */

#define SEEDS 8

/* `text` with this many seeds. Every row is at the floor at 1x; at 4x none has NLL 2, ntk that much less. */
static void seeds_of(const char *text, int seeds, const double gain[SEEDS])
{
	struct text_builder b = { 0 };
	text_add(&b, "seed = 1");
	for (int i = 2; i <= seeds; i++)
		text_add(&b, ", %d", i);
	text_add(&b, "\nscaling = none, ntk\nmultiples = 1, 4\nsequences = 3\n%s", text);
	build(b.data);
	text_builder_free(&b);
	for (int i = 0; i < seeds; i++) {
		char *path = make_run(i, "finished", "a");
		write_rows(path, i, 0, (const double[][2]){ { 1, 1 }, { exp(2), 0.5 } });
		write_rows(path, i, 1, (const double[][2]){ { 1, 1 }, { exp(2 - gain[i]), 0.5 + gain[i] } });
		free(path);
	}
	read_back();
}

#define ORDER_BY(measure)                                                                                        \
	"[order o]\nclaim = ntk goes further\nsource = somebody, table 1\nbetter = ntk\nworse = none\nmultiple = 4\n" \
	"measure = " measure "\n"

static struct order_verdict verdict_by(const char *text, int seeds, const double gain[SEEDS])
{
	seeds_of(text, seeds, gain);
	return verdict_of(&results, &study.claim[0]);
}

static void expect_verdict(const struct order_verdict *v, enum verdict verdict, int wins, int losses, double p,
			   const char *why)
{
	assert_int_equal(v->verdict, verdict);
	assert_int_equal(v->wins, wins);
	assert_int_equal(v->losses, losses);
	assert_true(v->p == p);
	assert_string_equal(v->why, why);
}

static const double all[SEEDS] = { 0.1, 0.2, 0.1, 0.2, 0.1, 0.2, 0.1, 0.2 },
		    none[SEEDS] = { -0.1, -0.2, -0.1, -0.2, -0.1, -0.2, -0.1, -0.2 },
		    seven[SEEDS] = { 0.1, 0.2, 0.1, 0.2, 0.1, 0.2, 0.1, -0.2 },
		    ties[SEEDS] = { 0.1, 0.2, 0.1, 0.2, 0.1, 0.2, 0, 0 }, five[SEEDS] = { 0.1, 0.2, 0.1, 0.2, 0.1, 0 };

static void test_same_order(void **state)
{
	(void)state;
	struct order_verdict v = verdict_by(ORDER_BY("nll"), 6, all);
	expect_verdict(&v, VERDICT_SAME, 6, 0, 0.03125, "");
}

static void test_different_order(void **state)
{
	(void)state;
	struct order_verdict v = verdict_by(ORDER_BY("accuracy"), 6, none);
	expect_verdict(&v, VERDICT_DIFFERENT, 0, 6, 0.03125, "");
}

static void test_undecided(void **state)
{
	(void)state;
	struct order_verdict v = verdict_by(ORDER_BY("perplexity"), 8, seven);
	expect_verdict(&v, VERDICT_UNTESTED, 7, 1, 0.0703125, "p is not below 0.05");
}

static void test_ties(void **state)
{
	(void)state;
	struct order_verdict v = verdict_by(ORDER_BY("slope"), 8, ties);
	expect_verdict(&v, VERDICT_SAME, 6, 0, 0.03125, "");
	assert_int_equal(v.ties, 2);
}

static void test_ties_leave_too_few(void **state)
{
	(void)state;
	struct order_verdict v = verdict_by(ORDER_BY("nll"), 6, five);
	expect_verdict(&v, VERDICT_UNTESTED, 5, 0, 0.0625, "p is not below 0.05");
}

static void test_too_few_seeds(void **state)
{
	(void)state;
	struct order_verdict v = verdict_by(ORDER_BY("bits_per_byte"), 5, all);
	expect_verdict(&v, VERDICT_UNTESTED, 5, 0, 0.0625, "needs 6 seeds, has 5");
}

/* What is missing is not chosen by anybody: the rest may be those that went well. */
static void test_missing_cells(void **state)
{
	(void)state;
	seeds_of(ORDER_BY("nll"), 7, all);
	char *path = io_join(folder, grid.cell[6].name), *csv = cell_csv(&grid.cell[6], path, 1);
	assert_int_equal(unlink(csv), 0);
	free(csv);
	free(path);
	read_back();
	struct order_verdict v = verdict_of(&results, &study.claim[0]);
	expect_verdict(&v, VERDICT_UNTESTED, 6, 0, 0.03125, "6 of 7 seeds on the same sequences");
}

static void test_above_the_floor(void **state)
{
	(void)state;
	seeds_of(ORDER_BY("nll"), 6, all);
	char *path = io_join(folder, grid.cell[2].name);
	write_rows(path, 2, 0, (const double[][2]){ { 1.2, 0.9 }, { exp(2), 0.5 } });
	free(path);
	read_back();
	struct order_verdict v = verdict_of(&results, &study.claim[0]);
	expect_verdict(&v, VERDICT_UNTESTED, 6, 0, 0.03125, "better: at the floor at 1x in 5 of 6 seeds");
}

/* By slope a row is held against its own 1x: a row that begins higher may still rise less. */
static void test_slope(void **state)
{
	(void)state;
	seeds_of(ORDER_BY("slope"), 6, none);
	for (int i = 0; i < 6; i++) {
		char *path = io_join(folder, grid.cell[i].name);
		write_rows(path, i, 1, (const double[][2]){ { 1.5, 1 }, { exp(2.1), 0.5 } });
		free(path);
	}
	read_back();
	struct order_verdict v = verdict_of(&results, &study.claim[0]);
	expect_verdict(&v, VERDICT_SAME, 6, 0, 0.03125, "");
}

/* --- Bands. ------------------------------------------------------------------------------------------------------- */

#define BAND(name, measure, band) "[expect " name "]\nrow = ntk\nmultiple = 4\nmeasure = " measure "\n" band "\n"

static char *expected_text(void)
{
	struct text_builder b = { 0 };
	struct sheet sheet;
	assert_true(expect_sheet(&results, &sheet));
	sheet_text(&sheet, false, &b);
	sheet_free(&sheet);
	return b.data;
}

static void test_bands(void **state)
{
	(void)state;
	seeds_of(BAND("in", "accuracy", "least = 60\nmost = 70") BAND("below", "accuracy", "least = 66")
		 BAND("nats", "nll", "most = 1.86") BAND("bits", "bits_per_byte", "most = 2.6")
		 BAND("rise", "slope", "least = 6.3\nmost = 6.4") BAND("echo", "perplexity", "most = 10\ngroup = echo"),
		 2, all);
	const double value[] = { 65, 65, 1.85, 1.85 / M_LN2, exp(1.85), 2 * exp(1.85) };
	const enum band band[] = { BAND_INSIDE, BAND_OUTSIDE, BAND_INSIDE, BAND_OUTSIDE, BAND_INSIDE, BAND_OUTSIDE };
	for (int i = 0; i < 6; i++) {
		const struct study_claim *c = &study.claim[i];
		struct grid_row row = claim_row_of(&results, c->row[0]);
		assert_close(claim_value(&results, &row, c, 4, NULL, NULL), value[i], 1e-9);
		assert_int_equal(expect_band(c, value[i]), band[i]);
	}
	assert_int_equal(expect_band(&study.claim[0], 60), BAND_INSIDE);
	assert_int_equal(expect_band(&study.claim[0], 70), BAND_INSIDE);
	char *text = expected_text();
	assert_non_null(strstr(text, "in: ntk: recall at 4x, accuracy in %"));
	assert_non_null(strstr(text, " 60 - 70          65.0        inside\n"));
	assert_non_null(strstr(text, " at least 66          65.0       outside\n"));
	assert_non_null(strstr(text, " 6.3 - 6.4          6.36        inside\n"));
	free(text);
}

/* Not done yet, and done by some seeds alone. */
static void test_bands_of_what_is_missing(void **state)
{
	(void)state;
	build("seed = 1, 2\nscaling = none, ntk\nmultiples = 4\n" BAND("a", "accuracy", "least = 60")
	      "[expect b]\nrow = none\nmultiple = 4\nmeasure = accuracy\nleast = 60\n");
	char *path = make_run(0, "finished", "a");
	write_rows(path, 0, 1, (const double[][2]){ { 2, 0.7 } });
	free(path);
	read_back();
	char *text = expected_text();
	assert_non_null(strstr(text, "at least 60          70.0        inside\n"));
	assert_non_null(strstr(text, " 1 of 2 seeds\n"));
	assert_non_null(strstr(text, "at least 60             -  not measured\n"));
	free(text);
}

static void test_nothing_said(void **state)
{
	(void)state;
	struct sheet sheet;
	seeds_of("", 1, all);
	assert_false(expect_sheet(&results, &sheet));
	assert_false(verdicts_sheet(&results, &sheet));
}

/* --- Published numbers. ------------------------------------------------------------------------------------------- */

static void test_published(void **state)
{
	(void)state;
	struct text_builder b = { 0 };
	struct sheet sheet;
	seeds_of("[published p]\nsource = somebody, table 1\nwhat = perplexity of a text\ncolumns = 512, 1024, 2048\n"
		 "multiples = 1, 2, 4\nrow = NTK-aware: 20.05, 43.54, >1e3\nours = ntk\nrow = PI: 19.7, -, 18\n",
		 2, all);
	published_sheet(&results, &study.claim[0], &sheet);
	sheet_text(&sheet, false, &b);
	assert_string_equal(b.data, "published: perplexity of a text (somebody, table 1)\n"
				    "here: rows of this study, perplexity\n"
				    "                                     512      1024      2048\n"
				    "------------------------------------------------------------\n"
				    "here: times the trained length        1x        2x        4x\n"
				    "NTK-aware                          20.05     43.54      >1e3\n"
				    "here: ntk                           1.00         -      6.36\n"
				    "PI                                  19.7         -        18\n");
	sheet_free(&sheet);
	text_builder_free(&b);
}

/* --- Stability. --------------------------------------------------------------------------------------------------- */

/* Three scalings under three widths, NLL at 4x; at 64 the order is that of 32 but for one pair, at 128 the reverse. */
static void three_widths(const char *text)
{
	static const double nll[3][3] = { { 1, 2, 3 }, { 1, 3, 2 }, { 3, 2, 1 } };
	struct text_builder b = { 0 };
	text_add(&b, "width = 32, 64, 128\nscaling = none, ntk, linear\nmultiples = 4\n%s", text);
	build(b.data);
	text_builder_free(&b);
	for (int i = 0; i < 3; i++) {
		char *path = make_run(i, "finished", "a");
		for (int j = 0; j < 3; j++)
			write_rows(path, i, j, (const double[][2]){ { exp(nll[i][j]), 1 - nll[i][j] / 4 } });
		free(path);
	}
	read_back();
}

static void test_stability(void **state)
{
	(void)state;
	struct text_builder b = { 0 };
	struct sheet sheet;
	three_widths("[stability]\naxis = width\n");
	struct tau t = stability_at(&results, &study.claim[0], "64", 4);
	assert_int_equal(t.methods, 3);
	assert_close(t.tau, 1.0 / 3, 1e-12);
	assert_close(stability_at(&results, &study.claim[0], "128", 4).tau, -1, 1e-12);
	stability_sheet(&results, &study.claim[0], &sheet);
	sheet_text(&sheet, false, &b);
	assert_non_null(strstr(b.data, "against that at width=32, by NLL in nats of recall"));
	assert_non_null(strstr(b.data, "\nwidth=64    0.33 (3)\nwidth=128  -1.00 (3)\n"));
	sheet_free(&sheet);
	text_builder_free(&b);
}

/* An order of models that have not learned their task is none. */
static void test_stability_above_the_floor(void **state)
{
	(void)state;
	build("width = 32, 64\nscaling = none, ntk\nmultiples = 1\n[stability]\naxis = width\n");
	for (int i = 0; i < 2; i++) {
		char *path = make_run(i, "finished", "a");
		write_rows(path, i, 0, (const double[][2]){ { 1 + 0.2 * i, 1 } });
		write_rows(path, i, 1, (const double[][2]){ { 2, 0.5 } });
		free(path);
	}
	read_back();
	struct sheet sheet;
	stability_sheet(&results, &study.claim[0], &sheet);
	assert_string_equal(sheet.row[0].cell[0].line[0], "!1.00 (2)");
	sheet_free(&sheet);
}

static void test_stability_against_another_value(void **state)
{
	(void)state;
	three_widths("[stability]\naxis = width\ndefault = 128\nmeasure = accuracy\n");
	assert_close(stability_at(&results, &study.claim[0], "32", 4).tau, -1, 1e-12);
	assert_close(stability_at(&results, &study.claim[0], "64", 4).tau, -1.0 / 3, 1e-12);
}

/* Models that a variant does not change count as they are; those without a number do not. */
static void test_stability_of_equal_models(void **state)
{
	(void)state;
	build("encoding = rope, alibi, nope\nvariant = default, theta\nscaling = none\nmultiples = 4\n[encoding=rope]\n"
	      "scaling = none, ntk\n[variant=theta]\nlayers = 3\n[encoding=alibi]\nlayers = 3\n[stability]\n"
	      "axis = variant\n");
	assert_int_equal(arrlen(grid.cell), 5);
	static const double nll[] = { 1, 1.5, 2, 3, 0.5 }; /* rope, rope theta, alibi both, nope, nope theta */
	for (int i = 0; i < 5; i++) {
		char *path = make_run(i, "finished", "a");
		write_rows(path, i, 0, (const double[][2]){ { exp(nll[i]), 0.5 } });
		free(path);
	}
	read_back();
	struct tau t = stability_at(&results, &study.claim[0], "theta", 4);
	assert_int_equal(t.methods, 3); /* not rope, ntk */
	assert_close(t.tau, -1.0 / 3, 1e-12); /* 1, 2, 3 against 1.5, 2, 0.5 */
}

/* --- For programs. ------------------------------------------------------------------------------------------------ */

static json_t *json_of(void (*make)(const struct results *r, struct records *out))
{
	struct records records = { 0 };
	struct text_builder b = { 0 };
	json_error_t error;
	make(&results, &records);
	records_json(&records, 0, &b);
	json_t *json = json_loads(b.data, JSON_REJECT_DUPLICATES, &error);
	if (!json)
		fail_msg("line %d: %s", error.line, error.text);
	records_free(&records);
	text_builder_free(&b);
	return json;
}

static void assert_text(const json_t *record, const char *name, const char *wanted)
{
	const char *text = json_string_value(json_object_get(record, name));
	assert_non_null(text);
	assert_string_equal(text, wanted);
}

static void test_records(void **state)
{
	(void)state;
	seeds_of(ORDER_BY("nll") BAND("b", "accuracy", "least = 66") "[published p]\nsource = s\nwhat = w\n"
		 "columns = c\nrow = r: -\n", 6, all);
	json_t *json = json_of(verdicts_records), *row = json_array_get(json, 0);
	assert_int_equal(json_array_size(json), 1);
	assert_text(row, "name", "o");
	assert_text(row, "claim", "ntk goes further");
	assert_text(row, "better", "ntk");
	assert_text(row, "worse", "none");
	assert_text(row, "verdict", "same order here");
	assert_close(json_number(row, "p"), 0.03125, 1e-15);
	assert_true(json_is_null(json_object_get(row, "why")));
	json_decref(json);
	json = json_of(expect_records);
	row = json_array_get(json, 0);
	assert_text(row, "result", "outside");
	assert_close(json_number(row, "least"), 66, 1e-12);
	assert_true(json_is_null(json_object_get(row, "most")));
	json_decref(json);
	json = json_of(published_records);
	assert_true(json_is_null(json_object_get(json_array_get(json, 0), "published")));
	json_decref(json);
	json = json_of(stability_records);
	assert_int_equal(json_array_size(json), 0);
	json_decref(json);
}

static void test_stability_records(void **state)
{
	(void)state;
	three_widths("[stability by-size]\naxis = width\n");
	json_t *json = json_of(stability_records), *row = json_array_get(json, 1);
	assert_int_equal(json_array_size(json), 2);
	assert_text(row, "name", "by-size");
	assert_text(row, "default", "32");
	assert_text(row, "value", "128");
	assert_text(row, "group", "recall");
	assert_close(json_number(row, "tau"), -1, 1e-12);
	json_decref(json);
}

#define VERDICT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		VERDICT_TEST(test_same_order),
		VERDICT_TEST(test_different_order),
		VERDICT_TEST(test_undecided),
		VERDICT_TEST(test_ties),
		VERDICT_TEST(test_ties_leave_too_few),
		VERDICT_TEST(test_too_few_seeds),
		VERDICT_TEST(test_missing_cells),
		VERDICT_TEST(test_above_the_floor),
		VERDICT_TEST(test_slope),
		VERDICT_TEST(test_bands),
		VERDICT_TEST(test_bands_of_what_is_missing),
		VERDICT_TEST(test_nothing_said),
		VERDICT_TEST(test_published),
		VERDICT_TEST(test_stability),
		VERDICT_TEST(test_stability_above_the_floor),
		VERDICT_TEST(test_stability_against_another_value),
		VERDICT_TEST(test_stability_of_equal_models),
		VERDICT_TEST(test_records),
		VERDICT_TEST(test_stability_records),
	};
	return cmocka_run_group_tests_name("runs verdicts", tests, NULL, NULL);
}
