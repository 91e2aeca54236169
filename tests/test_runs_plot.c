#include "runs/plot/plot.h"

#include "eval/protocol.h"

#include <string.h>

#include "tests/study_case.h"

/* The pictures: what each has on it, of a study and of a single run. */

static const struct picture *picture_named(const char *name)
{
	for (int i = 0; picture_at(i); i++)
		if (!strcmp(picture_at(i)->name, name))
			return picture_at(i);
	fail_msg("no picture %s", name);
	return NULL;
}

static const struct series *series_named(const struct panel *p, const char *label)
{
	for (int i = 0; i < arrlen(p->series); i++)
		if (!strcmp(p->series[i].label, label))
			return &p->series[i];
	fail_msg("no series %s", label);
	return NULL;
}

static void test_perplexity(void **state)
{
	(void)state;
	struct chart c;
	two_seeds("a");
	assert_ok(picture_make(picture_named("perplexity"), &results, &c));
	assert_int_equal(arrlen(c.panel), 2);
	const struct panel *p = &c.panel[0];
	assert_string_equal(p->title, "recall");
	const struct series *s = series_named(p, "none");
	assert_int_equal(arrlen(s->point), 2);
	assert_close(s->point[1].x, 4, 0);
	assert_close(s->point[1].y, 6, 1e-12);
	assert_close(s->point[1].low, 4, 1e-12);
	assert_close(s->point[1].high, 9, 1e-12);
	assert_false(s->unlisted);
	assert_close(series_named(p, "floor: the best possible")->point[0].y, 1, 1e-12);
	assert_int_equal(series_named(p, "floor: the best possible")->kind, SERIES_THIN);
	assert_true(p->x.least < 1 && p->x.greatest > 4 && p->y.greatest >= 9);
	assert_string_equal(p->x.tick[1].text, "4x");
	/* The second panel's key does not say again what the first one's does. */
	assert_true(series_named(&c.panel[1], "none")->unlisted);
	assert_close(series_named(&c.panel[1], "none")->point[1].y, 12, 1e-12);
	chart_free(&c);
}

static void test_five_seeds(void **state)
{
	(void)state;
	struct chart c;
	build("seed = 1, 2, 3, 4, 5\nmultiples = 2\nreferences = off\n");
	for (int i = 0; i < 5; i++) {
		char *run = make_run(i, "finished", "a");
		write_rows(run, i, 0, (const double[][2]){ { exp(1 + 0.1 * i), 0.5 + 0.05 * i } });
		free(run);
	}
	read_back();
	assert_ok(picture_make(picture_named("perplexity"), &results, &c));
	const struct point *p = c.panel[0].series[0].point;
	/* t of 4 degrees of freedom is 2.7764451; sd is 0.1 sqrt(2.5). */
	double half = 2.7764451 * 0.1 * sqrt(2.5) / sqrt(5);
	assert_close(log(p->y), 1.2, 1e-9);
	assert_close(log(p->low), 1.2 - half, 1e-6);
	assert_close(log(p->high), 1.2 + half, 1e-6);
	chart_free(&c);
	assert_ok(picture_make(picture_named("accuracy"), &results, &c));
	p = c.panel[0].series[0].point;
	assert_close(p->y, 0.6, 1e-12);
	assert_true(p->low > 0.3 && p->low < 0.6 && p->high > 0.6 && p->high < 0.9);
	chart_free(&c);
}

static void test_many_methods(void **state)
{
	(void)state;
	struct chart c;
	struct text_builder b = { 0 };
	text_add(&b, "multiples = 2\nreferences = off\nscaling = none");
	for (int i = 2; i < 15; i++)
		text_add(&b, ", ntk(factor=%d)", i);
	text_add(&b, "\n");
	build(b.data);
	text_builder_free(&b);
	char *run = make_run(0, "finished", "a");
	for (int i = 0; i < 14; i++)
		write_rows(run, 0, i, (const double[][2]){ { 1 + i, 0.5 } });
	free(run);
	read_back();
	assert_ok(picture_make(picture_named("perplexity"), &results, &c));
	assert_int_equal(arrlen(c.panel), 4);
	assert_string_equal(c.panel[0].title, "recall (methods 1 - 12 of 14)");
	assert_string_equal(c.panel[2].title, "recall (methods 13 - 14 of 14)");
	assert_false(series_named(&c.panel[2], "ntk(factor=13)")->unlisted);
	assert_int_equal(series_named(&c.panel[2], "ntk(factor=13)")->style, 0);
	chart_free(&c);
}

