#include "tests/program.h"
#include "tests/support.h"

#include "model/base/io.h"
#include "model/base/lease.h"
#include "model/base/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* No work is lost and no wrong number shown: what the program refuses to replace, and files it does not believe. */

#define SMALL "--width=16 --heads=2 --hidden=16 --layers=1 --batch=2 --steps=2 "
#define NONE "eval-none-afc5064e"

static int start(void **state)
{
	(void)state;
	program_start();
	program_works("train " SMALL "--out=one");
	program_works("train " SMALL "--seed=102 --out=two");
	return 0;
}

/* A file as it is now, to compare with and to put back. */
struct kept {
	const char *name;
	char *data;
	size_t size;
};

static struct kept keep(const char *name)
{
	struct kept k = { .name = name };
	k.data = program_file(name, &k.size);
	return k;
}

static void assert_unchanged(const struct kept *k)
{
	size_t size;
	char *now = program_file(k->name, &size);
	assert_int_equal(size, k->size);
	assert_memory_equal(now, k->data, size);
	free(now);
}

static void put_back(struct kept *k)
{
	program_put(k->name, k->data, k->size);
	free(k->data);
}

#define TINY_STUDY "layers = 1\nwidth = 16\nheads = 2\nhidden = 16\nbatch = 2\nsteps = 2\nmultiples = 1\nsequences = 2\n"

/* Runs, asserts the exit code and a text on stderr. */
static void answers(const char *line, int code, const char *part)
{
	struct program_run r = program_run(line);
	if (r.code != code || !strstr(r.err, part))
		fail_msg("%s: exit %d, %s", line, r.code, r.err);
	program_run_free(&r);
}

static void test_forward_spares_what_it_reads(void **state)
{
	static const int32_t ids[4] = { 0, 2, 34, 2 };
	struct tensor t[] = { { .name = "tokens", .dtype = DTYPE_I32, .rank = 2, .shape = { 1, 4 }, .data = ids },
			      { .name = "targets", .dtype = DTYPE_I32, .rank = 2, .shape = { 1, 4 }, .data = ids } };
	char *path = program_path("in.safetensors");
	(void)state;
	assert_ok(safetensors_write(path, t, 2, NULL, 0));
	free(path);
	struct kept model = keep("one/model.safetensors"), tokens = keep("in.safetensors");
	answers("forward one/model.safetensors --tokens=in.safetensors --output=one/../one/model.safetensors", 2,
		"the model");
	answers("forward one/model.safetensors --tokens=in.safetensors --output=./in.safetensors", 2, "the tokens");
	assert_unchanged(&model);
	assert_unchanged(&tokens);
	program_works("forward one/model.safetensors --tokens=in.safetensors --output=out.safetensors");
	put_back(&model);
	put_back(&tokens);
}

static void test_folder_at_work_is_left_alone(void **state)
{
	struct lease *lock;
	char *path = program_path("one");
	struct kept model = keep("one/model.safetensors");
	(void)state;
	assert_ok(lease_take(path, &lock));
	answers("eval one --multiples=1 --sequences=2", 1, "at work");
	answers("train " SMALL "--out=one --force", 1, "at work");
	assert_unchanged(&model);
	assert_false(program_has("one/" NONE ".csv"));
	lease_release(lock);
	program_works("eval one --multiples=1 --sequences=2");
	put_back(&model);
	free(path);
}

static void test_force_replaces_runs_alone(void **state)
{
	char *path = program_path("mine");
	(void)state;
	assert_ok(io_make_folder(path));
	program_put("mine/config", "precious", 8);
	answers("train " SMALL "--out=mine --force", 2, "other things than a run");
	struct kept config = keep("mine/config");
	assert_int_equal(config.size, 8);
	put_back(&config);
	free(path);
}

static void test_unreadable_record_is_no_reason_to_train(void **state)
{
	(void)state;
	static const char study[] = "width = 16\nhidden = 16\nbatch = 2\nsteps = 2\nmultiples = 1\nsequences = 2\n";
	program_put("small.study", study, sizeof study - 1);
	program_works("study small.study --out=grid");
	char *folder = program_path("grid"), command[512];
	snprintf(command, sizeof command, "for f in %s/*/record.json; do : >$f; done", folder);
	assert_int_equal(system(command), 0);
	answers("study small.study --out=grid", 2, "damaged");
	snprintf(command, sizeof command, "ls %s/*/model.safetensors >/dev/null", folder);
	assert_int_equal(system(command), 0);
	free(folder);
}

