#include "tests/program.h"
#include "tests/support.h"

#include "model/base/io.h"
#include "model/base/lease.h"
#include "model/base/process.h"
#include "runs/stop.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Signals to programs at work, and folders that another process has. tests/kills does it at random moments. */

#define MODEL "--layers=1 --width=16 --hidden=16 --batch=2 --train-length=20 --warmup=5 --threads=1 "
#define LONG "train --resume " MODEL "--steps=1000 --save-every=100 "
#define ENDLESS "train --resume " MODEL "--steps=10000000 --save-every=100 "

/* On a busy machine a program may be through before the signal comes; then once more. */
#define ATTEMPTS 10

static int start(void **state)
{
	(void)state;
	program_start();
	program_works(LONG "--out=straight");
	return 0;
}

/* Begins a line anew, in the absence of `folder`, and sends a signal when a file is there. */
static struct program_run stopped(const char *line, const char *folder, const char *file, int signal_number)
{
	char clear[100];
	snprintf(clear, sizeof clear, "rm -rf %s", folder);
	for (int attempt = 0;; attempt++) {
		shell(clear);
		pid_t pid = program_begin(line);
		program_await(file);
		assert_int_equal(kill(pid, signal_number), 0);
		struct program_run r = program_end(pid);
		if (r.code || attempt == ATTEMPTS)
			return r;
		program_run_free(&r);
	}
}

/* The command line that an error's hint ends with, run as it stands. */
static void run_hint(const struct program_run *r, const char *before)
{
	const char *line = strstr(r->err, before);
	if (!line)
		fail_msg("no '%s' in: %s", before, r->err);
	shell(line + strlen(before));
}

static void test_training(void **state)
{
	(void)state;
	static const struct {
		int signal, code;
		const char *name;
	} cases[] = { { SIGTERM, 143, "SIGTERM" }, { SIGINT, 130, "SIGINT" } };
	for (int i = 0; i < 2; i++) {
		struct program_run r = stopped(LONG "--out=run", "run", "run/checkpoint-*", cases[i].signal);
		char error[80];
		snprintf(error, sizeof error, "ropewalk: run: stopped by %s, step ", cases[i].name);
		if (r.code != cases[i].code || !strstr(r.err, error) || !strstr(r.err, " of 1000 is saved\n"))
			fail_msg("exit %d, not %d with '%s': %s", r.code, cases[i].code, error, r.err);
		assert_string_equal(r.out, "");
		shell("[ ! -e run/lock ] && [ ! -e run/model.safetensors ] && grep -q '\"stopped\"' run/record.json\n"
		      "last=$(ls run | grep '^checkpoint' | tail -n 1 | sed 's/[^0-9]*0*//; s/[.].*//')\n"
		      "[ \"$last\" = $(wc -l <run/train.jsonl) ]");
		run_hint(&r, "  It goes on with: ");
		program_run_free(&r);
		shell("cmp run/model.safetensors straight/model.safetensors && cmp run/train.jsonl straight/train.jsonl");
	}
}

/* Its one step takes long; a first signal lets it finish and end well. */
#define SLOW "train --resume --steps=1 --layers=2 --width=64 --train-length=128 --threads=1 --out=slow "

/* Two signals, the second so many seconds later at least; how many there were in truth. */
static double signal_twice(const char *line, double seconds, struct program_run *r)
{
	struct timespec first, second;
	pid_t pid = program_begin(line);
	program_await("slow/config");
	clock_gettime(CLOCK_MONOTONIC, &first);
	kill(pid, SIGTERM);
	nanosleep(&(struct timespec){ .tv_nsec = (long)(1e9 * seconds) }, NULL);
	kill(pid, SIGTERM);
	clock_gettime(CLOCK_MONOTONIC, &second);
	*r = program_end(pid);
	return (double)(second.tv_sec - first.tv_sec) + 1e-9 * (double)(second.tv_nsec - first.tv_nsec);
}

static void test_second_signal(void **state)
{
	(void)state;
	struct program_run r;
	signal_twice(SLOW "--batch=384", STOP_ECHO + 0.02, &r);
	if (r.code != 143 || strstr(r.err, "ropewalk: "))
		fail_msg("exit %d: %s", r.code, r.err);
	program_run_free(&r);
	assert_false(program_has("slow/model.safetensors"));
	assert_true(program_has("slow/lock"));
	program_works("train --resume --out=slow");
	shell("[ -e slow/model.safetensors ] && [ ! -e slow/lock ]");
}

