#include "runs/plot/plot.h"

#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/command/command.h"
#include "runs/plot/gnuplot.h"
#include "runs/plot/terminal.h"
#include "runs/stop.h"

#include <stdio.h>
#include <stdlib.h>

struct plot_own {
	const char *picture, *out;
	int64_t format, terminal;
};

#define ROW(n, k, i, u, h) \
	.name = #n, .kind = OPTION_##k, .initial = i, .unit = u, .help = h, .offset = offsetof(struct plot_own, n)
static const struct option own_rows[] = {
	{ ROW(picture, TEXT, "", "list", "which pictures, by name; empty: all") },
	{ ROW(format, CHOICE, "svg", "", "of the images"), .choices = PICTURE_FORMATS },
	{ ROW(out, TEXT, "", "folder", "where they go, made if need be; empty: DIR/pictures") },
	{ ROW(terminal, SWITCH, "off", "", "draw the first of them as characters instead, and write nothing") },
	{ 0 },
};

/* The first that is wanted and there. */
static struct err show(const struct results *r, const bool *wanted)
{
	for (int i = 0; picture_at(i); i++) {
		struct chart chart;
		if (!wanted[i])
			continue;
		struct err e = picture_make(picture_at(i), r, &chart);
		bool there = arrlen(chart.panel) && !chart.value;
		if (!e.code && there)
			terminal_print(&chart);
		else if (!e.code)
			fprintf(stderr, "%s: %s\n", picture_at(i)->name,
				arrlen(chart.panel) ? "has no form in characters" : chart.absent);
		chart_free(&chart);
		if (e.code || there)
			return e;
	}
	return OK;
}

static void tell(const char *folder, const struct plotted *done, enum picture_format format)
{
	fputs(done->absent.data ? done->absent.data : "", stderr);
	if (!done->images)
		fprintf(stderr, "only scripts and tables are written: %s\n", GNUPLOT_MISSING);
	if (done->count)
		printf("%s: %s (%s, gp, tsv)\n", folder, done->names.data,
		       done->images ? picture_suffix(format) : "no images");
}

static struct err write(const struct results *r, const char *folder, const bool *wanted, enum picture_format format)
{
	const struct plot_job job = { r, folder, wanted, format };
	struct plotted done = { 0 };
	struct err e = plot(&job, &done);
	if (!e.code)
		tell(folder, &done, format);
	plotted_free(&done);
	return e;
}

static struct err run(struct invocation *in)
{
	const struct plot_own *own = in->config.own;
	struct subject s;
	bool wanted[PICTURES];
	TRY(pictures_pick(own->picture, wanted));
	TRY(subject_open(in->word[0], &s));
	stop_catch();
	if (s.others)
		fprintf(stderr, "%s\n", subject_others(&s));
	char *within = io_join(in->word[0], "pictures");
	struct err e = own->terminal ? show(&s.results, wanted)
				     : write(&s.results, *own->out ? own->out : within, wanted,
					     (enum picture_format)own->format);
	free(within);
	subject_close(&s);
	return e;
}

const struct command command_plot = {
	.name = "plot",
	.words = "DIR",
	.help = "draw pictures of a study or a run, by gnuplot or as characters",
	.more = "DIR is the folder of a study, finished or not, or of a run that was evaluated. Into DIR/pictures, or\n"
		"the folder that --out names, go NAME.svg (png, pdf), and beside it NAME.tsv, its table, and NAME.gp, "
		"with\n"
		"which `gnuplot NAME.gp` draws it again. Without gnuplot the latter two alone. `ropewalk list "
		"pictures` says\n"
		"what there is.\n"
		"Examples:\n"
		"  ropewalk plot runs/out/scaling\n"
		"  ropewalk plot runs/out/scaling --picture=perplexity,seeds --format=pdf --out=paper\n"
		"  ropewalk plot runs/out/scaling --terminal",
	.least = 1,
	.most = 1,
	.lists = LIST_OWN,
	.own = own_rows,
	.own_size = sizeof(struct plot_own),
	.run = run,
};
