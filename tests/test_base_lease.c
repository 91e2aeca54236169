#include "tests/lease_case.h"

#include <errno.h>

/* A claim on a folder: one process has it at a time, and a dead one not for long. */

static char *content(void)
{
	char *text;
	size_t size;
	assert_ok(io_read(lock, &text, &size));
	return text;
}

static void assert_taken(void)
{
	struct lease *l;
	assert_ok(lease_take(folder, &l));
	char *text = content();
	assert_null(strstr(text, TOKEN));
	assert_ok(lease_check(l));
	free(text);
	lease_release(l);
	assert_int_equal(entries(), 0);
}

static void assert_refused(const char *by)
{
	struct lease *l;
	char said[LEASE_HOLDER] = "";
	assert_ok(lease_try(folder, &l, said));
	assert_null(l);
	assert_string_equal(said, by);
	assert_err(lease_take(folder, &l), ERR_FAILED, by);
	assert_err(lease_take(folder, &l), ERR_FAILED, folder);
	assert_int_equal(entries(), 1);
}

/* ---- One process ---- */

static void is_taken_and_given_up(void **state)
{
	struct lease *l, *again;
	(void)state;
	assert_ok(lease_take(folder, &l));
	char *text = content(), pid[32];
	snprintf(pid, sizeof pid, "\npid = %d\n", (int)getpid());
	assert_non_null(strstr(text, pid));
	assert_int_equal(entries(), 1);
	assert_ok(lease_take(folder, &again));
	assert_ptr_equal(again, l);
	lease_release(again);
	assert_ok(lease_check(l));
	lease_release(l);
	lease_release(NULL);
	assert_int_equal(entries(), 0);
	free(text);
	assert_taken();
}

static void folders_are_told_apart_by_what_they_are(void **state)
{
	char dots[FOLDER_PATH + 8], below[FOLDER_PATH + 8];
	struct lease *l, *again, *other;
	(void)state;
	snprintf(dots, sizeof dots, "%s/.", folder);
	snprintf(below, sizeof below, "%s/below", folder);
	assert_ok(io_make_folder(below));
	assert_ok(lease_take(folder, &l));
	assert_ok(lease_take(dots, &again));
	assert_ok(lease_take(below, &other));
	assert_ptr_equal(again, l);
	assert_ptr_not_equal(other, l);
	lease_release(l);
	assert_true(io_exists(lock));
	lease_release(again);
	assert_false(io_exists(lock));
	assert_ok(lease_check(other));
	lease_release(other);
}

static void needs_a_folder(void **state)
{
	char absent[FOLDER_PATH + 8];
	struct lease *l;
	(void)state;
	snprintf(absent, sizeof absent, "%s/none", folder);
	assert_err(lease_take(absent, &l), ERR_USAGE, absent);
	assert_null(l);
	assert_false(io_exists(absent));
}

/* ---- Two processes ---- */

/* A child that takes the claim and keeps it until it is told by SIGUSR1, or is killed. */
static void start_holder(void)
{
	int ends[2];
	char word;
	sigset_t told;
	assert_int_equal(pipe(ends), 0);
	sigemptyset(&told);
	sigaddset(&told, SIGUSR1);
	sigprocmask(SIG_BLOCK, &told, NULL);
	holder = fork();
	assert_true(holder >= 0);
	if (!holder) {
		struct lease *l;
		int signal;
		bool good = !lease_take(folder, &l).code && write(ends[1], "x", 1) == 1 && !sigwait(&told, &signal);
		if (good)
			lease_release(l);
		_exit(!good);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &word, 1), 1);
	close(ends[0]);
}

static void end_holder(int signal)
{
	int status;
	assert_int_equal(kill(holder, signal) | kill(holder, SIGCONT), 0);
	assert_int_equal(waitpid(holder, &status, 0), holder);
	assert_int_equal(status, signal == SIGKILL ? SIGKILL : 0);
	holder = 0;
}

static void assert_held(void)
{
	char name[LEASE_HOLDER];
	snprintf(name, sizeof name, "%s, process %d", process_self().host, (int)holder);
	assert_refused(name);
}

static void another_process_waits(void **state)
{
	(void)state;
	start_holder();
	assert_held();
	/* However long it stands still. */
	assert_int_equal(kill(holder, SIGSTOP), 0);
	assert_int_equal(utimensat(AT_FDCWD, lock, (struct timespec[2]){ { .tv_sec = 1 }, { .tv_sec = 1 } }, 0), 0);
	assert_held();
	end_holder(SIGUSR1);
	assert_int_equal(entries(), 0);
	assert_taken();
}

