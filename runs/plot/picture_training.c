#include "runs/plot/methods.h"
#include "runs/plot/plot.h"
#include "runs/run/run_folder.h"

#include "model/base/io.h"
#include "model/base/stb.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Loss of every run in training, the mean of each of some hundred stretches of steps that grow with the step. */

enum { STRETCHES = 120, NAMED = 7 };

struct sums {
	double loss[STRETCHES], step[STRETCHES];
	int count[STRETCHES];
};

static void add_line(const char *line, size_t size, int64_t steps, struct sums *to)
{
	json_t *o = json_loadb(line, size, 0, NULL);
	double step = json_number_value(json_object_get(o, "step"));
	double loss = json_number_value(json_object_get(o, "loss"));
	if (step >= 1 && step <= (double)steps && isfinite(loss)) {
		int at = (int)(log(step) / log((double)steps + 1) * STRETCHES);
		to->loss[at] += loss;
		to->step[at] += step;
		to->count[at]++;
	}
	json_decref(o);
}

/* A log that is being written may end within a line, and one that is not there has none. */
static struct err read_log(const char *folder, int64_t steps, struct sums *to)
{
	char *path = io_join(folder, RUN_LOG), *text = NULL;
	size_t size = 0;
	*to = (struct sums){ 0 };
	struct err e = io_exists(path) ? io_read(path, &text, &size) : OK;
	for (char *line = text, *end; size && (end = memchr(line, '\n', size - (size_t)(line - text))); line = end + 1)
		add_line(line, (size_t)(end - line), steps, to);
	free(text);
	free(path);
	return e;
}

static void add_curve(const struct sums *s, struct panel *p, struct series *to)
{
	for (int i = 0; i < STRETCHES; i++)
		if (s->count[i])
			series_add(p, to, s->step[i] / s->count[i], s->loss[i] / s->count[i]);
}

/* Where there are few models each has its style, else the seeds of one row share it. */
static struct series *new_series(const struct results *r, int cell, struct panel *p)
{
	const struct cell *c = &r->grid->cell[cell];
	bool named = r->grid->groups == 1 && arrlen(r->grid->cell) <= NAMED, first = results_first(r, c->group) == cell;
	const char *label = *c->label ? c->label : c->config.model.encoding.entry->name;
	if (c->tuned)
		label = methods_label(r, &(struct contender){ c->group, 0, false });
	if (named)
		label = chart_text("%s, seed %" PRId64, label, c->config.train.seed);
	struct series *s = panel_series(p, SERIES_LINE, named ? cell : c->group, label);
	s->unlisted = !named && !first;
	return s;
}

static struct err add_run(const struct results *r, int cell, struct panel *p)
{
	struct sums sums;
	if (r->cell[cell].status == CELL_ABSENT)
		return OK;
	TRY(read_log(r->cell[cell].folder, r->grid->cell[cell].config.train.steps, &sums));
	add_curve(&sums, p, new_series(r, cell, p));
	return OK;
}

static struct err make(const struct results *r, struct chart *out)
{
	struct panel *p = chart_panel(out, "", axis_new("step", 10), axis_new("loss (nats a token)", 10));
	struct err e = OK;
	for (int i = 0; i < arrlen(r->grid->cell) && !e.code; i++)
		e = add_run(r, i, p);
	p->key = true;
	bool any = false;
	for (int i = 0; i < arrlen(p->series); i++)
		any |= arrlen(p->series[i].point) > 0;
	if (!any)
		chart_free(out);
	out->columns = 1;
	out->title = methods_title(r, "loss in training");
	out->x = "step";
	out->y = "loss";
	out->absent = "no run has a train.jsonl";
	return e;
}

const struct picture picture_training = {
	.name = "training",
	.help = "loss of every run in training",
	.caption = "Loss against the step, both logarithmic, smoothed over neighbouring steps. Each run is a line, "
		   "and seeds of one method share a colour where there are many. A run that never comes down has not "
		   "learned the task, and what it does at longer lengths means nothing.",
	.make = make,
};
