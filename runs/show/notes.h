#ifndef ROPEWALK_NOTES_H
#define ROPEWALK_NOTES_H

#include "runs/show/results.h"

/* What is printed beneath a study's tables: what must be known to read them. */

/* "warning: ..." paragraphs: models above the floor at 1x, cells that diverged, cells computed by different versions, a
 * ramp that leaves nothing unscaled. Appends, nothing if all is well. */
void notes_warnings(const struct results *r, struct text_builder *b);

/* Warnings, footnotes of sections, protocol, scored tokens and sequences, seeds, factor rules, the trained length on
 * the ramp, paired orders, the caution, versions, memory, wall time, command. Appends. */
void notes_text(const struct results *r, struct text_builder *b);

/* The same in runs/show/method_notes.c: about the scalings alone. */
void notes_factors(const struct results *r, struct text_builder *b);
void notes_ramp(const struct results *r, struct text_builder *b);
void notes_ramp_warnings(const struct results *r, struct text_builder *b);

#endif
