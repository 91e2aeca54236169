#include "runs/report/report.h"

#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/plot/gnuplot.h"
#include "runs/plot/plot.h"
#include "runs/report/html.h"
#include "runs/run/run_folder.h"
#include "runs/show/notes.h"
#include "runs/show/print.h"
#include "runs/show/table.h"
#include "runs/version.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The sections in order. */
struct page {
	const struct subject *subject;
	const struct results *results;
	struct text_builder *b;
};

static struct err add_summary(const struct page *p)
{
	text_add(p->b, "<ul>\n");
	report_summary(p->results, p->b);
	text_add(p->b, "</ul>\n");
	return OK;
}

/* What a reader of tables has to know. */
static const struct {
	const char *term, *text;
} terms[] = {
	{ "Colours and *",
	  "Blue is near the floor (where none is known, near certainty), orange near chance. An asterisk marks all "
	  "rows of a column that cannot be told from "
	  "its best." },
	{ "Below the rule",
	  "References: what does not beat the window gains nothing from the longer sequence; the others need no model "
	  "at all." },
};

static const char first_column[] =
	"It is the trained length. A model whose perplexity is above the floor there has not learned the task, and its "
	"other columns mean nothing (marked !).";
static const char first_column_of_bytes[] = "It is the trained length, against which the others are held.";
static const char cell_of_choices[] =
	"Perplexity / accuracy in per cent. Perplexity is how many choices the model hesitates between: the floor "
	"(1.00 where the answer is certain) is perfect, chance is the size of the vocabulary, and an overconfident "
	"model may be worse than chance. ";
static const char cell_of_bytes[] =
	"Bits per byte / accuracy in per cent. Bits per byte is what it would cost to store the text by the model's "
	"guesses: less is better, 8 is a byte as it is, and the best possible is not known. Perplexity in pictures is "
	"2 to its power. ";
static const char small_print[] =
	"Small print is the spread over seeds, that is, over models trained from different beginnings, and after +- "
	"the error that comes from the number of evaluated sequences where that matters.";

static void add_term(struct text_builder *b, const char *term, const char *text)
{
	html_element(b, "dt", term);
	html_element(b, "dd", text);
}

static void add_task(const struct page *p)
{
	const struct method *task = &p->results->grid->cell[0].config.data.task;
	const char **group = table_groups(p->results);
	struct text_builder text = { 0 };
	text_add(&text, "%s: %s. ", task->entry->name, task->entry->help);
	if (arrlen(group) > 1) {
		text_add(&text, "Each kind of token that is asked for has a table of its own: ");
		for (int i = 0; i < arrlen(group); i++)
			text_add(&text, "%s%s", i ? ", " : "", group[i]);
		text_add(&text, ". ");
	}
	text_add(&text, "The best possible result, the floor, is known where one is shown.");
	add_term(p->b, "The task", text.data);
	text_builder_free(&text);
	arrfree(group);
}

static struct err add_reading(const struct page *p)
{
	bool bytes = task_of(&p->results->grid->cell[0].config.data.task)->bytes;
	text_add(p->b, "<dl>\n");
	add_task(p);
	report_glossary(p->results, p->b);
	add_term(p->b, "A cell", chart_text("%s%s", bytes ? cell_of_bytes : cell_of_choices, small_print));
	add_term(p->b, "Read the column 1x first", bytes ? first_column_of_bytes : first_column);
	for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
		add_term(p->b, terms[i].term, terms[i].text);
	text_add(p->b, "</dl>\n");
	return OK;
}

static void take_table(const struct sheet *s, void *to)
{
	html_sheet(to, s);
}

static struct err add_tables(const struct page *p)
{
	return print_each_sheet(p->results, "", take_table, p->b);
}

static struct err add_picture(const struct page *p, const struct picture *picture, const struct chart *c)
{
	char *svg;
	size_t size;
	TRY(picture_draw(picture, c, PICTURE_SVG, &svg, &size));
	text_add(p->b, "<figure id=\"picture-%s\">\n", picture->name);
	html_svg(p->b, svg, picture->name, c->title);
	free(svg);
	html_element(p->b, "figcaption", picture->caption);
	text_add(p->b, "</figure>\n");
	return OK;
}

static struct err add_pictures(const struct page *p)
{
	struct err e = OK;
	if (!gnuplot_there()) {
		html_element(p->b, "p", "There are none: " GNUPLOT_MISSING ".");
		return OK;
	}
	for (int i = 0; picture_at(i) && !e.code; i++) {
		struct chart chart;
		e = picture_make(picture_at(i), p->results, &chart);
		if (!e.code && arrlen(chart.panel))
			e = add_picture(p, picture_at(i), &chart);
		chart_free(&chart);
	}
	return e;
}

/* Is a note not for this page: what names other commands, and of a run what is said of a study's folder? */
static bool left_out(const struct page *p, const char *note)
{
	return !strncmp(note, "more: ", 6) || !strncmp(note, "command: ", 9) ||
	       (p->subject->run && strstr(note, " are not of this study:"));
}

static void add_note(const struct page *p, const char *note)
{
	if (left_out(p, note))
		return;
	text_add(p->b, strncmp(note, "warning:", 8) ? "<p>" : "<p class=\"warning\">");
	html_text(p->b, note);
	text_add(p->b, "</p>\n");
}

