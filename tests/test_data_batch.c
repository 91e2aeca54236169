#include "data/batch.h"
#include "model/base/threads.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { TRAIN_LENGTH = 32, LENGTH = 48, COUNT = 5 };

static struct batch_source recall_source(const struct method *task)
{
	return (struct batch_source){ task, TRAIN_LENGTH, LENGTH, 7, STREAM_REPORT };
}

/* Row i of a batch is sequence first + i of the stream, for any number of threads. */
static void test_rows(void **state)
{
	(void)state;
	struct method task = method_default(task_at(0));
	struct batch_source source = recall_source(&task);
	int32_t token[LENGTH], target[LENGTH], distance[LENGTH];
	uint8_t group[LENGTH];
	double position[LENGTH];
	struct sequence alone = { token, target, group, distance, position };
	for (int threads = 1; threads < 4; threads++) {
		struct batch b;
		threads_start(threads);
		assert_int_equal(batch_open(&source, COUNT, &b).code, ERR_NONE);
		batch_make(&b, 40, COUNT);
		for (int i = 0; i < COUNT; i++) {
			struct sequence s = batch_sequence(&b, i);
			task_of(&task)->make(&task, TRAIN_LENGTH, 7, STREAM_REPORT, 40 + (uint64_t)i, LENGTH, &alone);
			assert_memory_equal(s.token, token, sizeof token);
			assert_memory_equal(s.target, target, sizeof target);
			assert_memory_equal(s.group, group, sizeof group);
			assert_memory_equal(s.distance, distance, sizeof distance);
			assert_memory_equal(s.position, position, sizeof position);
		}
		batch_close(&b);
	}
	threads_start(1);
}

/* What a smaller lot leaves over from the one before is not scored again. */
static void test_fewer(void **state)
{
	(void)state;
	struct method task = method_default(task_at(0));
	struct batch_source source = recall_source(&task);
	struct batch b;
	assert_int_equal(batch_open(&source, COUNT, &b).code, ERR_NONE);
	batch_make(&b, 0, COUNT);
	batch_make(&b, COUNT, 2);
	int scored[COUNT] = { 0 };
	for (int i = 0; i < COUNT; i++)
		for (int t = 0; t < LENGTH; t++)
			scored[i] += b.target[i * LENGTH + t] >= 0;
	assert_true(scored[0] > 0 && scored[1] == scored[0]);
	for (int i = 2; i < COUNT; i++)
		assert_int_equal(scored[i], 0);
	batch_close(&b);
}

static void test_open(void **state)
{
	(void)state;
	struct method task = method_default(task_at(0));
	struct batch_source source = recall_source(&task);
	struct batch b;
	assert_int_equal(batch_open(&source, COUNT, &b).code, ERR_NONE);
	for (int t = 0; t < LENGTH; t++)
		assert_true(b.positions[t] == t);
	assert_int_equal(b.memory.size, batch_bytes(COUNT, LENGTH));
	assert_true(batch_bytes(COUNT, 2 * LENGTH) < 2.2 * (double)batch_bytes(COUNT, LENGTH));
	batch_close(&b);

	source.length = 3;
	struct err e = batch_open(&source, COUNT, &b);
	assert_int_equal(e.code, ERR_USAGE);
	assert_non_null(strstr(e.text, "length 3 is too short"));
	batch_close(&b);
	batch_close(&(struct batch){ 0 });
}

/* A task whose sequence 3 is placed one further on. */
static struct err any_length(const struct method *task, int train_length, int length)
{
	(void)task, (void)train_length, (void)length;
	return OK;
}

static void make_shifted(const struct method *task, int train_length, uint64_t seed, enum stream stream, uint64_t index,
			 int length, struct sequence *out)
{
	(void)task, (void)train_length, (void)seed, (void)stream;
	for (int t = 0; t < length; t++)
		out->position[t] = t + (index == 3);
}

static int makes_bug(const struct batch_source *source, uint64_t first)
{
	pid_t child = fork();
	if (!child) {
		struct batch b;
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
		fclose(stderr);
		if (batch_open(source, 3, &b).code)
			_exit(1);
		batch_make(&b, first, 3);
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGABRT : WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status);
}

static void test_positions(void **state)
{
	(void)state;
	static const struct task shifted = { .entry = { .name = "shifted", .help = "" }, .check = any_length,
					     .make = make_shifted };
	struct method task = method_default(&shifted.entry);
	struct batch_source source = { &task, 8, 8, 1, STREAM_TRAIN };
	assert_false(makes_bug(&source, 0));
	assert_true(makes_bug(&source, 1));
	assert_false(makes_bug(&source, 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_fewer),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_positions),
	};
	threads_start(1);
	return cmocka_run_group_tests_name("data batch", tests, NULL, NULL);
}
