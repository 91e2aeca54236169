#ifndef ROPEWALK_REPORT_PAGE_H
#define ROPEWALK_REPORT_PAGE_H

#include "runs/plot/subject.h"

/* A page about a study or a run that explains itself: one HTML file in UTF-8 without scripts and without anything from
 * elsewhere. Without gnuplot it has no pictures and says so. Appends. Errors: what tables and pictures cannot be made
 * of. */
struct err report_html(const struct subject *s, struct text_builder *b);

/* The sentences at its beginning (runs/report/summary.c): what is asked, and what came out, in list items. Append. */
void report_question(const struct results *r, struct text_builder *b);
void report_summary(const struct results *r, struct text_builder *b);

/* What the names of encodings and scalings stand for, as <dt> and <dd>. */
void report_glossary(const struct results *r, struct text_builder *b);

#endif
