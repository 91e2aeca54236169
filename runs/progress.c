#include "runs/progress.h"

#include "runs/stop.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define TERMINAL_SECONDS 0.2
#define PARENT_SECONDS 0.5
#define TERMINAL_BEAT 1.0
/* The thread leaves a log's line to the work if that has one to tell soon. */
#define LATE 1.02
#define LINE 768

double progress_log_seconds = 60;

static const char *speaker = "";
static progress_whole *whole;
static void *whole_data;
static bool to_parent;

/* What was last known, for the thread that repeats it. */
static struct {
	pthread_mutex_t mutex;
	pthread_cond_t end;
	pthread_t thread;
	bool beating, ending;
	int active;          /* progress_start without its progress_end */
	bool terminal, open; /* open: a line stands unfinished on the terminal */
	bool begun;          /* does `told` mean anything? */
	double told, known;  /* seconds of clock_seconds: the last line, the last news */
	char line[LINE];
} last = { .mutex = PTHREAD_MUTEX_INITIALIZER, .end = PTHREAD_COND_INITIALIZER };

double clock_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const char *duration_text(double seconds, char text[32])
{
	if (seconds < 59.95)
		snprintf(text, 32, "%.1f s", seconds);
	else if (seconds < 3600)
		snprintf(text, 32, "%d min %02d s", (int)(seconds / 60), (int)seconds % 60);
	else
		snprintf(text, 32, "%.0f h %02d min", (double)(long)(seconds / 3600), (int)((long)(seconds / 60) % 60));
	return text;
}

const char *duration_about(double seconds, char text[32])
{
	if (seconds < 9.5)
		snprintf(text, 32, "%.0f s", seconds < 1 ? 1 : seconds);
	else if (seconds < 95)
		snprintf(text, 32, "%.0f s", 5 * (double)(long)(seconds / 5 + 0.5));
	else if (seconds < 5400)
		snprintf(text, 32, "%.0f min", seconds / 60);
	else
		snprintf(text, 32, "%.0f h %02ld min", (double)(long)(seconds / 3600),
			 (long)(seconds / 60) % 60 / 5 * 5);
	return text;
}

void progress_speaker(const char *name)
{
	speaker = name;
}

const char *progress_speaker_name(void)
{
	return speaker;
}

void progress_part_of(progress_whole *of, void *data)
{
	whole = of;
	whole_data = data;
}

void progress_to_parent(void)
{
	to_parent = true;
}

/* ---- Telling; with the mutex held ---- */

/* A line that wraps could not be rewritten. */
static int columns(void)
{
	struct winsize size;
	return !ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col > 1 ? size.ws_col - 1 : LINE;
}

static void tell(const char *ago, double now)
{
	char text[2 * LINE];
	last.told = now;
	snprintf(text, sizeof text, "%s%s%s", speaker, last.line, ago);
	if (to_parent)
		fprintf(stderr, "%c%s\n", PROGRESS_MESSAGE, text);
	else if (last.terminal)
		fprintf(stderr, "\r%.*s\033[K", columns(), text);
	else
		fprintf(stderr, "%s\n", text);
	last.open = last.terminal && !to_parent;
	fflush(stderr);
}

static double interval(void)
{
	return to_parent ? PARENT_SECONDS : last.terminal ? TERMINAL_SECONDS : progress_log_seconds;
}

static bool due(double now)
{
	return now - last.told >= interval();
}

/* ---- The thread ---- */

static double beat_interval(void)
{
	return last.terminal ? TERMINAL_BEAT : LATE * progress_log_seconds;
}

static void wait_until(double when)
{
	struct timespec next;
	double seconds = when - clock_seconds();
	seconds = seconds > 0.001 ? seconds : 0.001;
	clock_gettime(CLOCK_REALTIME, &next);
	next.tv_sec += (time_t)seconds;
	next.tv_nsec += (long)(1e9 * (seconds - (double)(time_t)seconds));
	next.tv_sec += next.tv_nsec / 1000000000;
	next.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&last.end, &last.mutex, &next);
}

