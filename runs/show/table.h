#ifndef ROPEWALK_TABLE_H
#define ROPEWALK_TABLE_H

#include "runs/show/results.h"

/* A study's tables. */

/* The groups that get a table: those of the cells' tasks, near, far and all aside. An stb_ds array. */
const char **table_groups(const struct results *r);

/* One group's table, a row per method (encoding, scaling, whatever the axes vary) and a column per multiple: perplexity
 * / accuracy in %, beneath it the least and greatest perplexity over seeds where there are several; then what chance
 * gets. Marks: `!` above 1.1 times the floor at 1x, `-` not computed yet, `n/a` impossible, `diverged`, and a line
 * "k of n seeds" where some are missing. Appends. */
struct err table_text(const struct results *r, const char *group, struct text_builder *b);

/* All groups, near, far and all among them, a row per (method, multiple, group); the columns are in runs/README.md.
 * RFC 4180, but lines end in "\n". Appends. */
void table_csv_header(struct text_builder *b);
void table_csv(const struct results *r, struct text_builder *b);

/* "1.00", "38.6", "760", "1.2e+07": three digits that matter. */
#define SHORT_TEXT 24
const char *perplexity_text(double perplexity, char text[SHORT_TEXT]);
/* "94.5", "100": per cent. */
const char *accuracy_text(double accuracy, char text[SHORT_TEXT]);

/* A row's name: the label of its cells, its scaling where there are several, and [n] for the sections that override.
 * Kept. */
const char *table_label(const struct results *r, int cells, int scaling);

#endif
