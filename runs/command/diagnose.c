#include "runs/command/explain.h"
#include "runs/run/run_folder.h"
#include "runs/show/diagnose_tables.h"
#include "runs/stop.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* Names of formats as in runs/show/format.h, of those that it has. */
enum { TEXT, MD, CSV, JSON };

struct own {
	const char *multiples, *group;
	int64_t format;
};

static const struct option own_rows[] = {
	{ .name = "multiples", .kind = OPTION_TEXT, .initial = "1,8", .unit = "list",
	  .help = "evaluated lengths as multiples of train_length", .offset = offsetof(struct own, multiples) },
	{ .name = "group", .kind = OPTION_TEXT, .initial = "", .unit = "group",
	  .help = "group of tokens whose attention is looked at, as echo; unless given, the task's first",
	  .offset = offsetof(struct own, group) },
	{ .name = "format", .kind = OPTION_CHOICE, .initial = "text", .choices = "text|md|csv|json", .unit = "",
	  .help = "text; md: Markdown; csv: a row a head and a pair; json", .offset = offsetof(struct own, format) },
	{ 0 },
};

static void print(const struct own *own, const struct diagnose_question *q, const struct diagnose_answer *a)
{
	struct records records = { 0 };
	if (own->format < CSV) {
		struct text_builder b = { 0 };
		diagnose_page(q, a, own->format == MD ? FORMAT_MD : FORMAT_TEXT, &b);
		fputs(b.data, stdout);
		text_builder_free(&b);
		return;
	}
	diagnose_records(q, a, &records);
	records_print(&records, own->format == JSON);
	records_free(&records);
}

static struct err ask(const struct own *own, const struct config *c, const struct diagnose_question *q)
{
	struct diagnose_answer a = { 0 };
	TRY(run_diagnose_check(q));
	TRY(command_start(c));
	stop_catch();
	struct err e = run_diagnose(q, &a);
	if (!e.code)
		print(own, q, &a);
	diagnose_answer_free(&a);
	return e;
}

static struct err work(struct config *c, const struct examined *x)
{
	const struct own *own = c->own;
	struct diagnose_question q = { .run = x };
	struct method *scaling = NULL;
	double *multiple = NULL;
	int *length = NULL;
	if (!config_given(c, "scaling"))
		c->eval.scaling = label_of(&c->model.trained_scaling);
	TRY(examined_group(&c->data.task, own->group, &q.group));
	if (q.group < 0)
		q.group = 0;
	TRY(config_scalings(c, true, &scaling, &q.scalings));
	struct err e = config_at(c, "multiples", eval_lengths(own->multiples, (int)c->model.train_length, &c->data,
							      &length, &multiple, &q.lengths));
	q.scaling = scaling;
	q.length = length;
	q.multiple = multiple;
	if (!e.code)
		e = ask(own, c, &q);
	free(scaling);
	free(length);
	free(multiple);
	return e;
}

static struct err run(struct invocation *in)
{
	TRY(config_finish(&in->config, true));
	return explain_run(in, 1, work);
}

const struct command command_diagnose = {
	.name = "diagnose",
	.words = "DIR",
	.help = "say why a model fails past train_length, by what its attention looks at",
	.more = "DIR is a run's folder, or the model.safetensors in it. Prints for each scaling, head and length what\n"
		"share of attention goes to the right token, the one before it, its look-alikes, filler, and keys\n"
		"further off than any of training; entropy and spread of the logits; which rotated pairs meet angles\n"
		"that training did not; and a verdict in a few lines. Nothing is written.\n"
		"Examples:\n"
		"  ropewalk diagnose runs/out/rope-101 --scaling=none,ntk,yarn\n"
		"  ropewalk diagnose runs/out/alibi-101 --multiples=1,8,32 --group=echo --format=json",
	.least = 1,
	.most = 1,
	.lists = LIST_EVAL | LIST_RUN | LIST_OWN,
	.without = "kv|out|force|references|stream|multiples|resume|save_every",
	.own = own_rows,
	.own_size = sizeof(struct own),
	.run = run,
};
