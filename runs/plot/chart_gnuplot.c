#include "runs/plot/chart_gnuplot.h"

#include "model/base/stb.h"
#include "runs/plot/gnuplot.h"
#include "runs/show/wrap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Where things stand, in points from the top left of a chart CHART_WIDTH wide. */
enum {
	EDGE = 12,
	TITLE_LINE = 22,
	PANEL_TITLE_LINE = 20,
	LEFT = 76,   /* tick texts and label of y */
	BELOW = 58,  /* the same of x */
	KEY_LINE = 21,
	KEY_TEXT = 72, /* characters */
	SAMPLE = 40,
	VALUES = 80, /* the scale of colours */
	BETWEEN = 14,
	FONT = 14,
	TITLE_FONT = 17,
	SMALL_FONT = 12,
	MARKED = 20, /* points of a line */
};

static const char *const colour[] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000" };
static const char *const dash[] = { "solid", "(9,4)", "(2,3)", "(9,3,2,3)" };
static const int shape[] = { 7, 5, 9, 11, 13, 6, 4, 8, 10, 12 };
static const char *const thin_dash[] = { "(2,3)", "solid", "(9,4)", "(9,3,2,3)", "(16,4)", "(1,6)" };
#define COUNT(list) ((int)(sizeof (list) / sizeof *(list)))

static const char *const cividis =
	"0 '#00224e', 0.125 '#123570', 0.25 '#3b496c', 0.375 '#575d6d', 0.5 '#707173', 0.625 '#8a8678', 0.75 "
	"'#a59c74', "
	"0.875 '#c3b369', 1 '#fee838'";

const char *picture_suffix(enum picture_format format)
{
	static const char *const suffix[] = { "svg", "png", "pdf" };
	return suffix[format];
}

/* ---- The table ---- */

static void add_number(struct text_builder *b, double value)
{
	char text[NUMBER_TEXT];
	text_add(b, "\t%s", isfinite(value) ? number_to_text(value, text) : "NaN");
}

/* A tab or quote would end a field. */
static void add_text(struct text_builder *b, const char *text)
{
	char line[512];
	text_printable(text, line, sizeof line);
	text_add(b, "\t");
	for (const char *s = line; *s; s++)
		text_add(b, *s == '"' ? "\\x22" : "%c", *s);
}

static void add_point(const struct chart *c, const struct point *p, struct text_builder *b)
{
	add_number(b, p->x);
	add_number(b, p->y);
	add_number(b, p->low);
	add_number(b, p->high);
	if (c->value) {
		add_number(b, p->left);
		add_number(b, p->right);
		add_number(b, p->value);
	}
	text_add(b, "\n");
}

void chart_tsv(const struct chart *c, struct text_builder *b)
{
	int number = 0;
	text_add(b, "panel\tseries\tpanel_title\tlabel\t%s\t%s\tlow\thigh%s\n", c->x, c->y,
		 c->value ? "\tleft\tright\tvalue" : "");
	for (int i = 0; i < arrlen(c->panel); i++)
		for (int j = 0; j < arrlen(c->panel[i].series); j++) {
			const struct series *s = &c->panel[i].series[j];
			number++;
			for (int k = 0; k < arrlen(s->point); k++) {
				text_add(b, "%d\t%d", i + 1, number);
				add_text(b, c->panel[i].title);
				add_text(b, s->label);
				add_point(c, &s->point[k], b);
			}
		}
}

/* ---- Layout ---- */

struct place {
	int left, right, top, bottom; /* of the plot; the title stands above, tick texts and key below */
	int key;                      /* top of the key */
};

struct layout {
	struct place *place; /* stb_ds, a panel each */
	int height, values;  /* of all; top of the scale of colours */
};

static int key_lines(const struct panel *p)
{
	int lines = 0;
	for (int i = 0; p->key && i < arrlen(p->series); i++)
		lines += !p->series[i].unlisted;
	return lines;
}

