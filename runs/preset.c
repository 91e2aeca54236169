#include "runs/preset.h"

#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/config.h"
#include "runs/executable.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX ".study"

/* The folder of the presets in fresh memory, or NULL. */
static char *preset_folder(void)
{
	static const char *const places[] = { "../runs/presets", "../share/ropewalk/presets" };
	char program[PATH_MAX];
	if (io_is_folder("runs/presets"))
		return strdup("runs/presets");
	if (!*executable_folder(program))
		return NULL;
	for (int i = 0; i < 2; i++) {
		char *folder = io_join(program, places[i]);
		if (io_is_folder(folder))
			return folder;
		free(folder);
	}
	return NULL;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted names, read once. */
static const char **names(void)
{
	static const char **all;
	static bool read;
	char *folder = read ? NULL : preset_folder(), **file = NULL;
	int count = 0;
	if (folder)
		io_list(folder, &file, &count);
	for (int i = 0; i < count; i++) {
		size_t length = strlen(file[i]), suffix = strlen(SUFFIX);
		if (length <= suffix || strcmp(file[i] + length - suffix, SUFFIX))
			continue;
		char *name = strndup(file[i], length - suffix);
		arrput(all, text_keep(name));
		free(name);
	}
	io_names_free(file, count);
	if (arrlen(all) && !read)
		qsort(all, (size_t)arrlen(all), sizeof *all, by_name);
	free(folder);
	read = true;
	return all;
}

const char *preset_at(int index, const void *unused)
{
	(void)unused;
	return index < arrlen(names()) ? names()[index] : NULL;
}

char *preset_path(const char *name)
{
	const char *known;
	for (int i = 0; (known = preset_at(i, NULL)); i++) {
		if (strcmp(known, name))
			continue;
		char file[NAME_MAX + 1], *folder = preset_folder();
		snprintf(file, sizeof file, "%s" SUFFIX, name);
		char *path = io_join(folder, file);
		free(folder);
		return path;
	}
	return NULL;
}

static int longest_name(void)
{
	size_t longest = 0;
	for (int i = 0; i < arrlen(names()); i++)
		longest = strlen(names()[i]) > longest ? strlen(names()[i]) : longest;
	return (int)longest;
}

/* "minutes = 13" among the lines before the first section; 0: not said. */
static double minutes_of(const struct config_line *line, int count)
{
	double minutes;
	for (int i = 0; i < count && !line[i].section; i++)
		if (same_name(line[i].name, "minutes") && text_to_number(line[i].value, &minutes))
			return minutes;
	return 0;
}

static struct err print_text(const char *name, const char *path, const char *text)
{
	struct config_line *line;
	int count;
	TRY(config_lines_of(path, text, &line, &count));
	double minutes = minutes_of(line, count);
	free(line);
	const char *comment = *text == '#' ? text + 1 + strspn(text + 1, "# ") : "";
	printf("%-*s %.*s", longest_name(), name, (int)strcspn(comment, "\n"), comment);
	if (minutes > 0)
		printf(minutes < 1 ? " About %g seconds on two cores." : " About %g minutes on two cores.",
		       minutes < 1 ? 60 * minutes : minutes);
	printf("\n");
	return OK;
}

static struct err print_preset(const char *name)
{
	char *path = preset_path(name), *text = NULL;
	size_t size;
	struct err e = io_read(path, &text, &size);
	if (!e.code)
		e = print_text(name, path, text);
	free(text);
	free(path);
	return e;
}

struct err preset_list(void)
{
	const char *name;
	for (int i = 0; (name = preset_at(i, NULL)); i++)
		TRY(print_preset(name));
	return OK;
}