static void test_signal_told_twice(void **state)
{
	(void)state;
	struct program_run r;
	for (int attempt = 0;; attempt++) {
		shell("rm -rf slow");
		if (signal_twice(SLOW "--batch=64", 0.005, &r) < STOP_ECHO / 2 || attempt == ATTEMPTS)
			break;
		program_run_free(&r);
	}
	if (r.code)
		fail_msg("exit %d: %s", r.code, r.err);
	program_run_free(&r);
	shell("[ -e slow/model.safetensors ] && [ ! -e slow/lock ]");
}

/* ---- Studies ---- */

#define STUDY "study one.study " MODEL "--steps=800 --save-every=100 --out=run"

static void compare_studies(void)
{
	shell("cd run && find . -name 'eval-*' -o -name model.safetensors -o -name train.jsonl | sort >../names\n"
	      "[ $(wc -l <../names) = 12 ] && while read -r f; do cmp $f ../studied/run/$f || exit 1; done <../names\n"
	      "! find . | grep 'lock\\|tmp'");
}

static void test_study(void **state)
{
	(void)state;
	static const char text[] = "seed = 101, 102\nmultiples = 1, 2, 60\nscaling = none, linear\nsequences = 8\n";
	program_put("one.study", text, sizeof text - 1);
	shell("mkdir studied; cp one.study studied; cd studied; ropewalk " STUDY " >text");
	static const struct {
		const char *file;
		int signal, code;
	} cases[] = { { "run/seed-101-*/checkpoint-*", SIGTERM, 143 },
		      { "run/seed-101-*/model.safetensors", SIGINT, 130 } };
	for (int i = 0; i < 2; i++) {
		struct program_run r = stopped(STUDY, "run", cases[i].file, cases[i].signal);
		if (r.code != cases[i].code || *r.out)
			fail_msg("exit %d: %s", r.code, r.err);
		run_hint(&r, "  What is finished is kept. It goes on with: ");
		program_run_free(&r);
		compare_studies();
	}
}

/* ---- Other processes ---- */

static void test_second_process(void **state)
{
	(void)state;
	char host[100] = "", holder[160];
	pid_t pid = program_begin(ENDLESS "--out=endless");
	program_await("endless/checkpoint-*");
	gethostname(host, sizeof host - 1);
	snprintf(holder, sizeof holder, "endless: another process of ropewalk is at work there: %s, process %ld", host,
		 (long)pid);
	const char *line = ENDLESS "--out=endless";
	struct program_run second = program_run(line);
	program_failed(line, &second, 1, holder, "Wait until it has finished");
	second = program_run("train --force " MODEL "--out=endless");
	program_failed("train --force", &second, 1, holder, NULL);
	assert_int_equal(kill(pid, SIGTERM), 0);
	struct program_run first = program_end(pid);
	assert_int_equal(first.code, 143);
	program_run_free(&first);
}

#define PREPARED "run/.ropewalk-0123456789abcdef0123456789abcdef.tmp"

static void put_aged(const char *name, const struct text_builder *b, int age)
{
	struct timespec then = { .tv_sec = time(NULL) - age };
	char *path = program_path(name);
	program_put(name, b->data, b->size);
	assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[2]){ then, then }, 0), 0);
	free(path);
}

/* A run as if the process had just been killed, and a claim on it, which was prepared under another name. */
static void claim(const struct process *p, int age)
{
	struct text_builder b = { 0 };
	shell("rm -rf run; cp -Rp straight run; rm run/model.safetensors\n"
	      "sed 's/finished/running/' straight/record.json >run/record.json");
	process_print(p, &b);
	text_add(&b, "token = 0123456789abcdef0123456789abcdef\n");
	put_aged("run/" LEASE_FILE, &b, age);
	put_aged(PREPARED, &b, age);
	text_builder_free(&b);
}

static void taken_over(void)
{
	program_works(LONG "--out=run");
	shell("cmp run/model.safetensors straight/model.safetensors && ! ls -A run | grep 'lock\\|tmp'");
}

