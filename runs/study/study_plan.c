#include "runs/study/study_plan.h"

#include "model/base/arena.h"
#include "model/base/io.h"
#include "model/base/lease.h"
#include "model/base/stb.h"
#include "runs/run/run_checkpoint.h"
#include "runs/run/run_eval.h"
#include "runs/run/run_folder.h"
#include "runs/run/run_model.h"
#include "runs/run/run_train.h"
#include "runs/version.h"
#include "train/course.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A row of every group? */
static bool have_row(const struct row *rows, const struct cell *c, int scaling, int length)
{
	const char *name[EVAL_GROUPS];
	int found = 0;
	for (int i = 0; i < arrlen(rows); i++)
		found += rows[i].length == length && cell_owns(c, scaling, &rows[i]);
	return found == eval_group_names(task_of(&c->config.data.task), name);
}

/* Are the files beside a scaling's rows there, as an evaluation makes them? */
static bool have_parts(const struct cell *c, const char *folder, int scaling)
{
	const struct eval_options *eval = &c->config.eval;
	char *sequences = run_folder_csv(folder, eval, c->scaling_label[scaling], true);
	bool there = io_exists(sequences);
	free(sequences);
	for (enum measure_kind m = 0; m < MEASURE_CALIBRATION && eval->stream == EVAL_REPORT; m++) {
		char *measure = run_folder_measure(folder, eval, c->scaling_label[scaling], m);
		there = there && io_exists(measure);
		free(measure);
	}
	return there;
}

/* Its rows, none if those by sequence or the measures have gone. */
static struct err read_rows(const struct cell *c, const char *folder, int scaling, struct row **rows)
{
	if (!have_parts(c, folder, scaling))
		return OK;
	char *path = cell_csv(c, folder, scaling);
	struct err e = rows_read(path, rows);
	free(path);
	return e;
}

static bool have_calibration(const struct measure_row *rows, const struct cell *c, int scaling, int length)
{
	const char *name[EVAL_GROUPS];
	int found = 0;
	for (int i = 0; i < arrlen(rows); i++)
		found += rows[i].row.length == length && cell_owns(c, scaling, &rows[i].row);
	return !c->config.eval.calibrate || found == eval_group_names(task_of(&c->config.data.task), name);
}

static struct err read_calibration(const struct cell *c, const char *folder, int scaling, struct measure_row **rows)
{
	if (!c->config.eval.calibrate)
		return OK;
	char *path = run_folder_measure(folder, &c->config.eval, c->scaling_label[scaling], MEASURE_CALIBRATION);
	struct err e = measure_rows_read(MEASURE_CALIBRATION, path, rows);
	free(path);
	return e;
}

/* Marks the lengths that one scaling lacks. */
static struct err plan_scaling(const struct cell *c, struct cell_plan *p, int scaling, bool all)
{
	struct row *rows = NULL;
	struct measure_row *calibration = NULL;
	struct err e = all ? OK : read_rows(c, p->path, scaling, &rows);
	if (!e.code && !all)
		e = read_calibration(c, p->path, scaling, &calibration);
	for (int i = 0; i < c->lengths && !e.code; i++) {
		if (!cell_possible(c, scaling, c->length[i]))
			continue;
		p->possible++;
		if (have_row(rows, c, scaling, c->length[i]) &&
		    have_calibration(calibration, c, scaling, c->length[i]))
			continue;
		p->wanted[scaling * c->lengths + i] = true;
		p->missing++;
		struct cut cut = protocol_cut(&c->config.eval.protocol, c->length[i]);
		p->eval_tokens += c->config.eval.sequences * cut.windows * c->length[i];
	}
	arrfree(rows);
	arrfree(calibration);
	return e;
}

/* Of the lengths that will be evaluated. */
static struct err plan_memory(const struct cell *c, const struct cell_plan *p, int scaling)
{
	for (int i = 0; i < c->lengths; i++) {
		struct run_evaluation e = { .folder = p->path, .config = &c->config, .scaling = &c->scaling[scaling],
					    .scalings = 1, .length = &c->length[i], .multiple = &c->multiple[i],
					    .lengths = 1 };
		if (p->wanted[scaling * c->lengths + i])
			TRY(err_at(run_evaluate_fits(&e), "%s", c->name));
	}
	return OK;
}

