#include "runs/show/format.h"

#include <stdlib.h>
#include <string.h>

struct rendering {
	const char *heading; /* takes the folder; NULL: not made of sheets */
	void (*escape)(const char *text, struct text_builder *b);
	void (*sheet)(const struct sheet *s, struct text_builder *b);
	const char *before_notes, *note, *after_notes; /* `note` stands before each line */
};

static void text(const struct sheet *s, struct text_builder *b)
{
	sheet_text(s, sheet_colour(), b);
}

static void plain(const char *name, struct text_builder *b)
{
	text_add(b, "%s", name);
}

static const struct rendering renderings[] = {
	[FORMAT_TEXT] = { "study %s\n\n", plain, text, "", "", "" },
	[FORMAT_MD] = { "## study %s\n\n", markdown_escape, sheet_markdown, "```\n", "", "```\n" },
	[FORMAT_LATEX] = { "%% study %s, for \\usepackage{booktabs}\n", plain, sheet_latex, "", "% ", "" },
};

static const struct rendering *rendering_of(enum format format)
{
	BUG_IF(!format_sheets(format), "format %d has no sheets", (int)format);
	return &renderings[format];
}

bool format_sheets(enum format format)
{
	return renderings[format].heading;
}

void format_heading(enum format format, const char *folder, struct text_builder *b)
{
	struct text_builder name = { 0 };
	char *shown = strdup(folder);
	BUG_IF(!shown, "out of memory for a name");
	/* A newline would end LaTeX's comment, an escape would reach the terminal. */
	for (char *s = shown; *s; s++)
		*s = (unsigned char)*s < 0x20 ? '?' : *s;
	rendering_of(format)->escape(shown, &name);
	free(shown);
	text_add(b, rendering_of(format)->heading, name.data);
	text_builder_free(&name);
}

void format_sheet(enum format format, const struct sheet *s, struct text_builder *b)
{
	rendering_of(format)->sheet(s, b);
	text_add(b, "\n");
}

void format_notes(enum format format, const char *notes, struct text_builder *b)
{
	const struct rendering *how = rendering_of(format);
	text_add(b, "%s", how->before_notes);
	for (const char *at = notes; at && *at;) {
		int length = (int)strcspn(at, "\n");
		text_add(b, "%s%.*s\n", how->note, length, at);
		at += length + (at[length] == '\n');
	}
	text_add(b, "%s", how->after_notes);
}
