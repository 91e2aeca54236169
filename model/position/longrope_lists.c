#include "model/position/longrope_lists.h"

#include "model/base/file_name.h"
#include "model/base/io.h"
#include "model/base/stb.h"
#include "model/base/text.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* A frequency is neither multiplied by more than a million nor divided by more than the largest factor. */
#define LEAST 1e-6
#define MOST 1e9

#define HOW "Write two lines, short = 1, 1.05, ... and long = 1, 3.1, ..., or Hugging Face's rope_scaling as JSON."

enum { SHORT, LONG, LISTS };
static const char *const name_of[LISTS][2] = { { "short", "short_factor" }, { "long", "long_factor" } };

/* What a file is read into: stb_ds arrays. */
struct reading {
	double *number[LISTS];
};

static struct err add(struct reading *r, int list, double number)
{
	if (!(number >= LEAST && number <= MOST))
		return err_usage("A frequency is divided by it: 1 keeps a pair as it is.",
				 "%s: number %td is %g, out of range %g to %g", name_of[list][0],
				 arrlen(r->number[list]) + 1, number, LEAST, MOST);
	arrput(r->number[list], number);
	return OK;
}

/* ---- Text. ---- */

static int list_named(const char *name)
{
	for (int i = 0; i < LISTS; i++)
		if (same_name(name, name_of[i][0]) || same_name(name, name_of[i][1]))
			return i;
	return -1;
}

static struct err read_numbers(struct reading *r, int list, const char *text)
{
	int count;
	char **piece = text_list(text, &count);
	struct err e = OK;
	for (int i = 0; i < count && !e.code; i++) {
		double number;
		if (text_to_number(piece[i], &number))
			e = add(r, list, number);
		else
			e = err_usage("Separate numbers by single commas.", "%s: '%.60s' is not a number",
				      name_of[list][0], piece[i]);
	}
	text_list_free(piece);
	return e;
}

static struct err read_line(struct reading *r, char *line)
{
	line[strcspn(line, "#")] = '\0';
	line += strspn(line, " \t\r");
	if (!*line)
		return OK;
	char *equals = strchr(line, '=');
	if (!equals)
		return err_usage(HOW, "'%.60s' is not NAME = NUMBERS", line);
	*equals = '\0';
	for (char *end = equals; end > line && isspace((unsigned char)end[-1]);)
		*--end = '\0';
	int list = list_named(line);
	if (list < 0)
		return err_usage(HOW, "'%.60s' is neither short nor long", line);
	if (r->number[list])
		return err_usage("Leave one of them out.", "%s stands there twice", name_of[list][0]);
	return read_numbers(r, list, equals + 1);
}

static struct err read_text(struct reading *r, char *data)
{
	int number = 0;
	char *rest = data, *line;
	while ((line = strsep(&rest, "\n"))) {
		struct err e = read_line(r, line);
		number++;
		if (e.code)
			return err_at(e, "line %d", number);
	}
	return OK;
}

/* ---- JSON. ---- */

/* The object that has the lists: the file's own, or one it holds. */
static const json_t *lists_object(const json_t *root)
{
	static const char *const member[] = { "rope_scaling", "rope_parameters" };
	for (int i = 0; i < 2; i++)
		if (json_is_object(json_object_get(root, member[i])))
			return json_object_get(root, member[i]);
	return root;
}

static struct err read_array(struct reading *r, int list, const json_t *array)
{
	size_t i;
	const json_t *one;
	if (!json_is_array(array))
		return err_usage(HOW, "%s is missing, or no list", name_of[list][1]);
	json_array_foreach(array, i, one) {
		if (!json_is_number(one))
			return err_usage(HOW, "%s: entry %zu is not a number", name_of[list][1], i + 1);
		TRY(add(r, list, json_number_value(one)));
	}
	return OK;
}

