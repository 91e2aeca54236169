#ifndef ROPEWALK_PARTS_TABLES_H
#define ROPEWALK_PARTS_TABLES_H

#include "runs/run/run_parts.h"
#include "runs/show/records.h"
#include "runs/show/sheet.h"

/* What was found of a run's parts, as a sheet for people and as records for programs. */

/* A row per setting whose pairs inside turn as `kind` (PARTS_ALL_KINDS: any), setting 0 first; a column per group with
 * scored tokens: for shares accuracy and the share of the way, else perplexity / accuracy and the change of accuracy,
 * with what a pair is (wavelength, rotations in training) and which groups it serves. sheet_free it. */
#define PARTS_ALL_KINDS (-1)
void parts_sheet(const struct parts_question *q, const struct parts_answers *a, int kind, struct sheet *out);

/* A record per setting and group. Appends; or prints them. */
void parts_records(const struct parts_question *q, const struct parts_answers *a, struct records *out);
void parts_print(const struct parts_question *q, const struct parts_answers *a, bool json);

/* ---- What the tables of an examined run have in common ---- */

/* "rope-101: rope, recall, seed 101", the line beneath a title: what was measured, by which protocol. Append. */
void examined_name(const struct examined *x, struct text_builder *b);
void examined_protocol(const struct examined *x, struct text_builder *b);

/* What every record begins with. */
void examined_begin(const struct examined *x, const char *scaling, struct records *out);
/* Group, scored and the measures of a cell; absent where nothing was scored. */
void examined_cell(const char *group, const struct eval_cell *c, struct records *out);

/* "1.02 / 99.6", with its colour. */
void examined_fill(const struct examined *x, const struct eval_cell *c, struct sheet_cell *out);

/* Tokens of a turn, and turns within train_length; a pair that stands still has neither (false). */
bool pair_turns(const struct examined *x, double inv_freq, double *wavelength, double *rotations);

/* "81 +- 2 %", "n/a: same", "n/a: noise". */
const char *share_text(const struct paired_share *s, char text[SHEET_TEXT]);

#endif
