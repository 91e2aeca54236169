#ifndef ROPEWALK_TERMINAL_H
#define ROPEWALK_TERMINAL_H

#include "runs/plot/chart.h"

/* A chart as characters: each point of a line is a letter, of a reference a digit, `&` where several meet; dots lead
 * from point to point. */

struct terminal {
	int width;    /* characters a line, at least TERMINAL_LEAST */
	bool unicode; /* frames and dots beyond ASCII */
	bool colour;
};
#define TERMINAL_LEAST 40

/* What stdout is: as wide as COLUMNS says, else the terminal, else 80; unicode where LC_ALL, LC_CTYPE or LANG, the
 * first that is set, says UTF-8; colour where tables have it (sheet_colour). */
struct terminal terminal_of_stdout(void);

/* Its panels, each with its key; cells have no form in characters and are left out. Appends. */
void terminal_chart(const struct chart *c, const struct terminal *t, struct text_builder *b);

/* On stdout. */
void terminal_print(const struct chart *c);

#endif
