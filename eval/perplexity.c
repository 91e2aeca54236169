#include "eval/perplexity.h"

#include "data/batch.h"
#include "eval/decoding.h"
#include "eval/tally.h"
#include "model/base/threads.h"
#include "model/positions.h"

#include <math.h>
#include <stdlib.h>

/* Sequences go through the model in lots of about this many tokens: enough to fill the matrix products, and memory
 * grows with the length alone. */
enum { LOT_TOKENS = 16384 };

struct evaluation {
	const struct eval_request *request;
	const struct method *method; /* the task */
	int lot;                     /* sequences in each; the last may be smaller */
	struct batch batch;
	struct transformer *transformer; /* one of these; the other is NULL */
	struct decoding *decoding;
	struct outcome outcome;      /* of this lot */
	struct arena memory;
	double *p;                   /* [lot][length] */
	double *positions;           /* [lot][length] where they are drawn */
	struct baseline_tally *baseline; /* [lot][references] of this lot */
	struct baseline_tally sum[EVAL_REFERENCES];
	struct eval_result *result;
};

/* Lots of even size: as few as LOT_TOKENS allows, and then as small as that number allows. */
static int lot_size(int sequences, int length)
{
	int most = length < LOT_TOKENS ? LOT_TOKENS / length : 1;
	int lots = (sequences - 1) / most + 1;
	return (sequences - 1) / lots + 1;
}

int eval_lot(const struct eval_request *r)
{
	return lot_size(r->sequences, r->length);
}

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

