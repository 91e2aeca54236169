#include "runs/command/explain.h"
#include "runs/show/oracle_tables.h"
#include "runs/stop.h"

#include <stddef.h>
#include <stdio.h>

enum { TEXT, CSV, JSON };

struct own {
	double multiple, lr;
	int64_t steps, batch, format;
	const char *group;
};

static const struct option own_rows[] = {
	{ .name = "multiple", .kind = OPTION_NUMBER, .initial = "8", .least = 1e-6, .most = 1e6,
	  .help = "length that is fitted, as a multiple of train_length", .offset = offsetof(struct own, multiple) },
	{ .name = "steps", .kind = OPTION_INTEGER, .initial = "200", .least = 0, .most = 1000000000, .unit = "steps",
	  .help = "optimiser steps of each of the two fits", .offset = offsetof(struct own, steps) },
	{ .name = "batch", .kind = OPTION_INTEGER, .initial = "8", .least = 1, .most = 1048576, .unit = "sequences",
	  .help = "sequences in a batch", .offset = offsetof(struct own, batch) },
	{ .name = "lr", .kind = OPTION_NUMBER, .initial = "0.03", .least = 0, .most = 1000,
	  .help = "learning rate after warm-up, of the logarithms of frequencies and factor",
	  .offset = offsetof(struct own, lr) },
	{ .name = "group", .kind = OPTION_TEXT, .initial = "", .unit = "group",
	  .help = "group of tokens that is fitted, as recall; unless given, all that are scored",
	  .offset = offsetof(struct own, group) },
	{ .name = "format", .kind = OPTION_CHOICE, .initial = "text", .choices = "text|csv|json", .unit = "",
	  .help = "how the numbers are printed", .offset = offsetof(struct own, format) },
	{ 0 },
};

static void add_sheet(struct sheet *s, struct text_builder *b)
{
	sheet_text(s, sheet_colour(), b);
	text_add(b, "\n");
	sheet_free(s);
}

static void print_text(const struct oracle_question *q, const struct oracle_answer *a)
{
	struct text_builder b = { 0 };
	struct sheet s;
	for (int l = 0; l < ORACLE_LENGTHS; l++) {
		if (l > 0 && a->length[l] == a->length[0])
			continue;
		oracle_sheet(q, a, l, &s);
		add_sheet(&s, &b);
	}
	oracle_frequencies(q, a, &s);
	add_sheet(&s, &b);
	oracle_notes(q, a, &b);
	fputs(b.data, stdout);
	text_builder_free(&b);
}

static void print(const struct own *own, const struct oracle_question *q, const struct oracle_answer *a)
{
	struct records records = { 0 };
	if (own->format == TEXT) {
		print_text(q, a);
		return;
	}
	oracle_records(q, a, &records);
	records_print(&records, own->format == JSON);
	records_free(&records);
}

static struct err work(struct config *c, const struct examined *x)
{
	const struct own *own = c->own;
	struct train_options train = oracle_train_options(own->steps, own->batch, own->lr);
	struct oracle_question q = { .run = x, .train = &train };
	struct oracle_answer a = { 0 };
	TRY(examined_group(&c->data.task, own->group, &q.group));
	TRY(run_oracle_check(&q));
	TRY(command_start(c));
	stop_catch();
	struct err e = run_oracle(&q, &a);
	if (!e.code)
		print(own, &q, &a);
	oracle_answer_free(&a);
	return e;
}

static struct err run(struct invocation *in)
{
	struct config *c = &in->config;
	TRY(config_finish(c, true));
	return explain_run(in, ((const struct own *)c->own)->multiple, work);
}

const struct command command_oracle = {
	.name = "oracle",
	.words = "DIR",
	.help = "say how far RoPE scalings are from the best frequencies, by fitting them",
	.more = "DIR is the folder of a run with rope, or the model.safetensors in it. Its weights are frozen;\n"
		"inverse frequencies and attention factor are fitted by gradient on sequences of stream tune, once\n"
		"from the trained frequencies and once from yarn's, and the better on further ones of tune is kept.\n"
		"Prints it beside none, linear, ntk, ntk_by_parts and yarn. Nothing is written.\n"
		"Example:\n"
		"  ropewalk oracle runs/out/rope-101 --multiple=8 --steps=200",
	.least = 1,
	.most = 1,
	.lists = LIST_EVAL | LIST_RUN | LIST_OWN,
	.without = EXPLAIN_WITHOUT,
	.own = own_rows,
	.own_size = sizeof(struct own),
	.run = run,
};
