#include "model/base/threads.h"
#include "tests/support.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])

static char *program;

#define INDICES 1000

struct visits {
	atomic_int count[INDICES];
	atomic_int strangers; /* calls with a wrong thread number, or with one that is at work already */
	atomic_int working[THREADS_MOST];
	bool slow_first, slow_last;
};

static void visit(int index, int thread, void *data)
{
	struct visits *v = data;
	if (thread < 0 || thread >= threads_count()) {
		v->strangers++;
		return;
	}
	v->strangers += v->working[thread]++ > 0;
	v->count[index]++;
	if ((v->slow_first && index < 4) || (v->slow_last && index >= INDICES - 4))
		usleep(1000);
	v->working[thread]--;
}

typedef typeof(threads_each) loop;

static void check_every_index_once(loop *each)
{
	static const int threads[] = { 0, 1, 2, 3, 7 }, counts[] = { 0, 1, 2, 3, 8, INDICES };
	static struct visits v;
	for (int t = 0; t < COUNT(threads); t++) {
		int started = threads_start(threads[t]);
		assert_int_equal(started, threads_count());
		if (threads[t])
			assert_int_equal(started, threads_openmp() ? threads[t] : 1);
		assert_true(started >= 1);
		for (int c = 0; c < COUNT(counts); c++) {
			memset(&v, 0, sizeof v);
			each(counts[c], visit, &v);
			for (int i = 0; i < INDICES; i++)
				assert_int_equal(v.count[i], i < counts[c]);
			assert_int_equal(v.strangers, 0);
		}
	}
}

static void test_threads_each(void **state)
{
	(void)state;
	check_every_index_once(threads_each);
}

static void test_threads_take(void **state)
{
	(void)state;
	check_every_index_once(threads_take);
}

/* A thread with slow work, at either end of the indices, has the rest of its share taken from it: every index once. */
static void test_threads_uneven(void **state)
{
	static struct visits v;
	(void)state;
	for (int threads = 2; threads <= 8; threads++)
		for (int slow = 1; slow < 4; slow++) {
			threads_start(threads);
			memset(&v, 0, sizeof v);
			v.slow_first = slow & 1;
			v.slow_last = slow & 2;
			threads_each(INDICES, visit, &v);
			for (int i = 0; i < INDICES; i++)
				assert_int_equal(v.count[i], 1);
			assert_int_equal(v.strangers, 0);
		}
}

/* Index 0 waits for all the others: those of its own share are only done if another thread takes them. */
struct held {
	atomic_int done, thread_of_first, taken;
};

static void hold(int index, int thread, void *data)
{
	struct held *h = data;
	if (index) {
		h->taken += index < INDICES / 2 && thread != h->thread_of_first;
		h->done++;
		return;
	}
	h->thread_of_first = thread;
	for (int waited = 0; h->done < INDICES - 1 && waited < 3000; waited++)
		usleep(1000);
}

static void test_threads_take_from_the_slow(void **state)
{
	(void)state;
	struct held h = { .thread_of_first = -1 };
	if (threads_start(2) < 2)
		return;
	threads_each(INDICES, hold, &h);
	assert_int_equal(h.done, INDICES - 1);
	assert_true(h.taken >= INDICES / 2 - 1);
}

/* Tasks are begun in their order: all of them by one thread; by the others, while one is held by the first. */
struct order {
	atomic_int done;
	int count, begun[INDICES];
	bool hold;
};

static void begin(int index, int thread, void *data)
{
	struct order *o = data;
	(void)thread;
	if (!index && o->hold) {
		for (int waited = 0; o->done < INDICES - 1 && waited < 3000; waited++)
			usleep(1000);
		return;
	}
	o->begun[o->count++] = index;
	o->done++;
}

static void test_threads_take_in_order(void **state)
{
	static struct order o;
	(void)state;
	for (int threads = 1; threads <= 2; threads++) {
		memset(&o, 0, sizeof o);
		o.hold = threads_start(threads) > 1;
		threads_take(INDICES, begin, &o);
		assert_int_equal(o.count, INDICES - o.hold);
		for (int i = 0; i < o.count; i++)
			assert_int_equal(o.begun[i], i + o.hold);
	}
}

/* Everyone waits until all are there: on one thread that never happens. */
struct meeting {
	atomic_int there, alone;
};

