#include "runs/study/claim_rows.h"

#include "eval/perplexity.h"
#include "model/base/stb.h"
#include "model/position/scaling.h"
#include "runs/run/run_folder.h"

#include <stdio.h>
#include <string.h>

const struct cell *claim_cell(const struct grid *g, int cells)
{
	for (int i = 0; i < arrlen(g->cell); i++)
		if (g->cell[i].group == cells)
			return &g->cell[i];
	BUG("no cells in group %d", cells);
}

const char *claim_group(const struct study_claim *c, const struct cell *cell)
{
	return c->group ? c->group : task_of(&cell->config.data.task)->groups[0];
}

/* --- Rows. -------------------------------------------------------------------------------------------------------- */

static const char *joined(const char *first, const char *second)
{
	struct text_builder b = { 0 };
	text_add(&b, "%s%s%s", first, *first && *second ? ", " : "", second);
	const char *kept = text_keep(b.data);
	text_builder_free(&b);
	return kept;
}

const char *claim_row_label(const struct grid *g, const struct grid_row *row)
{
	const struct cell *c = claim_cell(g, row->cells);
	return joined(c->label, c->scaling_label[row->scaling]);
}

/* With its encoding, which a cell's label lacks where the study has but one. */
static const char *with_encoding(const struct cell *c)
{
	const char *encoding = label_of(&c->config.model.encoding);
	size_t length = strlen(encoding);
	bool there = !strncmp(c->label, encoding, length) && strchr(",", c->label[length]);
	/* What follows it is a comma or the end. */
	return there ? c->label : joined(encoding, c->label);
}

/* Without "variant=default"; NULL if the label does not have it. */
static const char *of_default(const char *label)
{
	const char *rest, *value;
	bool shown = claim_without_axis(label, STUDY_VARIANT, &rest, &value);
	return shown && !strcmp(value, STUDY_DEFAULT) ? rest : NULL;
}

/* "LABEL, SCALING" */
static bool means_both(const struct cell *c, int scaling, const char *label, const char *text)
{
	int count;
	char **piece = text_list(text, &count);
	struct text_builder before = { 0 };
	text_add(&before, "%s", "");
	for (int i = 0; i + 1 < count; i++)
		text_add(&before, "%s%s", i ? ", " : "", piece[i]);
	bool same = count > 1 && study_same_value(before.data, label) &&
		    method_means(&c->scaling[scaling], scaling_at, piece[count - 1]);
	text_builder_free(&before);
	text_list_free(piece);
	return same;
}

static bool means(const struct cell *c, int scaling, const char *text)
{
	const char *label[] = { c->label, with_encoding(c), of_default(c->label), of_default(with_encoding(c)) };
	for (int i = 0; i < 4; i++)
		if (label[i] && ((scaling == 0 && *label[i] && study_same_value(label[i], text)) ||
				 means_both(c, scaling, label[i], text)))
			return true;
	return method_means(&c->scaling[scaling], scaling_at, text);
}

/* Labels of all rows, or of those that a text means. */
static const char **labels(const struct grid *g, const char *text)
{
	const char **all = NULL;
	for (int i = 0, cells = 0; i < arrlen(g->cell); i++) {
		const struct cell *c = &g->cell[i];
		bool first = c->group == cells;
		for (int j = 0; j < c->scalings && first; j++)
			if (!text || means(c, j, text))
				arrput(all, joined(c->label, c->scaling_label[j]));
		cells += first;
	}
	return all;
}

static const char *next_label(int index, const void *data)
{
	const char *const *label = data;
	return index < arrlen(label) ? label[index] : NULL;
}

static void add_labels(const char *const *label, struct text_builder *b)
{
	for (int i = 0; i < arrlen(label); i++)
		text_add(b, "%s%s", i ? "; " : "", label[i]);
	text_add(b, ".");
}

/* What could have been meant: whole labels, and those of cells. */
static const char *nearest_row(const struct grid *g, const char *text)
{
	const char **all = labels(g, NULL);
	for (int i = 0; i < arrlen(g->cell); i++)
		arrput(all, g->cell[i].label);
	for (int i = 0; i < g->cell->scalings; i++)
		arrput(all, g->cell->scaling_label[i]);
	const char *nearest = nearest_name(text, next_label, all);
	arrfree(all);
	return nearest;
}