enum { TITLE_TEXT = 72, CHARACTER = 8 };

static int title_lines(const char *title, int width)
{
	const char **line = wrap(title, width, " ,(", 0);
	int lines = *title ? (int)arrlen(line) : 0;
	arrfree(line);
	return lines;
}

/* Titles of panels that stand beside each other have fewer characters a line. */
static int title_width(const struct chart *c)
{
	return ((CHART_WIDTH - EDGE) / c->columns - LEFT) / CHARACTER;
}

static int place_row(const struct chart *c, int first, int top, struct layout *to)
{
	int width = (CHART_WIDTH - EDGE) / c->columns, above = 0, plot = 0, key = 0;
	int last = first + c->columns < arrlen(c->panel) ? first + c->columns : (int)arrlen(c->panel);
	for (int i = first; i < last; i++) {
		int lines = title_lines(c->panel[i].title, title_width(c));
		above = lines > above ? lines : above;
		plot = c->panel[i].height > plot ? c->panel[i].height : plot;
		key = key_lines(&c->panel[i]) > key ? key_lines(&c->panel[i]) : key;
	}
	top += above * PANEL_TITLE_LINE;
	for (int i = first; i < last; i++) {
		int left = (i - first) * width;
		arrput(to->place, ((struct place){ left + LEFT, left + width - EDGE / 2, top, top + plot,
						   top + plot + BELOW }));
	}
	return top + plot + BELOW + key * KEY_LINE + BETWEEN;
}

static struct layout lay_out(const struct chart *c)
{
	struct layout l = { 0 };
	int top = EDGE + title_lines(c->title, TITLE_TEXT) * TITLE_LINE + EDGE;
	for (int i = 0; i < arrlen(c->panel); i += c->columns)
		top = place_row(c, i, top, &l);
	l.values = top;
	l.height = top + (c->value ? VALUES : 0);
	return l;
}

/* ---- The script ---- */

/* What a script is made from, on its way. */
struct script {
	const struct chart *chart;
	const char *source; /* of the data */
	enum picture_format format;
	struct layout layout;
	struct text_builder *b;
	int labels, series;
};

/* Sizes of text in the terminal's unit: pixels of SVG, points else, of a PNG of twice the pixels. */
static double font(const struct script *s, int size)
{
	static const double unit[] = { 1, 1.5, 0.75 };
	return size * unit[s->format];
}

static double across(int x)
{
	return (double)x / CHART_WIDTH;
}

static double up(const struct script *s, int y)
{
	return 1 - (double)y / s->layout.height;
}

static void add_terminal(const struct script *s, const char *name)
{
	int height = s->layout.height;
	text_add(s->b, "set terminal ");
	if (s->format == PICTURE_SVG)
		text_add(s->b, "svg size %d,%d dynamic background rgb '#ffffff' name '%s'", CHART_WIDTH, height, name);
	else if (s->format == PICTURE_PNG)
		text_add(s->b, "pngcairo size %d,%d linewidth 2 pointscale 2", 2 * CHART_WIDTH, 2 * height);
	else
		text_add(s->b, "pdfcairo size %.2fin,%.2fin", CHART_WIDTH / 96.0, height / 96.0);
	text_add(s->b, " noenhanced font '%s,%g'\n", s->format == PICTURE_SVG ? "sans-serif" : "sans", font(s, FONT));
}

static void add_styles(const struct chart *c, struct text_builder *b)
{
	int most = 0;
	for (int i = 0; i < arrlen(c->panel); i++)
		for (int j = 0; j < arrlen(c->panel[i].series); j++)
			most = c->panel[i].series[j].style > most ? c->panel[i].series[j].style : most;
	for (int i = 0; i <= most; i++)
		text_add(b, "set style line %d lc rgb '%s' lw 2 dt %s pt %d ps 0.7\n", i + 1, colour[i % COUNT(colour)],
			 dash[i % COUNT(dash)], shape[i % COUNT(shape)]);
	for (int i = 0; i <= most; i++)
		text_add(b, "set style line %d lc rgb '#808080' lw 1 dt %s\n", 101 + i,
			 thin_dash[i % COUNT(thin_dash)]);
	if (c->value)
		text_add(b, "set palette defined (%s)\nset cbrange [0:1]\n", cividis);
}

