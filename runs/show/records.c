#include "runs/show/records.h"

#include "model/base/stb.h"
#include "runs/options.h"
#include "runs/run/rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void records_begin(struct records *r)
{
	arrput(r->record, NULL);
}

static int column_index(struct records *r, const char *name)
{
	for (int i = 0; i < arrlen(r->column); i++)
		if (!strcmp(r->column[i], name))
			return i;
	arrput(r->column, text_keep(name));
	return (int)arrlen(r->column) - 1;
}

static void put(struct records *r, const char *column, struct field field)
{
	struct field **last = &arrlast(r->record);
	int at = column_index(r, column);
	while (arrlen(*last) <= at)
		arrput(*last, (struct field){ .kind = FIELD_ABSENT });
	(*last)[at] = field;
}

void record_text(struct records *r, const char *column, const char *text)
{
	put(r, column, text ? (struct field){ .kind = FIELD_TEXT, .text = text_keep(text) }
			    : (struct field){ .kind = FIELD_ABSENT });
}

void record_integer(struct records *r, const char *column, int64_t value)
{
	put(r, column, (struct field){ .kind = FIELD_INTEGER, .integer = value });
}

void record_number(struct records *r, const char *column, double value)
{
	put(r, column, (struct field){ .kind = isnan(value) ? FIELD_ABSENT : FIELD_NUMBER, .number = value });
}

void records_free(struct records *r)
{
	for (int i = 0; i < arrlen(r->record); i++)
		arrfree(r->record[i]);
	arrfree(r->record);
	arrfree(r->column);
	*r = (struct records){ 0 };
}

static struct field field_at(const struct records *r, int record, int column)
{
	return column < arrlen(r->record[record]) ? r->record[record][column]
						  : (struct field){ .kind = FIELD_ABSENT };
}

static void csv_value(const struct field *f, struct text_builder *b)
{
	char number[NUMBER_TEXT];
	switch (f->kind) {
	case FIELD_ABSENT:
		break;
	case FIELD_TEXT:
		csv_field(b, f->text);
		break;
	case FIELD_INTEGER:
		text_add(b, "%" PRId64, f->integer);
		break;
	case FIELD_NUMBER:
		text_add(b, "%s", number_to_text(f->number, number));
	}
}

void records_csv(const struct records *r, bool header, struct text_builder *b)
{
	for (int j = 0; header && j < arrlen(r->column); j++) {
		text_add(b, "%s", j ? "," : "");
		csv_field(b, r->column[j]);
	}
	text_add(b, "%s", header && arrlen(r->column) ? "\n" : "");
	for (int i = 0; i < arrlen(r->record); i++) {
		for (int j = 0; j < arrlen(r->column); j++) {
			struct field f = field_at(r, i, j);
			text_add(b, "%s", j ? "," : "");
			csv_value(&f, b);
		}
		text_add(b, "\n");
	}
}

/* Bytes of the UTF-8 character that begins at s; 0: it is none, and JSON cannot hold it. */
static int utf8_length(const unsigned char *s)
{
	int n = *s < 0x80 ? 1 : *s < 0xc2 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf5 ? 4 : 0;
	for (int i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] > 0x9f) || (*s == 0xf0 && s[1] < 0x90) ||
	    (*s == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

void json_text(struct text_builder *b, const char *text)
{
	text_add(b, "\"");
	for (const unsigned char *s = (const unsigned char *)text; *s; s++) {
		if (*s == '"' || *s == '\\')
			text_add(b, "\\%c", *s);
		else if (*s < 0x20)
			text_add(b, "\\u%04x", *s);
		else if (utf8_length(s))
			text_add(b, "%.*s", utf8_length(s), (const char *)s);
		else
			text_add(b, "\\ufffd");
		s += utf8_length(s) > 1 ? utf8_length(s) - 1 : 0;
	}
	text_add(b, "\"");
}

static void json_value(const struct field *f, struct text_builder *b)
{
	char number[NUMBER_TEXT];
	switch (f->kind) {
	case FIELD_ABSENT:
		text_add(b, "null");
		break;
	case FIELD_TEXT:
		json_text(b, f->text);
		break;
	case FIELD_INTEGER:
		text_add(b, "%" PRId64, f->integer);
		break;
	case FIELD_NUMBER:
		number_to_text(f->number, number);
		text_add(b, isfinite(f->number) ? "%s" : "\"%s\"", number);
	}
}

void records_json(const struct records *r, int indent, struct text_builder *b)
{
	text_add(b, "[");
	for (int i = 0; i < arrlen(r->record); i++) {
		text_add(b, "%s\n%*s{", i ? "," : "", indent + 2, "");
		for (int j = 0; j < arrlen(r->column); j++) {
			struct field f = field_at(r, i, j);
			text_add(b, "%s", j ? ", " : "");
			json_text(b, r->column[j]);
			text_add(b, ": ");
			json_value(&f, b);
		}
		text_add(b, "}");
	}
	text_add(b, "\n%*s]", indent, "");
}

void records_print(const struct records *r, bool json)
{
	struct text_builder b = { 0 };
	if (json) {
		records_json(r, 0, &b);
		text_add(&b, "\n");
	} else {
		records_csv(r, true, &b);
	}
	fputs(b.data ? b.data : "", stdout);
	text_builder_free(&b);
}
