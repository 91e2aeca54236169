#include "runs/plot/cuts.h"
#include "runs/plot/methods.h"
#include "runs/plot/plot.h"
#include "runs/show/table.h"

#include "model/base/stb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Loss by where in the longest sequence the scored token stands. */

/* One bin over the seeds. */
struct bin {
	int64_t position, positions;
	double *nll; /* stb_ds array, a seed each */
};

static void add_cut(struct bin **bins, const struct measure_row *c)
{
	for (int i = 0; i < arrlen(*bins); i++)
		if ((*bins)[i].position == c->position) {
			arrput((*bins)[i].nll, c->row.cell.nll);
			return;
		}
	struct bin bin = { .position = c->position, .positions = c->positions };
	arrput(bin.nll, c->row.cell.nll);
	arrput(*bins, bin);
}

static int by_position(const void *a, const void *b)
{
	const struct bin *x = a, *y = b;
	return (x->position > y->position) - (x->position < y->position);
}

/* As beneath the cells of a table: from INTERVAL_SEEDS on the t interval, below it least and greatest. */
static struct point bin_point(const struct bin *b)
{
	int seeds = (int)arrlen(b->nll);
	struct interval mean = mean_interval(b->nll, seeds, CONFIDENCE);
	struct point p = { .x = (double)b->position + (double)b->positions / 2, .y = mean.mean, .low = mean.low,
			   .high = mean.high };
	if (seeds >= INTERVAL_SEEDS)
		return p;
	p.low = p.high = p.y;
	for (int i = 0; i < seeds; i++) {
		p.low = fmin(p.low, b->nll[i]);
		p.high = fmax(p.high, b->nll[i]);
	}
	return p;
}

/* The longest length that the row has cuts of. */
static int64_t longest(const struct measure_row *cuts)
{
	int64_t length = 0;
	for (int i = 0; i < arrlen(cuts); i++)
		length = cuts[i].row.length > length ? cuts[i].row.length : length;
	return length;
}

static struct err read_seeds(const struct results *r, const struct contender *who, struct measure_row **cuts)
{
	for (int i = 0; i < arrlen(r->grid->cell); i++)
		if (r->grid->cell[i].group == who->cells)
			TRY(cuts_read(r, i, who->scaling, MEASURE_BY_POSITION, cuts));
	return OK;
}

static void add_series(const struct measure_row *cuts, const char *group, struct panel *p, struct series *s)
{
	struct bin *bins = NULL;
	int64_t length = longest(cuts);
	for (int i = 0; i < arrlen(cuts); i++)
		if (cuts[i].row.length == length && !strcmp(cuts[i].row.group, group))
			add_cut(&bins, &cuts[i]);
	if (bins)
		qsort(bins, arrlenu(bins), sizeof *bins, by_position);
	for (int i = 0; i < arrlen(bins); i++) {
		series_add_band(p, s, bin_point(&bins[i]), 1);
		arrfree(bins[i].nll);
	}
	arrfree(bins);
}

/* A row's cuts for each method, read once. */
static struct err read_all(const struct results *r, const struct methods *m, struct measure_row ***cuts)
{
	for (int i = 0; i < arrlen(m->method); i++) {
		struct measure_row *own = NULL;
		struct err e = read_seeds(r, &m->method[i], &own);
		arrput(*cuts, own);
		TRY(e);
	}
	return OK;
}

static void add_panel(const struct results *r, const struct methods *m, struct measure_row **cuts, const char *group, int panel,
		      struct chart *out)
{
	int first = panel * PANEL_METHODS, length = methods_train_length(r);
	struct panel *p = chart_panel(out, methods_panel_title(m, group, panel),
				      axis_new("position in the longest sequence (tokens)", 2),
				      axis_new("loss (nats a token)", 0));
	for (int i = first; i < first + PANEL_METHODS && i < arrlen(m->method); i++)
		if (arrlen(cuts[i]))
			add_series(cuts[i], group, p,
				   panel_series(p, SERIES_LINE, i - first, methods_label(r, &m->method[i])));
	if (length)
		panel_mark(p, (struct mark){ true, false, length, 0.96, chart_text("trained length: %d", length) });
}

static bool anything(struct measure_row **cuts)
{
	for (int i = 0; i < arrlen(cuts); i++)
		if (arrlen(cuts[i]))
			return true;
	return false;
}

static struct err make(const struct results *r, struct chart *out)
{
	struct methods m = methods_of(r);
	const char **group = table_groups(r);
	struct measure_row **cuts = NULL;
	struct err e = read_all(r, &m, &cuts);
	out->title = methods_title(r, "loss along the longest sequence");
	out->x = "position";
	out->y = "nll";
	out->absent = "its runs have no by_position-METHOD.csv: evaluate again to write them";
	for (int panel = 0; panel < methods_panels(&m) && !e.code && anything(cuts); panel++)
		for (int i = 0; i < arrlen(group); i++)
			add_panel(r, &m, cuts, group[i], panel, out);
	chart_key(out, (int)arrlen(group));
	for (int i = 0; i < arrlen(cuts); i++)
		arrfree(cuts[i]);
	arrfree(cuts);
	arrfree(group);
	methods_free(&m);
	return e;
}

const struct picture picture_by_position = {
	.name = "by_position",
	.help = "loss by position in the longest sequence",
	.caption = "Loss of the scored tokens by where in the longest sequence they stand; lower is better. A method "
		   "that only works within the trained length rises right behind the dashed line; one that is "
		   "disturbed by the length as a whole is high from the beginning on.",
	.make = make,
};
