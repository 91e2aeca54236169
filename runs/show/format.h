#ifndef ROPEWALK_FORMAT_H
#define ROPEWALK_FORMAT_H

/* How tables are printed: the option --format of study, table, decompose. */
enum format { FORMAT_TEXT, FORMAT_MD, FORMAT_CSV, FORMAT_WIDE, FORMAT_JSON, FORMAT_LATEX };
#define FORMAT_CHOICES "text|md|csv|wide|json|latex"
#define FORMAT_HELP "text; md: Markdown; csv: a row a number; wide: CSV, a row a method; json; latex: booktabs"

#endif
