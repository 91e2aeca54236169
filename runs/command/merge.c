#include "runs/command/command.h"
#include "runs/stop.h"
#include "runs/study/merge.h"

#include <limits.h>

static struct err run(struct invocation *in)
{
	if (!*in->config.run.out)
		return err_usage("Give the folder to join them in, as in --out=runs/out/NAME.",
				 "--out: a folder is needed");
	stop_catch();
	return study_merge(in->word, in->words, in->config.run.out, in->line);
}

const struct command command_merge = {
	.name = "merge",
	.words = "DIR ...",
	.help = "join the folders that shards of a study have made",
	.more = "DIR are folders of one study (`ropewalk study FILE --shard=I/N` on several machines). Finished models\n"
		"are copied into the folder --out, new or one of that study; what two folders both have must be the\n"
		"same bytes. Prints what is complete and what is missing; done again after it was stopped it ends the\n"
		"same.\n"
		"Examples:\n"
		"  ropewalk merge part-1 part-2 --out=runs/out/encodings",
	.least = 1,
	.most = INT_MAX,
	.lists = LIST_RUN,
	.without = "threads|products|resume|save_every|force",
	.run = run,
};
