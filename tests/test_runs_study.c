#include "model/base/blas.h"
#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/run/run_folder.h"
#include "runs/study/locate.h"
#include "runs/study/study.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support.h"

static void contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' lacks '%s'", text, part);
}

/* --- files ------------------------------------------------------------------------------------------------------- */

static void refuse(const char *text, const char *place, const char *part)
{
	struct study s;
	struct err e = study_parse("f", text, &s);
	assert_int_equal(e.code, ERR_USAGE);
	contains(e.text, place);
	contains(e.text, part);
	assert_null(s.line);
	assert_null(s.section);
}

static void test_parse(void **state)
{
	(void)state;
	struct study s;
	assert_ok(study_parse("f", "# a study\nseed = 1, 2 ,3\nlearning-rate = 1e-2\n"
			      "scaling = none, yarn(factor=2,alpha=1)\n\n[encoding = nope]\nlayers = 3\n", &s));
	assert_int_equal(arrlen(s.line), 3);
	assert_string_equal(s.line[0].name, "seed");
	assert_int_equal(arrlen(s.line[0].value), 3);
	assert_string_equal(s.line[0].value[1], "2");
	assert_string_equal(s.line[0].from, "f:2");
	assert_string_equal(s.line[1].name, "lr");
	assert_int_equal(arrlen(s.line[2].value), 1);
	assert_string_equal(s.line[2].value[0], "none, yarn(factor=2,alpha=1)");
	assert_int_equal(arrlen(s.section), 1);
	assert_string_equal(s.section[0].name, "encoding");
	assert_string_equal(s.section[0].value, "nope");
	assert_string_equal(s.section[0].line[0].name, "layers");
	study_free(&s);
}

static void test_commas_in_parentheses(void **state)
{
	(void)state;
	struct study s;
	assert_ok(study_parse("f", "encoding = t5(buckets=8,max_distance=16), nope\n", &s));
	assert_int_equal(arrlen(s.line[0].value), 2);
	assert_string_equal(s.line[0].value[0], "t5(buckets=8,max_distance=16)");
	study_free(&s);
}

static void test_refusals(void **state)
{
	(void)state;
	refuse("seeds = 1\n", "f:1", "seeds");
	refuse("seed = 1\nsteps = 2\nseed = 3\n", "f:3", "given before, in f:1");
	refuse("seed = 1, 1\n", "f:1", "twice");
	refuse("seed = 1,, 2\n", "f:1", "empty");
	refuse("sequences = 8, 16\n", "f:1", "one value");
	refuse("factor = 4, 8\n", "f:1", "one value");
	refuse("[encoding]\nlayers = 3\n", "f:1", "no `=`");
	refuse("[sequences=8]\nlayers = 3\n", "f:1", "does not tell rows apart");
	refuse("[seed=8]\nlayers = 3\n", "f:1", "does not tell rows apart");
	refuse("[encoding=nope]\nlayers = 3, 4\n", "f:2", "a list inside a section");
	refuse("[encoding=nope]\nencoding = rope\n", "f:2", "selects by it");
	refuse("[encoding=nope]\nlayers = 3\n[encoding=nope]\nsteps = 3\n", "f:3", "given before, in f:1");
	refuse("out = x\n", "f:1", "out");
}

static void test_override(void **state)
{
	(void)state;
	struct study s;
	struct text_builder b = { 0 };
	assert_ok(study_parse("f", "steps = 5\nseed = 1\n[encoding=nope]\nsteps = 9\nlayers = 3\n", &s));
	assert_ok(study_override(&s, "steps", "7, 8", NULL));
	assert_ok(study_override(&s, "width", "32", NULL));
	study_print(&s, &b);
	assert_string_equal(b.data, "steps = 7, 8\nseed = 1\nwidth = 32\n\n[encoding=nope]\nlayers = 3\n");
	struct err e = study_override(&s, "sede", "1", NULL);
	contains(e.text, "--sede");
	contains(e.hint, "seed");
	text_builder_free(&b);
	study_free(&s);
}

static void test_override_of_an_axis(void **state)
{
	(void)state;
	struct study s;
	assert_ok(study_parse("f", "encoding = rope, nope\n[encoding=nope]\nlayers = 3\n"
			      "[encoding=rope]\nlayers = 4\n", &s));
	assert_ok(study_override(&s, "encoding", "rope", NULL));
	assert_int_equal(arrlen(s.section), 1);
	assert_string_equal(s.section[0].value, "rope");
	study_free(&s);
}

