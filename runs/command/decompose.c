#include "model/base/stb.h"
#include "runs/command/command.h"
#include "runs/run/run_examine.h"
#include "runs/show/decompose_tables.h"
#include "runs/show/format.h"
#include "runs/stop.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct own {
	const char *multiples, *group;
	int64_t format;
};

static const struct option own_rows[] = {
	{ .name = "multiples", .kind = OPTION_TEXT, .initial = "2,4,8,16,32", .unit = "list",
	  .help = "lengths that the sequences are stretched to, as multiples of train_length",
	  .offset = offsetof(struct own, multiples) },
	{ .name = "group", .kind = OPTION_TEXT, .initial = "", .unit = "group",
	  .help = "group of tokens to show, as echo; unless given, tables show the task's first, csv and json all",
	  .offset = offsetof(struct own, group) },
	{ .name = "format", .kind = OPTION_CHOICE, .initial = "text", .choices = FORMAT_CHOICES, .unit = "",
	  .help = FORMAT_HELP, .offset = offsetof(struct own, format) },
	{ 0 },
};

static struct err check_group(const struct decompose_set *set, const char *group)
{
	int ignored;
	for (int i = 0; i < arrlen(set->subject); i++)
		TRY(examined_group(&set->subject[i].config.data.task, group, &ignored));
	return OK;
}

static void add_sheets(const struct decompose_set *set, const struct own *own, struct text_builder *b)
{
	for (int i = 0; i < arrlen(set->decomposed); i++) {
		const struct decomposed *d = &set->decomposed[i];
		const struct task *task = task_of(&set->subject[d->subject[0]].config.data.task);
		struct sheet sheet;
		decompose_sheet(set, d, *own->group ? decompose_group(task, own->group) : 0, &sheet);
		format_sheet((enum format)own->format, &sheet, b);
		sheet_free(&sheet);
	}
}

static void add_notes(const struct own *own, struct text_builder *b)
{
	struct text_builder notes = { 0 };
	decompose_notes(&notes);
	format_notes((enum format)own->format, notes.data, b);
	text_builder_free(&notes);
}

static void add_records(const struct decompose_set *set, const struct own *own, struct text_builder *b)
{
	const char *group = *own->group ? own->group : NULL;
	struct records records = { 0 };
	if (own->format == FORMAT_WIDE)
		decompose_wide(set, group, &records);
	else
		decompose_long(set, group, &records);
	if (own->format == FORMAT_JSON) {
		records_json(&records, 0, b);
		text_add(b, "\n");
	} else {
		records_csv(&records, true, b);
	}
	records_free(&records);
}

static void print(const struct decompose_set *set, const struct own *own)
{
	struct text_builder b = { 0 };
	if (format_sheets((enum format)own->format)) {
		add_sheets(set, own, &b);
		add_notes(own, &b);
	} else {
		add_records(set, own, &b);
	}
	fputs(b.data, stdout);
	text_builder_free(&b);
}

static struct err add_words(struct invocation *in, const struct method *scaling, int scalings,
			    struct decompose_set *set)
{
	const struct own *own = in->config.own;
	for (int i = 0; i < in->words; i++)
		TRY(decompose_add(set, in->word[i], &in->config, own->multiples, scaling, scalings));
	return OK;
}

static struct err run(struct invocation *in)
{
	struct config *c = &in->config;
	struct decompose_set set = { 0 };
	struct method *scaling = NULL;
	int scalings = 0;
	TRY(config_finish(c, true));
	TRY(config_scalings(c, true, &scaling, &scalings));
	struct err e = add_words(in, config_given(c, "scaling") ? scaling : NULL, scalings, &set);
	if (!e.code)
		e = check_group(&set, ((const struct own *)c->own)->group);
	if (!e.code)
		e = decompose_set_check(&set);
	if (!e.code)
		e = command_start(c);
	stop_catch();
	if (!e.code)
		e = decompose_set_run(&set);
	if (!e.code)
		print(&set, c->own);
	decompose_set_free(&set);
	free(scaling);
	return e;
}

const struct command command_decompose = {
	.name = "decompose",
	.words = "DIR ...",
	.help = "say how much of a failure past train_length is position, and how much crowding",
	.more = "DIR is a run's folder, or a study's: then all its finished runs, each under the study's scalings for\n"
		"it unless --scaling is given. Runs that differ only in their seed share a table. The task's\n"
		"questions at train_length are asked in four forms: as they are; far apart without filler; with\n"
		"filler at trained positions; with both. Nothing is written.\n"
		"Examples:\n"
		"  ropewalk decompose runs/out/rope-101 --scaling=none,ntk\n"
		"  ropewalk decompose runs/out/encodings --multiples=4,16 --format=md",
	.least = 1,
	.most = INT_MAX,
	.lists = LIST_EVAL | LIST_RUN | LIST_OWN,
	.without = "kv|protocol|calibrate|out|force|references|stream|multiples|resume|save_every",
	.own = own_rows,
	.own_size = sizeof(struct own),
	.run = run,
};
