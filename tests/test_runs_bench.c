#include "tests/program.h"
#include "tests/support.h"

#include "data/batch.h"
#include "model/base/blas.h"
#include "model/base/stb.h"
#include "model/base/threads.h"
#include "runs/bench/bench.h"
#include "runs/bench/limit.h"
#include "runs/bench/memory.h"
#include "runs/bench/random_tokens.h"
#include "runs/config.h"
#include "runs/progress.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How the bench measures; never how fast. */

#define TINY "--layers=1 --width=16 --heads=2 --hidden=24 --train-length=16 --batch=4 "
#define FEW "--repetitions=2 --multiples=1,4 --eval-tokens=64 "

static int threads;

/* ---- What is counted ---- */

static struct model_options sizes(void)
{
	struct config c;
	const struct scope scope = { .lists = LIST_MODEL };
	config_init(&c, &scope, NULL);
	c.model.layers = 2;
	c.model.width = 8;
	c.model.heads = 2;
	c.model.hidden = 12;
	c.model.train_length = 16;
	return c.model;
}

static void test_flop(void **state)
{
	struct model_options o = sizes();
	(void)state;
	/* N = 2 (4 8 8 + 3 8 12) + 8 10 = 1168; 48 tokens; 12 layers B H T^2 D = 12 2 3 2 256 4 */
	assert_close(limit_flop(&o, 10, 3), 6 * 1168 * 48 + 147456, 1e-15);
	assert_close(forward_flop(&o, 10, 3, 16), 161280, 1e-15);
	assert_close(forward_flop(&o, 10, 1, 32), 2 * 1168 * 32 + 4 * 2 * 2 * 1024 * 4, 1e-15);
	o.hidden = 0;
	assert_close(limit_flop(&o, 10, 3), 6 * 592 * 48 + 147456, 1e-15);
	assert_close(attention_flop(64, 32), 4 * 32 * 64 * 64, 1e-15);
	assert_close(attention_flop(65, 32), 3 * 4 * 32 * 64 * 64, 1e-15);
	assert_close(attention_flop(4096, 32), 2080.0 * 4 * 32 * 64 * 64, 1e-15);
}

static void test_timing(void **state)
{
	const double a[] = { 5, 1, 2, 4, 3 }, b[] = { 1, 1, 1, 2, 1.5 }, x[] = { 1, 2, 4 }, y[] = { 5, 7, 11 };
	double at, slope;
	(void)state;
	struct timing t = timing_of(a, 5);
	assert_int_equal(t.count, 5);
	assert_close(t.best, 1, 0);
	assert_close(t.median, 3, 0);
	assert_close(t.spread, 2.0 / 3, 1e-15); /* quartiles 2 and 4 */
	assert_close(timing_of(a, 2).median, 3, 0);
	assert_int_equal(timing_of(a, 0).count, 0);
	struct ratio r = ratio_of(a, b, 5); /* 5 1 2 2 2 */
	assert_close(r.paired, 2, 0);
	assert_close(r.best, 1, 0);
	line_fit(x, y, 3, &at, &slope);
	assert_close(at, 3, 1e-14);
	assert_close(slope, 2, 1e-14);
	line_fit(x, y, 1, &at, &slope);
	assert_true(isnan(at) && isnan(slope));
}

static void test_memory(void **state)
{
	(void)state;
	size_t size = 64 << 20;
	int64_t before = resident_now();
	char *block = TAKE(char, size);
	memset(block, 1, size);
	int64_t held = resident_now();
	if (before >= 0)
		assert_true(held - before > 60 << 20);
	assert_true(resident_peak() > held - (1 << 20)); /* the system counts in lots */
	free(block);
	resident_trim();
}

/* ---- Random tokens ---- */

static struct sequence sequence_of(struct batch *b, const struct method *task, uint64_t index, int length)
{
	struct batch_source source = { .task = task, .train_length = length, .length = length, .seed = 3,
				       .stream = STREAM_TRAIN };
	assert_ok(batch_open(&source, 1, b));
	batch_make(b, index, 1);
	return batch_sequence(b, 0);
}

