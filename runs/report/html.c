#include "runs/report/html.h"

#include "model/base/stb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_escaped(struct text_builder *b, const char *text)
{
	for (const char *s = text; *s; s++)
		switch (*s) {
		case '&':
			text_add(b, "&amp;");
			break;
		case '<':
			text_add(b, "&lt;");
			break;
		case '>':
			text_add(b, "&gt;");
			break;
		case '"':
			text_add(b, "&quot;");
			break;
		case '\'':
			text_add(b, "&#39;");
			break;
		default:
			text_add(b, "%c", *s);
		}
}

void html_text(struct text_builder *b, const char *text)
{
	for (const char *at = text; *at;) {
		size_t length = strcspn(at, "\n"), room = 4 * length + 1;
		char *line = strndup(at, length), *shown = malloc(room);
		BUG_IF(!line || !shown, "no memory for a text");
		text_printable(line, shown, room);
		add_escaped(b, shown);
		free(line);
		free(shown);
		at += length;
		if (*at)
			text_add(b, "\n");
		at += *at == '\n';
	}
}

void html_element(struct text_builder *b, const char *tag, const char *text)
{
	text_add(b, "<%s>", tag);
	html_text(b, text);
	text_add(b, "</%s>\n", tag);
}

/* ---- Tables ---- */

static void add_caption(struct text_builder *b, const char *title)
{
	int first = (int)strcspn(title, "\n");
	char *line = strndup(title, (size_t)first);
	BUG_IF(!line, "no memory for a title");
	text_add(b, "<caption><span>");
	html_text(b, line);
	free(line);
	if (title[first]) {
		text_add(b, "<br/><small>");
		html_text(b, title + first + 1);
		text_add(b, "</small>");
	}
	text_add(b, "</span></caption>\n");
}

static void add_head(struct text_builder *b, const struct sheet *s)
{
	text_add(b, "<thead><tr><th scope=\"col\">method</th>");
	for (int i = 0; i < arrlen(s->column); i++) {
		text_add(b, "<th scope=\"col\">");
		html_text(b, s->column[i]);
		text_add(b, "</th>");
	}
	text_add(b, "</tr></thead>\n");
}

static void add_cell(struct text_builder *b, const struct sheet_cell *c)
{
	if (isnan(c->heat))
		text_add(b, "<td>");
	else
		text_add(b, "<td class=\"h%d\">", (int)(fmin(fmax(c->heat, 0), 1) * 9 + 0.5));
	text_add(b, "%s", c->best ? "<strong>" : "");
	html_text(b, c->line[0]);
	text_add(b, "%s", c->best ? "</strong>*" : "");
	for (int i = 1; i < SHEET_LINES; i++) {
		if (!*c->line[i])
			continue;
		text_add(b, "<br/><small>");
		html_text(b, c->line[i]);
		text_add(b, "</small>");
	}
	text_add(b, "</td>");
}

/* A long label may break behind its commas. */
static void add_label(struct text_builder *b, const char *label)
{
	struct text_builder text = { 0 };
	html_text(&text, label);
	text_add(b, "<th scope=\"row\">");
	for (const char *s = text.data ? text.data : ""; *s; s++)
		text_add(b, *s == ',' || *s == '(' ? "%c<wbr/>" : "%c", *s);
	text_add(b, "</th>");
	text_builder_free(&text);
}

void html_sheet(struct text_builder *b, const struct sheet *s)
{
	int name = (int)strcspn(s->title, "\n:");
	text_add(b, "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"table: ");
	struct text_builder label = { 0 };
	text_add(&label, "%.*s", name, s->title);
	html_text(b, label.data ? label.data : "");
	text_builder_free(&label);
	text_add(b, "\">\n<table>\n");
	add_caption(b, s->title);
	add_head(b, s);
	text_add(b, "<tbody>\n");
	for (int i = 0; i < arrlen(s->row); i++) {
		text_add(b, "%s<tr>", s->row[i].ruled && i ? "</tbody>\n<tbody class=\"below\">\n" : "");
		add_label(b, s->row[i].label);
		for (int j = 0; j < arrlen(s->row[i].cell); j++)
			add_cell(b, &s->row[i].cell[j]);
		text_add(b, "</tr>\n");
	}
	text_add(b, "</tbody>\n</table>\n</div>\n");
}
