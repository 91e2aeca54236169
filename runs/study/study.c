#include "runs/study/study.h"

#include "model/base/arena.h"
#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/progress.h"
#include "runs/run/run_adopt.h"
#include "runs/run/run_eval.h"
#include "runs/run/run_folder.h"
#include "runs/run/run_model.h"
#include "runs/run/run_train.h"
#include "runs/version.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is to be done for one cell. */
struct cell_plan {
	char *path;
	bool train;
	int sibling;            /* whose weights it takes over instead, -1: none */
	bool diverged;          /* before, and not to be tried again */
	int64_t train_tokens, eval_tokens;
	int possible, missing;  /* evaluations: scalings by lengths */
	bool *wanted;           /* [scalings][lengths]: missing */
};

struct plan {
	const struct study_job *job;
	struct cell_plan *cell; /* stb_ds */
	size_t parameters, bytes;
	size_t space;           /* on disk */
	int training, adopting, evaluating, finished, other_version;
};

/* A row of every group? */
static bool have_row(const struct row *rows, const struct cell *c, int scaling, int length)
{
	const char *name[EVAL_GROUPS];
	int found = 0;
	for (int i = 0; i < arrlen(rows); i++)
		found += rows[i].length == length && cell_owns(c, scaling, &rows[i]);
	return found == eval_group_names(task_of(&c->config.data.task), name);
}

/* Its rows, none if those by sequence have gone: an evaluation makes both. */
static struct err read_rows(const struct cell *c, const char *folder, int scaling, struct row **rows)
{
	char *path = cell_csv(c, folder, scaling);
	char *sequences = run_folder_csv(folder, c->config.eval.stream, c->scaling_label[scaling], true);
	struct err e = io_exists(sequences) ? rows_read(path, rows) : OK;
	free(path);
	free(sequences);
	return e;
}

/* Marks the lengths that one scaling lacks. */
static struct err plan_scaling(const struct cell *c, struct cell_plan *p, int scaling, bool all)
{
	struct row *rows = NULL;
	struct err e = all ? OK : read_rows(c, p->path, scaling, &rows);
	for (int i = 0; i < c->lengths && !e.code; i++) {
		if (!cell_possible(c, scaling, c->length[i]))
			continue;
		p->possible++;
		if (have_row(rows, c, scaling, c->length[i]))
			continue;
		p->wanted[scaling * c->lengths + i] = true;
		p->missing++;
		p->eval_tokens += c->config.eval.sequences * c->length[i];
	}
	arrfree(rows);
	return e;
}

static struct err plan_training(const struct cell *c, struct cell_plan *p, struct plan *plan)
{
	struct train_plan takes;
	struct err e = run_train_check(&c->config, &takes);
	if (e.code)
		return err_at(e, "%s", c->name);
	size_t bytes = takes.slabs + takes.activations + takes.batch;
	plan->bytes = bytes > plan->bytes ? bytes : plan->bytes;
	plan->parameters = takes.parameters > plan->parameters ? takes.parameters : plan->parameters;
	if (p->train && p->sibling < 0)
		p->train_tokens = c->config.train.steps * c->config.train.batch * c->config.model.train_length;
	if (p->train)
		plan->space += run_model_space(&c->config, takes.parameters);
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
		    (i < index || !plan->cell[i].train))
			return i;
	return -1;
}

static struct err find_cell(const struct plan *plan, const struct cell *c, struct cell_plan *p)
{
	enum cell_status status;
	TRY(study_folder_find(plan->job->folder, c, &p->path, &status));
	p->train = plan->job->force || status < CELL_FINISHED;
	p->diverged = !p->train && status == CELL_DIVERGED;
	return OK;
}

