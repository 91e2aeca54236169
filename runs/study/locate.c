#include "runs/study/locate.h"

#include "model/base/io.h"
#include "model/base/text.h"
#include "runs/arguments.h"
#include "runs/options.h"
#include "runs/preset.h"
#include "runs/run/run_folder.h"
#include "runs/study/study_folder.h"

#include <stdlib.h>
#include <string.h>

#define SUFFIX ".study"

static bool has_suffix(const char *name)
{
	size_t n = strlen(name), s = strlen(SUFFIX);
	return n > s && !strcmp(name + n - s, SUFFIX);
}

const char *study_name(const char *path)
{
	const char *name = run_folder_name(path);
	char *bare = strndup(name, strlen(name) - (has_suffix(name) ? strlen(SUFFIX) : 0));
	const char *kept = text_keep(bare);
	free(bare);
	return kept;
}

static struct err unknown(const char *word)
{
	const char *name, *nearest = nearest_name(word, preset_at, NULL);
	struct text_builder hint = { 0 };
	if (nearest)
		text_add(&hint, "Did you mean %s? ", nearest);
	text_add(&hint, preset_at(0, NULL) ? "The presets are:" : "No presets were found in runs/presets.");
	for (int i = 0; (name = preset_at(i, NULL)); i++)
		text_add(&hint, "%s %s", i ? "," : "", name);
	struct err e = err_usage(hint.data, "%.200s: no such study file or preset", word);
	text_builder_free(&hint);
	return e;
}

/* Of a study: the file in it is meant, and the folder. */
static struct err is_folder(const char *word)
{
	const char *file = study_folder_file(word);
	struct text_builder hint = { 0 };
	if (io_exists(file))
		text_add(&hint, "`ropewalk study %s --out=%s` goes on with it, `ropewalk table %s` prints its tables.",
			 shell_word(file), shell_word(word), shell_word(word));
	else
		text_add(&hint, "Name a study file, or a preset (`scaling`).");
	struct err e = err_usage(hint.data, "%.400s: is a folder, not a study file", word);
	text_builder_free(&hint);
	return e;
}

struct err study_locate(const char *word, char **path)
{
	bool file = io_exists(word) && !io_is_folder(word);
	*path = file ? strdup(word) : preset_path(word);
	if (*path)
		return OK;
	if (io_is_folder(word))
		return is_folder(word);
	if (strchr(word, '/') || has_suffix(word))
		return err_usage("Name a study file, or a preset (`scaling`).", "%.400s: no such file", word);
	return unknown(word);
}
