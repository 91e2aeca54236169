#include "eval/perplexity.h"

#include "eval/by_position.h"
#include "eval/decoding.h"
#include "eval/recall_grid.h"
#include "eval/tally.h"
#include "eval/windows.h"
#include "model/base/threads.h"
#include "model/positions.h"

#include <math.h>
#include <stdlib.h>

struct evaluation {
	const struct eval_request *request;
	const struct method *method; /* the task */
	struct cut cut;
	struct windows windows;
	struct transformer *transformer; /* one of these; the other is NULL */
	struct decoding *decoding;
	struct outcome outcome;      /* of the windows at hand */
	struct arena memory;
	double *p;                   /* [windows at once][length], as is */
	double *positions;           /* this, where they are drawn */
	struct baseline_tally *baseline; /* [windows at once][references] */
	struct baseline_tally sum[EVAL_REFERENCES];
	struct eval_result *result;
};

static struct numbering numbering_of(const struct eval_request *r)
{
	return (struct numbering){ .options = &r->model->options, .task = r->data->task.entry->name,
				   .placed = task_placed(&r->data->task) };
}

/* `fixed` [T] are those of the task where none move. */
static struct transformer_request request_of(const struct eval_request *r, int lot, const double *fixed)
{
	struct numbering n = numbering_of(r);
	return (struct transformer_request){ .model = r->model, .B = lot, .T = r->length,
					     .positions = positions_move(&n) ? NULL : fixed,
					     .each = positions_each(&n), .scaling = r->scaling, .pairs = r->pairs,
					     .probe = r->watch ? r->watch->probe : NULL };
}

static struct cut cut_of(const struct eval_request *r)
{
	return protocol_cut(r->protocol, r->length);
}

int eval_lot(const struct eval_request *r)
{
	struct cut cut = cut_of(r);
	return windows_most(&cut, r->sequences);
}

static struct batch_source source_of(const struct eval_request *r)
{
	return (struct batch_source){ .task = &r->data->task, .train_length = (int)r->model->options.train_length,
				      .length = cut_of(r).span, .seed = r->eval_seed,
				      .stream = r->tune ? STREAM_TUNE : STREAM_REPORT };
}

struct err eval_check_vocabulary(const struct eval_request *r)
{
	int V = task_of(&r->data->task)->vocabulary(&r->data->task);
	if (r->model->V == V)
		return OK;
	return err_usage("Give the --task the model was trained on.", "the model has %d tokens, the task %s has %d",
			 r->model->V, r->data->task.entry->name, V);
}

struct err eval_fits(int length, int span, size_t work, int sequences, size_t results)
{
	struct arena all = { 0 };
	char need[32], have[MEMORY_AVAILABLE_TEXT];
	arena_take(&all, work, 1);
	arena_take(&all, results, 1);
	if (all.used <= memory_available())
		return OK;
	if (results > work)
		return err_usage("Choose fewer --sequences.", "the results of %d sequences need %s, and %s", sequences,
				 memory_text(results, need), memory_available_text(have));
	if (span > length)
		return err_usage("Choose a smaller span in --protocol, or smaller --multiples.",
				 "a length of %d tokens in documents of %d needs %s, and %s", length, span,
				 memory_text(work, need), memory_available_text(have));
	return err_usage("Choose smaller --multiples.", "a length of %d tokens needs %s, and %s", length,
			 memory_text(work, need), memory_available_text(have));
}

/* What they are defined for: sequences as the task makes them. */
static int count_references(const struct eval_request *r)
{
	const struct task *task = task_of(&r->data->task);
	int count = 0;
	while (!protocol_cuts(r->protocol, r->length) && task->references && task->references[count].name)
		count++;
	BUG_IF(count > EVAL_REFERENCES, "%s: more than %d references", task->entry.name, EVAL_REFERENCES);
	return count;
}

static void place(struct arena *a, int most, const struct eval_request *r, struct evaluation *e)
{
	struct numbering n = numbering_of(r);
	size_t tokens = (size_t)most * (size_t)r->length;
	e->p = ARENA_TAKE(a, double, count_references(r) ? tokens : 0);
	e->positions = ARENA_TAKE(a, double, positions_move(&n) ? tokens : 0);
	e->baseline = ARENA_TAKE(a, struct baseline_tally, (size_t)most * EVAL_REFERENCES);
}

