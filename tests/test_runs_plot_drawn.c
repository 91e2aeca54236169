#include "runs/plot/gnuplot.h"
#include "runs/plot/plot.h"

#include "model/base/process.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "tests/study_case.h"

/* Images by gnuplot: a program of that name, good or bad, and the files it leaves. */

/* A program of that name stands first in PATH; NULL: there is none at all. */
static void fake_gnuplot(const char *text)
{
	char *bin = io_join(folder, "bin"), *program = io_join(bin, "gnuplot");
	assert_ok(io_make_folder(bin));
	assert_ok(io_remove(program));
	if (text) {
		assert_ok(io_write(program, text, strlen(text)));
		assert_int_equal(chmod(program, 0755), 0);
	}
	struct text_builder path = { 0 };
	text_add(&path, "%s%s", bin, text ? ":/usr/bin:/bin" : "");
	setenv("PATH", path.data, 1);
	text_builder_free(&path);
	free(program);
	free(bin);
}

static char *kept_path;

static int path_set_up(void **state)
{
	kept_path = strdup(getenv("PATH"));
	return set_up(state);
}

static int path_tear_down(void **state)
{
	setenv("PATH", kept_path, 1);
	free(kept_path);
	gnuplot_seconds = 60;
	return tear_down(state);
}

static void test_bad_gnuplots(void **state)
{
	(void)state;
	static const struct {
		const char *program, *says;
	} bad[] = {
		{ NULL, "not installed" },
		{ "#!/bin/sh\necho 'plot nonsense' >&2\necho '     ^' >&2\necho '\"-\" line 3: undefined' >&2\nexit "
		  "7\n",
		  "exit code 7: \"-\" line 3: undefined" },
		{ "#!/bin/sh\nexit 3\n", "exit code 3: no message" },
		{ "#!/bin/sh\nkill -9 $$\n", "signal 9" },
		{ "#!/bin/sh\nexit 0\n", "printed nothing" },
		{ "#!/nowhere/sh\n", "cannot be started" },
	};
	struct text_builder script = { 0 };
	text_add(&script, "a script");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char *picture;
		size_t size;
		fake_gnuplot(bad[i].program);
		assert_err(gnuplot_run(&script, &picture, &size), ERR_FAILED, bad[i].says);
	}
	text_builder_free(&script);
}

static void test_gnuplot_gets_the_script(void **state)
{
	(void)state;
	struct text_builder script = { 0 };
	char *picture;
	size_t size;
	text_add(&script, "a script\n");
	fake_gnuplot("#!/bin/sh\n[ \"$1\" = -d ] && cat && printf 'noise' >&2\n");
	assert_ok(gnuplot_run(&script, &picture, &size));
	assert_string_equal(picture, script.data);
	assert_int_equal(size, script.size);
	free(picture);
	text_builder_free(&script);
}

