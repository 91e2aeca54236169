#include "runs/run/columns.h"

#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/options.h"
#include "runs/run/rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_scored(const struct row_kind *kind, const void *row)
{
	return !kind->scored || kind->scored(row);
}

/* Is the field left empty? */
static bool is_empty(const struct column *c, const void *row, bool scored)
{
	const void *field = (const char *)row + c->offset;
	return c->optional && (!scored || (c->unknown && isnan(*(const double *)field)));
}

static void print_header(const struct column *c, struct text_builder *b)
{
	for (int i = 0; c[i].name; i++)
		text_add(b, "%s%s", i ? "," : "", c[i].name);
	text_add(b, "\n");
}

static void print_row(const struct column *c, const void *row, bool scored, struct text_builder *b)
{
	for (int i = 0; c[i].name; i++) {
		const void *field = (const char *)row + c[i].offset;
		char number[NUMBER_TEXT];
		text_add(b, "%s", i ? "," : "");
		if (is_empty(&c[i], row, scored))
			continue;
		switch (c[i].kind) {
		case COLUMN_TEXT:
			csv_field(b, *(const char *const *)field);
			break;
		case COLUMN_INTEGER:
			text_add(b, "%" PRId64, *(const int64_t *)field);
			break;
		case COLUMN_NUMBER:
			text_add(b, "%s", number_to_text(*(const double *)field, number));
		}
	}
	text_add(b, "\n");
}

static void record_row(const struct column *c, const void *row, bool scored, struct records *to)
{
	records_begin(to);
	for (int i = 0; c[i].name; i++) {
		const void *field = (const char *)row + c[i].offset;
		if (is_empty(&c[i], row, scored))
			record_text(to, c[i].name, NULL);
		else if (c[i].kind == COLUMN_TEXT)
			record_text(to, c[i].name, *(const char *const *)field);
		else if (c[i].kind == COLUMN_INTEGER)
			record_integer(to, c[i].name, *(const int64_t *)field);
		else
			record_number(to, c[i].name, *(const double *)field);
	}
}

/* An overflowed perplexity is written as "inf", which is no number a user may give. */
static bool read_number(const char *text, double *out)
{
	if (strcmp(text, "inf"))
		return text_to_number(text, out);
	*out = __builtin_inf();
	return true;
}

static int columns(const struct column *c)
{
	int count = 0;
	while (c[count].name)
		count++;
	return count;
}

/* The first column whose text is not of its kind; NULL if there is none. */
static const char *read_row(const struct column *c, char *const *field, void *row)
{
	for (int i = 0; c[i].name; i++) {
		void *to = (char *)row + c[i].offset;
		bool good = true;
		if (c[i].optional && !*field[i])
			continue;
		if (c[i].kind == COLUMN_TEXT)
			*(const char **)to = text_keep(field[i]);
		else if (c[i].kind == COLUMN_INTEGER)
			good = text_to_integer(field[i], (int64_t *)to);
		else
			good = read_number(field[i], (double *)to);
		if (!good)
			return c[i].name;
	}
	return NULL;
}

static bool same_header(const struct column *c, char *const *field, int fields)
{
	for (int i = 0; i < fields; i++)
		if (!c[i].name || strcmp(c[i].name, field[i]))
			return false;
	return !c[fields].name;
}

/* Optional columns have a value where something was scored, and there alone. */
static const char *not_as_scored(const struct column *c, char *const *field, bool scored)
{
	for (int i = 0; c[i].name; i++)
		if (c[i].optional && (*field[i] != 0) != scored && !(scored && c[i].unknown))
			return c[i].name;
	return NULL;
}

/* What is empty though something was scored is not known. */
static void forget_unknown(const struct column *c, char *const *field, bool scored, void *row)
{
	for (int i = 0; c[i].name; i++) {
		void *to = (char *)row + c[i].offset;
		if (c[i].unknown && scored && !*field[i])
			*(double *)to = NAN;
	}
}

#define REMOVE "Remove the file: `ropewalk eval` and `ropewalk study` make it again."

static struct err damaged(const char *path, int line, const struct column *c, char *const *field, const char *name)
{
	int i = 0;
	while (c[i].name && strcmp(c[i].name, name))
		i++;
	return err_usage(REMOVE, "%s:%d: a damaged row: its %s is '%.60s'", path, line, name, field[i]);
}

/* One record into a row of zeros. */
static struct err read_record(const char *path, int line, const struct row_kind *kind, char *const *field, void *row)
{
	const struct column *c = kind->column;
	if (arrlen(field) != columns(c))
		return err_usage(REMOVE, "%s:%d: a damaged row: it has %d fields where there are %d", path, line,
				 (int)arrlen(field), columns(c));
	const char *bad = read_row(c, field, row);
	if (!bad)
		bad = kind->impossible(row);
	bool scored = is_scored(kind, row);
	if (!bad)
		bad = not_as_scored(c, field, scored);
	forget_unknown(c, field, scored, row);
	return bad ? damaged(path, line, c, field, bad) : OK;
}

static struct err read_records(const char *path, const struct csv *csv, const struct row_kind *kind, void *to)
{
	if (!arrlen(csv->record) || !same_header(kind->column, csv->record[0], (int)arrlen(csv->record[0])))
		return err_usage(REMOVE, "%s:1: not the columns that this version writes", path);
	char *row = stb_reallocate(NULL, kind->size);
	struct err e = OK;
	for (ptrdiff_t i = 1; i < arrlen(csv->record) && !e.code; i++) {
		memset(row, 0, kind->size);
		e = read_record(path, csv->line[i], kind, csv->record[i], row);
		if (!e.code)
			kind->add(row, to);
	}
	free(row);
	return e;
}

struct err columns_read(const char *path, const struct row_kind *kind, void *to)
{
	char *text;
	size_t length;
	struct csv csv;
	if (!io_exists(path))
		return OK;
	TRY(io_read(path, &text, &length));
	bool text_alone = strlen(text) == length, ended = length && text[length - 1] == '\n';
	struct err e = text_alone ? csv_parse(path, text, &csv)
				  : err_usage(REMOVE, "%s: holds a NUL byte, at byte %zu", path, strlen(text));
	free(text);
	TRY(e);
	e = read_records(path, &csv, kind, to);
	if (!e.code && !ended)
		e = err_usage(REMOVE, "%s:%d: the last row is not complete", path, arrlast(csv.line));
	csv_free(&csv);
	return e;
}

struct err columns_write(const char *path, const struct row_kind *kind, const void *rows, int count)
{
	struct text_builder b = { 0 };
	print_header(kind->column, &b);
	for (int i = 0; i < count; i++) {
		const void *row = (const char *)rows + (size_t)i * kind->size;
		print_row(kind->column, row, is_scored(kind, row), &b);
	}
	struct err e = io_write(path, b.data, b.size);
	text_builder_free(&b);
	return e;
}

void columns_records(const struct row_kind *kind, const void *rows, int count, struct records *to)
{
	for (int i = 0; i < count; i++) {
		const void *row = (const char *)rows + (size_t)i * kind->size;
		record_row(kind->column, row, is_scored(kind, row), to);
	}
}
