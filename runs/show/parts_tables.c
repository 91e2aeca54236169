#include "runs/show/parts_tables.h"

#include "model/base/stb.h"
#include "runs/run/run_eval.h"
#include "runs/run/run_folder.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const part_words[] = { "layer", "head", "pair" };

/* "layer 1, head 0" */
static void add_part(const struct part *p, struct text_builder *b)
{
	const int at[] = { p->layer, p->head, p->pair };
	const char *between = "";
	for (int i = 0; i < 3; i++)
		if (at[i] >= 0) {
			text_add(b, "%s%s %d", between, part_words[i], at[i]);
			between = ", ";
		}
}

/* How a setting is called in records, and what stands before its part in a row's label. */
static const char *role_of(const struct parts_question *q, const struct part_setting *s)
{
	if (s->inside == s->outside)
		return !q->shares ? "intact" : s->inside == PAIR_TRAINED ? "none" : "everywhere";
	if (s->inside == PAIR_STILL)
		return "still";
	if (s->inside == PAIR_REMOVED)
		return "removed";
	return s->inside == PAIR_SCALED ? "only" : "all but";
}

static const char *label_of_setting(const struct parts_question *q, const struct part_setting *s)
{
	struct text_builder b = { 0 };
	bool whole = s->inside == s->outside;
	if (whole && q->shares && s->inside != PAIR_TRAINED)
		text_add(&b, "%s ", label_of(q->scaling));
	if (whole || q->shares)
		text_add(&b, "%s ", role_of(q, s));
	add_part(&s->part, &b);
	const char *kept = text_keep(b.data);
	text_builder_free(&b);
	return kept;
}

bool pair_turns(const struct examined *x, double inv_freq, double *wavelength, double *rotations)
{
	*wavelength = 2 * M_PI / inv_freq;
	*rotations = (double)x->config->model.train_length / *wavelength;
	return inv_freq > 0;
}

const char *share_text(const struct paired_share *s, char text[SHEET_TEXT])
{
	double percent = round(100 * s->value) + 0.0; /* no -0 */
	if (s->way == WAY_KNOWN)
		snprintf(text, SHEET_TEXT, "%.0f +- %.0f %%", percent, 100 * s->se);
	else
		snprintf(text, SHEET_TEXT, s->way == WAY_SHORT ? "n/a: same" : "n/a: noise");
	return text;
}

void examined_fill(const struct examined *x, const struct eval_cell *c, struct sheet_cell *out)
{
	char a[SHORT_TEXT], b[SHORT_TEXT];
	snprintf(out->line[0], SHEET_TEXT, "%s / %s", perplexity_text(c->perplexity, a),
		 accuracy_text(c->accuracy, b));
	out->heat = c->nll / log(x->model.V);
}

/* The frequencies of the pairs, where the rows are pairs. */
struct turns {
	bool shown;
	double *inv_freq; /* stb_ds */
};

static struct turns turns_of(const struct parts_question *q)
{
	struct turns t = { 0 };
	struct place p = place_of(&q->run->model.options);
	struct method none = method_default(scaling_at(0));
	for (int i = 0; i < arrlen(q->setting); i++)
		t.shown |= q->setting[i].part.pair >= 0;
	arrsetlen(t.inv_freq, (size_t)place_pairs(&p));
	parts_frequencies(&q->run->model, q->shares ? &none : q->scaling, q->run->length, t.inv_freq);
	return t;
}

static void fill_turns(const struct parts_question *q, const struct turns *t, int pair, struct sheet_row *row)
{
	double wavelength, rotations;
	if (pair < 0)
		return;
	if (!pair_turns(q->run, t->inv_freq[pair], &wavelength, &rotations)) {
		snprintf(row->cell[0].line[0], SHEET_TEXT, "still");
		return;
	}
	snprintf(row->cell[0].line[0], SHEET_TEXT, "%.1f", wavelength);
	snprintf(row->cell[1].line[0], SHEET_TEXT, "%.2f", rotations);
}

