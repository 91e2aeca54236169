#ifndef ROPEWALK_CHART_H
#define ROPEWALK_CHART_H

#include "model/base/text.h"

/* A picture before it has a form: panels of series over two axes. It is drawn by gnuplot (chart_gnuplot.h) or as
 * characters (terminal.h). Arrays are stb_ds arrays; texts are kept (text_keep) or literals. */

/* x and y; low .. high is a band about y (equal to y: none). Of cells left .. right and low .. high are the sides, and
 * `value` from 0 to 1 is the colour. NaN in y: nothing is there. */
struct point {
	double x, y, low, high;
	double left, right, value;
};

enum series_kind {
	SERIES_LINE,   /* with its band; points are marked where there are few */
	SERIES_THIN,   /* a reference: thin and grey */
	SERIES_POINTS, /* points alone */
	SERIES_CELLS,  /* coloured rectangles */
};

struct series {
	const char *label;
	enum series_kind kind;
	int style;     /* colour, dashes and shape of points, or the dashes of what is thin: 0, 1, ... */
	bool unlisted; /* not in the key */
	bool empty;    /* nothing of it is there, which the key says */
	struct point *point;
};

/* Where a panel's axis is labelled. */
struct tick {
	double at;
	const char *text;
};

struct axis {
	const char *label;
	double base;            /* of its logarithm; 0: linear */
	double least, greatest; /* what is shown; axis_hold widens it */
	struct tick *tick;      /* NULL: axis_finish chooses */
	bool percent;           /* shares, shown as per cent: no tick below 0 or above 1 */
	bool whole;             /* ticks at whole numbers alone */
};

/* A line across a panel, and words beside it: behind what is upright, above what is level or beneath it. They begin at
 * the share `along` of the line. One that the axis does not reach is not drawn. */
struct mark {
	bool upright, beneath;
	double at, along;
	const char *text;
};

struct panel {
	const char *title; /* or "" */
	struct axis x, y;
	int height; /* of the plot, in points of a chart CHART_WIDTH wide */
	bool key;   /* the series are named beneath it */
	struct mark *mark;
	struct tick *note; /* texts that stand in the plot: left side, at this y */
	struct series *series;
};

#define CHART_WIDTH 640

struct chart {
	const char *title;
	const char *x, *y;  /* names of the columns */
	const char *value;  /* what the colours of cells are; NULL: there are none */
	int columns;        /* panels beside each other */
	struct panel *panel;
	const char *absent; /* why there is no picture, where there is no panel */
};

/* An axis that holds nothing yet: least above greatest. */
struct axis axis_new(const char *label, double base);
/* Widens it to this value, unless that is not finite (or not above 0 on a logarithmic axis). */
void axis_hold(struct axis *a, double value);
/* Leaves room at both ends, so that there is always a length to draw on, and chooses ticks where there are none. */
void axis_finish(struct axis *a);
/* A tick at a place, as text by printf. */
void axis_tick(struct axis *a, double at, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* 0 .. 1 along the axis; and is it within? */
double axis_share(const struct axis *a, double value);
bool axis_reaches(const struct axis *a, double value);

/* What the key says of a series: its label, and whether there is nothing of it. Kept. */
const char *series_words(const struct series *s);

/* Adds an empty panel, or a series to a panel; valid until the next is added. */
struct panel *chart_panel(struct chart *c, const char *title, struct axis x, struct axis y);
struct series *panel_series(struct panel *p, enum series_kind kind, int style, const char *label);
void panel_mark(struct panel *p, struct mark mark);
/* A point without a band; the axes are widened to hold it. */
void series_add(struct panel *p, struct series *s, double x, double y);
/* One with a band, which widens the y axis to at most `most` beyond y, as a factor on a logarithmic axis. */
void series_add_band(struct panel *p, struct series *s, struct point point, double most);

/* Gives every panel a key, without what an earlier one of its block of so many panels names, and without references
 * of which there is nothing; of another series the key says so. */
void chart_key(struct chart *c, int block);

/* Text by printf, kept. */
const char *chart_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

void chart_free(struct chart *c);

#endif
