#include "runs/run/rows.h"

#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/options.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The columns in order: name, kind, field. A column that is `optional` is empty where nothing was scored, and one that
 * may be unknown also where it is NaN. */
enum column_kind { COLUMN_TEXT, COLUMN_INTEGER, COLUMN_NUMBER };
struct column {
	const char *name;
	enum column_kind kind;
	size_t offset;
	bool optional, unknown;
};

#define COLUMN(type, kind, name, field) { #name, COLUMN_##kind, offsetof(struct type, field), false, false }
#define OPTIONAL(type, kind, name, field) { #name, COLUMN_##kind, offsetof(struct type, field), true, false }
#define UNKNOWN(type, kind, name, field) { #name, COLUMN_##kind, offsetof(struct type, field), true, true }

static const struct column row_columns[] = {
	COLUMN(row, TEXT, run, run),
	COLUMN(row, TEXT, encoding, encoding),
	COLUMN(row, TEXT, scaling, scaling),
	COLUMN(row, NUMBER, factor, factor),
	COLUMN(row, TEXT, task, task),
	COLUMN(row, TEXT, group, group),
	COLUMN(row, INTEGER, seed, seed),
	COLUMN(row, INTEGER, eval_seed, eval_seed),
	COLUMN(row, INTEGER, train_length, train_length),
	COLUMN(row, INTEGER, length, length),
	COLUMN(row, NUMBER, multiple, multiple),
	COLUMN(row, INTEGER, sequences, sequences),
	COLUMN(row, INTEGER, scored, cell.scored),
	OPTIONAL(row, NUMBER, nll, cell.nll),
	OPTIONAL(row, NUMBER, nll_se, cell.nll_se),
	OPTIONAL(row, NUMBER, perplexity, cell.perplexity),
	UNKNOWN(row, NUMBER, floor, cell.floor),
	OPTIONAL(row, NUMBER, accuracy, cell.accuracy),
	OPTIONAL(row, NUMBER, exact, cell.exact),
	COLUMN(row, TEXT, protocol, protocol),
	{ 0 },
};

static const struct column sequence_columns[] = {
	COLUMN(sequence_row, TEXT, run, run),
	COLUMN(sequence_row, TEXT, scaling, scaling),
	COLUMN(sequence_row, TEXT, task, task),
	COLUMN(sequence_row, TEXT, group, group),
	COLUMN(sequence_row, INTEGER, seed, seed),
	COLUMN(sequence_row, INTEGER, eval_seed, eval_seed),
	COLUMN(sequence_row, INTEGER, length, length),
	COLUMN(sequence_row, INTEGER, sequences, sequences),
	COLUMN(sequence_row, INTEGER, sequence, sequence),
	COLUMN(sequence_row, INTEGER, scored, tally.scored),
	COLUMN(sequence_row, NUMBER, nll_sum, tally.nll_sum),
	COLUMN(sequence_row, INTEGER, correct, tally.correct),
	{ 0 },
};

int64_t row_stream(const struct row *row)
{
	return strstr(row->protocol, "; stream tune;") ? EVAL_TUNE : EVAL_REPORT;
}

int64_t row_kv(const struct row *row)
{
	int64_t found = EVAL_KV_OFF;
	for (int64_t kv = EVAL_KV_OFF + 1; kv < EVAL_KVS; kv++) {
		struct text_builder b = { 0 };
		text_add(&b, "; kv ");
		eval_kv_name(kv, &b);
		text_add(&b, ";");
		found = strstr(row->protocol, b.data) ? kv : found;
		text_builder_free(&b);
	}
	return found;
}