/* Lines of a title, from the top down; of this size. */
static void add_title(struct script *s, const char *title, int width, int x, int top, int line_height, int size)
{
	const char **line = wrap(title, width, " ,(", 0);
	for (int i = 0; *title && i < arrlen(line); i++) {
		text_add(s->b, "set label %d ", ++s->labels);
		gnuplot_text(s->b, line[i]);
		text_add(s->b, " at screen %.5f, screen %.5f left font ',%g'\n", across(x),
			 up(s, top + i * line_height + line_height / 2), font(s, size));
	}
	arrfree(line);
}

/* The text of a tick is a format. */
static void add_tick(const struct tick *t, struct text_builder *b)
{
	struct text_builder text = { 0 };
	for (const char *s = t->text; *s; s++)
		text_add(&text, *s == '%' ? "%%%%" : "%c", *s);
	gnuplot_text(b, text.data ? text.data : "");
	text_add(b, " %.10g", t->at);
	text_builder_free(&text);
}

static void add_axis(const struct axis *a, char name, struct text_builder *b)
{
	if (a->base)
		text_add(b, "set logscale %c %g\n", name, a->base);
	else
		text_add(b, "unset logscale %c\n", name);
	text_add(b, "set %crange [%.10g:%.10g]\nset %ctics (", name, a->least, a->greatest, name);
	for (int i = 0; i < arrlen(a->tick); i++) {
		text_add(b, "%s", i ? ", " : "");
		add_tick(&a->tick[i], b);
	}
	text_add(b, ")\n");
}

/* Of a place of their own, whatever the width of the ticks' texts. */
static void add_axis_names(struct script *s, const struct panel *p, const struct place *at)
{
	text_add(s->b, "set label %d ", ++s->labels);
	gnuplot_text(s->b, p->x.label);
	text_add(s->b, " at screen %.5f, screen %.5f center\nset label %d ", across((at->left + at->right) / 2),
		 up(s, at->bottom + 2 * KEY_LINE - KEY_LINE / 4), ++s->labels);
	gnuplot_text(s->b, p->y.label);
	text_add(s->b, " at screen %.5f, screen %.5f center rotate by 90\n", across(at->left - LEFT + EDGE),
		 up(s, (at->top + at->bottom) / 2));
}

/* Short texts beside what they speak of. */
static void add_words(struct script *s, const char *text, const char *where, const char *how)
{
	text_add(s->b, "set label %d ", ++s->labels);
	gnuplot_text(s->b, text);
	text_add(s->b, " at %s left font ',%g' tc rgb '#404040' %s\n", where, font(s, SMALL_FONT), how);
}

static void add_marks(struct script *s, const struct panel *p)
{
	char where[80];
	for (int i = 0; i < arrlen(p->mark); i++) {
		const struct mark *m = &p->mark[i];
		if (!axis_reaches(m->upright ? &p->x : &p->y, m->at))
			continue;
		text_add(s->b, m->upright ? "set arrow from first %.10g, graph 0 to first %.10g, graph 1"
					  : "set arrow from graph 0, first %.10g to graph 1, first "
					    "%.10g", m->at, m->at);
		text_add(s->b, " nohead back lc rgb '#505050' lw 1.2 dt (4,3)\n");
		snprintf(where, sizeof where, m->upright ? "first %.10g, graph %.10g" : "graph %2$.10g, first "
											"%1$.10g", m->at,
			 m->along);
		add_words(s, m->text, where,
			  m->upright ? "offset 0.5,0" : m->beneath ? "offset 0,-0.6" : "offset 0,0.6");
	}
	for (int i = 0; i < arrlen(p->note); i++) {
		snprintf(where, sizeof where, "graph 0.01, first %.10g", p->note[i].at);
		add_words(s, p->note[i].text, where, "");
	}
}