static struct err plan_cell(struct plan *plan, int index)
{
	const struct cell *c = &plan->job->grid->cell[index];
	struct cell_plan *p = &plan->cell[index];
	p->sibling = p->train ? find_sibling(plan, index) : -1;
	p->wanted = calloc((size_t)(c->scalings * c->lengths) + 1, sizeof *p->wanted);
	/* NOLINTNEXTLINE(-Wanalyzer-malloc-leak): a cell is planned once */
	BUG_IF(!p->wanted, "no memory for %d marks", c->scalings * c->lengths);
	TRY(plan_training(c, p, plan));
	for (int i = 0; i < c->scalings && !p->diverged; i++)
		TRY(plan_scaling(c, p, i, p->train));
	plan->training += p->train && p->sibling < 0;
	plan->adopting += p->sibling >= 0;
	plan->evaluating += p->missing > 0;
	plan->finished += !p->train && !p->missing;
	plan->other_version += !p->train && made_by_other(p->path);
	return OK;
}

static void plan_free(struct plan *plan)
{
	for (int i = 0; i < arrlen(plan->cell); i++) {
		free(plan->cell[i].path);
		free(plan->cell[i].wanted);
	}
	arrfree(plan->cell);
}

static struct err plan_make(struct plan *plan)
{
	const struct cell *cell = plan->job->grid->cell;
	for (int i = 0; i < arrlen(cell); i++) {
		struct cell_plan p = { .sibling = -1 };
		struct err e = find_cell(plan, &cell[i], &p);
		arrput(plan->cell, p);
		TRY(e);
	}
	for (int i = 0; i < arrlen(cell); i++)
		TRY(plan_cell(plan, i));
	return plan->space ? run_model_fits(plan->job->folder, plan->space) : OK;
}

static void plan_print(const struct plan *plan)
{
	char memory[32];
	int possible = 0, missing = 0;
	int64_t train_tokens = 0, eval_tokens = 0;
	for (int i = 0; i < arrlen(plan->cell); i++) {
		possible += plan->cell[i].possible;
		missing += plan->cell[i].missing;
		train_tokens += plan->cell[i].train_tokens;
		eval_tokens += plan->cell[i].eval_tokens;
	}
	fprintf(stderr, "study %s: models: %d; %d to train, %d to evaluate, %d finished\n", plan->job->folder,
		(int)arrlen(plan->cell), plan->training, plan->evaluating, plan->finished);
	fprintf(stderr, "  training: %zu parameters at most, %s, %" PRId64 " tokens\n", plan->parameters,
		memory_text(plan->bytes, memory), train_tokens);
	if (plan->adopting)
		fprintf(stderr, "  %d more take over the weights of one that only evaluation tells apart from them\n",
			plan->adopting);
	fprintf(stderr, "  evaluation: %d of %d (model, scaling, length), %" PRId64 " tokens\n", missing, possible,
		eval_tokens);
	if (plan->other_version)
		fprintf(stderr, "warning: %d finished models were trained by another version of the program (this is "
				"commit %s); --force trains them anew\n", plan->other_version, version_commit());
}

/* Scalings first .. last - 1 that lack the same lengths. */
static struct err evaluate_alike(const struct cell *c, const struct cell_plan *p, int first, int last,
				 const struct config *config)
{
	const bool *wanted = &p->wanted[first * c->lengths];
	struct run_evaluation e = { .folder = p->path, .config = config, .scaling = &c->scaling[first],
				    .scalings = last - first, .skip = true };
	int *length = NULL;
	double *multiple = NULL;
	for (int i = 0; i < c->lengths; i++)
		if (wanted[i]) {
			arrput(length, c->length[i]);
			arrput(multiple, c->multiple[i]);
		}
	e.length = length;
	e.multiple = multiple;
	e.lengths = (int)arrlen(length);
	struct err error = e.lengths ? run_evaluate(&e, NULL) : OK;
	arrfree(length);
	arrfree(multiple);
	return error;
}

static struct err evaluate_cell(const struct cell *c, const struct cell_plan *p, const struct config *config)
{
	size_t row = (size_t)c->lengths * sizeof *p->wanted;
	for (int first = 0, last; first < c->scalings; first = last) {
		last = first + 1;
		while (last < c->scalings &&
		       !memcmp(&p->wanted[first * c->lengths], &p->wanted[last * c->lengths], row))
			last++;
		TRY(evaluate_alike(c, p, first, last, config));
	}
	return OK;
}

