#include "runs/study/grid.h"

#include "eval/perplexity.h"
#include "model/base/stb.h"
#include "model/position/scaling.h"
#include "runs/run/run_folder.h"
#include "runs/study/claim_rows.h"
#include "runs/study/study_tune.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The axes in the order they are counted: the seed's last, so that a label's seeds are neighbours. */
struct axis {
	const struct study_line *line;
	int value; /* of the cell being made */
};

struct builder {
	const struct study *study;
	struct axis *axis;
	unsigned sections;  /* those that selected a cell so far */
	const char **used;  /* names of method options that took effect in some cell */
	struct grid *grid;
};

static bool is_seed(const struct study_line *l)
{
	return !strcmp(l->name, "seed");
}

static void find_axes(struct builder *b)
{
	const struct study_line *line = b->study->line;
	for (int seed = 0; seed < 2; seed++)
		for (int i = 0; i < arrlen(line); i++)
			if (arrlen(line[i].value) > 1 && is_seed(&line[i]) == seed)
				arrput(b->axis, ((struct axis){ &line[i], 0 }));
}

static struct err check_count(const struct builder *b)
{
	int64_t cells = 1;
	for (int i = 0; i < arrlen(b->axis); i++) {
		const struct study_line *line = b->axis[i].line;
		cells *= arrlen(line->value);
		if (cells <= STUDY_CELLS)
			continue;
		struct err e = err_usage("Make several studies of it.", "%s%s: more than %d cells",
					 line->from ? "" : "--", line->name, STUDY_CELLS);
		return line->from ? err_at(e, "%s", line->from) : e;
	}
	return OK;
}

/* Steps to the next cell; false past the last. */
static bool next_cell(struct builder *b)
{
	for (int i = (int)arrlen(b->axis) - 1; i >= 0; i--) {
		if (++b->axis[i].value < arrlen(b->axis[i].line->value))
			return true;
		b->axis[i].value = 0;
	}
	return false;
}

/* The text that the cell being made has for a line. */
static const char *value_of(const struct builder *b, const struct study_line *line)
{
	for (int i = 0; i < arrlen(b->axis); i++)
		if (b->axis[i].line == line)
			return line->value[b->axis[i].value];
	return line->value[0];
}

static const struct study_line *line_named(const struct study *s, const char *name)
{
	for (int i = 0; i < arrlen(s->line); i++)
		if (!strcmp(s->line[i].name, name))
			return &s->line[i];
	return NULL;
}

static bool selects(const struct builder *b, const struct study_section *section)
{
	const struct study_line *line = line_named(b->study, section->name);
	return line && study_same_value(value_of(b, line), section->value);
}

static bool is_axis(const struct builder *b, const char *name)
{
	for (int i = 0; i < arrlen(b->axis); i++)
		if (!strcmp(b->axis[i].line->name, name))
			return true;
	return false;
}

static struct err apply_section(struct builder *b, const struct study_section *section, struct config *c)
{
	for (int i = 0; i < arrlen(section->line); i++) {
		const struct study_line *l = &section->line[i];
		if (is_axis(b, l->name)) {
			struct err e = err_usage("Take the value out of the axis, or the line out of the section.",
						 "%s: the study has an axis of it", l->name);
			return err_at(e, "%s", l->from);
		}
		TRY(config_set(c, l->name, l->value[0], l->from));
	}
	return OK;
}

static struct err set_options(struct builder *b, struct cell *cell)
{
	const struct study *s = b->study;
	config_init(&cell->config, &study_scope, NULL);
	for (int i = 0; i < arrlen(s->line); i++)
		if (!study_is_variant(&s->line[i]))
			TRY(config_set(&cell->config, s->line[i].name, value_of(b, &s->line[i]), s->line[i].from));
	for (int i = 0; i < arrlen(s->section); i++) {
		if (!selects(b, &s->section[i]))
			continue;
		b->sections |= 1u << i;
		if (arrlen(s->section[i].line))
			cell->sections |= 1u << i;
		TRY(apply_section(b, &s->section[i], &cell->config));
	}
	return config_finish(&cell->config, false);
}

/* What the option `references` adds to every model's scalings. */
#define REFERENCE "window"