/* Steps of the newest checkpoint, which training goes on from; 0: none. What cannot be listed is told when it is. */
static int64_t steps_saved(const char *path)
{
	char **name;
	int count;
	long long steps = 0, most = 0;
	if (!io_exists(path) || io_list(path, &name, &count).code)
		return 0;
	for (int i = 0; i < count; i++)
		if (!fnmatch(RUN_CHECKPOINTS, name[i], 0) && sscanf(name[i], "checkpoint-%lld", &steps) == 1)
			most = steps > most ? steps : most;
	io_names_free(name, count);
	return most;
}

static int64_t tokens_left(const struct cell *c, const struct cell_plan *p)
{
	const struct config *o = &c->config;
	int64_t saved = p->anew ? 0 : steps_saved(p->path), steps = o->train.steps;
	return course_tokens(&o->model, &o->train, steps) -
	       course_tokens(&o->model, &o->train, saved < steps ? saved : steps);
}

static struct err plan_training(const struct cell *c, struct cell_plan *p)
{
	struct train_plan takes;
	struct err e = c->tuned ? run_train_check_from(&c->config, &takes) : run_train_check(&c->config, &takes);
	if (e.code)
		return err_at(e, "%s", c->name);
	p->bytes = takes.slabs + takes.activations + takes.batch;
	p->parameters = takes.parameters;
	if (p->train && p->sibling < 0)
		p->train_tokens = tokens_left(c, p);
	size_t space = run_model_space(&c->config, takes.parameters), taken = p->train ? run_model_taken(p->path) : 0;
	if (p->train)
		p->space = space > taken ? space - taken : 0;
	return OK;
}

static bool made_by_other(const char *path)
{
	json_t *record;
	if (run_record_read(path, &record).code)
		return false;
	const char *commit = json_string_value(json_object_get(record, "commit"));
	bool other = commit && strcmp(commit, version_commit());
	json_decref(record);
	return other;
}

/* A cell that will have the same weights by the time it is cell `index`'s turn. */
static int find_sibling(const struct plan *plan, int index)
{
	const struct cell *cell = plan->job->grid->cell;
	for (int i = 0; i < arrlen(plan->cell); i++)
		if (i != index && !strcmp(cell[i].trained, cell[index].trained) && !plan->cell[i].diverged &&
		    !plan->cell[i].damaged.code && (i < index || !plan->cell[i].train))
			return i;
	return -1;
}

/* By this process, or by another that was started together with it. */
static bool forced_already(const struct plan *plan, const char *path)
{
	json_t *record;
	if (!plan->job->token || run_record_read(path, &record).code)
		return false;
	const char *token = json_string_value(json_object_get(record, STUDY_FORCED));
	bool is = token && !strcmp(token, plan->job->token);
	json_decref(record);
	return is;
}

/* Has the training that a cell to be fine-tuned waits for come to no weights? */
static bool base_diverged(const struct plan *plan, const struct cell *c)
{
	if (!c->tuned)
		return false;
	const struct cell_plan *base = &plan->cell[c->base];
	return base->path && (!base->train || base->over) && !strcmp(run_folder_status(base->path), "diverged");
}

static struct err find_cell(const struct plan *plan, const struct cell *c, struct cell_plan *p)
{
	enum cell_status status;
	TRY(study_folder_find(plan->job->folder, c, &p->path, &status));
	p->anew = plan->job->force && status > CELL_ABSENT && !forced_already(plan, p->path);
	p->train = p->anew || status < CELL_FINISHED;
	p->diverged = p->train ? base_diverged(plan, c) : status == CELL_DIVERGED;
	p->train = p->train && !p->diverged;
	p->anew = p->anew && p->train;
	return OK;
}

void plan_heed_base(struct plan *plan, int index)
{
	struct cell_plan *p = &plan->cell[index];
	if (!p->train || p->damaged.code || !base_diverged(plan, &plan->job->grid->cell[index]))
		return;
	p->train = p->anew = false;
	p->diverged = true;
	p->missing = 0;
}

static struct err plan_cell(struct plan *plan, int index)
{
	const struct cell *c = &plan->job->grid->cell[index];
	struct cell_plan *p = &plan->cell[index];
	p->sibling = p->train ? find_sibling(plan, index) : -1;
	p->wanted = calloc((size_t)(c->scalings * c->lengths) + 1, sizeof *p->wanted);
	/* NOLINTNEXTLINE(-Wanalyzer-malloc-leak): a cell is planned once */
	BUG_IF(!p->wanted, "no memory for %d marks", c->scalings * c->lengths);
	TRY(plan_training(c, p));
	for (int i = 0; i < c->scalings && !p->diverged && !p->damaged.code; i++)
		p->damaged = plan_scaling(c, p, i, p->train);
	for (int i = 0; i < c->scalings && !p->diverged; i++)
		TRY(plan_memory(c, p, i));
	return OK;
}

