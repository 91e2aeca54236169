#include "runs/model_input.h"

#include "model/base/io.h"
#include "model/base/stb.h"
#include "model/position/scaling.h"
#include "model/weights.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An option of the model that was given, or one of its encoding's. */
static const char *model_option_given(const struct config *c)
{
	for (int i = 0; i < c->givens; i++)
		for (const struct option *o = model_option_rows; o->name; o++)
			if (c->given[i].option == o)
				return o->name;
	for (int i = 0; i < c->flags; i++)
		if (c->flag[i].name.family == position_at)
			return c->flag[i].name.name;
	return NULL;
}

/* As users write it. */
static const char *flag_of(const char *name, char flag[64])
{
	snprintf(flag, 64, "%s", name);
	for (char *s = flag; *s; s++)
		*s = *s == '_' ? '-' : *s;
	return flag;
}

struct err input_no_model_option(const struct config *c, const char *path)
{
	const char *given = model_option_given(c);
	char flag[64];
	if (!given)
		return OK;
	return err_usage("Leave it out.", "--%s: %s says itself what model it is", flag_of(given, flag), path);
}

static bool is_ours(const char *path)
{
	struct safetensors file = { 0 };
	if (io_is_folder(path))
		return true;
	bool ours = !safetensors_read(path, &file).code && weights_ours(&file);
	safetensors_free(&file);
	return ours;
}

struct err input_finish(struct config *c, const char *path)
{
	struct err e = config_finish(c, true);
	if (e.code && model_option_given(c) && is_ours(path))
		return input_no_model_option(c, path);
	return e;
}

void input_ignored(const char *path, const struct text_builder *names)
{
	if (!names->size)
		return;
	size_t room = 4 * names->size + 1;
	char *line = stb_reallocate(NULL, room);
	text_printable(names->data, line, room);
	fprintf(stderr, "%s: ignored: %s\n", path, line);
	free(line);
}

void input_rope_layout(const char *path, const struct safetensors *file, const struct model_options *options)
{
	const struct method *encoding = &options->encoding;
	int layout = method_find(encoding->entry, "layout");
	bool given = layout >= 0 && memchr(encoding->order, layout, (size_t)encoding->given);
	if (layout < 0 || given || safetensors_metadata(file, "rope_layout"))
		return;
	fprintf(stderr, "%s: its rope layout is unknown; %s is taken, --rope-layout says otherwise\n", path,
		weights_rope_layout(options));
}

/* A size given by flag must be the one that the file has. */
static struct err compare_given(const struct config *c, const struct model_options *found, const char *path)
{
	for (const struct option *o = model_option_rows; o->name; o++) {
		if (o->kind == OPTION_METHOD || !config_given(c, o->name))
			continue;
		if (option_get(o, found).integer != option_get(o, &c->model).integer) {
			struct text_builder b = { 0 };
			option_print(o, option_get(o, found), &b);
			char flag[64];
			struct err e = err_usage("Leave the option out.", "--%s: %s has %s", flag_of(o->name, flag), path,
						 b.data);
			text_builder_free(&b);
			return e;
		}
	}
	return OK;
}

static struct err options_of(const struct config *c, const struct safetensors *file, const char *path, bool ours,
			     struct model_options *options, int *V)
{
	*options = c->model;
	if (ours) {
		TRY(input_no_model_option(c, path));
		return err_at(weights_options(file, options, V), "%s", path);
	}
	TRY(weights_sizes(file, path, "", options, V));
	return compare_given(c, options, path);
}

struct err input_model(const struct config *c, const char *path, struct model *m)
{
	struct safetensors file = { 0 };
	struct text_builder ignored = { 0 };
	struct model_options options;
	int V = 0;
	TRY(safetensors_read(path, &file));
	bool ours = weights_ours(&file);
	struct err e = options_of(c, &file, path, ours, &options, &V);
	if (!e.code)
		e = err_at(weights_suffice(&file, &options, V), "%s", path);
	if (!e.code)
		e = model_open(&options, V, m);
	if (!e.code)
		e = weights_fill(m, &file, path, "", ours, &ignored);
	if (!e.code)
		input_rope_layout(path, &file, &options);
	if (!e.code)
		input_ignored(path, &ignored);
	text_builder_free(&ignored);
	safetensors_free(&file);
	return e;
}

struct err input_positions(const char *path, const struct tensor *t, int T, double *positions)
{
	for (int i = 0; i < T; i++)
		positions[i] = i;
	if (!t)
		return OK;
	if (tensor_items(t) != T)
		return err_usage("positions has the shape (T).", "%s: %s has %" PRId64 " items where T is %d", path,
				 t->name, tensor_items(t), T);
	for (int i = 0; i < T; i++) {
		double *p = positions + i;
		*p = tensor_item(t, i);
		if (!isfinite(*p) || *p < 0 || *p > 16777216 || (i && *p < p[-1]))
			return err_usage("Positions are 0 to 16777216 and never decrease.", "%s: %s[%d] is %g", path,
					 t->name, i, *p);
	}
	return OK;
}

struct err input_scaling_length(struct method *scaling, const struct model_options *options, double reached,
				int64_t length)
{
	if (!length || (double)length == reached || !strcmp(scaling->entry->name, "none"))
		return OK;
	int factor = method_find(scaling->entry, "factor");
	if (factor < 0)
		return err_usage("Leave --length out.", "--length: %s takes its length from the tokens",
				 scaling->entry->name);
	if (scaling->value[factor].number == 0)
		method_set(scaling, factor, (union option_value){ .number = scaling_request(scaling, options,
										(double)length).factor });
	return OK;
}
