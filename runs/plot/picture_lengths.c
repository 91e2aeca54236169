#include "runs/plot/methods.h"
#include "runs/plot/plot.h"
#include "runs/show/table.h"

#include "model/base/stb.h"

#include <math.h>
#include <string.h>

/* Perplexity, and accuracy, against the length: what the tables show. */

enum { REFERENCES_SHOWN = 2, BAND_FACTOR = 4 };

/* Least and greatest accuracy over the seeds. */
static void accuracy_range(const struct results *r, const struct contender *who, double multiple, const char *group,
			   struct point *p)
{
	for (int i = 0; i < arrlen(r->grid->cell); i++) {
		const struct row *row = r->grid->cell[i].group == who->cells
						? results_find(r, i, who->scaling, multiple, group)
						: NULL;
		if (!row || !row->cell.scored)
			continue;
		p->low = fmin(p->low, row->cell.accuracy);
		p->high = fmax(p->high, row->cell.accuracy);
	}
}

static double logistic_of(double x)
{
	return 1 / (1 + exp(-x));
}

static struct point accuracy_point(const struct results *r, const struct contender *who, double multiple,
				   const char *group, const struct summary *s)
{
	struct point p = { .x = multiple, .y = s->accuracy, .low = s->accuracy, .high = s->accuracy };
	if (s->done < INTERVAL_SEEDS) {
		accuracy_range(r, who, multiple, group, &p);
	} else {
		p.low = logistic_of(s->logit.low);
		p.high = logistic_of(s->logit.high);
	}
	return p;
}

static struct point perplexity_point(double multiple, const struct summary *s)
{
	struct point p = { .x = multiple, .y = s->perplexity, .low = s->least, .high = s->greatest };
	if (s->done >= INTERVAL_SEEDS) {
		p.low = s->floor > 0 ? fmax(exp(s->nll.low), s->floor) : exp(s->nll.low);
		p.high = exp(s->nll.high);
	}
	return p;
}

static void add_method(const struct results *r, const struct contender *who, const char *group, bool accuracy,
		       struct panel *p, struct series *s)
{
	for (int i = 0; i < arrlen(r->grid->multiple); i++) {
		double multiple = r->grid->multiple[i];
		struct summary sum = results_summary(r, who->cells, who->scaling, multiple, group);
		if (sum.state != SUMMARY_FOUND)
			continue;
		if (accuracy)
			series_add_band(p, s, accuracy_point(r, who, multiple, group, &sum), 1);
		else
			series_add_band(p, s, perplexity_point(multiple, &sum), BAND_FACTOR);
	}
}

/* The best possible perplexity, where it is known: of the first method that has any. */
static void add_floor(const struct results *r, const struct methods *m, const char *group, struct panel *p)
{
	struct series *s = panel_series(p, SERIES_THIN, 0, "floor: the best possible");
	for (int i = 0; i < arrlen(r->grid->multiple); i++)
		for (int j = 0; j < arrlen(m->method); j++) {
			struct summary sum = results_summary(r, m->method[j].cells, m->method[j].scaling,
							     r->grid->multiple[i], group);
			if (sum.state != SUMMARY_FOUND || !(sum.floor > 0))
				continue;
			series_add(p, s, r->grid->multiple[i], sum.floor);
			break;
		}
}

static struct series *find_series(struct panel *p, const char *label)
{
	for (int i = 0; i < arrlen(p->series); i++)
		if (!strcmp(p->series[i].label, label))
			return &p->series[i];
	return NULL;
}

static struct err add_baselines(const struct results *r, const char *group, bool accuracy, struct panel *p)
{
	struct baseline *found;
	int style = REFERENCES_SHOWN;
	TRY(table_baselines(r, 0, group, &found));
	for (int i = 0; i < arrlen(found); i++) {
		const struct eval_reference *reference = &found[i].reference;
		const char *label = chart_text("reference: %s", reference->name);
		struct series *s = find_series(p, label);
		s = s ? s : panel_series(p, SERIES_THIN, style++, label);
		series_add(p, s, found[i].multiple, accuracy ? reference->accuracy : reference->perplexity);
	}
	arrfree(found);
	return OK;
}