static void test_nothing_yet(void **state)
{
	(void)state;
	build("seed = 1, 2\n");
	read_back();
	for (int i = 0; picture_at(i); i++) {
		struct chart c;
		assert_ok(picture_make(picture_at(i), &results, &c));
		if (strcmp(picture_at(i)->name, "frequencies"))
			assert_true(!arrlen(c.panel) && c.absent);
		chart_free(&c);
	}
}

static void test_seeds(void **state)
{
	(void)state;
	struct chart c;
	two_seeds("a");
	assert_ok(picture_make(picture_named("seeds"), &results, &c));
	assert_int_equal(arrlen(c.panel), 2);
	const struct series *s = series_named(&c.panel[0], "4x");
	assert_int_equal(s->kind, SERIES_POINTS);
	assert_int_equal(arrlen(s->point), 3);
	assert_close(s->point[0].x, 9, 1e-12);
	assert_close(s->point[1].x, 4, 1e-12);
	assert_close(s->point[2].x, 2, 1e-12);
	/* Of one strip, and of the next beneath it. */
	assert_true(fabs(s->point[0].y - s->point[1].y) < 0.2 && s->point[2].y < s->point[1].y - 0.8);
	assert_close(series_named(&c.panel[1], "4x")->point[1].x, 0.7, 1e-12);
	assert_string_equal(c.panel[0].note[1].text, "ntk");
	chart_free(&c);
}

static void test_frequencies(void **state)
{
	(void)state;
	struct chart c;
	build("scaling = none, linear, yarn(ramp=rotations,beta_fast=4)\nmultiples = 1, 8\nwidth = 64\nheads = 2\n");
	read_back();
	assert_ok(picture_make(picture_named("frequencies"), &results, &c));
	assert_int_equal(arrlen(c.panel), 2);
	/* `none` is what was trained; a line of that would hide beneath it. */
	assert_int_equal(arrlen(c.panel[0].series), 3);
	const struct series *trained = series_named(&c.panel[0], "none");
	const struct series *linear = series_named(&c.panel[0], "linear");
	assert_int_equal(arrlen(trained->point), 16);
	for (int m = 0; m < 16; m++) {
		assert_close(trained->point[m].y, 2 * M_PI * pow(500, m / 16.0), 1e-9);
		assert_close(linear->point[m].y, 8 * trained->point[m].y, 1e-9);
	}
	const struct series *ramp = c.panel[1].series;
	assert_int_equal(arrlen(ramp), 1);
	assert_int_equal(ramp->style, series_named(&c.panel[0], ramp->label)->style);
	assert_close(ramp->point[0].y, 1, 1e-12);
	assert_close(ramp->point[15].y, 0, 1e-12);
	chart_free(&c);
}

static void test_training(void **state)
{
	(void)state;
	struct chart c;
	struct text_builder b = { 0 };
	build("seed = 7\nsteps = 1000\n");
	char *run = make_run(0, "running", "a"), *log = io_join(run, RUN_LOG);
	for (int i = 1; i <= 1000; i++)
		text_add(&b, "{\"step\":%d,\"loss\":%d,\"grad_norm\":1,\"lr\":1,\"accuracy\":0}\n", i, i % 2 ? 1 : 3);
	text_add(&b, "{\"step\":1001,\"lo");
	assert_ok(io_write(log, b.data, b.size));
	text_builder_free(&b);
	free(log);
	free(run);
	read_back();
	assert_ok(picture_make(picture_named("training"), &results, &c));
	const struct series *s = c.panel[0].series;
	assert_string_equal(s->label, "rope, seed 7");
	assert_true(arrlen(s->point) > 60 && arrlen(s->point) < 121);
	assert_close(s->point[0].x, 1, 1e-12);
	assert_close(s->point[0].y, 1, 1e-12);
	assert_close(arrlast(s->point).y, 2, 0.05);
	chart_free(&c);
}

/* ---- What stands beside the rows ---- */

#define OF_ALL "run,encoding,scaling,factor,task,group,seed,eval_seed,train_length,length,multiple,sequences,"
#define POSITION_HEAD OF_ALL "position,positions,scored,nll,nll_se,accuracy,protocol\n"
#define GRID_HEAD OF_ALL "distance,position_seen,distance_seen,scored,nll,accuracy,protocol\n"

static void put_cuts(const char *kind, const char *text)
{
	struct text_builder name = { 0 };
	text_add(&name, "%s-", kind);
	run_folder_method("none", &name);
	text_add(&name, ".csv");
	char *run = io_join(folder, grid.cell[0].name), *path = io_join(run, name.data);
	assert_ok(io_write(path, text, strlen(text)));
	free(path);
	free(run);
	text_builder_free(&name);
}

