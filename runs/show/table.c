#include "runs/show/table.h"

#include "model/base/stb.h"
#include "runs/run/run_folder.h"
#include "runs/show/chance.h"
#include "runs/show/once.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char **table_groups(const struct results *r)
{
	const char **group = NULL;
	for (int i = 0; i < arrlen(r->grid->cell); i++) {
		const struct task *task = task_of(&r->grid->cell[i].config.data.task);
		for (int j = 0; j < TASK_GROUPS && task->groups[j]; j++)
			once(&group, task->groups[j]);
	}
	return group;
}

/* Without one a row is as its model was trained. */
static bool shows_scaling(const struct cell *c, int scaling)
{
	return c->scalings - c->references > 1 || !*c->label || c->tuned || strcmp(c->scaling_label[scaling], "none");
}

const char *table_label(const struct results *r, int cells, int scaling)
{
	const struct cell *c = &r->grid->cell[results_first(r, cells)];
	struct text_builder b = { 0 };
	bool reference = scaling >= c->scalings - c->references;
	text_add(&b, "%s", reference ? "reference: " : "");
	text_add(&b, "%s", c->label);
	if (shows_scaling(c, scaling))
		text_add(&b, "%s%s", *c->label ? ", " : "", c->scaling_label[scaling]);
	if (reference)
		text_add(&b, " (the last %d keys)", (int)c->config.model.train_length);
	for (int i = 0; i < arrlen(r->study->section); i++)
		if (c->sections & (1u << i))
			text_add(&b, " [%d]", i + 1);
	const char *kept = text_keep(b.data);
	text_builder_free(&b);
	return kept;
}

/* Of text bits a byte, else the perplexity; the NLL is that of either. */
static const char *level_text(bool bytes, double nll, char text[SHORT_TEXT])
{
	return bytes ? bits_text(nll, text) : perplexity_text(exp(nll), text);
}

static void add_range(const struct summary *s, bool bytes, struct sheet_cell *c)
{
	char a[SHORT_TEXT], b[SHORT_TEXT];
	if (s->done < 2)
		return;
	if (s->done < INTERVAL_SEEDS) {
		snprintf(sheet_line(c), SHEET_TEXT, "(%s - %s)", level_text(bytes, log(s->least), a),
			 level_text(bytes, log(s->greatest), b));
		return;
	}
	snprintf(sheet_line(c), SHEET_TEXT, "[%s - %s]", level_text(bytes, fmax(s->nll.low, log(s->floor)), a),
		 level_text(bytes, s->nll.high, b));
	snprintf(sheet_line(c), SHEET_TEXT, "[%s - %s %%]", accuracy_text(logistic(s->logit.low), a),
		 accuracy_text(logistic(s->logit.high), b));
}

/* The evaluation's error where it matters and shows, and seeds that are missing. */
static void add_remarks(const struct summary *s, bool bytes, struct sheet_cell *c)
{
	char noise[64] = "", seeds[48] = "";
	double error = bytes ? s->nll_se / M_LN2 : s->perplexity * s->nll_se;
	if (s->noisy && error >= 0.005)
		snprintf(noise, sizeof noise, error < 9.95 ? "+-%.2g eval" : "+-%.0f eval", error);
	if (s->done < s->seeds)
		snprintf(seeds, sizeof seeds, "%d of %d seeds", s->done, s->seeds);
	if (*noise || *seeds)
		snprintf(sheet_line(c), SHEET_TEXT, "%.30s%s%.28s", noise, *noise && *seeds ? ", " : "", seeds);
}

static void found_cell(const struct summary *s, bool warn, const struct method *task, struct sheet_cell *c)
{
	char a[SHORT_TEXT], b[SHORT_TEXT];
	bool bytes = task_of(task)->bytes;
	double V = task_of(task)->vocabulary(task);
	snprintf(c->line[0], SHEET_TEXT, "%s%s / %s", warn ? "!" : "", level_text(bytes, s->nll.mean, a),
		 accuracy_text(s->accuracy, b));
	c->heat = nll_heat(s->nll.mean, s->floor, V);
	add_range(s, bytes, c);
	add_remarks(s, bytes, c);
}

static void fill_cell(const struct summary *s, bool warn, const struct method *task, struct sheet_cell *c)
{
	static const char *const word[] = {
		[SUMMARY_EMPTY] = "n/a",
		[SUMMARY_ABSENT] = "-",
		[SUMMARY_IMPOSSIBLE] = "n/a",
		[SUMMARY_DIVERGED] = "diverged",
	};
	if (s->state == SUMMARY_FOUND)
		found_cell(s, warn, task, c);
	else
		snprintf(c->line[0], SHEET_TEXT, "%s", word[s->state]);
}

