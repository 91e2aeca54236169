#include "runs/show/table.h"

#include "model/base/stb.h"
#include "model/position/scaling.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Is it how the tables show this row, footnotes and "reference" aside? */
static bool labelled(const struct results *r, int cells, int scaling, const char *label)
{
	const struct cell *c = &r->grid->cell[results_first(r, cells)];
	struct text_builder b = { 0 };
	text_add(&b, "%s%s%s", c->label, *c->label ? ", " : "", c->scaling_label[scaling]);
	bool same = study_same_value(b.data, label) || (scaling == 0 && study_same_value(c->label, label));
	text_builder_free(&b);
	return same;
}

/* A row's label as copied from a table, without the mark of its section, " [2]". Kept. */
static const char *without_section(const char *label)
{
	char text[512];
	size_t n = (size_t)snprintf(text, sizeof text, "%s", label);
	if (n >= sizeof text)
		return label;
	char *mark = strrchr(text, '[');
	if (n && text[n - 1] == ']' && mark && mark > text && mark[-1] == ' ')
		mark[-1] = '\0';
	return text_keep(text);
}

bool table_opponent(const struct results *r, const struct contender *row, const char *against, struct contender *out)
{
	against = without_section(against);
	const struct cell *own = &r->grid->cell[results_first(r, row->cells)];
	for (int i = 0; i < own->scalings; i++)
		if (method_means(&own->scaling[i], scaling_at, against)) {
			*out = (struct contender){ row->cells, i, i >= own->scalings - own->references };
			return true;
		}
	for (int cells = 0; cells < r->grid->groups; cells++)
		for (int i = 0; i < r->grid->cell[results_first(r, cells)].scalings; i++)
			if (labelled(r, cells, i, against)) {
				*out = (struct contender){ cells, i, false };
				return true;
			}
	return false;
}

static const char *next_label(int index, const void *data)
{
	const char *const *label = data;
	return index < arrlen(label) ? label[index] : NULL;
}

static struct err unknown_opponent(const struct results *r, const struct contender *who, const char *against)
{
	const char **label = NULL;
	struct text_builder b = { 0 };
	for (int i = 0; i < arrlen(who); i++) {
		const struct cell *c = &r->grid->cell[results_first(r, who[i].cells)];
		arrput(label, c->scaling_label[who[i].scaling]);
		if (*c->label)
			arrput(label, c->label);
	}
	const char *nearest = nearest_name(against, next_label, label);
	if (nearest) {
		text_add(&b, "Did you mean %s?", nearest);
	} else {
		text_add(&b, "The rows are: ");
		for (int i = 0; i < arrlen(who); i++) {
			const struct cell *c = &r->grid->cell[results_first(r, who[i].cells)];
			text_add(&b, "%s%s%s%s", i ? "; " : "", c->label, *c->label ? ", " : "",
				 c->scaling_label[who[i].scaling]);
		}
		text_add(&b, ".");
	}
	struct err e = err_usage(b.data, "--against: %.200s: no row of %s", against, r->folder);
	text_builder_free(&b);
	arrfree(label);
	return e;
}

/* As a perplexity, but a small ratio keeps two digits: x0.0032 is not x0.00. */
static const char *ratio_text(double ratio, char text[SHORT_TEXT])
{
	if (ratio >= 0.0995)
		return perplexity_text(ratio, text);
	snprintf(text, SHORT_TEXT, "%#.2g", ratio);
	return text;
}

static void fill_difference(const struct paired *p, struct sheet_cell *c)
{
	char a[SHORT_TEXT], b[SHORT_TEXT];
	double ratio = exp(p->nll.mean), spread = p->seeds > 1 ? p->nll.sd / 2 : 0;
	snprintf(c->line[0], SHEET_TEXT, "x%s / %+.1f", ratio_text(ratio, a), 100 * p->accuracy);
	c->heat = 0.5 + p->nll.mean / 4;
	if (p->seeds >= INTERVAL_SEEDS)
		snprintf(sheet_line(c), SHEET_TEXT, "[%s - %s]", ratio_text(exp(p->nll.low), a),
			 ratio_text(exp(p->nll.high), b));
	else if (p->seeds > 1)
		snprintf(sheet_line(c), SHEET_TEXT, "(%s - %s)", ratio_text(exp(p->least), a),
			 ratio_text(exp(p->greatest), b));
	if (p->least == 0 && p->greatest == 0)
		snprintf(sheet_line(c), SHEET_TEXT, "equal");
	else
		snprintf(sheet_line(c), SHEET_TEXT, "wins %d of %d", p->wins, p->seeds);
	if (p->nll_se > spread && ratio * p->nll_se >= 0.005)
		snprintf(sheet_line(c), SHEET_TEXT, ratio * p->nll_se < 9.95 ? "+-%.2g eval" : "+-%.0f eval",
			 ratio * p->nll_se);
}

struct err table_against_check(const struct results *r, const char *against)
{
	struct contender *who = contenders(r), other;
	bool any = !*against;
	for (int i = 0; i < arrlen(who) && !any; i++)
		any = table_opponent(r, &who[i], against, &other);
	struct err e = any ? OK : unknown_opponent(r, who, against);
	arrfree(who);
	return e;
}

void table_differences(const struct results *r, const char *group, const char *against, struct sheet *out)
{
	struct text_builder what = { 0 };
	struct contender *who = contenders(r), other;
	bool apart = false;
	text_add(&what, "%s against %s: ratio of perplexities / difference of accuracy in points", group, against);
	*out = (struct sheet){ .title = text_keep(what.data) };
	table_columns(r, out);
	for (int i = 0; i < arrlen(who); i++) {
		if (!table_opponent(r, &who[i], against, &other))
			continue;
		if (other.cells == who[i].cells && other.scaling == who[i].scaling)
			continue;
		struct sheet_row *row = sheet_add(out, table_label(r, who[i].cells, who[i].scaling));
		for (int j = 0; j < arrlen(r->grid->multiple); j++) {
			struct paired p = paired(r, &who[i], &other, r->grid->multiple[j], group, CONFIDENCE);
			apart |= p.seeds && !p.same_weights;
			if (p.seeds)
				fill_difference(&p, &row->cell[j]);
			else
				snprintf(row->cell[j].line[0], SHEET_TEXT, "-");
		}
	}
	text_add(&what, "\npaired by seed and sequence%s; a ratio below 1 is better; [95 %% t interval of the ratio over "
			"seeds] from %d seeds on, else (least - greatest); wins: seeds in which it is below 1; equal: to the bit",
		 apart ? " (rows of other cells: same seeds and data, weights trained apart)" : ", same weights",
		 INTERVAL_SEEDS);
	out->title = text_keep(what.data);
	text_builder_free(&what);
	arrfree(who);
}
