#include "runs/show/wrap.h"

#include "model/base/stb.h"
#include "runs/options.h"

#include <string.h>

/* Length of the next line: up to the last break within `room`, or to the first one past it. */
static int next_cut(const char *text, int room, const char *breaks)
{
	int cut = 0;
	for (int i = 0; text[i]; i++) {
		bool space = text[i] == ' ';
		if (i + !space > room && cut)
			return cut;
		if (strchr(breaks, text[i]))
			cut = i + 1;
	}
	int all = (int)strlen(text);
	return all > room && cut ? cut : all;
}

const char **wrap(const char *text, int width, const char *breaks, int indent)
{
	const char **line = NULL;
	do {
		int spaces = line ? indent : 0;
		int cut = next_cut(text, width - spaces, breaks), shown = cut;
		while (shown && text[shown - 1] == ' ')
			shown--;
		struct text_builder b = { 0 };
		text_add(&b, "%*s%.*s", spaces, "", shown, text);
		arrput(line, text_keep(b.data));
		text_builder_free(&b);
		text += cut;
	} while (*text);
	return line;
}

void wrap_paragraph(struct text_builder *b, const char *text)
{
	const char **line = wrap(text, PAGE_WIDTH, " ", 2);
	for (int i = 0; i < arrlen(line); i++)
		text_add(b, "%s\n", line[i]);
	arrfree(line);
}
