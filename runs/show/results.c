#include "runs/show/results.h"

#include "model/base/stb.h"
#include "model/position/scaling.h"
#include "runs/run_folder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct err read_cell(const char *folder, const struct cell *c, struct cell_results *out)
{
	char *path;
	TRY(study_folder_find(folder, c, &path, &out->status));
	out->folder = text_keep(path);
	free(path);
	out->row = calloc((size_t)c->scalings, sizeof *out->row);
	BUG_IF(!out->row, "no memory for %d pointers", c->scalings);
	if (out->status < CELL_FINISHED)
		return OK;
	TRY(run_record_read(out->folder, &out->record));
	struct err e = OK;
	for (int i = 0; i < c->scalings && !e.code; i++) {
		path = cell_csv(c, out->folder, i);
		e = rows_read(path, &out->row[i]);
		free(path);
	}
	return e;
}

struct err results_read(const char *folder, const struct study *s, const struct grid *g, struct results *out)
{
	*out = (struct results){ .study = s, .grid = g, .folder = text_keep(folder) };
	for (int i = 0; i < arrlen(g->cell); i++) {
		struct cell_results cell = { 0 };
		struct err e = read_cell(folder, &g->cell[i], &cell);
		arrput(out->cell, cell);
		if (e.code) {
			results_free(out);
			return e;
		}
	}
	return OK;
}

void results_free(struct results *r)
{
	for (int i = 0; i < arrlen(r->cell); i++) {
		for (int j = 0; r->cell[i].row && j < r->grid->cell[i].scalings; j++)
			arrfree(r->cell[i].row[j]);
		free(r->cell[i].row);
		json_decref(r->cell[i].record);
	}
	arrfree(r->cell);
	*r = (struct results){ 0 };
}

const struct row *results_find(const struct results *r, int cell, int scaling, double multiple, const char *group)
{
	const struct cell *c = &r->grid->cell[cell];
	const struct row *row = r->cell[cell].row[scaling];
	for (int i = 0; i < arrlen(row); i++)
		if (row[i].multiple == multiple && !strcmp(row[i].group, group) && cell_owns(c, scaling, &row[i]))
			return &row[i];
	return NULL;
}

int results_first(const struct results *r, int cells)
{
	for (int i = 0; i < arrlen(r->grid->cell); i++)
		if (r->grid->cell[i].group == cells)
			return i;
	BUG("no cells in group %d", cells);
}

static bool has_group(const struct cell *c, const char *group)
{
	const char *name[EVAL_GROUPS];
	int count = eval_group_names(task_of(&c->config.data.task), name);
	for (int i = 0; i < count; i++)
		if (!strcmp(name[i], group))
			return true;
	return false;
}

static int length_at(const struct cell *c, double multiple)
{
	for (int i = 0; i < c->lengths; i++)
		if (c->multiple[i] == multiple)
			return c->length[i];
	return 0;
}

static void add_row(struct summary *s, const struct row *row)
{
	const struct eval_cell *cell = &row->cell;
	s->least = s->done ? fmin(s->least, cell->perplexity) : cell->perplexity;
	s->greatest = s->done ? fmax(s->greatest, cell->perplexity) : cell->perplexity;
	s->perplexity += cell->nll;
	s->accuracy += cell->accuracy;
	s->floor += cell->floor;
	s->scored = cell->scored;
	s->done++;
}

static void finish_means(struct summary *s)
{
	if (!s->done)
		return;
	s->perplexity = exp(s->perplexity / s->done);
	s->accuracy /= s->done;
	s->floor /= s->done;
}

struct summary results_summary(const struct results *r, int cells, int scaling, double multiple, const char *group)
{
	const struct cell *first = &r->grid->cell[results_first(r, cells)];
	struct summary s = { .sequences = first->config.eval.sequences, .length = length_at(first, multiple) };
	int empty = 0;
	for (int i = 0; i < arrlen(r->grid->cell); i++) {
		if (r->grid->cell[i].group != cells)
			continue;
		s.seeds++;
		s.diverged += r->cell[i].status == CELL_DIVERGED;
		const struct row *row = results_find(r, i, scaling, multiple, group);
		if (row && row->cell.scored)
			add_row(&s, row);
		else if (row)
			empty++;
	}
	finish_means(&s);
	if (!s.length || !has_group(first, group) || !cell_possible(first, scaling, s.length))
		s.state = SUMMARY_IMPOSSIBLE;
	else if (s.done)
		s.state = SUMMARY_FOUND;
	else if (empty)
		s.state = SUMMARY_EMPTY;
	else
		s.state = s.diverged == s.seeds ? SUMMARY_DIVERGED : SUMMARY_ABSENT;
	return s;
}

static const char *first_group(const struct cell *c)
{
	return task_of(&c->config.data.task)->groups[0];
}

/* The scaling under which the model is as it was trained; the first one if there is none. */
static int untouched_scaling(const struct cell *c)
{
	for (int i = 0; i < c->scalings; i++) {
		int length = (int)c->config.model.train_length;
		if (!cell_possible(c, i, length))
			continue;
		struct scaling_request request = scaling_request(&c->scaling[i], &c->config.model, length);
		if (scaling_factor(&request) == 1)
			return i;
	}
	return 0;
}

struct reached results_reached(const struct results *r, int cells)
{
	struct reached n = { 0 };
	const struct cell *first = &r->grid->cell[results_first(r, cells)];
	int scaling = untouched_scaling(first);
	for (int i = 0; i < arrlen(r->grid->cell); i++) {
		if (r->grid->cell[i].group != cells)
			continue;
		n.seeds++;
		const struct row *row = results_find(r, i, scaling, 1, first_group(first));
		n.known += row || r->cell[i].status == CELL_DIVERGED;
		n.reached += row && row->cell.scored && row->cell.perplexity <= FLOOR_REACHED * row->cell.floor;
	}
	return n;
}

static void compare_cell(const struct results *r, int cell, int scaling, int other, struct order *n)
{
	const struct cell *c = &r->grid->cell[cell];
	for (int i = 0; i < c->lengths; i++) {
		if (c->multiple[i] <= 1)
			continue;
		const struct row *a = results_find(r, cell, scaling, c->multiple[i], first_group(c));
		const struct row *b = results_find(r, cell, other, c->multiple[i], first_group(c));
		if (!a || !b || !a->cell.scored || !b->cell.scored)
			continue;
		n->compared++;
		n->better += a->cell.nll < b->cell.nll;
	}
}

struct order results_order(const struct results *r, int cells, int scaling, int other)
{
	struct order n = { 0 };
	for (int i = 0; i < arrlen(r->grid->cell); i++)
		if (r->grid->cell[i].group == cells)
			compare_cell(r, i, scaling, other, &n);
	return n;
}
