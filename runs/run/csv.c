#include "runs/run/rows.h"

#include "model/base/stb.h"

#include <string.h>

void csv_field(struct text_builder *b, const char *text)
{
	if (!text[strcspn(text, "\",\r\n")]) {
		text_add(b, "%s", text);
		return;
	}
	text_add(b, "\"");
	for (; *text; text++)
		text_add(b, *text == '"' ? "\"\"" : "%c", *text);
	text_add(b, "\"");
}

/* Reads one field from *at; leaves *at on the character behind it. False: a quote is not closed or followed by text. */
static bool read_field(const char **at, struct text_builder *b)
{
	const char *s = *at;
	text_add(b, "%s", "");
	if (*s != '"') {
		size_t length = strcspn(s, ",\r\n");
		text_add(b, "%.*s", (int)length, s);
		*at = s + length;
		return true;
	}
	for (s++; *s && !(*s == '"' && s[1] != '"');) {
		size_t length = strcspn(s + 1, "\"") + 1;
		s += *s == '"';
		text_add(b, "%.*s", (int)length, s);
		s += length;
	}
	*at = s + 1;
	return *s == '"' && (s[1] == ',' || s[1] == '\r' || s[1] == '\n' || !s[1]);
}

static bool read_record(const char **at, int *line, char ***fields)
{
	const char *s = *at;
	for (bool more = true; more;) {
		struct text_builder b = { 0 };
		bool good = read_field(&s, &b);
		arrput(*fields, b.data);
		for (const char *c = b.data; *c; c++)
			*line += *c == '\n';
		if (!good)
			return false;
		more = *s == ',';
		s += more;
	}
	s += *s == '\r';
	*line += *s == '\n';
	*at = s + (*s == '\n');
	return true;
}

struct err csv_parse(const char *path, const char *text, struct csv *out)
{
	int line = 1;
	*out = (struct csv){ 0 };
	while (*text) {
		char **fields = NULL;
		arrput(out->line, line);
		bool good = read_record(&text, &line, &fields);
		arrput(out->record, fields);
		if (!good) {
			struct err e = err_usage("Remove the file; it can be made again.",
						  "%s:%d: a quoted field does not end as it should", path,
						  arrlast(out->line));
			csv_free(out);
			return e;
		}
	}
	return OK;
}

void csv_free(struct csv *c)
{
	for (ptrdiff_t i = 0; i < arrlen(c->record); i++) {
		for (ptrdiff_t j = 0; j < arrlen(c->record[i]); j++)
			free(c->record[i][j]);
		arrfree(c->record[i]);
	}
	arrfree(c->record);
	arrfree(c->line);
	*c = (struct csv){ 0 };
}
