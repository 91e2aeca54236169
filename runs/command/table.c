#include "model/base/stb.h"
#include "runs/command/command.h"
#include "runs/show/print.h"
#include "runs/show/tuned.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

static const struct option own_rows[] = { PRINT_OPTIONS, { 0 } };

/* The studies named, opened. */
struct opened {
	struct study study;
	struct grid grid;
};

static struct err print_all(struct invocation *in, struct opened *opened, int *count)
{
	struct print_study *show = NULL;
	struct err e = OK;
	for (; *count < in->words && !e.code; *count += !e.code) {
		struct opened *o = &opened[*count];
		e = study_folder_open(in->word[*count], &o->study, &o->grid);
		arrput(show, ((struct print_study){ in->word[*count], &o->study, &o->grid }));
	}
	if (!e.code)
		e = print_studies(show, *count, in->config.own);
	arrfree(show);
	return e;
}

static struct err run(struct invocation *in)
{
	const struct print_options *own = in->config.own;
	TRY(print_options_check(&in->config, own));
	if (in->words == 2 && tuned_is_run(in->word[0]) && tuned_is_run(in->word[1])) {
		if (*own->against)
			return err_usage("Leave it out.", "--against: is for studies, and these are runs");
		return tuned_print(in->word[0], in->word[1], (enum format)own->format);
	}
	struct opened *opened = stb_reallocate(NULL, (size_t)in->words * sizeof *opened);
	int count = 0;
	struct err e = print_all(in, opened, &count);
	for (int i = 0; i < count; i++) {
		grid_free(&opened[i].grid);
		study_free(&opened[i].study);
	}
	free(opened);
	return e;
}

const struct command command_table = {
	.name = "table",
	.words = "DIR ...",
	.help = "print the tables of studies again, finished or not",
	.more = "DIR is the folder of a study, finished, unfinished or being worked on. What is not computed yet shows\n"
		"as `-`. Several studies stand one after the other; csv and json make one table of them. Of two runs,\n"
		"a base and what `ropewalk finetune` made of it, it prints their table.\n"
		"Examples:\n"
		"  ropewalk table runs/out/scaling --against=ntk\n"
		"  ropewalk table runs/out/scaling --format=json",
	.least = 1,
	.most = INT_MAX,
	.lists = LIST_OWN,
	.own = own_rows,
	.own_size = sizeof(struct print_options),
	.run = run,
};
