#include "runs/plot/cuts.h"

#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum kind { TEXT, INTEGER, NUMBER };

/* Found by name: files of one kind lack columns of the other. */
static const struct column {
	const char *name;
	enum kind kind;
	size_t offset;
	const char *of; /* the kind of file that alone has it; NULL: all */
} columns[] = {
	{ "encoding", TEXT, offsetof(struct cut, row.encoding), NULL },
	{ "scaling", TEXT, offsetof(struct cut, row.scaling), NULL },
	{ "task", TEXT, offsetof(struct cut, row.task), NULL },
	{ "group", TEXT, offsetof(struct cut, row.group), NULL },
	{ "seed", INTEGER, offsetof(struct cut, row.seed), NULL },
	{ "eval_seed", INTEGER, offsetof(struct cut, row.eval_seed), NULL },
	{ "train_length", INTEGER, offsetof(struct cut, row.train_length), NULL },
	{ "length", INTEGER, offsetof(struct cut, row.length), NULL },
	{ "multiple", NUMBER, offsetof(struct cut, row.multiple), NULL },
	{ "sequences", INTEGER, offsetof(struct cut, row.sequences), NULL },
	{ "position", INTEGER, offsetof(struct cut, position), CUTS_POSITION },
	{ "positions", INTEGER, offsetof(struct cut, positions), CUTS_POSITION },
	{ "distance", INTEGER, offsetof(struct cut, distance), CUTS_DISTANCE },
	{ "scored", INTEGER, offsetof(struct cut, row.cell.scored), NULL },
	{ "nll", NUMBER, offsetof(struct cut, row.cell.nll), NULL },
	{ "accuracy", NUMBER, offsetof(struct cut, row.cell.accuracy), NULL },
	{ "protocol", TEXT, offsetof(struct cut, row.protocol), NULL },
};
enum { COLUMNS = sizeof columns / sizeof *columns };

#define REMOVE "Remove the file: `ropewalk eval` and `ropewalk study` make it again."

/* Where the columns stand in the file; -1: not among those of its kind. */
static struct err find_columns(const char *path, const char *kind, char *const *head, int place[COLUMNS])
{
	for (int i = 0; i < COLUMNS; i++) {
		place[i] = -1;
		if (columns[i].of && strcmp(columns[i].of, kind))
			continue;
		for (int j = 0; j < arrlen(head); j++)
			if (!strcmp(head[j], columns[i].name))
				place[i] = j;
		if (place[i] < 0)
			return err_usage(REMOVE, "%s:1: has no column %s", path, columns[i].name);
	}
	return OK;
}

static bool read_field(const struct column *c, const char *text, struct cut *out)
{
	void *to = (char *)out + c->offset;
	if (c->kind == INTEGER)
		return text_to_integer(text, to);
	if (c->kind == NUMBER)
		return text_to_number(text, to);
	*(const char **)to = text_keep(text);
	return true;
}

static bool possible(const struct cut *c, const char *kind)
{
	bool sized = strcmp(kind, CUTS_POSITION) ? c->distance > 0 : c->position >= 0 && c->positions > 0;
	return sized && c->row.length > 0 && c->row.cell.scored > 0 && c->row.cell.accuracy >= 0 &&
	       c->row.cell.accuracy <= 1;
}

static struct err read_cut(const char *path, int line, char *const *field, int fields, const char *kind,
			   const int place[COLUMNS], struct cut *out)
{
	*out = (struct cut){ 0 };
	if (arrlen(field) != fields)
		return err_usage(REMOVE, "%s:%d: a damaged row: it has %d fields where there are %d", path, line,
				 (int)arrlen(field), fields);
	for (int i = 0; i < COLUMNS; i++)
		if (place[i] >= 0 && !read_field(&columns[i], field[place[i]], out))
			return err_usage(REMOVE, "%s:%d: a damaged row: its %s is '%.60s'", path, line, columns[i].name,
					 field[place[i]]);
	if (!possible(out, kind))
		return err_usage(REMOVE, "%s:%d: a damaged row: its numbers cannot be", path, line);
	return OK;
}

/* Kept texts are the same where they are equal. */
static bool same_evaluation(const struct row *a, const struct row *b)
{
	return a->encoding == b->encoding && a->scaling == b->scaling && a->task == b->task &&
	       a->protocol == b->protocol && a->seed == b->seed && a->eval_seed == b->eval_seed &&
	       a->train_length == b->train_length && a->sequences == b->sequences;
}

static struct err read_csv(const char *path, const struct csv *csv, const char *kind, const struct cell *c, int scaling,
			   struct cut **cuts)
{
	int place[COLUMNS];
	struct cut cut, last = { 0 };
	bool owns = false;
	if (!arrlen(csv->record))
		return err_usage(REMOVE, "%s:1: is empty", path);
	TRY(find_columns(path, kind, csv->record[0], place));
	for (int i = 1; i < arrlen(csv->record); i++) {
		TRY(read_cut(path, csv->line[i], csv->record[i], (int)arrlen(csv->record[0]), kind, place, &cut));
		owns = same_evaluation(&cut.row, &last.row) ? owns : cell_owns(c, scaling, &cut.row);
		last = cut;
		if (owns)
			arrput(*cuts, cut);
	}
	return OK;
}

static struct err read_file(const char *path, const char *kind, const struct cell *c, int scaling, struct cut **cuts)
{
	char *text;
	size_t size;
	struct csv csv;
	if (!io_exists(path))
		return OK;
	TRY(io_read(path, &text, &size));
	struct err e = csv_parse(path, text, &csv);
	free(text);
	TRY(e);
	e = read_csv(path, &csv, kind, c, scaling, cuts);
	csv_free(&csv);
	return e;
}

/* It is named as the file of rows is, behind another first word. */
struct err cuts_read(const struct results *r, int cell, int scaling, const char *kind, struct cut **cuts)
{
	static const char word[] = "eval";
	const struct cell *c = &r->grid->cell[cell];
	if (r->cell[cell].status < CELL_FINISHED)
		return OK;
	char *rows = cell_csv(c, r->cell[cell].folder, scaling), *name = strrchr(rows, '/') + 1;
	struct text_builder path = { 0 };
	/* Of the stream `tune` there are none. */
	if (!strncmp(name, word, strlen(word)))
		text_add(&path, "%.*s%s%s", (int)(name - rows), rows, kind, name + strlen(word));
	struct err e = path.data ? read_file(path.data, kind, c, scaling, cuts) : OK;
	text_builder_free(&path);
	free(rows);
	return e;
}