static void test_random_tokens(void **state)
{
	enum { V = 10, T = 20000 };
	struct method task = random_tokens(V);
	struct batch a, b, c;
	struct sequence s = sequence_of(&a, &task, 7, T), same = sequence_of(&b, &task, 7, T);
	struct sequence other = sequence_of(&c, &task, 8, T);
	int count[V] = { 0 }, agree = 0;
	(void)state;
	assert_int_equal(task_of(&task)->vocabulary(&task), V);
	for (int t = 0; t < T; t++) {
		assert_in_range(s.token[t], 0, V - 1);
		assert_in_range(s.target[t], 0, V - 1);
		if (t + 1 < T)
			assert_int_equal(s.target[t], s.token[t + 1]);
		assert_close(s.position[t], t, 0);
		count[s.token[t]]++;
		agree += s.token[t] == other.token[t];
	}
	assert_memory_equal(s.token, same.token, T * sizeof *s.token);
	double chi = 0, expected = (double)T / V;
	for (int v = 0; v < V; v++)
		chi += (count[v] - expected) * (count[v] - expected) / expected;
	assert_below(chi, 33.7); /* 9 degrees of freedom: 1 in 10,000 */
	assert_true(abs(agree - T / V) < 300);
	for (int i = 0; task_at(i); i++)
		assert_ptr_not_equal(task_at(i), task.entry);
	batch_close(&a);
	batch_close(&b);
	batch_close(&c);
}

/* ---- The limit ---- */

/* Every product once, in shares of unequal size, and with more threads than heads. */
static void test_limit(void **state)
{
	static const int teams[] = { 1, 2, 3, 7 };
	struct model_options o = sizes();
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct limit *l;
		threads_start(teams[i]);
		assert_ok(limit_open(&o, 10, 2, &l));
		assert_close(limit_run(l), limit_flop(&o, 10, 2), 1e-15);
		threads_start(1);
		assert_close(limit_run(l), limit_flop(&o, 10, 2), 1e-15);
		limit_close(l);
	}
	threads_start(threads);
	limit_close(NULL);
}

/* ---- The whole ---- */

static struct bench_request request(struct config *c, const char *encoding)
{
	static const int length[] = { 16, 64 };
	static const double multiple[] = { 1, 4 };
	const struct scope scope = { .lists = LIST_TRAINING };
	config_init(c, &scope, NULL);
	c->model = sizes();
	assert_ok(method_parse("encoding", position_at, encoding, &c->model.encoding));
	c->train.batch = 3;
	c->data.task = random_tokens(10);
	return (struct bench_request){ .model = c->model, .data = c->data, .train = c->train,
				       .scaling = method_default(scaling_at(0)), .length = length, .multiple = multiple,
				       .lengths = 2, .eval_tokens = 128, .repetitions = 2, .encodings = true,
				       .attention = true, .attention_length = 100, .attention_head_dim = 8,
				       .start = clock_seconds() };
}

static void positive(const struct timing *t, int count)
{
	assert_int_equal(t->count, count);
	assert_true(t->best > 0 && t->best <= t->median && t->spread >= 0 && isfinite(t->median));
}

static void test_training(void **state)
{
	struct config c;
	struct bench_request q = request(&c, "rope");
	struct bench_training t = { 0 };
	double sum = 0;
	(void)state;
	assert_ok(bench_check(&q));
	double begin = clock_seconds();
	assert_ok(bench_training(&q, &t));
	double elapsed = clock_seconds() - begin;
	positive(&t.step, 2);
	positive(&t.limit, 2);
	positive(&t.forward, 2);
	assert_true(t.over_limit.paired > 0);
	assert_close(t.over_limit.best, t.step.best / t.limit.best, 1e-12);
	if (threads_openmp()) {
		positive(&t.one_thread, 2);
		assert_true(t.speedup.paired > 0);
		assert_close(t.speedup.best, t.one_thread.best / t.step.best, 1e-12);
	}
	for (int p = 0; p < PHASES; p++) {
		assert_true(t.phase[p] >= 0);
		sum += t.phase[p];
	}
	/* Every thread is in some phase, and in one alone. */
	assert_true(sum <= t.phased_step * 1.0001 && sum > 0.5 * t.phased_step);
	assert_true(t.phase[PHASE_LINEAR] > 0 && t.phase[PHASE_ATTENTION_BACK] > 0 && t.phase[PHASE_OPTIMISER] > 0);
	assert_true(t.start > 0 && t.start < t.first_step && t.first_step < elapsed + 1);
	assert_true(t.step.median < elapsed && t.memory > 0);
	assert_int_equal(threads_count(), threads);
}

static void test_one_thread(void **state)
{
	struct config c;
	struct bench_request q = request(&c, "nope");
	struct bench_training t = { 0 };
	(void)state;
	threads_start(1);
	assert_ok(bench_training(&q, &t));
	threads_start(threads);
	positive(&t.step, 2);
	positive(&t.limit, 2);
	assert_int_equal(t.one_thread.count, 0);
}

