#include "model/base/stb.h"
#include "runs/study/claim_rows.h"

#include <math.h>
#include <string.h>

#include "tests/support.h"

/* What a study file says beside its models, and the axis of variants. */

static struct study study;
static struct grid grid;

static int tear_down(void **state)
{
	(void)state;
	grid_free(&grid);
	study_free(&study);
	return 0;
}

static void build(const char *text)
{
	assert_ok(study_parse("f", text, &study));
	assert_ok(grid_build(&study, &grid));
}

static void refuse(const char *text, const char *why, const char *hint)
{
	struct study s;
	struct err e = study_parse("f", text, &s);
	assert_err(e, ERR_USAGE, why);
	if (hint && !strstr(e.hint, hint))
		fail_msg("'%s' lacks '%s'", e.hint, hint);
	assert_null(s.claim);
}

/* The file is well written, but the study has not what it names. */
static void refuse_row(const char *text, const char *why, const char *hint)
{
	struct study s;
	struct grid g;
	assert_ok(study_parse("f", text, &s));
	struct err e = grid_build(&s, &g);
	assert_err(e, ERR_USAGE, why);
	if (hint && !strstr(e.hint, hint))
		fail_msg("'%s' lacks '%s'", e.hint, hint);
	study_free(&s);
}

#define EXPECT "row = ntk\nmultiple = 4\nmeasure = accuracy\n"
#define ORDER "claim = c\nbetter = ntk\nworse = none\nmultiple = 4\nmeasure = nll\n"
#define PUBLISHED "source = s\nwhat = w\ncolumns = a, b\nrow = r: 1, 2\n"
#define TWO "scaling = none, ntk\nmultiples = 1, 4\n"

/* --- Sections. ---------------------------------------------------------------------------------------------------- */

static void test_sections(void **state)
{
	(void)state;
	build("minutes = 13\nencoding = rope\n" TWO "[expect a.b-1_2]\n" EXPECT "least = 95\n[order o]\n"
	      "source = x, y\n" ORDER "[encoding=rope]\nlayers = 3\n[published p]\n" PUBLISHED "row = a: b: >1e3, -\n");
	assert_true(study.minutes == 13);
	assert_int_equal(arrlen(study.section), 1);
	assert_int_equal(arrlen(study.claim), 3);
	const struct study_claim *c = study.claim;
	assert_int_equal(c[0].kind, CLAIM_EXPECT);
	assert_string_equal(c[0].name, "a.b-1_2");
	assert_string_equal(c[0].from, "f:5");
	assert_string_equal(c[0].row[0], "ntk");
	assert_true(c[0].multiple == 4 && c[0].least == 95 && isinf(c[0].most));
	assert_int_equal(c[0].measure, CLAIM_ACCURACY);
	assert_int_equal(c[1].kind, CLAIM_ORDER);
	assert_string_equal(c[1].source, "x, y");
	assert_string_equal(c[1].row[1], "none");
	assert_int_equal(arrlen(c[2].published), 2);
	assert_string_equal(c[2].published[1].label, "a: b");
	assert_string_equal(c[2].published[1].value[0], ">1e3");
	assert_string_equal(c[2].column[1], "b");
}

static void test_print_reads_back(void **state)
{
	(void)state;
	struct study again;
	struct text_builder one = { 0 }, two = { 0 };
	build("minutes = 2.5\nwidth = 32, 64\nencoding = rope\n" TWO "[stability]\naxis = width\n"
	      "[encoding = rope]\nlayers = 3\n[order o]\nclaim = c\nbetter = width=32, ntk\nworse = width=32, none\n"
	      "multiple = 4\nmeasure = slope # why\n"
	      "[published p]\n" PUBLISHED "row = q: <3, -\n");
	study_print(&study, &one);
	assert_ok(study_parse("g", one.data, &again));
	study_print(&again, &two);
	assert_string_equal(one.data, two.data);
	assert_non_null(strstr(one.data, "minutes = 2.5\nwidth = 32, 64\n"));
	assert_non_null(strstr(one.data, "\n[stability]\naxis = width\n"));
	assert_non_null(strstr(one.data, "measure = slope\n"));
	study_free(&again);
	text_builder_free(&one);
	text_builder_free(&two);
}

