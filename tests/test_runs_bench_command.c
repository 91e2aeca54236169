#include "tests/program.h"
#include "tests/support.h"

#include "model/base/threads.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The command bench and the script of `make bench`, from outside. */

#define TINY "--layers=1 --width=16 --heads=2 --hidden=24 --train-length=16 --batch=4 "
#define FEW "--repetitions=2 --multiples=1,4 --eval-tokens=64 "

/* "a.b" is a number. */
static void number_at(json_t *root, const char *path)
{
	char part[64];
	json_t *at = root;
	for (const char *s = path; *s; s += *s == '.') {
		int length = (int)strcspn(s, ".");
		snprintf(part, sizeof part, "%.*s", length, s);
		at = json_is_array(at) ? json_array_get(at, (size_t)atoi(part)) : json_object_get(at, part);
		s += length;
	}
	if (!json_is_number(at))
		fail_msg("%s is no number", path);
	assert_true(isfinite(json_number_value(at)) && json_number_value(at) >= 0);
}

static void test_json(void **state)
{
	static const char *const numbers[] = {
		"model.layers", "model.batch", "model.vocabulary", "flop", "step.best_ms", "step.median_ms",
		"step.spread", "step.repetitions", "step.gflops_best", "step.gflops_median",
		"step.tokens_per_second_best", "step.tokens_per_second_median", "limit.best_ms", "limit.gflops_best",
		"forward.best_ms", "step_over_limit", "step_over_limit_best", "phases_ms.linear",
		"phases_ms.linear_back",
		"phases_ms.linear_weights",
		"phases_ms.attention", "phases_ms.attention_back", "phases_ms.elementwise", "phases_ms.head",
		"phases_ms.optimiser", "phases_ms.waiting", "phased_step_ms", "start_ms", "first_step_ms",
		"training_resident_bytes", "peak_resident_bytes", "evaluation.tokens", "evaluation.lengths.1.multiple",
		"evaluation.lengths.1.length", "evaluation.lengths.1.sequences",
		"evaluation.lengths.1.ns_per_token_best", "evaluation.lengths.1.ns_per_token_median",
		"evaluation.lengths.1.gflops_median", "encodings.1.over_own", "encodings.1.step.best_ms",
		"attention.length", "attention.head_dim", "attention.flop", "attention.product.gflops_best",
		"attention.heads.1.forward.gflops_best", "attention.heads.1.over_own", NULL,
	};
	static const char *const threaded[] = { "one_thread.best_ms", "speedup_threads", "speedup_threads_best", NULL };
	char *file;
	(void)state;
	struct program_run r = program_run("bench " TINY FEW "--vocab=12 --threads=2 --encodings=on --attention=on "
					   "--attention-length=70 --attention-head-dim=8 --format=json "
					   "--output=b.json");
	if (r.code)
		fail_msg("exit %d: %s", r.code, r.err);
	json_t *o = json_loads(r.out, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(o);
	for (int i = 0; numbers[i]; i++)
		number_at(o, numbers[i]);
	for (int i = 0; threaded[i] && threads_openmp(); i++)
		number_at(o, threaded[i]);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(o, "model"), "vocabulary")), 12);
	json_t *blas = json_object_get(json_object_get(o, "version"), "blas");
	assert_true(json_is_string(json_object_get(blas, "core")) && json_is_string(json_object_get(blas, "flavour")));
	assert_true(json_is_string(json_object_get(o, "flop_formula")));
	assert_non_null(json_object_get(json_object_get(o, "environment"), "OPENBLAS_CORETYPE"));
	assert_true(json_object_get(json_object_get(o, "evaluation"), "fit_ns_per_token_of_length"));
	file = program_file("b.json", NULL);
	assert_string_equal(file, r.out);
	json_decref(o);
	free(file);
	program_run_free(&r);
}

/* Of this program alone: the system's own maximum is handed on to it from the program that starts it. */
static void test_peak_is_its_own(void **state)
{
	size_t size = 400 << 20;
	char *block = TAKE(char, size);
	(void)state;
	memset(block, 1, size);
	struct program_run r = program_run("bench " TINY FEW "--threads=1 --format=json");
	free(block);
	json_t *o = json_loads(r.out, 0, NULL);
	assert_non_null(o);
	assert_below(json_number_value(json_object_get(o, "peak_resident_bytes")), (double)(300 << 20));
	assert_below(json_number_value(json_object_get(o, "training_resident_bytes")), (double)(300 << 20));
	json_decref(o);
	program_run_free(&r);
}

/* Where the object cannot be written, nothing is measured. */
static void test_output_is_checked(void **state)
{
	(void)state;
	program_refuses("bench " TINY FEW "--output=nowhere/b.json", "nowhere/b.json: cannot be written", NULL);
	program_refuses("bench " TINY FEW "--output=.", "it is a folder", NULL);
	program_refuses("bench " TINY FEW "--output=/dev/full", "special file", NULL);
}

