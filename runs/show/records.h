#ifndef ROPEWALK_RECORDS_H
#define ROPEWALK_RECORDS_H

#include "model/base/text.h"

/* Results for programs: records of named fields, printed as CSV or JSON. Columns stand in the order in which they were
 * first named; a field that a record lacks is empty in CSV and null in JSON. */

enum field_kind { FIELD_ABSENT, FIELD_TEXT, FIELD_INTEGER, FIELD_NUMBER };
struct field {
	enum field_kind kind;
	const char *text; /* kept */
	int64_t integer;
	double number;
};

struct records {
	const char **column;  /* stb_ds, kept */
	struct field **record; /* stb_ds array of stb_ds arrays, by column; shorter ones lack the rest */
};

void records_begin(struct records *r); /* the fields that follow are of a new record */
void record_text(struct records *r, const char *column, const char *text); /* NULL: absent */
void record_integer(struct records *r, const char *column, int64_t value);
void record_number(struct records *r, const char *column, double value); /* NaN: absent */
void records_free(struct records *r);

/* RFC 4180, but lines end in "\n"; numbers are the shortest text that reads back equal. `header`: with the line of
 * columns. Append. */
void records_csv(const struct records *r, bool header, struct text_builder *b);
/* An array of objects, a line each, every object with every column; an infinite number is the text "inf". */
void records_json(const struct records *r, int indent, struct text_builder *b);

/* To stdout: CSV with its columns, or JSON. */
void records_print(const struct records *r, bool json);

/* A JSON string with its quotes. Appends. */
void json_text(struct text_builder *b, const char *text);

#endif
