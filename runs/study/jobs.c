#include "runs/study/jobs.h"

#include "model/base/memory.h"
#include "model/base/stb.h"
#include "model/base/threads.h"
#include "runs/executable.h"
#include "runs/progress.h"
#include "runs/run/run_folder.h"
#include "runs/stop.h"
#include "runs/study/cores.h"
#include "runs/study/study_work.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define LINE 2048

struct worker {
	int number;      /* from 1 */
	pid_t pid;       /* 0: not there */
	int from;        /* its stderr */
	char line[LINE]; /* what of it has come, up to `size` */
	size_t size;
	char said[160];  /* its last line of progress */
};

struct crew {
	struct plan *plan;
	struct worker *worker; /* [count] */
	int count;
	int begun;             /* cells */
	bool *begun_with;      /* [cells] */
	double start, last;    /* seconds of clock_seconds: of all, of the last cell that was over */
	double done;           /* cell_work of cells that are over */
	bool told_to_stop;
};

/* ---- How many ---- */

static int by_size(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	return (x < y) - (x > y);
}

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* Of all together. Where a process has but one, as without OpenMP, several still use several cores. */
static int all_threads(const struct plan *plan)
{
	long given = (long)plan->job->threads, online = cores_count();
	if (threads_openmp())
		return threads_count();
	online = online > 0 ? online : sysconf(_SC_NPROCESSORS_ONLN);
	return (int)(given > 0 ? given : online > 0 ? online : 1);
}

/* What a process takes beside its model. */
#define PROCESS_BYTES ((size_t)64 << 20)

/* So many of the largest models fit side by side. */
static int fit_in_memory(const struct plan *plan)
{
	size_t *bytes = NULL, sum = 0, have = memory_available();
	int fit = 0;
	for (int i = 0; i < arrlen(plan->cell); i++)
		if (!plan->cell[i].foreign && cell_has_work(&plan->cell[i]))
			arrput(bytes, plan->cell[i].bytes);
	if (bytes)
		qsort(bytes, arrlenu(bytes), sizeof *bytes, by_size);
	while (fit < arrlen(bytes) && (sum += bytes[fit] + PROCESS_BYTES) <= have)
		fit++;
	arrfree(bytes);
	return fit;
}

static int with_work(const struct plan *plan)
{
	int count = 0;
	for (int i = 0; i < arrlen(plan->cell); i++)
		count += !plan->cell[i].foreign && cell_has_work(&plan->cell[i]);
	return count;
}

int jobs_count(const struct plan *plan)
{
	int asked = plan->job->jobs;
	if (plan->job->team.worker || asked < 2)
		return 1;
	int threads = all_threads(plan), cells = with_work(plan), memory = fit_in_memory(plan);
	int jobs = least(least(asked, threads), least(cells, memory));
	jobs = jobs > 1 ? jobs : 1;
	const char *why = jobs == cells	    ? "there are no more models with work" :
			  jobs == threads ? "there are no more threads" : "no more fit into memory";
	if (cells && jobs < asked)
		fprintf(stderr, "--jobs=%d: %d at once: %s\n", asked, jobs, why);
	return jobs;
}

/* ---- Starting ---- */

/* The environment, and TEAM_WORKER. */
static char **worker_environment(const struct crew *c, int index, int threads)
{
	char **envp = NULL, text[256];
	for (char **e = environ; *e; e++)
		if (strncmp(*e, TEAM_WORKER "=", sizeof TEAM_WORKER))
			arrput(envp, *e);
	snprintf(text, sizeof text, TEAM_WORKER "=%d/%d %d %s", index, c->count, threads, c->plan->job->token);
	arrput(envp, (char *)(uintptr_t)text_keep(text));
	arrput(envp, NULL);
	return envp;
}

static char **worker_arguments(const struct crew *c)
{
	static char name[] = "ropewalk";
	char **argv = NULL;
	arrput(argv, name);
	for (char **a = c->plan->job->argv; *a; a++)
		arrput(argv, *a);
	arrput(argv, NULL);
	return argv;
}

/* In a process group of its own, so that a terminal's signals reach it through this process alone. */
static int spawn(const char *path, char **argv, char **envp, int to, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&files, to, STDERR_FILENO);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
	posix_spawnattr_setpgroup(&attributes, 0);
	int error = posix_spawn(pid, path, &files, &attributes, argv, envp);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	return error;
}

