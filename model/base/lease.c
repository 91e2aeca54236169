#include "lease.h"

#include "io.h"
#include "io_seam.h"
#include "process.h"
#include "stb.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int lease_beat = LEASE_BEAT * 1000;

#define TOKEN_TEXT 33
#define CONTENT_MOST 4096 /* bytes of a lease's file that are looked at */

struct lease {
	char *folder, *path;
	char token[TOKEN_TEXT];
	int times; /* taken by this process */
};

/* What a lease's file says. */
struct claim {
	struct process holder;
	char token[TOKEN_TEXT]; /* "" in a file that cannot be read as a lease */
	struct stat status;
};

static struct {
	struct lease **lease; /* stb_ds array */
	pthread_mutex_t mutex;
	pthread_cond_t end;
	pthread_t thread;
	bool beating, ending;
} held = { .mutex = PTHREAD_MUTEX_INITIALIZER, .end = PTHREAD_COND_INITIALIZER };

/* ---- The file ---- */

static void claim_print(const struct process *p, const char *token, struct text_builder *b)
{
	process_print(p, b);
	text_add(b, "token = %s\n", token);
}

static void claim_parse(const char *text, struct claim *c)
{
	process_parse(text, &c->holder);
	const char *token = strstr(text, "token = ");
	snprintf(c->token, sizeof c->token, "%s", "");
	if (token && strcspn(token + 8, "\n") == TOKEN_TEXT - 1)
		snprintf(c->token, sizeof c->token, "%s", token + 8);
}

/* false with errno, ELOOP if it is no regular file. Not through the seam: heartbeats come at any time, and what they do
 * is no change of anything that is kept. */
static bool claim_read(const char *path, struct claim *c)
{
	char text[CONTENT_MOST];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	if (fd < 0)
		return false;
	bool file = !fstat(fd, &c->status) && S_ISREG(c->status.st_mode);
	ssize_t size = file ? read(fd, text, sizeof text - 1) : -1;
	int error = file ? errno : ELOOP;
	close(fd);
	errno = error;
	if (size < 0)
		return false;
	text[size] = '\0';
	claim_parse(text, c);
	return true;
}

/* ---- Staleness ---- */

static void holder_text(const struct claim *c, char text[LEASE_HOLDER])
{
	if (*c->token)
		snprintf(text, LEASE_HOLDER, "%.100s, process %ld", c->holder.host, c->holder.pid);
	else
		snprintf(text, LEASE_HOLDER, "an unknown process");
}

static bool stale(const struct claim *c, time_t now)
{
	switch (*c->token ? process_alive(&c->holder) : PROCESS_UNKNOWN) {
	case PROCESS_ALIVE:
		/* What this process has is known (lease_held): this one it could not remove. */
		return c->holder.pid == (long)getpid();
	case PROCESS_DEAD:
		return true;
	default:
		return now - c->status.st_mtime > LEASE_STALE;
	}
}

/* A time in the future, as after a clock was set back, would never age. It begins to; a holder that lives touches it
 * again. */
static void put_in_present(const char *path, const struct claim *c, time_t now)
{
	if (c->status.st_mtime > now + LEASE_STALE)
		utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
}

/* ---- Removal ---- */

enum { ATTEMPTS = 100 };

static void pause_briefly(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* false if another process keeps the lock, though it takes no time to remove a file: it may be stopped. */
static bool lock_file(int fd)
{
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		if (!flock(fd, LOCK_EX | LOCK_NB) || (errno != EWOULDBLOCK && errno != EINTR))
			return true;
		pause_briefly();
	}
	return false;
}

/* Network file systems lock what is open for writing alone. */
static int open_to_lock(const char *path)
{
	int flags = O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW;
	int fd = open(path, O_RDWR | flags);
	return fd < 0 && errno == EACCES ? open(path, O_RDONLY | flags) : fd;
}

static bool same_file(int fd, const struct stat *other)
{
	struct stat status;
	return !fstat(fd, &status) && status.st_dev == other->st_dev && status.st_ino == other->st_ino;
}

/* Removes the claim if it is still there, without a heartbeat since; false with errno. */
static bool remove_claim(const char *path, const struct claim *c)
{
	struct claim now;
	int fd = open_to_lock(path);
	if (fd < 0)
		return errno == ENOENT;
	bool there = lock_file(fd) && claim_read(path, &now) && same_file(fd, &now.status) &&
		     !strcmp(now.token, c->token) && now.status.st_mtime == c->status.st_mtime;
	bool done = !there || seam_unlink(path) || errno == ENOENT;
	int error = errno;
	close(fd);
	errno = error;
	return done;
}

