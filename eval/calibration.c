#include "eval/calibration.h"

#include "eval/tally.h"
#include "eval/windows.h"
#include "model/base/threads.h"
#include "model/base/vec.h"
#include "model/loss.h"
#include "model/positions.h"

#include <math.h>
#include <string.h>

/* Temperatures 2^(g/2 - 3). */
enum { GRID = 23 };

/* Sums over scored tokens at each temperature: the NLL's derivatives by ln T. */
struct slopes {
	double first[GRID], second[GRID];
};

/* A pass over some sequences: the fit's, or the one under the temperature found. */
struct pass {
	const struct eval_request *request;
	struct cut cut;
	struct windows windows;
	struct transformer *transformer;
	struct outcome outcome;
	real *logits;            /* [most][length][V] */
	real *scaled;            /* [threads][V] */
	double *nll;             /* [most][length] under the temperature */
	struct slopes *slopes;   /* [most] of the windows at hand */
	struct slopes sum;
	struct eval_tally *tally; /* [documents][groups] of the lot at work */
	struct arena memory;
	double temperature;      /* 0: fit */
	int groups;
	struct calibration *out;
	eval_progress *progress;
	void *data;
	int64_t done, total;
};

static int sequences_of(const struct eval_request *r, bool fit)
{
	return fit && r->sequences > CALIBRATION_SEQUENCES ? CALIBRATION_SEQUENCES : r->sequences;
}

static struct batch_source source_of(const struct pass *p, bool fit)
{
	const struct eval_request *r = p->request;
	return (struct batch_source){ .task = &r->data->task, .train_length = (int)r->model->options.train_length,
				      .length = p->cut.span, .seed = r->eval_seed,
				      .stream = fit ? STREAM_TUNE : STREAM_REPORT };
}

static void place(struct arena *a, int most, int documents, struct pass *p)
{
	size_t V = (size_t)p->request->model->V, tokens = (size_t)most * (size_t)p->request->length;
	p->logits = ARENA_TAKE(a, real, tokens * V);
	p->scaled = ARENA_TAKE(a, real, (size_t)threads_count() * V);
	p->nll = ARENA_TAKE(a, double, tokens);
	p->slopes = ARENA_TAKE(a, struct slopes, (size_t)most);
	p->tally = ARENA_TAKE(a, struct eval_tally, (size_t)documents * (size_t)p->groups);
}

struct err calibration_check(const struct eval_request *r)
{
	struct numbering n = { .options = &r->model->options, .task = r->data->task.entry->name,
			       .placed = task_placed(&r->data->task) };
	if (r->kv != EVAL_KV_OFF)
		return err_usage("Leave --kv or --calibrate out.", "calibrate: not token by token (kv)");
	if (r->tune)
		return err_usage("Leave --stream or --calibrate out.",
				 "calibrate: the temperature is chosen on stream tune, for stream report");
	if (positions_move(&n))
		return err_usage("Leave --calibrate out.", "calibrate: not where positions are the sequence's own");
	return OK;
}

struct err calibration_check_size(const struct eval_request *r)
{
	struct cut cut = protocol_cut(r->protocol, r->length);
	const char *ignored[EVAL_GROUPS];
	struct pass p = { .request = r, .groups = eval_group_names(task_of(&r->data->task), ignored) };
	int most = windows_most(&cut, r->sequences);
	struct transformer_request q = { .model = r->model, .B = most, .T = r->length, .scaling = r->scaling };
	struct arena work = { 0 };
	size_t bytes;
	if (transformer_bytes(&q, &bytes).code)
		return OK;
	place(&work, most, most, &p);
	arena_take(&work, bytes, 1);
	arena_take(&work, windows_bytes(&cut, r->sequences), 1);
	return eval_fits(r->length, cut.span, work.used, r->sequences, 0);
}

/* The softmax at temperature T has mean m and variance v of the logits: d NLL / d ln T = (target - m) / T, and the
 * derivative of that is (m - target) / T + v / T^2. */
