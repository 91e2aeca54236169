#include "runs/show/notes.h"

#include "model/base/io.h"
#include "model/base/stb.h"
#include "model/position/scaling.h"
#include "runs/arguments.h"
#include "runs/progress.h"
#include "runs/run/run_folder.h"
#include "runs/run/run_train.h"
#include "runs/show/once.h"
#include "runs/show/table.h"
#include "runs/show/wrap.h"
#include "train/course.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void flush(struct text_builder *paragraph, struct text_builder *b)
{
	wrap_paragraph(b, paragraph->data);
	text_builder_free(paragraph);
}

static const struct cell *first_cell(const struct results *r, int cells)
{
	return &r->grid->cell[results_first(r, cells)];
}

/* "rope: ", or nothing where there is one kind of cells. */
static void add_label(const struct results *r, int cells, struct text_builder *p)
{
	const struct cell *c = first_cell(r, cells);
	if (r->grid->groups > 1)
		text_add(p, "%s%s%s: ", *c->label ? c->label : "as trained", c->tuned ? ", " : "", c->tuned ? c->tuned : "");
}

static void floor_line(const struct results *r, int cells, bool warnings, struct text_builder *b)
{
	struct reached n = results_reached(r, cells);
	bool above = n.reached < n.known;
	if (above != warnings || !n.known)
		return;
	struct text_builder p = { 0 };
	text_add(&p, "%s", warnings ? "warning: " : "");
	add_label(r, cells, &p);
	text_add(&p, "reached the floor in %d of %d seeds (perplexity at 1x at most %g times it)", n.reached, n.seeds,
		 FLOOR_REACHED);
	if (n.known < n.seeds)
		text_add(&p, ", %d not known yet", n.seeds - n.known);
	text_add(&p, "%s", warnings ? "; do not read longer lengths of a model that is above it at 1x." : ".");
	flush(&p, b);
}

static void diverged_line(const struct results *r, struct text_builder *b)
{
	struct text_builder p = { 0 };
	int count = 0, lost = 0;
	for (int i = 0; i < arrlen(r->cell); i++) {
		bool diverged = r->cell[i].status == CELL_DIVERGED;
		lost += diverged && !r->cell[i].record;
		if (diverged && r->cell[i].record)
			text_add(&p, "%s%s", count++ ? ", " : "warning: diverged in training: ",
				 run_folder_name(r->cell[i].folder));
	}
	if (!count)
		return;
	text_add(&p, " (%d of %d models); means are over the other seeds.", count, (int)arrlen(r->cell));
	if (lost)
		text_add(&p, " What was to be fine-tuned from them (%d models) is shown as diverged too.", lost);
	flush(&p, b);
}

static const char *text_in(const json_t *record, const char *name)
{
	const char *text = json_string_value(json_object_get(record, name));
	char line[200];
	if (!text)
		return "unknown";
	text_printable(text, line, sizeof line);
	return text_keep(line);
}

/* "0.1 commit abc, gcc 12.2, OpenBLAS 0.3 core Haswell pthread, float, 2 threads": what computed a cell; kept. */
static const char *machine_of(const json_t *record)
{
	const json_t *blas = json_object_get(record, "blas");
	struct text_builder b = { 0 };
	text_add(&b, "ropewalk %s commit %s, %s, %s core %s %s, %s, %d threads", text_in(record, "version"),
		 text_in(record, "commit"), text_in(record, "compiler"), text_in(blas, "library"),
		 text_in(blas, "core"), text_in(blas, "flavour"), text_in(record, "real"),
		 (int)json_integer_value(json_object_get(record, "threads")));
	const char *kept = text_keep(b.data);
	text_builder_free(&b);
	return kept;
}

static const char **machines(const struct results *r)
{
	const char **seen = NULL;
	for (int i = 0; i < arrlen(r->cell); i++) {
		if (!r->cell[i].record)
			continue;
		once(&seen, machine_of(r->cell[i].record));
	}
	return seen;
}

static void versions_warning(const struct results *r, struct text_builder *b)
{
	int others = 0;
	const json_t *first = NULL;
	for (int i = 0; i < arrlen(r->cell); i++) {
		const json_t *record = r->cell[i].record;
		first = first ? first : record;
		others += record && (strcmp(text_in(record, "commit"), text_in(first, "commit")) ||
				     strcmp(text_in(record, "version"), text_in(first, "version")));
	}
	if (!others)
		return;
	struct text_builder p = { 0 };
	text_add(&p, "warning: %d of %d models were trained by another version of the program than the first.", others,
		 (int)arrlen(r->cell));
	flush(&p, b);
}

