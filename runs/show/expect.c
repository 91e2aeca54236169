#include "runs/show/expect.h"

#include "model/base/stb.h"
#include "runs/show/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct grid_row claim_row_of(const struct results *r, const char *text)
{
	struct grid_row row = { 0 };
	struct err e = claim_row(r->grid, text, &row);
	BUG_IF(e.code, "a claim's row is gone: %s", e.text);
	return row;
}

static const char *group_of(const struct results *r, const struct grid_row *row, const struct study_claim *c)
{
	return claim_group(c, claim_cell(r->grid, row->cells));
}

/* By how much it has risen since 1x; NaN unless the same seeds are there. */
static double slope(const struct results *r, const struct grid_row *row, const char *group, const struct summary *s)
{
	struct summary first = results_summary(r, row->cells, row->scaling, 1, group);
	return first.done == s->done ? exp(s->nll.mean - first.nll.mean) : NAN;
}

double claim_value(const struct results *r, const struct grid_row *row, const struct study_claim *c, double multiple,
		   int *done, int *seeds)
{
	const char *group = group_of(r, row, c);
	struct summary s = results_summary(r, row->cells, row->scaling, multiple, group);
	if (done)
		*done = s.done;
	if (seeds)
		*seeds = s.seeds;
	if (s.state != SUMMARY_FOUND)
		return NAN;
	switch (c->measure) {
	case CLAIM_ACCURACY:
		return 100 * s.accuracy;
	case CLAIM_PERPLEXITY:
		return s.perplexity;
	case CLAIM_NLL:
		return s.nll.mean;
	case CLAIM_BITS:
		return s.nll.mean / M_LN2;
	case CLAIM_SLOPE:
		return slope(r, row, group, &s);
	}
	BUG("claims have no measure %d", (int)c->measure);
}

const char *claim_number(enum claim_measure measure, double value, char text[SHORT_TEXT])
{
	if (isnan(value))
		snprintf(text, SHORT_TEXT, "-");
	else if (measure == CLAIM_ACCURACY)
		accuracy_text(value / 100, text);
	else if (measure == CLAIM_NLL || measure == CLAIM_BITS)
		snprintf(text, SHORT_TEXT, "%.3f", value);
	else
		perplexity_text(value, text);
	return text;
}

/* --- Bands. ------------------------------------------------------------------------------------------------------- */

static const char *const band_word[] = {
	[BAND_INSIDE] = "inside",
	[BAND_OUTSIDE] = "outside",
	[BAND_UNKNOWN] = "not measured",
};

enum band expect_band(const struct study_claim *c, double value)
{
	if (isnan(value))
		return BAND_UNKNOWN;
	return value >= c->least && value <= c->most ? BAND_INSIDE : BAND_OUTSIDE;
}

static void band_text(const struct study_claim *c, char text[SHEET_TEXT])
{
	char least[NUMBER_TEXT], most[NUMBER_TEXT];
	number_to_text(c->least, least);
	number_to_text(c->most, most);
	if (isinf(c->most))
		snprintf(text, SHEET_TEXT, "at least %s", least);
	else if (isinf(c->least))
		snprintf(text, SHEET_TEXT, "at most %s", most);
	else
		snprintf(text, SHEET_TEXT, "%.28s - %.28s", least, most);
}

/* "rope, yarn: recall at 8x, accuracy in % (source)" */
static const char *band_label(const struct results *r, const struct grid_row *row, const struct study_claim *c)
{
	struct text_builder b = { 0 };
	char number[NUMBER_TEXT];
	text_add(&b, "%s: %s: %s at %sx, %s", c->name, table_label(r, row->cells, row->scaling), group_of(r, row, c),
		 number_to_text(c->multiple, number), claim_measure_text(c->measure));
	if (c->source)
		text_add(&b, " (%s)", c->source);
	const char *kept = text_keep(b.data);
	text_builder_free(&b);
	return kept;
}

static void add_band(const struct results *r, const struct study_claim *c, struct sheet *sheet)
{
	char number[SHORT_TEXT];
	int done, seeds;
	struct grid_row which = claim_row_of(r, c->row[0]);
	double value = claim_value(r, &which, c, c->multiple, &done, &seeds);
	enum band band = expect_band(c, value);
	struct sheet_row *row = sheet_add(sheet, band_label(r, &which, c));
	band_text(c, row->cell[0].line[0]);
	snprintf(row->cell[1].line[0], SHEET_TEXT, "%s", claim_number(c->measure, value, number));
	if (done && done < seeds)
		snprintf(row->cell[1].line[1], SHEET_TEXT, "%d of %d seeds", done, seeds);
	snprintf(row->cell[2].line[0], SHEET_TEXT, "%s", band_word[band]);
	row->cell[2].heat = band == BAND_UNKNOWN ? NAN : band == BAND_OUTSIDE ? 1 : 0;
}

bool expect_sheet(const struct results *r, struct sheet *out)
{
	static const char *const head[] = { "expected", "measured", "result" };
	*out = (struct sheet){ .title = "expected: bands that the study's file gives, and the numbers measured" };
	for (int i = 0; i < 3; i++)
		arrput(out->column, head[i]);
	for (int i = 0; i < arrlen(r->study->claim); i++)
		if (r->study->claim[i].kind == CLAIM_EXPECT)
			add_band(r, &r->study->claim[i], out);
	if (arrlen(out->row))
		return true;
	sheet_free(out);
	return false;
}

