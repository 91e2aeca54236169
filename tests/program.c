#include "tests/program.h"

#include "tests/support.h"

#include "model/base/io.h"
#include "model/base/text.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char program[PATH_MAX], folder[256];

#define NOBODY 65534

void program_start(void)
{
	const char *given = getenv("ROPEWALK");
	if (!realpath(given ? given : "build/ropewalk", program))
		fail_msg("%s: build it first", given ? given : "build/ropewalk");
	const char *below = getenv("TMPDIR");
	snprintf(folder, sizeof folder, "%s/ropewalk-run-XXXXXX", below ? below : "/tmp");
	assert_non_null(mkdtemp(folder));
}

void program_stop(void)
{
	char command[600];
	snprintf(command, sizeof command, "chmod -R u+w %s; rm -rf %s", folder, folder);
	assert_int_equal(system(command), 0);
}

void program_run_free(struct program_run *r)
{
	free(r->out);
	free(r->err);
}

char *program_path(const char *name)
{
	return io_join(folder, name);
}

static char *content(const char *path, size_t *size)
{
	char *data;
	size_t read;
	assert_ok(io_read(path, &data, size ? size : &read));
	return data;
}

char *program_file(const char *name, size_t *size)
{
	char *path = program_path(name), *data = content(path, size);
	free(path);
	return data;
}

void program_put(const char *name, const void *data, size_t size)
{
	char *path = program_path(name);
	assert_ok(io_write(path, data, size));
	free(path);
}

bool program_has(const char *name)
{
	char *path = program_path(name);
	bool there = io_exists(path);
	free(path);
	return there;
}

static void redirect(int fd, const char *path, int flags)
{
	int file = open(path, flags, 0666);
	if (file < 0 || dup2(file, fd) < 0)
		_exit(99);
}

static _Noreturn void child(const char *path, const char **argv, const char *out, const char *err, bool nobody)
{
	redirect(1, out, O_WRONLY | O_CREAT | O_TRUNC);
	redirect(2, err, O_WRONLY | O_CREAT | O_TRUNC);
	/* A background job of a shell, as tests may be, ignores it. */
	signal(SIGINT, SIG_DFL);
	if (chdir(folder) || (nobody && !getuid() && (setgid(NOBODY) || setuid(NOBODY))))
		_exit(98);
	execv(path, (char **)(uintptr_t)argv);
	_exit(97);
}

/* Where a process's output goes. */
static void output_paths(pid_t pid, char out[300], char err[300])
{
	snprintf(out, 300, "%s.%ld.out", folder, (long)pid);
	snprintf(err, 300, "%s.%ld.err", folder, (long)pid);
}

static pid_t begin_words(const char *path, const char **argv, const char *stdout_path, bool nobody)
{
	char out[300], err[300];
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid)
		return pid;
	output_paths(getpid(), out, err);
	child(path, argv, stdout_path ? stdout_path : out, err, nobody);
}

static struct program_run end_run(pid_t pid, bool has_out)
{
	char out[300], err[300];
	int status;
	output_paths(pid, out, err);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	struct program_run r = { .code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
				 .out = has_out ? content(out, NULL) : strdup(""), .err = content(err, NULL) };
	unlink(out);
	unlink(err);
	return r;
}

static pid_t begin_line(const char *path, const char *line, const char *stdout_path, bool nobody)
{
	const char *argv[32] = { "ropewalk" };
	char *copy = strdup(line), *rest = NULL;
	int count = 1;
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		assert_true(count < 31);
		argv[count++] = word;
	}
	pid_t pid = begin_words(path, argv, stdout_path, nobody);
	free(copy);
	return pid;
}

static struct program_run run_line(const char *path, const char *line, const char *stdout_path, bool nobody)
{
	return end_run(begin_line(path, line, stdout_path, nobody), !stdout_path);
}

pid_t program_begin(const char *line)
{
	return begin_line(program, line, NULL, false);
}

struct program_run program_end(pid_t pid)
{
	return end_run(pid, true);
}

void program_await(const char *pattern)
{
	char *path = program_path(pattern);
	glob_t found;
	for (int i = 0; i < 20000; i++) {
		int none = glob(path, 0, NULL, &found);
		globfree(&found);
		if (!none) {
			free(path);
			return;
		}
		nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
	}
	fail_msg("%s: is not made", pattern);
}