static struct err no_row(const struct grid *g, const char *text, const char **fitting)
{
	struct text_builder b = { 0 };
	const char *nearest = fitting ? NULL : nearest_row(g, text);
	const char **all = fitting ? NULL : labels(g, NULL);
	if (nearest) {
		text_add(&b, "Did you mean %s?", nearest);
	} else {
		text_add(&b, fitting ? "Say which: " : "The rows are: ");
		add_labels(fitting ? fitting : all, &b);
	}
	struct err e = err_usage(b.data, "%.200s: %s", text,
				 fitting ? "several rows are called so" : "no row of the study");
	text_builder_free(&b);
	arrfree(all);
	return e;
}

struct err claim_row(const struct grid *g, const char *text, struct grid_row *out)
{
	int found = 0;
	*out = (struct grid_row){ 0 };
	for (int i = 0, cells = 0; i < arrlen(g->cell); i++) {
		const struct cell *c = &g->cell[i];
		bool first = c->group == cells; /* groups are numbered as they come */
		for (int j = 0; j < c->scalings && first; j++)
			if (means(c, j, text) && !found++)
				*out = (struct grid_row){ cells, j };
		cells += first;
	}
	if (found == 1)
		return OK;
	const char **fitting = found ? labels(g, text) : NULL;
	struct err e = no_row(g, text, fitting);
	arrfree(fitting);
	return e;
}

/* --- Axes. -------------------------------------------------------------------------------------------------------- */

/* A copy of the label in which `axis=...` is `put`, or gone where that is ""; its value, or NULL if it has none. */
static const char *put_in_place(const char *label, const char *axis, const char *put, const char **value)
{
	int count;
	char **piece = text_list(label, &count);
	struct text_builder b = { 0 };
	size_t length = strlen(axis);
	*value = NULL;
	text_add(&b, "%s", "");
	for (int i = 0; i < count; i++) {
		bool here = !*value && !strncmp(piece[i], axis, length) && piece[i][length] == '=';
		const char *text = here ? put : piece[i];
		if (here)
			*value = text_keep(piece[i] + length + 1);
		text_add(&b, "%s%s", *text && b.size ? ", " : "", text);
	}
	const char *kept = text_keep(b.data);
	text_builder_free(&b);
	text_list_free(piece);
	return kept;
}

bool claim_without_axis(const char *of, const char *axis, const char **label, const char **value)
{
	*label = put_in_place(of, axis, "", value);
	return *value;
}

const char *claim_at_value(const char *label, const char *axis, const char *value)
{
	const char *before;
	struct text_builder put = { 0 };
	text_add(&put, "%s=%s", axis, value);
	const char *other = put_in_place(label, axis, put.data, &before);
	text_builder_free(&put);
	return other;
}

const struct study_line *claim_axis(const struct study_claim *c, const struct study *s)
{
	for (int i = 0; i < arrlen(s->line); i++)
		if (same_name(s->line[i].name, c->axis) && arrlen(s->line[i].value) > 1)
			return &s->line[i];
	return NULL;
}

const char *claim_default(const struct study_claim *c, const struct study *s)
{
	const struct study_line *axis = claim_axis(c, s);
	return c->value ? c->value : axis->value[0];
}

static const char *next_axis(int index, const void *data)
{
	const struct study *s = data;
	for (int i = 0; i < arrlen(s->line); i++)
		if (arrlen(s->line[i].value) > 1 && index-- == 0)
			return s->line[i].name;
	return NULL;
}

static struct err check_stability(const struct study_claim *c, const struct study *s, const struct grid *g)
{
	const struct study_line *axis = claim_axis(c, s);
	const char *nearest = nearest_name(c->axis, next_axis, s), *label, *value;
	char hint[128];
	snprintf(hint, sizeof hint, nearest ? "Did you mean %s?" : "Name an option that the study has a list of.",
		 nearest);
	if (!axis)
		return err_usage(hint, "axis: %.60s: the study has no axis of it", c->axis);
	for (int i = 0; i < arrlen(g->cell); i++)
		if (!claim_without_axis(g->cell[i].label, axis->name, &label, &value))
			return err_usage("Methods are rows: name an axis beside them, as variant or width.",
					 "axis: %s: the rows do not show it as %s=VALUE", axis->name, axis->name);
	bool known = !c->value;
	for (int i = 0; i < arrlen(axis->value) && !known; i++)
		known = study_same_value(axis->value[i], c->value);
	if (!known)
		return err_usage(NULL, "default: %.60s: no value of %s", c->value, axis->name);
	return OK;
}

