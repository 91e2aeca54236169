#include "tests/program.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Several processes on one study: those that --jobs starts, and those of a launcher. */

#define MODEL "layers = 1\nwidth = 16\nhidden = 16\nbatch = 2\ntrain_length = 20\nwarmup = 5\nmultiples = 1, 2\n" \
	      "scaling = none\nsequences = 4\nreferences = off\n"
#define FOUR MODEL "seed = 1, 2, 3, 4\nsteps = 20\n"
/* More steps than are done before it is stopped. */
#define ENDLESS MODEL "seed = 1, 2\nsteps = 10000000\n"
/* For a while. */
#define LONG MODEL "seed = 1, 2, 3\nsteps = 1500\n"

/* Every line must succeed. no: a command that must not. worked: the models that the processes say they work on. */
#define CHECK "set -e\np=$ROPEWALK_PROGRAM\nno() { ! \"$@\"; }\n" \
	      "worked() { sed -n 's/^\\[.*\\] [0-9]* of [0-9]*\\(, about .* left\\)*: //p' \"$@\" | sort; }\n"

static int start(void **state)
{
	(void)state;
	program_start();
	program_put("four.study", FOUR, strlen(FOUR));
	program_put("endless.study", ENDLESS, strlen(ENDLESS));
	program_put("long.study", LONG, strlen(LONG));
	unsetenv("ROPEWALK_WORKER");
	return 0;
}

static void test_dry_run(void **state)
{
	(void)state;
	shell(CHECK "ropewalk study four.study --out=dry --dry-run --jobs=2 >plan\n"
		    "no [ -e dry ]\n"
		    "grep -q '^study dry: models: 4; 4 to train, 4 to evaluate, 0 finished$' plan\n"
		    "grep -q '^  time: about [0-9]* s on [0-9]* threads*, estimated from a few trial steps$' plan\n"
		    "grep -q '^  disk: ' plan\n"
		    "[ $(grep -c '^  seed-[1-4]-.*: training, 2 evaluations, about [0-9]* s$' plan) = 4 ]\n"
		    "ropewalk study four.study --out=done >/dev/null 2>&1\n"
		    "ls -lR done >before\n"
		    "ropewalk study four.study --out=done --sequences=8 --dry-run >plan\n"
		    "grep -q '; 0 to train, 4 to evaluate, 0 finished$' plan\n"
		    "ropewalk study four.study --out=done --dry-run >plan\n"
		    "grep -q '; 0 to train, 0 to evaluate, 4 finished$' plan\n"
		    "no grep -q time: plan\n"
		    "ls -lR done | cmp - before");
}

static void test_more_than_there_are(void **state)
{
	(void)state;
	shell(CHECK "ropewalk study four.study --out=many --jobs=64 --threads=3 >/dev/null 2>err\n"
		    "grep -q '^--jobs=64: 3 at once: there are no more threads$' err\n"
		    "[ $(worked err | uniq | wc -l) = 4 ]\n"
		    "ropewalk study four.study --out=many --seed=1,2,3,4,5,6 --jobs=9 --threads=9 >/dev/null 2>err\n"
		    "grep -q '^--jobs=9: 2 at once: there are no more models with work$' err\n"
		    "ropewalk study four.study --out=many --jobs=2 --force --seed=1 >/dev/null 2>err\n"
		    "grep -q '^--jobs=2: 1 at once: ' err\n"
		    "ropewalk study four.study --out=many --jobs=2 >/dev/null 2>err\n"
		    "no grep -q jobs err");
	program_refuses("study four.study --out=none --jobs=0", "--jobs", "1");
}

/* Each of them once, whoever does it. */
static void test_force(void **state)
{
	(void)state;
	shell(CHECK "ropewalk study four.study --out=forced >/dev/null 2>&1\n"
		    "cp forced/seed-1-*/record.json first\n"
		    "ropewalk study four.study --out=forced --force --jobs=2 --threads=2 >/dev/null 2>err\n"
		    "[ $(worked err | wc -l) = 4 ]\n"
		    "[ $(worked err | uniq | wc -l) = 4 ]\n"
		    "[ $(cat forced/*/record.json | grep '\"forced\"' | sort -u | wc -l) = 1 ]\n"
		    "no cmp first forced/seed-1-*/record.json\n"
		    "ropewalk study four.study --out=forced --force >/dev/null 2>err\n"
		    "grep -q '^study forced: models: 4; 4 to train, 4 to evaluate' err");
}