static void meet(int index, int thread, void *data)
{
	struct meeting *m = data;
	(void)index, (void)thread;
	m->there++;
	for (int waited = 0; m->there < 3 && waited < 3000; waited++)
		usleep(1000);
	m->alone += m->there < 3;
}

static void test_threads_together(void **state)
{
	(void)state;
	struct meeting m = { 0 };
	if (threads_start(3) < 3)
		return;
	threads_each(3, meet, &m);
	assert_int_equal(m.alone, 0);
	m = (struct meeting){ 0 };
	threads_take(3, meet, &m);
	assert_int_equal(m.alone, 0);
}

/* What this program prints when it runs itself with --threads=FIRST: the threads of threads_start(0), called after
 * threads_start(FIRST) unless that is 0. */
static int threads_under(const char *setting, int first)
{
	char command[1200], line[64] = "";
	snprintf(command, sizeof command, "%s '%s' --threads=%d", setting, program, first);
	FILE *f = popen(command, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof line, f));
	assert_int_equal(pclose(f), 0);
	return atoi(line);
}

static void test_threads_environment(void **state)
{
	(void)state;
	bool openmp = threads_openmp();
	assert_int_equal(threads_under("OMP_NUM_THREADS=1", 0), 1);
	assert_int_equal(threads_under("OMP_NUM_THREADS=3", 0), openmp ? 3 : 1);
	assert_int_equal(threads_under("OMP_NUM_THREADS=5,2", 0), openmp ? 5 : 1);
	int cores = threads_under("env -u OMP_NUM_THREADS", 0), processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
	assert_true(cores >= 1 && cores <= processors);
	/* Not the processors of the machine but those that are allowed. */
	if (openmp && !system("taskset -c 0 true 2>/dev/null"))
		assert_int_equal(threads_under("env -u OMP_NUM_THREADS taskset -c 0", 0), 1);
}

/* A count asked for before is not the environment's. */
static void test_threads_environment_again(void **state)
{
	(void)state;
	assert_int_equal(threads_under("OMP_NUM_THREADS=2", 4), threads_openmp() ? 2 : 1);
	assert_int_equal(threads_under("env -u OMP_NUM_THREADS", 4), threads_under("env -u OMP_NUM_THREADS", 0));
}

/* Loops inside of loops, in a run of their own: a child of this one would have no threads. */
static void nest(int index, int thread, void *data)
{
	loop *const *inner = data;
	(void)index, (void)thread;
	(*inner)(1, nest, data);
}

static int run_nested(int which)
{
	loop *inner = which % 2 ? threads_take : threads_each;
	threads_start(which / 4 ? 1 : 2);
	(which / 2 % 2 ? threads_take : threads_each)(2, nest, &inner);
	return 0;
}

static void test_threads_nested(void **state)
{
	(void)state;
	for (int which = 0; which < 8; which++) {
		char command[1200], said[512] = "";
		snprintf(command, sizeof command, "ulimit -c 0; exec '%s' --nested=%d 2>&1", program, which);
		FILE *f = popen(command, "r");
		assert_non_null(f);
		said[fread(said, 1, sizeof said - 1, f)] = 0;
		assert_int_not_equal(pclose(f), 0);
		assert_non_null(strstr(said, "ropewalk: BUG at "));
		assert_non_null(strstr(said, which % 2 ? "threads_take inside" : "threads_each inside"));
	}
}

static int print_threads(int first)
{
	if (first)
		threads_start(first);
	printf("%d\n", threads_start(0));
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_each),
		cmocka_unit_test(test_threads_take),
		cmocka_unit_test(test_threads_take_in_order),
		cmocka_unit_test(test_threads_nested),
		cmocka_unit_test(test_threads_uneven),
		cmocka_unit_test(test_threads_take_from_the_slow),
		cmocka_unit_test(test_threads_together),
		cmocka_unit_test(test_threads_environment),
		cmocka_unit_test(test_threads_environment_again),
	};
	program = argv[0];
	if (argc > 1 && !strncmp(argv[1], "--threads=", 10))
		return print_threads(atoi(argv[1] + 10));
	if (argc > 1 && !strncmp(argv[1], "--nested=", 9))
		return run_nested(atoi(argv[1] + 9));
	return cmocka_run_group_tests_name("base threads", tests, NULL, NULL);
}
