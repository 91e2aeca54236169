#include "model/base/io.h"
#include "model/inspect.h"
#include "model/weights.h"
#include "runs/command/command.h"
#include "runs/model_input.h"
#include "runs/run/run_folder.h"
#include "runs/show/report_print.h"

#include <stdlib.h>

struct inspect_options {
	struct method scaling;
	int64_t head_dim, length, format;
};

enum { FORMAT_TEXT, FORMAT_JSON };

#define ROW(n, k, i, u, h) \
	.name = #n, .kind = OPTION_##k, .initial = i, .unit = u, .help = h, \
	.offset = offsetof(struct inspect_options, n)
static const struct option own[] = {
	{ ROW(scaling, METHOD, "none", "", "RoPE scaling"), .family = scaling_at },
	{ ROW(head_dim, INTEGER, "0", "", "D, in place of width / heads; 0: that"), .most = 65536 },
	{ ROW(length, INTEGER, "0", "tokens", "length to look at; 0: train_length"), .most = 16777216 },
	{ ROW(format, CHOICE, "text", "", "for people or for programs"), .choices = "text|json" },
	{ 0 },
};

/* Sizes of an encoding without a model: --head-dim makes a width of its own for the heads. */
static void set_sizes(const struct config *c, struct inspect_request *q, struct model_options *options)
{
	const struct inspect_options *o = c->own;
	*options = c->model;
	if (!o->head_dim)
		return;
	options->width = options->heads * o->head_dim;
	if (config_given(c, "width"))
		q->width = (int)c->model.width;
}

/* The model of a run's folder or of a file of ours. */
static struct err read_model(const struct config *c, const char *path, struct model *m)
{
	struct config run = *c;
	char *folder = NULL, *file = NULL;
	TRY(input_no_model_option(c, path));
	if (config_given(c, "head_dim"))
		return err_usage("Leave it out.", "--head-dim: %s says itself what model it is", path);
	if (!io_is_folder(path))
		return weights_read(path, m);
	TRY(run_folder_open(path, &run, &folder));
	file = io_join(folder, RUN_MODEL);
	struct err e = weights_read(file, m);
	free(file);
	free(folder);
	return e;
}

static struct err show(const struct inspect_options *o, struct inspect_request *q)
{
	struct report r = { 0 };
	q->length = (int)(o->length ? o->length : q->options->train_length);
	q->scaling = &o->scaling;
	struct err e = inspect(q, &r);
	if (!e.code && o->format == FORMAT_JSON)
		report_json(&r, stdout);
	else if (!e.code)
		report_print(&r, stdout);
	report_free(&r);
	return e;
}

static struct err run(struct invocation *in)
{
	struct config *c = &in->config;
	struct inspect_request q = { .options = NULL };
	struct model_options options;
	struct model m = { 0 };
	struct err e = OK;
	TRY(in->words ? input_finish(c, in->word[0]) : config_finish(c, true));
	if (in->words) {
		e = read_model(c, in->word[0], &m);
		q.options = &m.options;
		q.model = &m;
	} else {
		set_sizes(c, &q, &options);
		q.options = &options;
	}
	if (!e.code)
		e = show(c->own, &q);
	model_close(&m);
	return e;
}

const struct command command_inspect = {
	.name = "inspect",
	.words = "[MODEL]",
	.help = "the numbers of an encoding: frequencies, slopes, buckets, tables",
	.more = "MODEL is the folder of a run or its model.safetensors, for learned tables.\n"
		"Examples:\n  ropewalk inspect --encoding=rope --head-dim=32 --scaling=yarn --length=512\n"
		"  ropewalk inspect runs/out/rope-101 --format=json",
	.most = 1,
	.lists = LIST_MODEL | LIST_OWN,
	.without = "hidden|rms_eps|tied|ssmax",
	.own = own,
	.own_size = sizeof(struct inspect_options),
	.run = run,
};