static void cell_free(struct cell_plan *p)
{
	free(p->path);
	free(p->wanted);
}

void plan_free(struct plan *plan)
{
	for (int i = 0; i < arrlen(plan->cell); i++)
		cell_free(&plan->cell[i]);
	arrfree(plan->cell);
}

/* Those that are not this shard's are left alone. */
static void find_cells(struct plan *plan)
{
	const struct grid *g = plan->job->grid;
	bool *mine = calloc((size_t)arrlen(g->cell) + 1, sizeof *mine);
	BUG_IF(!mine, "no memory for %d marks", (int)arrlen(g->cell));
	shard_cells(g, &plan->job->shard, mine);
	for (int i = 0; i < arrlen(g->cell); i++) {
		struct cell_plan p = { .sibling = -1, .foreign = !mine[i], .over = !mine[i] };
		if (mine[i])
			p.damaged = find_cell(plan, &g->cell[i], &p);
		arrput(plan->cell, p);
	}
	free(mine);
}

struct err plan_make(struct plan *plan)
{
	find_cells(plan);
	for (int i = 0; i < arrlen(plan->cell); i++)
		if (!plan->cell[i].foreign && !plan->cell[i].damaged.code)
			TRY(plan_cell(plan, i));
	return OK;
}

/* A launcher may give two runs, one after the other, the same token: marks that were there before are those of the
 * earlier one. Where another process is at work the mark is to come. */
struct err plan_forget_forced(struct plan *plan)
{
	char holder[LEASE_HOLDER];
	for (int i = 0; i < arrlen(plan->cell); i++) {
		struct cell_plan *p = &plan->cell[i];
		struct lease *lease;
		if (p->foreign || p->damaged.code || p->anew || !forced_already(plan, p->path))
			continue;
		TRY(lease_try(p->path, &lease, holder));
		if (!lease)
			continue;
		struct err e = run_record_update(p->path, json_pack("{s:s}", STUDY_FORCED, ""));
		if (!e.code)
			e = plan_renew(plan, i);
		lease_release(lease);
		TRY(e);
	}
	return OK;
}

struct err plan_renew(struct plan *plan, int index)
{
	struct cell_plan fresh = { .sibling = -1 };
	struct err e = find_cell(plan, &plan->job->grid->cell[index], &fresh);
	if (e.code) {
		cell_free(&fresh);
		return e;
	}
	fresh.seconds = plan->cell[index].seconds;
	cell_free(&plan->cell[index]);
	plan->cell[index] = fresh;
	TRY(plan_cell(plan, index));
	return plan->cell[index].damaged;
}

static void add_cell(const struct cell_plan *p, struct totals *t)
{
	t->training += p->train && p->sibling < 0;
	t->adopting += p->sibling >= 0;
	t->evaluating += p->missing > 0;
	t->finished += !p->train && !p->missing && !p->diverged;
	t->diverged += p->diverged;
	t->other_version += !p->train && made_by_other(p->path);
	t->possible += p->possible;
	t->missing += p->missing;
	t->train_tokens += p->train_tokens;
	t->eval_tokens += p->eval_tokens;
	t->space += p->space;
	t->parameters = p->parameters > t->parameters ? p->parameters : t->parameters;
	t->bytes = p->bytes > t->bytes ? p->bytes : t->bytes;
	t->seconds += p->seconds;
}

struct totals plan_totals(const struct plan *plan)
{
	struct totals t = { 0 };
	for (int i = 0; i < arrlen(plan->cell); i++) {
		const struct cell_plan *p = &plan->cell[i];
		if (p->foreign)
			continue;
		t.models++;
		if (!p->damaged.code)
			add_cell(p, &t);
	}
	return t;
}

struct err plan_disk_suffices(const struct plan *plan)
{
	size_t space = plan_totals(plan).space;
	return space ? run_model_fits(plan->job->folder, space) : OK;
}

bool cell_has_work(const struct cell_plan *p)
{
	return !p->damaged.code && (p->train || p->missing);
}

double cell_work(const struct cell_plan *p)
{
	return p->seconds > 0 ? p->seconds : 3.0 * (double)p->train_tokens + (double)p->eval_tokens;
}
