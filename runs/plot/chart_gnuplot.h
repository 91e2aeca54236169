#ifndef ROPEWALK_CHART_GNUPLOT_H
#define ROPEWALK_CHART_GNUPLOT_H

#include "runs/plot/chart.h"

/* A chart as a script for gnuplot (5.2 or above) and the table it draws. Colours are those of Okabe and Ito (2008,
 * jfly.uni-koeln.de/color) without yellow, which all kinds of colour vision tell apart; dashes and shapes of points
 * differ as well, for print in grey. Cells are coloured by cividis (Nuñez, Anderton and Renslow 2018,
 * 10.1371/journal.pone.0199239). */

enum picture_format { PICTURE_SVG, PICTURE_PNG, PICTURE_PDF };
#define PICTURE_FORMATS "svg|png|pdf"
const char *picture_suffix(enum picture_format format); /* "svg" */

/* The table: a line of column names, then a line a point, separated by tabs: panel and series (numbers from 1),
 * panel_title, label, the chart's x and y, low, high; with cells also left, right and value. Appends. */
void chart_tsv(const struct chart *c, struct text_builder *b);

/* The script that draws NAME.tsv as NAME.svg (or png, pdf) in the folder it lies in. Appends. */
void chart_script(const struct chart *c, const char *name, enum picture_format format, struct text_builder *b);

/* The same with the table inside, for gnuplot_run: it prints the picture. Appends. */
void chart_whole_script(const struct chart *c, const char *name, enum picture_format format, struct text_builder *b);

#endif
