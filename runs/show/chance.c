#include "runs/show/chance.h"

#include "data/batch.h"
#include "eval/tally.h"

#include <math.h>
#include <stdlib.h>

enum { LOT = 8 };

struct sums {
	const struct task_reference *reference[EVAL_REFERENCES];
	struct baseline_tally of[EVAL_REFERENCES];
	int count;
};

static void find_baselines(const struct chance_request *q, struct sums *sums)
{
	for (const struct task_reference *t = task_of(q->task)->references; t && t->name; t++)
		if (t->group == q->group && sums->count < EVAL_REFERENCES)
			sums->reference[sums->count++] = t;
}

/* Drops the targets that do not count by the protocol; the rest of `s` stays. */
static void mask(const struct chance_request *q, struct sequence *s)
{
	struct cut cut = protocol_cut(q->protocol, q->length);
	for (int t = 0; t < cut_from(&cut, 0); t++)
		s->target[t] = -1;
}

static void add_sequence(const struct chance_request *q, const struct sequence *s, double *p, struct sums *sums)
{
	for (int i = 0; i < sums->count; i++) {
		struct baseline_tally t = tally_baseline(q->task, sums->reference[i], s, q->train_length, q->length,
							 p);
		sums->of[i].scored += t.scored;
		sums->of[i].nll_sum += t.nll_sum;
		sums->of[i].p_sum += t.p_sum;
	}
}

static struct err add_all(const struct chance_request *q, struct sums *sums)
{
	struct batch_source source = { q->task, q->train_length, q->length, q->eval_seed,
				       q->tune ? STREAM_TUNE : STREAM_REPORT };
	struct batch batch;
	TRY(batch_open(&source, LOT, &batch));
	double *p = malloc((size_t)q->length * sizeof *p);
	for (int first = 0; p && first < q->sequences; first += LOT) {
		int count = q->sequences - first < LOT ? q->sequences - first : LOT;
		batch_make(&batch, (uint64_t)first, count);
		for (int i = 0; i < count; i++) {
			struct sequence s = batch_sequence(&batch, i);
			mask(q, &s);
			add_sequence(q, &s, p, sums);
		}
	}
	bool made = p;
	batch_close(&batch);
	free(p);
	return made ? OK : err_failed("Give shorter multiples.", "chance: no memory for %d tokens", q->length);
}

struct err chance(const struct chance_request *request, struct eval_reference out[EVAL_REFERENCES], int *count)
{
	struct sums sums = { .count = 0 };
	if (!protocol_cuts(request->protocol, request->length))
		find_baselines(request, &sums);
	*count = sums.count;
	if (sums.count)
		TRY(add_all(request, &sums));
	for (int i = 0; i < sums.count; i++) {
		const struct baseline_tally *t = &sums.of[i];
		out[i] = (struct eval_reference){
			.name = sums.reference[i]->name,
			.group = request->group,
			.perplexity = t->scored ? exp(t->nll_sum / (double)t->scored) : 0,
			.accuracy = t->scored ? t->p_sum / (double)t->scored : 0,
		};
	}
	return OK;
}