/* What hangs is ended, and with it what it has started. */
static void test_gnuplot_hangs(void **state)
{
	(void)state;
	struct text_builder script = { 0 }, program = { 0 };
	char *picture, *mark = io_join(folder, "child"), *text;
	size_t size;
	text_add(&script, "a script\n");
	text_add(&program, "#!/bin/sh\nsleep 1000 & echo $! >%s\nwait\n", mark);
	fake_gnuplot(program.data);
	gnuplot_seconds = 0.5;
	assert_err(gnuplot_run(&script, &picture, &size), ERR_FAILED, "had not ended after 0.5 s");
	assert_ok(io_read(mark, &text, &size));
	pid_t child = (pid_t)atoi(text);
	assert_true(child > 1);
	struct process p = process_self();
	p.pid = child;
	*p.started = '\0';
	for (int i = 0; i < 200 && process_alive(&p) == PROCESS_ALIVE; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	assert_int_not_equal(process_alive(&p), PROCESS_ALIVE);
	free(text);
	free(mark);
	text_builder_free(&script);
	text_builder_free(&program);
}

/* How often the fake was called. */
static size_t calls(void)
{
	char *path = io_join(folder, "calls"), *text = NULL;
	size_t size = 0;
	if (io_exists(path))
		assert_ok(io_read(path, &text, &size));
	free(text);
	free(path);
	return size;
}

static void draw(struct plotted *done)
{
	bool wanted[PICTURES];
	char *to = io_join(folder, "pictures");
	const struct plot_job job = { &results, to, wanted, PICTURE_SVG };
	assert_ok(pictures_pick("perplexity,seeds", wanted));
	assert_ok(plot(&job, done));
	free(to);
}

static bool drawn(const char *name)
{
	char *pictures = io_join(folder, "pictures"), *path = io_join(pictures, name);
	bool there = io_exists(path);
	free(path);
	free(pictures);
	return there;
}

/* An image is drawn where its table is another, and an image of another table does not stay. */
static void test_images_of_their_tables(void **state)
{
	(void)state;
	struct plotted done;
	struct text_builder program = { 0 };
	two_seeds("a");
	text_add(&program, "#!/bin/sh\nprintf x >>%s/calls\necho '<?xml image </svg>'\n", folder);
	fake_gnuplot(program.data);
	draw(&done);
	assert_string_equal(done.names.data, "perplexity, seeds");
	assert_true(done.images && drawn("perplexity.svg") && drawn("perplexity.gp") && drawn("seeds.tsv"));
	assert_false(drawn("accuracy.svg"));
	plotted_free(&done);
	draw(&done);
	plotted_free(&done);
	assert_int_equal(calls(), 2);
	char *run = io_join(folder, grid.cell[1].name);
	write_rows(run, 1, 1, (const double[][2]){ { 1, 1 }, { 3, 0.9 } });
	free(run);
	read_back();
	draw(&done);
	plotted_free(&done);
	assert_int_equal(calls(), 4);
	run = io_join(folder, grid.cell[1].name);
	write_rows(run, 1, 1, (const double[][2]){ { 1, 1 }, { 4, 0.9 } });
	free(run);
	read_back();
	fake_gnuplot(NULL);
	draw(&done);
	assert_false(done.images);
	assert_true(drawn("perplexity.tsv") && !drawn("perplexity.svg"));
	plotted_free(&done);
	fake_gnuplot(program.data);
	draw(&done);
	assert_true(drawn("perplexity.svg"));
	plotted_free(&done);
	text_builder_free(&program);
}
/* What cannot be drawn is there as script and table, without the image that was; half a picture is none. */
static void test_images_that_fail(void **state)
{
	(void)state;
	static const char *const program[] = { "#!/bin/sh\nexit 3\n", "#!/bin/sh\necho '<?xml half'\n",
					       "#!/bin/sh\necho '</svg>'\n" };
	bool wanted[PICTURES];
	two_seeds("a");
	assert_ok(pictures_pick("perplexity", wanted));
	const struct plot_job job = { &results, folder, wanted, PICTURE_SVG };
	for (size_t i = 0; i < sizeof program / sizeof *program; i++) {
		struct plotted done;
		char *image = io_join(folder, "perplexity.svg"), *script = io_join(folder, "perplexity.gp");
		assert_ok(io_write(image, "old", 3));
		assert_ok(io_remove(script));
		fake_gnuplot(program[i]);
		assert_err(plot(&job, &done), ERR_FAILED, "perplexity: gnuplot: ");
		plotted_free(&done);
		assert_true(io_exists(script) && !io_exists(image));
		free(image);
		free(script);
	}
}

/* Files of a picture that is no more go; those of another origin stay. */
static void test_pictures_that_are_no_more(void **state)
{
	(void)state;
	struct plotted done;
	bool wanted[PICTURES];
	two_seeds("a");
	fake_gnuplot(NULL);
	assert_ok(pictures_pick("by_position,recall_grid", wanted));
	const struct plot_job job = { &results, folder, wanted, PICTURE_SVG };
	char *own = io_join(folder, "by_position.svg"), *script = io_join(folder, "by_position.gp");
	char *foreign = io_join(folder, "recall_grid.png");
	assert_ok(io_write(own, "old", 3));
	assert_ok(io_write(script, "old", 3));
	assert_ok(io_write(foreign, "mine", 4));
	assert_ok(plot(&job, &done));
	assert_int_equal(done.count, 0);
	assert_true(!io_exists(own) && !io_exists(script) && io_exists(foreign));
	plotted_free(&done);
	free(own);
	free(script);
	free(foreign);
}
#define PATH_TEST(name) cmocka_unit_test_setup_teardown(name, path_set_up, path_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PATH_TEST(test_bad_gnuplots),
		PATH_TEST(test_gnuplot_gets_the_script),
		PATH_TEST(test_gnuplot_hangs),
		PATH_TEST(test_images_of_their_tables),
		PATH_TEST(test_images_that_fail),
		PATH_TEST(test_pictures_that_are_no_more),
	};
	return cmocka_run_group_tests_name("runs plot drawn", tests, NULL, NULL);
}
