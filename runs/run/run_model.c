#include "runs/run/run_model.h"

#include "model/base/arena.h"
#include "model/base/io.h"
#include "model/weights.h"
#include "runs/run/run_folder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static json_t *options_json(const struct config *c, unsigned list)
{
	json_t *o = json_object();
	for (const struct option *row = option_rows(&c->scope, list); row->name; row++) {
		struct text_builder b = { 0 };
		text_add(&b, "%s", "");
		config_value(c, row->name, &b);
		json_object_set_new(o, row->name, json_string(b.data));
		text_builder_free(&b);
	}
	return o;
}

struct err run_model_write(const char *folder, const struct config *c, const struct model *m)
{
	json_t *data = options_json(c, LIST_DATA), *train = options_json(c, LIST_TRAIN);
	char *data_text = json_dumps(data, JSON_COMPACT), *train_text = json_dumps(train, JSON_COMPACT);
	const struct metadata extra[] = { { "data", data_text }, { "training", train_text } };
	char *path = io_join(folder, RUN_MODEL);
	struct err e = weights_write(m, path, extra, 2);
	free(path);
	free(data_text);
	free(train_text);
	json_decref(data);
	json_decref(train);
	return e;
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

/* Was the file's model made by the run whose config this is? */
static struct err check_origin(const struct config *mine, const struct safetensors *file, const struct model *m,
			       const char *path)
{
	struct scope scope = { .command = "a run", .lists = LIST_TRAINING };
	struct config theirs;
	char one[IDENTITY_TEXT], other[IDENTITY_TEXT];
	config_init(&theirs, &scope, NULL);
	theirs.model = m->options;
	TRY(err_at(set_from(&theirs, file, "data"), "%s", path));
	TRY(err_at(set_from(&theirs, file, "training"), "%s", path));
	if (!strcmp(config_identity(mine, LIST_TRAINING, one), config_identity(&theirs, LIST_TRAINING, other)))
		return OK;
	return err_usage("Put back the file that belongs there, or train the run again with --force.",
			 "%s: made with other options than the config beside it says", path);
}

/* Others cannot be trained or measured: rows without numbers would be written, and refused when they are read. */
static struct err check_finite(const struct model *m, const char *path)
{
	for (int i = 0; i < layout_count(&m->layout); i++) {
		const struct parameter *p = &m->layout.parameter[i];
		const real *value = m->value + p->offset;
		for (size_t j = 0; j < p->size; j++)
			if (!isfinite(value[j]))
				return err_usage("Train the run again with --force.",
						 "%s: tensor %s: item %zu is %g where weights are finite", path,
						 p->name, j, (double)value[j]);
	}
	return OK;
}

static struct err read_model(const char *path, const struct config *c, struct model *m)
{
	struct safetensors file = { 0 };
	if (!io_exists(path))
		return err_usage("Put it back, or move the folder away and train again.",
				 "%s: is missing, though the run has finished", path);
	TRY(safetensors_read(path, &file));
	struct err e = weights_open(&file, path, m);
	if (!e.code) {
		e = check_origin(c, &file, m, path);
		if (!e.code)
			e = check_finite(m, path);
		if (e.code)
			model_close(m);
	}
	safetensors_free(&file);
	return e;
}

struct err run_model_read(const char *folder, const struct config *c, struct model *m)
{
	char *path = io_join(folder, RUN_MODEL);
	*m = (struct model){ 0 };
	struct err e = read_model(path, c, m);
	free(path);
	return e;
}

#define LOG_LINE 160         /* bytes of a line of train.jsonl at most, and its share of timing.jsonl */
#define SMALL_FILES (1 << 17) /* the header of the weights, config, command and record */

size_t run_model_space(const struct config *c, size_t parameters)
{
	return parameters * sizeof(real) + (size_t)c->train.steps * LOG_LINE + SMALL_FILES;
}

struct err run_model_fits(const char *folder, size_t bytes)
{
	char need[32], have[32];
	size_t available = io_available(folder);
	if (bytes <= available)
		return OK;
	return err_failed("Free some space there, or choose a folder on another disk.",
			  "%s: training writes up to %s, and its disk has %s left", folder, memory_text(bytes, need),
			  memory_text(available, have));
}