static struct err read_json(struct reading *r, const char *data, size_t size)
{
	json_error_t error;
	json_t *root = json_loadb(data, size, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		return err_usage(HOW, "line %d: not JSON: %s", error.line, error.text);
	struct err e = OK;
	for (int i = 0; i < LISTS && !e.code; i++)
		e = read_array(r, i, json_object_get(lists_object(root), name_of[i][1]));
	json_decref(root);
	return e;
}

/* ---- The lists of a path. ---- */

static struct err check_lengths(const struct reading *r)
{
	ptrdiff_t shorts = arrlen(r->number[SHORT]), longs = arrlen(r->number[LONG]);
	for (int i = 0; i < LISTS; i++)
		if (!arrlen(r->number[i]))
			return err_usage(HOW, "it has no numbers of the list %s", name_of[i][0]);
	if (shorts != longs)
		return err_usage("Each list has one number for each pair, half of head_dim.",
				 "short has %td numbers and long has %td", shorts, longs);
	return OK;
}

static struct err read_lists(const char *path, struct reading *r)
{
	char *data;
	size_t size;
	TRY(io_read(path, &data, &size));
	struct err e;
	if (strlen(data) != size)
		e = err_usage(HOW, "it is not text");
	else if (data[strspn(data, " \t\r\n")] == '{')
		e = read_json(r, data, size);
	else
		e = read_text(r, data);
	free(data);
	if (!e.code)
		e = check_lengths(r);
	return err_at(e, "%s", path);
}

static uint32_t hash_of(const struct reading *r)
{
	size_t bytes = (size_t)arrlen(r->number[SHORT]) * sizeof(double);
	XXH64_hash_t first = XXH3_64bits(r->number[SHORT], bytes);
	return (uint32_t)XXH3_64bits_withSeed(r->number[LONG], bytes, first);
}

/* Lists by their text; they stay as long as the program runs. */
static struct kept {
	struct kept *next;
	struct longrope_lists lists;
	char text[];
} *all;

static const struct kept *find(const char *text)
{
	const struct kept *k = all;
	while (k && strcmp(k->text, text))
		k = k->next;
	return k;
}

static double *copy(const double *number, size_t bytes)
{
	BUG_IF(!number, "a list that was not read");
	double *own = malloc(bytes);
	BUG_IF(!own, "out of memory for a list of %zu bytes", bytes);
	return memcpy(own, number, bytes);
}

static const char *keep(const char *path, const struct reading *r)
{
	struct text_builder text = { 0 };
	file_name_label(path, hash_of(r), &text);
	const struct kept *known = find(text.data);
	if (!known) {
		int count = (int)arrlen(r->number[SHORT]);
		size_t bytes = (size_t)count * sizeof(double);
		struct kept *k = malloc(sizeof *k + text.size + 1);
		BUG_IF(!k, "out of memory for the name of a list");
		k->lists = (struct longrope_lists){ .count = count,
						    .short_factor = copy(r->number[SHORT], bytes),
						    .long_factor = copy(r->number[LONG], bytes) };
		memcpy(k->text, text.data, text.size + 1);
		k->next = all;
		known = all = k;
	}
	text_builder_free(&text);
	return known->text;
}

static struct err load_path(const struct file_name *name, const char **out)
{
	struct reading r = { .number = { NULL } };
	struct err e = read_lists(name->path, &r);
	if (!e.code)
		*out = keep(name->path, &r);
	if (!e.code)
		e = file_name_check(name, "lists are", *out);
	for (int i = 0; i < LISTS; i++)
		arrfree(r.number[i]);
	return e;
}

struct err longrope_load(const char *text, const char **out)
{
	struct file_name name;
	*out = "";
	if (!*text)
		return OK;
	TRY(file_name_open(text, &name));
	struct err e = load_path(&name, out);
	file_name_close(&name);
	return e;
}

struct longrope_lists longrope_lists(const char *text)
{
	if (!*text)
		return (struct longrope_lists){ 0 };
	const struct kept *k = find(text);
	BUG_IF(!k, "no lists were read from %s", text);
	return k->lists;
}