/* Infinity stands for an end that was not given. */
static double given_end(double end)
{
	return isinf(end) ? NAN : end;
}

static void add_band_record(const struct results *r, const struct study_claim *c, struct records *to)
{
	int done, seeds;
	struct grid_row which = claim_row_of(r, c->row[0]);
	double value = claim_value(r, &which, c, c->multiple, &done, &seeds);
	records_begin(to);
	record_text(to, "name", c->name);
	record_text(to, "row", claim_row_label(r->grid, &which));
	record_text(to, "group", group_of(r, &which, c));
	record_number(to, "multiple", c->multiple);
	record_text(to, "measure", claim_measure_name(c->measure));
	record_number(to, "least", given_end(c->least));
	record_number(to, "most", given_end(c->most));
	record_text(to, "source", c->source);
	record_number(to, "value", value);
	record_integer(to, "seeds", seeds);
	record_integer(to, "seeds_done", done);
	record_text(to, "result", band_word[expect_band(c, value)]);
}

void expect_records(const struct results *r, struct records *out)
{
	for (int i = 0; i < arrlen(r->study->claim); i++)
		if (r->study->claim[i].kind == CLAIM_EXPECT)
			add_band_record(r, &r->study->claim[i], out);
}

/* --- Published numbers. ------------------------------------------------------------------------------------------- */

/* What the columns are of ours. */
static void add_multiples(const struct study_claim *c, struct sheet *sheet)
{
	struct sheet_row *row = sheet_add(sheet, "here: times the trained length");
	char number[NUMBER_TEXT];
	for (int i = 0; i < arrlen(c->multiples); i++)
		snprintf(row->cell[i].line[0], SHEET_TEXT, "%sx", number_to_text(c->multiples[i], number));
}

static void add_ours(const struct results *r, const struct study_claim *c, const char *ours, struct sheet *sheet)
{
	struct grid_row which = claim_row_of(r, ours);
	struct text_builder label = { 0 };
	char number[SHORT_TEXT];
	text_add(&label, "here: %s", table_label(r, which.cells, which.scaling));
	struct sheet_row *row = sheet_add(sheet, text_keep(label.data));
	for (int i = 0; i < arrlen(c->multiples); i++) {
		double value = claim_value(r, &which, c, c->multiples[i], NULL, NULL);
		snprintf(row->cell[i].line[0], SHEET_TEXT, "%s", claim_number(c->measure, value, number));
	}
	text_builder_free(&label);
}

static bool has_ours(const struct study_claim *c)
{
	for (int i = 0; i < arrlen(c->published); i++)
		if (c->published[i].ours)
			return true;
	return false;
}

void published_sheet(const struct results *r, const struct study_claim *c, struct sheet *out)
{
	struct text_builder title = { 0 };
	text_add(&title, "published: %s (%s)", c->what, c->source);
	if (has_ours(c))
		text_add(&title, "\nhere: rows of this study, %s", claim_measure_text(c->measure));
	*out = (struct sheet){ .title = text_keep(title.data) };
	text_builder_free(&title);
	for (int i = 0; i < arrlen(c->column); i++)
		arrput(out->column, c->column[i]);
	if (has_ours(c))
		add_multiples(c, out);
	for (int i = 0; i < arrlen(c->published); i++) {
		const struct published_row *p = &c->published[i];
		struct sheet_row *row = sheet_add(out, p->label);
		for (int j = 0; j < arrlen(p->value); j++)
			snprintf(row->cell[j].line[0], SHEET_TEXT, "%s", p->value[j]);
		if (p->ours)
			add_ours(r, c, p->ours, out);
	}
}

static void add_published_record(const struct results *r, const struct study_claim *c, int published, int column,
				 struct records *to)
{
	const struct published_row *p = &c->published[published];
	struct grid_row which = { 0 };
	double value = NAN;
	if (p->ours) {
		which = claim_row_of(r, p->ours);
		value = claim_value(r, &which, c, c->multiples[column], NULL, NULL);
	}
	records_begin(to);
	record_text(to, "name", c->name);
	record_text(to, "what", c->what);
	record_text(to, "source", c->source);
	record_text(to, "row", p->label);
	record_text(to, "column", c->column[column]);
	record_text(to, "published", strcmp(p->value[column], "-") ? p->value[column] : NULL);
	record_text(to, "here", p->ours ? claim_row_label(r->grid, &which) : NULL);
	record_text(to, "measure", p->ours ? claim_measure_name(c->measure) : NULL);
	record_number(to, "multiple", c->multiples ? c->multiples[column] : NAN);
	record_number(to, "value", value);
}

void published_records(const struct results *r, struct records *out)
{
	for (int i = 0; i < arrlen(r->study->claim); i++) {
		const struct study_claim *c = &r->study->claim[i];
		for (int j = 0; c->kind == CLAIM_PUBLISHED && j < arrlen(c->published); j++)
			for (int k = 0; k < arrlen(c->column); k++)
				add_published_record(r, c, j, k, out);
	}
}
