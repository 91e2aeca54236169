#ifndef ROPEWALK_COLUMNS_H
#define ROPEWALK_COLUMNS_H

#include "model/base/text.h"
#include "runs/show/records.h"

#include <stddef.h>

/* Structs as the rows of a CSV file: a table of columns says which field stands where. For runs/run/rows.c and
 * measures.c. */

enum column_kind { COLUMN_TEXT, COLUMN_INTEGER, COLUMN_NUMBER };
struct column {
	const char *name;
	enum column_kind kind;
	size_t offset;
	bool optional; /* empty where nothing was scored */
	bool unknown;  /* and where it is NaN */
};

#define COLUMN(type, kind, name, field) { #name, COLUMN_##kind, offsetof(struct type, field), false, false }
#define OPTIONAL(type, kind, name, field) { #name, COLUMN_##kind, offsetof(struct type, field), true, false }
#define UNKNOWN(type, kind, name, field) { #name, COLUMN_##kind, offsetof(struct type, field), true, true }

/* What kinds of files differ in. */
struct row_kind {
	const struct column *column;         /* ends with a NULL name */
	size_t size;                         /* of a row */
	bool (*scored)(const void *row);     /* NULL: no column is optional */
	const char *(*impossible)(const void *row); /* the first column whose number cannot be, or NULL */
	void (*add)(const void *row, void *to);
};

/* Reads a file's rows, header aside, and adds each; no file, no rows. The errors of a damaged one name FILE:LINE. */
struct err columns_read(const char *path, const struct row_kind *kind, void *to);
struct err columns_write(const char *path, const struct row_kind *kind, const void *rows, int count);
/* The same as records. */
void columns_records(const struct row_kind *kind, const void *rows, int count, struct records *to);

#endif
