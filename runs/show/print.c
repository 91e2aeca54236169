#include "runs/show/print.h"

#include "model/base/stb.h"
#include "runs/show/notes.h"
#include "runs/show/table.h"

#include <stdio.h>

static struct err add_tables(const struct results *r, struct text_builder *b)
{
	const char **group = table_groups(r);
	struct err e = OK;
	for (int i = 0; i < arrlen(group) && !e.code; i++) {
		e = table_text(r, group[i], b);
		text_add(b, "\n");
	}
	arrfree(group);
	return e;
}

static struct err print_text(const struct results *r, bool first)
{
	struct text_builder b = { 0 };
	text_add(&b, "%sstudy %s\n\n", first ? "" : "\n", r->folder);
	struct err e = add_tables(r, &b);
	if (!e.code) {
		notes_text(r, &b);
		fputs(b.data, stdout);
	}
	text_builder_free(&b);
	return e;
}

static void print_csv(const struct results *r, bool first)
{
	struct text_builder table = { 0 }, warnings = { 0 };
	if (first)
		table_csv_header(&table);
	table_csv(r, &table);
	fputs(table.data, stdout);
	notes_warnings(r, &warnings);
	if (warnings.size)
		fputs(warnings.data, stderr);
	text_builder_free(&table);
	text_builder_free(&warnings);
}

struct err print_study(const char *folder, const struct study *s, const struct grid *g, enum format format, bool first)
{
	struct results r;
	TRY(results_read(folder, s, g, &r));
	struct err e = OK;
	if (format == FORMAT_CSV)
		print_csv(&r, first);
	else
		e = print_text(&r, first);
	results_free(&r);
	return e;
}
