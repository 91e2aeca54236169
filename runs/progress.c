#include "runs/progress.h"

#include "runs/stop.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define TERMINAL_SECONDS 0.2
#define LOG_SECONDS 10.0

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

void progress_start(struct progress *p, const char *what)
{
	*p = (struct progress){ .what = what, .terminal = isatty(STDERR_FILENO) };
	p->start = p->shown = clock_seconds();
}

bool progress_due(const struct progress *p)
{
	return clock_seconds() - p->shown >= (p->terminal ? TERMINAL_SECONDS : LOG_SECONDS);
}

void progress_show(struct progress *p, double share, const char *format, ...)
{
	if (!progress_due(p))
		return;
	p->shown = clock_seconds();
	char note[160], left[64] = "", time[32];
	va_list list;
	va_start(list, format);
	vsnprintf(note, sizeof note, format, list);
	va_end(list);
	if (share > 0 && share <= 1)
		snprintf(left, sizeof left, ", %s left",
			 duration_text((p->shown - p->start) / share * (1 - share), time));
	fprintf(stderr, p->terminal ? "\r%s: %s%s\033[K" : "%s: %s%s\n", p->what, note, left);
	p->open = p->terminal;
	fflush(stderr);
}

struct err progress_tokens(void *progress, int64_t done, int64_t total)
{
	progress_show(progress, (double)done / (double)total, "%" PRId64 " of %" PRId64 " tokens", done, total);
	return done < total ? stop_error() : OK;
}

void progress_end(struct progress *p)
{
	if (p->open)
		fputs("\r\033[K", stderr);
	p->open = false;
}
