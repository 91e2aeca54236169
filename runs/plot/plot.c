#include "runs/plot/plot.h"

#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/plot/gnuplot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A picture is a file that defines `picture_NAME`, and a row here. */
#define PICTURE_LIST                                                                     \
	PICTURE(perplexity) PICTURE(accuracy) PICTURE(by_position) PICTURE(recall_grid) \
	PICTURE(seeds) PICTURE(frequencies) PICTURE(training)

#define PICTURE(name) extern const struct picture picture_##name;
PICTURE_LIST
#undef PICTURE

#define PICTURE(name) &picture_##name,
static const struct picture *const list[] = { PICTURE_LIST };
#undef PICTURE

const struct picture *picture_at(int index)
{
	int count = sizeof list / sizeof *list;
	return index >= 0 && index < count ? list[index] : NULL;
}

const char *picture_name_at(int index, const void *unused)
{
	const struct picture *p = picture_at(index);
	(void)unused;
	return p ? p->name : NULL;
}

static struct err unknown(const char *name)
{
	const char *nearest = nearest_name(name, picture_name_at, NULL);
	struct text_builder hint = { 0 };
	if (nearest)
		text_add(&hint, "Did you mean %s? ", nearest);
	text_add(&hint, "There are:");
	for (int i = 0; picture_at(i); i++)
		text_add(&hint, "%s %s", i ? "," : "", picture_at(i)->name);
	struct err e = err_usage(hint.data, "--picture: '%.60s' is unknown", name);
	text_builder_free(&hint);
	return e;
}

static struct err pick(const char *name, bool *wanted)
{
	for (int i = 0; picture_at(i); i++)
		if (same_name(name, picture_at(i)->name)) {
			wanted[i] = true;
			return OK;
		}
	return unknown(name);
}

struct err pictures_pick(const char *text, bool wanted[PICTURES])
{
	int count;
	char **name = text_list(text, &count);
	struct err e = OK;
	for (int i = 0; i < PICTURES; i++)
		wanted[i] = !*text && picture_at(i);
	if (*text && !count)
		e = err_usage("Leave the option out for all of them.", "--picture: names none");
	for (int i = 0; i < count && !e.code; i++)
		e = pick(name[i], wanted);
	text_list_free(name);
	return e;
}

struct err picture_make(const struct picture *p, const struct results *r, struct chart *out)
{
	*out = (struct chart){ .columns = 1 };
	struct err e = p->make(r, out);
	for (int i = 0; i < arrlen(out->panel); i++) {
		axis_finish(&out->panel[i].x);
		axis_finish(&out->panel[i].y);
	}
	BUG_IF(!e.code && !arrlen(out->panel) && !out->absent, "picture %s is nothing, and does not say why", p->name);
	return e;
}

enum { MOST_BEHIND = 8 /* bytes: a checksum, the ends of lines */ };

/* A disk that is full leaves the first part of a picture, and gnuplot may not say so. */
static bool whole(const char *image, size_t size, enum picture_format format)
{
	static const struct {
		const char *first, *last;
	} mark[] = { { "<?xml", "</svg>" }, { "\x89PNG", "IEND" }, { "%PDF", "%%EOF" } };
	size_t first = strlen(mark[format].first), last = strlen(mark[format].last);
	if (size < first + last || memcmp(image, mark[format].first, first))
		return false;
	for (size_t behind = 0; behind <= MOST_BEHIND && behind + last <= size; behind++)
		if (!memcmp(image + size - behind - last, mark[format].last, last))
			return true;
	return false;
}

struct err picture_draw(const struct picture *p, const struct chart *c, enum picture_format format, char **image,
			size_t *size)
{
	struct text_builder script = { 0 };
	chart_whole_script(c, p->name, format, &script);
	struct err e = gnuplot_run(&script, image, size);
	if (!e.code && !whole(*image, *size, format)) {
		free(*image);
		e = err_failed("Is there room in /tmp? Does `gnuplot --version` say 5.2 or above?",
			       "gnuplot: printed what is no whole %s", picture_suffix(format));
	}
	text_builder_free(&script);
	return e.code ? err_at(e, "%s", p->name) : e;
}

static char *file_of(const char *folder, const char *name, const char *suffix)
{
	char *path = io_join(folder, chart_text("%s.%s", name, suffix));
	return path;
}

/* Does the file hold this text? */
static bool holds(const char *path, const struct text_builder *text)
{
	char *data;
	size_t size;
	if (!io_exists(path) || io_read(path, &data, &size).code)
		return false;
	bool same = size == text->size && !memcmp(data, text->data, size);
	free(data);
	return same;
}