static void test_model_of_another_run(void **state)
{
	struct kept mine = keep("one/model.safetensors"), theirs = keep("two/model.safetensors");
	(void)state;
	program_put("one/model.safetensors", theirs.data, theirs.size);
	answers("eval one --multiples=2 --sequences=2", 2, "seed is 102 there, and 101 here");
	put_back(&mine);
	free(theirs.data);
	program_works("eval one --multiples=2 --sequences=2");
}

static void test_tables_of_another_run(void **state)
{
	(void)state;
	program_works("eval one --multiples=1 --sequences=4");
	program_works("eval two --multiples=1 --sequences=4");
	struct kept mine = keep("one/" NONE ".csv"), theirs = keep("two/" NONE ".csv");
	program_put(mine.name, theirs.data, theirs.size);
	answers("eval one --multiples=1 --sequences=4", 2, "another run");
	put_back(&mine);
	free(theirs.data);
}

static void test_tables_cut_short(void **state)
{
	(void)state;
	program_works("train " SMALL "--out=cut");
	program_works("eval cut --multiples=1 --sequences=3");
	struct kept table = keep("cut/" NONE ".csv");
	char *first = strchr(strchr(table.data, '\n') + 1, '\n') + 1;
	/* Whole rows, but not all: computed again. */
	program_put(table.name, table.data, (size_t)(first - table.data));
	program_works("eval cut --multiples=1 --sequences=3");
	assert_unchanged(&table);
	/* Half a row, or a byte that ends texts: refused. */
	program_put(table.name, table.data, table.size - 1);
	answers("eval cut --multiples=1 --sequences=3", 2, "not complete");
	char *damaged = take(table.size, 1);
	memcpy(damaged, table.data, table.size);
	damaged[first - table.data] = 0;
	program_put(table.name, damaged, table.size);
	answers("eval cut --multiples=1 --sequences=3", 2, "NUL");
	free(damaged);
	put_back(&table);
}

/* A file that may not grow is an error like a full disk, not the end of the process. */
static void test_file_size_limit(void **state)
{
	struct rlimit before, small;
	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 4096;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	struct program_run r = program_run("train " SMALL "--out=limited");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(r.code, 1);
	assert_non_null(strstr(r.err, "File too large"));
	program_run_free(&r);
	char *record = program_file("limited/record.json", NULL);
	assert_non_null(strstr(record, "\"status\": \"failed\""));
	free(record);
}

/* What a study's folder has lost is said, and comes back with the study. */
static void test_study_folder_damaged(void **state)
{
	(void)state;
	size_t size;
	program_put("s.study", TINY_STUDY, strlen(TINY_STUDY));
	program_works("study s.study --out=s");
	char *kept = program_file("s/study", &size);
	program_put("s/study", "", 0);
	answers("table s", 2, "s/study: is empty");
	program_put("s/study", "layers = 1\nwidth = 16\n", 22);
	answers("table s", 0, "");
	struct program_run r = program_run("table s");
	assert_non_null(strstr(r.out, "warning: 1 finished models in s are not of this study"));
	program_run_free(&r);
	program_put("s/study", "", 0);
	answers("study s.study --out=s", 0, "0 to train, 0 to evaluate, 1 finished");
	char *again = program_file("s/study", &size);
	assert_string_equal(again, kept);
	answers("eval s", 2, "s: is a study, not a run");
	answers("table s --against=", 2, "--against: is empty");
	free(again);
	free(kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forward_spares_what_it_reads),
		cmocka_unit_test(test_folder_at_work_is_left_alone),
		cmocka_unit_test(test_force_replaces_runs_alone),
		cmocka_unit_test(test_unreadable_record_is_no_reason_to_train),
		cmocka_unit_test(test_model_of_another_run),
		cmocka_unit_test(test_tables_of_another_run),
		cmocka_unit_test(test_tables_cut_short),
		cmocka_unit_test(test_file_size_limit),
		cmocka_unit_test(test_study_folder_damaged),
	};
	return cmocka_run_group_tests_name("runs safety", tests, start, program_teardown);
}