static void test_text(void **state)
{
	static const char *const parts[] = { "training step", "the limit: its products alone", "step_over_limit",
					     "waiting", "4x", "time a token =", "6 N B T", "random(", NULL };
	(void)state;
	struct program_run r = program_run("bench " TINY FEW "--threads=2");
	assert_int_equal(r.code, 0);
	for (int i = 0; parts[i]; i++)
		if (!strstr(r.out, parts[i]))
			fail_msg("'%s' is not in:\n%s", parts[i], r.out);
	assert_null(strstr(r.out, "Attention forward"));
	assert_true(!strstr(r.out, "speedup_threads") == !threads_openmp());
	assert_non_null(strstr(r.err, "threads "));
	program_run_free(&r);
	r = program_run("bench " TINY FEW "--task=recall --train-length=32 --threads=1 --seconds=0.001");
	assert_int_equal(r.code, 0);
	assert_non_null(strstr(r.out, "recall"));
	assert_null(strstr(r.out, "speedup_threads"));
	program_run_free(&r);
}

static void test_wrong(void **state)
{
	(void)state;
	program_refuses("bench --steps=5", "--steps", NULL);
	program_refuses("bench --lr=5", "--lr", NULL);
	program_refuses("bench --out=x", "--out", NULL);
	program_refuses("bench --vocab=0", "vocab", "1");
	program_refuses("bench --task=recall --vocab=50", "--vocab: has no effect", "--task");
	program_refuses("bench --attention-length=64", "--attention-length: has no effect", "--attention=on");
	program_refuses("bench --attention-head-dim=64", "--attention-head-dim: has no effect", "--attention=on");
	program_refuses("bench --multiples=1,x", "'x' is not a number", NULL);
	program_refuses("bench --multiples=1.001", "not a whole length", NULL);
	program_refuses("bench --repetitions=0", "repetitions", NULL);
	program_refuses("bench --format=xml", "xml", NULL);
	program_refuses("bench --heads=3", "heads", NULL);
	program_refuses("bench --factor=2", "factor", NULL);
	program_refuses("bench --batch=1000000 --train-length=4096", "too large", "smaller batch");
	program_refuses("bench word", "word", NULL);
	program_refuses("bench --scaling=ntk --encoding=alibi", "ntk", "alibi");
}

/* Ended in the middle, tests/bench/run ends what it has started and leaves nothing. */
static void test_script_is_ended(void **state)
{
	char root[PATH_MAX];
	(void)state;
	assert_non_null(getcwd(root, sizeof root));
	assert_int_equal(setenv("ROOT", root, 1), 0);
	struct program_run r = program_run_shell("mkdir -p tests/bench held bin; PATH=$PWD/bin:$PATH\n"
						 "printf '#!/bin/sh\\nexit 1\\n' >bin/python3\n"
						 "printf '#!/bin/sh\\necho $$ >measures\\nexec sleep 20\\n' >bin/fake\n"
						 "chmod +x bin/*\n"
						 "ROPEWALK=fake TMPDIR=$PWD/held sh \"$ROOT/tests/bench/run\" >log 2>&1 &\n"
						 "for i in $(seq 250); do [ ! -s measures ] || break; sleep 0.02; done\n"
						 "ls held | wc -l\n"
						 "kill $!; wait $!; echo $?; ls held | wc -l\n"
						 "for i in $(seq 250); do kill -0 $(cat measures) || break; sleep 0.02; done\n"
						 "kill $(cat measures) && echo still there\n");
	assert_string_equal(r.out, "1\n143\n0\n");
	program_run_free(&r);
}

/* The environment of a run, as it says itself: waiting is bounded unless it was told how to wait. */
static void check_spin(const char *environment, const char *spin)
{
	char line[400];
	snprintf(line, sizeof line,
		 "env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT %s \"$ROPEWALK_PROGRAM\" bench --layers=1 --width=8 --hidden=0 --batch=1 "
		 "--train-length=4 --vocab=3 --repetitions=1 --multiples=1 --format=json", environment);
	struct program_run r = program_run_shell(line);
	assert_int_equal(r.code, 0);
	json_t *o = json_loads(r.out, 0, NULL), *openmp = json_object_get(json_object_get(o, "version"), "openmp");
	json_t *said = json_object_get(json_object_get(o, "environment"), "GOMP_SPINCOUNT");
	bool restarts = json_is_true(openmp) && !access("/proc/self/exe", X_OK);
	if (spin && (restarts || *environment))
		assert_string_equal(json_string_value(said), spin);
	else
		assert_true(json_is_null(said));
	json_decref(o);
	program_run_free(&r);
}

static void test_waiting_is_bounded(void **state)
{
	(void)state;
	check_spin("", "2000");
	check_spin("GOMP_SPINCOUNT=77", "77");
	check_spin("OMP_WAIT_POLICY=passive", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waiting_is_bounded),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_peak_is_its_own),
		cmocka_unit_test(test_output_is_checked),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_script_is_ended),
	};
	return cmocka_run_group_tests_name("runs bench command", tests, program_setup, program_teardown);
}
