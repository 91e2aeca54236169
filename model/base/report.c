#include "report.h"

#include "arena.h"
#include "stb.h"
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char *copy(const char *text)
{
	size_t size = strlen(text) + 1;
	return memcpy(stb_reallocate(NULL, size), text, size);
}

void report_text(struct report *r, const char *name, const char *text)
{
	arrput(r->fact, ((struct report_fact){ .name = name, .text = copy(text) }));
}

void report_number(struct report *r, const char *name, double number)
{
	arrput(r->fact, ((struct report_fact){ .name = name, .number = number }));
}

void report_table(struct report *r, const char *name, const char *row, int rows)
{
	arrput(r->table, ((struct report_table){ .name = name, .row = row, .rows = rows }));
}

/* Adds a column whose rows take `bytes` each. */
static struct err add_column(struct report *r, const char *name, const char *heading, size_t bytes, void **data)
{
	struct report_table *t = &arrlast(r->table);
	struct report_column c = { .name = name };
	struct arena measure = { 0 }, memory;
	snprintf(c.heading, sizeof c.heading, "%s", heading);
	arena_take(&measure, (size_t)t->rows, bytes);
	TRY(arena_reserve(&memory, measure.used, name ? name : heading));
	arrput(r->memory, memory);
	*data = memory.base;
	arrput(t->column, c);
	return OK;
}

struct err report_column(struct report *r, const char *name, const char *heading, int width, double **value)
{
	void *data;
	TRY(add_column(r, name, heading, (size_t)(width ? width : 1) * sizeof **value, &data));
	struct report_column *c = &arrlast(arrlast(r->table).column);
	c->width = width;
	*value = c->value = data;
	return OK;
}

struct err report_words(struct report *r, const char *name, const char *heading, char (**word)[REPORT_WORD])
{
	void *data;
	TRY(add_column(r, name, heading, REPORT_WORD, &data));
	*word = arrlast(arrlast(r->table).column).word = data;
	return OK;
}

void report_note(struct report *r, const char *format, ...)
{
	char text[400];
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	arrput(r->note, copy(text));
}

void report_free(struct report *r)
{
	for (int i = 0; i < (int)arrlen(r->fact); i++)
		free(r->fact[i].text);
	for (int i = 0; i < (int)arrlen(r->table); i++)
		arrfree(r->table[i].column);
	for (int i = 0; i < (int)arrlen(r->note); i++)
		free(r->note[i]);
	for (int i = 0; i < (int)arrlen(r->memory); i++)
		arena_free(&r->memory[i]);
	arrfree(r->fact);
	arrfree(r->table);
	arrfree(r->note);
	arrfree(r->memory);
}
