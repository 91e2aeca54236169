#include "runs/show/verdicts.h"

#include "model/base/stb.h"
#include "runs/show/expect.h"
#include "runs/show/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *verdict_word(enum verdict verdict)
{
	static const char *const word[] = {
		[VERDICT_SAME] = "same order here",
		[VERDICT_DIFFERENT] = "different here",
		[VERDICT_UNTESTED] = "cannot be tested at this scale",
	};
	return word[verdict];
}

/* An order with its rows. */
struct question {
	const struct study_claim *claim;
	struct contender row[2]; /* better, worse */
	const char *group;
};

static struct question question_of(const struct results *r, const struct study_claim *c)
{
	struct question q = { .claim = c };
	for (int i = 0; i < 2; i++) {
		struct grid_row row = claim_row_of(r, c->row[i]);
		q.row[i] = (struct contender){ row.cells, row.scaling, false };
	}
	q.group = claim_group(c, claim_cell(r->grid, q.row[0].cells));
	return q;
}

/* How far one row is from the good end, less the other: below 0 the first is better. NaN where 1x is missing. */
static double difference(const struct results *r, const struct question *q, const struct pair *p)
{
	const struct row *first[2];
	switch (q->claim->measure) {
	case CLAIM_ACCURACY:
		return p->row[1]->cell.accuracy - p->row[0]->cell.accuracy;
	case CLAIM_PERPLEXITY:
	case CLAIM_NLL:
	case CLAIM_BITS:
		return p->row[0]->cell.nll - p->row[1]->cell.nll;
	case CLAIM_SLOPE:
		break;
	}
	for (int i = 0; i < 2; i++) {
		first[i] = results_find(r, p->cell[i], q->row[i].scaling, 1, q->group);
		if (!first[i] || !first[i]->cell.scored)
			return NAN;
	}
	return p->row[0]->cell.nll - first[0]->cell.nll - (p->row[1]->cell.nll - first[1]->cell.nll);
}

static void count_pairs(const struct results *r, const struct question *q, struct order_verdict *v)
{
	struct pair *all = pairs(r, &q->row[0], &q->row[1], q->claim->multiple, q->group);
	for (int i = 0; i < arrlen(all); i++) {
		double d = difference(r, q, &all[i]);
		v->pairs += !isnan(d);
		v->wins += d < 0;
		v->losses += d > 0;
		v->ties += d == 0;
	}
	arrfree(all);
	v->p = sign_test(v->wins, v->losses);
}

/* Has every model of the row learned its task, as far as that can be known? */
static bool learned(const struct results *r, int cells, struct reached *reached)
{
	const struct cell *c = claim_cell(r->grid, cells);
	const struct method *task = &c->config.data.task;
	*reached = results_reached(r, cells);
	if (isnan(task_of(task)->floor(task, (int)c->config.model.train_length, 0)))
		return true;
	return reached->reached == reached->seeds;
}

static void say_why(const struct results *r, const struct question *q, struct order_verdict *v)
{
	if (v->pairs < v->seeds) {
		snprintf(v->why, sizeof v->why, "%d of %d seeds on the same sequences", v->pairs, v->seeds);
		return;
	}
	if (v->seeds < VERDICT_SEEDS) {
		snprintf(v->why, sizeof v->why, "needs %d seeds, has %d", VERDICT_SEEDS, v->seeds);
		return;
	}
	for (int i = 0; i < 2; i++) {
		struct reached n;
		if (learned(r, q->row[i].cells, &n))
			continue;
		snprintf(v->why, sizeof v->why, "%s: at the floor at 1x in %d of %d seeds", i ? "worse" : "better",
			 n.reached, n.seeds);
		return;
	}
	if (!(v->p < VERDICT_P))
		snprintf(v->why, sizeof v->why, "p is not below %g", VERDICT_P);
}

static int seeds_of(const struct results *r, int cells)
{
	int seeds = 0;
	for (int i = 0; i < arrlen(r->grid->cell); i++)
		seeds += r->grid->cell[i].group == cells;
	return seeds;
}

struct order_verdict verdict_of(const struct results *r, const struct study_claim *c)
{
	struct order_verdict v = { .verdict = VERDICT_UNTESTED };
	struct question q = question_of(r, c);
	for (int i = 0; i < 2; i++) {
		int seeds = seeds_of(r, q.row[i].cells);
		v.seeds = seeds > v.seeds ? seeds : v.seeds;
	}
	count_pairs(r, &q, &v);
	say_why(r, &q, &v);
	if (!*v.why)
		v.verdict = v.wins > v.losses ? VERDICT_SAME : VERDICT_DIFFERENT;
	return v;
}

