#include "eval/decoding.h"

#include "model/decode.h"
#include "model/loss.h"

#include <string.h>

struct decoding {
	struct decoder *decoder;
	struct arena memory;
	int lot, length, V;
	bool recomputes;
	real *logits;                    /* [lot][V] of a step, as are these */
	int32_t *token, *target, *step_best; /* [lot] */
	double *step_nll;
	double *nll;                     /* [lot][length] */
	int32_t *best;
};

static enum cache_kind cache_of(const struct eval_request *r)
{
	static const enum cache_kind cache[] = {
		[EVAL_KV_RECOMPUTE] = CACHE_RECOMPUTE, [EVAL_KV_UNROTATED] = CACHE_UNROTATED,
		[EVAL_KV_ROTATED] = CACHE_ROTATED,
	};
	return cache[r->kv];
}

bool decoding_wanted(const struct eval_request *r)
{
	return r->kv != EVAL_KV_OFF && (r->kv != EVAL_KV_RECOMPUTE || scaling_by_length(r->scaling));
}

static struct decoder_request request_of(const struct eval_request *r, int lot, const double *positions)
{
	return (struct decoder_request){ .model = r->model, .B = lot, .T = r->length, .positions = positions,
					 .scaling = r->scaling, .cache = cache_of(r) };
}

static struct decoding *place(const struct eval_request *r, int lot, struct arena *a)
{
	struct decoding measured, *placed = ARENA_TAKE(a, struct decoding, 1), *d = placed ? placed : &measured;
	size_t rows = (size_t)lot, V = (size_t)r->model->V, length = (size_t)r->length;
	*d = (struct decoding){ .lot = lot, .length = r->length, .V = r->model->V,
				.recomputes = r->kv == EVAL_KV_RECOMPUTE };
	d->logits = ARENA_TAKE(a, real, rows * V);
	d->token = ARENA_TAKE(a, int32_t, rows);
	d->target = ARENA_TAKE(a, int32_t, rows);
	d->step_best = ARENA_TAKE(a, int32_t, rows);
	d->step_nll = ARENA_TAKE(a, double, rows);
	d->nll = ARENA_TAKE(a, double, rows * length);
	d->best = ARENA_TAKE(a, int32_t, rows * length);
	return placed;
}

struct err decoding_bytes(const struct eval_request *r, int lot, const double *positions, size_t *bytes)
{
	struct decoder_request q = request_of(r, lot, positions);
	struct arena all = { 0 };
	TRY(decoder_bytes(&q, bytes));
	place(r, lot, &all);
	arena_take(&all, *bytes, 1);
	*bytes = all.used;
	return OK;
}

struct err decoding_open(const struct eval_request *r, int lot, const double *positions, struct decoding **out)
{
	struct decoder_request q = request_of(r, lot, positions);
	struct arena memory, measure = { 0 };
	struct decoder *decoder;
	*out = NULL;
	TRY(decoder_open(&q, &decoder));
	place(r, lot, &measure);
	struct err e = arena_reserve(&memory, measure.used, "decoding");
	if (e.code) {
		decoder_close(decoder);
		return e;
	}
	*out = place(r, lot, &memory);
	(*out)->decoder = decoder;
	(*out)->memory = memory;
	return OK;
}

void decoding_close(struct decoding *d)
{
	if (!d)
		return;
	/* The workspace stands in the arena it describes. */
	struct arena memory = d->memory;
	decoder_close(d->decoder);
	arena_free(&memory);
}

/* Column t of a row a sequence; returns whether any of it is not negative. */
static bool take_column(const struct decoding *d, const int32_t *rows, int t, int32_t *column)
{
	bool any = false;
	for (int b = 0; b < d->lot; b++) {
		column[b] = rows[(size_t)b * (size_t)d->length + (size_t)t];
		any = any || column[b] >= 0;
	}
	return any;
}

/* The scores of step t, of those sequences that have a target there. */
static void score_step(struct decoding *d, int t, struct outcome *out)
{
	cross_entropy(d->lot, d->V, d->target, d->logits, d->step_nll, d->step_best);
	for (int b = 0; b < d->lot; b++) {
		size_t at = (size_t)b * (size_t)d->length + (size_t)t;
		if (d->target[b] < 0)
			continue;
		d->nll[at] = d->step_nll[b];
		d->best[at] = d->step_best[b];
		out->scored++;
		out->correct += d->best[at] == d->target[b];
	}
}

/* What of a sequence's work is done after t tokens: a run of each costs by its length. */
static double share_done(const struct decoding *d, int t)
{
	double share = (double)t / d->length;
	return d->recomputes ? share * share : share;
}

struct err decoding_run(struct decoding *d, const int32_t *token, const int32_t *target, decoding_progress *progress,
			void *data, struct outcome *out)
{
	size_t count = (size_t)d->lot * (size_t)d->length;
	*out = (struct outcome){ .nll = d->nll, .best = d->best };
	memset(d->nll, 0, count * sizeof *d->nll);
	memset(d->best, 0xff, count * sizeof *d->best);
	decoder_restart(d->decoder);
	for (int t = 0; t < d->length; t++) {
		bool scored = take_column(d, target, t, d->target);
		take_column(d, token, t, d->token);
		decoder_step(d->decoder, d->token, scored ? d->logits : NULL);
		if (scored)
			score_step(d, t, out);
		if (progress)
			TRY(progress(data, share_done(d, t + 1)));
	}
	for (size_t i = 0; i < count; i++)
		out->nll_sum += d->nll[i];
	return OK;
}
