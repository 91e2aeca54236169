#include "runs/plot/gnuplot.h"

#include "model/base/io.h"
#include "runs/progress.h"
#include "runs/stop.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

double gnuplot_seconds = 60;

/* The program as PATH has it; false if it has none. */
static bool find(char program[PATH_MAX])
{
	const char *path = getenv("PATH");
	for (const char *at = path ? path : ""; *at;) {
		int length = (int)strcspn(at, ":");
		snprintf(program, PATH_MAX, "%.*s/gnuplot", length, at);
		if (length && !access(program, X_OK) && !io_is_folder(program))
			return true;
		at += length + (at[length] == ':');
	}
	return false;
}

bool gnuplot_there(void)
{
	char program[PATH_MAX];
	return find(program);
}

/* The streams of a run: files that have no name and go with the process. */
struct streams {
	FILE *in, *out, *err;
};

static void close_streams(struct streams *s)
{
	FILE *const file[] = { s->in, s->out, s->err };
	for (int i = 0; i < 3; i++)
		if (file[i])
			fclose(file[i]);
}

/* Those that are open are closed by close_streams, also after an error. */
static struct err open_streams(const struct text_builder *script, struct streams *s)
{
	*s = (struct streams){ tmpfile(), tmpfile(), tmpfile() };
	if (s->in && s->out && s->err && fwrite(script->data, 1, script->size, s->in) == script->size &&
	    !fflush(s->in) && !fseek(s->in, 0, SEEK_SET))
		return OK;
	return err_system(errno, "It would be in /tmp: is there room, and may you write there?",
			  "gnuplot: no temporary file for its script");
}

static const char broken[] =
	"Does `gnuplot --version` work? Without gnuplot in PATH there are scripts and tables alone.";

/* A group of its own, so that what it starts ends with it; signals as they were before the program caught them. */
static struct err start(char *program, const struct streams *s, pid_t *pid)
{
	char *argv[] = { program, (char[]){ "-d" }, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t caught;
	int error = posix_spawn_file_actions_init(&files);
	if (error)
		return err_system(error, broken, "%s: cannot be started", program);
	posix_spawnattr_init(&how);
	sigemptyset(&caught);
	sigaddset(&caught, SIGINT);
	sigaddset(&caught, SIGTERM);
	sigaddset(&caught, SIGHUP);
	posix_spawnattr_setsigdefault(&how, &caught);
	posix_spawnattr_setpgroup(&how, 0);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
	posix_spawn_file_actions_adddup2(&files, fileno(s->in), STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, fileno(s->out), STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, fileno(s->err), STDERR_FILENO);
	error = posix_spawn(pid, program, &files, &how, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&how);
	return error ? err_system(error, broken, "%s: cannot be started", program) : OK;
}

/* Waits for its end, and brings it about where it takes too long or the program is to stop. */
static struct err await(pid_t pid, int *status)
{
	double end = clock_seconds() + gnuplot_seconds;
	struct err e = OK;
	for (;;) {
		pid_t got = waitpid(pid, status, e.code ? 0 : WNOHANG);
		if (got == pid)
			return e;
		if (got < 0 && errno != EINTR)
			return err_system(errno, NULL, "gnuplot: cannot be waited for");
		if (e.code)
			continue;
		e = stop_error();
		if (!e.code && clock_seconds() > end)
			e = err_failed("`ropewalk plot` leaves the script: does `gnuplot NAME.gp` end?",
				       "gnuplot: had not ended after %g s, and was", gnuplot_seconds);
		if (e.code)
			kill(-pid, SIGKILL);
		else
			nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	}
}

/* The line of what it printed that says what is wrong: it repeats the script's line and points into it before. */
static void complaint(FILE *f, char *line, size_t size)
{
	char read[256];
	*line = '\0';
	rewind(f);
	while (fgets(read, sizeof read, f)) {
		read[strcspn(read, "\n")] = '\0';
		if (read[strspn(read, " \t^")] && (!*line || strstr(read, "line ")))
			snprintf(line, size, "%.200s", read + strspn(read, " \t"));
	}
}

static struct err judge(int status, FILE *f)
{
	static const char hint[] = "`ropewalk plot` leaves the script: `gnuplot NAME.gp` beside pictures says more.";
	char line[256];
	complaint(f, line, sizeof line);
	if (WIFSIGNALED(status))
		return err_failed(hint, "gnuplot: ended by signal %d "
					"(%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (WEXITSTATUS(status))
		return err_failed(hint, "gnuplot: exit code %d: %s", WEXITSTATUS(status), *line ? line : "no message");
	return OK;
}

static struct err take(FILE *f, char **data, size_t *size)
{
	long end = fseek(f, 0, SEEK_END) ? -1 : ftell(f);
	if (end <= 0)
		return err_failed("Is it of version 5.2 or above? `gnuplot --version` says so.",
			"gnuplot: printed nothing");
	rewind(f);
	*data = malloc((size_t)end + 1);
	BUG_IF(!*data, "no memory for a picture of %ld bytes", end);
	*size = fread(*data, 1, (size_t)end, f);
	(*data)[*size] = '\0';
	if (*size == (size_t)end)
		return OK;
	free(*data);
	return err_failed(NULL, "gnuplot: its picture cannot be read");
}

struct err gnuplot_run(const struct text_builder *script, char **picture, size_t *size)
{
	char program[PATH_MAX];
	struct streams s;
	pid_t pid;
	int status;
	if (!find(program))
		return err_failed("Then call this again.", GNUPLOT_MISSING);
	struct err e = open_streams(script, &s);
	if (!e.code)
		e = start(program, &s, &pid);
	if (!e.code)
		e = await(pid, &status);
	if (!e.code)
		e = judge(status, s.err);
	if (!e.code)
		e = take(s.out, picture, size);
	close_streams(&s);
	return e;
}

void gnuplot_text(struct text_builder *b, const char *text)
{
	char line[512];
	text_printable(text, line, sizeof line);
	text_add(b, "'");
	for (const char *s = line; *s; s++)
		text_add(b, *s == '\'' ? "''" : "%c", *s);
	text_add(b, "'");
}
