#ifndef ROPEWALK_TUNED_H
#define ROPEWALK_TUNED_H

#include "runs/config.h"
#include "runs/show/format.h"

/* The table of a fine-tuned run beside its base, from the rows in their folders: the base without scaling and under the
 * one it was tuned with, the tuned run under it, and the control, which was tuned as long without. */

#define TUNED_CONTROL "none" /* the control's folder, in the tuned run's */

/* Is it the folder of a run, and not of a study? */
bool tuned_is_run(const char *folder);

/* Prints it on stdout: perplexity and accuracy a group and multiple; in csv, wide and json the rows themselves. What was
 * not evaluated shows as `-`. `multiples`, eval_seed and sequences are those the tuned run's record names. Errors: no
 * finished run there, or one that was not tuned from this base. */
struct err tuned_print(const char *base, const char *folder, enum format format);

/* Notes in the tuned run's record how it is evaluated. */
struct err tuned_record(const char *folder, const struct config *c, bool control);

#endif