/* Accuracy that is lost beyond chance. */
static bool is_lost(const struct paired_change *c)
{
	return c->value <= -PAIRED_LEAST && c->value <= -2 * c->se;
}

/* The task's groups that lose: near and far are parts of the first, all of all. */
static void fill_served(const struct parts_question *q, const struct parts_answers *a, const struct parts_answer *of,
			struct sheet_cell *out)
{
	const struct task *task = task_of(&q->run->config->data.task);
	size_t used = 0;
	snprintf(out->line[0], SHEET_TEXT, "-");
	for (int g = 0; g < a->groups; g++)
		for (int i = 0; i < TASK_GROUPS && task->groups[i]; i++)
			if (!strcmp(task->groups[i], a->group[g]) && is_lost(&of->change[g]) && used < SHEET_TEXT)
				used += (size_t)snprintf(out->line[0] + used, SHEET_TEXT - used, "%s%s",
							 used ? ", " : "", a->group[g]);
}

static void fill_group(const struct parts_question *q, const struct parts_answer *of, int i, int group,
		       struct sheet_cell *out)
{
	char text[SHEET_TEXT];
	if (q->shares) {
		accuracy_text(of->cell[group].accuracy, text);
		snprintf(out->line[0], SHEET_TEXT, "%s", text);
		out->heat = 1 - of->cell[group].accuracy;
		if (i > 1)
			snprintf(out->line[1], SHEET_TEXT, "%s", share_text(&of->share[group], text));
	} else {
		examined_fill(q->run, &of->cell[group], out);
	}
	if (i > 0 && (!q->shares || i == 1))
		snprintf(out->line[1], SHEET_TEXT, "%+.1f +- %.1f", 100 * of->change[group].value,
			 100 * of->change[group].se);
}

static void fill_row(const struct parts_question *q, const struct parts_answers *a, const struct turns *t, int i,
		     struct sheet_row *row)
{
	const struct parts_answer *of = &a->answer[i];
	int column = t->shown ? 2 : 0;
	if (t->shown)
		fill_turns(q, t, q->setting[i].part.pair, row);
	for (int g = 0; g < a->groups; g++)
		if (a->answer[0].cell[g].scored)
			fill_group(q, of, i, g, &row->cell[column++]);
	if (!q->shares && i > 0)
		fill_served(q, a, of, &row->cell[column]);
}

static const char *title_of(const struct parts_question *q, int kind)
{
	struct text_builder b = { 0 };
	char number[NUMBER_TEXT];
	examined_name(q->run, &b);
	if (q->shares)
		text_add(&b, ": %s in parts, accuracy in %% at %sx", label_of(q->scaling),
			 number_to_text(q->run->multiple, number));
	else
		text_add(&b, ": pairs %s, perplexity / accuracy in %% at %sx",
			 kind == PAIR_STILL ? "that stand still" : "removed from the logits",
			 number_to_text(q->run->multiple, number));
	text_add(&b, "\n");
	examined_protocol(q->run, &b);
	const char *kept = text_keep(b.data);
	text_builder_free(&b);
	return kept;
}

/* Are they different kinds of parts, with a rule between them? */
static bool differ(const struct part *a, const struct part *b)
{
	return (a->layer < 0) != (b->layer < 0) || (a->head < 0) != (b->head < 0) || (a->pair < 0) != (b->pair < 0);
}

void parts_sheet(const struct parts_question *q, const struct parts_answers *a, int kind, struct sheet *out)
{
	struct turns t = turns_of(q);
	*out = (struct sheet){ .title = title_of(q, kind) };
	if (t.shown) {
		arrput(out->column, "wavelength");
		arrput(out->column, "turns in L");
	}
	for (int g = 0; g < a->groups; g++)
		if (a->answer[0].cell[g].scored)
			arrput(out->column, a->group[g]);
	if (!q->shares)
		arrput(out->column, "serves");
	for (int i = 0, before = 0; i < arrlen(q->setting); i++) {
		if (i > 0 && kind != PARTS_ALL_KINDS && (int)q->setting[i].inside != kind)
			continue;
		struct sheet_row *row = sheet_add(out, label_of_setting(q, &q->setting[i]));
		row->ruled = differ(&q->setting[i].part, &q->setting[before].part);
		before = i;
		fill_row(q, a, &t, i, row);
	}
	arrfree(t.inv_freq);
}

