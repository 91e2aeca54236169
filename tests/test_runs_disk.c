#include "tests/program.h"
#include "tests/support.h"

#include "model/base/io.h"
#include "model/base/safetensors.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Disks that are full, read-only, limited or gone, as the program meets them. */

#define SMALL "--width=16 --heads=2 --hidden=16 --layers=1 --batch=2 --steps=2 "
#define EVAL "--multiples=1 --sequences=2"
#define TABLE "eval-none-afc5064e.csv"
#define FREE "Free some space there, or choose a folder on another disk."
#define TOKENS 2000 /* their logits take more than a small disk has */

static void put_tokens(void)
{
	static int32_t ids[TOKENS];
	struct tensor t[2] = { { .name = "tokens", .dtype = DTYPE_I32, .rank = 2, .shape = { 1, TOKENS }, .data = ids } };
	char *path = program_path("in");
	t[1] = t[0];
	t[1].name = "targets";
	assert_ok(safetensors_write(path, t, 2, NULL, 0));
	free(path);
}

static int start(void **state)
{
	(void)state;
	alarm(120);
	program_start();
	program_works("train " SMALL "--out=one");
	put_tokens();
	return 0;
}

/* A disk that a failed test has left there cannot be removed. */
static int stop(void **state)
{
	struct program_run r = program_run_shell("umount full 2>/dev/null");
	program_run_free(&r);
	return program_teardown(state);
}

static void fails(const char *line, int code, const char *what, const char *advice)
{
	struct program_run r = program_run(line);
	program_failed(line, &r, code, what, advice);
}

/* ---- Limits on the size of files ---- */

static void files_may_not_grow(void **state)
{
	struct rlimit before, small;
	(void)state;
	program_put("out", "old", 3);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 16384;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	struct program_run r = program_run("forward one/model.safetensors --tokens=in --output=out");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	program_failed("forward", &r, 1, "out: cannot be written: File too large", "limit");
	char *out = program_file("out", NULL);
	assert_string_equal(out, "old");
	free(out);
	shell("rm out; ! ls -A | grep tmp");
}

/* ---- A full disk ---- */

static void a_disk_of_96_kilobytes(void **state)
{
	(void)state;
	struct program_run r = program_run_shell("mkdir full && mount -t tmpfs -o size=96k none full");
	bool mounted = !r.code;
	program_run_free(&r);
	if (!mounted) {
		print_message("# note: this machine does not let us mount a small disk\n");
		return;
	}
	fails("train " SMALL "--out=full/run", 1, "full/run: training writes up to", FREE);
	fails("forward one/model.safetensors --tokens=in --output=full/out", 1,
	      "full/out: cannot be written: No space left on device", FREE);
	shell("[ -z \"$(ls -A full)\" ]");
	shell("mkdir full/one && cd one && cp config command record.json train.jsonl model.safetensors ../full/one && "
	      "cd .. && { cat /dev/zero >full/rest 2>/dev/null; [ -s full/rest ]; } && "
	      "cp -r full/one kept");
	fails("eval full/one " EVAL, 1, "No space left on device", FREE);
	shell("diff -r full/one kept && rm full/rest");
	program_works("eval full/one " EVAL);
	shell("[ -s full/one/" TABLE " ] && umount full");
}

/* What a run has written already is not asked for once more when it goes on. */
static void a_disk_that_the_run_has_filled(void **state)
{
	(void)state;
	struct program_run r = program_run_shell("mkdir -p full && mount -t tmpfs -o size=400k none full");
	bool mounted = !r.code;
	program_run_free(&r);
	if (!mounted) {
		print_message("# note: this machine does not let us mount a small disk\n");
		return;
	}
	program_works("train " SMALL "--out=full/one");
	shell("rm full/one/model.safetensors; sed -i 's/finished/running/' full/one/record.json\n"
	      "free=$(df -k --output=avail full | tail -n 1); head -c $((free * 1024 - 290000)) /dev/zero >full/other");
	program_works("train --resume --out=full/one");
	shell("cmp full/one/model.safetensors one/model.safetensors && umount full");
}

/* ---- Devices ---- */

static void stdout_is_full(void **state)
{
	static const char *const line[] = { "list encodings", "inspect --encoding=sinusoidal --length=512 --format=json",
					    "--help", "eval one " EVAL };
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct program_run r = program_run_to(line[i], "/dev/full");
		program_failed(line[i], &r, 1, "ropewalk: stdout: cannot be written: No space left on device",
			       "incomplete");
	}
	fails("forward one/model.safetensors --tokens=in --output=/dev/full", 2,
	      "/dev/full: cannot be written: it is a special file", "ordinary file");
}

/* ---- Permissions ---- */

static void a_folder_that_is_read_only(void **state)
{
	static const char *const line[] = { "train " SMALL "--out=ro/new", "eval ro/one " EVAL,
					    "forward ro/one/model.safetensors --tokens=in --output=ro/out" };
	(void)state;
	shell("mkdir ro && cp -r one ro/one && chmod -R a+rX ro in && chmod a-w ro ro/one");
	for (int i = 0; i < 3; i++) {
		struct program_run r = program_run_as_nobody(line[i]);
		program_failed(line[i], &r, 1, "ropewalk: ro/", "Permission denied");
	}
	shell("diff -r one ro/one && [ \"$(ls -A ro)\" = one ]");
}

/* ---- A folder that goes while the program is at work ---- */

static void a_folder_that_vanishes(void **state)
{
	(void)state;
	struct program_run r = program_run_shell(
		"ropewalk train " SMALL "--steps=1000000 --save-every=1 --out=gone >out & pid=$!\n"
		"until [ -e gone/train.jsonl ]; do sleep 0.01; done\n"
		"mv gone away; wait $pid");
	program_failed("train", &r, 1, "ropewalk: gone", "tart again");
	assert_false(program_has("gone"));
	char *record = program_file("away/record.json", NULL);
	assert_non_null(strstr(record, "\"status\": \"running\""));
	free(record);
}

static void a_study_that_vanishes(void **state)
{
	(void)state;
	program_put("one.study", "multiples = 1\nsequences = 2\n", 28);
	struct program_run r = program_run_shell(
		"ropewalk study one.study " SMALL "--steps=1000000 --out=studied >/dev/null & pid=$!\n"
		"until ls studied/*/train.jsonl >/dev/null 2>&1; do sleep 0.01; done\n"
		"mv studied moved; wait $pid");
	if (r.code != 1 || !strstr(r.err, "\nropewalk: studied: has gone: it was moved or removed"))
		fail_msg("exit %d: %s", r.code, r.err);
	program_run_free(&r);
	assert_false(program_has("studied"));
}

/* One of a study's models lacks a file: what to do is said, not that a path was mistyped. */
static void a_config_that_is_gone(void **state)
{
	(void)state;
	program_put("one.study", "multiples = 1\nsequences = 2\n", 28);
	program_works("study one.study " SMALL "--out=lacking");
	shell("rm lacking/*/config");
	fails("study one.study " SMALL "--out=lacking", 2, "config: cannot be read", "or move the folder away");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_may_not_grow),
		cmocka_unit_test(a_disk_of_96_kilobytes),
		cmocka_unit_test(a_disk_that_the_run_has_filled),
		cmocka_unit_test(stdout_is_full),
		cmocka_unit_test(a_folder_that_is_read_only),
		cmocka_unit_test(a_folder_that_vanishes),
		cmocka_unit_test(a_study_that_vanishes),
		cmocka_unit_test(a_config_that_is_gone),
	};
	return cmocka_run_group_tests_name("runs disk", tests, start, stop);
}
