#ifndef ROPEWALK_REPORT_H
#define ROPEWALK_REPORT_H

#include "err.h"

#include <stddef.h>

/* Numbers to be shown, before they have a form: facts, tables of columns, sentences. Whoever knows the numbers fills a
 * report; what programs read and what people read are both made from it (runs/show/report_print.h). */

struct arena;

/* A text or a number with a name. */
struct report_fact {
	const char *name;
	char *text; /* NULL: a number */
	double number;
};

/* An array with a label a row (its index). */
#define REPORT_WORD 24
struct report_column {
	const char *name; /* for programs; NULL: for people alone */
	char heading[32]; /* for people; "": for programs alone */
	int width;        /* numbers a row, themselves an array; 0: a single number */
	double *value;    /* [rows][width or 1]; not finite: unknown or without end */
	char (*word)[REPORT_WORD]; /* [rows], in place of numbers; NULL */
};

struct report_table {
	const char *name; /* programs get the rows as objects below it; NULL: each column as an array */
	const char *row;  /* heading of the labels: "pair" */
	int rows;
	struct report_column *column; /* stb_ds array */
};

/* Arrays are stb_ds arrays. Names are literals; headings and texts are copied. */
struct report {
	struct report_fact *fact;
	struct report_table *table;
	char **note;
	struct arena *memory;
};

void report_text(struct report *r, const char *name, const char *text);
void report_number(struct report *r, const char *name, double number);

/* Begins a table; the columns added next are its. */
void report_table(struct report *r, const char *name, const char *row, int rows);

/* A column of the last table: `value` [rows][width or 1], zeroed, to be filled; an error where memory lacks. */
struct err report_column(struct report *r, const char *name, const char *heading, int width, double **value);
/* The same of words of up to REPORT_WORD - 1 characters. */
struct err report_words(struct report *r, const char *name, const char *heading, char (**word)[REPORT_WORD]);

void report_note(struct report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

void report_free(struct report *r);

#endif