static bool headline(const struct cell *c, const char *group)
{
	return !strcmp(task_of(&c->config.data.task)->groups[0], group);
}

static void add_contender(const struct results *r, const struct contender *who, const char *group, struct sheet *sheet)
{
	const struct cell *c = &r->grid->cell[results_first(r, who->cells)];
	struct sheet_row *row = sheet_add(sheet, table_label(r, who->cells, who->scaling));
	for (int i = 0; i < arrlen(r->grid->multiple); i++) {
		double multiple = r->grid->multiple[i];
		struct summary s = results_summary(r, who->cells, who->scaling, multiple, group);
		bool warn = headline(c, group) && !who->reference && multiple == 1 &&
			    s.perplexity > FLOOR_REACHED * s.floor;
		fill_cell(&s, warn, &c->config.data.task, &row->cell[i]);
	}
}

/* Which cells share their sequences, and so what the baselines get, with an earlier group of cells? */
static bool same_sequences(const struct cell *a, const struct cell *b)
{
	return a->config.model.train_length == b->config.model.train_length &&
	       a->config.eval.eval_seed == b->config.eval.eval_seed &&
	       a->config.eval.sequences == b->config.eval.sequences &&
	       !strcmp(label_of(&a->config.eval.protocol), label_of(&b->config.eval.protocol)) &&
	       !strcmp(label_of(&a->config.data.task), label_of(&b->config.data.task));
}

static bool baselines_shown(const struct results *r, int cells)
{
	const struct cell *c = &r->grid->cell[results_first(r, cells)];
	for (int i = 0; i < cells; i++)
		if (same_sequences(c, &r->grid->cell[results_first(r, i)]))
			return true;
	return false;
}

static int group_index(const struct task *task, const char *group)
{
	for (int i = 0; i < TASK_GROUPS && task->groups[i]; i++)
		if (!strcmp(task->groups[i], group))
			return i;
	return -1;
}

struct err table_baselines(const struct results *r, int cells, const char *group, struct baseline **out)
{
	const struct cell *c = &r->grid->cell[results_first(r, cells)];
	const struct method *task = &c->config.data.task;
	struct chance_request q = {
		.task = task, .train_length = (int)c->config.model.train_length,
		.sequences = (int)c->config.eval.sequences, .eval_seed = (uint64_t)c->config.eval.eval_seed,
		.group = group_index(task_of(task), group), .tune = c->config.eval.stream == EVAL_TUNE,
		.protocol = &c->config.eval.protocol,
	};
	*out = NULL;
	if (q.group < 0 || baselines_shown(r, cells))
		return OK;
	for (int j = 0; j < c->lengths; j++) {
		struct eval_reference reference[EVAL_REFERENCES];
		int count;
		q.length = c->length[j];
		TRY(chance(&q, reference, &count));
		for (int k = 0; k < count; k++)
			arrput(*out, ((struct baseline){ c->multiple[j], c->length[j], reference[k] }));
	}
	return OK;
}

/* The row of a baseline, made if it is not there. */
static struct sheet_row *baseline_row(struct sheet *sheet, int first, const char *name, const char *where)
{
	struct text_builder b = { 0 };
	text_add(&b, "reference: %s%s", name, where);
	const char *label = text_keep(b.data);
	text_builder_free(&b);
	for (int i = first; i < arrlen(sheet->row); i++)
		if (sheet->row[i].label == label)
			return &sheet->row[i];
	return sheet_add(sheet, label);
}

static struct err add_baselines(const struct results *r, int cells, const char *group, bool again, struct sheet *sheet)
{
	const struct cell *c = &r->grid->cell[results_first(r, cells)];
	bool bytes = task_of(&c->config.data.task)->bytes;
	struct baseline *found;
	char where[96] = "";
	int first = (int)arrlen(sheet->row);
	if (again)
		snprintf(where, sizeof where, " (%s, train_length %d)", label_of(&c->config.data.task),
			 (int)c->config.model.train_length);
	struct err e = table_baselines(r, cells, group, &found);
	for (int i = 0; i < arrlen(found) && !e.code; i++) {
		char a[SHORT_TEXT], p[SHORT_TEXT];
		struct sheet_row *row = baseline_row(sheet, first, found[i].reference.name, where);
		for (int j = 0; j < arrlen(r->grid->multiple); j++)
			if (r->grid->multiple[j] == found[i].multiple)
				snprintf(row->cell[j].line[0], SHEET_TEXT, "%s / %s",
					 level_text(bytes, log(found[i].reference.perplexity), a),
					 accuracy_text(found[i].reference.accuracy, p));
	}
	arrfree(found);
	return e;
}

