#include "runs/plot/cuts.h"
#include "runs/plot/methods.h"
#include "runs/plot/plot.h"

#include "model/base/stb.h"

#include <math.h>

/* Accuracy by length of the sequence and distance of the evidence, a map for each method. */

enum { GRID_METHODS = 24, GRID_HEIGHT = 190 };

/* Sums of a length's bin over the seeds. Bins are half octaves: bin k begins at 2^(k/2). */
struct patch {
	int64_t length;
	double multiple, scored, correct;
	int bin;
};

static int bin_of(int64_t distance)
{
	return (int)floor(2 * log2((double)distance) + 1e-9);
}

static void add_cut(struct patch **tiles, const struct measure_row *c)
{
	struct patch *to = NULL;
	int bin = bin_of(c->distance);
	for (int i = 0; i < arrlen(*tiles) && !to; i++)
		if ((*tiles)[i].length == c->row.length && (*tiles)[i].bin == bin)
			to = &(*tiles)[i];
	if (!to) {
		arrput(*tiles, ((struct patch){ .length = c->row.length, .multiple = c->row.multiple, .bin = bin }));
		to = &arrlast(*tiles);
	}
	to->scored += (double)c->row.cell.scored;
	to->correct += c->row.cell.accuracy * (double)c->row.cell.scored;
}

static struct err read_tiles(const struct results *r, const struct contender *who, struct patch **tiles)
{
	for (int i = 0; i < arrlen(r->grid->cell); i++) {
		struct measure_row *cuts = NULL;
		if (r->grid->cell[i].group != who->cells)
			continue;
		struct err e = cuts_read(r, i, who->scaling, MEASURE_RECALL_GRID, &cuts);
		for (int j = 0; j < arrlen(cuts); j++)
			add_cut(tiles, &cuts[j]);
		arrfree(cuts);
		TRY(e);
	}
	return OK;
}

/* Half of the way to its neighbours on either side, on the logarithmic axis. */
static void set_sides(const struct results *r, double multiple, struct point *p)
{
	const double *all = r->grid->multiple;
	int count = (int)arrlen(all), at = 0;
	while (at < count - 1 && all[at] < multiple)
		at++;
	double below = at > 0 ? all[at] / all[at - 1] : 0, above = at + 1 < count ? all[at + 1] / all[at] : 0;
	below = below ? below : above ? above : 2;
	above = above ? above : below;
	p->left = multiple / sqrt(below);
	p->right = multiple * sqrt(above);
}

static void add_tiles(const struct results *r, const struct patch *tiles, struct panel *p, struct series *s)
{
	for (int i = 0; i < arrlen(tiles); i++) {
		const struct patch *t = &tiles[i];
		struct point point = { .x = t->multiple, .y = pow(2, (t->bin + 0.5) / 2), .low = pow(2, t->bin / 2.0),
				       .high = pow(2, (t->bin + 1) / 2.0), .value = t->correct / t->scored };
		set_sides(r, t->multiple, &point);
		axis_hold(&p->x, point.left);
		axis_hold(&p->x, point.right);
		axis_hold(&p->y, point.low);
		axis_hold(&p->y, point.high);
		arrput(s->point, point);
	}
}

static void add_panel(const struct results *r, const struct contender *who, const struct patch *tiles,
		      struct chart *out)
{
	int length = methods_train_length(r);
	struct axis x = axis_new("length", 2);
	for (int i = 0; i < arrlen(r->grid->multiple); i++)
		axis_tick(&x, r->grid->multiple[i], "%gx", r->grid->multiple[i]);
	struct panel *p = chart_panel(out, methods_label(r, who), x, axis_new("distance (tokens)", 2));
	p->height = GRID_HEIGHT;
	add_tiles(r, tiles, p, panel_series(p, SERIES_CELLS, 0, p->title));
	if (length)
		panel_mark(p, (struct mark){ false, false, length, 0.02, "trained" });
}

static void widen(struct axis *a, const struct axis *by)
{
	axis_hold(a, by->least);
	axis_hold(a, by->greatest);
}

/* Maps of the same sides, so that they can be compared. */
static void share_axes(struct chart *c)
{
	struct axis x = axis_new("", 2), y = axis_new("", 2);
	for (int i = 0; i < arrlen(c->panel); i++) {
		widen(&x, &c->panel[i].x);
		widen(&y, &c->panel[i].y);
	}
	for (int i = 0; i < arrlen(c->panel); i++) {
		widen(&c->panel[i].x, &x);
		widen(&c->panel[i].y, &y);
	}
}

/* Is all evidence equally far away, so that there is nothing to map? */
static bool one_distance(const struct chart *c)
{
	double low = NAN;
	for (int i = 0; i < arrlen(c->panel); i++)
		for (int j = 0; j < arrlen(c->panel[i].series[0].point); j++) {
			double at = c->panel[i].series[0].point[j].low;
			if (low != at && !isnan(low))
				return false;
			low = at;
		}
	return true;
}

static struct err make(const struct results *r, struct chart *out)
{
	struct methods m = methods_of(r);
	struct err e = OK;
	out->title = methods_title(r, "what is found, by length and distance");
	out->x = "multiple";
	out->y = "distance";
	out->value = "accuracy (of the first group of tokens)";
	out->columns = 2;
	out->absent = "its runs have no recall_grid-METHOD.csv: evaluate again to write them";
	for (int i = 0; i < arrlen(m.method) && i < GRID_METHODS && !e.code; i++) {
		struct patch *tiles = NULL;
		e = read_tiles(r, &m.method[i], &tiles);
		if (!e.code && arrlen(tiles))
			add_panel(r, &m.method[i], tiles, out);
		arrfree(tiles);
	}
	if (arrlen(out->panel) && one_distance(out)) {
		chart_free(out);
		out->absent = "the evidence of all tokens is equally far away";
	}
	share_axes(out);
	methods_free(&m);
	return e;
}

const struct picture picture_recall_grid = {
	.name = "recall_grid",
	.help = "accuracy by length and distance of the evidence, a map for each of the first 24 methods",
	.caption = "Each map is a method: to the right the sequence grows, upwards the evidence lies further back; "
		   "yellow is right, dark blue is wrong, and where nothing is drawn no evidence lies. Dark above the "
		   "dashed line, the trained length, alone: far evidence is out of reach. Dark in whole columns: the "
		   "length itself disturbs, however near the evidence is.",
	.make = make,
};
