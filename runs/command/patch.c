#include "model/base/stb.h"
#include "runs/command/explain.h"
#include "runs/show/parts_tables.h"
#include "runs/show/wrap.h"

#include <stddef.h>
#include <stdio.h>

enum { BY_ALL = PARTS_BY }; /* `by` has the names of enum parts_by, in its order, then all */
enum { TEXT, CSV, JSON };

struct own {
	struct method scaling;
	double multiple;
	int64_t by, format;
};

static const struct option own_rows[] = {
	{ .name = "scaling", .kind = OPTION_METHOD, .initial = "none", .family = scaling_at,
	  .help = "the scaling that is taken apart: one that changes frequencies alone",
	  .offset = offsetof(struct own, scaling) },
	{ .name = "multiple", .kind = OPTION_NUMBER, .initial = "8", .least = 1e-6, .most = 1e6,
	  .help = "evaluated length as a multiple of train_length", .offset = offsetof(struct own, multiple) },
	{ .name = "by", .kind = OPTION_CHOICE, .initial = "all", .choices = "layer|head|pair|all", .unit = "",
	  .help = "the parts it is applied to, one at a time", .offset = offsetof(struct own, by) },
	{ .name = "format", .kind = OPTION_CHOICE, .initial = "text", .choices = "text|csv|json", .unit = "",
	  .help = "how the numbers are printed", .offset = offsetof(struct own, format) },
	{ 0 },
};

static void ask(struct parts_question *q, struct part part, enum pair_kind inside, enum pair_kind outside)
{
	arrput(q->setting, ((struct part_setting){ part, inside, outside }));
}

static void make_question(const struct own *own, struct parts_question *q)
{
	struct part *part = NULL;
	for (int by = 0; by < PARTS_BY; by++)
		if (own->by == BY_ALL || own->by == by)
			parts_add(&q->run->model.options, (enum parts_by)by, &part);
	ask(q, PART_ALL, PAIR_TRAINED, PAIR_TRAINED);
	ask(q, PART_ALL, PAIR_SCALED, PAIR_SCALED);
	for (int i = 0; i < arrlen(part); i++) {
		ask(q, part[i], PAIR_SCALED, PAIR_TRAINED);
		ask(q, part[i], PAIR_TRAINED, PAIR_SCALED);
	}
	arrfree(part);
}

static void print_text(const struct parts_question *q, const struct parts_answers *a)
{
	static const char *const notes[] = {
		"none: every pair turns as without a scaling. The row beneath it: the scaling everywhere, and in "
		"points what it changes. only: in that part alone. all but: everywhere else.",
		"Beneath an accuracy the share of that change that it has, (accuracy - none) / (everywhere - none), "
		"with its standard error over sequences (paired). Where the scaling harms, it is a share of the harm.",
		"n/a: same: the scaling changes less than 1 point. n/a: noise: less than twice its standard error.",
	};
	struct text_builder b = { 0 };
	struct sheet s;
	parts_sheet(q, a, PARTS_ALL_KINDS, &s);
	sheet_text(&s, sheet_colour(), &b);
	text_add(&b, "\n");
	for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
		wrap_paragraph(&b, notes[i]);
	fputs(b.data, stdout);
	sheet_free(&s);
	text_builder_free(&b);
}

static struct err work(struct config *c, const struct examined *x)
{
	const struct own *own = c->own;
	struct parts_question q = { .run = x, .scaling = &own->scaling, .shares = true, .what = "patch" };
	struct parts_answers a = { 0 };
	TRY(parts_check_encoding(&x->model.options));
	TRY(parts_check_scaling(&own->scaling, &x->model.options, x->length));
	make_question(own, &q);
	struct err e = explain_parts(c, &q, &a);
	if (!e.code && own->format == TEXT)
		print_text(&q, &a);
	else if (!e.code)
		parts_print(&q, &a, own->format == JSON);
	parts_answers_free(&a);
	arrfree(q.setting);
	return e;
}

static struct err run(struct invocation *in)
{
	struct config *c = &in->config;
	TRY(config_finish(c, true));
	if (!config_given(c, "scaling"))
		return err_usage("Give one, as in --scaling=yarn.", "--scaling: is missing");
	return explain_run(in, ((const struct own *)c->own)->multiple, work);
}

const struct command command_patch = {
	.name = "patch",
	.words = "DIR",
	.help = "say in which layers, heads and pairs a RoPE scaling has its effect",
	.more = "DIR is a run's folder, or the model.safetensors in it. Prints accuracy by group without the scaling,\n"
		"with it everywhere, with it only in each part, and everywhere but there, on the same sequences; and\n"
		"how much of the whole change each of them has. Nothing is written.\n"
		"Examples:\n"
		"  ropewalk patch runs/out/rope-101 --scaling=ntk --by=layer\n"
		"  ropewalk patch runs/out/rope-101 --scaling='yarn(ramp=rotations,beta_fast=4)' --by=pair",
	.least = 1,
	.most = 1,
	.lists = LIST_EVAL | LIST_RUN | LIST_OWN,
	.without = EXPLAIN_WITHOUT,
	.own = own_rows,
	.own_size = sizeof(struct own),
	.run = run,
};
