#include "runs/config.h"

#include "model/base/io.h"
#include "model/base/stb.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Trims in place: ends the text and returns its beginning. */
static char *trim(char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	size_t length = strlen(text);
	while (length && isspace((unsigned char)text[length - 1]))
		text[--length] = '\0';
	return text;
}

static void cut_comment(char *text)
{
	for (char *s = text; *s; s++)
		if (*s == '#' && (s == text || isspace((unsigned char)s[-1]))) {
			*s = '\0';
			return;
		}
}

/* Adds what the text of one line says to the array; `section` is that of the lines before. */
static struct err parse_line(char *text, int number, const char **section, struct config_line **lines)
{
	cut_comment(text);
	text = trim(text);
	size_t length = strlen(text);
	if (!length)
		return OK;
	struct config_line line = { .number = number, .section = *section };
	char *equals = strchr(text, '=');
	if (*text == '[') {
		if (text[length - 1] != ']')
			return err_usage(NULL, "'%.60s': a section's line must end with ]", text);
		text[length - 1] = '\0';
		line.section = *section = text_keep(trim(text + 1));
	} else if (!equals || equals == text) {
		return err_usage("Write NAME = VALUE; comments begin with #.", "'%.60s' is not NAME = VALUE", text);
	} else {
		*equals = '\0';
		line.name = text_keep(trim(text));
		line.value = text_keep(trim(equals + 1));
		if (*line.value == '#')
			return err_usage("Before a comment stands a space.", "%.60s: its value begins with #",
					 line.name);
	}
	arrput(*lines, line);
	return OK;
}

struct err config_lines_of(const char *path, const char *text, struct config_line **line, int *count)
{
	struct config_line *lines = NULL;
	const char *section = NULL;
	struct err e = OK;
	int number = 1;
	text += strncmp(text, "\xef\xbb\xbf", 3) ? 0 : 3; /* what some editors begin a text with */
	for (const char *at = text; *at && !e.code; number++) {
		size_t length = strcspn(at, "\n");
		char *copy = stb_reallocate(NULL, length + 1);
		memcpy(copy, at, length);
		copy[length] = '\0';
		e = err_at(parse_line(copy, number, &section, &lines), "%s:%d", path, number);
		free(copy);
		at += length + (at[length] == '\n');
	}
	*count = e.code ? 0 : (int)arrlen(lines);
	*line = NULL;
	if (*count) {
		size_t bytes = (size_t)*count * sizeof **line;
		*line = memcpy(stb_reallocate(NULL, bytes), lines, bytes);
	}
	arrfree(lines);
	return e;
}

struct err config_lines(const char *path, struct config_line **line, int *count)
{
	char *data;
	size_t size;
	*line = NULL;
	*count = 0;
	TRY(io_read(path, &data, &size));
	struct err e = strlen(data) < size ? err_usage("Give a text file.", "%s: holds a NUL byte, at byte %zu", path,
							      strlen(data))
					   : config_lines_of(path, data, line, count);
	free(data);
	return e;
}

struct err config_read_by(struct config *c, const char *path, config_setter *set)
{
	struct config_line *line;
	int count;
	TRY(config_lines(path, &line, &count));
	struct err e = OK;
	for (int i = 0; i < count && !e.code; i++) {
		char from[400];
		snprintf(from, sizeof from, "%.380s:%d", path, line[i].number);
		if (line[i].section)
			e = err_usage("Sections belong in study files.", "%s: [%.60s]: a config file has no sections",
				      from, line[i].section);
		else
			e = set(c, line[i].name, line[i].value, from);
	}
	free(line);
	return e;
}

struct err config_read(struct config *c, const char *path)
{
	return config_read_by(c, path, config_set);
}
