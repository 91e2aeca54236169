#include "model/layout.h"
#include "model/position/scaling.h"
#include "runs/command/command.h"
#include "runs/help.h"
#include "runs/plot/plot.h"
#include "runs/preset.h"

#include <stdio.h>

/* What there is: small tables made from the lists. */

static struct err list_family(family_at family)
{
	const struct entry *e;
	for (int i = 0; (e = family(i)); i++) {
		printf("%-14s %s\n", e->name, e->help);
		if (e->paper)
			printf("%-14s   [%s]\n", "", e->paper);
		for (const struct option *o = e->options; o && o->name; o++)
			printf("%-14s   %s=%s: %s\n", "", o->name, o->initial, o->help);
	}
	return OK;
}

static struct err list_encodings(const struct config *c)
{
	(void)c;
	return list_family(position_at);
}

static struct err list_scalings(const struct config *c)
{
	(void)c;
	return list_family(scaling_at);
}

static struct err list_tasks(const struct config *c)
{
	(void)c;
	return list_family(task_at);
}

static struct err list_options(const struct config *c)
{
	static const struct scope all = { .command = "study",
					  .lists = LIST_TRAINING | LIST_EVAL | LIST_RUN | LIST_STUDY };
	struct option_name n;
	(void)c;
	for (int i = 0; option_name_at(&all, i, &n); i++)
		help_option(stdout, &n);
	return OK;
}

static void print_parameter(const struct parameter *p)
{
	static const char *const name[] = { [INIT_NORMAL] = "normal", [INIT_UNIFORM] = "uniform to",
					    [INIT_CONSTANT] = "constant", [INIT_ONES] = "ones",
					    [INIT_ZEROS] = "zeros" };
	bool plain = p->initialiser == INIT_ONES || p->initialiser == INIT_ZEROS;
	char shape[32], initialiser[48];
	if (p->rows)
		snprintf(shape, sizeof shape, "(%d,%d)", p->rows, p->columns);
	else
		snprintf(shape, sizeof shape, "(%d)", p->columns);
	if (plain)
		snprintf(initialiser, sizeof initialiser, "%s", name[p->initialiser]);
	else
		snprintf(initialiser, sizeof initialiser, "%s %.4g", name[p->initialiser], p->deviation);
	printf("%-52s %-12s %-16s %-8s %9zu\n", p->name, shape, initialiser, p->decayed ? "decayed" : "-", p->size);
}

static struct err list_params(const struct config *c)
{
	struct layout l = { 0 };
	size_t total = 0;
	struct err e = layout_build(&c->model, task_of(&c->data.task)->vocabulary(&c->data.task), &l);
	for (int i = 0; !e.code && i < layout_count(&l); i++) {
		print_parameter(&l.parameter[i]);
		total += l.parameter[i].size;
	}
	if (!e.code)
		printf("%-52s %-12s %-16s %-8s %9zu\n", "total", "", "", "", total);
	layout_free(&l);
	return e;
}

static struct err list_presets(const struct config *c)
{
	(void)c;
	return preset_list();
}

static struct err list_pictures(const struct config *c)
{
	(void)c;
	for (int i = 0; picture_at(i); i++)
		printf("%-14s %s\n", picture_at(i)->name, picture_at(i)->help);
	return OK;
}

static const struct {
	const char *name, *help;
	struct err (*print)(const struct config *c);
} lists[] = {
	{ "encodings", "positional encodings, and the options of each", list_encodings },
	{ "scalings", "RoPE scalings, and the options of each", list_scalings },
	{ "tasks", "what models are trained on, and the options of each", list_tasks },
	{ "options", "every option, its default and range", list_options },
	{ "params", "the tensors of the model that the options describe", list_params },
	{ "presets", "studies that come with the program", list_presets },
	{ "pictures", "what `ropewalk plot` draws", list_pictures },
};
#define COUNT ((int)(sizeof lists / sizeof lists[0]))

static const char *list_name(int index, const void *unused)
{
	(void)unused;
	return index < COUNT ? lists[index].name : NULL;
}

static struct err run(struct invocation *in)
{
	int which;
	TRY(config_finish(&in->config, true));
	if (!in->words) {
		for (int i = 0; i < COUNT; i++)
			printf("%-14s %s\n", lists[i].name, lists[i].help);
		return OK;
	}
	TRY(command_pick(in->command, in->word[0], &which));
	return lists[which].print(&in->config);
}

const struct command command_list = {
	.name = "list",
	.words = "[WHAT]",
	.help = "encodings, scalings, tasks, options, params, presets or pictures",
	.more = "Without WHAT: what there is to list. The options are those of the model that `list params` lays out.\n"
		"Examples:\n"
		"  ropewalk list scalings\n"
		"  ropewalk list params --encoding='t5(buckets=8)' --layers=3",
	.least = 0,
	.most = 1,
	.word_at = list_name,
	.lists = LIST_MODEL | LIST_DATA,
	.run = run,
};
