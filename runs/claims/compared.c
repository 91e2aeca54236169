#include "runs/claims/compared.h"

#include "eval/statistics.h"
#include "model/base/stb.h"
#include "runs/options.h"
#include "runs/run/run_folder.h"
#include "runs/show/sheet.h"
#include "runs/show/verdicts.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 1, 2))) static const char *kept(const char *format, ...)
{
	char text[400];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	return text_keep(text);
}

void finding_judge(struct finding *f, int wins, int losses, int ties)
{
	int seeds = wins + losses + ties;
	f->seeds = wins + losses;
	f->wins = wins;
	f->p = sign_test(wins, losses);
	f->verdict = CLAIM_UNTESTABLE;
	if (seeds < VERDICT_SEEDS)
		f->reason = kept("%d seed%s: a verdict takes %d", seeds, seeds == 1 ? "" : "s", VERDICT_SEEDS);
	else if (!(f->p < VERDICT_P))
		f->reason = kept("%d of %d seeds are for it, %d equal: p=%.2g", wins, seeds, ties, f->p);
	else
		f->verdict = wins > losses ? CLAIM_HOLDS : CLAIM_FAILS;
}

int cells_of(const struct results *r, const char *encoding)
{
	for (int i = 0; i < arrlen(r->grid->cell); i++)
		if (!strcmp(label_of(&r->grid->cell[i].config.model.encoding), encoding))
			return r->grid->cell[i].group;
	return -1;
}

static int scaling_of_cells(const struct results *r, int cells, const char *label)
{
	const struct cell *c = &r->grid->cell[results_first(r, cells)];
	for (int i = 0; i < c->scalings; i++)
		if (!strcmp(c->scaling_label[i], label))
			return i;
	return -1;
}

const char *not_learned(const struct results *r, int cells)
{
	struct reached n = results_reached(r, cells);
	const struct cell *c = &r->grid->cell[results_first(r, cells)];
	const struct method *task = &c->config.data.task;
	if (n.reached == n.seeds || isnan(task_of(task)->floor(task, (int)c->config.model.train_length, 0)))
		return NULL;
	return kept("%s has learned the task in %d of %d seeds", label_of(&c->config.model.encoding), n.reached,
		    n.seeds);
}

static const char *row_text(const struct spot *s)
{
	if (strcmp(s->scaling, "none") != 0)
		return s->scaling;
	return strcmp(s->encoding, "rope") ? s->encoding : "rope unscaled";
}

static const char *spot_text(const struct spot *s)
{
	char text[NUMBER_TEXT];
	return kept("%s at %sx", row_text(s), number_to_text(s->multiple, text));
}

/* One term of a comparison: where its numbers are, and their mean over the seeds that both have. */
struct term {
	const struct spot *spot;
	int cells, scaling;
	double sum;
};

static bool find_term(const struct results *r, const struct spot *spot, struct term *out)
{
	*out = (struct term){ .spot = spot, .cells = cells_of(r, spot->encoding) };
	out->scaling = out->cells < 0 ? -1 : scaling_of_cells(r, out->cells, spot->scaling);
	return out->scaling >= 0;
}

static const struct row *row_of(const struct results *r, const struct term *s, int64_t seed)
{
	for (int i = 0; i < arrlen(r->grid->cell); i++) {
		const struct cell *c = &r->grid->cell[i];
		if (c->group != s->cells || c->config.train.seed != seed)
			continue;
		const struct row *row = results_find(r, i, s->scaling, s->spot->multiple, s->spot->group);
		return row && row->cell.scored ? row : NULL;
	}
	return NULL;
}

static double value(const struct comparison *c, const struct row *row)
{
	return c->measure == SPOT_PERPLEXITY ? row->cell.nll : row->cell.accuracy;
}

struct count {
	int asked, seeds, wins, losses; /* seeds of the study, and those that have both numbers */
	double a, b; /* means over the seeds */
};

static void add_seed(const struct comparison *c, const struct row *a, const struct row *b, struct count *n)
{
	double limit = c->measure == SPOT_ACCURACY ? c->least : log(c->times > 0 ? c->times : 1);
	double over = value(c, a) - (b ? value(c, b) : 0) - limit;
	n->seeds++;
	n->a += value(c, a);
	n->b += b ? value(c, b) : 0;
	n->wins += c->relation == SPOT_ABOVE ? over > 0 : over < 0;
	n->losses += c->relation == SPOT_ABOVE ? over < 0 : over > 0;
}

