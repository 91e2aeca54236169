#include "tests/program.h"
#include "tests/support.h"

#include <jansson.h>
#include <stdio.h>

/* LongRoPE's lists from the command line: a path by flag or in parentheses, and what an evaluation makes of a file that
 * changes. */

static void put_lists(const char *text)
{
	program_put("lists", text, strlen(text));
}

static void by_flag(void **state)
{
	(void)state;
	put_lists("short = 1, 1, 1, 1\nlong = 1, 2, 3, 4\n");
	struct program_run r = program_run("inspect --format=json --scaling=longrope --longrope-file=lists "
					   "--head-dim=8 --rope-theta=1 --length=65");
	assert_int_equal(r.code, 0);
	json_t *found = json_loads(r.out, JSON_REJECT_DUPLICATES, NULL);
	for (size_t m = 0; m < 4; m++)
		assert_true(json_at(json_object_get(found, "inv_freq"), m) == 1 / (double)(m + 1));
	json_decref(found);
	program_run_free(&r);
	program_works("inspect --scaling=longrope --longrope-file=lists --head-dim=8 --factor=4 --attention-factor=1");
}

static void refusals(void **state)
{
	(void)state;
	put_lists("short = 1, 1, 1, 1\nlong = 1, 2, 3, 4\n");
	program_refuses("inspect --scaling=longrope(file=lists)", "lists have 4 numbers", "head_dim");
	program_refuses("inspect --scaling=longrope(file=none)", "scaling: longrope: file: none: cannot be read", NULL);
	program_refuses("inspect --scaling=longrope --longrope-file=none", "--longrope-file: none: cannot be read",
			NULL);
	program_refuses("inspect --scaling=longrope(file=lists@01234567) --head-dim=8", "it has changed", "path alone");
	put_lists("short = 1\n");
	program_refuses("inspect --scaling=longrope(file=lists)", "file: lists: it has no numbers", "two lines");
}

/* How many files of results there are. */
static void check_results(int files)
{
	char line[64];
	snprintf(line, sizeof line, "test $(ls run/eval-longrope-*-sequences.csv | wc -l) = %d", files);
	shell(line);
}

/* Rows are kept by label: another content has to be another one, and an old one to be found again. */
static void evaluations(void **state)
{
	(void)state;
	program_works("train --layers=1 --width=8 --heads=1 --hidden=8 --train-length=32 --batch=2 --steps=2 "
		      "--out=run");
	put_lists("short = 1, 1, 1, 1\nlong = 1, 2, 3, 4\n");
	program_works("eval run --scaling=longrope(file=lists) --multiples=2 --sequences=2");
	check_results(1);
	put_lists("short = 1, 1, 1, 1\nlong = 1, 2, 3, 40\n");
	program_works("eval run --scaling=longrope(file=lists) --multiples=2 --sequences=2");
	check_results(2);
	/* The numbers of the first, in another form: its rows are there. */
	put_lists("{\"short_factor\": [1, 1, 1, 1], \"long_factor\": [1, 2, 3, 4.0]}");
	struct program_run r = program_run("eval run --scaling=longrope(file=lists) --multiples=2 --sequences=2");
	assert_int_equal(r.code, 0);
	if (!strstr(r.err, "1 of 1 lengths are there already"))
		fail_msg("not taken from what was there: %s", r.err);
	program_run_free(&r);
	check_results(2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_flag),
		cmocka_unit_test(refusals),
		cmocka_unit_test(evaluations),
	};
	return cmocka_run_group_tests_name("longrope", tests, program_setup, program_teardown);
}
