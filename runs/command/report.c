#include "runs/report/report.h"

#include "model/base/io.h"
#include "runs/command/command.h"
#include "runs/plot/gnuplot.h"
#include "runs/stop.h"

#include <stdio.h>
#include <stdlib.h>

struct report_own {
	const char *out;
};

static const struct option own_rows[] = {
	{ .name = "out", .kind = OPTION_TEXT, .initial = "", .unit = "file",
	  .help = "where the page goes; empty: DIR/report.html", .offset = offsetof(struct report_own, out) },
	{ 0 },
};

static struct err write(const struct subject *s, const char *path)
{
	struct text_builder b = { 0 };
	TRY(io_writable(path));
	struct err e = report_html(s, &b);
	if (!e.code)
		e = io_write(path, b.data, b.size);
	text_builder_free(&b);
	return e;
}

static struct err run(struct invocation *in)
{
	struct subject s;
	const char *out = ((const struct report_own *)in->config.own)->out;
	TRY(subject_open(in->word[0], &s));
	stop_catch();
	if (s.others)
		fprintf(stderr, "%s\n", subject_others(&s));
	char *beside = io_join(in->word[0], "report.html");
	const char *path = *out ? out : beside;
	struct err e = write(&s, path);
	if (!e.code && !gnuplot_there())
		fprintf(stderr, "the report has no pictures: %s\n", GNUPLOT_MISSING);
	if (!e.code)
		printf("%s\n", path);
	free(beside);
	subject_close(&s);
	return e;
}

const struct command command_report = {
	.name = "report",
	.words = "DIR",
	.help = "write a page about a study or a run: tables, pictures, notes",
	.more = "DIR is the folder of a study, finished or not, or of a run that was evaluated. The page is one HTML "
		"file that\n"
		"needs nothing else: DIR/report.html, or the file that --out names.\n"
		"Examples:\n"
		"  ropewalk report runs/out/scaling\n"
		"  ropewalk report runs/out/scaling --out=scaling.html",
	.least = 1,
	.most = 1,
	.lists = LIST_OWN,
	.own = own_rows,
	.own_size = sizeof(struct report_own),
	.run = run,
};