static void mark_best(const struct results *r, const struct contender *who, const char *group, struct sheet *sheet)
{
	int count = (int)arrlen(who);
	bool *best = NULL;
	arrsetlen(best, (size_t)count);
	for (int i = 0; i < arrlen(r->grid->multiple); i++) {
		contenders_best(r, who, count, r->grid->multiple[i], group, best);
		for (int j = 0; j < count; j++)
			sheet->row[j].cell[i].best = best[j];
	}
	arrfree(best);
}

void table_columns(const struct results *r, struct sheet *sheet)
{
	for (int i = 0; i < arrlen(r->grid->multiple); i++) {
		char number[NUMBER_TEXT], head[NUMBER_TEXT + 1];
		snprintf(head, sizeof head, "%sx", number_to_text(r->grid->multiple[i], number));
		arrput(sheet->column, text_keep(head));
	}
}

/* "rope, alibi(slopes=spread)": what the cells have of one option, each once. */
static void add_values(const struct results *r, const char *option, struct text_builder *b)
{
	const char **seen = NULL;
	for (int i = 0; i < arrlen(r->grid->cell); i++) {
		struct text_builder value = { 0 };
		config_value(&r->grid->cell[i].config, option, &value);
		if (once(&seen, value.data))
			text_add(b, "%s%s", arrlen(seen) > 1 ? ", " : "", value.data);
		text_builder_free(&value);
	}
	arrfree(seen);
}

static int most_seeds(const struct results *r)
{
	int most = 0;
	for (int cells = 0; cells < r->grid->groups; cells++) {
		int seeds = 0;
		for (int i = 0; i < arrlen(r->grid->cell); i++)
			seeds += r->grid->cell[i].group == cells;
		most = seeds > most ? seeds : most;
	}
	return most;
}

const char *table_title(const struct results *r, const char *what)
{
	static const char *const option[] = { "encoding", "task", "train_length", "seed" };
	struct text_builder b = { 0 };
	text_add(&b, "%s\n", what);
	for (size_t i = 0; i < sizeof option / sizeof option[0]; i++) {
		text_add(&b, "%s%s ", i ? "; " : "", option[i]);
		add_values(r, option[i], &b);
	}
	const char *kept = text_keep(b.data);
	text_builder_free(&b);
	return kept;
}

static bool of_bytes(const struct results *r, const char *group)
{
	for (int i = 0; i < arrlen(r->grid->cell); i++)
		if (task_of(&r->grid->cell[i].config.data.task)->bytes && results_has_group(&r->grid->cell[i], group))
			return true;
	return false;
}

struct err table_sheet(const struct results *r, const char *group, struct sheet *out)
{
	char what[200];
	struct contender *who = contenders(r);
	int seeds = most_seeds(r);
	bool bytes = of_bytes(r, group);
	snprintf(what, sizeof what, "%s: %s / accuracy in %%%s", group, bytes ? "bits per byte" : "perplexity",
		 seeds >= INTERVAL_SEEDS ? "; [95 % t interval over seeds of each]"
		 : seeds < 2             ? ""
		 : bytes		 ? "; (least - greatest bits over seeds)"
					 : "; (least - greatest perplexity over seeds)");
	*out = (struct sheet){ .title = table_title(r, what) };
	table_columns(r, out);
	for (int i = 0; i < arrlen(who); i++) {
		add_contender(r, &who[i], group, out);
		arrlast(out->row).ruled = who[i].reference && i && !who[i - 1].reference;
	}
	mark_best(r, who, group, out);
	int methods = (int)arrlen(out->row);
	bool references = methods && who[methods - 1].reference;
	arrfree(who);
	struct err e = OK;
	for (int cells = 0; cells < r->grid->groups && !e.code; cells++)
		e = add_baselines(r, cells, group, arrlen(out->row) > methods, out);
	if (!references && arrlen(out->row) > methods)
		out->row[methods].ruled = true;
	if (e.code)
		sheet_free(out);
	return e;
}
