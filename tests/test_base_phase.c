#include "model/base/phase.h"
#include "model/base/threads.h"
#include "tests/support.h"

#include <time.h>
#include <unistd.h>

/* Where the threads' time goes: bounds that hold however busy the machine is. */

enum { THREADS = 3 };

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double sum_of(const double seconds[PHASES])
{
	double sum = 0;
	for (int p = 0; p < PHASES; p++)
		sum += seconds[p];
	return sum;
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(phase_name(PHASE_LINEAR), "linear");
	assert_string_equal(phase_name(PHASE_WAITING), "waiting");
	for (int p = 0; p < PHASES; p++)
		for (int q = 0; q < p; q++)
			assert_string_not_equal(phase_name((enum phase)p), phase_name((enum phase)q));
}

/* Time goes to the phase that was entered last, not to the one before or after it. */
static void test_time_goes_where_it_was_spent(void **state)
{
	double seconds[PHASES];
	(void)state;
	threads_start(1);
	double start = now();
	phases_start();
	assert_int_equal(phase_enter(PHASE_LINEAR), PHASE_WAITING);
	usleep(20000);
	assert_int_equal(phase_enter(PHASE_DATA), PHASE_LINEAR);
	usleep(5000);
	assert_int_equal(phase_enter(PHASE_DATA), PHASE_DATA);
	usleep(5000);
	assert_int_equal(phase_enter(PHASE_WAITING), PHASE_DATA);
	phases_stop(seconds);
	double wall = now() - start;
	assert_true(seconds[PHASE_LINEAR] >= 0.02 && seconds[PHASE_LINEAR] <= wall - 0.01);
	assert_true(seconds[PHASE_DATA] >= 0.01 && seconds[PHASE_DATA] <= wall - 0.02);
	assert_close(sum_of(seconds), seconds[PHASE_LINEAR] + seconds[PHASE_DATA] + seconds[PHASE_WAITING], 1e-12);
}

/* Of a time that is still running, too. */
static void test_stop_charges_what_runs(void **state)
{
	double seconds[PHASES];
	(void)state;
	threads_start(1);
	phases_start();
	phase_enter(PHASE_OPTIMISER);
	usleep(10000);
	phases_stop(seconds);
	assert_true(seconds[PHASE_OPTIMISER] >= 0.01);
}

static void test_only_out_of_elementwise(void **state)
{
	double seconds[PHASES];
	(void)state;
	threads_start(1);
	phases_start();
	for (int p = 0; p < PHASES; p++) {
		bool elementwise = p == PHASE_ELEMENTWISE;
		phase_enter((enum phase)p);
		assert_int_equal(phase_enter_within(PHASE_LINEAR), p);
		assert_int_equal(phase_enter((enum phase)p), elementwise ? PHASE_LINEAR : p);
	}
	phases_stop(seconds);
}

/* Before the start and after the stop nothing is counted, and entering answers with what was to be entered, so that
 * going back to it is harmless. */
static void test_nothing_while_not_running(void **state)
{
	double seconds[PHASES];
	(void)state;
	threads_start(1);
	for (int turn = 0; turn < 2; turn++) {
		assert_int_equal(phase_enter(PHASE_HEAD), PHASE_HEAD);
		assert_int_equal(phase_enter_within(PHASE_ATTENTION), PHASE_ATTENTION);
		usleep(1000);
		phases_start();
		assert_int_equal(phase_enter(PHASE_WAITING), PHASE_WAITING);
		phases_stop(seconds);
		for (int p = 0; p < PHASES; p++)
			assert_true(p == PHASE_WAITING || seconds[p] == 0);
	}
}

/* A thread may meet several of these, the first of them in elementwise. */
static void work(int index, int thread, void *data)
{
	enum phase *before = data;
	(void)thread;
	before[index] = phase_enter(PHASE_ATTENTION);
	usleep(4000);
}

/* All threads together have as much time as there was; in a loop they are in elementwise until they say otherwise, and
 * wait when it is over. */
static void test_all_threads_time(void **state)
{
	double seconds[PHASES];
	enum phase before[THREADS];
	(void)state;
	int threads = threads_start(THREADS);
	double start = now();
	phases_start();
	double started = now();
	threads_each(threads, work, before);
	usleep(10000);
	double stopping = now();
	phases_stop(seconds);
	double stopped = now(), sum = sum_of(seconds);
	assert_true(sum >= threads * (stopping - started) - 1e-9);
	assert_true(sum <= threads * (stopped - start) + 1e-9);
	assert_true(seconds[PHASE_ATTENTION] >= 0.004 * threads);
	assert_true(seconds[PHASE_WAITING] >= 0.01 * threads);
	assert_true(seconds[PHASE_LINEAR] == 0 && seconds[PHASE_DATA] == 0);
	assert_int_equal(before[0], PHASE_ELEMENTWISE);
	for (int i = 1; i < threads; i++)
		assert_true(before[i] == PHASE_ELEMENTWISE || before[i] == PHASE_ATTENTION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_time_goes_where_it_was_spent),
		cmocka_unit_test(test_stop_charges_what_runs),
		cmocka_unit_test(test_only_out_of_elementwise),
		cmocka_unit_test(test_nothing_while_not_running),
		cmocka_unit_test(test_all_threads_time),
	};
	return cmocka_run_group_tests_name("base phase", tests, NULL, NULL);
}
