#include "model/layout.h"
#include "model/position/scaling.h"
#include "runs/command/command.h"
#include "runs/help.h"
#include "runs/preset.h"

#include <stdio.h>
#include <string.h>

/* What there is: small tables made from the lists. */

static struct err list_family(family_at family)
{
	const struct entry *e;
	for (int i = 0; (e = family(i)); i++) {
		printf("%-14s %s\n", e->name, e->help);
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
	static const struct scope all = { .command = "study", .lists = LIST_TRAINING | LIST_EVAL | LIST_RUN };
	struct option_name n;
	(void)c;
	for (int i = 0; option_name_at(&all, i, &n); i++)
		help_option(stdout, &n);
	return OK;
}

static void print_parameter(const struct parameter *p)
{
	char shape[32], initialiser[48];
	if (p->rows)
		snprintf(shape, sizeof shape, "(%d,%d)", p->rows, p->columns);
	else
		snprintf(shape, sizeof shape, "(%d)", p->columns);
	if (p->initialiser == INIT_NORMAL)
		snprintf(initialiser, sizeof initialiser, "normal %.4g", p->deviation);
	else
		snprintf(initialiser, sizeof initialiser, "%s", p->initialiser == INIT_ONES ? "ones" : "zeros");
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

static const struct {
	const char *name;
	struct err (*print)(const struct config *c);
} lists[] = {
	{ "encodings", list_encodings }, { "scalings", list_scalings }, { "tasks", list_tasks },
	{ "options", list_options },     { "params", list_params },     { "presets", list_presets },
};
#define COUNT ((int)(sizeof lists / sizeof lists[0]))

static const char *next_list(int index, const void *unused)
{
	(void)unused;
	return index < COUNT ? lists[index].name : NULL;
}

static struct err run(struct invocation *in)
{
	char hint[160] = "There are: encodings, scalings, tasks, options, params, presets.";
	TRY(config_finish(&in->config, true));
	for (int i = 0; i < COUNT; i++)
		if (!strcmp(lists[i].name, in->word[0]))
			return lists[i].print(&in->config);
	const char *nearest = nearest_name(in->word[0], next_list, NULL);
	if (nearest)
		snprintf(hint, sizeof hint, "Did you mean %s?", nearest);
	return err_usage(hint, "list: '%.60s' is unknown", in->word[0]);
}

const struct command command_list = {
	.name = "list",
	.words = "WHAT",
	.help = "encodings, scalings, tasks, options, params or presets",
	.more = "`list params` lays out the model that the options describe.",
	.least = 1,
	.most = 1,
	.lists = LIST_MODEL | LIST_DATA,
	.run = run,
};