/* ---- The heartbeat ---- */

static bool mine(const struct lease *l, struct claim *c)
{
	return claim_read(l->path, c) && !strcmp(c->token, l->token);
}

static void beat(const struct lease *l)
{
	struct claim c;
	if (mine(l, &c))
		utimensat(AT_FDCWD, l->path, NULL, 0);
}

static void *beat_all(void *unused)
{
	struct timespec next;
	pthread_mutex_lock(&held.mutex);
	while (!held.ending) {
		clock_gettime(CLOCK_REALTIME, &next);
		next.tv_sec += lease_beat / 1000;
		next.tv_nsec += lease_beat % 1000 * 1000000L;
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		if (pthread_cond_timedwait(&held.end, &held.mutex, &next) != ETIMEDOUT)
			continue;
		for (int i = 0; i < arrlen(held.lease); i++)
			beat(held.lease[i]);
	}
	pthread_mutex_unlock(&held.mutex);
	return unused;
}

/* Signals are for the thread that works. Without a thread the claim ages, which is noticed by other hosts alone. */
static void heart_start(void)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	held.ending = false;
	held.beating = !pthread_create(&held.thread, NULL, beat_all, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void heart_stop(void)
{
	pthread_mutex_lock(&held.mutex);
	held.ending = true;
	pthread_cond_signal(&held.end);
	pthread_mutex_unlock(&held.mutex);
	pthread_join(held.thread, NULL);
	held.beating = false;
}

/* ---- Taking and giving up ---- */

static void lease_free(struct lease *l)
{
	if (!l)
		return;
	free(l->folder);
	free(l->path);
	free(l);
}

static struct lease *lease_held(const char *folder)
{
	for (int i = 0; i < arrlen(held.lease); i++)
		if (io_same(held.lease[i]->folder, folder))
			return held.lease[i];
	return NULL;
}

static void lease_keep(struct lease *l)
{
	pthread_mutex_lock(&held.mutex);
	arrput(held.lease, l);
	pthread_mutex_unlock(&held.mutex);
	if (!held.beating)
		heart_start();
}

/* A complete file under a name of its own; false with errno. `now`: the file system's clock. */
static bool prepare(const char *path, const char *token, time_t *now)
{
	struct text_builder b = { 0 };
	struct process self = process_self();
	struct stat status;
	claim_print(&self, token, &b);
	int fd = seam_open(path, O_WRONLY | O_CREAT | O_EXCL);
	bool good = fd >= 0 && seam_write(fd, path, b.data, b.size) && !fstat(fd, &status);
	int error = errno;
	if (fd >= 0 && !seam_close(fd, path) && good) {
		error = errno;
		good = false;
	}
	text_builder_free(&b);
	if (!good && fd >= 0)
		seam_unlink(path);
	*now = good ? status.st_mtime : 0;
	errno = error;
	return good;
}

/* Some file systems know no links; there the file is born empty, and counts as fresh until it has aged. */
static bool no_links(int error)
{
	return error == EPERM || error == ENOTSUP || error == ENOSYS || error == EMLINK || error == EXDEV;
}

static bool claim_place(const char *prepared, const struct lease *l)
{
	time_t now;
	if (seam_link(prepared, l->path))
		return true;
	return no_links(errno) && prepare(l->path, l->token, &now);
}

static struct err unreadable(int error, const char *path)
{
	if (error == ELOOP || error == EISDIR)
		return err_usage("Move it away: its name is that of a process's claim on the folder.",
				 "%.400s: cannot be read: it is not a file", path);
	return io_failure(error, path, "cannot be read");
}

/* false without an error: `holder` lives. */
static bool contend(const char *prepared, const struct lease *l, time_t now, char holder[LEASE_HOLDER],
		    struct err *e)
{
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		struct claim c = { 0 };
		if (claim_place(prepared, l))
			return true;
		int error = errno;
		/* A holder that swept took the file for a dead process's. */
		if (error == ENOENT && prepare(prepared, l->token, &now))
			continue;
		if (error != EEXIST) {
			*e = io_failure(error, l->path, "cannot be made");
			return false;
		}
		if (!claim_read(l->path, &c)) {
			if (errno == ENOENT)
				continue;
			*e = unreadable(errno, l->path);
			return false;
		}
		holder_text(&c, holder);
		if (!stale(&c, now)) {
			put_in_present(l->path, &c, now);
			return false;
		}
		if (!remove_claim(l->path, &c)) {
			*e = io_failure(errno, l->path, "is left by a dead process and cannot be removed");
			return false;
		}
	}
	return false;
}