static void stream_warning(const struct results *r, struct text_builder *b)
{
	if (first_cell(r, 0)->config.eval.stream == EVAL_TUNE)
		wrap_paragraph(b, "warning: these are the sequences of stream tune, which are for choosing options; report "
				  "what was chosen on stream report.");
}

static bool is_cell(const struct results *r, const char *path)
{
	for (int i = 0; i < arrlen(r->cell); i++)
		if (!strcmp(r->cell[i].folder, path))
			return true;
	return false;
}

/* Finished models in the folder that the study does not ask for: its `study` was narrowed, or cut off. */
static void strangers_warning(const struct results *r, struct text_builder *b)
{
	struct text_builder p = { 0 };
	char **name = NULL;
	int count = 0, names = 0;
	/* A folder that cannot be listed has shown its models all the same. */
	io_list(r->folder, &name, &names);
	for (int i = 0; i < names; i++) {
		char *path = io_join(r->folder, name[i]);
		if (*name[i] != '.' && !is_cell(r, path) && !strcmp(run_folder_status(path), "finished"))
			count++;
		free(path);
	}
	io_names_free(name, names);
	text_add(&p, "warning: %d finished models in %s are not of this study: it asks for less than it did, or its file "
		     "`study` was cut off (`ropewalk study FILE --out=%s` puts it back).", count, r->folder,
		     shell_word(r->folder));
	if (count)
		flush(&p, b);
	text_builder_free(&p);
}

void notes_warnings(const struct results *r, struct text_builder *b)
{
	stream_warning(r, b);
	for (int cells = 0; cells < r->grid->groups; cells++)
		floor_line(r, cells, true, b);
	diverged_line(r, b);
	versions_warning(r, b);
	strangers_warning(r, b);
	notes_ramp_warnings(r, b);
}

static void marks_line(struct text_builder *b)
{
	wrap_paragraph(b, "Perplexity is the geometric mean over seeds, accuracy the mean. `!`: above 1.1 times the "
			  "floor at 1x. `*`: not to be told from the best of its column (the 95 % t interval of the "
			  "paired difference over seeds, each row on its own, reaches 0). `+-x eval`: standard "
			  "error of the perplexity that comes from the evaluated sequences (clustered by sequence), where it "
			  "exceeds half the spread of the seeds. `-`: not computed yet. `n/a`: the model cannot take it.");
}

static void bytes_line(const struct results *r, struct text_builder *b)
{
	bool bytes = false;
	for (int cells = 0; cells < r->grid->groups; cells++)
		bytes |= task_of(&first_cell(r, cells)->config.data.task)->bytes;
	if (bytes)
		wrap_paragraph(b, "Bits per byte are the mean NLL over seeds, log2 of the perplexity; `+-x eval` is then in "
				  "bits, too.");
}

/* What stands below the rule. */
static void references_line(const struct results *r, struct text_builder *b)
{
	struct text_builder p = { 0 };
	const struct cell *c = first_cell(r, 0);
	text_add(&p, "references:");
	if (c->references)
		text_add(&p, " scaling %s: the same weights, each token attending to the last train_length keys: a row "
			     "that does not beat it gains nothing from the longer sequence;", c->scaling_label[c->scalings - 1]);
	text_add(&p, " the others need no model and are exact on the evaluated sequences (perplexity of their "
		     "probabilities; accuracy: how often a draw from these is right).");
	if (protocol_kind_of(&c->config.eval.protocol) > PROTOCOL_HALF)
		text_add(&p, " They, and the floor, are known where a window is its whole document alone.");
	flush(&p, b);
}

static void section_lines(const struct results *r, struct text_builder *b)
{
	for (int i = 0; i < arrlen(r->study->section); i++) {
		const struct study_section *section = &r->study->section[i];
		if (!arrlen(section->line))
			continue;
		struct text_builder p = { 0 };
		text_add(&p, "[%d] %s=%s: ", i + 1, section->name, section->value);
		section_text(section, &p);
		text_add(&p, ".");
		flush(&p, b);
	}
}

static void protocol_lines(const struct results *r, struct text_builder *b)
{
	const char **seen = NULL;
	for (int i = 0; i < arrlen(r->cell); i++)
		for (int j = 0; j < r->grid->cell[i].scalings; j++)
			for (int k = 0; k < arrlen(r->cell[i].row[j]); k++) {
				const struct row *row = &r->cell[i].row[j][k];
				if (cell_owns(&r->grid->cell[i], j, row))
					once(&seen, row->protocol);
			}
	for (int i = 0; i < arrlen(seen); i++) {
		struct text_builder p = { 0 };
		text_add(&p, "protocol: %s.", seen[i]);
		flush(&p, b);
	}
	arrfree(seen);
}