static void test_print_reads_back(void **state)
{
	(void)state;
	struct study a, b;
	struct text_builder first = { 0 }, second = { 0 };
	assert_ok(study_parse("f", "encoding=rope,alibi(slopes=spread)\n scaling = ntk(factor=8),none # two\n"
			      "[encoding=rope]\nlr=1\n", &a));
	study_print(&a, &first);
	assert_ok(study_parse("g", first.data, &b));
	study_print(&b, &second);
	assert_string_equal(first.data, second.data);
	text_builder_free(&first);
	text_builder_free(&second);
	study_free(&a);
	study_free(&b);
}

static void test_presets(void **state)
{
	(void)state;
	char *path;
	assert_ok(study_locate("scaling", &path));
	struct study s;
	struct grid g;
	assert_ok(study_read(path, &s));
	assert_ok(grid_build(&s, &g));
	assert_int_equal(arrlen(g.cell), 5);
	assert_int_equal(g.cell[0].scalings - g.cell[0].references, 11);
	assert_int_equal(g.cell[0].lengths, 6);
	assert_int_equal(g.cell[4].config.train.seed, 105);
	assert_int_equal(g.cell[0].config.eval.sequences, 64);
	grid_free(&g);
	study_free(&s);
	free(path);
	struct err e = study_locate("scalign", &path);
	assert_int_equal(e.code, ERR_USAGE);
	contains(e.hint, "Did you mean scaling?");
	contains(e.hint, "smoke");
	assert_string_equal(study_name("a/b/scaling.study"), "scaling");
}

/* --- grids ------------------------------------------------------------------------------------------------------- */

static void build(const char *text, struct study *s, struct grid *g)
{
	assert_ok(study_parse("f", text, s));
	assert_ok(grid_build(s, g));
}

static void close_grid(struct study *s, struct grid *g)
{
	grid_free(g);
	study_free(s);
}

static void test_grid(void **state)
{
	(void)state;
	struct study s;
	struct grid g;
	build("seed = 1, 2\nencoding = rope, alibi\nwidth = 32\nmultiples = 1, 4\n", &s, &g);
	assert_int_equal(arrlen(g.cell), 4);
	assert_int_equal(g.groups, 2);
	assert_int_equal(arrlen(g.multiple), 2);
	assert_string_equal(g.cell[0].label, "rope");
	assert_string_equal(g.cell[2].label, "alibi");
	assert_string_equal(g.cell[2].axes, "");
	for (int i = 0; i < 4; i++) {
		assert_int_equal(g.cell[i].group, i / 2);
		assert_int_equal(g.cell[i].config.train.seed, 1 + i % 2);
		assert_int_equal(g.cell[i].config.model.width, 32);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(g.cell[i].identity, g.cell[j].identity);
	}
	char name[64];
	snprintf(name, sizeof name, "alibi-seed-2-%.8s", g.cell[3].identity);
	assert_string_equal(g.cell[3].name, name);
	close_grid(&s, &g);
}

static void test_identity(void **state)
{
	(void)state;
	struct study a, b, c;
	struct grid x, y, z;
	build("seed = 1, 2\nscaling = none\n", &a, &x);
	build("encoding = nope, rope(theta=500)\nseed = 2\nscaling = ntk\nmultiples = 1\nsequences = 3\n", &b, &y);
	build("seed = 2\nlr = 3.1e-3\n", &c, &z);
	assert_string_equal(x.cell[1].identity, y.cell[1].identity);
	assert_string_not_equal(x.cell[1].identity, z.cell[0].identity);
	close_grid(&a, &x);
	close_grid(&b, &y);
	close_grid(&c, &z);
}

static void test_sections(void **state)
{
	(void)state;
	struct study s;
	struct grid g;
	build("encoding = rope, alibi( slopes = spread)\n[encoding=alibi(slopes=spread)]\nlayers = 3\nscaling = none\n"
	      "[encoding=rope]\nscaling = none, ntk\n", &s, &g);
	assert_int_equal(g.cell[0].config.model.layers, 2);
	assert_int_equal(g.cell[1].config.model.layers, 3);
	assert_int_equal(g.cell[0].sections, 2);
	assert_int_equal(g.cell[1].sections, 1);
	assert_int_equal(g.cell[0].scalings - g.cell[0].references, 2);
	assert_int_equal(g.cell[1].scalings - g.cell[1].references, 1);
	close_grid(&s, &g);
}