/* From its sibling if that has come to weights, else by training. */
static struct err train_cell(const struct plan *plan, const struct cell_plan *p, const struct config *config,
			     const char *what)
{
	const char *command_line = plan->job->command_line;
	struct run_trained trained;
	if (p->sibling >= 0) {
		const char *from = plan->cell[p->sibling].path;
		bool adopted;
		struct err why;
		TRY(run_adopt(p->path, config, command_line, from, &adopted, &why));
		if (adopted)
			return OK;
		fprintf(stderr, "%s: trained by itself: %s\n", run_folder_name(p->path), why.text);
	}
	return run_train(p->path, config, command_line, what, &trained);
}

static struct err work_on(const struct plan *plan, int index, const char *what)
{
	const struct cell *c = &plan->job->grid->cell[index];
	const struct cell_plan *p = &plan->cell[index];
	struct config config = c->config;
	config.run.threads = plan->job->threads;
	config.run.force = true;
	if (p->train)
		TRY(train_cell(plan, p, &config, what));
	return evaluate_cell(c, p, &config);
}

static bool has_work(const struct cell_plan *p)
{
	return p->train || p->missing;
}

/* The share of the work by tokens; a trained token costs about three evaluated ones, forward and backward. */
static double work_of(const struct cell_plan *p)
{
	return 3.0 * (double)p->train_tokens + (double)p->eval_tokens;
}

static void report_failure(const char *path, const struct err *e)
{
	fprintf(stderr, "ropewalk: %s: %s\n", run_folder_name(path), e->text);
	if (*e->hint)
		fprintf(stderr, "  %s\n", e->hint);
}

/* "study 2 of 5, about 1 min 20 s left: seed-102-1a2b3c4d" */
static const char *headline(const struct plan *plan, int index, double seconds, char text[200])
{
	double done = 0, all = 0;
	char left[64] = "", time[32];
	int number = 1, count = 0;
	for (int i = 0; i < arrlen(plan->cell); i++) {
		all += work_of(&plan->cell[i]);
		done += i < index ? work_of(&plan->cell[i]) : 0;
		count += has_work(&plan->cell[i]);
		number += i < index && has_work(&plan->cell[i]);
	}
	if (done > 0)
		snprintf(left, sizeof left, ", about %s left", duration_text(seconds / done * (all - done), time));
	snprintf(text, 200, "%d of %d%s: %.100s", number, count, left, run_folder_name(plan->cell[index].path));
	return text;
}

static struct err work(const struct plan *plan, int *failed)
{
	double start = clock_seconds(), last = start;
	for (int i = 0; i < arrlen(plan->cell); i++) {
		*failed += plan->cell[i].diverged;
		if (!has_work(&plan->cell[i]))
			continue;
		char what[200];
		fprintf(stderr, "%s\n", headline(plan, i, clock_seconds() - start, what));
		struct err e = work_on(plan, i, what);
		if (e.code) {
			report_failure(plan->cell[i].path, &e);
			++*failed;
		}
		double now = clock_seconds();
		TRY(study_folder_add_seconds(plan->job->folder, now - last));
		last = now;
	}
	return OK;
}

/* With the folder locked, if it is there already; else it is locked when it has been made. */
static struct err plan_and_work(const struct study_job *job, struct plan *plan, int *lock, int *failed)
{
	if (!job->force)
		TRY(study_folder_continues(job->folder, job->grid));
	TRY(plan_make(plan));
	plan_print(plan);
	TRY(io_make_folder(job->folder));
	if (*lock < 0)
		TRY(io_lock(job->folder, lock));
	TRY(study_folder_write(job->folder, job->study, job->command_line));
	return work(plan, failed);
}

struct err study_run(const struct study_job *job, int *failed)
{
	struct plan plan = { .job = job };
	int lock = -1;
	*failed = 0;
	TRY(study_folder_check(job->folder));
	if (io_exists(job->folder))
		TRY(io_lock(job->folder, &lock));
	struct err e = plan_and_work(job, &plan, &lock, failed);
	io_unlock(lock);
	plan_free(&plan);
	return e;
}