static struct count count_seeds(const struct comparison *c, const struct results *r, const struct term *a,
				const struct term *b)
{
	struct count n = { 0 };
	for (int i = 0; i < arrlen(r->grid->cell); i++) {
		const struct cell *cell = &r->grid->cell[i];
		if (cell->group != a->cells)
			continue;
		n.asked++;
		const struct row *mine = row_of(r, a, cell->config.train.seed);
		const struct row *other = b ? row_of(r, b, cell->config.train.seed) : NULL;
		if (mine && (other || !b))
			add_seed(c, mine, other, &n);
	}
	n.a /= n.seeds ? n.seeds : 1;
	n.b /= n.seeds ? n.seeds : 1;
	return n;
}

/* "2.34 at 8x", with the group where the two differ in it */
static const char *value_text(const struct comparison *c, const struct spot *s, double mean)
{
	char text[SHORT_TEXT], multiple[NUMBER_TEXT];
	bool named = c->b.encoding && strcmp(c->a.group, c->b.group) != 0;
	if (c->measure == SPOT_PERPLEXITY)
		perplexity_text(exp(mean), text);
	else
		accuracy_text(mean, text);
	return kept("%s%s%s%s at %sx", text, c->measure == SPOT_PERPLEXITY ? "" : " %", named ? " in " : "",
		    named ? s->group : "", number_to_text(s->multiple, multiple));
}

/* "below 1.1 times it" */
static const char *relation_text(const struct comparison *c)
{
	const char *way = c->relation == SPOT_ABOVE ? "above" : "below";
	if (!c->b.encoding)
		return kept("%s %.3g %%", way, 100 * c->least);
	return c->times > 0 ? kept("%s %.3g times it", way, c->times) : way;
}

/* "perplexity in recall: ntk 2.34 at 8x, linear 5.43 at 8x; below in 6 of 6 seeds, p=0.031" */
static void describe(const struct comparison *c, const struct count *n, double p, struct finding *out)
{
	const char *measure = c->measure == SPOT_PERPLEXITY ? "perplexity" : "accuracy", *other = "", *group = "";
	if (!c->b.encoding || !strcmp(c->a.group, c->b.group))
		group = kept(" in %s", c->a.group);
	if (c->b.encoding) {
		bool same = !strcmp(row_text(&c->a), row_text(&c->b));
		other = kept(", %s%s%s", same ? "" : row_text(&c->b), same ? "" : " ", value_text(c, &c->b, n->b));
	}
	finding_add(out, "%s%s: %s %s%s; %s in %d of %d seeds, p=%.2g", measure, group, row_text(&c->a),
		    value_text(c, &c->a, n->a), other, relation_text(c), n->wins, n->seeds, p);
}

static const char *why_not(const struct comparison *c, const struct results *r, const struct term *a,
			   const struct term *b)
{
	const char *why = c->learning ? NULL : not_learned(r, a->cells);
	return why || !b ? why : not_learned(r, b->cells);
}

static void compare(const struct comparison *c, const struct results *r, struct finding *out)
{
	struct term a, b;
	const struct spot *missing = !find_term(r, &c->a, &a) ? &c->a : NULL;
	if (c->b.encoding && !find_term(r, &c->b, &b) && !missing)
		missing = &c->b;
	if (missing) {
		out->verdict = CLAIM_UNMEASURED;
		out->reason = kept("the study has no row %s", spot_text(missing));
		return;
	}
	const struct term *other = c->b.encoding ? &b : NULL;
	struct count n = count_seeds(c, r, &a, other);
	if (!n.seeds) {
		out->verdict = CLAIM_UNMEASURED;
		out->reason = kept("the study has not got to %s", spot_text(&c->a));
		return;
	}
	finding_judge(out, n.wins, n.losses, n.seeds - n.wins - n.losses);
	describe(c, &n, out->p, out);
	const char *why = why_not(c, r, &a, other);
	if (!why && n.seeds < n.asked)
		why = kept("%d of %d seeds have both numbers", n.seeds, n.asked);
	if (why) {
		out->verdict = CLAIM_UNTESTABLE;
		out->reason = why;
	}
}

void finding_join(struct finding *whole, const struct finding *part)
{
	static const int rank[CLAIM_VERDICTS] = { [CLAIM_HOLDS] = 0, [CLAIM_UNTESTABLE] = 1, [CLAIM_UNMEASURED] = 2,
						  [CLAIM_FAILS] = 3 };
	const char *measured = whole->measured;
	bool first = !measured && !whole->reason; /* what has been joined has numbers or says why not */
	if (first || rank[part->verdict] > rank[whole->verdict])
		*whole = *part;
	whole->measured = measured;
	if (part->measured)
		finding_add(whole, "%s", part->measured);
}

struct err claim_compare(const struct comparison *c, const struct results *r, struct finding *out)
{
	for (int i = 0; c[i].a.encoding; i++) {
		struct finding one = { .p = NAN };
		compare(&c[i], r, &one);
		finding_join(out, &one);
	}
	return *r->late;
}
