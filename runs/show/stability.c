#include "runs/show/stability.h"

#include "eval/statistics.h"
#include "model/base/stb.h"
#include "runs/show/compare.h"
#include "runs/show/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The same method at another value of the axis; false if the study has none. */
static bool at_value(const struct results *r, const struct contender *who, const char *axis, const char *value,
		     struct grid_row *out)
{
	const struct cell *own = claim_cell(r->grid, who->cells);
	int cells = grid_group(r->grid, claim_at_value(own->label, axis, value));
	if (cells < 0)
		return false;
	const struct cell *c = claim_cell(r->grid, cells);
	for (int i = 0; i < c->scalings - c->references; i++)
		if (!strcmp(c->scaling_label[i], own->scaling_label[who->scaling])) {
			*out = (struct grid_row){ cells, i };
			return true;
		}
	return false;
}

static bool is_at(const struct results *r, const struct contender *who, const char *axis, const char *value)
{
	const char *rest, *own;
	return !who->reference && claim_without_axis(claim_cell(r->grid, who->cells)->label, axis, &rest, &own) &&
	       study_same_value(own, value);
}

static bool above_floor(const struct results *r, int cells)
{
	struct reached n = results_reached(r, cells);
	return n.reached < n.known;
}

struct tau stability_at(const struct results *r, const struct study_claim *c, const char *value, double multiple)
{
	const char *axis = claim_axis(c, r->study)->name, *initial = claim_default(c, r->study);
	struct contender *who = contenders(r);
	double *x = NULL, *y = NULL;
	bool above = false;
	for (int i = 0; i < arrlen(who); i++) {
		struct grid_row own = { who[i].cells, who[i].scaling }, other;
		if (!is_at(r, &who[i], axis, initial) || !at_value(r, &who[i], axis, value, &other))
			continue;
		double a = claim_value(r, &own, c, multiple, NULL, NULL);
		double b = claim_value(r, &other, c, multiple, NULL, NULL);
		if (isnan(a) || isnan(b))
			continue;
		arrput(x, a);
		arrput(y, b);
		above = above || above_floor(r, own.cells) || above_floor(r, other.cells);
	}
	int n = (int)arrlen(x);
	struct tau t = { .methods = n, .tau = kendall_tau(x, y, n), .above = above };
	arrfree(x);
	arrfree(y);
	arrfree(who);
	return t;
}

static void add_value(const struct results *r, const struct study_claim *c, const char *value, struct sheet *sheet)
{
	struct text_builder label = { 0 };
	text_add(&label, "%s=%s", claim_axis(c, r->study)->name, value);
	struct sheet_row *row = sheet_add(sheet, text_keep(label.data));
	text_builder_free(&label);
	for (int i = 0; i < arrlen(r->grid->multiple); i++) {
		struct tau t = stability_at(r, c, value, r->grid->multiple[i]);
		if (isnan(t.tau))
			snprintf(row->cell[i].line[0], SHEET_TEXT, "-");
		else
			snprintf(row->cell[i].line[0], SHEET_TEXT, "%s%.2f (%d)", t.above ? "!" : "", t.tau, t.methods);
		row->cell[i].heat = (1 - t.tau) / 2;
	}
}

void stability_sheet(const struct results *r, const struct study_claim *c, struct sheet *out)
{
	const struct study_line *axis = claim_axis(c, r->study);
	struct text_builder title = { 0 };
	text_add(&title, "stability%s%s: Kendall's tau-b of the methods' order against that at %s=%s, by %s of %s "
			 "(number of methods)\n", *c->name ? " " : "", c->name, axis->name, claim_default(c, r->study),
		 claim_measure_text(c->measure), claim_group(c, r->grid->cell));
	text_add(&title, "1: the same order, 0: none in common, -1: the reverse; `!`: some of the models are above the "
			 "floor at 1x; where all have learned the task, as at 1x, the order is one of small "
			 "differences");
	*out = (struct sheet){ .title = text_keep(title.data) };
	text_builder_free(&title);
	table_columns(r, out);
	for (int i = 0; i < arrlen(axis->value); i++)
		if (!study_same_value(axis->value[i], claim_default(c, r->study)))
			add_value(r, c, axis->value[i], out);
}

static void add_record(const struct results *r, const struct study_claim *c, const char *value, double multiple,
		       struct records *to)
{
	struct tau t = stability_at(r, c, value, multiple);
	records_begin(to);
	record_text(to, "name", *c->name ? c->name : NULL);
	record_text(to, "axis", claim_axis(c, r->study)->name);
	record_text(to, "default", claim_default(c, r->study));
	record_text(to, "value", value);
	record_text(to, "group", claim_group(c, r->grid->cell));
	record_text(to, "measure", claim_measure_name(c->measure));
	record_number(to, "multiple", multiple);
	record_integer(to, "methods", t.methods);
	record_number(to, "tau", t.tau);
	record_integer(to, "above_floor", t.above);
}

void stability_records(const struct results *r, struct records *out)
{
	for (int i = 0; i < arrlen(r->study->claim); i++) {
		const struct study_claim *c = &r->study->claim[i];
		if (c->kind != CLAIM_STABILITY)
			continue;
		const struct study_line *axis = claim_axis(c, r->study);
		for (int j = 0; j < arrlen(axis->value); j++)
			for (int k = 0; k < arrlen(r->grid->multiple); k++)
				if (!study_same_value(axis->value[j], claim_default(c, r->study)))
					add_record(r, c, axis->value[j], r->grid->multiple[k], out);
	}
}
