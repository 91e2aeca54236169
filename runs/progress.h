#ifndef ROPEWALK_PROGRESS_H
#define ROPEWALK_PROGRESS_H

#include "model/base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Progress on stderr: on a terminal one line that is rewritten, otherwise a line a minute, whatever the work consists
 * of. While no news come a thread repeats what was last known, so that long work is told from a program that hangs. */

struct progress {
	const char *what; /* "train", "eval ntk 2048"; kept by reference */
	double start;     /* seconds of clock_seconds */
};

/* Tests set this: seconds between the lines where there is no terminal. */
extern double progress_log_seconds;

/* Who speaks, before each line of this process: "[rank 1 of 3] "; "" is nobody. Kept by reference. */
void progress_speaker(const char *name);
const char *progress_speaker_name(void);

/* What all that is shown is part of, "2 of 5, about 3 min left": it stands before WHAT; NULL: nothing. It is called by
 * the thread that shows progress. */
typedef const char *progress_whole(void *data, char text[120]);
void progress_part_of(progress_whole *whole, void *data);

/* From now on lines go to the process that has started this one and reads its stderr: each begins with PROGRESS_MESSAGE,
 * which sets it apart from errors and warnings. */
#define PROGRESS_MESSAGE '\r'
void progress_to_parent(void);

/* Monotonic seconds. */
double clock_seconds(void);

/* "1.4 s", "2 min 05 s", "3 h 12 min" */
const char *duration_text(double seconds, char text[32]);

/* The same, rounded as an estimate is: "9 s", "2 min", "3 h 10 min". */
const char *duration_about(double seconds, char text[32]);

void progress_start(struct progress *p, const char *what);

/* Shows "WHOLE: WHAT: NOTE, REMAINING left" if enough time has passed since the last; share is 0 .. 1 of the work. */
void progress_show(struct progress *p, double share, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same by tokens, as evaluations report them; `progress` is a struct progress. An error if the work is to stop
 * before its end (stop_error). */
struct err progress_tokens(void *progress, int64_t done, int64_t total);

/* Would progress_show print now, or keep the note for the thread? Saves making it. */
bool progress_due(const struct progress *p);

/* Clears the terminal's line, so that other text can follow. Harmless if there is none. */
void progress_clear(void);

/* The same, and ends what progress_start began. */
void progress_end(struct progress *p);

#endif
