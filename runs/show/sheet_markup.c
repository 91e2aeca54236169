#include "runs/show/sheet.h"

#include "model/base/stb.h"

#include <string.h>

/* Renderings for documents: Markdown and LaTeX. */

void markdown_escape(const char *text, struct text_builder *b)
{
	for (const char *s = text; *s; s++)
		text_add(b, strchr("|*_<`\\", *s) ? "\\%c" : "%c", *s);
}

/* The next line may begin with a bracket, which \\ would take for its own. */
#define LATEX_LINE " \\\\{} "

/* In LaTeX's own font encoding these are other signs. */
static const char *latex_name(char c)
{
	return c == '\\' ? "\\textbackslash{}" : c == '<' ? "\\textless{}" : c == '>' ? "\\textgreater{}" :
	       c == '|' ? "\\textbar{}" : c == '"' ? "''" : NULL;
}

static void latex_escape(const char *text, struct text_builder *b)
{
	for (const char *s = text; *s; s++) {
		if (latex_name(*s))
			text_add(b, "%s", latex_name(*s));
		else if (*s == '~' || *s == '^')
			text_add(b, "\\%c{}", *s);
		else if (strchr("%&#_{}$", *s))
			text_add(b, "\\%c", *s);
		else
			text_add(b, "%c", *s);
	}
}

/* A cell's lines in one, separated, each escaped. */
static void cell_text(const struct sheet_cell *c, const char *separator,
		      void (*escape)(const char *text, struct text_builder *b), struct text_builder *b)
{
	bool begun = false;
	for (int i = 0; i < SHEET_LINES; i++) {
		if (!*c->line[i])
			continue;
		text_add(b, "%s", begun ? separator : "");
		escape(c->line[i], b);
		begun = true;
	}
}

/* The title's first line, and the rest. */
static const char *title_rest(const char *title, int *first)
{
	*first = (int)strcspn(title, "\n");
	return title + *first + (title[*first] == '\n');
}

static void markdown_title(const char *title, struct text_builder *b)
{
	int first;
	const char *rest = title_rest(title, &first);
	text_add(b, "**%.*s**\n", first, title);
	for (; *rest; rest = title_rest(rest, &first)) {
		title_rest(rest, &first);
		text_add(b, "\n%.*s\n", first, rest);
	}
	text_add(b, "\n");
}

void sheet_markdown(const struct sheet *s, struct text_builder *b)
{
	markdown_title(s->title, b);
	text_add(b, "| |");
	for (int i = 0; i < arrlen(s->column); i++)
		text_add(b, " %s |", s->column[i]);
	text_add(b, "\n|---|");
	for (int i = 0; i < arrlen(s->column); i++)
		text_add(b, "---:|");
	text_add(b, "\n");
	for (int i = 0; i < arrlen(s->row); i++) {
		text_add(b, "| ");
		markdown_escape(s->row[i].label, b);
		text_add(b, " |");
		for (int j = 0; j < arrlen(s->row[i].cell); j++) {
			const struct sheet_cell *c = &s->row[i].cell[j];
			text_add(b, c->best ? " **" : " ");
			cell_text(c, "<br>", markdown_escape, b);
			text_add(b, c->best ? "** |" : " |");
		}
		text_add(b, "\n");
	}
}

static void latex_cell(const struct sheet_cell *c, struct text_builder *b)
{
	bool several = *c->line[1] || *c->line[2] || *c->line[3];
	text_add(b, " & %s%s", several ? "\\shortstack[r]{" : "", c->best ? "\\textbf{" : "");
	if (!c->best) {
		cell_text(c, LATEX_LINE, latex_escape, b);
	} else {
		struct sheet_cell beneath = *c;
		latex_escape(c->line[0], b);
		*beneath.line[0] = '\0';
		text_add(b, "}%s", several ? LATEX_LINE : "");
		cell_text(&beneath, LATEX_LINE, latex_escape, b);
	}
	text_add(b, "%s", several ? "}" : "");
}

void sheet_latex(const struct sheet *s, struct text_builder *b)
{
	int first;
	title_rest(s->title, &first);
	struct text_builder caption = { 0 };
	text_add(&caption, "%.*s.", first, s->title);
	text_add(b, "\\begin{table}\n\\caption{");
	latex_escape(caption.data, b);
	text_builder_free(&caption);
	text_add(b, "}\n\\begin{tabular}{l");
	for (int i = 0; i < arrlen(s->column); i++)
		text_add(b, "r");
	text_add(b, "}\n\\toprule\n");
	for (int i = 0; i < arrlen(s->column); i++) {
		text_add(b, " & ");
		latex_escape(s->column[i], b);
	}
	text_add(b, " \\\\\n\\midrule\n");
	for (int i = 0; i < arrlen(s->row); i++) {
		text_add(b, "%s", s->row[i].ruled ? "\\midrule\n" : "");
		latex_escape(s->row[i].label, b);
		for (int j = 0; j < arrlen(s->row[i].cell); j++)
			latex_cell(&s->row[i].cell[j], b);
		text_add(b, " \\\\\n");
	}
	text_add(b, "\\bottomrule\n\\end{tabular}\n\\end{table}\n");
}