static void one_run(void)
{
	build("seed = 1\nscaling = none\nmultiples = 1, 4\nsequences = 3\n");
	char *run = make_run(0, "finished", "a");
	write_rows(run, 0, 0, (const double[][2]){ { 1, 1 }, { 9, 0.6 } });
	free(run);
	read_back();
}

static void test_by_position(void **state)
{
	(void)state;
	struct chart c;
	one_run();
	put_cuts("by_position", POSITION_HEAD
		 "r,rope,none,1,recall,recall,1,1,64,64,1,3,0,8,5,9,0,0.5,by hand\n"
		 "r,rope,none,1,recall,recall,1,1,64,256,4,3,64,8,5,2.5,0,0.5,by hand\n"
		 "r,rope,none,1,recall,recall,1,1,64,256,4,3,0,8,5,0.5,0,0.5,\"by hand\"\n"
		 "r,rope,none,1,recall,recall,1,2,64,256,4,3,8,8,5,7,0,0.5,by hand\n");
	assert_ok(picture_make(picture_named("by_position"), &results, &c));
	const struct series *s = c.panel[0].series;
	assert_int_equal(arrlen(s->point), 2);
	assert_close(s->point[0].x, 4, 1e-12);
	assert_close(s->point[0].y, 0.5, 1e-12);
	assert_close(s->point[1].x, 68, 1e-12);
	assert_close(s->point[1].y, 2.5, 1e-12);
	assert_true(c.panel[0].mark[0].upright && c.panel[0].mark[0].at == 64);
	chart_free(&c);
}

static void test_recall_grid(void **state)
{
	(void)state;
	struct chart c;
	one_run();
	put_cuts("recall_grid", GRID_HEAD
		 "r,rope,none,1,recall,recall,1,1,64,256,4,3,16,1,1,1,0,1,by hand\n"
		 "r,rope,none,1,recall,recall,1,1,64,256,4,3,22,1,1,3,0,0.5,by hand\n"
		 "r,rope,none,1,recall,recall,1,1,64,256,4,3,23,1,1,3,0,0.25,by hand\n");
	assert_ok(picture_make(picture_named("recall_grid"), &results, &c));
	const struct series *s = c.panel[0].series;
	assert_int_equal(s->kind, SERIES_CELLS);
	assert_int_equal(arrlen(s->point), 2);
	assert_close(s->point[0].low, 16, 1e-9);
	assert_close(s->point[0].high, 16 * sqrt(2), 1e-9);
	assert_close(s->point[0].value, 0.625, 1e-12);
	assert_close(s->point[1].value, 0.25, 1e-12);
	assert_close(s->point[0].left, 2, 1e-9);
	assert_close(s->point[0].right, 8, 1e-9);
	chart_free(&c);
	put_cuts("recall_grid", GRID_HEAD "r,rope,none,1,recall,recall,1,1,64,256,4,3,1,1,1,1,0,1,by hand\n");
	assert_ok(picture_make(picture_named("recall_grid"), &results, &c));
	assert_non_null(strstr(c.absent, "equally far away"));
	chart_free(&c);
}

static void test_damaged_cuts(void **state)
{
	(void)state;
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "", "not the columns that this version writes" },
		{ "run,encoding\n", "not the columns" },
		{ POSITION_HEAD "r,rope,none\n", "3 fields where there are 19" },
		{ POSITION_HEAD "r,rope,none,1,recall,recall,x,1,64,64,1,3,0,8,5,9,0,0.5,by "
				"hand\n", "its seed is 'x'" },
		{ POSITION_HEAD "r,rope,none,1,recall,recall,1,1,64,64,1,3,0,0,5,9,0,0.5,by hand\n",
		  "its positions is '0'" },
		{ POSITION_HEAD "r,rope,none,1,recall,recall,1,1,64,64,1,3,0,8,5,9,0,1.5,by hand\n",
		  "its accuracy is" },
	};
	one_run();
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct chart c;
		put_cuts("by_position", bad[i].text);
		assert_err(picture_make(picture_named("by_position"), &results, &c), ERR_USAGE, bad[i].says);
		chart_free(&c);
	}
}
static void test_pick(void **state)
{
	(void)state;
	bool wanted[PICTURES];
	assert_ok(pictures_pick("", wanted));
	for (int i = 0; i < PICTURES; i++)
		assert_int_equal(wanted[i], picture_at(i) != NULL);
	assert_ok(pictures_pick("seeds, by-position", wanted));
	for (int i = 0; picture_at(i); i++)
		assert_int_equal(wanted[i], !strcmp(picture_at(i)->name, "seeds") ||
						    !strcmp(picture_at(i)->name, "by_position"));
	assert_err(pictures_pick("perplexty", wanted), ERR_USAGE, "Did you mean perplexity?");
	assert_err(pictures_pick("seeds,,training", wanted), ERR_USAGE, "is unknown");
	for (int i = 0; picture_at(i); i++) {
		assert_true(i < PICTURES);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(picture_at(i)->name, picture_at(j)->name);
	}
}

