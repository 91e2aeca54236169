#include "runs/show/oracle_tables.h"

#include "eval/paired.h"
#include "model/base/stb.h"
#include "runs/run/run_eval.h"
#include "runs/show/parts_tables.h"
#include "runs/show/wrap.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* none stands first, the oracle last. */
static struct paired_share gain_of(const struct oracle_answer *a, int row, int length, int group)
{
	return paired_share(&a->row[row].result[length], &a->row[0].result[length], &arrlast(a->row).result[length],
			    group, MEASURE_NLL);
}

static const char *title_of(const struct oracle_question *q, const char *what, double multiple)
{
	struct text_builder b = { 0 };
	char number[NUMBER_TEXT];
	examined_name(q->run, &b);
	text_add(&b, ": %s", what);
	if (multiple > 0)
		text_add(&b, " at %sx", number_to_text(multiple, number));
	text_add(&b, "\n");
	examined_protocol(q->run, &b);
	const char *kept = text_keep(b.data);
	text_builder_free(&b);
	return kept;
}

static double multiple_of(const struct oracle_question *q, int length)
{
	return length == ORACLE_AT ? q->run->multiple : 1;
}

void oracle_sheet(const struct oracle_question *q, const struct oracle_answer *a, int length, struct sheet *out)
{
	const struct eval_result *first = &a->row[0].result[length];
	int rows = (int)arrlen(a->row);
	*out = (struct sheet){ .title = title_of(q, "perplexity / accuracy in %", multiple_of(q, length)) };
	for (int g = 0; g < first->groups; g++)
		if (first->cell[g].scored)
			arrput(out->column, first->group[g]);
	for (int i = 0; i < rows; i++) {
		struct sheet_row *row = sheet_add(out, a->row[i].label);
		row->ruled = i == rows - 1;
		for (int g = 0, column = 0; g < first->groups; g++) {
			if (!first->cell[g].scored)
				continue;
			struct paired_share gain = gain_of(a, i, length, g);
			char text[SHEET_TEXT];
			struct sheet_cell *cell = &row->cell[column++];
			examined_fill(q->run, &a->row[i].result[length].cell[g], cell);
			if (length == ORACLE_AT && i > 0 && i < rows - 1)
				snprintf(cell->line[1], SHEET_TEXT, "%s", share_text(&gain, text));
		}
	}
}

/* A label without its options: heads of columns are narrow. */
static const char *bare_name(const char *label)
{
	char name[64];
	snprintf(name, sizeof name, "%.*s", (int)strcspn(label, "("), label);
	return text_keep(name);
}

void oracle_frequencies(const struct oracle_question *q, const struct oracle_answer *a, struct sheet *out)
{
	*out = (struct sheet){ .title = title_of(q, "inverse frequencies, by the trained ones", 0) };
	arrput(out->column, "wavelength");
	arrput(out->column, "turns in L");
	for (int i = 1; i < arrlen(a->row); i++)
		arrput(out->column, bare_name(a->row[i].label));
	for (int m = 0; m < a->F; m++) {
		char label[32];
		double wavelength, rotations, trained = a->row[0].inv_freq[m];
		snprintf(label, sizeof label, "pair %d", m);
		struct sheet_row *row = sheet_add(out, text_keep(label));
		if (!pair_turns(q->run, trained, &wavelength, &rotations))
			continue;
		snprintf(row->cell[0].line[0], SHEET_TEXT, "%.1f", wavelength);
		snprintf(row->cell[1].line[0], SHEET_TEXT, "%.2f", rotations);
		for (int i = 1; i < arrlen(a->row); i++)
			snprintf(row->cell[i + 1].line[0], SHEET_TEXT, "%.4f", a->row[i].inv_freq[m] / trained);
	}
	struct sheet_row *row = sheet_add(out, "attention factor");
	row->ruled = true;
	for (int i = 1; i < arrlen(a->row); i++)
		snprintf(row->cell[i + 1].line[0], SHEET_TEXT, "%.4f", a->row[i].attention_factor);
}

