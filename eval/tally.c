#include "eval/tally.h"

#include <math.h>

/* The tables' groups: the task's first, that divided by distance, the task's others, all. */
enum { FIRST, NEAR, FAR, OTHERS };

static int task_groups(const struct task *task)
{
	int count = 0;
	while (count < TASK_GROUPS && task->groups[count])
		count++;
	return count;
}

static int all_of(const struct task *task)
{
	return task_groups(task) + 2;
}

static int table_group(int task_group)
{
	return task_group ? OTHERS + task_group - 1 : FIRST;
}

int eval_group_names(const struct task *task, const char *name[EVAL_GROUPS])
{
	name[NEAR] = "near";
	name[FAR] = "far";
	for (int g = 0; g < task_groups(task); g++)
		name[table_group(g)] = task->groups[g];
	name[all_of(task)] = "all";
	return all_of(task) + 1;
}

int tally_groups(const struct task *task, const struct sequence *s, int t, int train_length, int group[TALLY_GROUPS])
{
	if (s->target[t] < 0)
		return 0;
	group[0] = table_group(s->group[t]);
	group[1] = all_of(task);
	if (s->group[t] != 0)
		return 2;
	group[2] = s->distance[t] < train_length ? NEAR : FAR;
	return 3;
}

void tally_sequence(const struct task *task, const struct sequence *s, int T, int train_length, const double *nll,
		    const int32_t *best, struct eval_tally *tally)
{
	for (int t = 0; t < T; t++) {
		int group[TALLY_GROUPS], count = tally_groups(task, s, t, train_length, group);
		for (int i = 0; i < count; i++)
			tally_token(&tally[group[i]], nll[t], best[t] == s->target[t]);
	}
}

struct eval_cell tally_cell(const struct eval_tally *tally, int sequences, int groups, int group)
{
	struct eval_cell cell = { 0 };
	int64_t correct = 0, with = 0, exact = 0;
	double nll_sum = 0, squares = 0;
	for (int i = 0; i < sequences; i++) {
		const struct eval_tally *t = &tally[(size_t)i * (size_t)groups + (size_t)group];
		cell.scored += t->scored;
		correct += t->correct;
		nll_sum += t->nll_sum;
		with += t->scored > 0;
		exact += t->scored > 0 && t->correct == t->scored;
	}
	if (cell.scored == 0)
		return cell;
	double scored = (double)cell.scored, n = sequences;
	cell.nll = nll_sum / scored;
	for (int i = 0; i < sequences; i++) {
		const struct eval_tally *t = &tally[(size_t)i * (size_t)groups + (size_t)group];
		double residual = t->nll_sum - cell.nll * (double)t->scored;
		squares += residual * residual;
	}
	if (sequences > 1)
		cell.nll_se = sqrt(n / (n - 1) * squares) / scored;
	cell.perplexity = exp(cell.nll);
	cell.accuracy = (double)correct / scored;
	cell.exact = (double)exact / (double)with;
	return cell;
}

void tally_floors(const struct method *method, int length, struct eval_cell *cell)
{
	const struct task *task = task_of(method);
	double nll_sum = 0;
	for (int g = 0; g < task_groups(task); g++) {
		struct eval_cell *own = &cell[table_group(g)];
		if (own->scored == 0)
			continue;
		own->floor = task->floor(method, length, g);
		nll_sum += (double)own->scored * log(own->floor);
	}
	cell[NEAR].floor = cell[NEAR].scored ? cell[FIRST].floor : 0;
	cell[FAR].floor = cell[FAR].scored ? cell[FIRST].floor : 0;
	struct eval_cell *all = &cell[all_of(task)];
	all->floor = all->scored ? exp(nll_sum / (double)all->scored) : 0;
}

struct baseline_tally tally_baseline(const struct method *method, const struct task_reference *reference,
				     const struct sequence *s, int train_length, int T, double *p)
{
	struct baseline_tally sum = { 0 };
	reference->probability(method, s, train_length, T, p);
	for (int t = 0; t < T; t++) {
		if (s->target[t] < 0 || s->group[t] != reference->group)
			continue;
		sum.scored++;
		sum.nll_sum -= log(p[t]);
		sum.p_sum += p[t];
	}
	return sum;
}