/* Each has a caption, and a row in the table of README.md. */
static void test_documented(void **state)
{
	(void)state;
	char *readme;
	size_t size;
	assert_ok(io_read("README.md", &readme, &size));
	const char *table = strstr(readme, "| picture | what is to be seen |");
	assert_non_null(table);
	for (int i = 0; picture_at(i); i++) {
		const struct picture *p = picture_at(i);
		const char *found = strstr(table, chart_text("`%s`", p->name));
		assert_true(found && found < strstr(table, "\n\n"));
		assert_true(strlen(p->caption) > 80 && p->caption[strlen(p->caption) - 1] == '.');
	}
	free(readme);
}

/* ---- A single run ---- */

static void test_run(void **state)
{
	(void)state;
	struct subject s;
	two_seeds("a");
	char *run = io_join(folder, grid.cell[0].name);
	assert_ok(subject_open(run, &s));
	assert_true(s.run);
	assert_int_equal(arrlen(s.grid.cell), 1);
	assert_int_equal(s.grid.cell[0].scalings, 2);
	assert_int_equal(arrlen(s.grid.multiple), 2);
	int none = strcmp(s.grid.cell[0].scaling_label[0], "none") ? 1 : 0;
	assert_close(results_summary(&s.results, 0, none, 4, "recall").perplexity, 9, 1e-12);
	subject_close(&s);
	assert_ok(subject_open(folder, &s));
	assert_false(s.run);
	assert_int_equal(arrlen(s.grid.cell), 2);
	subject_close(&s);
	free(run);
	run = io_join(folder, grid.cell[1].name);
	char *csv = cell_csv(&grid.cell[1], run, 0);
	assert_ok(io_remove(csv));
	assert_err(subject_open(run, &s), ERR_USAGE, "has not been evaluated");
	assert_err(subject_open("/nowhere/at/all", &s), ERR_USAGE, "no such folder");
	free(csv);
	free(run);
}

/* Of a run that was measured by another protocol than `all` its rows are found, and others are counted. */
static void test_run_of_a_protocol(void **state)
{
	(void)state;
	struct subject s;
	struct text_builder protocol = { 0 };
	build("seed = 1\nscaling = none\nmultiples = 1, 4\nsequences = 3\nprotocol = last\nreferences = off\n");
	char *run = make_run(0, "finished", "a");
	const struct cell *c = &grid.cell[0];
	struct row rows[2];
	text_add(&protocol, "recall; stream report; protocol ");
	protocol_name(&c->config.eval.protocol, &protocol);
	text_add(&protocol, "; and so on");
	for (int i = 0; i < 2; i++) {
		rows[i] = new_row(c, 0, i, "recall", 2 + i, 0.5);
		rows[i].protocol = protocol.data;
	}
	char *csv = run_folder_csv(run, &c->config.eval, "none", false);
	assert_ok(rows_write(csv, rows, 2));
	assert_ok(subject_open(run, &s));
	assert_close(results_summary(&s.results, 0, 0, 4, "recall").perplexity, 3, 1e-12);
	assert_int_equal(s.others, 0);
	subject_close(&s);
	for (int i = 0; i < 2; i++)
		rows[i].protocol = "recall; stream report; all";
	struct eval_options all = c->config.eval;
	all.protocol = method_default(protocol_at(PROTOCOL_ALL));
	free(csv);
	csv = run_folder_csv(run, &all, "none", false);
	assert_ok(rows_write(csv, rows, 1));
	assert_ok(subject_open(run, &s));
	assert_close(results_summary(&s.results, 0, 0, 4, "recall").perplexity, 3, 1e-12);
	assert_int_equal(s.others, 1);
	subject_close(&s);
	text_builder_free(&protocol);
	free(csv);
	free(run);
}
#define PLOT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLOT_TEST(test_perplexity),
		PLOT_TEST(test_five_seeds),
		PLOT_TEST(test_many_methods),
		PLOT_TEST(test_nothing_yet),
		PLOT_TEST(test_seeds),
		PLOT_TEST(test_frequencies),
		PLOT_TEST(test_training),
		PLOT_TEST(test_by_position),
		PLOT_TEST(test_recall_grid),
		PLOT_TEST(test_damaged_cuts),
		cmocka_unit_test(test_pick),
		cmocka_unit_test(test_documented),
		PLOT_TEST(test_run),
		PLOT_TEST(test_run_of_a_protocol),
	};
	return cmocka_run_group_tests_name("runs plot", tests, NULL, NULL);
}