static size_t measure_bytes(const struct eval_request *r)
{
	struct arena all = { 0 };
	arena_take(&all, by_position_bytes(task_of(&r->data->task), r->length), 1);
	arena_take(&all, recall_grid_bytes(r->length), 1);
	return r->measures ? all.used : 0;
}

/* Counts what an evaluation with a workspace of `transformer` bytes holds. */
static struct err check_bytes(const struct eval_request *r, size_t transformer)
{
	struct evaluation ignored;
	struct cut cut = cut_of(r);
	struct arena work = { 0 };
	const char *names[EVAL_GROUPS];
	size_t groups = (size_t)eval_group_names(task_of(&r->data->task), names);
	place(&work, windows_most(&cut, r->sequences), r, &ignored);
	arena_take(&work, transformer, 1);
	arena_take(&work, windows_bytes(&cut, r->sequences), 1);
	arena_take(&work, measure_bytes(r), 1);
	arena_take(&work, r->model->value ? 0 : r->model->layout.size, sizeof(real));
	return eval_fits(r->length, cut.span, work.used, r->sequences,
			 (size_t)r->sequences * groups * sizeof(struct eval_tally));
}

/* Of the workspace of a lot, whose request it checks. */
static struct err workspace_bytes(const struct eval_request *r, const double *positions, size_t *bytes)
{
	struct cut cut = cut_of(r);
	int lot = windows_most(&cut, r->sequences);
	struct transformer_request request = request_of(r, lot, positions);
	return decoding_wanted(r) ? decoding_bytes(r, lot, positions, bytes) : transformer_bytes(&request, bytes);
}

static struct err check_lot(const struct eval_request *r, const double *positions)
{
	size_t bytes;
	TRY(workspace_bytes(r, positions, &bytes));
	return check_bytes(r, bytes);
}

struct err eval_check_size(const struct eval_request *r)
{
	size_t bytes;
	return workspace_bytes(r, NULL, &bytes).code ? OK : check_bytes(r, bytes);
}

static struct err check_positions(const struct eval_request *r)
{
	struct numbering n = numbering_of(r);
	TRY(positions_check(&n, r->length));
	if (!positions_move(&n))
		return OK;
	if (protocol_cuts(r->protocol, r->length))
		return err_usage("Give --protocol=all or half.",
				 "protocol: %s: windows of a document begin at position 0, and here positions are "
				 "the sequence's own", r->protocol->entry->name);
	if (r->kv != EVAL_KV_OFF)
		return err_usage("Leave --kv out.",
				 "kv: sequences at positions of their own are not decoded side by side");
	TRY(scaling_check(r->scaling, &r->model->options, positions_reach(&n, r->length)));
	return positions_check_scaling(&n, r->scaling, r->length);
}

/* Those of whole sequences; windows of longer ones are numbered from 0 on. */
static const double *fixed_positions(const struct eval_request *r, const struct batch *documents)
{
	return protocol_cuts(r->protocol, r->length) ? NULL : documents->positions;
}

struct err eval_check(const struct eval_request *request)
{
	struct batch_source source = source_of(request);
	struct batch first;
	TRY(eval_check_vocabulary(request));
	TRY(task_of(source.task)->check(source.task, source.train_length, source.length));
	TRY(check_positions(request));
	TRY(eval_check_size(request));
	struct err e = batch_open(&source, 1, &first);
	if (!e.code)
		e = check_lot(request, fixed_positions(request, &first));
	batch_close(&first);
	return e;
}

static struct err measures_open(const struct eval_request *r, struct eval_result *out)
{
	const struct task *task = task_of(&r->data->task);
	if (!r->measures)
		return OK;
	TRY(by_position_open(task, r->length, &out->by_position));
	return recall_grid_open(r->length, (int)r->model->options.train_length, protocol_cuts(r->protocol, r->length),
				&out->recall_grid);
}

static struct err result_open(const struct eval_request *r, struct eval_result *out)
{
	const struct task *task = task_of(&r->data->task);
	out->groups = eval_group_names(task, out->group);
	out->sequences = r->sequences;
	out->references = count_references(r);
	out->tally = calloc((size_t)r->sequences * (size_t)out->groups, sizeof *out->tally);
	if (!out->tally) /* NOLINT(-Wanalyzer-malloc-leak): `out` holds nothing before */
		return err_failed("Choose fewer --sequences.", "no memory for the results of %d sequences",
				  r->sequences);
	return measures_open(r, out);
}

