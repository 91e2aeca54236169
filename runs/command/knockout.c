#include "model/base/stb.h"
#include "runs/command/explain.h"
#include "runs/show/parts_tables.h"
#include "runs/show/wrap.h"

#include <stddef.h>
#include <stdio.h>

enum { STILL, REMOVED, BOTH };
enum { TEXT, CSV, JSON };

struct own {
	double multiple;
	int64_t kind, by, format;
};

static const struct option own_rows[] = {
	{ .name = "multiple", .kind = OPTION_NUMBER, .initial = "1", .least = 1e-6, .most = 1e6,
	  .help = "evaluated length as a multiple of train_length", .offset = offsetof(struct own, multiple) },
	{ .name = "kind", .kind = OPTION_CHOICE, .initial = "both", .choices = "still|removed|both", .unit = "",
	  .help = "still: their angle is 0 everywhere; removed: they add nothing to the logits",
	  .offset = offsetof(struct own, kind) },
	/* In the order of enum parts_by. */
	{ .name = "by", .kind = OPTION_CHOICE, .initial = "pair", .choices = "layer|head|pair", .unit = "",
	  .help = "what is knocked out: all pairs of a layer or of a head, or one pair of every head",
	  .offset = offsetof(struct own, by) },
	{ .name = "format", .kind = OPTION_CHOICE, .initial = "text", .choices = "text|csv|json", .unit = "",
	  .help = "how the numbers are printed", .offset = offsetof(struct own, format) },
	{ 0 },
};

static const enum pair_kind kinds[] = { [STILL] = PAIR_STILL, [REMOVED] = PAIR_REMOVED };

static bool is_asked(const struct own *own, int kind)
{
	return own->kind == BOTH || own->kind == kind;
}

static void make_question(const struct own *own, struct parts_question *q)
{
	struct part *part = NULL;
	parts_add(&q->run->model.options, (enum parts_by)own->by, &part);
	arrput(q->setting, ((struct part_setting){ PART_ALL, PAIR_SCALED, PAIR_SCALED }));
	for (int kind = STILL; kind < BOTH; kind++)
		for (int i = 0; i < arrlen(part) && is_asked(own, kind); i++)
			arrput(q->setting, ((struct part_setting){ part[i], kinds[kind], PAIR_SCALED }));
	arrfree(part);
}

static void print_text(const struct own *own, const struct parts_question *q, const struct parts_answers *a)
{
	static const char *const notes[] = {
		"still: the angle of these pairs is 0 everywhere, so that they compare what tokens are, wherever they "
		"stand; removed: they add nothing to the logits. The weights are as they were trained.",
		"Beneath perplexity / accuracy the change of accuracy against the intact model, in points, with its "
		"standard error over sequences (paired).",
		"serves: the task's groups that lose at least 1 point, and twice its standard error. turns in L: full "
		"turns within train_length.",
	};
	struct text_builder b = { 0 };
	for (int kind = STILL; kind < BOTH; kind++) {
		struct sheet s;
		if (!is_asked(own, kind))
			continue;
		parts_sheet(q, a, (int)kinds[kind], &s);
		sheet_text(&s, sheet_colour(), &b);
		text_add(&b, "\n");
		sheet_free(&s);
	}
	for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
		wrap_paragraph(&b, notes[i]);
	fputs(b.data, stdout);
	text_builder_free(&b);
}

static struct err work(struct config *c, const struct examined *x)
{
	const struct own *own = c->own;
	struct parts_question q = { .run = x, .scaling = &x->model.options.trained_scaling, .what = "knockout" };
	struct parts_answers a = { 0 };
	TRY(parts_check_encoding(&x->model.options));
	make_question(own, &q);
	struct err e = explain_parts(c, &q, &a);
	if (!e.code && own->format == TEXT)
		print_text(own, &q, &a);
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
	return explain_run(in, ((const struct own *)c->own)->multiple, work);
}

const struct command command_knockout = {
	.name = "knockout",
	.words = "DIR",
	.help = "say which rotated pairs serve what, by freezing or removing them",
	.more = "DIR is a run's folder, or the model.safetensors in it. Prints perplexity and accuracy by group with\n"
		"each pair in turn standing still, then removed, in every head, beside the intact model on the same\n"
		"sequences, with the pair's wavelength and its turns within train_length. Nothing is written.\n"
		"Examples:\n"
		"  ropewalk knockout runs/out/rope-101\n"
		"  ropewalk knockout runs/out/rope-101 --by=head --kind=removed --multiple=4 --format=json",
	.least = 1,
	.most = 1,
	.lists = LIST_EVAL | LIST_RUN | LIST_OWN,
	.without = EXPLAIN_WITHOUT,
	.own = own_rows,
	.own_size = sizeof(struct own),
	.run = run,
};