/* Scored tokens of a cell, whichever scaling has been computed: they are the same for all. */
static int64_t scored_at(const struct results *r, int cells, double multiple, const char *group)
{
	int64_t scored = 0;
	for (int i = 0; i < first_cell(r, cells)->scalings && !scored; i++)
		scored = results_summary(r, cells, i, multiple, group).scored;
	return scored;
}

static void add_scored(const struct results *r, int cells, const char *group, struct text_builder *p)
{
	text_add(p, "%s", group);
	for (int i = 0; i < arrlen(r->grid->multiple); i++) {
		char number[NUMBER_TEXT];
		int64_t scored = scored_at(r, cells, r->grid->multiple[i], group);
		if (scored)
			text_add(p, " %sx %" PRId64, number_to_text(r->grid->multiple[i], number), scored);
	}
}

static void scored_line(const struct results *r, struct text_builder *b)
{
	const struct eval_options *eval = &first_cell(r, 0)->config.eval;
	struct text_builder p = { 0 };
	text_add(&p, "scored tokens a cell, %" PRId64 " sequences (eval_seed %" PRId64 ", the same for every model): ",
		 eval->sequences, eval->eval_seed);
	const char **group = table_groups(r);
	for (int i = 0; i < arrlen(group); i++) {
		text_add(&p, "%s", i ? "; " : "");
		add_scored(r, 0, group[i], &p);
	}
	arrfree(group);
	text_add(&p, ".");
	flush(&p, b);
}

/* Options that were chosen by looking: every method measured on stream tune in a folder of the study. */
static void search_line(const struct results *r, struct text_builder *b)
{
	const char **label = NULL, **seen = NULL;
	for (int i = 0; i < arrlen(r->cell); i++) {
		struct err e = OK;
		if (r->cell[i].status >= CELL_FINISHED)
			e = run_folder_searched(r->cell[i].folder, &label);
		if (e.code && !r->late->code)
			*r->late = e;
	}
	struct text_builder p = { 0 };
	text_add(&p, "searched on stream tune, sequences of its own:");
	for (int i = 0; i < arrlen(label); i++)
		if (once(&seen, label[i]))
			text_add(&p, "%s %s", arrlen(seen) > 1 ? ";" : "", label[i]);
	text_add(&p, " (%d methods measured before options were chosen).", (int)arrlen(seen));
	if (arrlen(seen))
		flush(&p, b);
	text_builder_free(&p);
	arrfree(label);
	arrfree(seen);
}

static bool same_steps(const struct cell *c)
{
	for (int i = 1; i < arrlen(c); i++)
		if (c[i].config.train.steps != c->config.train.steps ||
		    c[i].config.train.batch != c->config.train.batch)
			return false;
	return true;
}

static void seeds_line(const struct results *r, struct text_builder *b)
{
	struct text_builder p = { 0 };
	text_add(&p, "seeds: ");
	const struct cell *c = r->grid->cell;
	int shown = 0;
	for (int i = 0; i < arrlen(c); i++)
		if (c[i].group == 0)
			text_add(&p, "%s%" PRId64, shown++ ? ", " : "", c[i].config.train.seed);
	text_add(&p, ". Models: %d", (int)arrlen(c));
	if (same_steps(c))
		text_add(&p, ", trained for %" PRId64 " steps of %" PRId64 " sequences", c->config.train.steps,
			 c->config.train.batch);
	text_add(&p, ".");
	flush(&p, b);
}

static bool add_order(const struct results *r, int cells, int scaling, bool begun, struct text_builder *p)
{
	const struct cell *c = first_cell(r, cells);
	struct order n = results_order(r, cells, scaling, scaling - 1);
	if (!n.compared)
		return false;
	text_add(p, "%s%s beat %s in %d of %d", begun ? "; " : "", c->scaling_label[scaling],
		 c->scaling_label[scaling - 1], n.better, n.compared);
	return true;
}

static void order_lines(const struct results *r, struct text_builder *b)
{
	for (int cells = 0; cells < r->grid->groups; cells++) {
		struct text_builder p = { 0 };
		bool any = false;
		text_add(&p, "in pairs, each row with the one above it (same weights and sequences; cells: seeds x "
			     "multiples beyond 1x): ");
		add_label(r, cells, &p);
		for (int i = 1; i < first_cell(r, cells)->scalings - first_cell(r, cells)->references; i++)
			any |= add_order(r, cells, i, any, &p);
		text_add(&p, ".");
		if (any)
			flush(&p, b);
		text_builder_free(&p);
	}
}

