#include "runs/show/table.h"

#include "model/base/stb.h"
#include "runs/run_folder.h"
#include "runs/show/chance.h"
#include "runs/show/wrap.h"

#include <stdio.h>
#include <string.h>

enum { CELL_LINES = 3, CELL_TEXT = 64, LABEL_LEAST = 24 };

/* One place: what is on its lines, right-aligned; empty ones are left out where a whole row has them empty. */
struct place_text {
	char line[CELL_LINES][CELL_TEXT];
};

struct text_row {
	const char *label;
	struct place_text *place; /* [columns], stb_ds */
};

struct text_table {
	const double *multiple; /* [columns] */
	int columns;
	struct text_row *row;
	int methods; /* the rows before those of chance */
};

const char *perplexity_text(double perplexity, char text[SHORT_TEXT])
{
	if (perplexity < 9.995)
		snprintf(text, SHORT_TEXT, "%.2f", perplexity);
	else if (perplexity < 99.95)
		snprintf(text, SHORT_TEXT, "%.1f", perplexity);
	else
		snprintf(text, SHORT_TEXT, perplexity < 999999.5 ? "%.0f" : "%.2g", perplexity);
	return text;
}

const char *accuracy_text(double accuracy, char text[SHORT_TEXT])
{
	double percent = 100 * accuracy;
	snprintf(text, SHORT_TEXT, percent < 99.95 ? "%.1f" : "%.0f", percent);
	return text;
}

const char **table_groups(const struct results *r)
{
	const char **group = NULL;
	for (int i = 0; i < arrlen(r->grid->cell); i++) {
		const struct task *task = task_of(&r->grid->cell[i].config.data.task);
		for (int j = 0; j < TASK_GROUPS && task->groups[j]; j++) {
			bool there = false;
			for (int k = 0; k < arrlen(group); k++)
				there |= !strcmp(group[k], task->groups[j]);
			if (!there)
				arrput(group, task->groups[j]);
		}
	}
	return group;
}

static bool several_scalings(const struct grid *g)
{
	for (int i = 0; i < arrlen(g->cell); i++)
		if (g->cell[i].scalings > 1)
			return true;
	return false;
}

const char *table_label(const struct results *r, int cells, int scaling)
{
	const struct cell *c = &r->grid->cell[results_first(r, cells)];
	struct text_builder b = { 0 };
	text_add(&b, "%s", c->label);
	if (several_scalings(r->grid) || !*c->label)
		text_add(&b, "%s%s", *c->label ? ", " : "", c->scaling_label[scaling]);
	for (int i = 0; i < arrlen(r->study->section); i++)
		if (c->sections & (1u << i))
			text_add(&b, " [%d]", i + 1);
	const char *kept = text_keep(b.data);
	text_builder_free(&b);
	return kept;
}

static void found_text(const struct summary *s, bool warn, struct place_text *out)
{
	char a[SHORT_TEXT], b[SHORT_TEXT];
	snprintf(out->line[0], CELL_TEXT, "%s%s / %s", warn ? "!" : "", perplexity_text(s->perplexity, a),
		 accuracy_text(s->accuracy, b));
	if (s->done > 1)
		snprintf(out->line[1], CELL_TEXT, "(%s - %s)", perplexity_text(s->least, a),
			 perplexity_text(s->greatest, b));
	if (s->done < s->seeds)
		snprintf(out->line[s->done > 1 ? 2 : 1], CELL_TEXT, "%d of %d seeds", s->done, s->seeds);
}

static struct place_text summary_text(const struct summary *s, bool warn)
{
	static const char *const word[] = {
		[SUMMARY_EMPTY] = "n/a",
		[SUMMARY_ABSENT] = "-",
		[SUMMARY_IMPOSSIBLE] = "n/a",
		[SUMMARY_DIVERGED] = "diverged",
	};
	struct place_text out = { 0 };
	if (s->state == SUMMARY_FOUND)
		found_text(s, warn, &out);
	else
		snprintf(out.line[0], CELL_TEXT, "%s", word[s->state]);
	return out;
}

static bool headline(const struct cell *c, const char *group)
{
	return !strcmp(task_of(&c->config.data.task)->groups[0], group);
}