static void test_refusals(void **state)
{
	(void)state;
	refuse("minutes = 1\nminutes = 2\n", "f:2: minutes: given before", NULL);
	refuse("minutes = 0\n", "f:1: minutes: '0' is not a number above 0", NULL);
	refuse("[expect]\n" EXPECT "least = 1\n", "f:1: [expect]: no name", NULL);
	refuse("[expect a b]\n", "f:1: [expect a b]: not a name", NULL);
	refuse("[expekt a]\n", "f:1: [expekt a]: no `=`", "Did you mean [expect NAME]?");
	refuse("[expect = a]\n", "f:1: expect: unknown option", NULL);
	refuse("[expect a]\n" EXPECT "least = 1\n[expect a]\n" EXPECT, "f:6: [expect a]: given before, in f:1", NULL);
	refuse("[expect a]\n" EXPECT "leats = 1\n", "f:5: leats: unknown in [expect]", "Did you mean least?");
	refuse("[expect a]\n" EXPECT "zzzzzzz = 1\n", "f:5: zzzzzzz: unknown in [expect]",
	       "It takes source, row, group, multiple, measure, least, most.");
	refuse("[expect a]\n" EXPECT "better = x\n", "f:5: better: unknown in [expect]", NULL);
	refuse("[expect a]\n" EXPECT "row = x\n", "f:5: row: given before, in f:2", NULL);
	refuse("[expect a]\n" EXPECT, "f:1: [expect a]: no band", "least, most or both");
	refuse("[expect a]\n" EXPECT "least = 2\nmost = 1\n", "f:1: [expect a]: least is above most", NULL);
	refuse("[expect a]\nmost = nan\n", "f:2: most: 'nan' is not a number", NULL);
	refuse("[expect a]\nmeasure = acuracy\n", "f:2: measure: 'acuracy' is none of", "'accuracy'");
	refuse("[expect a]\nmost = 1\n", "f:1: [expect a]: no row", NULL);
	refuse("[order a]\nclaim =\n", "f:2: claim: no value", NULL);
	refuse("[order a]\nclaim = a\033[1m\n", "f:2: claim: 'a\\x1b[1m' is not plain text", NULL);
	refuse("[order a]\n", "f:1: [order a]: no claim", NULL);
	refuse("[published a]\n" PUBLISHED "row = 1, 2\n", "f:6: row: '1, 2' is not LABEL: NUMBERS", NULL);
	refuse("[published a]\n" PUBLISHED "row = r: 1, two\n", "f:6: row: 'two' is not a number", NULL);
	refuse("[published a]\n" PUBLISHED "row = r: 1\n", "f:1: row r: 1 numbers for 2 columns", "write -");
	refuse("[published a]\n" PUBLISHED "multiples = 1\n", "f:1: multiples: 1 of them, and 2 columns", NULL);
	refuse("[published a]\n" PUBLISHED "ours = ntk\n", "f:1: ours: no multiples", NULL);
	refuse("[published a]\nours = ntk\n", "f:2: ours: no row before it", NULL);
	refuse("[published a]\nwhat = w\n", "f:1: [published a]: no source", NULL);
	refuse("[encoding=rope]\nminutes = 3\n", "f:2: minutes: is of the whole study", "before the first section");
	refuse("[published a]\n" PUBLISHED "row = r: 1, <>2\n", "f:6: row: '<>2' is not a number", NULL);
	refuse("[published a]\ncolumns = a,, b\n", "f:2: columns: 'a,, b': one is empty", NULL);
	refuse("[expect a]\n" EXPECT "least = 200\n", "f:1: [expect a]: no accuracy is in the band", "0 to 100 %");
	refuse("[expect a]\n" EXPECT "most = -1\n", "f:1: [expect a]: no accuracy is in the band", NULL);
	refuse("[stability]\ngroup = recall\n", "f:1: [stability]: no axis", NULL);
}

/* --- Rows. -------------------------------------------------------------------------------------------------------- */

static void assert_row(const char *text, int cells, int scaling)
{
	struct grid_row row;
	struct err e = claim_row(&grid, text, &row);
	if (e.code)
		fail_msg("%s: %s", text, e.text);
	assert_int_equal(row.cells, cells);
	assert_int_equal(row.scaling, scaling);
}

static void test_rows(void **state)
{
	(void)state;
	build("encoding = rope, alibi(slopes=spread)\nwidth = 32, 64\nscaling = none\nmultiples = 1\n[encoding=rope]\n"
	      "scaling = none, yarn(factor=2,ramp=rotations)\n");
	assert_row("rope, width=32", 0, 0);
	assert_row("rope, width=64, none", 1, 0);
	assert_row("rope, width=64, yarn(ramp=rotations, factor=2)", 1, 1);
	assert_row("alibi(slopes=spread),width=32", 2, 0);
	assert_row("alibi(slopes=spread), width=64, window", 3, 1);
	struct grid_row row;
	assert_err(claim_row(&grid, "none", &row), ERR_USAGE, "none: several rows are called so");
	assert_err(claim_row(&grid, "alibi", &row), ERR_USAGE, "alibi: no row of the study");
	struct err e = claim_row(&grid, "rope, width=23", &row);
	assert_string_equal(e.hint, "Did you mean rope, width=32?");
	e = claim_row(&grid, "zzzzzzzzzzzzzz", &row);
	assert_non_null(strstr(e.hint, "The rows are: rope, width=32, none; "));
}

