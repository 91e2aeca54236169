#include "runs/show/tuned.h"

#include "eval/perplexity.h"
#include "model/base/io.h"
#include "model/base/stb.h"
#include "model/position/scaling.h"
#include "runs/run/run_eval.h"
#include "runs/run/run_folder.h"
#include "runs/run/run_model.h"
#include "train/course.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORD "finetune"
enum { ROWS = 4 };

struct tuned {
	const char *base, *folder;
	struct config before, after; /* of base and tuned run; `after` with the options of evaluation */
	bool control;
	const char *scaling;         /* its label */
	int *length, lengths;
	double *multiple;
	struct tuned_row {
		const char *label;
		struct row *rows;    /* stb_ds array: those asked for */
	} row[ROWS];
};

bool tuned_is_run(const char *folder)
{
	const char *status = run_folder_status(folder);
	return io_is_folder(folder) && strcmp(status, "absent") && strcmp(status, "a study");
}

struct err tuned_record(const char *folder, const struct config *c, bool control)
{
	return run_record_update(folder, json_pack("{s:{s:s, s:I, s:I, s:b}}", RECORD, "multiples", c->eval.multiples,
						   "sequences", (json_int_t)c->eval.sequences, "eval_seed",
						   (json_int_t)c->eval.eval_seed, "control", control));
}

static struct err read_record(struct tuned *t)
{
	json_t *record;
	TRY(run_record_read(t->folder, &record));
	const json_t *how = json_object_get(record, RECORD);
	const char *multiples = json_string_value(json_object_get(how, "multiples"));
	t->after.eval.multiples = text_keep(multiples ? multiples : "1");
	t->after.eval.sequences = json_integer_value(json_object_get(how, "sequences"));
	t->after.eval.eval_seed = json_integer_value(json_object_get(how, "eval_seed"));
	t->control = json_is_true(json_object_get(how, "control"));
	json_decref(record);
	if (multiples)
		return OK;
	return err_usage("`ropewalk finetune DIR --out=DIR2` makes one.", "%s: is no fine-tuned run that was evaluated",
			 t->folder);
}

static struct err open_runs(struct tuned *t)
{
	struct scope scope = { .command = "a run", .lists = LIST_TRAINING | LIST_EVAL };
	char *base, *folder = NULL;
	const char *sum;
	config_init(&t->before, &scope, NULL);
	config_init(&t->after, &scope, NULL);
	TRY(run_folder_open(t->base, &t->before, &base));
	t->base = text_keep(base);
	free(base);
	TRY(run_folder_open(t->folder, &t->after, &folder));
	t->folder = text_keep(folder);
	free(folder);
	TRY(run_model_sum(t->base, &sum));
	if (!course_tunes(&t->after.train) || strcmp(t->after.train.base, sum))
		return err_usage("Name the base first, then the folder that `ropewalk finetune` made of it.",
				 "%s: was not fine-tuned from %s", t->folder, t->base);
	t->scaling = label_of(&t->after.model.trained_scaling);
	TRY(read_record(t));
	return eval_lengths(t->after.eval.multiples, (int)t->after.model.train_length, &t->after.data, &t->length,
			    &t->multiple, &t->lengths);
}

static bool wanted(const struct tuned *t, const struct row *r)
{
	bool length = false;
	for (int i = 0; i < t->lengths; i++)
		length |= t->length[i] == r->length;
	return length && r->eval_seed == t->after.eval.eval_seed && r->sequences == t->after.eval.sequences &&
	       !strcmp(r->task, label_of(&t->after.data.task));
}

static struct err read_row(struct tuned *t, int index, const char *folder, const char *scaling, const char *what)
{
	struct row *all = NULL;
	struct text_builder label = { 0 };
	char *path = run_folder_csv(folder, &t->after.eval, scaling, false);
	struct err e = rows_read(path, &all);
	for (ptrdiff_t i = 0; i < arrlen(all); i++)
		if (wanted(t, &all[i]))
			arrput(t->row[index].rows, all[i]);
	text_add(&label, "%s, %s", scaling, what);
	t->row[index].label = text_keep(label.data);
	text_builder_free(&label);
	arrfree(all);
	free(path);
	return e;
}

static struct err read_rows(struct tuned *t)
{
	char *control = io_join(t->folder, TUNED_CONTROL);
	struct err e = read_row(t, 0, t->base, "none", "as trained");
	if (!e.code)
		e = read_row(t, 1, t->base, t->scaling, "as trained");
	if (!e.code)
		e = read_row(t, 2, t->folder, t->scaling, "fine-tuned");
	if (!e.code && t->control)
		e = read_row(t, 3, control, "none", "fine-tuned");
	free(control);
	return e;
}