static pid_t dead_process(void)
{
	pid_t pid = fork();
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static void test_dead_holder(void **state)
{
	(void)state;
	struct process p = process_self();
	p.pid = dead_process();
	claim(&p, 0);
	taken_over();
	/* This one lives, but it began at another time than the one that made the claim. */
	p = process_self();
	snprintf(p.started, sizeof p.started, "1");
	claim(&p, 0);
	taken_over();
}

static void test_holder_elsewhere(void **state)
{
	(void)state;
	struct process p = process_self();
	snprintf(p.host, sizeof p.host, "zeus");
	snprintf(p.boot_id, sizeof p.boot_id, "00000000-0000-0000-0000-000000000000");
	p.pid = 4242;
	claim(&p, LEASE_STALE / 2);
	struct program_run r = program_run(LONG "--out=run");
	program_failed("train", &r, 1, "run: another process of ropewalk is at work there: zeus, process 4242", NULL);
	shell("cmp run/record.json straight/record.json | grep -q differ && [ ! -e run/model.safetensors ] &&\n"
	      "grep -q 'host = zeus' run/lock");
	claim(&p, 2 * LEASE_STALE);
	taken_over();
}

static void lose_claim(void)
{
	static const char text[] = "host = zeus\npid = 4242\ntoken = 0123456789abcdef0123456789abcdef\n";
	program_put("run/" LEASE_FILE, text, sizeof text - 1);
}

/* A process that stood still while one elsewhere took its folder over adds nothing to what that one has written. */
static void test_lost_training(void **state)
{
	(void)state;
	size_t size, lines = 0;
	shell("rm -rf run");
	pid_t child = program_begin("train " MODEL "--steps=20000 --out=run");
	program_await("run/train.jsonl");
	lose_claim();
	program_put("run/train.jsonl", "", 0);
	struct program_run r = program_end(child);
	program_failed("train", &r, 1, "run: another process has taken the folder over", NULL);
	char *log = program_file("run/train.jsonl", &size);
	for (size_t i = 0; i < size; i++)
		lines += log[i] == '\n';
	free(log);
	/* What was being written at that moment. */
	assert_true(lines <= 50);
}

static void test_lost_evaluation(void **state)
{
	(void)state;
	shell("rm -rf run; cp -Rp straight run; cp run/record.json before");
	pid_t child = program_begin("eval run --scaling=none --multiples=8 --sequences=8000 --format=csv");
	program_await("run/lock");
	lose_claim();
	struct program_run r = program_end(child);
	program_failed("eval", &r, 1, "run: another process has taken the folder over", NULL);
	shell("cmp run/record.json before && ! ls run/eval-* 2>/dev/null");
}

/* What killed processes leave is gone with the next that works there; a living one's is not. */
static void test_temporaries(void **state)
{
	(void)state;
	char name[3][80];
	struct process p = process_self();
	p.pid = dead_process();
	claim(&p, 0);
	snprintf(name[0], sizeof name[0], "run/.ropewalk-%ld-0.tmp", (long)dead_process());
	snprintf(name[1], sizeof name[1], "run/.ropewalk-ffffffffffffffffffffffffffffffff.tmp");
	snprintf(name[2], sizeof name[2], "run/.ropewalk-%ld-0.tmp", (long)getpid());
	for (int i = 0; i < 3; i++)
		program_put(name[i], "", 0);
	program_works(LONG "--out=run");
	assert_false(program_has(name[0]) || program_has(name[1]));
	assert_true(program_has(name[2]));
	/* Where there is nothing left to do, too. */
	program_put(name[0], "", 0);
	program_works("train --resume --out=run");
	assert_false(program_has(name[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_training),      cmocka_unit_test(test_second_signal),
		cmocka_unit_test(test_signal_told_twice),
		cmocka_unit_test(test_study),         cmocka_unit_test(test_second_process),
		cmocka_unit_test(test_dead_holder),   cmocka_unit_test(test_holder_elsewhere),
		cmocka_unit_test(test_lost_training), cmocka_unit_test(test_lost_evaluation),
		cmocka_unit_test(test_temporaries),
	};
	return cmocka_run_group_tests_name("runs stop", tests, start, program_teardown);
}
