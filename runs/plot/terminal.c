#include "runs/plot/terminal.h"

#include "model/base/stb.h"
#include "runs/show/sheet.h"
#include "runs/show/wrap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { ROWS = 18, NOTE_ROWS = 4 /* of each that stands in the plot */, SCALE = 9 /* characters of the y axis */,
       WIDEST = 160 };

static int width_of_stdout(void)
{
	const char *columns = getenv("COLUMNS");
	int64_t width = 0;
	struct winsize size;
	if (columns && text_to_integer(columns, &width) && width > 0 && width < 100000)
		return (int)width;
	return isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : 80;
}

static bool says_utf8(void)
{
	static const char *const name[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	for (int i = 0; i < 3; i++) {
		const char *value = getenv(name[i]);
		if (value && *value)
			return strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "utf-8");
	}
	return false;
}

struct terminal terminal_of_stdout(void)
{
	return (struct terminal){ .width = width_of_stdout(), .unicode = says_utf8(), .colour = sheet_colour() };
}

/* What a place of the picture shows, and whose it is. */
struct spot {
	char mark; /* 0: nothing; '.' the way of a line */
	int style; /* -1: nobody's */
};

struct canvas {
	const struct terminal *terminal;
	int columns, rows;
	struct spot *spot; /* [rows][columns] */
};

static struct spot *spot_at(const struct canvas *v, double x, double y)
{
	int column = (int)lround(x * (v->columns - 1)), row = (int)lround((1 - y) * (v->rows - 1));
	if (column < 0 || column >= v->columns || row < 0 || row >= v->rows)
		return NULL;
	return &v->spot[row * v->columns + column];
}

static void put(const struct canvas *v, double x, double y, char mark, int style)
{
	struct spot *s = isfinite(x) && isfinite(y) ? spot_at(v, x, y) : NULL;
	if (!s || (mark == '.' && s->mark))
		return;
	bool shared = s->mark && s->mark != '.' && s->mark != mark;
	*s = (struct spot){ shared ? '&' : mark, shared ? -1 : style };
}

/* From one point towards the next. */
static void lead(const struct canvas *v, const struct panel *p, const struct point *a, const struct point *b, int style)
{
	double x = axis_share(&p->x, a->x), y = axis_share(&p->y, a->y);
	double dx = axis_share(&p->x, b->x) - x, dy = axis_share(&p->y, b->y) - y;
	int steps = v->columns / 2;
	for (int i = 1; i < steps; i++)
		put(v, x + dx * i / steps, y + dy * i / steps, '.', style);
}

static char letter_of(const struct panel *p, int series)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", digits[] = "123456789";
	int count = 0;
	bool thin = p->series[series].kind == SERIES_THIN;
	for (int i = 0; i < series; i++)
		count += (p->series[i].kind == SERIES_THIN) == thin;
	return thin ? digits[count % 9] : letters[count % 52];
}

static void draw_series(const struct canvas *v, const struct panel *p, int index, bool points)
{
	const struct series *s = &p->series[index];
	int style = s->kind == SERIES_THIN ? -1 : s->style;
	for (int i = 0; i < arrlen(s->point); i++)
		if (points)
			put(v, axis_share(&p->x, s->point[i].x), axis_share(&p->y, s->point[i].y), letter_of(p, index),
			    style);
		else if (i && s->kind == SERIES_LINE)
			lead(v, p, &s->point[i - 1], &s->point[i], style);
}

/* A text in the plot, from its left side on; points stay. */
static void write_note(const struct canvas *v, const struct panel *p, const struct tick *note)
{
	char shown[WIDEST];
	double y = axis_share(&p->y, note->at);
	text_printable(note->text, shown, sizeof shown);
	int at = 0;
	for (const unsigned char *c = (const unsigned char *)shown; *c && at < v->columns; c++) {
		if ((*c & 0xc0) == 0x80) /* the rest of a character that stands as `?` */
			continue;
		struct spot *s = spot_at(v, (double)at++ / (v->columns - 1), y);
		if (s && !s->mark && *c != ' ')
			*s = (struct spot){ *c < 0x80 ? (char)*c : '?', -1 };
	}
}

/* 256-colour codes near those of Okabe and Ito. */
static const int colours[] = { 32, 166, 36, 175, 214, 74 };

static void add_mark(const struct terminal *t, const struct spot *s, struct text_builder *b)
{
	const char *dot = t->unicode ? "\u00b7" : ".";
	bool colour = t->colour && s->style >= 0 && s->mark;
	if (colour)
		text_add(b, "\033[38;5;%dm", colours[s->style % 6]);
	text_add(b, s->mark == '.' ? "%s" : "%.0s%c", dot, s->mark ? s->mark : ' ');
	text_add(b, "%s", colour ? "\033[0m" : "");
}

/* The tick of the y axis that falls into this row; "". */
static const char *tick_of_row(const struct axis *y, int row, int rows)
{
	for (int i = 0; i < arrlen(y->tick); i++)
		if ((int)lround((1 - axis_share(y, y->tick[i].at)) * (rows - 1)) == row)
			return y->tick[i].text;
	return "";
}

