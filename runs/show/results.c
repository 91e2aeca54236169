#include "runs/show/results.h"

#include "eval/tally.h"
#include "model/base/io.h"
#include "model/base/stb.h"
#include "model/position/scaling.h"
#include "runs/run/run_folder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct err read_scaling(const struct cell *c, int scaling, struct cell_results *out)
{
	char *path = cell_csv(c, out->folder, scaling);
	struct err e = rows_read(path, &out->row[scaling]);
	free(path);
	if (e.code || !c->config.eval.calibrate)
		return e;
	path = run_folder_measure(out->folder, &c->config.eval, c->scaling_label[scaling], MEASURE_CALIBRATION);
	e = measure_rows_read(MEASURE_CALIBRATION, path, &out->calibration[scaling]);
	free(path);
	return e;
}

struct err cell_results_read(const struct cell *c, bool read, struct cell_results *out)
{
	out->row = calloc((size_t)c->scalings, sizeof *out->row);
	out->sequence = calloc((size_t)c->scalings, sizeof *out->sequence);
	out->calibration = calloc((size_t)c->scalings, sizeof *out->calibration);
	BUG_IF(!out->row || !out->sequence || !out->calibration, "no memory for %d pointers", c->scalings);
	struct err e = read ? run_record_read(out->folder, &out->record) : OK;
	for (int i = 0; read && i < c->scalings && !e.code; i++)
		e = read_scaling(c, i, out);
	return e;
}

static struct err read_cell(const char *folder, const struct cell *c, struct cell_results *out)
{
	char *path;
	TRY(study_folder_find(folder, c, &path, &out->status));
	out->folder = text_keep(path);
	free(path);
	return cell_results_read(c, out->status >= CELL_FINISHED, out);
}

/* There will be nothing to go on from: as if it had diverged itself. */
static bool lost_its_base(const struct results *r, const struct cell *c, const struct cell_results *own)
{
	return c->tuned && own->status < CELL_FINISHED && r->cell[c->base].status == CELL_DIVERGED;
}

struct err results_read(const char *folder, const struct study *s, const struct grid *g, struct results *out)
{
	*out = (struct results){ .study = s, .grid = g, .folder = text_keep(folder) };
	out->late = calloc(1, sizeof *out->late);
	BUG_IF(!out->late, "no memory for an error");
	for (int i = 0; i < arrlen(g->cell); i++) {
		struct cell_results cell = { 0 };
		struct err e = read_cell(folder, &g->cell[i], &cell);
		if (!e.code && lost_its_base(out, &g->cell[i], &cell))
			cell.status = CELL_DIVERGED;
		arrput(out->cell, cell);
		if (e.code) {
			results_free(out);
			return e;
		}
	}
	return OK;
}

void results_free(struct results *r)
{
	for (int i = 0; i < arrlen(r->cell); i++) {
		for (int j = 0; r->cell[i].row && j < r->grid->cell[i].scalings; j++) {
			arrfree(r->cell[i].row[j]);
			arrfree(r->cell[i].calibration[j]);
			arrfree(r->cell[i].sequence[j].row);
		}
		free(r->cell[i].row);
		free(r->cell[i].calibration);
		free(r->cell[i].sequence);
		json_decref(r->cell[i].record);
	}
	arrfree(r->cell);
	free(r->late);
	*r = (struct results){ 0 };
}

const struct row *results_find(const struct results *r, int cell, int scaling, double multiple, const char *group)
{
	const struct cell *c = &r->grid->cell[cell];
	const struct row *row = r->cell[cell].row[scaling];
	for (int i = 0; i < arrlen(row); i++)
		if (row[i].multiple == multiple && !strcmp(row[i].group, group) && cell_owns(c, scaling, &row[i]))
			return &row[i];
	return NULL;
}

int results_first(const struct results *r, int cells)
{
	for (int i = 0; i < arrlen(r->grid->cell); i++)
		if (r->grid->cell[i].group == cells)
			return i;
	BUG("no cells in group %d", cells);
}

bool results_has_group(const struct cell *c, const char *group)
{
	const char *name[EVAL_GROUPS];
	int count = eval_group_names(task_of(&c->config.data.task), name);
	for (int i = 0; i < count; i++)
		if (!strcmp(name[i], group))
			return true;
	return false;
}

static int length_at(const struct cell *c, double multiple)
{
	for (int i = 0; i < c->lengths; i++)
		if (c->multiple[i] == multiple)
			return c->length[i];
	return 0;
}