/* A name, with its middle left out where it is too long for a line. */
static void add_name(struct script *s, const char *label)
{
	char shown[512];
	int length = (int)strlen(label), half = KEY_TEXT / 2;
	if (length <= KEY_TEXT)
		snprintf(shown, sizeof shown, "%s", label);
	else
		snprintf(shown, sizeof shown, "%.*s ... %s", half - 3, label, label + length - half + 2);
	gnuplot_text(s->b, shown);
}

/* Are a line's points marked? Where there are many they would cover it. */
static bool marked(const struct series *s)
{
	return s->kind == SERIES_POINTS || (s->kind == SERIES_LINE && arrlen(s->point) <= MARKED);
}

/* A line of the key: what the series looks like, and its name. gnuplot's own key breaks into columns where it does not
 * fit beside its panel. */
static void add_key_line(struct script *s, const struct series *series, int y)
{
	int style = series->kind == SERIES_THIN ? 101 + series->style : series->style + 1;
	double at = up(s, y + KEY_LINE / 2);
	if (series->kind != SERIES_POINTS)
		text_add(s->b, "set arrow from screen %.5f, screen %.5f to screen %.5f, screen %.5f nohead ls %d\n",
			 across(EDGE), at, across(EDGE + SAMPLE), at, style);
	if (marked(series))
		text_add(s->b, "set label %d '' at screen %.5f, screen %.5f point ls %d\n", ++s->labels,
			 across(EDGE + SAMPLE / 2), at, style);
	text_add(s->b, "set label %d ", ++s->labels);
	add_name(s, series_words(series));
	text_add(s->b, " at screen %.5f, screen %.5f left\n", across(EDGE + SAMPLE + 8), at);
}

static void add_key(struct script *s, const struct panel *p, int top)
{
	int line = 0;
	for (int i = 0; p->key && i < arrlen(p->series); i++)
		if (!p->series[i].unlisted)
			add_key_line(s, &p->series[i], top + line++ * KEY_LINE);
}

static bool has_band(const struct series *s)
{
	for (int i = 0; i < arrlen(s->point); i++)
		if (s->kind == SERIES_LINE && s->point[i].low < s->point[i].high)
			return true;
	return false;
}

static void begin_plot(struct script *s, bool *begun)
{
	text_add(s->b, "%s%s using (column('series') == %d ? column('%s') : "
		       "NaN)", *begun ? ", \\\n\t" : "plot ", s->source,
		 s->series, s->chart->x);
	*begun = true;
}

static void add_band(struct script *s, const struct series *series, bool *begun)
{
	if (!has_band(series))
		return;
	begin_plot(s, begun);
	text_add(s->b, ":'low':'high' with filledcurves fs transparent solid 0.13 noborder lc rgb '%s' notitle",
		 colour[series->style % COUNT(colour)]);
}

static void add_series(struct script *s, const struct series *series, bool *begun)
{
	begin_plot(s, begun);
	if (series->kind == SERIES_CELLS)
		text_add(s->b, ":'%s':'left':'right':'low':'high':'value' with boxxyerror palette fs solid noborder",
			 s->chart->y);
	else if (series->kind == SERIES_THIN)
		text_add(s->b, ":'%s' with lines ls %d", s->chart->y, 101 + series->style);
	else
		text_add(s->b, ":'%s' with %s ls %d", s->chart->y,
			 series->kind == SERIES_POINTS ? "points" : marked(series) ? "linespoints" : "lines",
			 series->style + 1);
	text_add(s->b, " notitle");
}