/* Unless the study names it itself. */
static struct err add_reference(struct cell *cell)
{
	struct method reference;
	TRY(method_parse("scaling", scaling_at, REFERENCE, &reference));
	for (int i = 0; i < cell->scalings; i++)
		if (!strcmp(label_of(&cell->scaling[i]), REFERENCE))
			return OK;
	cell->scaling = stb_reallocate(cell->scaling, (size_t)(cell->scalings + 1) * sizeof *cell->scaling);
	cell->scaling[cell->scalings++] = reference;
	cell->references = 1;
	return OK;
}

static struct err set_evaluation(struct cell *cell)
{
	struct config *c = &cell->config;
	TRY(config_scalings(c, false, &cell->scaling, &cell->scalings));
	if (c->eval.references)
		TRY(add_reference(cell));
	for (int i = 0; i < cell->scalings; i++)
		arrput(cell->scaling_label, label_of(&cell->scaling[i]));
	TRY(config_at(c, "multiples", eval_lengths(c->eval.multiples, (int)c->model.train_length, &c->data,
						   &cell->length, &cell->multiple, &cell->lengths)));
	return config_at(c, "protocol", protocol_settle(&c->eval.protocol, (int)c->model.train_length, cell->length,
							cell->lengths));
}

static bool flag_used(const struct config *c, const char *name)
{
	for (int i = 0; i < c->flags; i++)
		if (!strcmp(c->flag[i].name.name, name))
			return c->flag[i].used;
	return true;
}

static void remember_flags(struct builder *b, const struct config *c)
{
	for (int i = 0; i < c->flags; i++)
		if (c->flag[i].used)
			arrput(b->used, text_keep(c->flag[i].name.name));
}

/* "alibi(slopes=spread)" or "width=32" */
static void add_axis_text(const struct study_line *line, const struct cell *cell, const char *value,
			  const char *separator, struct text_builder *out)
{
	text_add(out, "%s", out->size ? separator : "");
	if (!strcmp(line->name, "encoding"))
		text_add(out, "%s", label_of(&cell->config.model.encoding));
	else
		text_add(out, "%s=%s", line->name, value);
}

static const char *keep_and_free(struct text_builder *b)
{
	const char *kept = b->data ? text_keep(b->data) : "";
	text_builder_free(b);
	return kept;
}

#define NAME_TEXT 120 /* a file system's names end at 255 bytes */

/* Values of the axes as part of a file name, and digits of the identity. */
const char *cell_folder_name(const char *text, const char *identity)
{
	char name[NAME_TEXT + 12];
	size_t n = 0;
	for (const char *s = text; *s && n < NAME_TEXT; s++) {
		bool plain = isalnum((unsigned char)*s) || *s == '_' || *s == '.';
		if (plain || (n && name[n - 1] != '-'))
			name[n++] = plain ? *s : '-';
	}
	while (n && name[n - 1] == '-')
		n--;
	snprintf(name + n, sizeof name - n, "-%.8s", identity);
	return text_keep(name);
}

/* The label of an encoding shows its options. */
static bool in_encoding(const struct study_line *line)
{
	return !strcmp(line->name, "encoding") || line->option.family == position_at;
}

static void set_names(const struct builder *b, struct cell *cell)
{
	struct text_builder label = { 0 }, axes = { 0 }, all = { 0 };
	for (int i = 0; i < arrlen(b->axis); i++) {
		const struct study_line *line = b->axis[i].line;
		if (!flag_used(&cell->config, line->name))
			continue;
		const char *value = value_of(b, line);
		add_axis_text(line, cell, value, "-", &all);
		if (is_seed(line))
			continue;
		if (!strcmp(line->name, "encoding") || !in_encoding(line) || !is_axis(b, "encoding"))
			add_axis_text(line, cell, value, ", ", &label);
		if (!in_encoding(line))
			add_axis_text(line, cell, value, " ", &axes);
	}
	config_identity(&cell->config, LIST_TRAINING, cell->identity);
	config_training_identity(&cell->config, cell->trained);
	cell->name = cell_folder_name(all.data ? all.data : cell->config.model.encoding.entry->name, cell->identity);
	text_builder_free(&all);
	cell->label = keep_and_free(&label);
	cell->axes = keep_and_free(&axes);
}

