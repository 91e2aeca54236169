#include "runs/progress.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support.h"

/* Lines of progress where there is no terminal: one in each interval, whatever the work is made of. */

#define INTERVAL 0.1

static char folder[FOLDER_PATH], path[FOLDER_PATH + 8];
static int kept;

static int set_up(void **state)
{
	(void)state;
	if (folder_make(folder))
		return -1;
	snprintf(path, sizeof path, "%s/err", folder);
	fflush(stderr);
	kept = dup(STDERR_FILENO);
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	dup2(file, STDERR_FILENO);
	close(file);
	progress_log_seconds = INTERVAL;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fflush(stderr);
	dup2(kept, STDERR_FILENO);
	close(kept);
	return folder_remove(folder);
}

/* What was said since set_up. */
static char *said(void)
{
	static char text[65536];
	fflush(stderr);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	size_t size = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[size] = '\0';
	return text;
}

static int lines_with(const char *part)
{
	int count = 0;
	char *rest = NULL;
	for (char *l = strtok_r(said(), "\n", &rest); l; l = strtok_r(NULL, "\n", &rest))
		count += strstr(l, part) != NULL;
	return count;
}

static void pause_for(double seconds)
{
	nanosleep(&(struct timespec){ .tv_nsec = (long)(1e9 * seconds) }, NULL);
}

/* Each piece is shorter than the interval. */
static void test_short_work(void **state)
{
	(void)state;
	struct progress p;
	double start = clock_seconds();
	for (int i = 0; i < 60; i++) {
		progress_start(&p, "piece");
		progress_show(&p, 0.5, "%d of 60", i);
		pause_for(0.01);
		progress_end(&p);
	}
	int lines = lines_with("piece"), most = (int)((clock_seconds() - start) / INTERVAL) + 1;
	if (lines < 2 || lines > most)
		fail_msg("%d lines, not 2 to %d", lines, most);
}

/* Nothing is heard of it until its end. */
static void test_long_work(void **state)
{
	(void)state;
	struct progress p;
	double start = clock_seconds();
	progress_start(&p, "eval none at 65536");
	pause_for(1.5 * INTERVAL);
	progress_show(&p, 0.5, "1 of 2 tokens");
	pause_for(4.5 * INTERVAL);
	progress_end(&p);
	int lines = lines_with("eval none at 65536"), most = (int)((clock_seconds() - start) / INTERVAL) + 1;
	if (lines < 3 || lines > most || !lines_with("eval none at 65536 (0.") ||
	    !lines_with("eval none at 65536: 1 of 2 tokens, ") || !lines_with(" left (0."))
		fail_msg("%d lines, not 3 to %d", lines, most);
	pause_for(1.5 * INTERVAL);
	assert_int_equal(lines_with("eval"), lines);
}

static const char *whole(void *data, char text[120])
{
	snprintf(text, 120, "%d of 5, about 2 min left", *(int *)data);
	return text;
}

static void test_part_of_a_whole(void **state)
{
	(void)state;
	struct progress p;
	int number = 3;
	progress_speaker("[rank 1 of 3] ");
	progress_part_of(whole, &number);
	progress_start(&p, "rope-1");
	pause_for(1.1 * INTERVAL);
	progress_show(&p, 0.5, "step %d of 10", 5);
	progress_end(&p);
	progress_part_of(NULL, NULL);
	progress_speaker("");
	assert_int_equal(lines_with("[rank 1 of 3] 3 of 5, about 2 min left: rope-1"), lines_with("rope-1"));
	assert_true(lines_with("rope-1") >= 1);
}

static void test_durations(void **state)
{
	(void)state;
	static const struct {
		double seconds;
		const char *text;
	} cases[] = { { 0, "1 s" },	  { 4.4, "4 s" },     { 31, "30 s" },	    { 93, "95 s" },
		      { 120, "2 min" },	  { 3000, "50 min" }, { 5400, "1 h 30 min" }, { 86400, "24 h 00 min" } };
	char text[32];
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(duration_about(cases[i].seconds, text), cases[i].text);
}

#define RUN_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUN_TEST(test_short_work),
		RUN_TEST(test_long_work),
		RUN_TEST(test_part_of_a_whole),
		cmocka_unit_test(test_durations),
	};
	return cmocka_run_group_tests_name("runs progress", tests, NULL, NULL);
}
