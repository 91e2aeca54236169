#ifndef ROPEWALK_PROGRESS_H
#define ROPEWALK_PROGRESS_H

#include "model/base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Progress on stderr: on a terminal one line that is rewritten, otherwise a line now and then. */

struct progress {
	const char *what;    /* "train", "eval ntk 2048"; kept by reference */
	bool terminal, open; /* open: a line stands unfinished on the terminal */
	double start, shown; /* seconds of clock_seconds */
};

/* Monotonic seconds. */
double clock_seconds(void);

/* "1.4 s", "2 min 05 s", "3 h 12 min" */
const char *duration_text(double seconds, char text[32]);

void progress_start(struct progress *p, const char *what);

/* Shows "WHAT: NOTE, REMAINING left" if enough time has passed since the last; share is 0 .. 1 of the work. */
void progress_show(struct progress *p, double share, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same by tokens, as evaluations report them; `progress` is a struct progress. An error if the work is to stop
 * before its end (stop_error). */
struct err progress_tokens(void *progress, int64_t done, int64_t total);

/* Would progress_show print now? Saves making the note. */
bool progress_due(const struct progress *p);

/* Clears the terminal's line, so that other text can follow. Harmless if there is none. */
void progress_end(struct progress *p);

#endif