static void add_method(const struct results *r, int cells, int scaling, const char *group, struct text_table *t)
{
	struct text_row row = { .label = table_label(r, cells, scaling) };
	const struct cell *c = &r->grid->cell[results_first(r, cells)];
	for (int i = 0; i < t->columns; i++) {
		struct summary s = results_summary(r, cells, scaling, t->multiple[i], group);
		bool warn = headline(c, group) && t->multiple[i] == 1 && s.perplexity > FLOOR_REACHED * s.floor;
		arrput(row.place, summary_text(&s, warn));
	}
	arrput(t->row, row);
}

/* Which cells share their sequences, and so what chance gets, with an earlier group of cells? */
static bool same_sequences(const struct cell *a, const struct cell *b)
{
	return a->config.model.train_length == b->config.model.train_length &&
	       a->config.eval.eval_seed == b->config.eval.eval_seed &&
	       a->config.eval.sequences == b->config.eval.sequences &&
	       !strcmp(label_of(&a->config.data.task), label_of(&b->config.data.task));
}

static bool chance_shown(const struct results *r, int cells)
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

static void put_chance(struct text_table *t, int row, int column, const struct eval_reference *reference,
		       const char *where)
{
	while (arrlen(t->row) <= row) {
		struct text_builder b = { 0 };
		text_add(&b, "chance: %s%s", reference->name, where);
		struct text_row made = { .label = text_keep(b.data) };
		text_builder_free(&b);
		for (int i = 0; i < t->columns; i++)
			arrput(made.place, (struct place_text){ 0 });
		arrput(t->row, made);
	}
	char a[SHORT_TEXT], p[SHORT_TEXT];
	snprintf(t->row[row].place[column].line[0], CELL_TEXT, "%s / %s", perplexity_text(reference->perplexity, a),
		 accuracy_text(reference->accuracy, p));
}

static struct err add_chance(const struct results *r, int cells, const char *group, struct text_table *t)
{
	const struct cell *c = &r->grid->cell[results_first(r, cells)];
	const struct method *task = &c->config.data.task;
	struct chance_request q = {
		.task = task, .train_length = (int)c->config.model.train_length,
		.sequences = (int)c->config.eval.sequences, .eval_seed = (uint64_t)c->config.eval.eval_seed,
		.group = group_index(task_of(task), group),
	};
	if (q.group < 0 || chance_shown(r, cells))
		return OK;
	char where[96] = "";
	if (arrlen(t->row) > t->methods)
		snprintf(where, sizeof where, " (%s, train_length %d)", label_of(task), q.train_length);
	int first = (int)arrlen(t->row);
	for (int i = 0; i < t->columns; i++)
		for (int j = 0; j < c->lengths; j++) {
			if (c->multiple[j] != t->multiple[i])
				continue;
			struct eval_reference reference[EVAL_REFERENCES];
			int count;
			q.length = c->length[j];
			TRY(chance(&q, reference, &count));
			for (int k = 0; k < count; k++)
				put_chance(t, first + k, i, &reference[k], where);
		}
	return OK;
}

static struct err fill_table(const struct results *r, const char *group, struct text_table *t)
{
	for (int cells = 0; cells < r->grid->groups; cells++)
		for (int i = 0; i < r->grid->cell[results_first(r, cells)].scalings; i++)
			add_method(r, cells, i, group, t);
	t->methods = (int)arrlen(t->row);
	for (int cells = 0; cells < r->grid->groups; cells++)
		TRY(add_chance(r, cells, group, t));
	return OK;
}

static int column_width(const struct text_table *t)
{
	int width = 8;
	for (int i = 0; i < arrlen(t->row); i++)
		for (int j = 0; j < t->columns; j++)
			for (int k = 0; k < CELL_LINES; k++) {
				int n = (int)strlen(t->row[i].place[j].line[k]);
				width = n > width ? n : width;
			}
	return width + 2;
}

static const char **label_lines(const char *label, int width)
{
	return wrap(label, width, " ,(", 2);
}