/* Recall asks more often as it grows, unless told to grow by filler; by other protocols some of it is not counted. */
static void caution_line(const struct results *r, struct text_builder *b)
{
	const struct cell *c = first_cell(r, 0);
	const struct method *task = &c->config.data.task;
	int pairs = method_find(task->entry, "pairs"), grow = method_find(task->entry, "grow");
	bool whole = protocol_kind_of(&c->config.eval.protocol) == PROTOCOL_ALL;
	if (pairs < 0 || grow < 0 || task->value[grow].integer || !whole)
		return;
	int last = (int)arrlen(r->grid->multiple) - 1;
	double times[2], share = (double)c->config.eval.sequences * (double)task->value[pairs].integer;
	for (int i = 0; i < 2; i++)
		times[i] = (double)scored_at(r, 0, r->grid->multiple[i * last], task_of(task)->groups[0]) / share;
	struct text_builder p = { 0 };
	text_add(&p, "caution: as the sequence grows each key is queried more often");
	if (times[0] > 0 && times[1] > times[0])
		text_add(&p, " (%.0f times at %gx, %.0f at %gx)", times[0], r->grid->multiple[0], times[1],
			 r->grid->multiple[last]);
	text_add(&p, ", and every earlier query is a look-alike for the match: length, distance and the number of "
		     "look-alikes grow together. recall(grow=filler) keeps the questions of 1x and adds filler only.");
	flush(&p, b);
}

static int64_t tokens_before(const struct results *r, const struct cell *c)
{
	const struct config *base = &r->grid->cell[c->base].config;
	return course_tokens(&base->model, &base->train, base->train.steps);
}

/* What the rows that were fine-tuned have had more than those they began as. */
static void tuned_line(const struct results *r, struct text_builder *b)
{
	const struct train_options *last = NULL;
	for (int cells = 0; cells < r->grid->groups; cells++) {
		const struct cell *c = first_cell(r, cells);
		const struct train_options *t = &c->config.train;
		if (!c->tuned || (last && last->length == t->length && last->batch == t->batch && last->steps == t->steps))
			continue;
		last = t;
		struct text_builder p = { 0 };
		text_add(&p, "fine-tuned: %" PRId64 " more steps at length %" PRId64 " (%gx) in batches of %" PRId64 ", %" PRId64
			     " tokens in all (%" PRId64 " before), lr %g, on the weights of the row it began as, all by the "
			     "same batches; none is the control: trained on as long without scaling.",
			 t->steps, t->length, (double)t->length / (double)c->config.model.train_length, t->batch,
			 course_tokens(&c->config.model, t, t->steps), tokens_before(r, c), t->lr);
		flush(&p, b);
	}
}

static void machine_lines(const struct results *r, struct text_builder *b)
{
	const char **seen = machines(r);
	for (int i = 0; i < arrlen(seen); i++) {
		struct text_builder p = { 0 };
		text_add(&p, "computed by: %s.", seen[i]);
		flush(&p, b);
	}
	arrfree(seen);
}

static void cost_line(const struct results *r, struct text_builder *b)
{
	size_t parameters = 0, bytes = 0;
	for (int i = 0; i < arrlen(r->grid->cell); i++) {
		struct train_plan plan;
		const struct cell *c = &r->grid->cell[i];
		if ((c->tuned ? run_train_check_from(&c->config, &plan) : run_train_check(&c->config, &plan)).code)
			continue;
		size_t needed = plan.slabs + plan.activations + plan.batch;
		bytes = needed > bytes ? needed : bytes;
		parameters = plan.parameters > parameters ? plan.parameters : parameters;
	}
	char memory[32], time[32];
	struct text_builder p = { 0 };
	text_add(&p, "parameters at most %zu, memory of training %s, wall time %s.", parameters,
		 memory_text(bytes, memory), duration_text(study_folder_seconds(r->folder), time));
	flush(&p, b);
}

/* Where to go from here. */
static void more_line(const struct results *r, struct text_builder *b)
{
	struct text_builder p = { 0 };
	text_add(&p, "more: `ropewalk table %s --against=ROW` compares in pairs, `--format=json` has every number; `ropewalk "
		     "decompose %s` divides a failure into position and crowding, `ropewalk inspect` shows a method's "
		     "numbers.", shell_word(r->folder), shell_word(r->folder));
	flush(&p, b);
}

void notes_text(const struct results *r, struct text_builder *b)
{
	notes_warnings(r, b);
	for (int cells = 0; cells < r->grid->groups; cells++)
		floor_line(r, cells, false, b);
	section_lines(r, b);
	marks_line(b);
	bytes_line(r, b);
	references_line(r, b);
	protocol_lines(r, b);
	scored_line(r, b);
	search_line(r, b);
	seeds_line(r, b);
	notes_factors(r, b);
	notes_ramp(r, b);
	order_lines(r, b);
	caution_line(r, b);
	tuned_line(r, b);
	machine_lines(r, b);
	cost_line(r, b);
	text_add(b, "command: %s\n", study_folder_command(r->folder));
	more_line(r, b);
}