/* The tables are printed by one of them; the lines of progress say who speaks; --force is meant once. */
static void test_launched(void **state)
{
	(void)state;
	shell(CHECK "export OMPI_COMM_WORLD_SIZE=3 PMIX_NAMESPACE=7\n"
		    "for i in 0 1 2; do\n"
		    "  OMPI_COMM_WORLD_RANK=$i $p study long.study --out=team --threads=1 --force >out$i 2>err$i &\n"
		    "  until grep -q '1 of 3' err0 2>/dev/null; do sleep 0.02; done\n"
		    "done\n"
		    "wait\n"
		    "head -n 1 out0 | grep -q '^study team$'\n"
		    "no [ -s out1 ]\n"
		    "no [ -s out2 ]\n"
		    "grep -q '^\\[rank 1 of 3\\] done; the process of rank 0 prints the tables$' err1\n"
		    "grep -q '^study team: models: 3; 3 to train' err0\n"
		    "no grep -q '^study' err1\n"
		    "[ $(worked err0 err1 err2 | wc -l) = 3 ]\n"
		    "[ $(worked err0 err1 err2 | uniq | wc -l) = 3 ]\n"
		    "grep -q '^\\[rank 0 of 3\\] . of 3' err0\n"
		    "for i in 0 1; do\n"
		    "  OMPI_COMM_WORLD_RANK=$i ropewalk study long.study --out=team --shard=auto >out$i 2>err$i\n"
		    "done\n"
		    "[ $(cat team/*/record.json | grep '\"forced\": \"7\"' | wc -l) = 3 ]\n"
		    "OMPI_COMM_WORLD_RANK=0 ropewalk study long.study --out=team --force --seed=1,2 >out0 2>err0\n"
		    "grep -q '^study team: models: 2; 2 to train' err0\n"
		    "[ $(worked err0 | wc -l) = 2 ]");
}

/* The lock of a model says which process is at work on it. */
static void test_dead_worker(void **state)
{
	(void)state;
	shell(CHECK "ropewalk study long.study --out=whole --threads=1 >whole.txt 2>&1\n"
		    "$p study long.study --out=dead --jobs=2 --threads=2 --save-every=50 >out 2>err & pid=$!\n"
		    "until ls dead/*/checkpoint-* >/dev/null 2>&1; do sleep 0.02; done\n"
		    "one=$(sed -n 's/^pid = //p' dead/*/lock | head -n 1)\n"
		    "[ $one != $pid ]\n"
		    "kill -KILL $one\n"
		    "wait $pid\n"
		    "grep -q 'process [12] of 2 was ended by signal 9' err\n"
		    "cmp whole/seed-1-*/model.safetensors dead/seed-1-*/model.safetensors\n"
		    "cmp whole/seed-2-*/model.safetensors dead/seed-2-*/model.safetensors\n"
		    "cmp whole/seed-3-*/train.jsonl dead/seed-3-*/train.jsonl");
}

static void test_stop(void **state)
{
	(void)state;
	struct program_run r = program_run_shell(
		"$ROPEWALK_PROGRAM study endless.study --out=stop --jobs=2 --threads=2 & pid=$!\n"
		"until ls stop/seed-1*/train.jsonl && ls stop/seed-2*/train.jsonl; do sleep 0.02; done >/dev/null 2>&1\n"
		"kill -TERM $pid; wait $pid");
	if (r.code != 143 || !strstr(r.err, "\nropewalk: stopped by SIGTERM\n  What is finished is kept. It goes on with: "
					    "ropewalk study endless.study --out=stop --jobs=2 --threads=2\n"))
		fail_msg("exit %d: %s", r.code, r.err);
	program_run_free(&r);
	shell(CHECK "[ $(cat stop/*/record.json | grep -c '\"status\": \"stopped\"') = 2 ]\n"
		    "no ls stop/*/lock 2>/dev/null");
}

#ifdef __linux__
/* Killed, it takes its workers with it, which save. */
static void test_dead_parent(void **state)
{
	(void)state;
	shell(CHECK "$p study endless.study --out=orphan --jobs=2 --threads=2 >/dev/null 2>&1 & pid=$!\n"
		    "until ls orphan/seed-1*/train.jsonl && ls orphan/seed-2*/train.jsonl; do sleep 0.02; done >ls 2>&1\n"
		    "kill -KILL $pid\n"
		    "for i in $(seq 500); do ls orphan/*/lock >ls 2>&1 || break; sleep 0.02; done\n"
		    "[ $(cat orphan/*/record.json | grep -c '\"status\": \"stopped\"') = 2 ]");
}
#endif

/* One that diverges is told of, and the tables stand. */
static void test_failure(void **state)
{
	(void)state;
	struct program_run r = program_run("study four.study --out=bad --jobs=2 --threads=2 --lr=1000 --weight-decay=1000 "
					   "--warmup=0 --steps=60 --seed=1,2");
	if (r.code != 1 || !strstr(r.err, "bad: 2 of 2 models diverged or failed") || !strstr(r.out, "diverged"))
		fail_msg("exit %d: %s", r.code, r.err);
	program_run_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dry_run),	    cmocka_unit_test(test_more_than_there_are),
		cmocka_unit_test(test_force),	    cmocka_unit_test(test_launched),
		cmocka_unit_test(test_dead_worker), cmocka_unit_test(test_stop),
#ifdef __linux__
		cmocka_unit_test(test_dead_parent),
#endif
		cmocka_unit_test(test_failure),
	};
	return cmocka_run_group_tests_name("runs jobs", tests, start, program_teardown);
}