static struct err start_worker(struct crew *c, struct worker *w, const char *path, int first_core, int threads)
{
	int end[2];
	if (pipe(end))
		return err_system(errno, NULL, "no pipe for process %d of %d", w->number, c->count);
	fcntl(end[0], F_SETFD, FD_CLOEXEC);
	fcntl(end[1], F_SETFD, FD_CLOEXEC);
	char **argv = worker_arguments(c), **envp = worker_environment(c, w->number - 1, threads);
	bool held = cores_count() >= all_threads(c->plan) && cores_hold(first_core, threads);
	int error = spawn(path, argv, envp, end[1], &w->pid);
	if (held)
		cores_release();
	close(end[1]);
	arrfree(envp);
	arrfree(argv);
	w->from = end[0];
	if (!error)
		return OK;
	close(end[0]);
	w->pid = 0;
	return err_system(error, "Leave --jobs out.", "%s: cannot be started", path);
}

static struct err start_all(struct crew *c)
{
	char path[PATH_MAX];
	int threads = all_threads(c->plan), core = 0;
	TRY(executable_path(path));
	for (int i = 0; i < c->count; i++) {
		int share = threads / c->count + (i < threads % c->count);
		c->worker[i].number = i + 1;
		TRY(start_worker(c, &c->worker[i], path, core, share));
		core += share;
	}
	return OK;
}

/* ---- What they say ---- */

static const char *standing(void *crew, char text[120])
{
	const struct crew *c = crew;
	const struct cell_plan *cell = c->plan->cell;
	char time[32];
	int over = 0, all = 0;
	double left = 0;
	for (int i = 0; i < arrlen(cell); i++) {
		all += !cell[i].foreign;
		over += !cell[i].foreign && cell[i].over;
		left += cell[i].over ? 0 : cell_work(&cell[i]);
	}
	int n = snprintf(text, 120, "%d of %d done", over, all);
	left = study_seconds_left(left, c->done, c->last - c->start) - (clock_seconds() - c->last);
	if (left > 0)
		snprintf(text + n, 120 - (size_t)n, ", about %s left", duration_about(left, time));
	return text;
}

/* A cell that one has begun with: the second time it is another's that has died. */
static void cell_begun(struct crew *c, const struct worker *w, int index)
{
	c->begun += !c->begun_with[index];
	c->begun_with[index] = true;
	progress_clear();
	fprintf(stderr, "[%d] %d of %d: %s\n", w->number, c->begun, with_work(c->plan),
		run_folder_name(c->plan->cell[index].path));
}

static void cell_over(struct crew *c, int index)
{
	struct cell_plan *p = &c->plan->cell[index];
	c->last = p->over ? c->last : clock_seconds();
	c->done += p->over ? 0 : cell_work(p);
	p->over = true;
}

static void hear_message(struct crew *c, struct worker *w, const char *message)
{
	int index = -1;
	char letter = *message;
	if (letter != STUDY_BEGUN && letter != STUDY_OVER) {
		snprintf(w->said, sizeof w->said, "%.150s", message);
		return;
	}
	if (sscanf(message + 1, "%d", &index) != 1 || index < 0 || index >= arrlen(c->plan->cell))
		return;
	if (letter == STUDY_BEGUN)
		cell_begun(c, w, index);
	else
		cell_over(c, index);
}

static void hear_line(struct crew *c, struct worker *w, const char *line)
{
	if (*line == PROGRESS_MESSAGE) {
		hear_message(c, w, line + 1);
		return;
	}
	progress_clear();
	fprintf(stderr, "[%d] %s\n", w->number, line);
}

/* Whole lines; one that is longer than the buffer in pieces. */
static void hear_lines(struct crew *c, struct worker *w)
{
	char *start = w->line, *end = w->line + w->size, *newline;
	while ((newline = memchr(start, '\n', (size_t)(end - start)))) {
		*newline = '\0';
		hear_line(c, w, start);
		start = newline + 1;
	}
	w->size = (size_t)(end - start);
	memmove(w->line, start, w->size);
	if (w->size < LINE - 1)
		return;
	w->line[w->size] = '\0';
	hear_line(c, w, w->line);
	w->size = 0;
}

/* ---- Their end ---- */

static void tell_end(const struct crew *c, const struct worker *w, int status)
{
	bool others = false;
	for (int i = 0; i < c->count; i++)
		others |= c->worker[i].pid != 0;
	progress_clear();
	if (WIFSIGNALED(status))
		fprintf(stderr, "ropewalk: process %d of %d was ended by signal %d (%s)\n  %s\n", w->number, c->count,
			WTERMSIG(status), strsignal(WTERMSIG(status)), others ? "The others go on with its model." :
			"Start again: what it has saved is used.");
	else if (WEXITSTATUS(status) > ERR_USAGE && !c->told_to_stop)
		fprintf(stderr, "ropewalk: process %d of %d ended with exit code %d\n", w->number, c->count,
			WEXITSTATUS(status));
}