static void add_plot(struct script *s, const struct panel *p)
{
	bool begun = false;
	int first = s->series;
	for (int i = 0; i < arrlen(p->series); i++) {
		s->series++;
		add_band(s, &p->series[i], &begun);
	}
	s->series = first;
	for (int i = 0; i < arrlen(p->series); i++) {
		s->series++;
		add_series(s, &p->series[i], &begun);
	}
	text_add(s->b, "\n");
}

static void add_values(struct script *s)
{
	text_add(s->b, "set colorbox horizontal user origin screen %.5f, screen %.5f size screen %.5f, screen %.5f\n",
		 across(LEFT), up(s, s->layout.values + 18), across(CHART_WIDTH - LEFT - 2 * EDGE),
		 14.0 / s->layout.height);
	text_add(s->b, "set cbtics ('0 %%%%' 0, '25 %%%%' 0.25, '50 %%%%' 0.5, '75 %%%%' 0.75, '100 %%%%' 1)\nset "
		       "cblabel ");
	gnuplot_text(s->b, s->chart->value);
	text_add(s->b, " offset 0,0.4\n");
}

static void add_panel(struct script *s, int index)
{
	const struct panel *p = &s->chart->panel[index];
	const struct place *at = &s->layout.place[index];
	int lines = title_lines(p->title, title_width(s->chart));
	text_add(s->b, "\n# panel %d\nset lmargin at screen %.5f\nset rmargin at screen %.5f\nset tmargin at screen "
		       "%.5f\n"
		       "set bmargin at screen %.5f\n", index + 1, across(at->left), across(at->right),
		 up(s, at->top), up(s, at->bottom));
	add_title(s, p->title, title_width(s->chart), at->left, at->top - lines * PANEL_TITLE_LINE - 3,
		  PANEL_TITLE_LINE, FONT);
	add_axis(&p->x, 'x', s->b);
	add_axis(&p->y, 'y', s->b);
	add_axis_names(s, p, at);
	add_marks(s, p);
	if (s->chart->value && index + 1 == arrlen(s->chart->panel))
		add_values(s);
	add_key(s, p, at->key);
	add_plot(s, p);
	text_add(s->b, "unset arrow\nunset label\n");
	s->labels = 0;
}

/* All of it behind what sets the output. */
static void add_body(struct script *s)
{
	text_add(s->b, "set encoding utf8\nset datafile separator \"\\t\"\nset datafile commentschars ''\n"
		       "set border 3 lc rgb '#808080'\nset tics nomirror scale 0.5 textcolor rgb '#000000'\n"
		       "set grid back lc rgb '#d4d4d4' lw 0.8 dt solid\nunset colorbox\nunset key\n");
	add_styles(s->chart, s->b);
	text_add(s->b, "set multiplot\n");
	add_title(s, s->chart->title, TITLE_TEXT, EDGE, EDGE, TITLE_LINE, TITLE_FONT);
	for (int i = 0; i < arrlen(s->chart->panel); i++)
		add_panel(s, i);
	text_add(s->b, "unset multiplot\n");
	arrfree(s->layout.place);
}

void chart_script(const struct chart *c, const char *name, enum picture_format format, struct text_builder *b)
{
	const char *suffix = picture_suffix(format), *source = chart_text("'%s.tsv'", name);
	struct script s = { .chart = c, .source = source, .format = format,
			    .layout = lay_out(c), .b = b };
	text_add(b, "# `gnuplot %s.gp` in this folder draws %s.%s from %s.tsv.\n", name, name, suffix, name);
	add_terminal(&s, name);
	text_add(b, "set output '%s.%s'\n", name, suffix);
	add_body(&s);
	text_add(b, "set output\n");
}

void chart_whole_script(const struct chart *c, const char *name, enum picture_format format, struct text_builder *b)
{
	struct script s = { .chart = c, .source = "$data", .format = format, .layout = lay_out(c), .b = b };
	text_add(b, "$data << end_of_the_table\n");
	chart_tsv(c, b);
	text_add(b, "end_of_the_table\n");
	add_terminal(&s, name);
	add_body(&s);
}
