#include "runs/show/table.h"

#include "model/base/stb.h"
#include "runs/run/run_folder.h"
#include "runs/show/calibrated.h"
#include "runs/show/growth.h"
#include "runs/show/once.h"
#include "runs/show/usable.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const state_word[] = {
	[SUMMARY_FOUND] = "found",         [SUMMARY_EMPTY] = "empty",       [SUMMARY_ABSENT] = "absent",
	[SUMMARY_IMPOSSIBLE] = "n/a",      [SUMMARY_DIVERGED] = "diverged",
};

static const struct cell *cell_of(const struct results *r, const struct contender *who)
{
	return &r->grid->cell[results_first(r, who->cells)];
}

/* What the row is about. */
static void add_head(const struct results *r, const struct contender *who, const char *group, struct records *to)
{
	const struct cell *c = cell_of(r, who);
	records_begin(to);
	record_text(to, "study", r->folder);
	record_text(to, "kind", who->reference ? "reference" : "method");
	record_text(to, "encoding", label_of(&c->config.model.encoding));
	record_text(to, "scaling", c->scaling_label[who->scaling]);
	record_text(to, "axes", c->axes);
	record_text(to, "group", group);
}

static double there(bool found, double value)
{
	return found ? value : NAN;
}

/* Of text alone. */
static void add_bits(const struct cell *c, double nll, struct records *to)
{
	record_number(to, "bits_per_byte", there(task_of(&c->config.data.task)->bytes, nll / M_LN2));
}

static void add_summary(const struct summary *s, bool best, struct records *to)
{
	bool found = s->state == SUMMARY_FOUND, interval = found && s->done >= INTERVAL_SEEDS;
	record_text(to, "state", state_word[s->state]);
	record_integer(to, "seeds", s->seeds);
	record_integer(to, "seeds_done", s->done);
	record_number(to, "perplexity", there(found, s->perplexity));
	record_number(to, "perplexity_least", there(found, s->least));
	record_number(to, "perplexity_greatest", there(found, s->greatest));
	record_number(to, "perplexity_low", there(interval, exp(s->nll.low)));
	record_number(to, "perplexity_high", there(interval, exp(s->nll.high)));
	record_number(to, "accuracy", there(found, s->accuracy));
	record_number(to, "accuracy_low", there(interval, logistic(s->logit.low)));
	record_number(to, "accuracy_high", there(interval, logistic(s->logit.high)));
	record_number(to, "nll", there(found, s->nll.mean));
	record_number(to, "nll_sd", there(found && s->done > 1, s->nll.sd));
	record_number(to, "nll_se", there(found, s->nll_se));
	record_number(to, "floor", there(found, s->floor));
	record_integer(to, "scored", s->scored);
	record_integer(to, "sequences", s->sequences);
	record_integer(to, "best", best);
}

static void add_paired(const struct results *r, const struct contender *who, double multiple, const char *group,
		       const char *against, struct records *to)
{
	struct contender other;
	struct paired p = { 0 };
	if (table_opponent(r, who, against, &other))
		p = paired(r, who, &other, multiple, group, CONFIDENCE);
	record_text(to, "against", against);
	record_integer(to, "pairs", p.seeds);
	record_integer(to, "wins", p.wins);
	record_number(to, "ratio", there(p.seeds, exp(p.nll.mean)));
	record_number(to, "ratio_low", there(p.seeds >= INTERVAL_SEEDS, exp(p.nll.low)));
	record_number(to, "ratio_high", there(p.seeds >= INTERVAL_SEEDS, exp(p.nll.high)));
	record_number(to, "ratio_least", there(p.seeds, exp(p.least)));
	record_number(to, "ratio_greatest", there(p.seeds, exp(p.greatest)));
	record_number(to, "accuracy_difference", there(p.seeds, p.accuracy));
	record_number(to, "difference_se", there(p.seeds, p.nll_se));
}

static void add_usable(const struct results *r, const struct contender *who, const char *group, struct records *to)
{
	struct usable u = usable_length(r, who, group);
	record_number(to, "usable_perplexity", u.perplexity);
	record_number(to, "usable_accuracy", u.accuracy);
}

static void add_growth(const struct results *r, const struct contender *who, double multiple, const char *group,
		       struct records *to)
{
	struct growth g = growth(r, who, multiple, group);
	record_number(to, "growth", there(g.seeds, g.nll));
	record_number(to, "growth_se", there(g.seeds, g.nll_se));
}

static void add_calibrated(const struct results *r, const struct contender *who, double multiple, const char *group,
			   struct records *to)
{
	struct calibrated c = calibrated(r, who, multiple, group);
	record_number(to, "calibrated_perplexity", c.perplexity);
	record_number(to, "temperature", c.temperature);
}

/* Every group that the tasks of a study have. */
static const char **all_groups(const struct results *r)
{
	const char **all = NULL;
	for (int cells = 0; cells < r->grid->groups; cells++) {
		const char *group[EVAL_GROUPS];
		const struct cell *c = &r->grid->cell[results_first(r, cells)];
		int groups = eval_group_names(task_of(&c->config.data.task), group);
		for (int i = 0; i < groups; i++)
			once(&all, group[i]);
	}
	return all;
}