/* Where the study has one encoding, rows have no name for it; it may be given all the same. */
static void test_rows_of_one_encoding(void **state)
{
	(void)state;
	build(TWO);
	assert_row("rope", 0, 0);
	assert_row("ntk", 0, 1);
	assert_row("rope, ntk(factor=auto)", 0, 1);
	struct grid_row row;
	struct err e = claim_row(&grid, "nkt", &row);
	assert_string_equal(e.hint, "Did you mean ntk?");
}

static void test_claims_of_no_row(void **state)
{
	(void)state;
	refuse_row(TWO "[expect a]\nrow = yarn\nmultiple = 4\nmeasure = nll\nmost = 1\n", "f:4: row: yarn: no row",
		   "The rows are: none; ntk; window.");
	refuse_row(TWO "[expect a]\n" EXPECT "least = 1\ngroup = recal\n",
		   "f:8: group: recal: the task recall has none of it", "It has: recall, near,");
	refuse_row(TWO "[order a]\nclaim = c\nbetter = ntk\nworse = none\nmultiple = 8\nmeasure = nll\n",
		   "f:7: multiple: 8: the row is not evaluated there", NULL);
	refuse_row("scaling = none, ntk\nmultiples = 4\n[order a]\nclaim = c\nbetter = ntk\nworse = none\n"
		   "multiple = 4\nmeasure = slope\n", "f:7: measure: slope: the row is not evaluated at 1x", NULL);
	refuse_row(TWO "[order a]\nclaim = c\nbetter = ntk\nworse = nonne\nmultiple = 4\nmeasure = nll\n",
		   "f:6: worse: nonne: no row", "Did you mean none?");
	refuse_row(TWO "[published a]\nmultiples = 1, 4\n" PUBLISHED "ours = nkt\n", "f:9: ours: nkt: no row",
		   "Did you mean ntk?");
	refuse_row(TWO "[order a]\nclaim = c\nbetter = ntk\nworse = rope, ntk\nmultiple = 4\nmeasure = nll\n",
		   "f:6: worse: rope, ntk: the same row as better", "two rows");
	refuse_row(TWO "[published a]\n" PUBLISHED "group = recal\n", "f:8: group: recal: the task recall has none", NULL);
	refuse_row(TWO "width = 32, 64\n[stability]\naxis = width\ngroup = recal\n",
		   "f:6: group: recal: the task recall has none", "It has: recall, near,");
	refuse_row(TWO "seed = 1, 2\n[stability]\naxis = seed\n", "f:5: axis: seed: the rows do not show it", NULL);
	refuse_row(TWO "width = 32, 64\n[stability]\naxis = widths\n", "f:5: axis: widths: the study has no axis of it",
		   "Did you mean width?");
	refuse_row(TWO "width = 32, 64\n[stability]\naxis = width\ndefault = 16\n",
		   "f:5: default: 16: no value of width", NULL);
}

/* --- Options of the command line. --------------------------------------------------------------------------------- */

static void test_override(void **state)
{
	(void)state;
	assert_ok(study_parse("f", "minutes = 3\n" TWO "[expect a]\n" EXPECT "least = 1\n[order b]\n" ORDER, &study));
	assert_ok(study_override(&study, "seed", "1, 2", NULL));
	assert_true(study.minutes == 0);
	assert_int_equal(arrlen(study.claim), 2);
	/* Rows that are gone take what is said of them with them. */
	assert_ok(study_override(&study, "scaling", "ntk", NULL));
	assert_ok(grid_build(&study, &grid));
	claims_drop(&study, &grid);
	assert_int_equal(arrlen(study.claim), 1);
	assert_int_equal(study.claim[0].kind, CLAIM_EXPECT);
}

/* Bands are of the models as the file has them. */
static void test_override_of_the_models(void **state)
{
	(void)state;
	assert_ok(study_parse("f", TWO "encoding = rope, alibi\n[expect a]\nrow = rope, ntk\nmultiple = 4\n"
			      "measure = nll\nmost = 1\n[order b]\nclaim = c\nbetter = rope, ntk\nworse = rope, none\n"
			      "multiple = 4\nmeasure = nll\n", &study));
	assert_ok(study_override(&study, "encoding", "rope", NULL));
	assert_int_equal(arrlen(study.claim), 2);
	assert_ok(study_override(&study, "steps", "5", NULL));
	assert_int_equal(arrlen(study.claim), 1);
	assert_int_equal(study.claim[0].kind, CLAIM_ORDER);
	assert_ok(grid_build(&study, &grid));
	claims_drop(&study, &grid);
	assert_int_equal(arrlen(study.claim), 1);
}