static void add_row(const struct canvas *v, const struct panel *p, int row, struct text_builder *b)
{
	int last = v->columns;
	const struct spot *spot = &v->spot[row * v->columns];
	while (last && !spot[last - 1].mark)
		last--;
	text_add(b, "%*.*s %s", SCALE - 2, SCALE - 2, tick_of_row(&p->y, row, v->rows),
		 v->terminal->unicode ? "\u2502" : "|");
	for (int i = 0; i < last; i++)
		add_mark(v->terminal, &spot[i], b);
	text_add(b, "\n");
}

/* Behind what stands on the first line already, in lines that begin with so many spaces. */
static void add_wrapped(const char *text, int width, int indent, struct text_builder *b)
{
	char shown[512];
	text_printable(text, shown, sizeof shown);
	const char **line = wrap(shown, width - indent, " ,(", 0);
	for (int i = 0; i < arrlen(line); i++)
		text_add(b, "%*s%s\n", i ? indent : indent ? 1 : 0, "", line[i]);
	arrfree(line);
}

/* The line beneath, and the ticks of x where they do not run into each other. */
static void add_foot(const struct canvas *v, const struct axis *x, struct text_builder *b)
{
	char line[WIDEST + 80];
	int end = 0;
	text_add(b, "%*s%s", SCALE - 1, "", v->terminal->unicode ? "\u2514" : "+");
	for (int i = 0; i < v->columns; i++)
		text_add(b, "%s", v->terminal->unicode ? "\u2500" : "-");
	memset(line, ' ', sizeof line);
	for (int i = 0; i < arrlen(x->tick); i++) {
		int size = (int)strlen(x->tick[i].text);
		int at = SCALE + (int)lround(axis_share(x, x->tick[i].at) * (v->columns - 1)) - size / 2;
		if (at < end || at + size > SCALE + v->columns + 2)
			continue;
		memcpy(line + at, x->tick[i].text, (size_t)size);
		end = at + size + 1;
	}
	text_add(b, "\n%.*s\n%*s", end ? end - 1 : 0, line, SCALE - 1, "");
	add_wrapped(x->label, v->columns + SCALE, SCALE, b);
}

enum { KEY_INDENT = 4 };

static void add_key(const struct canvas *v, const struct panel *p, struct text_builder *b)
{
	for (int i = 0; i < arrlen(p->series); i++) {
		const struct series *s = &p->series[i];
		if (s->unlisted)
			continue;
		text_add(b, "  ");
		add_mark(v->terminal, &(struct spot){ letter_of(p, i), s->kind == SERIES_THIN ? -1 : s->style }, b);
		add_wrapped(series_words(s), v->columns + SCALE, KEY_INDENT, b);
	}
	text_add(b, "  & several of them\n");
}

static void add_panel(const struct panel *p, const struct terminal *t, struct text_builder *b)
{
	int width = t->width < TERMINAL_LEAST ? TERMINAL_LEAST : t->width > WIDEST ? WIDEST : t->width;
	int rows = NOTE_ROWS * (int)arrlen(p->note) + 2;
	struct canvas v = { t, width - SCALE - 2, rows > ROWS ? rows : ROWS, NULL };
	v.spot = calloc((size_t)v.columns, (size_t)v.rows * sizeof *v.spot);
	BUG_IF(!v.spot, "no memory for %d characters", v.columns);
	for (int points = 1; points >= 0; points--)
		for (int i = 0; i < arrlen(p->series); i++)
			draw_series(&v, p, i, points);
	for (int i = 0; i < arrlen(p->note); i++)
		write_note(&v, p, &p->note[i]);
	text_add(b, "%s%s%s\n", p->title, *p->title && *p->y.label ? ": " : "", p->y.label);
	for (int row = 0; row < v.rows; row++)
		add_row(&v, p, row, b);
	add_foot(&v, &p->x, b);
	if (p->key)
		add_key(&v, p, b);
	free(v.spot);
}

static bool has_cells(const struct panel *p)
{
	for (int i = 0; i < arrlen(p->series); i++)
		if (p->series[i].kind == SERIES_CELLS)
			return true;
	return false;
}

void terminal_chart(const struct chart *c, const struct terminal *t, struct text_builder *b)
{
	add_wrapped(c->title, t->width < TERMINAL_LEAST ? TERMINAL_LEAST : t->width, 0, b);
	for (int i = 0; i < arrlen(c->panel); i++)
		if (!has_cells(&c->panel[i])) {
			text_add(b, "\n");
			add_panel(&c->panel[i], t, b);
		}
}

void terminal_print(const struct chart *c)
{
	struct terminal t = terminal_of_stdout();
	struct text_builder b = { 0 };
	terminal_chart(c, &t, &b);
	if (b.data)
		fputs(b.data, stdout);
	text_builder_free(&b);
}
