#ifndef ROPEWALK_PRINT_H
#define ROPEWALK_PRINT_H

#include "runs/study/study_folder.h"

/* How tables are printed: the option --format. */
enum format { FORMAT_TEXT, FORMAT_CSV };
#define FORMAT_CHOICES "text|csv"

/* The tables of the study in `folder` on stdout. In text, notes stand beneath; in CSV, warnings go to stderr, and
 * `first` says whether this is the first study, so that the header stands once. */
struct err print_study(const char *folder, const struct study *s, const struct grid *g, enum format format, bool first);

#endif