/* One seed's numbers. */
struct seed_numbers {
	double *nll, *logit; /* stb_ds arrays, by seed */
	double nll_se;       /* sum of those of the models */
};

static void add_row(struct summary *s, struct seed_numbers *n, const struct row *row)
{
	const struct eval_cell *cell = &row->cell;
	double scored = (double)cell->scored;
	s->least = s->done ? fmin(s->least, cell->perplexity) : cell->perplexity;
	s->greatest = s->done ? fmax(s->greatest, cell->perplexity) : cell->perplexity;
	s->accuracy += cell->accuracy;
	s->floor += cell->floor;
	s->scored = cell->scored;
	s->done++;
	arrput(n->nll, cell->nll);
	arrput(n->logit, empirical_logit(cell->accuracy * scored, scored));
	n->nll_se += cell->nll_se;
}

/* The halves in each logit may leave the mean of accuracies near 0 or 1 outside of their interval. */
static void hold_mean(struct summary *s)
{
	double mean = log(s->accuracy / (1 - s->accuracy));
	if (s->done < 2)
		return;
	s->logit.low = fmin(s->logit.low, mean);
	s->logit.high = fmax(s->logit.high, mean);
}

static void finish_means(struct summary *s, struct seed_numbers *n)
{
	if (s->done) {
		s->nll = mean_interval(n->nll, s->done, CONFIDENCE);
		s->logit = mean_interval(n->logit, s->done, CONFIDENCE);
		s->perplexity = exp(s->nll.mean);
		s->accuracy /= s->done;
		s->floor /= s->done;
		hold_mean(s);
	}
	arrfree(n->nll);
	arrfree(n->logit);
}

static const struct sequence_row *sequences_of(const struct results *r, int cell, int scaling)
{
	const struct cell *c = &r->grid->cell[cell];
	struct by_sequence *s = &r->cell[cell].sequence[scaling];
	if (!s->read) {
		char *path = run_folder_csv(r->cell[cell].folder, &c->config.eval, c->scaling_label[scaling],
					    true);
		struct err e = io_exists(path) ? sequence_rows_read(path, &s->row)
					       : err_failed("`ropewalk study` and `ropewalk eval` make it again.",
							    "%s: is missing", path);
		if (e.code && !r->late->code)
			*r->late = e;
		free(path);
		s->read = true;
	}
	return s->row;
}

/* Rows by sequence that do not add up to their row: a copy cut at a line, or edited. Errors made of them would be wrong
 * and look right. */
static struct err not_its_sum(const struct results *r, int cell, int scaling, int length, const char *group)
{
	const struct cell *c = &r->grid->cell[cell];
	char *path = run_folder_csv(r->cell[cell].folder, &c->config.eval, c->scaling_label[scaling], true);
	struct err e = err_usage("Remove it: `ropewalk study` and `ropewalk eval` make it again.",
				 "%s: the rows of %s at length %d do not add up to that of the file beside it", path,
				 group, length);
	free(path);
	return e;
}

/* Is the row of this sequence's? */
static bool is_sequence_of(const struct sequence_row *s, const struct cell *c, int length, const char *group)
{
	return s->length == length && !strcmp(s->group, group) && s->eval_seed == c->config.eval.eval_seed &&
	       s->sequences == c->config.eval.sequences && s->sequence < s->sequences;
}

void results_tally(const struct results *r, int cell, int scaling, double multiple, const char *group, double sign,
		   struct eval_tally *tally)
{
	const struct cell *c = &r->grid->cell[cell];
	const struct row *whole = results_find(r, cell, scaling, multiple, group);
	const struct sequence_row *row = sequences_of(r, cell, scaling);
	struct eval_tally sum = { 0 };
	int length = length_at(c, multiple);
	for (int i = 0; i < arrlen(row); i++) {
		const struct sequence_row *s = &row[i];
		if (!is_sequence_of(s, c, length, group))
			continue;
		struct eval_tally *to = &tally[s->sequence];
		to->scored += sign > 0 ? s->tally.scored : 0;
		to->nll_sum += sign * s->tally.nll_sum;
		sum.scored += s->tally.scored;
		sum.nll_sum += s->tally.nll_sum;
	}
	double wanted = whole ? whole->cell.nll * (double)whole->cell.scored : sum.nll_sum;
	bool adds_up = !whole || (sum.scored == whole->cell.scored &&
				  (sum.nll_sum == wanted || fabs(sum.nll_sum - wanted) <= 1e-6 * (1 + fabs(wanted))));
	if (!adds_up && !r->late->code)
		*r->late = not_its_sum(r, cell, scaling, length, group);
}

