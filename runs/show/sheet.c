#include "runs/show/sheet.h"

#include "model/base/stb.h"
#include "runs/show/wrap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LABEL_LEAST = 24, COLUMN_LEAST = 8 };

struct sheet_row *sheet_add(struct sheet *s, const char *label)
{
	struct sheet_row row = { .label = label };
	for (int i = 0; i < arrlen(s->column); i++)
		arrput(row.cell, (struct sheet_cell){ .heat = NAN });
	arrput(s->row, row);
	return &arrlast(s->row);
}

char *sheet_line(struct sheet_cell *c)
{
	int line = 1;
	while (line < SHEET_LINES - 1 && *c->line[line])
		line++;
	return c->line[line];
}

void sheet_free(struct sheet *s)
{
	for (int i = 0; i < arrlen(s->row); i++)
		arrfree(s->row[i].cell);
	arrfree(s->row);
	arrfree(s->column);
	*s = (struct sheet){ 0 };
}

const char *perplexity_text(double perplexity, char text[SHORT_TEXT])
{
	if (perplexity < 9.995)
		snprintf(text, SHORT_TEXT, "%.2f", perplexity);
	else if (perplexity < 99.95)
		snprintf(text, SHORT_TEXT, "%.1f", perplexity);
	else
		snprintf(text, SHORT_TEXT, perplexity < 999999.5 ? "%.0f" : "%.2g", perplexity);
	return text;
}

const char *bits_text(double nll, char text[SHORT_TEXT])
{
	snprintf(text, SHORT_TEXT, "%.3f", nll / M_LN2);
	return text;
}

double nll_heat(double nll, double floor, double V)
{
	return (nll - (isnan(floor) ? 0 : log(floor))) / log(V);
}

const char *accuracy_text(double accuracy, char text[SHORT_TEXT])
{
	double percent = 100 * accuracy;
	snprintf(text, SHORT_TEXT, percent < 99.95 ? "%.1f" : "%.0f", percent);
	return text;
}

bool sheet_colour(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb");
}

/* Lines that some cell of the row fills. */
static int cell_lines(const struct sheet_row *row)
{
	int lines = 1;
	for (int i = 0; i < arrlen(row->cell); i++)
		for (int j = lines; j < SHEET_LINES; j++)
			lines = *row->cell[i].line[j] ? j + 1 : lines;
	return lines;
}

/* A cell's line with its mark; columns with marks leave room for one in every cell, so that numbers stay aligned. */
static void marked(const struct sheet_cell *c, int line, bool room, char out[SHEET_TEXT + 4])
{
	const char *mark = !room || !*c->line[line] ? "" : line == 0 && c->best ? "*" : " ";
	snprintf(out, SHEET_TEXT + 4, "%s%s", c->line[line], mark);
}

static bool has_marks(const struct sheet *s)
{
	for (int i = 0; i < arrlen(s->row); i++)
		for (int j = 0; j < arrlen(s->row[i].cell); j++)
			if (s->row[i].cell[j].best)
				return true;
	return false;
}

static int column_width(const struct sheet *s, bool marks)
{
	int width = COLUMN_LEAST;
	for (int i = 0; i < arrlen(s->column); i++)
		width = (int)strlen(s->column[i]) > width ? (int)strlen(s->column[i]) : width;
	for (int i = 0; i < arrlen(s->row); i++)
		for (int j = 0; j < arrlen(s->row[i].cell); j++)
			for (int k = 0; k < SHEET_LINES; k++) {
				char text[SHEET_TEXT + 4];
				marked(&s->row[i].cell[j], k, marks, text);
				width = (int)strlen(text) > width ? (int)strlen(text) : width;
			}
	return width + 2;
}

static const char **label_lines(const char *label, int width)
{
	return wrap(label, width, " ,(", 2);
}

static int label_width(const struct sheet *s, int columns_width)
{
	int room = PAGE_WIDTH - columns_width, width = 0;
	room = room < LABEL_LEAST ? LABEL_LEAST : room;
	for (int i = 0; i < arrlen(s->row); i++) {
		const char **line = label_lines(s->row[i].label, room);
		for (int j = 0; j < arrlen(line); j++)
			width = (int)strlen(line[j]) > width ? (int)strlen(line[j]) : width;
		arrfree(line);
	}
	return width;
}

/* 256-colour codes from green over yellow to red. */
static const int palette[] = { 40, 76, 112, 148, 184, 220, 214, 208, 202, 196 };

static void paint(double heat, bool colour, const char *text, struct text_builder *b)
{
	int steps = sizeof palette / sizeof *palette;
	if (!colour || isnan(heat) || !*text) {
		text_add(b, "%s", text);
		return;
	}
	int step = (int)(fmin(fmax(heat, 0), 1) * (steps - 1) + 0.5);
	text_add(b, "\033[38;5;%dm%s\033[0m", palette[step], text);
}

/* How the page is divided. */
struct page {
	int label, width;
	bool colour, marks;
};

static void text_line(const struct sheet_row *row, const struct page *p, int line, const char *label,
		      struct text_builder *b)
{
	int last = line < SHEET_LINES ? (int)arrlen(row->cell) : 0;
	while (last && !*row->cell[last - 1].line[line])
		last--;
	text_add(b, "%-*s", last ? p->label : 0, label);
	for (int j = 0; j < last; j++) {
		char text[SHEET_TEXT + 4];
		marked(&row->cell[j], line, p->marks, text);
		int length = (int)strlen(text), shown = j + 1 < last ? length : (int)strcspn(text, "");
		while (j + 1 == last && shown && text[shown - 1] == ' ')
			text[--shown] = '\0';
		text_add(b, "%*s", p->width - length, "");
		paint(row->cell[j].heat, p->colour && line == 0, text, b);
	}
	text_add(b, "\n");
}

static void text_row(const struct sheet_row *row, const struct page *p, struct text_builder *b)
{
	const char **name = label_lines(row->label, p->label);
	int lines = cell_lines(row);
	lines = arrlen(name) > lines ? (int)arrlen(name) : lines;
	for (int i = 0; i < lines; i++)
		text_line(row, p, i, i < arrlen(name) ? name[i] : "", b);
	arrfree(name);
}

static void text_rule(int width, struct text_builder *b)
{
	for (int i = 0; i < width; i++)
		text_add(b, "-");
	text_add(b, "\n");
}

/* The title's lines, each wrapped. */
static void text_title(const char *title, struct text_builder *b)
{
	for (const char *at = title; at && *at;) {
		int length = (int)strcspn(at, "\n");
		struct text_builder line = { 0 };
		text_add(&line, "%.*s", length, at);
		wrap_paragraph(b, line.data);
		text_builder_free(&line);
		at += length + (at[length] == '\n');
	}
}

void sheet_text(const struct sheet *s, bool colour, struct text_builder *b)
{
	struct page p = { .colour = colour, .marks = has_marks(s) };
	int columns = (int)arrlen(s->column);
	p.width = column_width(s, p.marks);
	p.label = label_width(s, p.width * columns);
	int whole = p.label + p.width * columns;
	text_title(s->title, b);
	text_add(b, "%*s", p.label, "");
	for (int i = 0; i < columns; i++)
		text_add(b, "%*s%s", p.width - p.marks, s->column[i], p.marks && i + 1 < columns ? " " : "");
	text_add(b, "\n");
	text_rule(whole, b);
	for (int i = 0; i < arrlen(s->row); i++) {
		if (s->row[i].ruled)
			text_rule(whole, b);
		text_row(&s->row[i], &p, b);
	}
}