static void end_worker(struct crew *c, struct worker *w)
{
	int status = 0;
	close(w->from);
	while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
		;
	w->pid = 0;
	w->said[0] = '\0';
	tell_end(c, w, status);
}

static void hear(struct crew *c, struct worker *w)
{
	ssize_t got = read(w->from, w->line + w->size, LINE - 1 - w->size);
	if (got > 0) {
		w->size += (size_t)got;
		hear_lines(c, w);
	} else if (!got || (errno != EINTR && errno != EAGAIN)) {
		end_worker(c, w);
	}
}

static void pass_signal_on(struct crew *c)
{
	struct err stop = stop_error();
	if (!stop.code || c->told_to_stop)
		return;
	c->told_to_stop = true;
	for (int i = 0; i < c->count; i++)
		if (c->worker[i].pid)
			kill(c->worker[i].pid, (int)stop.code - ERR_STOPPED);
}

/* ---- All together ---- */

#define POLL_MILLISECONDS 200

/* On a terminal's line names are cut, so that those of several processes have room. */
#define NAME_SHOWN 14

static int add_said(const struct worker *w, bool first, bool brief, char *text, size_t room)
{
	const char *colon = strchr(w->said, ':');
	bool cut = brief && colon && colon - w->said > NAME_SHOWN;
	return snprintf(text, room, "%s[%d] %.*s%s", first ? "" : "; ", w->number, cut ? NAME_SHOWN : 160, w->said,
			cut ? colon : "");
}

static void show(const struct crew *c, struct progress *p)
{
	char text[280] = "";
	size_t size = 0;
	bool brief = isatty(STDERR_FILENO);
	if (!progress_due(p))
		return;
	for (int i = 0; i < c->count && size < sizeof text; i++)
		if (*c->worker[i].said)
			size += (size_t)add_said(&c->worker[i], !size, brief, text + size, sizeof text - size);
	progress_show(p, 0, "%s", text);
}

static bool listen(struct crew *c)
{
	struct pollfd *from = NULL;
	int *index = NULL;
	for (int i = 0; i < c->count; i++)
		if (c->worker[i].pid) {
			arrput(from, ((struct pollfd){ .fd = c->worker[i].from, .events = POLLIN }));
			arrput(index, i);
		}
	int count = (int)arrlen(from);
	bool any = count && poll(from, (nfds_t)count, POLL_MILLISECONDS) > 0;
	for (int i = 0; any && i < count; i++)
		if (from[i].revents)
			hear(c, &c->worker[index[i]]);
	arrfree(from);
	arrfree(index);
	return count;
}

static void supervise(struct crew *c)
{
	struct progress p;
	char what[40];
	snprintf(what, sizeof what, "%d at once", c->count);
	progress_part_of(standing, c);
	progress_start(&p, what);
	for (bool there = true; there;) {
		pass_signal_on(c);
		show(c, &p);
		there = listen(c);
	}
	progress_end(&p);
	progress_part_of(NULL, NULL);
}

/* What has not come to its end, by the folder as it is now. */
static struct err count_failed(const struct plan *plan, int *failed)
{
	struct plan now = { .job = plan->job };
	struct err e = plan_make(&now);
	*failed = 0;
	for (int i = 0; i < arrlen(now.cell) && !e.code; i++) {
		const struct cell_plan *p = &now.cell[i];
		*failed += !p->foreign && (p->damaged.code || p->diverged || cell_has_work(p));
	}
	plan_free(&now);
	return e;
}

struct err jobs_work(struct plan *plan, int jobs, int *failed)
{
	double now = clock_seconds();
	struct crew c = { .plan = plan, .count = jobs, .start = now, .last = now };
	c.worker = calloc((size_t)jobs, sizeof *c.worker);
	c.begun_with = calloc((size_t)arrlen(plan->cell) + 1, sizeof *c.begun_with);
	BUG_IF(!c.worker || !c.begun_with, "no memory for %d processes", jobs);
	struct err e = start_all(&c);
	if (e.code) {
		for (int i = 0; i < jobs; i++)
			if (c.worker[i].pid)
				kill(c.worker[i].pid, SIGTERM);
		c.told_to_stop = true;
	}
	supervise(&c);
	free(c.worker);
	free(c.begun_with);
	TRY(e);
	TRY(stop_error());
	return count_failed(plan, failed);
}
