#ifndef ROPEWALK_FORMAT_H
#define ROPEWALK_FORMAT_H

#include "runs/show/records.h"
#include "runs/show/sheet.h"

/* How tables are printed: the option --format of study, table, decompose. */
enum format { FORMAT_TEXT, FORMAT_MD, FORMAT_CSV, FORMAT_WIDE, FORMAT_JSON, FORMAT_LATEX };
#define FORMAT_CHOICES "text|md|csv|wide|json|latex"
#define FORMAT_HELP "text; md: Markdown; csv: a row a number; wide: CSV, a row a method; json; latex: booktabs"

/* Is it made of sheets, for people, and not of records? */
bool format_sheets(enum format format);

/* In a format of sheets: a heading that names a folder, a sheet, and the notes beneath (lines). Append. */
void format_heading(enum format format, const char *folder, struct text_builder *b);
void format_sheet(enum format format, const struct sheet *s, struct text_builder *b);
void format_notes(enum format format, const char *notes, struct text_builder *b);

#endif