/* --- Variants. ---------------------------------------------------------------------------------------------------- */

static void test_variants(void **state)
{
	(void)state;
	build("encoding = rope, alibi\nvariant = default, long, small\nseed = 1, 2\nsteps = 10\nmultiples = 1\n"
	      "scaling = none\n[variant=long]\nsteps = 20\n[variant=small]\nwidth = 32\nhidden = 64\n");
	assert_int_equal(arrlen(grid.cell), 12);
	assert_int_equal(grid.groups, 6);
	const struct cell *c = &grid.cell[4];
	assert_string_equal(c->label, "rope, variant=small");
	assert_string_equal(c->axes, "variant=small");
	assert_int_equal(c->config.model.width, 32);
	assert_int_equal(c->config.train.steps, 10);
	assert_int_equal(grid.cell[2].config.train.steps, 20);
	assert_int_equal(grid.cell[2].config.model.width, 64);
	assert_non_null(strstr(grid.cell[2].name, "rope-variant-long-seed-1-"));
	/* One of these models alone: the variant changes nothing but the numbers. */
	struct study s;
	struct grid g;
	assert_ok(study_parse("f", "width = 32\nhidden = 64\nsteps = 10\nseed = 1\nmultiples = 1\n", &s));
	assert_ok(grid_build(&s, &g));
	assert_string_equal(g.cell[0].identity, c->identity);
	grid_free(&g);
	study_free(&s);
	/* The default need not be named. */
	assert_row("rope", 0, 0);
	assert_row("alibi, none", 3, 0);
	assert_row("alibi, variant=small", 5, 0);
}

/* Cells that a variant does not change are one, and go by both names. */
static void test_equal_variants(void **state)
{
	(void)state;
	build("encoding = rope, alibi\nvariant = default, same, other\nmultiples = 1\nscaling = none\n[variant=same]\n"
	      "layers = 2\n[variant=other]\nlayers = 1\n");
	assert_int_equal(arrlen(grid.cell), 4);
	assert_int_equal(grid_group(&grid, "rope, variant=same"), 0);
	assert_int_equal(grid_group(&grid, "rope, variant=other"), 1);
	assert_int_equal(grid_group(&grid, "alibi, variant=same"), 2);
	assert_int_equal(grid_group(&grid, "alibi, variant=none"), -1);
}

static void test_variant_refusals(void **state)
{
	(void)state;
	refuse_row("variant = default, long\n", "f:1: variant: no section [variant=long]", NULL);
	refuse_row("variant = default, long\n[variant=lnog]\nsteps = 3\n[variant=long]\nsteps = 4\n",
		   "f:2: [variant=lnog]: selects no cell", "variant=long");
	refuse_row("steps = 1, 2\nvariant = default, a\n[variant=a]\nsteps = 3\n",
		   "f:4: steps: the study has an axis of it", NULL);
	refuse("variant = default, a(b=1)\n", "f:1: variant: 'a(b=1)' is not a name", NULL);
	refuse("variant = default, default\n", "f:1: variant: default is there twice", NULL);
	refuse("variant = default, a\n[encoding=rope]\nvariant = a\n", "f:3: variant: selects cells itself", NULL);
	refuse("variant = default, a\n[variant=a]\nvariant = b\n", "f:3: variant: selects cells itself", NULL);
}

static void test_labels(void **state)
{
	(void)state;
	const char *rest, *value;
	assert_true(claim_without_axis("t5(buckets=8,max_distance=16), width=32, steps=5", "width", &rest, &value));
	assert_string_equal(rest, "t5(buckets=8,max_distance=16), steps=5");
	assert_string_equal(value, "32");
	assert_true(claim_without_axis("width=32", "width", &rest, &value));
	assert_string_equal(rest, "");
	assert_false(claim_without_axis("rope, widths=32", "width", &rest, &value));
	assert_string_equal(claim_at_value("rope, width=32, steps=5", "width", "64"), "rope, width=64, steps=5");
}

#define CLAIM_TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLAIM_TEST(test_sections),
		CLAIM_TEST(test_print_reads_back),
		CLAIM_TEST(test_refusals),
		CLAIM_TEST(test_rows),
		CLAIM_TEST(test_rows_of_one_encoding),
		CLAIM_TEST(test_claims_of_no_row),
		CLAIM_TEST(test_override),
		CLAIM_TEST(test_override_of_the_models),
		CLAIM_TEST(test_variants),
		CLAIM_TEST(test_equal_variants),
		CLAIM_TEST(test_variant_refusals),
		CLAIM_TEST(test_labels),
	};
	return cmocka_run_group_tests_name("runs study claims", tests, NULL, NULL);
}
