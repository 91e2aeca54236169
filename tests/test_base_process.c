#include "model/base/process.h"
#include "tests/support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether another process still runs, as far as it can be told. */

#define PID_MOST 4194304 /* of any Linux */

static int set_up(void **state)
{
	(void)state;
	alarm(60);
	return 0;
}

static pid_t start_child(void)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		pause();
		_exit(0);
	}
	return pid;
}

/* As the child itself would say it. */
static struct process process_of(pid_t pid)
{
	struct process p = process_self();
	char path[64], line[1024] = "";
	p.pid = pid;
	*p.started = '\0';
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "r");
	if (!f)
		return p;
	assert_non_null(fgets(line, sizeof line, f));
	fclose(f);
	char *rest = strrchr(line, ')') + 2, *word = NULL, *field = strtok_r(rest, " ", &word);
	for (int i = 3; i < 22; i++)
		field = strtok_r(NULL, " ", &word);
	snprintf(p.started, sizeof p.started, "%s", field);
	return p;
}

static void lives_until_it_is_killed(void **state)
{
	siginfo_t ended;
	(void)state;
	pid_t pid = start_child();
	struct process p = process_of(pid);
	assert_int_equal(process_alive(&p), PROCESS_ALIVE);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(process_alive(&p), PROCESS_ALIVE);
	assert_int_equal(kill(pid, SIGKILL), 0);
	/* Nobody has looked at it yet: a zombie. */
	assert_int_equal(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT), 0);
	assert_int_equal(process_alive(&p), PROCESS_DEAD);
	bool known = *p.started;
	*p.started = '\0';
	if (known)
		assert_int_equal(process_alive(&p), PROCESS_DEAD);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(process_alive(&p), PROCESS_DEAD);
}

static void lives_itself(void **state)
{
	(void)state;
	struct process p = process_self();
	assert_int_equal(process_alive(&p), PROCESS_ALIVE);
	assert_int_equal(p.pid, getpid());
	assert_true(*p.host);
	p.pid = 1; /* of root, and never dead */
	*p.started = '\0';
	assert_int_equal(process_alive(&p), PROCESS_ALIVE);
	p.pid = PID_MOST + 1;
	assert_int_equal(process_alive(&p), PROCESS_DEAD);
}

static void another_with_its_number_is_not_it(void **state)
{
	(void)state;
	struct process p = process_self();
	if (!*p.started)
		return;
	p.started[0] = p.started[0] == '9' ? '8' : '9';
	assert_int_equal(process_alive(&p), PROCESS_DEAD);
}

static void nothing_is_known_of_other_machines(void **state)
{
	(void)state;
	const struct process self = process_self();
	struct process p = self;
	snprintf(p.boot_id, sizeof p.boot_id, "another");
	assert_int_equal(process_alive(&p), *self.boot_id ? PROCESS_UNKNOWN : PROCESS_ALIVE);
	p = self;
	snprintf(p.pid_namespace, sizeof p.pid_namespace, "pid:[1]");
	assert_int_equal(process_alive(&p), PROCESS_UNKNOWN);
	p = self;
	p.pid = 0;
	assert_int_equal(process_alive(&p), PROCESS_UNKNOWN);
	/* Names are given twice: they count where one of both does not know its boot. */
	p = self;
	*p.boot_id = '\0';
	assert_int_equal(process_alive(&p), PROCESS_ALIVE);
	snprintf(p.host, sizeof p.host, "another");
	assert_int_equal(process_alive(&p), PROCESS_UNKNOWN);
	/* And do not where both know it: a machine may be renamed. */
	p = self;
	snprintf(p.host, sizeof p.host, "another");
	if (*self.boot_id)
		assert_int_equal(process_alive(&p), PROCESS_ALIVE);
}

static void is_written_and_read_back(void **state)
{
	(void)state;
	struct text_builder b = { 0 };
	const struct process p = process_self();
	struct process q;
	memset(&q, 'x', sizeof q);
	process_print(&p, &b);
	process_parse(b.data, &q);
	assert_string_equal(q.host, p.host);
	assert_string_equal(q.boot_id, p.boot_id);
	assert_string_equal(q.pid_namespace, p.pid_namespace);
	assert_string_equal(q.started, p.started);
	assert_int_equal(q.pid, p.pid);
	text_builder_free(&b);
}

static void reads_anything(void **state)
{
	(void)state;
	static const struct {
		const char *text, *host;
		long pid;
	} known[] = {
		{ "", "", 0 },
		{ "host", "", 0 },
		{ "host = a", "a", 0 },
		{ "hosts = a\npid = 7\n", "", 7 },
		{ "pid = -7\nhost = a\x1b[2J\x7f\x80" "b\n", "a?[2J??b", 0 },
		{ "pid = 99999999999\n", "", 0 },
		{ "pid = 7x\npid = 8\n", "", 0 },
		{ "\n\n = \nhost = \n", "", 0 },
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		struct process p;
		memset(&p, 'x', sizeof p);
		process_parse(known[i].text, &p);
		assert_string_equal(p.host, known[i].host);
		assert_int_equal(p.pid, known[i].pid);
		assert_string_equal(p.started, "");
		assert_int_equal(process_alive(&p), PROCESS_UNKNOWN);
	}
	char text[2000] = "host = ";
	memset(text + 7, 'h', sizeof text - 8);
	struct process p;
	process_parse(text, &p);
	assert_int_equal(strlen(p.host), sizeof p.host - 1);
}

static void tokens_differ(void **state)
{
	char one[33], other[33];
	(void)state;
	process_token(one, sizeof one);
	process_token(other, sizeof other);
	assert_int_equal(strspn(one, "0123456789abcdef"), 32);
	assert_int_equal(strlen(one), 32);
	assert_string_not_equal(one, other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lives_until_it_is_killed),
		cmocka_unit_test(lives_itself),
		cmocka_unit_test(another_with_its_number_is_not_it),
		cmocka_unit_test(nothing_is_known_of_other_machines),
		cmocka_unit_test(is_written_and_read_back),
		cmocka_unit_test(reads_anything),
		cmocka_unit_test(tokens_differ),
	};
	return cmocka_run_group_tests_name("base process", tests, set_up, NULL);
}
