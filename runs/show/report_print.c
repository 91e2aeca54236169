#include "runs/show/report_print.h"

#include "model/base/stb.h"
#include "runs/show/wrap.h"

#include <math.h>
#include <string.h>

#define CELL 48

/* Of a longer table people see its beginning and its end. */
enum { FIRST_ROWS = 128, LAST_ROWS = 16 };

static int rows_left_out(const struct report_table *t)
{
	return t->rows > FIRST_ROWS + LAST_ROWS ? t->rows - FIRST_ROWS - LAST_ROWS : 0;
}

/* The row that is shown after this one. */
static int next_row(const struct report_table *t, int row)
{
	return row + 1 == FIRST_ROWS ? row + 1 + rows_left_out(t) : row + 1;
}

/* A shown column of a table: a column's numbers, or one of the arrays it has a row. */
static void cell(const struct report_column *c, int part, int row, char text[CELL])
{
	double value = c->word ? 0 : c->value[(size_t)row * (size_t)(c->width ? c->width : 1) + (size_t)part];
	if (c->word)
		snprintf(text, CELL, "%s", c->word[row]);
	else if (!isfinite(value))
		snprintf(text, CELL, "-");
	else if (value == floor(value) && fabs(value) < 1e9)
		snprintf(text, CELL, "%.0f", value);
	else
		snprintf(text, CELL, "%.5g", value);
}

static void heading(const struct report_column *c, int part, char text[CELL])
{
	if (c->width)
		snprintf(text, CELL, "%s %d", c->heading, part);
	else
		snprintf(text, CELL, "%s", c->heading);
}

static int parts(const struct report_column *c)
{
	return !*c->heading ? 0 : c->width ? c->width : 1;
}

/* The widest text of a shown column, [shown columns] in order; stb_ds array. */
static int *widths(const struct report_table *t)
{
	int *width = NULL;
	char text[CELL];
	for (int c = 0; c < (int)arrlen(t->column); c++)
		for (int part = 0; part < parts(&t->column[c]); part++) {
			heading(&t->column[c], part, text);
			int widest = (int)strlen(text);
			for (int row = 0; row < t->rows; row = next_row(t, row)) {
				cell(&t->column[c], part, row, text);
				widest = (int)strlen(text) > widest ? (int)strlen(text) : widest;
			}
			arrput(width, widest);
		}
	return width;
}

/* Row -1: the headings. */
static void print_row(const struct report_table *t, const int *width, int row, FILE *to)
{
	char text[CELL];
	int label = (int)strlen(t->row) > 6 ? (int)strlen(t->row) : 6;
	if (row < 0)
		fprintf(to, "%*s", label, t->row);
	else
		fprintf(to, "%*d", label, row);
	for (int c = 0; c < (int)arrlen(t->column); c++)
		for (int part = 0; part < parts(&t->column[c]); part++) {
			if (row < 0)
				heading(&t->column[c], part, text);
			else
				cell(&t->column[c], part, row, text);
			fprintf(to, "  %*s", *width++, text);
		}
	fputs("\n", to);
}

static void print_table(const struct report_table *t, FILE *to)
{
	int *width = widths(t);
	if (width)
		fputs("\n", to);
	for (int row = -1; width && row < t->rows; row = next_row(t, row)) {
		if (row >= FIRST_ROWS && row == t->rows - LAST_ROWS && rows_left_out(t))
			fprintf(to, "   ...  %d rows left out: --format=json has all\n", rows_left_out(t));
		print_row(t, width, row, to);
	}
	arrfree(width);
}

void report_print(const struct report *r, FILE *to)
{
	for (int i = 0; i < (int)arrlen(r->fact); i++) {
		fprintf(to, "%-18s", r->fact[i].name);
		if (r->fact[i].text)
			fprintf(to, "%s\n", r->fact[i].text);
		else
			fprintf(to, "%.10g\n", r->fact[i].number);
	}
	for (int i = 0; i < (int)arrlen(r->table); i++)
		print_table(&r->table[i], to);
	for (int i = 0; i < (int)arrlen(r->note); i++) {
		struct text_builder b = { 0 };
		wrap_paragraph(&b, r->note[i]);
		fprintf(to, "%s%s", i ? "" : "\n", b.data);
		text_builder_free(&b);
	}
}