/* --- Claims. ------------------------------------------------------------------------------------------------------ */

static struct err check_group(const struct study_claim *c, const struct cell *cell)
{
	const char *name[EVAL_GROUPS];
	const struct method *task = &cell->config.data.task;
	int count = eval_group_names(task_of(task), name);
	struct text_builder b = { 0 };
	bool known = !c->group;
	text_add(&b, "It has:");
	for (int i = 0; i < count; i++) {
		text_add(&b, "%s %s", i ? "," : "", name[i]);
		known = known || !strcmp(name[i], c->group);
	}
	text_add(&b, ".");
	struct err e = known ? OK : err_usage(b.data, "group: %.60s: the task %s has none of it", c->group,
					      task->entry->name);
	text_builder_free(&b);
	return e;
}

static bool has_multiple(const struct cell *c, double multiple)
{
	for (int i = 0; i < c->lengths; i++)
		if (c->multiple[i] == multiple)
			return true;
	return false;
}

static struct err check_multiple(const struct study_claim *c, const struct cell *cell)
{
	char number[NUMBER_TEXT];
	if (!has_multiple(cell, c->multiple))
		return err_usage("Take one of the study's multiples, or add it to them.",
				 "multiple: %s: the row is not evaluated there", number_to_text(c->multiple, number));
	if (c->measure == CLAIM_SLOPE && !has_multiple(cell, 1))
		return err_usage("Add 1 to the multiples.", "measure: slope: the row is not evaluated at 1x");
	return OK;
}

/* The line of a claim with this name, for the place of an error; the first if there is none. */
static const char *place_of_line(const struct study_claim *c, const char *name)
{
	for (int i = 0; i < arrlen(c->line); i++)
		if (!strcmp(c->line[i].name, name))
			return c->line[i].from;
	return c->from;
}

static struct err check_row(const struct study_claim *c, const struct grid *g, const char *name, const char *text,
			    const char *from)
{
	struct grid_row row;
	struct err e = claim_row(g, text, &row);
	if (e.code)
		return err_at(e, "%s: %s", from ? from : place_of_line(c, name), name);
	const struct cell *cell = claim_cell(g, row.cells);
	TRY(err_at(check_group(c, cell), "%s", place_of_line(c, "group")));
	return c->kind == CLAIM_PUBLISHED ? OK : err_at(check_multiple(c, cell), "%s", place_of_line(c, "multiple"));
}

/* A row is neither better nor worse than itself. */
static struct err check_order(const struct study_claim *c, const struct grid *g)
{
	struct grid_row better, worse;
	TRY(claim_row(g, c->row[0], &better));
	TRY(claim_row(g, c->row[1], &worse));
	if (better.cells == worse.cells && better.scaling == worse.scaling)
		return err_usage("Name two rows.", "worse: %.200s: the same row as better", c->row[1]);
	return OK;
}

static struct err check(const struct study_claim *c, const struct study *s, const struct grid *g)
{
	switch (c->kind) {
	case CLAIM_EXPECT:
		return check_row(c, g, "row", c->row[0], NULL);
	case CLAIM_PUBLISHED:
		TRY(err_at(check_group(c, g->cell), "%s", place_of_line(c, "group")));
		for (int i = 0; i < arrlen(c->published); i++)
			if (c->published[i].ours)
				TRY(check_row(c, g, "ours", c->published[i].ours, c->published[i].from));
		return OK;
	case CLAIM_ORDER:
		TRY(check_row(c, g, "better", c->row[0], NULL));
		TRY(check_row(c, g, "worse", c->row[1], NULL));
		return err_at(check_order(c, g), "%s", place_of_line(c, "worse"));
	case CLAIM_STABILITY:
		TRY(err_at(check_group(c, g->cell), "%s", place_of_line(c, "group")));
		return err_at(check_stability(c, s, g), "%s", place_of_line(c, "axis"));
	case CLAIM_KINDS:
		break;
	}
	BUG("claims have no kind %d", (int)c->kind);
}

struct err claims_check(const struct study *s, const struct grid *g)
{
	for (int i = 0; i < arrlen(s->claim); i++)
		TRY(check(&s->claim[i], s, g));
	return OK;
}

void claims_drop(struct study *s, const struct grid *g)
{
	for (int i = (int)arrlen(s->claim) - 1; i >= 0; i--)
		if (check(&s->claim[i], s, g).code)
			claims_remove(&s->claim, i);
}