static void a_killed_process_has_no_claim(void **state)
{
	siginfo_t ended;
	(void)state;
	start_holder();
	assert_int_equal(kill(holder, SIGKILL), 0);
	/* Its parent has not looked at it: a zombie has none, either. */
	assert_int_equal(waitid(P_PID, (id_t)holder, &ended, WEXITED | WNOWAIT), 0);
	assert_true(io_exists(lock));
	assert_taken();
	end_holder(SIGKILL);
}

/* ---- Claims of all kinds ---- */

static void of_this_machine_the_dead_lose_it(void **state)
{
	(void)state;
	struct process p = dead_process();
	put_claim(&p, 0);
	assert_taken();
	p = process_self();
	if (!*p.started)
		return;
	snprintf(p.started, sizeof p.started, "1"); /* another process has its number now */
	put_claim(&p, 0);
	assert_taken();
}

static void of_other_machines_the_silent_lose_it(void **state)
{
	(void)state;
	struct process p = distant_process();
	put_claim(&p, 0);
	assert_refused("zeus, process 4242");
	put_claim(&p, LEASE_STALE - 10);
	assert_refused("zeus, process 4242");
	put_claim(&p, LEASE_STALE + 10);
	assert_taken();
	/* Another pid namespace is another machine. */
	p = dead_process();
	snprintf(p.pid_namespace, sizeof p.pid_namespace, "pid:[1]");
	put_claim(&p, 0);
	struct lease *l;
	assert_err(lease_take(folder, &l), ERR_FAILED, "process 4194305");
	put_claim(&p, LEASE_STALE + 10);
	assert_taken();
}

static void what_cannot_be_read_ages(void **state)
{
	static const char nul[] = "token = 0123456789abcdef\0" "0123456789abcdef\n", *const text[] = {
		"", "garbage", "host = zeus\npid = 1\n", "token = short\n", nul, NULL };
	static char large[5000];
	(void)state;
	memset(large, 'x', sizeof large);
	for (int i = 0; i < 6; i++) {
		const char *it = text[i] ? text[i] : large;
		size_t size = !text[i] ? sizeof large : text[i] == nul ? sizeof nul : strlen(it);
		put(it, size, 0);
		assert_refused("an unknown process");
		put(it, size, LEASE_STALE + 10);
		assert_taken();
	}
}

/* A clock was set back: the claim ages from the time at which it is seen on. */
static void from_the_future_it_ages(void **state)
{
	(void)state;
	struct process p = distant_process();
	struct stat status;
	put_claim(&p, -10 * LEASE_STALE);
	assert_refused("zeus, process 4242");
	assert_int_equal(stat(lock, &status), 0);
	assert_true(status.st_mtime <= time(NULL) && status.st_mtime >= time(NULL) - LEASE_STALE);
	put("garbage", 7, -10 * LEASE_STALE);
	assert_refused("an unknown process");
	assert_int_equal(stat(lock, &status), 0);
	assert_true(status.st_mtime <= time(NULL));
}

static void what_is_no_file_is_left_alone(void **state)
{
	struct lease *l;
	struct stat status;
	(void)state;
	for (int i = 0; i < 3; i++) {
		int made = i == 0 ? symlink("/etc/hostname", lock) : i == 1 ? mkfifo(lock, 0600) : mkdir(lock, 0700);
		assert_int_equal(made, 0);
		assert_int_equal(utimensat(AT_FDCWD, lock, (struct timespec[2]){ { .tv_sec = 1 }, { .tv_sec = 1 } },
					   AT_SYMLINK_NOFOLLOW), 0);
		assert_err(lease_take(folder, &l), ERR_USAGE, lock);
		assert_err(lease_take(folder, &l), ERR_USAGE, "Move it away");
		assert_null(l);
		assert_int_equal(lstat(lock, &status), 0);
		assert_int_equal(entries(), 1);
		assert_int_equal(remove(lock), 0);
	}
}

/* ---- Losing it ---- */

static void notices_its_loss(void **state)
{
	struct lease *l;
	(void)state;
	assert_ok(lease_take(folder, &l));
	struct process p = distant_process();
	put_claim(&p, 0);
	assert_err(lease_check(l), ERR_FAILED, "another process has taken");
	assert_err(lease_check(l), ERR_FAILED, folder);
	lease_release(l);
	char *text = content();
	assert_non_null(strstr(text, TOKEN));
	free(text);
	assert_ok(io_remove(lock));
	assert_ok(lease_take(folder, &l));
	assert_ok(io_remove(lock));
	assert_err(lease_check(l), ERR_FAILED, "is gone");
	lease_release(l);
	assert_ok(lease_take(folder, &l));
	assert_int_equal(folder_remove(folder), 0);
	assert_err(lease_check(l), ERR_FAILED, lock);
	lease_release(l);
	assert_int_equal(mkdir(folder, 0700), 0);
}

