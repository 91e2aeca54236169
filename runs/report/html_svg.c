#include "runs/report/html.h"

#include <string.h>

/* gnuplot's pictures call their parts alike, with ids that would meet on one page. */

/* What stands before an id. */
static const char *const before[] = { " id=\"", " id='", "href=\"#", "href='#", "url(#" };

/* How long the text here is that an id follows; 0: none does. */
static size_t prefix_at(const char *s)
{
	for (size_t i = 0; i < sizeof before / sizeof *before; i++)
		if (!strncmp(s, before[i], strlen(before[i])))
			return strlen(before[i]);
	return 0;
}

/* Past a whole element of this name that begins here; NULL if none does. */
static const char *past_element(const char *s, const char *open, const char *close)
{
	if (strncmp(s, open, strlen(open)))
		return NULL;
	const char *end = strstr(s, close);
	return end ? end + strlen(close) : NULL;
}

/* A title would be shown where the mouse rests; it names gnuplot's parts. */
static const char *past_words(const char *s)
{
	const char *end = past_element(s, "<title>", "</title>");
	return end ? end : past_element(s, "<desc>", "</desc>");
}

void html_svg(struct text_builder *b, const char *svg, const char *name, const char *label)
{
	const char *at = strstr(svg, "<svg");
	if (!at)
		return;
	text_add(b, "<svg role=\"img\" aria-label=\"");
	html_text(b, label);
	text_add(b, "\"");
	for (at += strlen("<svg"); *at;) {
		const char *end = *at == '<' ? past_words(at) : NULL;
		size_t prefix = prefix_at(at);
		size_t run = prefix ? prefix : 1 + strcspn(at + 1, "< hu");
		if (!end)
			text_add(b, "%.*s%s%s", (int)run, at, prefix ? name : "", prefix ? "-" : "");
		at = end ? end : at + run;
	}
}
