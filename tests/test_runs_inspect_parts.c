#include "tests/program.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

/* What `inspect` says of scalings of several parts and of those without a factor, and how much it shows of a long
 * table; what help says of their options. */

static char *out_of(const char *line)
{
	struct program_run r = program_run(line);
	if (r.code)
		fail_msg("%s: exit %d: %s", line, r.code, r.err);
	free(r.err);
	return r.out;
}

static void has(const char *line, const char *part)
{
	char *text = out_of(line);
	if (!strstr(text, part))
		fail_msg("%s: '%s' is not in:\n%s", line, part, text);
	free(text);
}

static int occurrences(const char *text, const char *part)
{
	int count = 0;
	while ((text = strstr(text, part))) {
		text += strlen(part);
		count++;
	}
	return count;
}

/* A+B is named whole, and its ramp is shown wherever its part stands. */
static void test_parts(void **state)
{
	(void)state;
	has("inspect --scaling=abf+yarn+window --format=json", "\"scaling\":\"abf+yarn+window\",\n");
	has("inspect --scaling=abf+yarn+window --format=json", "\"kept\":[1,");
	has("inspect --scaling=logn+yarn", "scaling           logn+yarn\n");
	has("inspect --scaling=logn+yarn --length=256", " on the ramp, ");
}

/* What is neither kept nor interpolated: slowed without a factor or by more than it, quickened, made to stand. */
static void test_counts(void **state)
{
	(void)state;
	has("inspect --head-dim=8 --scaling=giraffe", "Of 4 pairs 1 are kept, 3 slowed, 0 quickened;");
	has("inspect --head-dim=8 --length=256 --scaling=linear+giraffe",
	    "0 between, 1 interpolated by the whole factor, 3 slowed by more, 0 quickened;");
	has("inspect --head-dim=8 --scaling=resonance", "Of 4 pairs 0 are kept, 1 slowed, 3 quickened;");
	has("inspect --head-dim=8 --scaling=giraffe(kind=truncation,cut=2)", "\n3 pairs stand still");
	has("inspect --head-dim=8 --p-rope=0.5", "Of 4 pairs 2 are kept, 0 between, 0 interpolated by the whole");
}

/* People see the beginning and the end of a long table; programs all of it. */
static void test_long_tables(void **state)
{
	(void)state;
	char *text = out_of("inspect --length=300 --scaling=dynamic(block=1)");
	assert_non_null(strstr(text, "\n   127  "));
	assert_non_null(strstr(text, "\n   ...  156 rows left out: --format=json has all\n   284  "));
	assert_null(strstr(text, "\n   128  "));
	assert_null(strstr(text, "\n   283  "));
	assert_non_null(strstr(text, "\n   299  "));
	free(text);
	has("inspect --length=144 --scaling=dynamic(block=1)", "\n   128  ");
	text = out_of("inspect --length=300 --scaling=dynamic(block=1) --format=json");
	assert_int_equal(occurrences(text, "{\"begin\":"), 300);
	free(text);
}

/* Only methods that take the bare flag tell its other defaults: dual_chunk's mscale is another option. */
static void test_shared_defaults(void **state)
{
	(void)state;
	char *text = out_of("inspect --help");
	assert_int_equal(occurrences(text, "(dual_chunk: "), 0);
	assert_non_null(strstr(text, "(dynamic_yarn: auto) (longrope: auto)"));
	free(text);
}

/* What is wrong with parentheses says how they are written. */
static void test_parentheses(void **state)
{
	(void)state;
	program_refuses("inspect --scaling=linear(factor=2))", "follows the closing parenthesis", "Write NAME or");
	program_refuses("inspect --scaling=linear)", "was not opened", "Write NAME or");
	program_refuses("inspect --scaling=abf+linear(factor=2", "lacks a closing parenthesis", "Write NAME or");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_long_tables),
		cmocka_unit_test(test_shared_defaults),
		cmocka_unit_test(test_parentheses),
	};
	return cmocka_run_group_tests_name("inspect, parts", tests, program_setup, program_teardown);
}