static void add_fits(const struct oracle_question *q, const struct oracle_answer *a, struct text_builder *b)
{
	const struct train_options *t = q->train;
	const struct task *task = task_of(&q->run->config->data.task);
	struct text_builder line = { 0 };
	text_add(&line, "oracle: weights frozen, inverse frequencies and attention factor fitted by AdamW to the NLL "
		 "of %s at %d tokens, %" PRId64 " steps of %" PRId64 " sequences of stream tune, lr %g.",
		 q->group < 0 ? "all scored tokens" : task->groups[q->group], a->length[ORACLE_AT], t->steps, t->batch,
		 t->lr);
	for (int i = 0; i < arrlen(a->fit); i++)
		text_add(&line, " From %s: NLL %.4f, then %.4f on other tune sequences.", a->fit[i].start,
			 a->fit[i].nll_before, a->fit[i].nll_after);
	text_add(&line, " Kept: %s %s.", a->unfitted ? "what was there before the fit, of" : "the fit from",
		 a->fit[a->best].start);
	wrap_paragraph(b, line.data);
	text_builder_free(&line);
}

void oracle_notes(const struct oracle_question *q, const struct oracle_answer *a, struct text_builder *b)
{
	static const char *const notes[] = {
		"Every row has one set of frequencies, made for the fitted length, at both lengths. The tables are of "
		"stream report, which no fit has seen.",
		"Beneath a recipe the share of the oracle's gain in NLL that it has, (none - recipe) / (none - "
		"oracle), with its standard error over sequences (paired). n/a: the oracle gains less than 0.01 nats, "
		"or less than twice its standard error.",
		"A gradient finds what is near where it begins: the oracle is the least of what was possible.",
	};
	add_fits(q, a, b);
	for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
		wrap_paragraph(b, notes[i]);
}

static void add_measures(const struct oracle_question *q, const struct oracle_answer *a, int row, struct records *out)
{
	for (int l = 0; l < ORACLE_LENGTHS; l++)
		for (int g = 0; g < a->row[row].result[l].groups; g++) {
			const struct eval_result *r = &a->row[row].result[l];
			struct paired_share gain = gain_of(a, row, l, g);
			bool known = r->cell[g].scored && gain.way == WAY_KNOWN;
			examined_begin(q->run, a->row[row].label, out);
			record_text(out, "what", "measure");
			record_number(out, "multiple", multiple_of(q, l));
			record_integer(out, "length", a->length[l]);
			examined_cell(r->group[g], &r->cell[g], out);
			record_number(out, "gain", known ? gain.value : NAN);
			record_number(out, "gain_se", known ? gain.se : NAN);
			record_number(out, "attention_factor", a->row[row].attention_factor);
			record_text(out, "protocol", run_protocol(q->run->config));
		}
}

static void add_pairs(const struct oracle_question *q, const struct oracle_answer *a, int row, struct records *out)
{
	for (int m = 0; m < a->F; m++) {
		double wavelength, rotations, trained = a->row[0].inv_freq[m];
		bool turns = pair_turns(q->run, trained, &wavelength, &rotations);
		examined_begin(q->run, a->row[row].label, out);
		record_text(out, "what", "pair");
		record_number(out, "multiple", multiple_of(q, ORACLE_AT));
		record_integer(out, "length", a->length[ORACLE_AT]);
		record_integer(out, "pair", m);
		record_number(out, "wavelength", turns ? wavelength : NAN);
		record_number(out, "rotations", turns ? rotations : NAN);
		record_number(out, "inv_freq", a->row[row].inv_freq[m]);
		record_number(out, "ratio", turns ? a->row[row].inv_freq[m] / trained : NAN);
	}
}

void oracle_records(const struct oracle_question *q, const struct oracle_answer *a, struct records *out)
{
	for (int i = 0; i < arrlen(a->row); i++) {
		add_measures(q, a, i, out);
		add_pairs(q, a, i, out);
	}
}