/* "alibi-first: ALiBi stays flat (Press et al. 2022): alibi better than sinusoidal, recall at 4x, NLL in nats" */
static const char *label(const struct results *r, const struct question *q)
{
	const struct study_claim *c = q->claim;
	struct text_builder b = { 0 };
	char number[NUMBER_TEXT];
	text_add(&b, "%s: %s", c->name, c->what);
	if (c->source)
		text_add(&b, " (%s)", c->source);
	text_add(&b, ": %s better than %s, %s at %sx, %s", table_label(r, q->row[0].cells, q->row[0].scaling),
		 table_label(r, q->row[1].cells, q->row[1].scaling), q->group, number_to_text(c->multiple, number),
		 claim_measure_text(c->measure));
	const char *kept = text_keep(b.data);
	text_builder_free(&b);
	return kept;
}

static void add_verdict(const struct results *r, const struct study_claim *c, struct sheet *sheet)
{
	struct question q = question_of(r, c);
	struct order_verdict v = verdict_of(r, c);
	struct sheet_row *row = sheet_add(sheet, label(r, &q));
	struct sheet_cell *cell = &row->cell[0];
	char ties[24] = "";
	if (v.ties)
		snprintf(ties, sizeof ties, ", %d tie%s", v.ties, v.ties == 1 ? "" : "s");
	snprintf(cell->line[0], SHEET_TEXT, "%s", verdict_word(v.verdict));
	if (v.pairs)
		snprintf(sheet_line(cell), SHEET_TEXT, "%d of %d wins%s, p = %.3g", v.wins, v.wins + v.losses, ties,
			 v.p);
	if (*v.why)
		snprintf(sheet_line(cell), SHEET_TEXT, "%s", v.why);
	cell->heat = v.verdict == VERDICT_UNTESTED ? NAN : v.verdict == VERDICT_DIFFERENT ? 1 : 0;
}

bool verdicts_sheet(const struct results *r, struct sheet *out)
{
	struct text_builder title = { 0 };
	text_add(&title, "verdicts: orders claimed elsewhere, tested here\nwins: seeds in which the row claimed to be "
			 "better is, on the same sequences; p: two-sided exact sign test, ties dropped; a verdict "
			 "needs %d seeds, all of them done, every model at the floor at 1x, and p < %g", VERDICT_SEEDS,
		 VERDICT_P);
	*out = (struct sheet){ .title = text_keep(title.data) };
	text_builder_free(&title);
	arrput(out->column, "verdict");
	for (int i = 0; i < arrlen(r->study->claim); i++)
		if (r->study->claim[i].kind == CLAIM_ORDER)
			add_verdict(r, &r->study->claim[i], out);
	if (arrlen(out->row))
		return true;
	sheet_free(out);
	return false;
}

static void add_record(const struct results *r, const struct study_claim *c, struct records *to)
{
	struct question q = question_of(r, c);
	struct order_verdict v = verdict_of(r, c);
	const struct grid_row rows[] = { claim_row_of(r, c->row[0]), claim_row_of(r, c->row[1]) };
	records_begin(to);
	record_text(to, "name", c->name);
	record_text(to, "claim", c->what);
	record_text(to, "source", c->source);
	record_text(to, "better", claim_row_label(r->grid, &rows[0]));
	record_text(to, "worse", claim_row_label(r->grid, &rows[1]));
	record_text(to, "group", q.group);
	record_number(to, "multiple", c->multiple);
	record_text(to, "measure", claim_measure_name(c->measure));
	record_integer(to, "seeds", v.seeds);
	record_integer(to, "pairs", v.pairs);
	record_integer(to, "wins", v.wins);
	record_integer(to, "losses", v.losses);
	record_integer(to, "ties", v.ties);
	record_number(to, "p", v.p);
	record_text(to, "verdict", verdict_word(v.verdict));
	record_text(to, "why", *v.why ? v.why : NULL);
}

void verdicts_records(const struct results *r, struct records *out)
{
	for (int i = 0; i < arrlen(r->study->claim); i++)
		if (r->study->claim[i].kind == CLAIM_ORDER)
			add_record(r, &r->study->claim[i], out);
}