static void find_factor(const struct eval_request *r, const struct batch *documents, struct eval_result *out)
{
	struct numbering numbering = numbering_of(r);
	const double *fixed = fixed_positions(r, documents);
	out->reach = positions_move(&numbering) ? positions_reach(&numbering, r->length)
		     : fixed                    ? fixed[r->length - 1] + 1
						: r->length;
	struct scaling_request scaling = scaling_request(r->scaling, &r->model->options, out->reach);
	out->factor = scaling_factor(&scaling);
}

static struct err evaluation_open(struct evaluation *e)
{
	const struct eval_request *r = e->request;
	BUG_IF(r->sequences < 1, "an evaluation of %d sequences", r->sequences);
	BUG_IF((r->pairs || r->watch) && decoding_wanted(r), "pairs set apart, or watched, token by token");
	BUG_IF(r->watch && !e->cut.whole, "windows of documents watched");
	TRY(eval_check_vocabulary(r));
	struct batch_source source = source_of(r);
	TRY(windows_open(&source, &e->cut, r->sequences, &e->windows));
	const double *positions = fixed_positions(r, &e->windows.batch);
	struct transformer_request request = request_of(r, e->windows.most, positions);
	if (decoding_wanted(r))
		TRY(decoding_open(r, e->windows.most, positions, &e->decoding));
	else
		TRY(transformer_open(&request, &e->transformer));
	struct arena measure = { 0 };
	place(&measure, e->windows.most, r, e);
	TRY(arena_reserve(&e->memory, measure.used, "an evaluation"));
	place(&e->memory, e->windows.most, r, e);
	find_factor(r, &e->windows.batch, e->result);
	return result_open(r, e->result);
}

static void evaluation_close(struct evaluation *e)
{
	transformer_close(e->transformer);
	decoding_close(e->decoding);
	windows_close(&e->windows);
	arena_free(&e->memory);
}

/* Documents of which some windows are at hand. */
struct lot {
	struct evaluation *evaluation;
	int first;    /* number of the lot's first document */
	int at_hand;  /* number in the lot of the first at hand */
};

/* The windows at hand of one document, in order. */
static void score_document(int index, int thread, void *data)
{
	(void)thread;
	const struct lot *lot = data;
	struct evaluation *e = lot->evaluation;
	const struct windows *w = &e->windows;
	int T = e->request->length, train_length = (int)e->request->model->options.train_length;
	int document = lot->at_hand + index, begin = document * w->cut.windows - w->first;
	size_t row = (size_t)(lot->first + document) * (size_t)e->result->groups;
	for (int i = begin > 0 ? begin : 0; i < w->count && windows_document(w, i) == document; i++) {
		struct sequence s = windows_at(w, i);
		size_t at = (size_t)i * (size_t)T;
		tally_sequence(task_of(e->method), &s, T, train_length, e->outcome.nll + at, e->outcome.best + at,
			       &e->result->tally[row]);
		for (int j = 0; j < e->result->references; j++)
			e->baseline[i * EVAL_REFERENCES + j] =
				tally_baseline(e->method, &task_of(e->method)->references[j], &s, train_length, T,
					       e->p + at);
	}
}

static void add_baselines(struct evaluation *e)
{
	for (int index = 0; index < e->windows.count; index++) {
		for (int i = 0; i < e->result->references; i++) {
			const struct baseline_tally *one = &e->baseline[index * EVAL_REFERENCES + i];
			e->sum[i].scored += one->scored;
			e->sum[i].nll_sum += one->nll_sum;
			e->sum[i].p_sum += one->p_sum;
		}
	}
}

/* On one thread, so that sums over documents are in their order. */
static void add_measures(struct evaluation *e)
{
	const struct windows *w = &e->windows;
	int train_length = (int)e->request->model->options.train_length;
	for (int i = 0; i < w->count && e->request->measures; i++) {
		struct sequence s = windows_at(w, i);
		size_t at = (size_t)i * (size_t)e->request->length;
		by_position_add(e->result->by_position, &s, train_length, e->outcome.nll + at, e->outcome.best + at);
		recall_grid_add(e->result->recall_grid, &s, e->outcome.nll + at, e->outcome.best + at);
		if ((w->first + i + 1) % w->cut.windows == 0)
			by_position_end(e->result->by_position);
	}
}