static void add_slopes(const real *logits, int V, int32_t target, real *scaled, struct slopes *to)
{
	real greatest = vec_max(logits, V);
	for (int g = 0; g < GRID; g++) {
		double b = exp2(3 - 0.5 * g), weight = 0, mean = 0, square = 0;
		for (int v = 0; v < V; v++)
			scaled[v] = (real)b * (logits[v] - greatest);
		vec_exp_sum(scaled, V, 0);
		for (int v = 0; v < V; v++) {
			double x = (double)logits[v] - (double)logits[target];
			weight += (double)scaled[v];
			mean += (double)scaled[v] * x;
			square += (double)scaled[v] * x * x;
		}
		mean /= weight;
		square = square / weight - mean * mean;
		to->first[g] -= b * mean;
		to->second[g] += b * mean + b * b * square;
	}
}

static void work_on_window(int index, int thread, void *data)
{
	struct pass *p = data;
	struct sequence s = windows_at(&p->windows, index);
	int V = p->request->model->V;
	real *scaled = p->scaled + (size_t)thread * (size_t)V;
	p->slopes[index] = (struct slopes){ 0 };
	for (int t = 0; t < p->request->length; t++) {
		size_t at = (size_t)index * (size_t)p->request->length + (size_t)t;
		const real *logits = p->logits + at * (size_t)V;
		int32_t ignored;
		p->nll[at] = 0;
		if (s.target[t] < 0)
			continue;
		if (p->temperature == 0) {
			add_slopes(logits, V, s.target[t], scaled, &p->slopes[index]);
			continue;
		}
		for (int v = 0; v < V; v++)
			scaled[v] = (real)((double)logits[v] / p->temperature);
		cross_entropy(1, V, &s.target[t], scaled, &p->nll[at], &ignored);
	}
}

/* In order of the windows, whatever thread had them. */
static void add_windows(struct pass *p)
{
	int train_length = (int)p->request->model->options.train_length, T = p->request->length;
	for (int i = 0; i < p->windows.count; i++) {
		struct sequence s = windows_at(&p->windows, i);
		size_t at = (size_t)i * (size_t)T, row = (size_t)windows_document(&p->windows, i) * (size_t)p->groups;
		tally_sequence(task_of(&p->request->data->task), &s, T, train_length, p->nll + at,
			       p->outcome.best + at, p->tally + row);
		for (int g = 0; g < GRID; g++) {
			p->sum.first[g] += p->slopes[i].first[g];
			p->sum.second[g] += p->slopes[i].second[g];
		}
	}
}

static void add_documents(struct pass *p, int count, struct eval_tally *sum)
{
	for (int i = 0; i < count * p->groups; i++) {
		sum[i % p->groups].scored += p->tally[i].scored;
		sum[i % p->groups].nll_sum += p->tally[i].nll_sum;
	}
}

static struct err run_lot(struct pass *p, int first, int count, struct eval_tally *sum)
{
	struct windows *w = &p->windows;
	int windows = count * w->cut.windows;
	windows_make(w, (uint64_t)first, count);
	memset(p->tally, 0, (size_t)w->documents * (size_t)p->groups * sizeof *p->tally);
	for (int at = 0; at < windows; at += w->most) {
		windows_take(w, at, windows);
		p->outcome = transformer_forward(p->transformer, w->token, w->target, p->logits);
		threads_each(w->count, work_on_window, p);
		add_windows(p);
		p->done += (int64_t)w->count * w->cut.length;
		if (p->progress)
			TRY(p->progress(p->data, p->done, p->total));
	}
	add_documents(p, count, sum);
	return OK;
}