/* Does a temporary belong to a process that is no more, or that makes it again? Under the claim nobody but its holder
 * writes by io_write, and that has not begun; a living process of this machine that wrote without one is spared. */
static bool left_behind(const char *path, const char *name, time_t now)
{
	struct claim c;
	struct process writer = process_self();
	unsigned counter;
	*writer.started = '\0';
	if (sscanf(name, ".ropewalk-%ld-%u.tmp", &writer.pid, &counter) == 2)
		return writer.pid == getpid() || process_alive(&writer) == PROCESS_DEAD;
	return claim_read(path, &c) && (!*c.token || stale(&c, now));
}

/* What cannot be removed harms nobody. */
static void sweep(const char *folder, time_t now)
{
	char **name;
	int count;
	if (io_list(folder, &name, &count).code)
		return;
	for (int i = 0; i < count; i++) {
		char *path = io_join(folder, name[i]);
		if (!fnmatch(IO_TEMPORARY, name[i], 0) && left_behind(path, name[i], now))
			seam_unlink(path);
		free(path);
	}
	io_names_free(name, count);
}

static struct err claim_folder(struct lease *l, bool *taken, char holder[LEASE_HOLDER])
{
	char name[80];
	time_t now;
	struct err e = OK;
	snprintf(name, sizeof name, ".ropewalk-%s.tmp", l->token);
	char *prepared = io_join(l->folder, name);
	if (prepare(prepared, l->token, &now)) {
		*taken = contend(prepared, l, now, holder, &e);
		seam_unlink(prepared);
		if (*taken)
			sweep(l->folder, now);
	} else {
		e = io_failure(errno, l->folder, "cannot be claimed for this process");
	}
	free(prepared);
	return e;
}

struct err lease_try(const char *folder, struct lease **out, char holder[LEASE_HOLDER])
{
	bool taken = false;
	*out = lease_held(folder);
	if (*out) {
		(*out)->times++;
		return OK;
	}
	struct lease *l = calloc(1, sizeof *l);
	if (!l)
		return err_failed(NULL, "%.400s: no memory for a claim", folder);
	l->folder = strdup(folder);
	l->path = io_join(folder, LEASE_FILE);
	l->times = 1;
	process_token(l->token, sizeof l->token);
	struct err e = l->folder ? claim_folder(l, &taken, holder) : err_failed(NULL, "no memory for a path");
	if (taken)
		lease_keep(l);
	else
		lease_free(l);
	*out = taken ? l : NULL;
	return e;
}

struct err lease_take(const char *folder, struct lease **out)
{
	char holder[LEASE_HOLDER];
	TRY(lease_try(folder, out, holder));
	if (*out)
		return OK;
	return err_failed("Wait until it has finished, or choose another folder. If it is no more, remove `" LEASE_FILE
			  "` in the folder.",
			  "%.400s: another process of ropewalk is at work there: %s", folder, holder);
}

static struct err gone(const struct lease *l)
{
	return err_failed("Start again when it is clear who has removed it: what was saved is used.",
			  "%.400s: is gone, and with it the claim of this process on the folder", l->path);
}

struct err lease_check(const struct lease *l)
{
	struct claim c;
	if (!claim_read(l->path, &c))
		return errno == ENOENT ? gone(l) : unreadable(errno, l->path);
	if (!strcmp(c.token, l->token))
		return OK;
	return err_failed("It goes on from what was saved; wait for it, or start again later.",
			  "%.400s: another process has taken the folder over while this one stood still", l->folder);
}

void lease_release(struct lease *l)
{
	struct claim c;
	if (!l || --l->times)
		return;
	pthread_mutex_lock(&held.mutex);
	ptrdiff_t i = 0;
	while (held.lease[i] != l)
		i++;
	arrdel(held.lease, i);
	bool last = arrlen(held.lease) == 0;
	if (last)
		arrfree(held.lease);
	pthread_mutex_unlock(&held.mutex);
	if (last && held.beating)
		heart_stop();
	if (mine(l, &c))
		remove_claim(l->path, &c);
	lease_free(l);
}

static bool has_leavings(const char *folder)
{
	char **name;
	int count;
	bool found = false;
	if (io_list(folder, &name, &count).code)
		return false;
	for (int i = 0; i < count; i++)
		found |= !strcmp(name[i], LEASE_FILE) || !fnmatch(IO_TEMPORARY, name[i], 0);
	io_names_free(name, count);
	return found;
}

void lease_tidy(const char *folder)
{
	char holder[LEASE_HOLDER];
	struct lease *l;
	if (has_leavings(folder) && !lease_try(folder, &l, holder).code)
		lease_release(l);
}
