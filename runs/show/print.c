#include "runs/show/print.h"

#include "model/base/stb.h"
#include "runs/show/calibrated.h"
#include "runs/show/expect.h"
#include "runs/show/growth.h"
#include "runs/show/notes.h"
#include "runs/show/stability.h"
#include "runs/show/table.h"
#include "runs/show/usable.h"
#include "runs/show/verdicts.h"

#include <stdio.h>
#include <string.h>

/* Gives a sheet away and frees it. */
static void give(struct sheet *sheet, take_sheet take, void *to)
{
	take(sheet, to);
	sheet_free(sheet);
}

static struct err each_group(const struct results *r, const char *group, const char *against, take_sheet take, void *to)
{
	struct sheet sheet;
	TRY(table_sheet(r, group, &sheet));
	give(&sheet, take, to);
	if (calibrated_known(r)) {
		calibrated_sheet(r, group, &sheet);
		give(&sheet, take, to);
	}
	if (growth_known(r)) {
		growth_sheet(r, group, &sheet);
		give(&sheet, take, to);
	}
	if (*against) {
		table_differences(r, group, against, &sheet);
		give(&sheet, take, to);
	}
	return OK;
}

static void each_claim(const struct results *r, take_sheet take, void *to)
{
	const struct study_claim *claim = r->study->claim;
	struct sheet sheet;
	if (expect_sheet(r, &sheet))
		give(&sheet, take, to);
	for (int i = 0; i < arrlen(claim); i++) {
		if (claim[i].kind == CLAIM_PUBLISHED)
			published_sheet(r, &claim[i], &sheet);
		else if (claim[i].kind == CLAIM_STABILITY)
			stability_sheet(r, &claim[i], &sheet);
		else
			continue;
		give(&sheet, take, to);
	}
	if (verdicts_sheet(r, &sheet))
		give(&sheet, take, to);
}

struct err print_each_sheet(const struct results *r, const char *against, take_sheet take, void *to)
{
	const char **group = table_groups(r);
	struct sheet sheet;
	struct err e = OK;
	for (int i = 0; i < arrlen(group) && !e.code; i++)
		e = each_group(r, group[i], against, take, to);
	arrfree(group);
	if (!e.code && usable_sheet(r, &sheet))
		give(&sheet, take, to);
	if (!e.code)
		each_claim(r, take, to);
	return e;
}

struct rendering {
	enum format format;
	struct text_builder *b;
};

static void render(const struct sheet *sheet, void *to)
{
	const struct rendering *r = to;
	format_sheet(r->format, sheet, r->b);
}

static struct err print_sheets(const struct results *r, enum format format, const char *against, bool first)
{
	struct text_builder b = { 0 }, notes = { 0 };
	text_add(&b, "%s", first ? "" : "\n");
	format_heading(format, r->folder, &b);
	struct err e = print_each_sheet(r, against, render, &(struct rendering){ format, &b });
	if (!e.code) {
		notes_text(r, &notes);
		format_notes(format, notes.data, &b);
		e = *r->late;
	}
	if (!e.code)
		fputs(b.data, stdout);
	text_builder_free(&b);
	text_builder_free(&notes);
	return e;
}

static void print_warnings(const struct results *r)
{
	struct text_builder warnings = { 0 };
	notes_warnings(r, &warnings);
	if (warnings.size)
		fputs(warnings.data, stderr);
	text_builder_free(&warnings);
}

static void json_notes(const struct results *r, struct text_builder *b)
{
	struct text_builder notes = { 0 };
	notes_text(r, &notes);
	bool begun = false;
	for (const char *at = notes.data ? notes.data : ""; *at; begun = true) {
		struct text_builder line = { 0 };
		int length = (int)strcspn(at, "\n");
		text_add(&line, "%.*s", length, at);
		at += length + (at[length] == '\n');
		for (; !strncmp(at, "  ", 2); at += length + (at[length] == '\n')) { /* what was wrapped */
			length = (int)strcspn(at, "\n");
			text_add(&line, "%.*s", length - 1, at + 1);
		}
		text_add(b, "%s\n      ", begun ? "," : "");
		json_text(b, line.data);
		text_builder_free(&line);
	}
	text_builder_free(&notes);
}

