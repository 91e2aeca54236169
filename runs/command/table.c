#include "runs/command/command.h"
#include "runs/show/print.h"

#include <limits.h>
#include <stddef.h>

struct table_own {
	int64_t format;
};

static const struct option own_rows[] = {
	{ .name = "format", .kind = OPTION_CHOICE, .initial = "text", .choices = FORMAT_CHOICES, .unit = "",
	  .help = "how the tables are printed", .offset = offsetof(struct table_own, format) },
	{ 0 },
};

static struct err print_folder(const char *folder, enum format format, bool first)
{
	struct study s;
	struct grid g;
	TRY(study_folder_open(folder, &s, &g));
	struct err e = print_study(folder, &s, &g, format, first);
	grid_free(&g);
	study_free(&s);
	return e;
}

static struct err run(struct invocation *in)
{
	const struct table_own *own = in->config.own;
	for (int i = 0; i < in->words; i++)
		TRY(print_folder(in->word[i], (enum format)own->format, i == 0));
	return OK;
}

const struct command command_table = {
	.name = "table",
	.words = "DIR ...",
	.help = "print the tables of studies again, finished or not",
	.more = "DIR is the folder of a study. What is not computed yet shows as `-`.\n"
		"Example:\n  ropewalk table runs/out/scaling --format=csv",
	.least = 1,
	.most = INT_MAX,
	.lists = LIST_OWN,
	.own = own_rows,
	.own_size = sizeof(struct table_own),
	.run = run,
};
