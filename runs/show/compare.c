#include "runs/show/compare.h"

#include "eval/tally.h"
#include "model/base/stb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct contender *contenders(const struct results *r)
{
	struct contender *all = NULL;
	for (int reference = 0; reference < 2; reference++)
		for (int cells = 0; cells < r->grid->groups; cells++) {
			const struct cell *c = &r->grid->cell[results_first(r, cells)];
			int methods = c->scalings - c->references;
			int first = reference ? methods : 0, last = reference ? c->scalings : methods;
			for (int i = first; i < last; i++)
				arrput(all, ((struct contender){ cells, i, reference }));
		}
	return all;
}

/* The cell of a group of cells that has this seed; -1 if there is none. */
static int cell_of_seed(const struct results *r, int cells, int64_t seed)
{
	for (int i = 0; i < arrlen(r->grid->cell); i++)
		if (r->grid->cell[i].group == cells && r->grid->cell[i].config.train.seed == seed)
			return i;
	return -1;
}

/* Are the two rows about the same tokens? */
static bool same_tokens(const struct row *a, const struct row *b)
{
	return a->length == b->length && a->cell.scored == b->cell.scored && !strcmp(a->task, b->task) &&
	       a->eval_seed == b->eval_seed && a->sequences == b->sequences;
}

static bool find_pair(const struct results *r, int cell, const struct contender *a, const struct contender *b,
		      double multiple, const char *group, struct pair *p)
{
	p->cell[0] = cell;
	p->cell[1] = cell_of_seed(r, b->cells, r->grid->cell[cell].config.train.seed);
	if (r->grid->cell[cell].group != a->cells || p->cell[1] < 0)
		return false;
	p->row[0] = results_find(r, p->cell[0], a->scaling, multiple, group);
	p->row[1] = results_find(r, p->cell[1], b->scaling, multiple, group);
	return p->row[0] && p->row[1] && p->row[0]->cell.scored && same_tokens(p->row[0], p->row[1]);
}

struct pair *pairs(const struct results *r, const struct contender *a, const struct contender *b, double multiple,
		   const char *group)
{
	struct pair *all = NULL, p;
	for (int i = 0; i < arrlen(r->grid->cell); i++)
		if (find_pair(r, i, a, b, multiple, group, &p))
			arrput(all, p);
	return all;
}

static void add_pair(struct paired *sum, const struct pair *p, double **nll)
{
	double d = p->row[0]->cell.nll - p->row[1]->cell.nll;
	sum->least = sum->seeds ? fmin(sum->least, d) : d;
	sum->greatest = sum->seeds ? fmax(sum->greatest, d) : d;
	sum->accuracy += p->row[0]->cell.accuracy - p->row[1]->cell.accuracy;
	sum->wins += d < 0;
	sum->seeds++;
	arrput(*nll, d);
}

/* The sequences' part, by the sum of each one's differences over the seeds. */
static double sequence_error(const struct results *r, const struct contender *a, const struct contender *b,
			     double multiple, const char *group)
{
	int sequences = (int)r->grid->cell[results_first(r, a->cells)].config.eval.sequences;
	struct eval_tally *tally = calloc((size_t)sequences, sizeof *tally);
	struct pair p;
	BUG_IF(!tally, "no memory for %d sequences", sequences);
	for (int i = 0; i < arrlen(r->grid->cell); i++)
		if (find_pair(r, i, a, b, multiple, group, &p) && p.row[1]->sequences == sequences) {
			results_tally(r, p.cell[0], a->scaling, multiple, group, 1, tally);
			results_tally(r, p.cell[1], b->scaling, multiple, group, -1, tally);
		}
	double error = tally_cell(tally, sequences, 1, 0).nll_se;
	free(tally);
	return error;
}

/* Over the seeds alone. */
static struct paired over_seeds(const struct results *r, const struct contender *a, const struct contender *b,
				double multiple, const char *group, double confidence)
{
	struct paired sum = { .same_weights = a->cells == b->cells };
	struct pair p;
	double *nll = NULL;
	for (int i = 0; i < arrlen(r->grid->cell); i++)
		if (find_pair(r, i, a, b, multiple, group, &p))
			add_pair(&sum, &p, &nll);
	sum.nll = mean_interval(nll, sum.seeds, confidence);
	sum.accuracy /= sum.seeds ? sum.seeds : 1;
	arrfree(nll);
	return sum;
}

struct paired paired(const struct results *r, const struct contender *a, const struct contender *b, double multiple,
		     const char *group, double confidence)
{
	struct paired sum = over_seeds(r, a, b, multiple, group, confidence);
	if (sum.seeds)
		sum.nll_se = sequence_error(r, a, b, multiple, group);
	return sum;
}

void contenders_best(const struct results *r, const struct contender *c, int count, double multiple, const char *group,
		     bool *best)
{
	int leader = -1, others = -1;
	double least = INFINITY;
	for (int i = 0; i < count; i++) {
		best[i] = false;
		if (c[i].reference)
			continue;
		struct summary s = results_summary(r, c[i].cells, c[i].scaling, multiple, group);
		if (s.state != SUMMARY_FOUND)
			continue;
		others++;
		if (s.done == s.seeds && s.done > 1 && s.nll.mean < least) {
			least = s.nll.mean;
			leader = i;
		}
	}
	if (leader < 0 || others < 1)
		return;
	for (int i = 0; i < count; i++) {
		if (c[i].reference)
			continue;
		struct paired p = over_seeds(r, &c[i], &c[leader], multiple, group, CONFIDENCE);
		best[i] = i == leader || (p.seeds > 1 && p.nll.low <= 0);
	}
}

static void compare_cell(const struct results *r, int cell, int scaling, int other, struct order *n)
{
	const struct cell *c = &r->grid->cell[cell];
	const char *group = task_of(&c->config.data.task)->groups[0];
	for (int i = 0; i < c->lengths; i++) {
		if (c->multiple[i] <= 1)
			continue;
		const struct row *a = results_find(r, cell, scaling, c->multiple[i], group);
		const struct row *b = results_find(r, cell, other, c->multiple[i], group);
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
