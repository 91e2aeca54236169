#include "model/base/stb.h"
#include "model/base/text.h"
#include "runs/show/report_print.h"

#include <jansson.h>
#include <math.h>

static void print_text(const char *text, FILE *to)
{
	json_t *value = json_string(text);
	char *quoted = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
	BUG_IF(!quoted, "a text cannot be written as JSON");
	fputs(quoted, to);
	free(quoted);
	json_decref(value);
}

static void print_number(double value, FILE *to)
{
	char text[NUMBER_TEXT];
	fputs(isfinite(value) ? number_to_text(value, text) : "null", to);
}

/* One row of a column. */
static void print_row(const struct report_column *c, int row, FILE *to)
{
	if (c->word || !c->width) {
		if (c->word)
			print_text(c->word[row], to);
		else
			print_number(c->value[row], to);
		return;
	}
	for (int i = 0; i < c->width; i++) {
		fputs(i ? "," : "[", to);
		print_number(c->value[(size_t)row * (size_t)c->width + (size_t)i], to);
	}
	fputs("]", to);
}

static void begin_member(const char *before, const char *name, FILE *to)
{
	fputs(before, to);
	print_text(name, to);
	fputs(":", to);
}

static void print_column(const struct report_table *t, const struct report_column *c, FILE *to)
{
	begin_member(",\n", c->name, to);
	fputs("[", to);
	for (int i = 0; i < t->rows; i++) {
		fputs(i ? "," : "", to);
		print_row(c, i, to);
	}
	fputs("]", to);
}

static void print_object(const struct report_table *t, int row, FILE *to)
{
	const char *before = "{";
	for (int i = 0; i < (int)arrlen(t->column); i++) {
		if (!t->column[i].name)
			continue;
		fputs(before, to);
		print_text(t->column[i].name, to);
		fputs(":", to);
		print_row(&t->column[i], row, to);
		before = ",";
	}
	fputs("}", to);
}

static void print_table(const struct report_table *t, FILE *to)
{
	for (int i = 0; !t->name && i < (int)arrlen(t->column); i++)
		if (t->column[i].name)
			print_column(t, &t->column[i], to);
	if (!t->name)
		return;
	begin_member(",\n", t->name, to);
	for (int i = 0; i < t->rows; i++) {
		fputs(i ? ",\n  " : "[\n  ", to);
		print_object(t, i, to);
	}
	fputs("]", to);
}

void report_json(const struct report *r, FILE *to)
{
	BUG_IF(!arrlen(r->fact), "a report without facts");
	for (int i = 0; i < (int)arrlen(r->fact); i++) {
		begin_member(i ? ",\n" : "{", r->fact[i].name, to);
		if (r->fact[i].text)
			print_text(r->fact[i].text, to);
		else
			print_number(r->fact[i].number, to);
	}
	for (int i = 0; i < (int)arrlen(r->table); i++)
		print_table(&r->table[i], to);
	begin_member(",\n", "notes", to);
	for (int i = 0; i < (int)arrlen(r->note); i++) {
		fputs(i ? ",\n  " : "[", to);
		print_text(r->note[i], to);
	}
	fputs(arrlen(r->note) ? "]}\n" : "[]}\n", to);
}
