#include "tests/lease_case.h"

#include <stdatomic.h>
#include <sys/mman.h>

/* Many processes at once, all of which want the folder that a dead one has left. */

#define ROUNDS 200
#define PROCESSES 8

/* Seen by all of them. */
struct contest {
	atomic_int round, ready, done, winners, errors;
	atomic_bool end;
};

/* Between its last look at a claim and the removal: what another does there must not matter. */
static int dawdle(const char *operation, const char *path)
{
	if (!strcmp(operation, "unlink") && !strcmp(path, lock))
		usleep(100);
	return 0;
}

/* Until all are there, or one has given up. */
static void wait_for(struct contest *all, atomic_int *number, int value)
{
	while (atomic_load(number) < value && !atomic_load(&all->end))
		usleep(20);
}

static _Noreturn void contender(struct contest *all, int processes)
{
	io_fault = dawdle;
	alarm(30);
	for (int round = 1; round <= ROUNDS && !atomic_load(&all->end); round++) {
		struct lease *l = NULL;
		char said[LEASE_HOLDER];
		wait_for(all, &all->round, round);
		struct err e = lease_try(folder, &l, said);
		atomic_fetch_add(&all->errors, e.code != ERR_NONE);
		atomic_fetch_add(&all->winners, l != NULL);
		atomic_fetch_add(&all->ready, 1);
		wait_for(all, &all->ready, round * processes);
		lease_release(l);
		atomic_fetch_add(&all->done, 1);
	}
	_exit(0);
}

static void contend(int processes)
{
	struct process dead = dead_process(), distant = distant_process();
	struct contest *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(all != MAP_FAILED);
	for (int i = 0; i < processes; i++) {
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (!pid)
			contender(all, processes);
	}
	int round = 0, left = 0;
	while (round < ROUNDS && all->winners == round && !all->errors && !left) {
		put_claim(++round % 2 ? &dead : &distant, LEASE_STALE + 10);
		atomic_store(&all->round, round);
		wait_for(all, &all->done, round * processes);
		left = entries();
	}
	atomic_store(&all->end, true);
	for (int i = 0; i < processes; i++)
		wait(NULL);
	assert_int_equal(all->errors, 0);
	assert_int_equal(all->winners, ROUNDS);
	assert_int_equal(left, 0);
	munmap(all, sizeof *all);
}

static void one_of_two_takes_over(void **state)
{
	(void)state;
	contend(2);
}

static void one_of_eight_takes_over(void **state)
{
	(void)state;
	contend(PROCESSES);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(one_of_two_takes_over),
		TEST(one_of_eight_takes_over),
	};
	return cmocka_run_group_tests_name("base lease contest", tests, NULL, NULL);
}
