#include "runs/study/study.h"

#include "model/base/blas.h"
#include "model/base/io.h"
#include "model/base/process.h"
#include "model/base/stb.h"
#include "runs/command/command.h"
#include "runs/plot/plot.h"
#include "runs/preset.h"
#include "runs/progress.h"
#include "runs/show/print.h"
#include "runs/stop.h"
#include "runs/study/claim_rows.h"
#include "runs/study/locate.h"
#include "runs/study/study.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An option of the study as given: it waits for the file, whose values it replaces. */
struct given {
	const char *name, *text, *from;
};

struct study_own {
	struct print_options print; /* first: see PRINT_OPTIONS */
	int64_t jobs, dry_run, pictures;
	const char *shard;
	struct given *given; /* stb_ds */
};

#define JOBS 1024

static const struct option own_rows[] = {
	PRINT_OPTIONS,
	{ .name = "jobs", .kind = OPTION_INTEGER, .initial = "1", .least = 1, .most = JOBS, .unit = "processes",
	  .help = "models at once, each by a process of its own with its share of the threads",
	  .offset = offsetof(struct study_own, jobs) },
	{ .name = "shard", .kind = OPTION_TEXT, .initial = "", .unit = "I/N",
	  .help = "compute part I of N alone, for machines that share no folder; auto: as the launcher numbers",
	  .offset = offsetof(struct study_own, shard) },
	{ .name = "dry_run", .kind = OPTION_SWITCH, .initial = "off", .least = 0, .most = 1, .choices = "off|on",
	  .unit = "", .help = "print what is to be done and how long it may take, and do nothing",
	  .offset = offsetof(struct study_own, dry_run) },
	{ .name = "pictures", .kind = OPTION_SWITCH, .initial = "on", .least = 0, .most = 1, .choices = "off|on",
	  .unit = "", .help = "draw pictures into DIR/pictures at the end",
	  .offset = offsetof(struct study_own, pictures) },
	{ 0 },
};

static struct err set(struct config *c, const char *name, const char *text, const char *from)
{
	struct study_own *own = c->own;
	struct option_name known;
	if (!option_lookup(&c->scope, name, &known) || known.list & (LIST_RUN | LIST_OWN))
		return config_set(c, name, text, from);
	struct given given = { text_keep(known.name), text_keep(text), from ? text_keep(from) : NULL };
	arrput(own->given, given);
	return OK;
}

static struct err read_study(const struct study_own *own, const char *path, struct study *s, struct grid *g)
{
	TRY(study_read(path, s));
	struct err e = OK;
	for (int i = 0; i < arrlen(own->given) && !e.code; i++)
		e = study_override(s, own->given[i].name, own->given[i].text, own->given[i].from);
	if (!e.code)
		e = grid_build(s, g);
	if (!e.code && s->overridden)
		claims_drop(s, g);
	if (e.code)
		study_free(s);
	return e;
}

/* A worker has its share of the threads, and leaves the machine's line to the process that has started it. */
static struct err start(struct config *c, const struct team *team)
{
	stop_catch();
	progress_speaker(team_name(team));
	if (!team->worker)
		return command_start(c);
	team_follow();
	progress_to_parent();
	c->run.threads = team->threads;
	blas_use((enum blas_products)c->run.products);
	return blas_start(team->threads);
}

/* One of those that were started together prints the tables, and has the exit code that tells of failures: launchers end
 * all processes where one fails. */
static struct err finish(const struct study_job *job, const struct print_study *show, const struct study_own *own,
			 int failed)
{
	if (job->dry)
		return OK;
	if (job->team.worker)
		return (struct err){ .code = failed ? ERR_FAILED : ERR_NONE };
	if (!team_speaks(&job->team)) {
		fprintf(stderr, "%sdone; the process of rank 0 prints the tables\n", team_name(&job->team));
		return OK;
	}
	TRY(print_studies(show, 1, &own->print));
	if (own->pictures)
		plot_study(show->folder, show->study, show->grid);
	if (!failed)
		return OK;
	return err_failed("The tables are printed without them. The same command goes on with what failed or was "
			  "cut off; what diverged is trained again with --force alone.",
			  "%s: %d of %d models diverged or failed", job->folder, failed,
			  (int)arrlen(job->grid->cell));
}

static struct err run_job(const struct invocation *in, const struct study_job *job, const struct print_study *show)
{
	int failed;
	struct err e = study_run(job, &failed);
	if (stop_is(&e))
		snprintf(e.hint, sizeof e.hint, "What is finished is kept. It goes on with: %.400s", in->line);
	TRY(e);
	return finish(job, show, in->config.own, failed);
}

static struct err run_and_print(struct invocation *in, const char *folder, const struct study *s, const struct grid *g)
{
	const struct study_own *own = in->config.own;
	char token[33];
	process_token(token, sizeof token);
	struct study_job job = { .folder = folder, .study = s, .grid = g, .force = in->config.run.force,
				 .team = team_find(), .dry = own->dry_run, .jobs = (int)own->jobs,
				 .threads = in->config.run.threads, .save_every = in->config.run.save_every,
				 .command_line = in->line, .argv = in->argv };
	const struct print_study show = { folder, s, g };
	job.token = *job.team.token ? job.team.token : token;
	TRY(shard_parse(own->shard, &job.shard));
	TRY(print_options_check(&in->config, &own->print));
	TRY(print_check(&show, &own->print));
	TRY(study_folder_check(folder));
	TRY(start(&in->config, &job.team));
	return run_job(in, &job, &show);
}

static struct err run_file(struct invocation *in, const char *path)
{
	struct study s;
	struct grid g;
	TRY(read_study(in->config.own, path, &s, &g));
	const char *out = in->config.run.out;
	char *folder = *out ? strdup(out) : io_join("runs/out", study_name(path));
	struct err e = run_and_print(in, folder, &s, &g);
	free(folder);
	grid_free(&g);
	study_free(&s);
	return e;
}

static struct err run(struct invocation *in)
{
	struct study_own *own = in->config.own;
	char *path;
	struct err e = study_locate(in->word[0], &path);
	if (!e.code)
		e = run_file(in, path);
	free(path);
	arrfree(own->given);
	return e;
}

const struct command command_study = {
	.name = "study",
	.words = "FILE-or-PRESET",
	.help = "train and evaluate a grid of models, and print the tables",
	.more = "FILE holds `name = value` lines; a list `a, b, c` makes an axis of models (a list of scaling or\n"
		"multiples is what every model is evaluated under); a section [encoding=nope] overrides for those.\n"
		"Sections [expect NAME], [published NAME], [order NAME] and [stability] say what the numbers are held\n"
		"against (runs/README.md).\n"
		"Options given here replace those of the file, for all models. What is finished is not computed\n"
		"again. The folder is runs/out/NAME unless --out is given. Any number of processes may work on one\n"
		"folder; --jobs starts some; machines that share no folder take a --shard each, and `ropewalk merge`\n"
		"joins what they have made. At the end pictures are drawn.\n"
		"Examples:\n"
		"  ropewalk study scaling\n"
		"  ropewalk study scaling --seed=101,102 --scaling='none, ntk(factor=8)' --out=runs/out/short\n"
		"  ropewalk study encodings --dry-run\n"
		"  ropewalk study encodings --jobs=4",
	.least = 1,
	.most = 1,
	.word_at = preset_at,
	.or_file = true,
	.lists = LIST_TRAINING | LIST_EVAL | LIST_RUN | LIST_OWN | LIST_STUDY,
	.without = "resume",
	.own = own_rows,
	.own_size = sizeof(struct study_own),
	.set = set,
	.run = run,
};