static void free_cell(struct cell *cell)
{
	free(cell->scaling);
	arrfree(cell->scaling_label);
	free(cell->length);
	free(cell->multiple);
}

static const struct cell *same_cell(const struct grid *g, const char *identity)
{
	for (int i = 0; i < arrlen(g->cell); i++)
		if (!strcmp(g->cell[i].identity, identity))
			return &g->cell[i];
	return NULL;
}

int grid_group(const struct grid *g, const char *label)
{
	for (int i = 0; i < arrlen(g->cell); i++)
		if (!strcmp(g->cell[i].label, label))
			return g->cell[i].group;
	for (int i = 0; i < arrlen(g->alias); i++)
		if (!strcmp(g->alias[i].label, label))
			return g->alias[i].group;
	return -1;
}

static void add_alias(struct grid *g, const char *label, int group)
{
	if (grid_group(g, label) < 0)
		arrput(g->alias, ((struct grid_alias){ label, group }));
}

/* Do they differ in the seed alone? */
static bool same_row(const struct cell *a, const struct cell *b)
{
	return !strcmp(a->label, b->label) && !strcmp(a->tuned ? a->tuned : "", b->tuned ? b->tuned : "");
}

void grid_add(struct grid *g, struct cell *cell)
{
	const struct cell *same = same_cell(g, cell->identity);
	if (same) {
		add_alias(g, cell->label, same->group);
		free_cell(cell);
		return;
	}
	cell->group = g->groups;
	for (int i = 0; i < arrlen(g->cell); i++)
		if (same_row(&g->cell[i], cell))
			cell->group = g->cell[i].group;
	g->groups += cell->group == g->groups;
	arrput(g->cell, *cell);
}

/* A variant that leaves the model as it is goes by the name of the other cell, and is evaluated with it. */
static struct err check_evaluation(const struct grid *g, const struct cell *cell)
{
	static const unsigned list[] = { LIST_EVAL, LIST_STUDY };
	const struct cell *same = same_cell(g, cell->identity);
	struct err e = OK;
	for (int i = 0; same && i < 2; i++)
		for (const struct option *row = option_rows(&cell->config.scope, list[i]); row->name; row++) {
			struct text_builder mine = { 0 }, other = { 0 };
			config_value(&cell->config, row->name, &mine);
			config_value(&same->config, row->name, &other);
			if (!e.code && strcmp(mine.data ? mine.data : "", other.data ? other.data : ""))
				e = err_usage("Make a second study for other values.",
					      "%s: is another than that of %s, which is the same model",
					      row->name, *same->label ? same->label : same->name);
			text_builder_free(&mine);
			text_builder_free(&other);
			if (e.code)
				return config_at(&cell->config, row->name, e);
		}
	return OK;
}

static struct err make_cell(struct builder *b)
{
	struct cell cell = { 0 };
	struct err e = set_options(b, &cell);
	if (!e.code)
		e = set_evaluation(&cell);
	if (!e.code) {
		remember_flags(b, &cell.config);
		set_names(b, &cell);
		e = check_evaluation(b->grid, &cell);
	}
	if (e.code)
		free_cell(&cell);
	else
		grid_add(b->grid, &cell);
	return e;
}

static struct err check_sections(const struct builder *b)
{
	const struct study *s = b->study;
	for (int i = 0; i < arrlen(s->section); i++) {
		if (b->sections & (1u << i))
			continue;
		const struct study_line *line = line_named(s, s->section[i].name);
		struct text_builder hint = { 0 };
		text_add(&hint, line ? "The study has" : "Write %s before the first section.", s->section[i].name);
		for (int j = 0; line && j < arrlen(line->value); j++)
			text_add(&hint, "%s %s=%s", j ? "," : "", line->name, line->value[j]);
		text_add(&hint, "%s", line ? "." : "");
		struct err e = err_usage(hint.data, "[%s=%s]: selects no cell", s->section[i].name,
					 s->section[i].value);
		text_builder_free(&hint);
		return err_at(e, "%s", s->section[i].from);
	}
	return OK;
}

