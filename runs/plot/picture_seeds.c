#include "runs/plot/methods.h"
#include "runs/plot/plot.h"
#include "runs/show/table.h"

#include "model/base/stb.h"

#include <math.h>

/* Every seed of every row as a point, at a few lengths. */

enum { STRIP_HEIGHT = 46, LENGTHS = 3 };

/* Of the multiples beyond 1x the least, the middle and the greatest. */
static double *choose_multiples(const struct results *r)
{
	double *beyond = NULL, *chosen = NULL;
	for (int i = 0; i < arrlen(r->grid->multiple); i++)
		if (r->grid->multiple[i] > 1 || arrlen(r->grid->multiple) == 1)
			arrput(beyond, r->grid->multiple[i]);
	int count = (int)arrlen(beyond);
	for (int i = 0; i < LENGTHS && i < count; i++)
		arrput(chosen, beyond[count <= LENGTHS ? i : i * (count - 1) / (LENGTHS - 1)]);
	arrfree(beyond);
	return chosen;
}

/* Points of one place lie above each other by turns, so that many seeds can be told apart. */
static double strip(int row, int length, int seed)
{
	return -row - 0.2 - 0.2 * length + 0.05 * (seed % 3 - 1);
}

static void add_points(const struct results *r, const struct methods *m, const char *group, double multiple, int length,
		       bool accuracy, struct panel *p)
{
	struct series *s = panel_series(p, SERIES_POINTS, length, chart_text("%gx", multiple));
	for (int row = 0; row < arrlen(m->method); row++) {
		const struct contender *who = &m->method[row];
		int seed = 0;
		for (int i = 0; i < arrlen(r->grid->cell); i++) {
			const struct row *found = r->grid->cell[i].group == who->cells
							  ? results_find(r, i, who->scaling, multiple, group)
							  : NULL;
			if (found && found->cell.scored)
				series_add(p, s, accuracy ? found->cell.accuracy : found->cell.perplexity,
					   strip(row, length, seed++));
		}
	}
}

static void add_panel(const struct results *r, const struct methods *m, const char *group, bool accuracy,
		      struct chart *out)
{
	struct axis x = accuracy ? axis_new("accuracy", 0) : axis_new("perplexity", 10);
	double *multiple = choose_multiples(r);
	x.percent = accuracy;
	struct panel *p = chart_panel(out, chart_text("%s: %s of each seed", group, x.label), x, axis_new("", 0));
	for (int row = 0; row < arrlen(m->method); row++) {
		axis_tick(&p->y, -row - 0.8, "%s", "");
		arrput(p->note, ((struct tick){ -row + 0.05, methods_label(r, &m->method[row]) }));
	}
	axis_hold(&p->y, 0.25);
	axis_hold(&p->y, -(double)arrlen(m->method) + 0.2);
	for (int i = 0; i < arrlen(multiple); i++)
		add_points(r, m, group, multiple[i], i, accuracy, p);
	p->height = STRIP_HEIGHT * (int)arrlen(m->method) + STRIP_HEIGHT / 2;
	arrfree(multiple);
}

static bool anything(const struct chart *c)
{
	for (int i = 0; i < arrlen(c->panel); i++)
		for (int j = 0; j < arrlen(c->panel[i].series); j++)
			if (arrlen(c->panel[i].series[j].point))
				return true;
	return false;
}

static struct err make(const struct results *r, struct chart *out)
{
	struct methods m = methods_of(r);
	const char **group = table_groups(r);
	for (int accuracy = 0; accuracy < 2; accuracy++)
		add_panel(r, &m, group[0], accuracy, out);
	bool there = anything(out);
	chart_key(out, 2);
	if (!there)
		chart_free(out);
	out->columns = 1;
	out->title = methods_title(r, "every seed");
	out->x = "value";
	out->y = "strip";
	out->absent = "nothing is evaluated yet";
	arrfree(group);
	methods_free(&m);
	return OK;
}

const struct picture picture_seeds = {
	.name = "seeds",
	.help = "every seed of every method as a point, at a few lengths",
	.caption = "A point is one trained model, a strip a method; shapes and colours are lengths. Points that lie "
		   "together are a method to be relied on; points that are strewn say that the mean of the table hides "
		   "luck. A strip without points: no model of it is there, or can take such lengths.",
	.make = make,
};