static time_t beats_since(time_t then)
{
	struct stat status;
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(stat(lock, &status), 0);
		if (status.st_mtime > then)
			break;
		usleep(5000);
	}
	return status.st_mtime;
}

static void keeps_its_claim_fresh(void **state)
{
	const struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	struct lease *l;
	(void)state;
	lease_beat = 5;
	assert_ok(lease_take(folder, &l));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(utimensat(AT_FDCWD, lock, old, 0), 0);
		assert_true(beats_since(1) >= time(NULL) - 5);
	}
	/* But not that of another. */
	struct process p = distant_process();
	put_claim(&p, 1000);
	usleep(30000);
	struct stat status;
	assert_int_equal(stat(lock, &status), 0);
	assert_true(status.st_mtime < time(NULL) - 900);
	lease_release(l);
}

/* ---- File systems that refuse ---- */

static void in_a_folder_that_is_read_only(void **state)
{
	int status;
	(void)state;
	assert_int_equal(chmod(folder, 0555), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct lease *l;
		if (!getuid() && (setgid(NOBODY) || setuid(NOBODY)))
			_exit(2);
		struct err e = lease_take(folder, &l);
		_exit(e.code != ERR_FAILED || l || !strstr(e.text, folder) || !strstr(e.text, strerror(EACCES)) ||
		      !strstr(e.hint, "permissions"));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(entries(), 0);
}

static int no_links(const char *operation, const char *path)
{
	(void)path;
	return strcmp(operation, "link") ? 0 : EPERM;
}

static void without_links(void **state)
{
	(void)state;
	io_fault = no_links;
	assert_taken();
	start_holder();
	assert_held();
	end_holder(SIGKILL);
	assert_taken();
	struct process p = distant_process();
	put_claim(&p, 0);
	assert_refused("zeus, process 4242");
}

/* The plan: operation `fault_at` fails. */
static int fault_at, operations;
static bool linkless;
static char failed[16];

static int fault(const char *operation, const char *path)
{
	if (++operations == fault_at) {
		snprintf(failed, sizeof failed, "%s", operation);
		return EIO;
	}
	return linkless ? no_links(operation, path) : 0;
}

/* Claims with every operation failing in turn; `stale`: after a dead process. What a failure leaves behind is what was
 * there before, and the file that could not be removed. */
static void claim_with_faults(bool stale)
{
	struct process p = dead_process();
	struct err e = { .code = ERR_FAILED };
	do {
		struct lease *l;
		operations = 0;
		*failed = '\0';
		if (stale)
			put_claim(&p, 0);
		io_fault = fault;
		e = lease_take(folder, &l);
		io_fault = NULL;
		if (e.code) {
			assert_null(l);
			assert_err(e, ERR_FAILED, folder);
			assert_err(e, ERR_FAILED, strerror(EIO));
			assert_true(*failed);
		} else {
			assert_ok(lease_check(l));
			lease_release(l);
		}
		assert_in_range(entries(), 0, (e.code && stale) + !strcmp(failed, "unlink"));
		assert_int_equal(folder_remove(folder) | mkdir(folder, 0700), 0);
		fault_at++;
	} while (*failed);
	assert_true(fault_at > 5);
}

static void faults_leave_nothing_behind(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		fault_at = 1;
		linkless = i % 2;
		claim_with_faults(i / 2);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(is_taken_and_given_up),
		TEST(folders_are_told_apart_by_what_they_are),
		TEST(needs_a_folder),
		TEST(another_process_waits),
		TEST(a_killed_process_has_no_claim),
		TEST(of_this_machine_the_dead_lose_it),
		TEST(of_other_machines_the_silent_lose_it),
		TEST(what_cannot_be_read_ages), TEST(from_the_future_it_ages),
		TEST(what_is_no_file_is_left_alone),
		TEST(notices_its_loss),
		TEST(keeps_its_claim_fresh),
		TEST(in_a_folder_that_is_read_only),
		TEST(without_links),
		TEST(faults_leave_nothing_behind),
	};
	return cmocka_run_group_tests_name("base lease", tests, NULL, NULL);
}
