#ifndef ROPEWALK_TESTS_LEASE_CASE_H
#define ROPEWALK_TESTS_LEASE_CASE_H

#include "model/base/io.h"
#include "model/base/lease.h"
#include "model/base/process.h"
#include "tests/support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A folder that processes claim, and claims in it that are written by hand. */

#define NOBODY 65534
#define DEAD_PID 4194305 /* greater than any of Linux */
#define TOKEN "0123456789abcdef0123456789abcdef"

static char folder[FOLDER_PATH], lock[FOLDER_PATH + 8];
static pid_t holder; /* child that has the claim */

static int set_up(void **state)
{
	(void)state;
	alarm(60);
	io_fault = NULL;
	lease_beat = LEASE_BEAT * 1000;
	if (folder_make(folder))
		return 1;
	snprintf(lock, sizeof lock, "%s/" LEASE_FILE, folder);
	return 0;
}

/* Ends what a test that failed has left. */
static int tear_down(void **state)
{
	(void)state;
	io_fault = NULL;
	if (holder)
		kill(holder, SIGKILL);
	holder = 0;
	return folder_remove(folder);
}

/* ---- What stands in the folder ---- */

static int entries(void)
{
	char **name;
	int count;
	assert_ok(io_list(folder, &name, &count));
	io_names_free(name, count);
	return count;
}

static void put(const char *text, size_t size, int age)
{
	const struct timespec times[2] = { { .tv_sec = time(NULL) - age }, { .tv_sec = time(NULL) - age } };
	int fd = open(lock, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), size);
	close(fd);
	assert_int_equal(utimensat(AT_FDCWD, lock, times, 0), 0);
}

/* The claim of another process, last touched `age` seconds ago. */
static void put_claim(const struct process *p, int age)
{
	struct text_builder b = { 0 };
	process_print(p, &b);
	text_add(&b, "token = " TOKEN "\n");
	put(b.data, b.size, age);
	text_builder_free(&b);
}

static struct process dead_process(void)
{
	struct process p = process_self();
	p.pid = DEAD_PID;
	return p;
}

static struct process distant_process(void)
{
	struct process p = process_self();
	snprintf(p.host, sizeof p.host, "zeus");
	snprintf(p.boot_id, sizeof p.boot_id, "of-zeus");
	p.pid = 4242;
	return p;
}

#endif
