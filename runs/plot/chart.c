#include "runs/plot/chart.h"

#include "model/base/stb.h"
#include "runs/options.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *chart_text(const char *format, ...)
{
	va_list list, again;
	va_start(list, format);
	va_copy(again, list);
	int size = vsnprintf(NULL, 0, format, list) + 1;
	va_end(list);
	char *text = stb_reallocate(NULL, (size_t)size);
	vsnprintf(text, (size_t)size, format, again);
	va_end(again);
	const char *kept = text_keep(text);
	free(text);
	return kept;
}

struct axis axis_new(const char *label, double base)
{
	return (struct axis){ .label = label, .base = base, .least = INFINITY, .greatest = -INFINITY };
}

void axis_hold(struct axis *a, double value)
{
	if (!isfinite(value) || (a->base && !(value > 0)))
		return;
	a->least = fmin(a->least, value);
	a->greatest = fmax(a->greatest, value);
}

void axis_tick(struct axis *a, double at, const char *format, ...)
{
	char text[64];
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	arrput(a->tick, ((struct tick){ at, text_keep(text) }));
}

double axis_share(const struct axis *a, double value)
{
	return a->base ? log(value / a->least) / log(a->greatest / a->least)
		       : (value - a->least) / (a->greatest - a->least);
}

bool axis_reaches(const struct axis *a, double value)
{
	double share = axis_share(a, value);
	return share >= 0 && share <= 1;
}

const char *series_words(const struct series *s)
{
	return s->empty ? chart_text("%s: nothing to show", s->label) : s->label;
}

enum { TICKS = 9 };

static void number_tick(struct axis *a, double at)
{
	at = fabs(at) < 1e-12 * (a->greatest - a->least) ? 0 : at;
	bool whole = fabs(at) >= 1e4 && fabs(at) < 1e6;
	if ((a->percent && (at < -1e-9 || at > 1 + 1e-9)) || (a->whole && fabs(at - nearbyint(at)) > 1e-9))
		return;
	axis_tick(a, at, a->percent ? "%.3g %%" : whole ? "%.0f" : "%.4g", a->percent ? 100 * at : at);
}

/* Whole multiples of 1, 2 or 5 times a power of ten. */
static void linear_ticks(struct axis *a)
{
	static const double nice[] = { 1, 2, 5, 10 };
	double rough = (a->greatest - a->least) / (TICKS - 2), ten = pow(10, floor(log10(rough))), step = ten;
	for (int i = 0; i < 4 && step < rough * (1 - 1e-9); i++)
		step = nice[i] * ten;
	for (double k = ceil(a->least / step - 1e-9); k * step <= a->greatest * (1 + 1e-9) + 1e-12; k++)
		number_tick(a, k * step);
}

/* Powers of the base, each, every second, ... */
static void power_ticks(struct axis *a)
{
	int first = (int)ceil(log(a->least) / log(a->base) - 1e-9);
	int last = (int)floor(log(a->greatest) / log(a->base) + 1e-9);
	int step = 1 + (last - first) / TICKS;
	for (int k = first; k <= last; k += step)
		number_tick(a, pow(a->base, k));
}

/* 1, 2 and 5 times powers of ten. */
static void decade_ticks(struct axis *a)
{
	static const double digit[] = { 1, 2, 5 };
	for (int k = (int)floor(log10(a->least)); pow(10, k) <= a->greatest; k++)
		for (int i = 0; i < 3; i++) {
			double at = digit[i] * pow(10, k);
			if (at >= a->least * (1 - 1e-9) && at <= a->greatest * (1 + 1e-9))
				number_tick(a, at);
		}
}

static void choose_ticks(struct axis *a)
{
	double ratio = a->base ? a->greatest / a->least : 0;
	if (!a->base || ratio < 5)
		linear_ticks(a);
	else if (a->base == 10 && ratio < 1e3)
		decade_ticks(a);
	else
		power_ticks(a);
}

void axis_finish(struct axis *a)
{
	if (a->least > a->greatest) {
		a->least = 1;
		a->greatest = 2;
	}
	if (a->base) {
		double room = fmax(0.04 * log(a->greatest / a->least), 0.05);
		a->least *= exp(-room);
		a->greatest *= exp(room);
	} else {
		double room = 0.04 * (a->greatest - a->least);
		room = room > 0 ? room : 0.05 * fmax(fabs(a->least), 1);
		a->least -= room;
		a->greatest += room;
	}
	if (!a->tick)
		choose_ticks(a);
}

enum { PANEL_HEIGHT = 300 };

struct panel *chart_panel(struct chart *c, const char *title, struct axis x, struct axis y)
{
	arrput(c->panel, ((struct panel){ .title = title, .x = x, .y = y, .height = PANEL_HEIGHT }));
	return &arrlast(c->panel);
}

struct series *panel_series(struct panel *p, enum series_kind kind, int style, const char *label)
{
	arrput(p->series, ((struct series){ .label = label, .kind = kind, .style = style }));
	return &arrlast(p->series);
}

void panel_mark(struct panel *p, struct mark mark)
{
	arrput(p->mark, mark);
}

void series_add(struct panel *p, struct series *s, double x, double y)
{
	axis_hold(&p->x, x);
	axis_hold(&p->y, y);
	arrput(s->point, ((struct point){ .x = x, .y = y, .low = y, .high = y, .value = NAN }));
}

void series_add_band(struct panel *p, struct series *s, struct point point, double most)
{
	bool log = p->y.base > 0;
	series_add(p, s, point.x, point.y);
	axis_hold(&p->y, fmax(point.low, log ? point.y / most : point.y - most));
	axis_hold(&p->y, fmin(point.high, log ? point.y * most : point.y + most));
	arrlast(s->point) = point;
}

static bool named(const struct panel *p, const struct series *s)
{
	for (int i = 0; i < arrlen(p->series); i++)
		if (!strcmp(p->series[i].label, s->label) && p->series[i].kind == s->kind &&
		    p->series[i].style == s->style)
			return true;
	return false;
}

/* Is there anything of the series, in these panels or others of them under its name? */
static bool drawn(const struct panel *p, int panels, const struct series *s)
{
	for (int i = 0; i < panels; i++)
		for (int j = 0; j < arrlen(p[i].series); j++)
			if (arrlen(p[i].series[j].point) && !strcmp(p[i].series[j].label, s->label))
				return true;
	return false;
}

static void key_absent(const struct panel *first, int panels, struct series *s)
{
	if (drawn(first, panels, s))
		return;
	s->empty = true;
	s->unlisted |= s->kind == SERIES_THIN;
}

void chart_key(struct chart *c, int block)
{
	for (int i = 0; i < arrlen(c->panel); i++) {
		struct panel *p = &c->panel[i];
		p->key = true;
		for (int j = i - i % block; j < i; j++)
			for (int k = 0; k < arrlen(p->series); k++)
				p->series[k].unlisted |= named(&c->panel[j], &p->series[k]);
		int first = i - i % block, panels = (int)arrlen(c->panel) - first;
		for (int k = 0; k < arrlen(p->series); k++)
			key_absent(&c->panel[first], panels < block ? panels : block, &p->series[k]);
	}
}

void chart_free(struct chart *c)
{
	for (int i = 0; i < arrlen(c->panel); i++) {
		struct panel *p = &c->panel[i];
		for (int j = 0; j < arrlen(p->series); j++)
			arrfree(p->series[j].point);
		arrfree(p->series);
		arrfree(p->mark);
		arrfree(p->note);
		arrfree(p->x.tick);
		arrfree(p->y.tick);
	}
	arrfree(c->panel);
	*c = (struct chart){ 0 };
}