/* Is the field left empty? */
static bool is_empty(const struct column *c, const void *row, bool scored)
{
	return c->optional && (!scored || (c->unknown && isnan(*(const double *)((const char *)row + c->offset))));
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

void rows_records(const struct row *rows, int count, struct records *to)
{
	for (int i = 0; i < count; i++)
		record_row(row_columns, &rows[i], rows[i].cell.scored > 0, to);
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

/* ln of the largest number. */
#define LOG_MOST 709.782712893384

static bool possible_perplexity(const struct eval_cell *c)
{
	if (isinf(c->perplexity))
		return c->nll >= LOG_MOST * (1 - 1e-6);
	return c->perplexity > 0 && fabs(log(c->perplexity) - c->nll) <= 1e-6 * (1 + c->nll);
}

/* The first column whose number cannot be, NULL if there is none: a file edited by hand is not to be averaged with the
 * others. */
static const char *impossible_row(const void *row)
{
	const struct row *r = row;
	const struct eval_cell *c = &r->cell;
	return !(r->factor > 0 && isfinite(r->factor))		? "factor"
	       : r->train_length < 1				? "train_length"
	       : r->length < 1					? "length"
	       : !(r->multiple > 0 && isfinite(r->multiple))	? "multiple"
	       : r->sequences < 1				? "sequences"
	       : c->scored < 0					? "scored"
	       : !(c->nll > -1e-3)				? "nll"
	       : !(c->nll_se >= 0)				? "nll_se"
	       : c->scored && !possible_perplexity(c)		? "perplexity"
	       : c->floor < 0					? "floor"
	       : !(c->accuracy >= 0 && c->accuracy <= 1)	? "accuracy"
	       : !(c->exact >= 0 && c->exact <= 1)		? "exact"
								: NULL;
}

static const char *impossible_sequence_row(const void *row)
{
	const struct sequence_row *r = row;
	const struct eval_tally *t = &r->tally;
	return r->length < 1						? "length"
	       : r->sequence < 0 || r->sequence >= r->sequences	? "sequence"
	       : t->scored < 0						? "scored"
	       : !(t->nll_sum > -1e-3 * ((double)t->scored + 1))	? "nll_sum"
	       : t->correct < 0 || t->correct > t->scored		? "correct"
									: NULL;
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
	for (int i = 0; c[i].name; i++)
		if (c[i].unknown && scored && !*field[i])
			*(double *)((char *)row + c[i].offset) = NAN;
}

/* What the two kinds of files differ in. */
struct kind {
	const struct column *column;
	size_t size; /* of a row */
	const char *(*impossible)(const void *row);
	void (*add)(const void *row, void *to);
};

#define REMOVE "Remove the file: `ropewalk eval` and `ropewalk study` make it again."

static struct err damaged(const char *path, int line, const struct column *c, char *const *field, const char *name)
{
	int i = 0;
	while (c[i].name && strcmp(c[i].name, name))
		i++;
	return err_usage(REMOVE, "%s:%d: a damaged row: its %s is '%.60s'", path, line, name, field[i]);
}

/* One record into a row of zeros. */
static struct err read_record(const char *path, int line, const struct kind *kind, char *const *field, void *row)
{
	const struct column *c = kind->column;
	if (arrlen(field) != columns(c))
		return err_usage(REMOVE, "%s:%d: a damaged row: it has %d fields where there are %d", path, line,
				 (int)arrlen(field), columns(c));
	const char *bad = read_row(c, field, row);
	if (!bad)
		bad = kind->impossible(row);
	bool scored = c == row_columns && ((const struct row *)row)->cell.scored > 0;
	if (!bad && c == row_columns)
		bad = not_as_scored(c, field, scored);
	forget_unknown(c, field, scored, row);
	return bad ? damaged(path, line, c, field, bad) : OK;
}

static struct err read_records(const char *path, const struct csv *csv, const struct kind *kind, void *to)
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

/* Reads a file's records, header aside, and adds each row. */
static struct err read_rows(const char *path, const struct kind *kind, void *to)
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

static void add_row(const void *row, void *rows)
{
	arrput(*(struct row **)rows, *(const struct row *)row);
}

struct err rows_read(const char *path, struct row **rows)
{
	static const struct kind kind = { row_columns, sizeof **rows, impossible_row, add_row };
	return read_rows(path, &kind, rows);
}

static void add_sequence_row(const void *row, void *rows)
{
	arrput(*(struct sequence_row **)rows, *(const struct sequence_row *)row);
}

struct err sequence_rows_read(const char *path, struct sequence_row **rows)
{
	static const struct kind kind = { sequence_columns, sizeof **rows, impossible_sequence_row, add_sequence_row };
	return read_rows(path, &kind, rows);
}

static struct err write_text(const char *path, struct text_builder *b)
{
	struct err e = io_write(path, b->data, b->size);
	text_builder_free(b);
	return e;
}

struct err rows_write(const char *path, const struct row *rows, int count)
{
	struct text_builder b = { 0 };
	print_header(row_columns, &b);
	for (int i = 0; i < count; i++)
		print_row(row_columns, &rows[i], rows[i].cell.scored > 0, &b);
	return write_text(path, &b);
}

struct err sequence_rows_write(const char *path, const struct sequence_row *rows, int count)
{
	struct text_builder b = { 0 };
	print_header(sequence_columns, &b);
	for (int i = 0; i < count; i++)
		print_row(sequence_columns, &rows[i], true, &b);
	return write_text(path, &b);
}