static void json_claims(const struct results *r, struct text_builder *b)
{
	static const struct {
		const char *name;
		void (*make)(const struct results *r, struct records *out);
	} kind[] = { { "expected", expect_records },
		     { "published", published_records },
		     { "verdicts", verdicts_records },
		     { "stability", stability_records } };
	for (size_t i = 0; i < sizeof kind / sizeof *kind; i++) {
		struct records records = { 0 };
		kind[i].make(r, &records);
		text_add(b, ",\n    \"%s\": ", kind[i].name);
		records_json(&records, 4, b);
		records_free(&records);
	}
}

static struct err json_study(const struct results *r, const char *against, bool first, struct text_builder *b)
{
	struct records rows = { 0 }, seeds = { 0 };
	struct err e = table_long(r, *against ? against : NULL, &rows);
	table_seeds(r, &seeds);
	text_add(b, "%s\n  {\"study\": ", first ? "" : ",");
	json_text(b, r->folder);
	text_add(b, ",\n    \"command\": ");
	json_text(b, study_folder_command(r->folder));
	text_add(b, ",\n    \"rows\": ");
	records_json(&rows, 4, b);
	text_add(b, ",\n    \"seeds\": ");
	records_json(&seeds, 4, b);
	json_claims(r, b);
	text_add(b, ",\n    \"notes\": [");
	json_notes(r, b);
	text_add(b, "]}");
	records_free(&rows);
	records_free(&seeds);
	return e.code ? e : *r->late;
}

/* All studies' numbers in one piece. */
struct numbers {
	struct records records;
	struct text_builder json;
};

static struct err add_numbers(const struct results *r, enum format format, const char *against, bool first,
			      struct numbers *to)
{
	print_warnings(r);
	if (format == FORMAT_JSON)
		return json_study(r, against, first, &to->json);
	if (format == FORMAT_WIDE)
		table_wide(r, &to->records);
	else
		TRY(table_long(r, *against ? against : NULL, &to->records));
	return *r->late;
}

static void print_numbers(enum format format, struct numbers *n)
{
	struct text_builder b = { 0 };
	if (format == FORMAT_JSON)
		text_add(&b, "[%s\n]\n", n->json.data);
	else
		records_csv(&n->records, true, &b);
	fputs(b.data, stdout);
	text_builder_free(&b);
}

static struct err print_one(const struct print_study *s, const struct print_options *o, bool first, struct numbers *n)
{
	enum format format = (enum format)o->format;
	struct results r;
	TRY(results_read(s->folder, s->study, s->grid, &r));
	struct err e = table_against_check(&r, o->against);
	if (!e.code)
		e = format_sheets(format) ? print_sheets(&r, format, o->against, first)
					  : add_numbers(&r, format, o->against, first, n);
	results_free(&r);
	return e;
}

struct err print_options_check(const struct config *c, const struct print_options *o)
{
	if (*o->against || !config_given(c, "against"))
		return OK;
	return err_usage("Give a row: a scaling's label, or a row's as the table shows it.", "--against: is empty");
}

struct err print_check(const struct print_study *s, const struct print_options *o)
{
	const struct results r = { .study = s->study, .grid = s->grid, .folder = s->folder };
	return table_against_check(&r, o->against);
}

struct err print_studies(const struct print_study *study, int count, const struct print_options *o)
{
	enum format format = (enum format)o->format;
	struct numbers n = { 0 };
	struct err e = OK;
	for (int i = 0; i < count && !e.code; i++)
		e = print_one(&study[i], o, i == 0, &n);
	if (!e.code && !format_sheets(format))
		print_numbers(format, &n);
	records_free(&n.records);
	text_builder_free(&n.json);
	return e;
}