static void test_evaluation(void **state)
{
	struct config c;
	struct bench_request q = request(&c, "rope");
	struct bench_evaluation e = { 0 };
	(void)state;
	assert_ok(bench_evaluation(&q, &e));
	assert_int_equal(arrlen(e.length), 2);
	for (int i = 0; i < 2; i++) {
		positive(&e.length[i].token, 2);
		assert_int_equal(e.length[i].sequences * e.length[i].length, 128);
		assert_int_equal(e.length[i].refused.code, ERR_NONE);
	}
	double slope = (e.length[1].token.median - e.length[0].token.median) / (64 - 16);
	assert_close(1e9 * e.b, 1e9 * slope, 1e-9);
	assert_close(1e9 * (e.a + 16 * e.b), 1e9 * e.length[0].token.median, 1e-9);
	arrfree(e.length);

	q = request(&c, "learned"); /* no longer than it was trained */
	e = (struct bench_evaluation){ 0 };
	assert_ok(bench_evaluation(&q, &e));
	positive(&e.length[0].token, 2);
	assert_int_equal(e.length[1].refused.code, ERR_USAGE);
	assert_int_equal(e.length[1].token.count, 0);
	assert_true(isnan(e.b));
	arrfree(e.length);
}

/* Does the encoding refuse a head_dim of 3, as one that turns pairs must? */
static bool refuses(const char *name)
{
	struct model_options o = sizes();
	struct layout layout;
	o.width = 6;
	assert_ok(method_parse("encoding", position_at, name, &o.encoding));
	struct err e = layout_position(&o, &layout);
	layout_free(&layout);
	return e.code;
}

static void test_encodings(void **state)
{
	struct config c;
	struct bench_request q = request(&c, "rope");
	struct bench_encoding *e = NULL;
	int count = 0;
	(void)state;
	q.model.width = 6; /* head_dim 3 */
	assert_true(refuses("rope"));
	assert_ok(bench_encodings(&q, &e));
	for (; position_at(count); count++) {
		assert_string_equal(e[count].name, position_at(count)->name);
		if (refuses(e[count].name)) {
			assert_int_equal(e[count].refused.code, ERR_USAGE);
			assert_int_equal(e[count].step.count, 0);
			continue;
		}
		positive(&e[count].step, 2);
		assert_close(e[count].over_first.best, e[count].step.best / e[0].step.best, 1e-12);
	}
	assert_int_equal(arrlen(e), count);
	assert_close(e[0].over_first.paired, 1, 0);
	arrfree(e);
}

static void test_attention(void **state)
{
	struct config c;
	struct bench_request q = request(&c, "rope");
	struct bench_attention a;
	bool biased = false;
	(void)state;
	assert_ok(bench_attention(&q, &a));
	assert_close(a.flop, attention_flop(100, 8), 0);
	positive(&a.product, 2);
	assert_string_equal(a.head[0].name, position_at(0)->name);
	assert_close(a.head[0].over_first.paired, 1, 0);
	for (int i = 0; i < arrlen(a.head); i++) {
		positive(&a.head[i].forward, 2);
		biased |= !strcmp(a.head[i].name, "alibi");
	}
	assert_true(biased);
	assert_int_equal(threads_count(), threads);
	arrfree(a.head);

	q.attention_head_dim = 3;
	assert_ok(bench_attention(&q, &a));
	for (int i = 0; i < arrlen(a.head); i++) {
		bool refused = refuses(a.head[i].name);
		assert_int_equal(a.head[i].refused.code, refused ? ERR_USAGE : ERR_NONE);
		assert_int_equal(a.head[i].forward.count, refused ? 0 : 2);
	}
	arrfree(a.head);
}

/* ---- The command ---- */

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
		"evaluation.lengths.1.gflops_median", "encodings.1.over_first", "encodings.1.step.best_ms",
		"attention.length", "attention.head_dim", "attention.flop", "attention.product.gflops_best",
		"attention.heads.1.forward.gflops_best", "attention.heads.1.over_first", NULL,
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
						 "sleep 0.1; kill $(cat measures) && echo still there\n");
	assert_string_equal(r.out, "1\n143\n0\n");
	program_run_free(&r);
}

static int start(void **state)
{
	(void)state;
	program_start();
	assert_ok(blas_start(2));
	threads = threads_count(); /* 1 without OpenMP */
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flop),
		cmocka_unit_test(test_timing),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_random_tokens),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_training),
		cmocka_unit_test(test_one_thread),
		cmocka_unit_test(test_evaluation),
		cmocka_unit_test(test_encodings),
		cmocka_unit_test(test_attention),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_peak_is_its_own),
		cmocka_unit_test(test_output_is_checked),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_script_is_ended),
	};
	return cmocka_run_group_tests_name("runs bench", tests, start, program_teardown);
}
