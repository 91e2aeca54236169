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

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How the bench measures; never how fast. */

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
static bool refuses(const char *name, int width, int heads)
{
	struct model_options o = sizes();
	struct layout layout;
	o.width = width;
	o.heads = heads;
	assert_ok(method_parse("encoding", position_at, name, &o.encoding));
	struct err e = layout_position(&o, &layout);
	layout_free(&layout);
	return e.code;
}

static void test_encodings(void **state)
{
	struct config c;
	struct bench_request q = request(&c, "alibi");
	struct bench_encoding *e = NULL;
	int count = 0, own = -1;
	(void)state;
	q.model.width = 6; /* head_dim 3 */
	assert_true(refuses("rope", 6, 2));
	assert_ok(bench_encodings(&q, &e));
	for (; position_at(count); count++) {
		assert_string_equal(e[count].name, position_at(count)->name);
		own = strcmp(e[count].name, "alibi") ? own : count;
		if (refuses(e[count].name, 6, 2)) {
			assert_int_equal(e[count].refused.code, ERR_USAGE);
			assert_int_equal(e[count].step.count, 0);
			continue;
		}
		positive(&e[count].step, 2);
	}
	assert_int_equal(arrlen(e), count);
	for (int i = 0; i < count; i++)
		if (e[i].step.count)
			assert_close(e[i].over_own.best, e[i].step.best / e[own].step.best, 1e-12);
	assert_close(e[own].over_own.paired, 1, 0);
	arrfree(e);
}

static void test_attention(void **state)
{
	struct config c;
	struct bench_request q = request(&c, "rope");
	struct bench_attention a;
	int biased = 0, scaled = 0;
	(void)state;
	assert_ok(bench_attention(&q, &a));
	assert_close(a.flop, attention_flop(100, 8), 0);
	positive(&a.product, 2);
	assert_string_equal(a.head[0].name, position_at(0)->name);
	for (int i = 0; i < arrlen(a.head); i++) {
		positive(&a.head[i].forward, 2);
		biased += !strcmp(a.head[i].name, "alibi");
		scaled += !strncmp(a.head[i].name, "rope, ", 6);
		if (!strcmp(a.head[i].name, "rope"))
			assert_close(a.head[i].over_own.paired, 1, 0);
	}
	assert_int_equal(biased, 1);
	assert_null(scaling_at(scaled + 1));
	assert_int_equal(threads_count(), threads);
	arrfree(a.head);

	q.attention_head_dim = 3;
	assert_ok(bench_attention(&q, &a));
	for (int i = 0; i < arrlen(a.head); i++) {
		bool refused = refuses(strstr(a.head[i].name, "rope") ? "rope" : a.head[i].name, 3, 1);
		assert_int_equal(a.head[i].refused.code, refused ? ERR_USAGE : ERR_NONE);
		assert_int_equal(a.head[i].forward.count, refused ? 0 : 2);
	}
	arrfree(a.head);
}

static int start(void **state)
{
	(void)state;
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
	};
	return cmocka_run_group_tests_name("runs bench", tests, start, NULL);
}