static void refuse_grid(const char *text, const char *part, const char *hint)
{
	struct study s;
	struct grid g;
	assert_ok(study_parse("f", text, &s));
	struct err e = grid_build(&s, &g);
	assert_int_equal(e.code, ERR_USAGE);
	contains(e.text, part);
	contains(e.hint, hint);
	assert_null(g.cell);
	study_free(&s);
}

static void test_grid_refusals(void **state)
{
	(void)state;
	refuse_grid("encoding = rope, alibi\n[encoding=nope]\nlayers = 3\n", "f:2: [encoding=nope]", "encoding=alibi");
	refuse_grid("encoding = rope\n[encoding=rope]\nlayers = 1\n[encoding=nope]\nlayers = 3\n",
		    "f:4: [encoding=nope]", "encoding=rope");
	refuse_grid("[encoding=rope]\nlayers = 3\n", "f:1", "before the first section");
	refuse_grid("encoding = rope\nlayers = 1, 2\n[encoding=rope]\nlayers = 3\n", "f:4: layers", "out of the axis");
	refuse_grid("encoding = rope\nalibi_slopes = spread\n", "f:2: alibi_slopes: has no effect", "Leave it out");
	refuse_grid("scaling = none\nfactor = 8\n", "f:2: factor: has no effect", "Leave it out");
	refuse_grid("seed = 1, x\n", "f:1: seed", "");
	refuse_grid("scaling = none, none\n", "none", "once");
	refuse_grid("multiples = 1, zwei\n", "zwei", "");
}

static void test_flags_where_they_apply(void **state)
{
	(void)state;
	struct study s;
	struct grid g;
	build("encoding = rope, alibi\nalibi_slopes = published, spread\nscaling = ntk, none\nfactor = 8\n", &s, &g);
	assert_int_equal(arrlen(g.cell), 3); /* rope has no slopes: one cell of it */
	assert_string_equal(g.cell[0].label, "rope");
	assert_string_equal(g.cell[1].label, "alibi(slopes=published)");
	assert_string_equal(g.cell[0].scaling_label[0], "ntk(factor=8)");
	close_grid(&s, &g);
}

/* Every model is also held against itself with a window, unless the study names one or wants none. */
static void test_references(void **state)
{
	(void)state;
	struct study s;
	struct grid g;
	build("encoding = rope, alibi\nscaling = none\n", &s, &g);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(g.cell[i].references, 1);
		assert_int_equal(g.cell[i].scalings, 2);
		assert_string_equal(g.cell[i].scaling_label[1], "window");
	}
	close_grid(&s, &g);
	build("scaling = window, none\n", &s, &g);
	assert_int_equal(g.cell[0].references, 0);
	assert_int_equal(g.cell[0].scalings, 2);
	close_grid(&s, &g);
	build("references = off\n", &s, &g);
	assert_int_equal(g.cell[0].references, 0);
	assert_int_equal(g.cell[0].scalings, 1);
	close_grid(&s, &g);
}

static void test_possible(void **state)
{
	(void)state;
	struct study s;
	struct grid g;
	build("encoding = rope, alibi, learned\nscaling = none, ntk\n", &s, &g);
	assert_true(cell_possible(&g.cell[0], 1, 2048));
	assert_true(cell_possible(&g.cell[1], 0, 2048));
	assert_false(cell_possible(&g.cell[1], 1, 64));
	assert_true(cell_possible(&g.cell[2], 0, 64));
	assert_false(cell_possible(&g.cell[2], 0, 65));
	close_grid(&s, &g);
}

/* --- running ----------------------------------------------------------------------------------------------------- */

#define TINY_MODEL "layers = 1\nwidth = 16\nheads = 1\nhidden = 16\nbatch = 2\ntrain_length = 32\nsequences = 2\n" \
		   "references = off\n"
#define TINY TINY_MODEL "steps = 2\nmultiples = 1, 2\n"

static char folder[FOLDER_PATH];
static int trained, evaluated, looked; /* looked: files by sequence that were opened, which evaluation alone does */
static const char *fail_path; /* writing a model below a path with this in it fails */

/* Counts the files that training and evaluation end with, by the rename that puts them in place. */
static int watch(const char *operation, const char *path)
{
	looked += strstr(path, "-sequences.csv") != NULL;
	if (strcmp(operation, "rename"))
		return 0;
	if (fail_path && strstr(path, fail_path) && strstr(path, RUN_MODEL))
		return ENOSPC;
	trained += strstr(path, RUN_MODEL) != NULL;
	evaluated += strstr(path, "/eval-") && !strstr(path, "sequences");
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	io_fault = watch;
	return folder_make(folder) || blas_start(1).code;
}