static const struct row *find(const struct tuned_row *from, int length, const char *group)
{
	for (ptrdiff_t i = 0; i < arrlen(from->rows); i++)
		if (from->rows[i].length == length && !strcmp(from->rows[i].group, group))
			return &from->rows[i];
	return NULL;
}

static void fill_cell(const struct row *row, double V, struct sheet_cell *to)
{
	char a[SHORT_TEXT], b[SHORT_TEXT];
	snprintf(to->line[0], SHEET_TEXT, "%s", row ? "n/a" : "-");
	if (!row || !row->cell.scored)
		return;
	snprintf(to->line[0], SHEET_TEXT, "%s / %s", perplexity_text(row->cell.perplexity, a),
		 accuracy_text(row->cell.accuracy, b));
	to->heat = nll_heat(row->cell.nll, row->cell.floor, V);
}

static void make_sheet(const struct tuned *t, const char *group, struct sheet *sheet)
{
	struct text_builder title = { 0 };
	const struct task *task = task_of(&t->after.data.task);
	*sheet = (struct sheet){ 0 };
	text_add(&title, "%s: perplexity / accuracy in %%, by multiple of train_length %" PRId64, group,
		 t->after.model.train_length);
	sheet->title = text_keep(title.data);
	text_builder_free(&title);
	for (int i = 0; i < t->lengths; i++) {
		char head[32];
		snprintf(head, sizeof head, "%gx", t->multiple[i]);
		arrput(sheet->column, text_keep(head));
	}
	for (int row = 0; row < ROWS - !t->control; row++) {
		struct sheet_row *to = sheet_add(sheet, t->row[row].label);
		to->ruled = row == 2;
		for (int i = 0; i < t->lengths; i++)
			fill_cell(find(&t->row[row], t->length[i], group), task->vocabulary(&t->after.data.task),
				  &to->cell[i]);
	}
}

static void add_notes(const struct tuned *t, struct text_builder *b)
{
	const struct train_options *train = &t->after.train;
	int length = course_longest(&t->after.model, train);
	text_add(b, "as trained: %s; fine-tuned: %s.\n", t->base, t->folder);
	text_add(b, "%s, %s, seed %" PRId64 "; as trained: %" PRId64 " steps at length %d.\n",
		 label_of(&t->after.model.encoding), label_of(&t->after.data.task), train->seed, t->before.train.steps,
		 course_longest(&t->before.model, &t->before.train));
	text_add(b, "fine-tuned: %" PRId64 " more steps at length %d (%gx) in batches of %" PRId64 ", %" PRId64
		 " tokens in all, lr %g%s.\n", train->steps, length,
		 (double)length / (double)t->after.model.train_length, train->batch,
		 course_tokens(&t->after.model, train, train->steps), train->lr,
		 t->control ? "; none likewise, by the same batches" : "");
	text_add(b, "evaluated on %" PRId64 " sequences a length, eval_seed %" PRId64 ": %s.\n",
		 t->after.eval.sequences, t->after.eval.eval_seed, run_protocol(&t->after));
}

static void print_sheets(const struct tuned *t, enum format format)
{
	struct text_builder b = { 0 }, notes = { 0 };
	const struct task *task = task_of(&t->after.data.task);
	for (int i = 0; i < TASK_GROUPS && task->groups[i]; i++) {
		struct sheet sheet;
		make_sheet(t, task->groups[i], &sheet);
		format_sheet(format, &sheet, &b);
		sheet_free(&sheet);
	}
	add_notes(t, &notes);
	format_notes(format, notes.data, &b);
	fputs(b.data, stdout);
	text_builder_free(&b);
	text_builder_free(&notes);
}

static void print_rows(const struct tuned *t, enum format format)
{
	struct records records = { 0 };
	struct text_builder b = { 0 };
	struct row *all = NULL;
	for (int row = 0; row < ROWS; row++)
		for (ptrdiff_t i = 0; i < arrlen(t->row[row].rows); i++)
			arrput(all, t->row[row].rows[i]);
	rows_records(all, (int)arrlen(all), &records);
	if (format == FORMAT_JSON) {
		records_json(&records, 0, &b);
		text_add(&b, "\n");
	} else {
		records_csv(&records, true, &b);
	}
	fputs(b.data, stdout);
	arrfree(all);
	text_builder_free(&b);
	records_free(&records);
}

struct err tuned_print(const char *base, const char *folder, enum format format)
{
	struct tuned t = { .base = base, .folder = folder };
	struct err e = open_runs(&t);
	if (!e.code)
		e = read_rows(&t);
	if (!e.code && format_sheets(format))
		print_sheets(&t, format);
	else if (!e.code)
		print_rows(&t, format);
	for (int row = 0; row < ROWS; row++)
		arrfree(t.row[row].rows);
	free(t.length);
	free(t.multiple);
	return e;
}
