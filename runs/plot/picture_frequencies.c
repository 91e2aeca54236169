#include "runs/plot/methods.h"
#include "runs/plot/plot.h"

#include "model/base/stb.h"
#include "model/inspect.h"

#include <math.h>
#include <string.h>

/* Wavelengths of rope's pairs before and after scaling, and the ramp between kept and interpolated. */

enum { WAVELENGTHS_HEIGHT = 300, RAMP_HEIGHT = 140 };

/* The longest length that the cell's model takes under this scaling; 0. */
static int longest(const struct cell *c, int scaling)
{
	int length = 0;
	for (int i = 0; i < c->lengths; i++)
		if (c->length[i] > length && cell_possible(c, scaling, c->length[i]))
			length = c->length[i];
	return length;
}

static const struct report_column *find(const struct report *r, const char *name, int *rows)
{
	for (int i = 0; i < arrlen(r->table); i++)
		for (int j = 0; j < arrlen(r->table[i].column); j++)
			if (r->table[i].column[j].name && !strcmp(r->table[i].column[j].name, name)) {
				*rows = r->table[i].rows;
				return &r->table[i].column[j];
			}
	return NULL;
}

static void add_column(const struct report *r, const char *name, enum series_kind kind, int style, const char *label,
		       struct panel *p)
{
	int rows;
	const struct report_column *c = find(r, name, &rows);
	if (!c)
		return;
	struct series *s = panel_series(p, kind, style, label);
	for (int i = 0; i < rows; i++)
		series_add(p, s, i, c->value[i]);
}

/* What the encoding and this scaling make of the pairs, in a zeroed report; false where they are none of rope's. */
static bool look(const struct cell *c, int scaling, struct report *out)
{
	int rows, length = longest(c, scaling);
	const struct inspect_request q = { .options = &c->config.model, .length = length,
					   .scaling = &c->scaling[scaling] };
	if (!length || inspect(&q, out).code)
		return false;
	const struct report_column *w = find(out, "trained_wavelengths", &rows);
	return w && find(out, "wavelengths", &rows) && rows > 1;
}

/* Is the line of what was trained among those of the scalings? */
static bool shows_trained(const struct cell *c, int first, int last)
{
	for (int i = first; i < last; i++)
		if (!strcmp(c->scaling_label[i], "none"))
			return true;
	return false;
}

static void add_scaling(const struct cell *c, int scaling, int style, bool trained, struct panel p[2])
{
	struct report r = { 0 };
	if (look(c, scaling, &r)) {
		if (trained && !arrlen(p[0].series))
			add_column(&r, "trained_wavelengths", SERIES_THIN, 1, "as trained", &p[0]);
		add_column(&r, "wavelengths", SERIES_LINE, style, c->scaling_label[scaling], &p[0]);
		add_column(&r, "kept", SERIES_LINE, style, c->scaling_label[scaling], &p[1]);
	}
	report_free(&r);
}

static const char *title_of(const struct cell *c, int first, int last, int count)
{
	const char *label = *c->label ? c->label : c->config.model.encoding.entry->name;
	return count <= PANEL_METHODS ? label : chart_text(
		"%s (scalings %d - %d of %d)", label, first + 1, last, count);
}

static struct axis pair_axis(void)
{
	struct axis x = axis_new("pair, from the fastest to the slowest", 0);
	x.whole = true;
	return x;
}

/* Some scalings of one model, in the styles that they have in the other pictures. */
static void add_panels(const struct cell *c, int first, int last, int count, struct chart *out)
{
	struct chart own = { 0 };
	chart_panel(&own, title_of(c, first, last, count), pair_axis(), axis_new("wavelength (tokens)", 10));
	chart_panel(&own, "ramp: 100 % keeps its frequency, 0 % is interpolated", pair_axis(), axis_new("kept", 0));
	struct panel *p = own.panel;
	p[1].y.percent = true;
	axis_hold(&p[1].y, 0);
	axis_hold(&p[1].y, 1);
	for (int i = first; i < last; i++)
		add_scaling(c, i, i - first, !shows_trained(c, first, last), p);
	panel_mark(p, (struct mark){ false, true, (double)c->config.model.train_length, 0.5,
				     "one turn within the trained length" });
	p[0].height = WAVELENGTHS_HEIGHT;
	p[1].height = RAMP_HEIGHT;
	p[0].key = true;
	/* Only what has something goes over; the rest is given back. */
	struct chart rest = { 0 };
	for (int i = 0; i < 2; i++)
		if (arrlen(p[i].series) && arrlen(p[0].series))
			arrput(out->panel, p[i]);
		else
			arrput(rest.panel, p[i]);
	arrfree(own.panel);
	chart_free(&rest);
}

static struct err make(const struct results *r, struct chart *out)
{
	out->title = methods_title(r, "wavelengths of the pairs at the longest length");
	out->x = "pair";
	out->y = "value";
	out->absent = "no model of it has rope's frequencies under a scaling";
	for (int cells = 0; cells < r->grid->groups; cells++) {
		const struct cell *c = &r->grid->cell[results_first(r, cells)];
		int count = c->scalings - c->references;
		if (count == 1 && !strcmp(c->scaling_label[0], "none"))
			continue;
		for (int first = 0; first < count; first += PANEL_METHODS)
			add_panels(c, first, first + PANEL_METHODS < count ? first + PANEL_METHODS : count, count, out);
	}
	return OK;
}

const struct picture picture_frequencies = {
	.name = "frequencies",
	.help = "wavelengths of rope's pairs before and after each scaling, and the ramp",
	.caption = "Each pair of a head turns with a wavelength of its own. Pairs below the dashed line went all the "
		   "way round in training and have met every angle; those above it meet new angles in a longer "
		   "sequence unless a scaling slows them down, which lifts their line. Lifting the fast pairs, too, "
		   "blurs which neighbour is which. Below: what share of its own frequency a pair keeps under the "
		   "scalings that have a ramp.",
	.make = make,
};
