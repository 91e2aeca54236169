#ifndef ROPEWALK_SHEET_H
#define ROPEWALK_SHEET_H

#include "model/base/text.h"

/* A table for people, and its renderings as text, Markdown and LaTeX. What programs read is made of records
 * (records.h). Arrays are stb_ds arrays; texts are kept (text_keep). */

#define SHEET_LINES 4
#define SHEET_TEXT 64

struct sheet_cell {
	char line[SHEET_LINES][SHEET_TEXT]; /* "1.02 / 99.6", "(1.00 - 1.05)", ...; a line that a whole row leaves
					       empty is left out */
	double heat; /* 0 good .. 1 bad: its colour on a terminal; NaN: none */
	bool best;   /* not to be told from the best of its column: marked by `*` behind its first line */
};

struct sheet_row {
	const char *label;
	struct sheet_cell *cell; /* [columns] */
	bool ruled;              /* a rule stands above it */
};

struct sheet {
	const char *title;   /* a sentence; what follows a newline is smaller print */
	const char **column; /* heads */
	struct sheet_row *row;
};

/* Adds a row of empty cells (no heat) and returns it, valid until the next. */
struct sheet_row *sheet_add(struct sheet *s, const char *label);
/* The first free line of a cell beneath its first; the last if there is none. */
char *sheet_line(struct sheet_cell *c);
void sheet_free(struct sheet *s);

/* Aligned columns in lines of about PAGE_WIDTH; `colour` paints cells by heat (ANSI, 256 colours). Append. */
void sheet_text(const struct sheet *s, bool colour, struct text_builder *b);
void sheet_markdown(const struct sheet *s, struct text_builder *b);
/* A `table` with booktabs' rules. */
void sheet_latex(const struct sheet *s, struct text_builder *b);

/* Text with what Markdown takes for markup escaped. Appends. */
void markdown_escape(const char *text, struct text_builder *b);

/* Is stdout a terminal that may be coloured? NO_COLOR (no-color.org) and TERM=dumb say no. */
bool sheet_colour(void);

/* "1.00", "38.6", "760", "1.2e+07": three digits that matter. */
#define SHORT_TEXT 24
const char *perplexity_text(double perplexity, char text[SHORT_TEXT]);
/* "2.167": an NLL in bits instead of nats. */
const char *bits_text(double nll, char text[SHORT_TEXT]);
/* A cell's heat: how much of the way from the floor to a guess among V tokens an NLL in nats has gone; from 0 nats where
 * the floor is not known (NaN). */
double nll_heat(double nll, double floor, double V);
/* "94.5", "100": per cent. */
const char *accuracy_text(double accuracy, char text[SHORT_TEXT]);

#endif