static int label_width(const struct text_table *t, int columns_width)
{
	int room = PAGE_WIDTH - columns_width, width = 0;
	room = room < LABEL_LEAST ? LABEL_LEAST : room;
	for (int i = 0; i < arrlen(t->row); i++) {
		const char **line = label_lines(t->row[i].label, room);
		for (int j = 0; j < arrlen(line); j++)
			width = (int)strlen(line[j]) > width ? (int)strlen(line[j]) : width;
		arrfree(line);
	}
	return width;
}

static int place_lines(const struct text_row *row, int columns)
{
	int lines = 1;
	for (int i = 0; i < columns; i++)
		for (int j = lines; j < CELL_LINES; j++)
			lines = *row->place[i].line[j] ? j + 1 : lines;
	return lines;
}

static void print_row(const struct text_row *row, int columns, int label, int width, struct text_builder *b)
{
	const char **name = label_lines(row->label, label);
	int lines = place_lines(row, columns);
	lines = arrlen(name) > lines ? (int)arrlen(name) : lines;
	for (int i = 0; i < lines; i++) {
		const char *shown = i < arrlen(name) ? name[i] : "";
		int last = i < CELL_LINES ? columns : 0;
		while (last && !*row->place[last - 1].line[i])
			last--;
		text_add(b, "%-*s", last ? label : 0, shown);
		for (int j = 0; j < last; j++)
			text_add(b, "%*s", width, row->place[j].line[i]);
		text_add(b, "\n");
	}
	arrfree(name);
}

static void print_rule(int width, struct text_builder *b)
{
	for (int i = 0; i < width; i++)
		text_add(b, "-");
	text_add(b, "\n");
}

static void print_heads(const struct text_table *t, int label, int width, struct text_builder *b)
{
	text_add(b, "%*s", label, "");
	for (int i = 0; i < t->columns; i++) {
		char number[NUMBER_TEXT], head[NUMBER_TEXT + 1];
		snprintf(head, sizeof head, "%sx", number_to_text(t->multiple[i], number));
		text_add(b, "%*s", width, head);
	}
	text_add(b, "\n");
}

static void print_table(const struct text_table *t, struct text_builder *b)
{
	int width = column_width(t), label = label_width(t, width * t->columns);
	int whole = label + width * t->columns;
	print_heads(t, label, width, b);
	print_rule(whole, b);
	for (int i = 0; i < arrlen(t->row); i++) {
		if (i == t->methods)
			print_rule(whole, b);
		print_row(&t->row[i], t->columns, label, width, b);
	}
}

/* "rope, alibi(slopes=spread)": what the cells have of one option, each once. */
static void add_values(const struct results *r, const char *option, struct text_builder *b)
{
	const char **seen = NULL;
	for (int i = 0; i < arrlen(r->grid->cell); i++) {
		struct text_builder value = { 0 };
		config_value(&r->grid->cell[i].config, option, &value);
		const char *text = text_keep(value.data);
		text_builder_free(&value);
		bool there = false;
		for (int j = 0; j < arrlen(seen); j++)
			there |= seen[j] == text;
		if (!there) {
			text_add(b, "%s%s", arrlen(seen) ? ", " : "", text);
			arrput(seen, text);
		}
	}
	arrfree(seen);
}

static void print_title(const struct results *r, const char *group, struct text_builder *b)
{
	static const char *const option[] = { "encoding", "task", "train_length", "seed" };
	struct text_builder title = { 0 };
	text_add(b, "%s: perplexity / accuracy in %%; (least - greatest perplexity over seeds)\n", group);
	for (size_t i = 0; i < sizeof option / sizeof option[0]; i++) {
		text_add(&title, "%s%s ", i ? "; " : "", option[i]);
		add_values(r, option[i], &title);
	}
	wrap_paragraph(b, title.data);
	text_builder_free(&title);
}

struct err table_text(const struct results *r, const char *group, struct text_builder *b)
{
	struct text_table t = { .multiple = r->grid->multiple, .columns = (int)arrlen(r->grid->multiple) };
	struct err e = fill_table(r, group, &t);
	if (!e.code) {
		print_title(r, group, b);
		print_table(&t, b);
	}
	for (int i = 0; i < arrlen(t.row); i++)
		arrfree(t.row[i].place);
	arrfree(t.row);
	return e;
}