static int tear_down(void **state)
{
	(void)state;
	io_fault = NULL;
	fail_path = NULL;
	return folder_remove(folder);
}

static struct err run_silently(const struct study_job *job, int *failed)
{
	fflush(stderr);
	int kept = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY);
	dup2(nowhere, STDERR_FILENO);
	struct err e = study_run(job, failed);
	fflush(stderr);
	dup2(kept, STDERR_FILENO);
	close(kept);
	close(nowhere);
	return e;
}

/* Runs a study in the folder; how many models were trained and files of rows written. */
static int run_study(const char *text, int trains, int evaluates)
{
	struct study s;
	struct grid g;
	int failed;
	build(text, &s, &g);
	struct study_job job = { .folder = folder, .study = &s, .grid = &g, .command_line = "ropewalk study x" };
	trained = evaluated = looked = 0;
	assert_ok(run_silently(&job, &failed));
	assert_int_equal(trained, trains);
	assert_int_equal(evaluated, evaluates);
	close_grid(&s, &g);
	return failed;
}

static void test_computes_only_what_is_missing(void **state)
{
	(void)state;
	assert_int_equal(run_study(TINY "seed = 1\n", 1, 1), 0);
	assert_int_equal(run_study(TINY "seed = 1\n", 0, 0), 0);
	assert_int_equal(looked, 0);
	assert_int_equal(run_study(TINY "seed = 1, 2\n", 1, 1), 0);
	assert_int_equal(run_study(TINY "seed = 1, 2\nscaling = none, ntk\n", 0, 2), 0);
	assert_int_equal(run_study(TINY "encoding = rope, alibi\nseed = 2\nscaling = none, ntk\n", 1, 1), 0);
	assert_int_equal(run_study(TINY_MODEL "steps = 2\nmultiples = 1, 2, 4\nseed = 2\n", 0, 1), 0);
	assert_int_equal(run_study(TINY "seed = 2\nlr = 1e-3, 3e-3\n", 1, 1), 0);
}

static void test_writes_study_and_command(void **state)
{
	(void)state;
	struct study s;
	struct grid g;
	run_study(TINY "seed = 1, 2\n", 2, 2);
	assert_ok(study_folder_open(folder, &s, &g));
	assert_int_equal(arrlen(g.cell), 2);
	assert_string_equal(study_folder_command(folder), "ropewalk study x");
	assert_true(study_folder_seconds(folder) > 0);
	close_grid(&s, &g);
}

/* The folder of the only cell of a study. */
static char *only_cell(const char *text)
{
	struct study s;
	struct grid g;
	char *path;
	enum cell_status status;
	build(text, &s, &g);
	assert_ok(study_folder_find(folder, &g.cell[0], &path, &status));
	close_grid(&s, &g);
	return path;
}

static void set_status(const char *path, const char *status)
{
	json_t *record;
	assert_ok(run_record_read(path, &record));
	json_object_set_new(record, "status", json_string(status));
	assert_ok(run_record_write(path, record));
	json_decref(record);
}

/* From its checkpoint, which gives the model that the rows are of; without one from the start, and the rows go. */
static void test_unfinished_goes_on(void **state)
{
	(void)state;
	run_study(TINY, 1, 1);
	char *path = only_cell(TINY), *checkpoint = io_join(path, "checkpoint-0000000002.safetensors");
	set_status(path, "running");
	assert_int_equal(run_study(TINY, 1, 0), 0);
	assert_string_equal(run_folder_status(path), "finished");
	set_status(path, "running");
	assert_true(io_exists(checkpoint));
	assert_ok(io_remove(checkpoint));
	assert_int_equal(run_study(TINY, 1, 1), 0);
	assert_string_equal(run_folder_status(path), "finished");
	free(checkpoint);
	free(path);
}

static void test_diverged_is_counted_and_kept(void **state)
{
	(void)state;
	run_study(TINY, 1, 1);
	char *path = only_cell(TINY);
	set_status(path, "diverged");
	assert_int_equal(run_study(TINY "seed = 101, 102\n", 1, 1), 1);
	free(path);
}

