#ifndef ROPEWALK_GNUPLOT_H
#define ROPEWALK_GNUPLOT_H

#include "model/base/text.h"

/* Running gnuplot (www.gnuplot.info), which is a program and may be missing. */

/* What to install where it is. */
#define GNUPLOT_MISSING "gnuplot is not installed (apt install gnuplot-nox, or brew install gnuplot)"

bool gnuplot_there(void);

/* Runs a script and gives what it prints while no output is set: the picture, in fresh memory; free() it. Script and
 * picture go through files without a name, so that nothing is left whatever happens. Errors: there is no gnuplot, it
 * complains (its first line is quoted), a signal ended it, it takes longer than gnuplot_seconds and is ended, it prints
 * nothing; or the program is to stop (stop_error). */
struct err gnuplot_run(const struct text_builder *script, char **picture, size_t *size);

extern double gnuplot_seconds; /* 60; tests set it */

/* Text as a literal of a script: in single quotes, where nothing is substituted, and one line. Appends. */
void gnuplot_text(struct text_builder *b, const char *text);

#endif