static struct err check_used(const struct builder *b, const struct study_line *line)
{
	for (int i = 0; i < arrlen(line); i++) {
		bool used = line[i].option.list;
		for (int j = 0; j < arrlen(b->used) && !used; j++)
			used = !strcmp(b->used[j], line[i].name);
		if (used)
			continue;
		struct err e = err_usage("Leave it out, or choose a method that has this option.",
					 "%s%s: has no effect in any cell", line[i].from ? "" : "--", line[i].name);
		return line[i].from ? err_at(e, "%s", line[i].from) : e;
	}
	return OK;
}

/* A name of the axis `variant` means what its section says. */
static struct err check_variants(const struct builder *b)
{
	const struct study *s = b->study;
	const struct study_line *line = line_named(s, STUDY_VARIANT);
	for (int i = 0; line && i < arrlen(line->value); i++) {
		bool known = !strcmp(line->value[i], STUDY_DEFAULT);
		for (int j = 0; j < arrlen(s->section) && !known; j++)
			known = !strcmp(s->section[j].name, STUDY_VARIANT) &&
				study_same_value(s->section[j].value, line->value[i]);
		if (!known)
			return err_at(err_usage("Write one with the options it sets; " STUDY_DEFAULT " needs none.",
						"variant: no section [variant=%s]", line->value[i]), "%s", line->from);
	}
	return OK;
}

static struct err check_all_used(const struct builder *b)
{
	TRY(check_sections(b));
	TRY(check_variants(b));
	TRY(check_used(b, b->study->line));
	for (int i = 0; i < arrlen(b->study->section); i++)
		TRY(check_used(b, b->study->section[i].line));
	return OK;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void collect_multiples(struct grid *g)
{
	for (int i = 0; i < arrlen(g->cell); i++)
		for (int j = 0; j < g->cell[i].lengths; j++) {
			bool there = false;
			for (int k = 0; k < arrlen(g->multiple); k++)
				there |= g->multiple[k] == g->cell[i].multiple[j];
			if (!there)
				arrput(g->multiple, g->cell[i].multiple[j]);
		}
	qsort(g->multiple, arrlenu(g->multiple), sizeof *g->multiple, by_size);
}

struct err grid_build(const struct study *s, struct grid *out)
{
	struct builder b = { .study = s, .grid = out };
	*out = (struct grid){ 0 };
	find_axes(&b);
	struct err e = check_count(&b);
	if (!e.code)
		do
			e = make_cell(&b);
		while (!e.code && next_cell(&b));
	if (!e.code)
		e = check_all_used(&b);
	if (!e.code)
		e = tune_cells(out);
	if (!e.code && !s->overridden)
		e = claims_check(s, out);
	arrfree(b.axis);
	arrfree(b.used);
	if (e.code)
		grid_free(out);
	else
		collect_multiples(out);
	return e;
}

void grid_free(struct grid *g)
{
	for (int i = 0; i < arrlen(g->cell); i++)
		free_cell(&g->cell[i]);
	arrfree(g->cell);
	arrfree(g->multiple);
	arrfree(g->alias);
	*g = (struct grid){ 0 };
}

bool cell_possible(const struct cell *c, int scaling, int length)
{
	const struct model_options *model = &c->config.model;
	if (scaling_check(&c->scaling[scaling], model, length).code)
		return false;
	const struct position *position = position_of(&model->encoding);
	struct place place = place_of(model);
	return !position->reach || !position->reach(&place, length - 1).code;
}

bool cell_owns(const struct cell *c, int scaling, const struct row *row)
{
	const struct eval_options *eval = &c->config.eval;
	return row->seed == c->config.train.seed && row->train_length == c->config.model.train_length &&
	       row->eval_seed == eval->eval_seed && row->sequences == eval->sequences &&
	       row_stream(row) == eval->stream && row_kv(row) == eval->kv &&
	       row_protocol_is(row, &eval->protocol) &&
	       !strcmp(row->encoding, label_of(&c->config.model.encoding)) &&
	       !strcmp(row->scaling, c->scaling_label[scaling]) && !strcmp(row->task, label_of(&c->config.data.task));
}

char *cell_csv(const struct cell *c, const char *folder, int scaling)
{
	return run_folder_csv(folder, &c->config.eval, c->scaling_label[scaling], false);
}

void section_text(const struct study_section *s, struct text_builder *b)
{
	for (int i = 0; i < arrlen(s->line); i++)
		text_add(b, "%s%s=%s", i ? ", " : "", s->line[i].name, s->line[i].value[0]);
}