/* Weight decay of rate times decay above 2 makes the weights grow without bound. */
static void test_diverges(void **state)
{
	(void)state;
	static const char text[] = TINY_MODEL "multiples = 1\nsteps = 60\nlr = 1000\nwarmup = 0\nweight_decay = 1000\n";
	assert_int_equal(run_study(text, 0, 0), 1);
	char *path = only_cell(text);
	assert_string_equal(run_folder_status(path), "diverged");
	free(path);
	assert_int_equal(run_study(text, 0, 0), 1);
}

static void test_failure_stops_no_other(void **state)
{
	(void)state;
	fail_path = "seed-2";
	assert_int_equal(run_study(TINY "seed = 1, 2, 3\n", 2, 2), 1);
	fail_path = NULL;
	assert_int_equal(run_study(TINY "seed = 1, 2, 3\n", 1, 1), 0);
}

static void test_other_model_in_folder(void **state)
{
	(void)state;
	run_study(TINY, 1, 1);
	char *path = only_cell(TINY), *config = io_join(path, RUN_CONFIG);
	assert_ok(io_write(config, "seed = 9\n", 9));
	struct study s;
	struct grid g;
	int failed;
	build(TINY, &s, &g);
	struct study_job job = { .folder = folder, .study = &s, .grid = &g, .command_line = "" };
	assert_ok(run_silently(&job, &failed));
	assert_int_equal(failed, 1);
	assert_string_equal(run_folder_status(path), "finished");
	close_grid(&s, &g);
	free(path);
	free(config);
}

/* One whose record or rows cannot be read keeps its files, and the others are computed. */
static void test_damage_stops_no_other(void **state)
{
	(void)state;
	static const char *const names[] = { RUN_RECORD, "eval-none-afc5064e.csv" };
	for (int i = 0; i < 2; i++) {
		run_study(TINY "seed = 1\n", i == 0, i == 0);
		char *path = only_cell(TINY "seed = 1\n"), *csv = io_join(path, names[i]), *data;
		size_t size;
		assert_true(io_exists(csv));
		assert_ok(io_read(csv, &data, &size));
		assert_ok(io_write(csv, "{", 1));
		char text[sizeof TINY + 40];
		snprintf(text, sizeof text, TINY "seed = 1, %d\n", 2 + i);
		assert_int_equal(run_study(text, 1, 1), 1);
		assert_ok(io_write(csv, data, size));
		assert_int_equal(run_study(text, 0, 0), 0);
		free(data);
		free(csv);
		free(path);
	}
}

static void put(const char *name)
{
	char *path = io_join(folder, name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs("seed = 1\n", f);
	fclose(f);
	free(path);
}

/* Another process begins a study there at that moment. */
static int begin_study(const char *operation, const char *path)
{
	if (!strcmp(operation, "list") && !strcmp(path, folder)) {
		put(STUDY_FILE);
		put(STUDY_COMMAND);
	}
	return 0;
}

static void test_begun_meanwhile(void **state)
{
	(void)state;
	io_fault = begin_study;
	assert_ok(study_folder_check(folder));
}

static void test_foreign_folder(void **state)
{
	(void)state;
	char *path = io_join(folder, "letter");
	assert_ok(io_write(path, "x", 1));
	struct err e = study_folder_check(folder);
	assert_int_equal(e.code, ERR_USAGE);
	contains(e.text, "other things");
	free(path);
}

#define RUN_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest files[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_commas_in_parentheses),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_override),
		cmocka_unit_test(test_override_of_an_axis),
		cmocka_unit_test(test_print_reads_back),
		cmocka_unit_test(test_presets),
		cmocka_unit_test(test_grid),
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_grid_refusals),
		cmocka_unit_test(test_flags_where_they_apply),
		cmocka_unit_test(test_references), cmocka_unit_test(test_possible),
	};
	const struct CMUnitTest runs[] = {
		RUN_TEST(test_computes_only_what_is_missing),
		RUN_TEST(test_writes_study_and_command),
		RUN_TEST(test_unfinished_goes_on),
		RUN_TEST(test_diverged_is_counted_and_kept),
		RUN_TEST(test_diverges),
		RUN_TEST(test_failure_stops_no_other),
		RUN_TEST(test_other_model_in_folder),
		RUN_TEST(test_damage_stops_no_other),
		RUN_TEST(test_begun_meanwhile),
		RUN_TEST(test_foreign_folder),
	};
	int failed = cmocka_run_group_tests_name("runs study files", files, NULL, NULL);
	return failed + cmocka_run_group_tests_name("runs study", runs, NULL, NULL);
}