/* Notes are paragraphs for a terminal: what was wrapped is indented. */
static struct err add_notes(const struct page *p)
{
	struct text_builder notes = { 0 };
	if (p->subject->others)
		html_element(p->b, "p", subject_others(p->subject));
	notes_text(p->results, &notes);
	for (const char *at = notes.data ? notes.data : ""; *at;) {
		struct text_builder note = { 0 };
		do {
			int length = (int)strcspn(at, "\n"), indent = note.size ? 1 : 0;
			text_add(&note, "%.*s", length - indent, at + indent);
			at += length + (at[length] == '\n');
		} while (!strncmp(at, "  ", 2));
		add_note(p, note.data);
		text_builder_free(&note);
	}
	text_builder_free(&notes);
	return OK;
}

static struct err add_file(const struct page *p, const char *name)
{
	char *path = io_join(p->subject->folder, name), *text = NULL;
	size_t size;
	struct err e = io_exists(path) ? io_read(path, &text, &size) : OK;
	if (!e.code && text)
		html_element(p->b, "pre", text);
	free(text);
	free(path);
	return e;
}

static struct err add_configuration(const struct page *p)
{
	html_element(p->b, "p", p->subject->run ? "The options of its training:" : "The study file, by which it can "
										   "be run again:");
	TRY(add_file(p, p->subject->run ? RUN_CONFIG : STUDY_FILE));
	html_element(p->b, "p", "The command line that last worked on it:");
	html_element(p->b, "pre", study_folder_command(p->subject->folder));
	return OK;
}

static void add_fact(const struct page *p, const char *name, const json_t *value)
{
	char number[NUMBER_TEXT];
	if (!value || json_is_object(value) || json_is_array(value))
		return;
	text_add(p->b, "<tr><th scope=\"row\">");
	html_text(p->b, name);
	text_add(p->b, "</th><td>");
	html_text(p->b, json_is_string(value)  ? json_string_value(value)
			: json_is_number(value) ? number_to_text(json_number_value(value), number)
			: json_is_true(value)   ? "yes"
						 : "no");
	text_add(p->b, "</td></tr>\n");
}

static const json_t *first_record(const struct results *r)
{
	for (int i = 0; i < arrlen(r->cell); i++)
		if (r->cell[i].record)
			return r->cell[i].record;
	return NULL;
}

static struct err add_environment(const struct page *p)
{
	static const char *const name[] = { "started", "version", "commit", "compiler",
					    "flags",   "real",    "openmp", "threads" };
	static const char *const blas[] = { "library", "core", "flavour", "products" };
	const json_t *record = first_record(p->results);
	if (!record) {
		html_element(p->b, "p", "No model is finished yet.");
		return OK;
	}
	text_add(p->b, "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"table: environment\">\n"
		       "<table class=\"facts\">\n<caption>What trained the first model; other machines may differ in "
		       "the last "
		       "digits, and then in the weights</caption>\n<tbody>\n");
	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		add_fact(p, name[i], json_object_get(record, name[i]));
	for (size_t i = 0; i < sizeof blas / sizeof *blas; i++)
		add_fact(p, chart_text("BLAS %s", blas[i]), json_object_get(json_object_get(record, "blas"), blas[i]));
	text_add(p->b, "</tbody>\n</table>\n</div>\n");
	return OK;
}

static const struct section {
	const char *id, *heading;
	struct err (*add)(const struct page *p);
} sections[] = {
	{ "summary", "In short", add_summary },
	{ "reading", "How to read it", add_reading },
	{ "tables", "Tables", add_tables },
	{ "pictures", "Pictures", add_pictures },
	{ "notes", "Notes", add_notes },
	{ "configuration", "Configuration", add_configuration },
	{ "environment", "Environment", add_environment },
};
enum { SECTIONS = sizeof sections / sizeof *sections };

static void add_top(const struct page *p)
{
	const char *title = chart_text("%s %s", p->subject->run ? "Run" : "Study", run_folder_name(p->subject->folder));
	text_add(p->b, "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
		       "<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" content=\"width=device-width, "
		       "initial-scale=1\"/>\n");
	html_element(p->b, "title", title);
	text_add(p->b, "<style>\n%s</style>\n</head>\n<body>\n<main>\n", html_style);
	html_element(p->b, "h1", title);
	report_question(p->results, p->b);
	text_add(p->b, "<nav aria-label=\"sections\"><ul>\n");
	for (int i = 0; i < SECTIONS; i++)
		text_add(p->b, "<li><a href=\"#%s\">%s</a></li>\n", sections[i].id, sections[i].heading);
	text_add(p->b, "</ul></nav>\n");
}

struct err report_html(const struct subject *s, struct text_builder *b)
{
	const struct page p = { s, &s->results, b };
	add_top(&p);
	for (int i = 0; i < SECTIONS; i++) {
		text_add(b, "<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">%s</h2>\n", sections[i].id, sections[i].id,
			 sections[i].heading);
		TRY(sections[i].add(&p));
		text_add(b, "</section>\n");
	}
	text_add(b, "</main>\n</body>\n</html>\n");
	return *s->results.late;
}
