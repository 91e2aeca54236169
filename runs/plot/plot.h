#ifndef ROPEWALK_PLOT_H
#define ROPEWALK_PLOT_H

#include "runs/plot/chart_gnuplot.h"
#include "runs/plot/subject.h"

/* Pictures of a study or a run. A picture is a file that defines `picture_NAME`, and a row in the list of plot.c. */

struct picture {
	const char *name;
	const char *help;    /* one line, for --help */
	const char *caption; /* what is to be seen, for a report: sentences */
	/* Fills a chart without panels; where it stays so, `absent` says what is missing. chart_free it, also after an
	 * error. */
	struct err (*make)(const struct results *r, struct chart *out);
};

const struct picture *picture_at(int index); /* NULL past the last */
const char *picture_name_at(int index, const void *unused);

/* "a, b" to marks by index; "" stands for all. An unknown name is an error that suggests the nearest. */
#define PICTURES 32
struct err pictures_pick(const char *list, bool wanted[PICTURES]);

/* The chart of a picture, its axes finished. */
struct err picture_make(const struct picture *p, const struct results *r, struct chart *out);
/* Drawn by gnuplot, in fresh memory. */
struct err picture_draw(const struct picture *p, const struct chart *c, enum picture_format format, char **image,
			size_t *size);

/* Writes NAME.gp, NAME.tsv and, where there is gnuplot, NAME.svg (png, pdf) of each wanted picture into a folder, which
 * is made if need be. An image stays as it is where its script and table have not changed. */
struct plot_job {
	const struct results *results;
	const char *folder;
	const bool *wanted;
	enum picture_format format;
};
/* What came of it: texts of names, "perplexity, seeds". text_builder_free them, also after an error. */
struct plotted {
	struct text_builder names;  /* of pictures written */
	struct text_builder absent; /* "by_position: why", a line each that is left out */
	int count;
	bool images; /* there is gnuplot */
};
struct err plot(const struct plot_job *job, struct plotted *out);
void plotted_free(struct plotted *p);

/* At the end of a study: into DIR/pictures, with a line on stderr that says what came of it; a failure is no more than
 * another line. */
void plot_study(const char *folder, const struct study *s, const struct grid *g);

#endif