static struct err pass_open(struct pass *p, bool fit)
{
	const struct eval_request *r = p->request;
	struct batch_source source = source_of(p, fit);
	TRY(windows_open(&source, &p->cut, sequences_of(r, fit), &p->windows));
	const double *positions = protocol_cuts(r->protocol, r->length) ? NULL : p->windows.batch.positions;
	struct transformer_request q = { .model = r->model, .B = p->windows.most, .T = r->length,
					 .positions = positions, .scaling = r->scaling };
	TRY(transformer_open(&q, &p->transformer));
	struct arena measure = { 0 };
	place(&measure, p->windows.most, p->windows.documents, p);
	TRY(arena_reserve(&p->memory, measure.used, "a calibration"));
	place(&p->memory, p->windows.most, p->windows.documents, p);
	double reach = positions ? positions[r->length - 1] + 1 : r->length;
	struct scaling_request scaling = scaling_request(r->scaling, &r->model->options, reach);
	p->out->factor = scaling_factor(&scaling);
	return OK;
}

static void pass_close(struct pass *p)
{
	transformer_close(p->transformer);
	windows_close(&p->windows);
	arena_free(&p->memory);
	p->transformer = NULL;
}

/* Adds up every group's tokens and their NLL, which a fit leaves at 0. */
static struct err run_pass(struct pass *p, bool fit, struct eval_tally *sum)
{
	int S = sequences_of(p->request, fit);
	struct err e = pass_open(p, fit);
	for (int first = 0; first < S && !e.code; first += p->windows.documents)
		e = run_lot(p, first, S - first < p->windows.documents ? S - first : p->windows.documents, sum);
	pass_close(p);
	return e;
}

/* Cubic Hermite interpolation at x of 0 .. 1 between values a, b with derivatives c, d. */
static double hermite(double a, double b, double c, double d, double x)
{
	double y = 1 - x;
	return a * (1 + 2 * x) * y * y + c * x * y * y + b * x * x * (3 - 2 * x) - d * x * x * y;
}

/* Where the slope turns from falling to rising; an end of the grid where it does not. */
static double best_temperature(const struct slopes *s)
{
	const double step = 0.5 * M_LN2;
	int g = 0;
	while (g < GRID && s->first[g] < 0)
		g++;
	if (g == 0 || g == GRID)
		return exp2(0.5 * (g ? GRID - 1 : 0) - 3);
	double low = 0, high = 1;
	for (int i = 0; i < 60; i++) {
		double middle = (low + high) / 2;
		double slope = hermite(s->first[g - 1], s->first[g], step * s->second[g - 1], step * s->second[g],
				       middle);
		*(slope < 0 ? &low : &high) = middle;
	}
	return exp2(0.5 * (g - 1 + low) - 3);
}

static void finish(const struct pass *p, const struct eval_tally *sum)
{
	p->out->temperature = p->temperature;
	for (int g = 0; g < p->groups; g++) {
		struct eval_cell *cell = &p->out->cell[g];
		*cell = (struct eval_cell){ .scored = sum[g].scored };
		if (!cell->scored)
			continue;
		cell->nll = sum[g].nll_sum / (double)sum[g].scored;
		cell->perplexity = exp(cell->nll);
	}
}

struct err calibration_run(const struct eval_request *request, eval_progress *progress, void *data,
			   struct calibration *out)
{
	struct eval_tally fitted[EVAL_GROUPS] = { 0 }, sum[EVAL_GROUPS] = { 0 };
	struct pass p = { .request = request, .cut = protocol_cut(request->protocol, request->length), .out = out,
			  .progress = progress, .data = data };
	*out = (struct calibration){ 0 };
	p.groups = out->groups = eval_group_names(task_of(&request->data->task), out->group);
	p.total = (int64_t)(sequences_of(request, true) + request->sequences) * p.cut.windows * request->length;
	TRY(calibration_check(request));
	TRY(eval_check_vocabulary(request));
	TRY(run_pass(&p, true, fitted));
	p.temperature = best_temperature(&p.sum);
	TRY(run_pass(&p, false, sum));
	finish(&p, sum);
	return OK;
}