/* Sequences past the lot's end are where they were before, and not scored. */
static struct err move(struct evaluation *e, int first)
{
	const struct eval_request *r = e->request;
	struct numbering n = numbering_of(r);
	if (!positions_move(&n))
		return OK;
	if (n.placed)
		return transformer_move(e->transformer, e->windows.batch.position);
	positions_draw(&n, r->eval_seed, (uint64_t)first, e->windows.most, r->length, e->positions);
	return transformer_move(e->transformer, e->positions);
}

/* Of the evaluation, from that of the windows at work. */
struct lot_progress {
	const struct evaluation *evaluation;
	int64_t first; /* window of the evaluation */
	int count;
	eval_progress *progress;
	void *data;
};

static struct err lot_progress(void *data, double share)
{
	const struct lot_progress *p = data;
	const struct eval_request *r = p->evaluation->request;
	double done = ((double)p->first + share * p->count) * r->length;
	int64_t total = (int64_t)r->sequences * p->evaluation->cut.windows * r->length;
	return p->progress ? p->progress(p->data, llround(done), total) : OK;
}

/* The windows at hand, of the lot whose first document has this number. */
static struct err run_windows(struct evaluation *e, int first, struct lot_progress p)
{
	const struct eval_watch *watch = e->request->watch;
	struct windows *w = &e->windows;
	p.first = (int64_t)first * w->cut.windows + w->first;
	p.count = w->count;
	if (watch)
		watch->enter(watch->data, &w->batch, w->count);
	if (e->decoding)
		TRY(decoding_run(e->decoding, w->token, w->target, lot_progress, &p, &e->outcome));
	else
		e->outcome = transformer_forward(e->transformer, w->token, w->target, NULL);
	if (watch)
		watch->leave(watch->data, w->count);
	struct lot lot = { e, first, windows_document(w, 0) };
	threads_each(windows_document(w, w->count - 1) - lot.at_hand + 1, score_document, &lot);
	add_baselines(e);
	add_measures(e);
	return lot_progress(&p, 1);
}

static struct err run_lot(struct evaluation *e, int first, int count, struct lot_progress p)
{
	struct windows *w = &e->windows;
	windows_make(w, (uint64_t)first, count);
	TRY(move(e, first));
	for (int at = 0; at < count * w->cut.windows; at += w->most) {
		windows_take(w, at, count * w->cut.windows);
		TRY(run_windows(e, first, p));
	}
	return OK;
}

/* What is known of whole sequences holds for none of their windows. */
static void forget_floors(struct eval_result *r)
{
	for (int g = 0; g < r->groups; g++)
		r->cell[g].floor = r->cell[g].scored ? NAN : 0;
}

static void finish(struct evaluation *e)
{
	struct eval_result *r = e->result;
	for (int g = 0; g < r->groups; g++)
		r->cell[g] = tally_cell(r->tally, r->sequences, r->groups, g);
	tally_floors(e->method, e->request->length, r->cell);
	if (protocol_cuts(e->request->protocol, e->request->length))
		forget_floors(r);
	for (int i = 0; i < r->references; i++) {
		const struct task_reference *from = &task_of(e->method)->references[i];
		const struct baseline_tally *sum = &e->sum[i];
		r->reference[i] = (struct eval_reference){ .name = from->name, .group = from->group };
		if (sum->scored == 0)
			continue;
		r->reference[i].perplexity = exp(sum->nll_sum / (double)sum->scored);
		r->reference[i].accuracy = sum->p_sum / (double)sum->scored;
	}
}

struct err eval_run(const struct eval_request *request, eval_progress *progress, void *data, struct eval_result *out)
{
	*out = (struct eval_result){ 0 };
	int S = request->sequences;
	struct evaluation e = { .request = request, .method = &request->data->task, .cut = cut_of(request),
				.result = out };
	struct err error = evaluation_open(&e);
	for (int first = 0; !error.code && first < S; first += e.windows.documents) {
		int count = S - first < e.windows.documents ? S - first : e.windows.documents;
		error = run_lot(&e, first, count, (struct lot_progress){ &e, 0, 0, progress, data });
	}
	if (!error.code)
		finish(&e);
	evaluation_close(&e);
	return error;
}

void eval_result_free(struct eval_result *r)
{
	by_position_close(r->by_position);
	recall_grid_close(r->recall_grid);
	free(r->tally);
	*r = (struct eval_result){ 0 };
}