struct program_run program_run(const char *line)
{
	return run_line(program, line, NULL, false);
}

struct program_run program_run_to(const char *line, const char *stdout_path)
{
	return run_line(program, line, stdout_path, false);
}

struct program_run program_run_as_nobody(const char *line)
{
	/* `nobody` may not reach the program where it was built. */
	size_t size;
	char *data = content(program, &size), *copy = program_path("program");
	program_put("program", data, size);
	assert_int_equal(chmod(copy, 0755) + chmod(folder, 0755), 0);
	struct program_run r = run_line(copy, line, NULL, true);
	unlink(copy);
	free(copy);
	free(data);
	return r;
}

struct program_run program_run_shell(const char *line)
{
	struct text_builder b = { 0 };
	text_add(&b, "ropewalk() { \"$ROPEWALK_PROGRAM\" \"$@\"; }\n%s\n", line);
	const char *argv[] = { "sh", "-c", b.data, NULL };
	assert_int_equal(setenv("ROPEWALK_PROGRAM", program, 1) + setenv("LC_ALL", "C", 1), 0);
	struct program_run r = end_run(begin_words("/bin/sh", argv, NULL, false), true);
	text_builder_free(&b);
	return r;
}

void shell(const char *line)
{
	struct program_run r = program_run_shell(line);
	if (r.code)
		fail_msg("%s: exit %d: %s", line, r.code, r.err);
	program_run_free(&r);
}

void program_works(const char *line)
{
	struct program_run r = program_run(line);
	if (r.code)
		fail_msg("%s: exit %d: %s", line, r.code, r.err);
	program_run_free(&r);
}

/* Names, sizes and times of everything in a folder: equal if nothing was written. */
static void list_folder(const char *path, struct text_builder *b)
{
	DIR *d = opendir(path);
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		struct stat s;
		char *name = io_join(path, e->d_name);
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && !stat(name, &s)) {
			/* A lease comes and goes in a folder whose files stay as they are. */
			bool is_folder = S_ISDIR(s.st_mode);
			text_add(b, "%s %lld %lld\n", name, is_folder ? 0 : (long long)s.st_size,
				 is_folder ? 0 : (long long)s.st_mtime);
			if (is_folder)
				list_folder(name, b);
		}
		free(name);
	}
	closedir(d);
}

/* The error is the last of stderr, a line and perhaps its hint, and nothing there steers the terminal. */
static void check_error(const char *line, const char *err, const char *error)
{
	const char *end = strchr(error, '\n');
	if (!end || (end[1] && (strncmp(end + 1, "  ", 2) || strchr(end + 1, '\n')[1])))
		fail_msg("%s: more than a line and its hint: %s", line, err);
	for (const char *c = err; *c; c++)
		if (iscntrl((unsigned char)*c) && *c != '\n')
			fail_msg("%s: a control character %d on stderr", line, *c);
}

void program_failed(const char *line, struct program_run *r, int code, const char *first, const char *second)
{
	if (r->code != code)
		fail_msg("%s: exit %d, not %d: %s", line, r->code, code, r->err);
	const char *error = !strncmp(r->err, "ropewalk: ", 10) ? r->err : strstr(r->err, "\nropewalk: ");
	if (!error || !strstr(error, first) || (second && !strstr(error, second)))
		fail_msg("%s: no '%s' and '%s' in: %s", line, first, second ? second : "", r->err);
	check_error(line, r->err, error + (*error == '\n'));
	assert_string_equal(r->out, "");
	program_run_free(r);
}

void program_refuses(const char *line, const char *first, const char *second)
{
	struct text_builder before = { 0 }, after = { 0 };
	list_folder(folder, &before);
	struct program_run r = program_run(line);
	list_folder(folder, &after);
	program_failed(line, &r, 2, first, second);
	assert_string_equal(before.data ? before.data : "", after.data ? after.data : "");
	text_builder_free(&before);
	text_builder_free(&after);
}

int program_setup(void **state)
{
	(void)state;
	program_start();
	return 0;
}

int program_setup_own(void **state)
{
#ifdef ROPEWALK_DOUBLE
	if (getenv("ROPEWALK_DOUBLE"))
		setenv("ROPEWALK", getenv("ROPEWALK_DOUBLE"), 1);
#endif
	return program_setup(state);
}

int program_teardown(void **state)
{
	(void)state;
	program_stop();
	return 0;
}