/* One multiple and group of all rows. */
static void add_place(const struct results *r, const struct contender *who, double multiple, const char *group,
		      const char *against, struct records *to)
{
	bool *best = NULL;
	arrsetlen(best, arrlenu(who));
	contenders_best(r, who, (int)arrlen(who), multiple, group, best);
	for (int i = 0; i < arrlen(who); i++) {
		struct summary s = results_summary(r, who[i].cells, who[i].scaling, multiple, group);
		if (!s.length || !results_has_group(cell_of(r, &who[i]), group))
			continue;
		add_head(r, &who[i], group, to);
		record_number(to, "multiple", multiple);
		record_integer(to, "length", s.length);
		add_summary(&s, best[i], to); /* NOLINT(-Wanalyzer-null-dereference): it has as many as `who` */
		add_bits(cell_of(r, &who[i]), there(s.state == SUMMARY_FOUND, s.nll.mean), to);
		add_usable(r, &who[i], group, to);
		if (calibrated_known(r))
			add_calibrated(r, &who[i], multiple, group, to);
		if (growth_known(r))
			add_growth(r, &who[i], multiple, group, to);
		if (against)
			add_paired(r, &who[i], multiple, group, against, to);
	}
	arrfree(best);
}

static struct err add_baselines(const struct results *r, int cells, const char *group, struct records *to)
{
	struct baseline *found;
	TRY(table_baselines(r, cells, group, &found));
	const struct cell *c = &r->grid->cell[results_first(r, cells)];
	for (int i = 0; i < arrlen(found); i++) {
		records_begin(to);
		record_text(to, "study", r->folder);
		record_text(to, "kind", "baseline");
		record_text(to, "encoding", NULL);
		record_text(to, "scaling", found[i].reference.name);
		record_text(to, "group", group);
		record_number(to, "multiple", found[i].multiple);
		record_integer(to, "length", found[i].length);
		record_text(to, "state", "found");
		record_number(to, "perplexity", found[i].reference.perplexity);
		record_number(to, "accuracy", found[i].reference.accuracy);
		record_number(to, "nll", log(found[i].reference.perplexity));
		add_bits(c, log(found[i].reference.perplexity), to);
		record_integer(to, "sequences", c->config.eval.sequences);
	}
	arrfree(found);
	return OK;
}

struct err table_long(const struct results *r, const char *against, struct records *out)
{
	struct contender *who = contenders(r);
	const char **group = all_groups(r);
	struct err e = OK;
	for (int i = 0; i < arrlen(group); i++)
		for (int j = 0; j < arrlen(r->grid->multiple); j++)
			add_place(r, who, r->grid->multiple[j], group[i], against, out);
	for (int i = 0; i < arrlen(group) && !e.code; i++)
		for (int cells = 0; cells < r->grid->groups && !e.code; cells++)
			e = add_baselines(r, cells, group[i], out);
	arrfree(group);
	arrfree(who);
	return e;
}

/* "perplexity_8x" */
static const char *measure_at(const char *measure, double multiple, char text[64])
{
	char number[NUMBER_TEXT];
	snprintf(text, 64, "%s_%sx", measure, number_to_text(multiple, number));
	return text;
}

void table_wide(const struct results *r, struct records *out)
{
	struct contender *who = contenders(r);
	const char **group = all_groups(r);
	for (int i = 0; i < arrlen(group); i++)
		for (int j = 0; j < arrlen(who); j++) {
			if (!results_has_group(cell_of(r, &who[j]), group[i]))
				continue;
			add_head(r, &who[j], group[i], out);
			for (int k = 0; k < arrlen(r->grid->multiple); k++) {
				char column[64];
				double multiple = r->grid->multiple[k];
				struct summary s =
					results_summary(r, who[j].cells, who[j].scaling, multiple, group[i]);
				bool found = s.state == SUMMARY_FOUND;
				record_number(out, measure_at("perplexity", multiple, column),
					      there(found, s.perplexity));
				record_number(out, measure_at("accuracy", multiple, column), there(found, s.accuracy));
			}
			add_usable(r, &who[j], group[i], out);
		}
	arrfree(group);
	arrfree(who);
}

static void add_seed(const struct results *r, const struct contender *who, int cell, const struct row *row,
		     struct records *to)
{
	add_head(r, who, row->group, to);
	record_text(to, "run", run_folder_name(r->cell[cell].folder));
	record_integer(to, "seed", row->seed);
	record_integer(to, "eval_seed", row->eval_seed);
	record_number(to, "multiple", row->multiple);
	record_integer(to, "length", row->length);
	record_number(to, "factor", row->factor);
	record_integer(to, "scored", row->cell.scored);
	bool scored = row->cell.scored;
	record_number(to, "nll", there(scored, row->cell.nll));
	record_number(to, "nll_se", there(scored, row->cell.nll_se));
	record_number(to, "perplexity", there(scored, row->cell.perplexity));
	record_number(to, "accuracy", there(scored, row->cell.accuracy));
	record_number(to, "exact", there(scored, row->cell.exact));
	add_bits(cell_of(r, who), there(scored, row->cell.nll), to);
}

void table_seeds(const struct results *r, struct records *out)
{
	struct contender *who = contenders(r);
	for (int i = 0; i < arrlen(who); i++)
		for (int j = 0; j < arrlen(r->grid->cell); j++) {
			const struct cell *c = &r->grid->cell[j];
			if (c->group != who[i].cells)
				continue;
			const struct row *row = r->cell[j].row[who[i].scaling];
			for (int k = 0; k < arrlen(row); k++)
				if (cell_owns(c, who[i].scaling, &row[k]))
					add_seed(r, &who[i], j, &row[k], out);
		}
	arrfree(who);
}
