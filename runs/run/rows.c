#include "runs/run/rows.h"

#include "model/base/stb.h"
#include "runs/options.h"
#include "runs/run/columns.h"

#include <math.h>
#include <string.h>

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

/* Where the protocol's name is, and how long; of `all` there is none. */
static const char *protocol_name_in(const struct row *row, size_t *length)
{
	static const char before[] = "; protocol ";
	const char *at = strstr(row->protocol, before);
	at = at ? at + strlen(before) : "";
	*length = strcspn(at, ";");
	return at;
}

const char *row_protocol(const struct row *row)
{
	size_t length;
	const char *at = protocol_name_in(row, &length);
	struct text_builder b = { 0 };
	text_add(&b, "%.*s", (int)length, at);
	const char *name = text_keep(b.data ? b.data : "");
	text_builder_free(&b);
	return name;
}

bool row_protocol_is(const struct row *row, const struct method *protocol)
{
	size_t length;
	const char *at = protocol_name_in(row, &length);
	struct text_builder b = { 0 };
	protocol_name(protocol, &b);
	bool same = length == b.size && (!length || !memcmp(at, b.data, length));
	text_builder_free(&b);
	return same;
}

/* ln of the largest number. */
#define LOG_MOST 709.782712893384

static bool possible_perplexity(const struct eval_cell *c)
{
	if (isinf(c->perplexity))
		return c->nll >= LOG_MOST * (1 - 1e-6);
	return c->perplexity > 0 && fabs(log(c->perplexity) - c->nll) <= 1e-6 * (1 + c->nll);
}

static bool is_multiple(const struct row *r)
{
	double length = (double)r->length;
	return fabs(r->multiple * (double)r->train_length - length) <= 1e-9 * length;
}

/* A file edited by hand is not to be averaged with the others. */
const char *row_impossible(const struct row *r)
{
	const struct eval_cell *c = &r->cell;
	return !(r->factor > 0 && isfinite(r->factor))		? "factor"
	       : r->train_length < 1				? "train_length"
	       : r->length < 1					? "length"
	       : !is_multiple(r)				? "multiple"
	       : r->sequences < 1				? "sequences"
	       : c->scored < 0					? "scored"
	       : !(c->nll > -1e-3)				? "nll"
	       : !(c->nll_se >= 0)				? "nll_se"
	       : c->floor < 0					? "floor"
	       : !(c->accuracy >= 0 && c->accuracy <= 1)	? "accuracy"
	       : !(c->exact >= 0 && c->exact <= 1)		? "exact"
								: NULL;
}

const char *row_impossible_perplexity(const struct row *r)
{
	return r->cell.scored && !possible_perplexity(&r->cell) ? "perplexity" : NULL;
}

static const char *impossible_row(const void *row)
{
	const char *first = row_impossible_perplexity(row);
	const char *other = row_impossible(row);
	return other ? other : first;
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

static bool is_scored(const void *row)
{
	return ((const struct row *)row)->cell.scored > 0;
}

static void add_row(const void *row, void *rows)
{
	arrput(*(struct row **)rows, *(const struct row *)row);
}

static void add_sequence_row(const void *row, void *rows)
{
	arrput(*(struct sequence_row **)rows, *(const struct sequence_row *)row);
}

static const struct row_kind row_kind = { row_columns, sizeof(struct row), is_scored, impossible_row, add_row };
static const struct row_kind sequence_kind = { sequence_columns, sizeof(struct sequence_row), NULL,
					       impossible_sequence_row, add_sequence_row };

struct err rows_read(const char *path, struct row **rows)
{
	return columns_read(path, &row_kind, rows);
}

struct err sequence_rows_read(const char *path, struct sequence_row **rows)
{
	return columns_read(path, &sequence_kind, rows);
}

struct err rows_write(const char *path, const struct row *rows, int count)
{
	return columns_write(path, &row_kind, rows, count);
}

struct err sequence_rows_write(const char *path, const struct sequence_row *rows, int count)
{
	return columns_write(path, &sequence_kind, rows, count);
}

void rows_records(const struct row *rows, int count, struct records *to)
{
	columns_records(&row_kind, rows, count, to);
}