static void part_record(const struct parts_question *q, const struct turns *t, int i, struct records *out)
{
	const struct part_setting *s = &q->setting[i];
	const int at[] = { s->part.layer, s->part.head, s->part.pair };
	double wavelength, rotations;
	bool turns = s->part.pair >= 0 && pair_turns(q->run, t->inv_freq[s->part.pair], &wavelength, &rotations);
	record_text(out, "setting", role_of(q, s));
	for (int j = 0; j < 3; j++)
		if (at[j] >= 0)
			record_integer(out, part_words[j], at[j]);
		else
			record_text(out, part_words[j], NULL);
	record_number(out, "wavelength", turns ? wavelength : NAN);
	record_number(out, "rotations", turns ? rotations : NAN);
}

void parts_records(const struct parts_question *q, const struct parts_answers *a, struct records *out)
{
	struct turns t = turns_of(q);
	for (int i = 0; i < arrlen(q->setting); i++)
		for (int g = 0; g < a->groups; g++) {
			const struct parts_answer *of = &a->answer[i];
			bool scored = of->cell[g].scored > 0, known = scored && of->share[g].way == WAY_KNOWN;
			examined_begin(q->run, label_of(q->scaling), out);
			record_number(out, "factor", a->factor);
			record_number(out, "multiple", q->run->multiple);
			record_integer(out, "length", q->run->length);
			part_record(q, &t, i, out);
			examined_cell(a->group[g], &of->cell[g], out);
			record_number(out, "change", scored ? of->change[g].value : NAN);
			record_number(out, "change_se", scored ? of->change[g].se : NAN);
			if (q->shares) {
				record_number(out, "recovered", known ? of->share[g].value : NAN);
				record_number(out, "recovered_se", known ? of->share[g].se : NAN);
			}
			record_text(out, "protocol", run_protocol(q->run->config));
		}
	arrfree(t.inv_freq);
}

void parts_print(const struct parts_question *q, const struct parts_answers *a, bool json)
{
	struct records records = { 0 };
	parts_records(q, a, &records);
	records_print(&records, json);
	records_free(&records);
}

void examined_name(const struct examined *x, struct text_builder *b)
{
	const struct config *c = x->config;
	text_add(b, "%s (%s, %s, seed %" PRId64 ")", run_folder_name(x->folder), label_of(&c->model.encoding),
		 label_of(&c->data.task), c->train.seed);
}

void examined_protocol(const struct examined *x, struct text_builder *b)
{
	const struct config *c = x->config;
	text_add(b, "%" PRId64 " sequences, eval_seed %" PRId64 ", train_length L = %" PRId64 "; %s",
		 c->eval.sequences, c->eval.eval_seed, c->model.train_length, run_protocol(c));
}

void examined_begin(const struct examined *x, const char *scaling, struct records *out)
{
	const struct config *c = x->config;
	records_begin(out);
	record_text(out, "run", run_folder_name(x->folder));
	record_text(out, "encoding", label_of(&c->model.encoding));
	record_text(out, "scaling", scaling);
	record_text(out, "task", label_of(&c->data.task));
	record_integer(out, "seed", c->train.seed);
	record_integer(out, "eval_seed", c->eval.eval_seed);
	record_integer(out, "sequences", c->eval.sequences);
	record_integer(out, "train_length", c->model.train_length);
}

void examined_cell(const char *group, const struct eval_cell *c, struct records *out)
{
	bool known = c->scored > 0;
	record_text(out, "group", group);
	record_integer(out, "scored", c->scored);
	record_number(out, "nll", known ? c->nll : NAN);
	record_number(out, "nll_se", known ? c->nll_se : NAN);
	record_number(out, "perplexity", known ? c->perplexity : NAN);
	record_number(out, "accuracy", known ? c->accuracy : NAN);
}