static struct batch_source source_of(const struct eval_request *r)
{
	return (struct batch_source){ .task = &r->data->task, .train_length = (int)r->model->options.train_length,
				      .length = r->length, .seed = r->eval_seed,
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

struct err eval_fits(int length, size_t work, int sequences, size_t results)
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
	return err_usage("Choose smaller --multiples.", "a length of %d tokens needs %s, and %s", length,
			 memory_text(work, need), memory_available_text(have));
}

static int count_references(const struct task *task)
{
	int count = 0;
	while (task->references && task->references[count].name)
		count++;
	BUG_IF(count > EVAL_REFERENCES, "%s: more than %d references", task->entry.name, EVAL_REFERENCES);
	return count;
}

static void place(struct arena *a, struct evaluation *e)
{
	e->p = ARENA_TAKE(a, double, (size_t)e->lot * (size_t)e->request->length);
	struct numbering n = numbering_of(e->request);
	size_t tokens = (size_t)e->lot * (size_t)e->request->length;
	e->positions = ARENA_TAKE(a, double, positions_move(&n) ? tokens : 0);
	e->baseline = ARENA_TAKE(a, struct baseline_tally, (size_t)e->lot * EVAL_REFERENCES);
}

/* Counts what an evaluation with a workspace of `transformer` bytes holds. */
static struct err check_bytes(const struct eval_request *r, size_t transformer)
{
	struct evaluation e = { .request = r, .lot = lot_size(r->sequences, r->length) };
	struct arena work = { 0 };
	const char *ignored[EVAL_GROUPS];
	size_t groups = (size_t)eval_group_names(task_of(&r->data->task), ignored);
	place(&work, &e);
	arena_take(&work, transformer, 1);
	arena_take(&work, batch_bytes(e.lot, r->length), 1);
	arena_take(&work, r->model->value ? 0 : r->model->layout.size, sizeof(real));
	return eval_fits(r->length, work.used, r->sequences,
			 (size_t)r->sequences * groups * sizeof(struct eval_tally));
}

/* Of the workspace of a lot, whose request it checks. */
static struct err workspace_bytes(const struct eval_request *r, const double *positions, size_t *bytes)
{
	int lot = lot_size(r->sequences, r->length);
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
	if (r->kv != EVAL_KV_OFF)
		return err_usage("Leave --kv out.",
				 "kv: sequences at positions of their own are not decoded side by side");
	TRY(scaling_check(r->scaling, &r->model->options, positions_reach(&n, r->length)));
	return positions_check_scaling(&n, r->scaling, r->length);
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
		e = check_lot(request, first.positions);
	batch_close(&first);
	return e;
}

static struct err result_open(const struct eval_request *r, struct eval_result *out)
{
	const struct task *task = task_of(&r->data->task);
	out->groups = eval_group_names(task, out->group);
	out->sequences = r->sequences;
	out->references = count_references(task);
	out->tally = calloc((size_t)r->sequences * (size_t)out->groups, sizeof *out->tally);
	if (!out->tally) /* NOLINT(-Wanalyzer-malloc-leak): `out` holds nothing before */
		return err_failed("Choose fewer --sequences.", "no memory for the results of %d sequences",
				  r->sequences);
	return OK;
}

static struct err evaluation_open(struct evaluation *e)
{
	const struct eval_request *r = e->request;
	BUG_IF(r->sequences < 1, "an evaluation of %d sequences", r->sequences);
	BUG_IF((r->pairs || r->watch) && decoding_wanted(r), "pairs set apart, or watched, token by token");
	TRY(eval_check_vocabulary(r));
	struct batch_source source = source_of(r);
	TRY(batch_open(&source, e->lot, &e->batch));
	struct transformer_request request = request_of(r, e->lot, e->batch.positions);
	if (decoding_wanted(r))
		TRY(decoding_open(r, e->lot, e->batch.positions, &e->decoding));
	else
		TRY(transformer_open(&request, &e->transformer));
	struct arena measure = { 0 };
	place(&measure, e);
	TRY(arena_reserve(&e->memory, measure.used, "an evaluation"));
	place(&e->memory, e);
	TRY(result_open(r, e->result));
	struct numbering numbering = numbering_of(r);
	e->result->reach = positions_move(&numbering) ? positions_reach(&numbering, r->length)
						      : e->batch.positions[r->length - 1] + 1;
	struct scaling_request scaling = scaling_request(r->scaling, &r->model->options, e->result->reach);
	e->result->factor = scaling_factor(&scaling);
	return OK;
}

static void evaluation_close(struct evaluation *e)
{
	transformer_close(e->transformer);
	decoding_close(e->decoding);
	batch_close(&e->batch);
	arena_free(&e->memory);
}

struct lot {
	struct evaluation *evaluation;
	int first;
};

static void score_sequence(int index, int thread, void *data)
{
	(void)thread;
	const struct lot *lot = data;
	struct evaluation *e = lot->evaluation;
	const struct task *task = task_of(e->method);
	int T = e->request->length;
	size_t at = (size_t)index * (size_t)T, row = (size_t)(lot->first + index) * (size_t)e->result->groups;
	struct sequence s = batch_sequence(&e->batch, index);
	tally_sequence(task, &s, T, (int)e->request->model->options.train_length, e->outcome.nll + at,
		       e->outcome.best + at, &e->result->tally[row]);
	for (int i = 0; i < e->result->references; i++)
		e->baseline[index * EVAL_REFERENCES + i] =
			tally_baseline(e->method, &task->references[i], &s,
				       (int)e->request->model->options.train_length, T, e->p + at);
}

static void add_baselines(struct evaluation *e, int count)
{
	for (int index = 0; index < count; index++) {
		for (int i = 0; i < e->result->references; i++) {
			const struct baseline_tally *one = &e->baseline[index * EVAL_REFERENCES + i];
			e->sum[i].scored += one->scored;
			e->sum[i].nll_sum += one->nll_sum;
			e->sum[i].p_sum += one->p_sum;
		}
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
		return transformer_move(e->transformer, e->batch.position);
	positions_draw(&n, r->eval_seed, (uint64_t)first, e->lot, r->length, e->positions);
	return transformer_move(e->transformer, e->positions);
}

/* Of the evaluation, from that of the lot at work. */
struct lot_progress {
	const struct evaluation *evaluation;
	int first, count;
	eval_progress *progress;
	void *data;
};

static struct err lot_progress(void *data, double share)
{
	const struct lot_progress *p = data;
	const struct eval_request *r = p->evaluation->request;
	double done = ((double)p->first + share * p->count) * r->length;
	return p->progress ? p->progress(p->data, llround(done), (int64_t)r->sequences * r->length) : OK;
}

static struct err run_lot(struct evaluation *e, struct lot_progress p)
{
	const struct eval_watch *watch = e->request->watch;
	batch_make(&e->batch, (uint64_t)p.first, p.count);
	TRY(move(e, p.first));
	if (watch)
		watch->enter(watch->data, &e->batch, p.count);
	if (e->decoding)
		TRY(decoding_run(e->decoding, e->batch.token, e->batch.target, lot_progress, &p, &e->outcome));
	else
		e->outcome = transformer_forward(e->transformer, e->batch.token, e->batch.target, NULL);
	if (watch)
		watch->leave(watch->data, p.count);
	struct lot lot = { e, p.first };
	threads_each(p.count, score_sequence, &lot);
	add_baselines(e, p.count);
	return lot_progress(&p, 1);
}

static void finish(struct evaluation *e)
{
	struct eval_result *r = e->result;
	for (int g = 0; g < r->groups; g++)
		r->cell[g] = tally_cell(r->tally, r->sequences, r->groups, g);
	tally_floors(e->method, e->request->length, r->cell);
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
	int S = request->sequences, lot = lot_size(S, request->length);
	struct evaluation e = { .request = request, .method = &request->data->task, .lot = lot, .result = out };
	struct err error = evaluation_open(&e);
	for (int first = 0; !error.code && first < S; first += lot) {
		int count = S - first < lot ? S - first : lot;
		error = run_lot(&e, (struct lot_progress){ &e, first, count, progress, data });
	}
	if (!error.code)
		finish(&e);
	evaluation_close(&e);
	return error;
}

void eval_result_free(struct eval_result *r)
{
	free(r->tally);
	*r = (struct eval_result){ 0 };
}
