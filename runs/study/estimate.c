#include "runs/study/estimate.h"

#include "eval/perplexity.h"
#include "model/base/stb.h"
#include "model/position/scaling.h"
#include "runs/progress.h"
#include "runs/stop.h"
#include "train/loop.h"

#include <stdlib.h>

/* What a kind of cell costs: seconds a token. */
struct cost {
	bool trained, evaluated; /* tried, or taken from one that was */
	double train;
	double base, slope; /* of an evaluation: base + slope T */
};

#define TRIAL_STEPS 20
#define TRIAL_SECONDS 0.03
#define TRIAL_TOKENS 1024 /* of an evaluation at the least length */
/* Of an evaluation at a greater one, by the operations of attention. */
#define TRIAL_LENGTH_SECONDS 0.1

/* ---- Trials ---- */

static int vocabulary_of(const struct config *c)
{
	return task_of(&c->data.task)->vocabulary(&c->data.task);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Seconds a token, the median of a few steps: other programs may hold some of them up. The first is left out, since what
 * it touches is new. */
static struct err time_steps(struct training *t, int64_t steps, double *a_token)
{
	struct step_report report;
	double seconds[TRIAL_STEPS], all = 0;
	int count = 0;
	if (steps > 1)
		TRY(training_step(t, &report));
	do {
		double start = clock_seconds();
		TRY(training_step(t, &report));
		seconds[count] = (clock_seconds() - start) / (double)report.tokens;
		all += clock_seconds() - start;
		count++;
	} while (count < TRIAL_STEPS && count + 1 < steps && all < TRIAL_SECONDS);
	qsort(seconds, (size_t)count, sizeof *seconds, by_size);
	*a_token = seconds[count / 2];
	return OK;
}

static struct err try_training(const struct config *c, struct cost *out)
{
	struct model m = { 0 };
	struct training *t = NULL;
	struct err e = model_open(&c->model, vocabulary_of(c), &m);
	if (!e.code)
		e = training_open(&m, &c->data, &c->train, &t);
	if (!e.code) {
		training_begin(t);
		e = time_steps(t, c->train.steps, &out->train);
	}
	training_close(t);
	model_close(&m);
	out->trained = !e.code;
	return e;
}

static struct err time_evaluation(const struct cell *c, const struct model *m, int scaling, int length, int sequences,
				  double *a_token)
{
	const struct config *o = &c->config;
	struct eval_result result = { 0 };
	struct eval_request request = { .model = m, .data = &o->data, .scaling = &c->scaling[scaling], .length = length,
					.sequences = sequences, .eval_seed = (uint64_t)o->eval.eval_seed, .tune = true,
					.kv = (int)o->eval.kv };
	TRY(eval_check(&request));
	double start = clock_seconds();
	struct err e = eval_run(&request, NULL, NULL, &result);
	*a_token = (clock_seconds() - start) / ((double)length * sequences);
	eval_result_free(&result);
	return e;
}

/* A scaling under which the model takes this length; -1: none. */
static int possible_scaling(const struct cell *c, int length)
{
	for (int i = 0; i < c->scalings; i++)
		if (cell_possible(c, i, length))
			return i;
	return -1;
}

static double attention_ratio(const struct cell *c, const struct cell_plan *p)
{
	const struct model_options *m = &c->config.model;
	return (double)(m->layers * m->width) / ((double)p->parameters + 1);
}

/* The greatest length that can be had in the time; the least where that is all. */
static int far_length(const struct cell *c, double base, double slope, int least)
{
	int far = least;
	for (int i = 0; i < c->lengths; i++) {
		double length = c->length[i];
		if (c->length[i] > far && possible_scaling(c, c->length[i]) >= 0 &&
		    length * (base + slope * length) < TRIAL_LENGTH_SECONDS)
			far = c->length[i];
	}
	return far;
}

static int least_length(const struct cell *c)
{
	int least = 0;
	for (int i = 0; i < c->lengths; i++)
		if (possible_scaling(c, c->length[i]) >= 0 && (!least || c->length[i] < least))
			least = c->length[i];
	return least;
}

static int sequences_of(const struct cell *c, int length)
{
	int64_t most = TRIAL_TOKENS / length, sequences = c->config.eval.sequences;
	return (int)(most < 1 ? 1 : most < sequences ? most : sequences);
}

static struct err try_lengths(const struct cell *c, const struct cell_plan *p, const struct model *m, int least,
			      struct cost *out)
{
	double near, once, far;
	int sequences = sequences_of(c, least);
	TRY(time_evaluation(c, m, possible_scaling(c, least), least, sequences, &once));
	TRY(time_evaluation(c, m, possible_scaling(c, least), least, sequences, &near));
	near = near < once ? near : once;
	double ratio = attention_ratio(c, p);
	out->base = near / (1 + ratio * least);
	out->slope = out->base * ratio;
	int length = far_length(c, out->base, out->slope, least);
	if (length > least) {
		TRY(time_evaluation(c, m, possible_scaling(c, length), length, 1, &far));
		out->slope = far > near ? (far - near) / (length - least) : 0;
		out->base = near - out->slope * least > 0 ? near - out->slope * least : 0;
	}
	out->evaluated = true;
	return OK;
}

static struct err try_evaluation(const struct cell *c, const struct cell_plan *p, struct cost *out)
{
	struct model m = { 0 };
	int least = least_length(c);
	if (!least)
		return OK;
	struct err e = model_open(&c->config.model, vocabulary_of(&c->config), &m);
	if (!e.code) {
		layout_initialise(&m.layout, (uint64_t)c->config.train.seed, m.value);
		e = try_lengths(c, p, &m, least, out);
	}
	model_close(&m);
	return e;
}

/* ---- Costs ---- */

/* Trained by itself. */
static bool trains(const struct cell_plan *p)
{
	return p->train && p->sibling < 0;
}

/* What cannot be tried here is told where it is done. */
static void try_kind(const struct cell *c, const struct cell_plan *p, struct cost *cost)
{
	if (trains(p) && !cost->trained && c->config.train.steps)
		try_training(&c->config, cost);
	if (p->missing && !cost->evaluated)
		try_evaluation(c, p, cost);
}

static double operations(const struct cell *c, const struct cell_plan *p)
{
	double length = (double)c->config.model.train_length;
	return (double)p->parameters * (1 + attention_ratio(c, p) * length);
}

/* A kind that was not tried, by one that was. */
static void borrow(const struct plan *plan, struct cost *cost, int index)
{
	const struct cell *cell = plan->job->grid->cell;
	struct cost *to = &cost[cell[index].group];
	for (int i = 0; i < arrlen(plan->cell); i++) {
		const struct cost *from = &cost[cell[i].group];
		if (from == to || plan->cell[i].foreign || plan->cell[i].damaged.code)
			continue;
		double ratio = operations(&cell[index], &plan->cell[index]) / operations(&cell[i], &plan->cell[i]);
		if (!to->trained && from->trained) {
			to->train = from->train * ratio;
			to->trained = true;
		}
		if (!to->evaluated && from->evaluated) {
			to->base = from->base * ratio;
			to->slope = from->slope * ratio;
			to->evaluated = true;
		}
	}
}

/* Is the evaluation one with that of an earlier scaling, which has the same zones there? */
static bool same_as_earlier(const struct cell *c, const struct cell_plan *p, int scaling, int length)
{
	for (int i = 0; i < scaling; i++)
		if (p->wanted[i * c->lengths + length] &&
		    scaling_same(&c->scaling[i], &c->scaling[scaling], &c->config.model, c->length[length]))
			return true;
	return false;
}

static double seconds_of(const struct cell *c, const struct cell_plan *p, const struct cost *cost)
{
	double seconds = cost->train * (double)p->train_tokens;
	for (int i = 0; i < c->scalings; i++)
		for (int j = 0; j < c->lengths; j++) {
			double length = c->length[j];
			if (p->wanted[i * c->lengths + j] && !same_as_earlier(c, p, i, j))
				seconds += (double)c->config.eval.sequences * length *
					   (cost->base + cost->slope * length);
		}
	return seconds;
}

void plan_estimate(struct plan *plan)
{
	const struct grid *g = plan->job->grid;
	struct cost *cost = calloc((size_t)g->groups + 1, sizeof *cost);
	BUG_IF(!cost, "no memory for %d kinds of cells", g->groups);
	double start = clock_seconds();
	for (int i = 0; i < arrlen(plan->cell); i++) {
		const struct cell_plan *p = &plan->cell[i];
		if (!p->foreign && cell_has_work(p) && clock_seconds() - start < ESTIMATE_SECONDS && !stop_asked())
			try_kind(&g->cell[i], p, &cost[g->cell[i].group]);
	}
	for (int i = 0; i < arrlen(plan->cell); i++) {
		struct cell_plan *p = &plan->cell[i];
		if (p->foreign || !cell_has_work(p))
			continue;
		borrow(plan, cost, i);
		p->seconds = seconds_of(&g->cell[i], p, &cost[g->cell[i].group]);
	}
	free(cost);
}
