#include "runs/run/run_origin.h"

#include "train/course.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define DATA_KEY "data"
#define TRAINING_KEY "training"

static char *options_text(const struct config *c, unsigned list)
{
	json_t *o = json_object();
	for (const struct option *row = option_rows(&c->scope, list); row->name; row++) {
		struct text_builder b = { 0 };
		text_add(&b, "%s", "");
		config_value(c, row->name, &b);
		json_object_set_new(o, row->name, json_string(b.data));
		text_builder_free(&b);
	}
	char *text = json_dumps(o, JSON_COMPACT);
	BUG_IF(!text, "options that are no JSON");
	json_decref(o);
	return text;
}

void origin_open(const struct config *c, struct origin *out)
{
	*out = (struct origin){ options_text(c, LIST_DATA), options_text(c, LIST_TRAIN), { { 0 } } };
	out->metadata[0] = (struct metadata){ DATA_KEY, out->data };
	out->metadata[1] = (struct metadata){ TRAINING_KEY, out->training };
}

void origin_close(struct origin *o)
{
	free(o->data);
	free(o->training);
}

/* Sets the options that one object of the file's metadata names. */
static struct err set_from(struct config *c, const struct safetensors *file, const char *key)
{
	const char *text = safetensors_metadata(file, key), *name;
	json_t *value, *object = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	struct err e = OK;
	json_object_foreach(object, name, value)
		if (!e.code)
			e = config_set(c, name, json_is_string(value) ? json_string_value(value) : "", key);
	json_decref(object);
	return e;
}

static const struct method *method_in(const struct config *c, unsigned list, const struct option *row)
{
	return (const struct method *)(const void *)((const char *)config_list_const(c, list) + row->offset);
}

/* Every option of a method counts, also those that were not given. */
static void value_text(const struct config *c, unsigned list, const struct option *row, struct text_builder *b)
{
	text_add(b, "%s", "");
	if (row->kind == OPTION_METHOD)
		method_identity(method_in(c, list, row), b);
	else
		config_value(c, row->name, b);
}

static bool same_parts(const struct method *a, const struct method *b)
{
	for (; a && b && a->entry == b->entry; a = a->plus)
		b = b->plus;
	return !a && !b;
}

/* A part with those of its options that the other part has at another value. */
static void part_difference(const struct method *m, const struct method *other, struct text_builder *b)
{
	int told = 0;
	text_add(b, "%s", m->entry->name);
	for (int i = 0; m->entry->options && m->entry->options[i].name; i++) {
		const struct option *o = &m->entry->options[i];
		struct text_builder one = { 0 }, two = { 0 };
		option_print(o, m->value[i], &one);
		option_print(o, other->value[i], &two);
		if (strcmp(one.data, two.data))
			text_add(b, "%s%s=%s", told++ ? "," : "(", o->name, one.data);
		text_builder_free(&one);
		text_builder_free(&two);
	}
	text_add(b, "%s", told ? ")" : "");
}

/* As the user would write it where methods differ, else with the options that differ. */
static void difference_text(const struct config *c, const struct config *other, unsigned list, const struct option *row,
			    struct text_builder *b)
{
	if (row->kind != OPTION_METHOD) {
		value_text(c, list, row, b);
		return;
	}
	const struct method *m = method_in(c, list, row), *n = method_in(other, list, row);
	if (!same_parts(m, n)) {
		method_label(m, b);
		return;
	}
	for (; m; m = m->plus, n = n->plus) {
		part_difference(m, n, b);
		text_add(b, "%s", m->plus ? "+" : "");
	}
}

static struct err differs(const struct config *mine, const struct config *theirs, unsigned list,
			  const struct option *row, const char *place, const char *hint)
{
	struct text_builder here = { 0 }, there = { 0 };
	difference_text(mine, theirs, list, row, &here);
	difference_text(theirs, mine, list, row, &there);
	struct err e = err_usage(hint, "%.300s: %s is %.120s there, and %.120s here", place, row->name, there.data,
				 here.data);
	text_builder_free(&here);
	text_builder_free(&there);
	return e;
}

static struct err compare_row(const struct config *mine, const struct config *theirs, unsigned list,
			      const struct option *row, const char *place, const char *hint)
{
	struct text_builder one = { 0 }, other = { 0 };
	value_text(mine, list, row, &one);
	value_text(theirs, list, row, &other);
	struct err e = OK;
	if (row->results && strcmp(one.data, other.data))
		e = differs(mine, theirs, list, row, place, hint);
	text_builder_free(&one);
	text_builder_free(&other);
	return e;
}

struct err origin_compare(const struct config *mine, const struct config *theirs, const char *place, const char *hint)
{
	for (int i = 0; i < LISTS; i++) {
		unsigned list = 1u << i;
		if (!(list & LIST_TRAINING))
			continue;
		for (const struct option *row = option_rows(&mine->scope, list); row->name; row++)
			TRY(compare_row(mine, theirs, list, row, place, hint));
	}
	return OK;
}

/* A checkpoint says its step; a model has been trained to the end. */
static int64_t steps_of(const struct config *c, const struct safetensors *file)
{
	const char *text = safetensors_metadata(file, "step");
	int64_t step;
	return text && text_to_integer(text, &step) ? step : c->train.steps;
}

struct err origin_check(const struct config *c, const struct safetensors *file, const struct model_options *model,
			const char *path, const char *hint)
{
	struct config mine = *c;
	mine.model = course_model(&c->model, &c->train, steps_of(c, file));
	struct scope scope = { .command = "a run", .lists = LIST_TRAINING };
	struct config theirs;
	config_init(&theirs, &scope, NULL);
	theirs.model = *model;
	TRY(err_at(set_from(&theirs, file, DATA_KEY), "%s", path));
	TRY(err_at(set_from(&theirs, file, TRAINING_KEY), "%s", path));
	return origin_compare(&mine, &theirs, path, hint);
}
