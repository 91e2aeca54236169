#include "runs/preset.h"

#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/executable.h"
#include "runs/options.h"

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

static struct err print_preset(const char *name)
{
	char *path = preset_path(name), *text;
	size_t size;
	struct err e = io_read(path, &text, &size);
	free(path);
	TRY(e);
	const char *comment = *text == '#' ? text + 1 + strspn(text + 1, "# ") : "";
	printf("%-17s %.*s\n", name, (int)strcspn(comment, "\n"), comment);
	free(text);
	return OK;
}

struct err preset_list(void)
{
	const char *name;
	for (int i = 0; (name = preset_at(i, NULL)); i++)
		TRY(print_preset(name));
	return OK;
}