static void *beat(void *unused)
{
	char ago[64], time[32];
	pthread_mutex_lock(&last.mutex);
	while (!last.ending) {
		wait_until(last.told + beat_interval());
		double now = clock_seconds();
		if (last.ending || now - last.told < beat_interval())
			continue;
		snprintf(ago, sizeof ago, " (%s ago)", duration_text(now - last.known, time));
		tell(ago, now);
	}
	pthread_mutex_unlock(&last.mutex);
	return unused;
}

/* Signals are for the thread that works. Without a thread lines come when the work has some to tell. */
static void beat_start(void)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	last.ending = false;
	last.beating = !pthread_create(&last.thread, NULL, beat, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void beat_stop(void)
{
	pthread_mutex_lock(&last.mutex);
	last.ending = true;
	pthread_cond_signal(&last.end);
	pthread_mutex_unlock(&last.mutex);
	pthread_join(last.thread, NULL);
	last.beating = false;
}

/* ---- What work calls ---- */

#define WHAT_LEAST 12

/* As much of a long name as leaves room on a terminal for what changes. */
static int room_for_what(const char *part, const char *note)
{
	int rest = (int)(strlen(speaker) + (part ? strlen(part) + 2 : 0) + strlen(note) + 2);
	int room = last.terminal && !to_parent ? columns() - rest : 180;
	return room < WHAT_LEAST ? WHAT_LEAST : room > 180 ? 180 : room;
}

static void know(const struct progress *p, const char *note, double now)
{
	char of[120];
	const char *part = whole ? whole(whole_data, of) : NULL;
	int room = room_for_what(part, note);
	bool cut = strlen(p->what) > (size_t)room;
	snprintf(last.line, sizeof last.line, "%s%s%.*s%s%s%s", part ? part : "", part ? ": " : "",
		 cut ? room - 2 : room, p->what, cut ? ".." : "", *note ? ": " : "", note);
	last.known = now;
}

void progress_start(struct progress *p, const char *what)
{
	*p = (struct progress){ .what = what, .start = clock_seconds() };
	pthread_mutex_lock(&last.mutex);
	last.terminal = isatty(STDERR_FILENO);
	if (!last.begun)
		last.told = p->start;
	last.begun = true;
	know(p, "", p->start);
	bool first = !last.active++;
	pthread_mutex_unlock(&last.mutex);
	if (first && !to_parent)
		beat_start();
}

/* News are kept oftener than told, for the thread. */
#define NEWS 10

bool progress_due(const struct progress *p)
{
	(void)p;
	double now = clock_seconds();
	pthread_mutex_lock(&last.mutex);
	bool is = due(now) || now - last.known >= interval() / NEWS;
	pthread_mutex_unlock(&last.mutex);
	return is;
}

void progress_show(struct progress *p, double share, const char *format, ...)
{
	char note[300], text[364], left[64] = "", time[32];
	double now = clock_seconds();
	if (!progress_due(p))
		return;
	va_list list;
	va_start(list, format);
	vsnprintf(note, sizeof note, format, list);
	va_end(list);
	if (!whole && share > 0 && share <= 1)
		snprintf(left, sizeof left, ", %s left", duration_text((now - p->start) / share * (1 - share), time));
	snprintf(text, sizeof text, "%s%s", note, left);
	pthread_mutex_lock(&last.mutex);
	know(p, text, now);
	if (due(now))
		tell("", now);
	pthread_mutex_unlock(&last.mutex);
}

struct err progress_tokens(void *progress, int64_t done, int64_t total)
{
	progress_show(progress, (double)done / (double)total, "%" PRId64 " of %" PRId64 " tokens", done, total);
	return done < total ? stop_error() : OK;
}

void progress_clear(void)
{
	pthread_mutex_lock(&last.mutex);
	if (last.open)
		fputs("\r\033[K", stderr);
	last.open = false;
	pthread_mutex_unlock(&last.mutex);
}

void progress_end(struct progress *p)
{
	(void)p;
	pthread_mutex_lock(&last.mutex);
	bool end = !--last.active && last.beating;
	pthread_mutex_unlock(&last.mutex);
	if (end)
		beat_stop();
	progress_clear();
}
