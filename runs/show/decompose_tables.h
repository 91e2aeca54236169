#ifndef ROPEWALK_DECOMPOSE_TABLES_H
#define ROPEWALK_DECOMPOSE_TABLES_H

#include "runs/run/run_decompose.h"
#include "runs/show/records.h"
#include "runs/show/sheet.h"

/* What was decomposed, as sheets for people and as records for programs. */

/* One method's sheet, a column per multiple: the four forms, perplexity / accuracy in %, beneath them over several
 * seeds the least and greatest perplexity; then the failure in nats with its standard error, and its parts. `group` is
 * an index into the task's groups. sheet_free it. */
void decompose_sheet(const struct decompose_set *set, const struct decomposed *d, int group, struct sheet *out);

/* What the rows mean, in lines of the page's width. Appends. */
void decompose_notes(struct text_builder *b);

/* A record per (method, seed, group, multiple, form), and over all seeds where there are several (`seed` absent); the
 * failure and its parts stand with the form `both`. `group` narrows them to one; NULL: all. Append. */
void decompose_long(const struct decompose_set *set, const char *group, struct records *out);
/* A record per (method, seed, group, multiple), with a column per measure and form. */
void decompose_wide(const struct decompose_set *set, const char *group, struct records *out);

/* The group's index in a task, or -1. */
int decompose_group(const struct task *task, const char *name);

#endif