/* Over the sequences, each one's NLL summed over the seeds. */
static double clustered_error(const struct results *r, int cells, int scaling, double multiple, const char *group)
{
	int sequences = (int)r->grid->cell[results_first(r, cells)].config.eval.sequences;
	struct eval_tally *tally = calloc((size_t)sequences, sizeof *tally);
	BUG_IF(!tally, "no memory for %d sequences", sequences);
	for (int i = 0; i < arrlen(r->grid->cell); i++)
		if (r->grid->cell[i].group == cells && results_find(r, i, scaling, multiple, group))
			results_tally(r, i, scaling, multiple, group, 1, tally);
	double error = tally_cell(tally, sequences, 1, 0).nll_se;
	free(tally);
	return error;
}

/* Noise of the sequences beside that of the seeds. Each sequence is the same for all seeds, so the error of their mean
 * is at most the mean of their errors: where that is small, the sequences need not be read. */
static void add_noise(const struct results *r, int cells, int scaling, double multiple, const char *group,
		      double nll_se_sum, struct summary *s)
{
	s->nll_se = s->done ? nll_se_sum / s->done : 0;
	double spread = s->done > 1 ? s->nll.sd / 2 : 0;
	if (s->nll_se <= spread)
		return;
	if (s->done > 1)
		s->nll_se = clustered_error(r, cells, scaling, multiple, group);
	s->noisy = s->nll_se > spread;
}

struct summary results_summary(const struct results *r, int cells, int scaling, double multiple, const char *group)
{
	const struct cell *first = &r->grid->cell[results_first(r, cells)];
	struct summary s = { .sequences = first->config.eval.sequences, .length = length_at(first, multiple) };
	struct seed_numbers numbers = { 0 };
	int empty = 0;
	for (int i = 0; i < arrlen(r->grid->cell); i++) {
		if (r->grid->cell[i].group != cells)
			continue;
		s.seeds++;
		s.diverged += r->cell[i].status == CELL_DIVERGED;
		const struct row *row = results_find(r, i, scaling, multiple, group);
		if (row && row->cell.scored)
			add_row(&s, &numbers, row);
		else if (row)
			empty++;
	}
	finish_means(&s, &numbers);
	add_noise(r, cells, scaling, multiple, group, numbers.nll_se, &s);
	if (!s.length || !results_has_group(first, group) || !cell_possible(first, scaling, s.length))
		s.state = SUMMARY_IMPOSSIBLE;
	else if (s.done)
		s.state = SUMMARY_FOUND;
	else if (empty)
		s.state = SUMMARY_EMPTY;
	else
		s.state = s.diverged == s.seeds ? SUMMARY_DIVERGED : SUMMARY_ABSENT;
	return s;
}

static const char *first_group(const struct cell *c)
{
	return task_of(&c->config.data.task)->groups[0];
}

/* The scaling under which the model is as it was trained; the first one if there is none. */
static int untouched_scaling(const struct cell *c)
{
	for (int i = 0; i < c->scalings; i++) {
		int length = (int)c->config.model.train_length;
		if (!cell_possible(c, i, length))
			continue;
		struct scaling_request request = scaling_request(&c->scaling[i], &c->config.model, length);
		if (scaling_factor(&request) == 1)
			return i;
	}
	return 0;
}

static bool has_floor(const struct cell *c)
{
	const struct method *task = &c->config.data.task;
	return !isnan(task_of(task)->floor(task, (int)c->config.model.train_length, 0));
}

struct reached results_reached(const struct results *r, int cells)
{
	struct reached n = { 0 };
	const struct cell *first = &r->grid->cell[results_first(r, cells)];
	int scaling = untouched_scaling(first), unknown = 0;
	for (int i = 0; i < arrlen(r->grid->cell); i++) {
		if (r->grid->cell[i].group != cells)
			continue;
		n.seeds++;
		const struct row *row = results_find(r, i, scaling, 1, first_group(first));
		n.known += row || r->cell[i].status == CELL_DIVERGED;
		n.reached += row && row->cell.scored && row->cell.perplexity <= FLOOR_REACHED * row->cell.floor;
		unknown += row && isnan(row->cell.floor);
	}
	if (unknown || !has_floor(first))
		n.known = n.reached = 0;
	return n;
}
