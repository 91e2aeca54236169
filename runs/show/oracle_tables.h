#ifndef ROPEWALK_ORACLE_TABLES_H
#define ROPEWALK_ORACLE_TABLES_H

#include "runs/run/run_oracle.h"
#include "runs/show/records.h"
#include "runs/show/sheet.h"

/* What a fit of the frequencies found. */

/* A row per method, a column per group with scored tokens: perplexity / accuracy, and at the fitted length the share of
 * the oracle's gain in NLL. */
void oracle_sheet(const struct oracle_question *q, const struct oracle_answer *a, int length, struct sheet *out);
/* A row per pair, a column per method: its inverse frequency by the trained one; then the attention factors. */
void oracle_frequencies(const struct oracle_question *q, const struct oracle_answer *a, struct sheet *out);
/* How each fit went, and what the rows mean, in lines of the page's width. Appends. */
void oracle_notes(const struct oracle_question *q, const struct oracle_answer *a, struct text_builder *b);

/* A record per method, length and group (`what` is measure), and per method and pair (pair). Appends. */
void oracle_records(const struct oracle_question *q, const struct oracle_answer *a, struct records *out);

#endif