/* What stands in a folder for a picture. */
struct files {
	char *image, *script, *table;
	struct text_builder script_text, table_text;
};

static struct files files_of(const struct plot_job *job, const struct picture *p, const struct chart *c)
{
	struct files f = { file_of(job->folder, p->name, picture_suffix(job->format)),
			   file_of(job->folder, p->name, "gp"), file_of(job->folder, p->name, "tsv"), { 0 }, { 0 } };
	chart_script(c, p->name, job->format, &f.script_text);
	chart_tsv(c, &f.table_text);
	return f;
}

static void files_free(struct files *f)
{
	free(f->image);
	free(f->script);
	free(f->table);
	text_builder_free(&f->script_text);
	text_builder_free(&f->table_text);
}

static struct err write_texts(const struct files *f)
{
	TRY(io_write(f->script, f->script_text.data, f->script_text.size));
	return io_write(f->table, f->table_text.data, f->table_text.size);
}

/* An image of another table goes, and script and table are there to draw it by hand; of errors the first. */
static struct err without_image(const struct files *f, bool same, struct err why)
{
	struct err e = same ? OK : io_remove(f->image);
	if (!e.code && !same)
		e = write_texts(f);
	return why.code ? why : e;
}

/* The image first: where script and table are as they should be, it is there and of them. */
static struct err write_files(const struct plot_job *job, const struct picture *p, const struct chart *c,
			      const struct files *f)
{
	bool same = holds(f->script, &f->script_text) && holds(f->table, &f->table_text);
	char *image;
	size_t size;
	if (!gnuplot_there())
		return without_image(f, same, OK);
	if (same && io_exists(f->image))
		return OK;
	struct err e = picture_draw(p, c, job->format, &image, &size);
	if (e.code == ERR_FAILED)
		return without_image(f, same, e);
	TRY(e);
	e = io_write(f->image, image, size);
	free(image);
	return e.code || same ? e : write_texts(f);
}

/* Of a picture that there is no more: what an earlier call has drawn would be taken for today's. */
static struct err remove_files(const struct plot_job *job, const struct picture *p)
{
	static const char *const suffix[] = { "svg", "png", "pdf", "tsv", "gp" };
	struct err e = OK;
	char *script = file_of(job->folder, p->name, "gp");
	for (size_t i = 0; io_exists(script) && i < sizeof suffix / sizeof *suffix && !e.code; i++) {
		char *path = file_of(job->folder, p->name, suffix[i]);
		e = io_remove(path);
		free(path);
	}
	free(script);
	return e;
}

static struct err plot_one(const struct plot_job *job, const struct picture *p, struct plotted *out)
{
	struct chart chart;
	struct err e = picture_make(p, job->results, &chart);
	if (!e.code && !arrlen(chart.panel)) {
		text_add(&out->absent, "%s: %s\n", p->name, chart.absent);
		e = remove_files(job, p);
	} else if (!e.code) {
		struct files f = files_of(job, p, &chart);
		e = write_files(job, p, &chart, &f);
		files_free(&f);
		text_add(&out->names, "%s%s", out->count++ ? ", " : "", p->name);
	}
	chart_free(&chart);
	return e;
}

struct err plot(const struct plot_job *job, struct plotted *out)
{
	*out = (struct plotted){ .images = gnuplot_there() };
	TRY(io_make_folder(job->folder));
	for (int i = 0; picture_at(i); i++)
		if (job->wanted[i])
			TRY(plot_one(job, picture_at(i), out));
	return OK;
}

void plotted_free(struct plotted *p)
{
	text_builder_free(&p->names);
	text_builder_free(&p->absent);
	*p = (struct plotted){ 0 };
}

static struct err draw_study(const char *folder, const char *pictures, const struct study *s, const struct grid *g,
			     struct plotted *out)
{
	struct results r;
	bool wanted[PICTURES];
	TRY(pictures_pick("", wanted));
	TRY(results_read(folder, s, g, &r));
	const struct plot_job job = { &r, pictures, wanted, PICTURE_SVG };
	struct err e = plot(&job, out);
	results_free(&r);
	return e;
}

void plot_study(const char *folder, const struct study *s, const struct grid *g)
{
	struct plotted done = { 0 };
	char *pictures = io_join(folder, "pictures");
	struct err e = draw_study(folder, pictures, s, g, &done);
	if (e.code)
		fprintf(stderr, "pictures: not drawn: %s\n", e.text);
	else
		fprintf(stderr, "pictures: %s: %s%s%s\n", pictures, done.count ? done.names.data : "none",
			done.images ? "" : "; as scripts and tables: ", done.images ? "" : GNUPLOT_MISSING);
	plotted_free(&done);
	free(pictures);
}