static void add_window(const struct results *r, const struct methods *m, const char *group, bool accuracy,
		       struct panel *p)
{
	for (int i = 0; i < arrlen(m->reference) && arrlen(m->reference) <= REFERENCES_SHOWN; i++) {
		const struct contender *who = &m->reference[i];
		struct series *s = panel_series(p, SERIES_THIN, 1 + i, methods_label(r, who));
		add_method(r, who, group, accuracy, p, s);
	}
}

static struct axis length_axis(const struct results *r)
{
	struct axis x = axis_new("length, as a multiple of the trained length", 2);
	for (int i = 0; i < arrlen(r->grid->multiple); i++)
		axis_tick(&x, r->grid->multiple[i], "%gx", r->grid->multiple[i]);
	return x;
}

/* Its words stand where lines seldom are. */
static void add_mark(const struct results *r, bool accuracy, struct panel *p)
{
	int length = methods_train_length(r);
	axis_hold(&p->x, 1);
	panel_mark(p, (struct mark){ true, false, 1, accuracy ? 0.12 : 0.96,
				     length ? chart_text("trained length: %d tokens", length) : "trained length" });
}

static struct err add_panel(const struct results *r, const struct methods *m, const char *group, int panel,
			    bool accuracy, struct chart *out)
{
	struct axis y = accuracy ? axis_new("accuracy", 0) : axis_new("perplexity", 10);
	y.percent = accuracy;
	struct panel *p = chart_panel(out, methods_panel_title(m, group, panel), length_axis(r), y);
	if (accuracy) {
		axis_hold(&p->y, 0);
		axis_hold(&p->y, 1);
	}
	int first = panel * PANEL_METHODS;
	for (int i = first; i < first + PANEL_METHODS && i < arrlen(m->method); i++) {
		struct series *s = panel_series(p, SERIES_LINE, i - first, methods_label(r, &m->method[i]));
		add_method(r, &m->method[i], group, accuracy, p, s);
	}
	add_window(r, m, group, accuracy, p);
	if (!accuracy)
		add_floor(r, m, group, p);
	add_mark(r, accuracy, p);
	return add_baselines(r, group, accuracy, p);
}

static bool anything(const struct results *r)
{
	for (int i = 0; i < arrlen(r->cell); i++)
		for (int j = 0; r->cell[i].row && j < r->grid->cell[i].scalings; j++)
			if (arrlen(r->cell[i].row[j]))
				return true;
	return false;
}

static struct err make(const struct results *r, bool accuracy, struct chart *out)
{
	struct methods m = methods_of(r);
	const char **group = table_groups(r);
	struct err e = OK;
	out->title = methods_title(r, accuracy ? "accuracy past the trained length" :
		"perplexity past the trained length");
	out->x = "multiple";
	out->y = accuracy ? "accuracy" : "perplexity";
	out->absent = "nothing is evaluated yet";
	for (int panel = 0; panel < methods_panels(&m) && anything(r); panel++)
		for (int i = 0; i < arrlen(group) && !e.code; i++)
			e = add_panel(r, &m, group[i], panel, accuracy, out);
	chart_key(out, (int)arrlen(group));
	arrfree(group);
	methods_free(&m);
	return e;
}

static struct err make_perplexity(const struct results *r, struct chart *out)
{
	return make(r, false, out);
}

static struct err make_accuracy(const struct results *r, struct chart *out)
{
	return make(r, true, out);
}

const struct picture picture_perplexity = {
	.name = "perplexity",
	.help = "perplexity against length, with bands over seeds, floor and references",
	.caption = "Perplexity at each length; lower is better, and both axes are logarithmic. A line that stays at "
		   "the floor does not notice that the sequence is longer than those of training; one that climbs "
		   "has failed from there on. Bands are the 95 % t intervals over seeds, or with fewer than five "
		   "seeds the least and greatest. Thin grey lines are references: what does not fall below the "
		   "window gains nothing from the longer sequence.",
	.make = make_perplexity,
};

const struct picture picture_accuracy = {
	.name = "accuracy",
	.help = "accuracy against length, likewise",
	.caption = "The share of answers that are right; higher is better. A confident model can have a terrible "
		   "perplexity and still be right half of the time, so read this beside the perplexity. Bands and thin "
		   "grey lines are as above.",
	.make = make_accuracy,
};
