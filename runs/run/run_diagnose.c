#include "runs/run/run_diagnose.h"

#include "runs/run/run_folder.h"
#include "train/course.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct diagnose_request request_of(const struct diagnose_question *q, const struct method *scaling, int length)
{
	const struct config *c = q->run->config;
	return (struct diagnose_request){ .eval = examined_request(q->run, scaling, length), .group = q->group,
					  .trained_length = course_longest(&c->model, &c->train) };
}

struct err run_diagnose_check(const struct diagnose_question *q)
{
	for (int s = 0; s < q->scalings; s++)
		for (int l = 0; l < q->lengths; l++) {
			struct diagnose_request r = request_of(q, &q->scaling[s], q->length[l]);
			TRY(err_at(eval_check(&r.eval), "%s at length %d", label_of(&q->scaling[s]), q->length[l]));
		}
	return OK;
}

static struct err check_finite(const struct diagnosis *d, const char *label, int length)
{
	TRY(eval_result_finite(&d->result, label, length));
	for (int i = 0; i < d->layers * d->heads; i++)
		if (!isfinite(d->head[i].entropy) || !isfinite(d->head[i].deviation) || !isfinite(d->head[i].link))
			return err_diverged("The weights are too large to be measured: train again with a lower --lr.",
					    "%s at length %d: attention of layer %d, head %d is not finite", label,
					    length, i / d->heads, i % d->heads);
	return OK;
}

static struct err one(const struct diagnose_question *q, const struct method *scaling, int length,
		      struct many_progress *progress, struct diagnosis *out)
{
	struct diagnose_request r = request_of(q, scaling, length);
	TRY(diagnose_run(&r, many_progress_show, progress, out));
	progress->done++;
	/* What is shown is of all sequences. */
	free(out->result.tally);
	out->result.tally = NULL;
	return check_finite(out, label_of(scaling), length);
}

static struct err all(const struct diagnose_question *q, struct many_progress *progress, struct diagnose_answer *out)
{
	TRY(one(q, &q->run->model.options.trained_scaling, q->run->length, progress, &out->trained));
	const char *group = task_of(&q->run->config->data.task)->groups[q->group];
	while (strcmp(out->trained.result.group[out->cell], group))
		out->cell++;
	for (int i = 0; i < out->count; i++)
		TRY(one(q, &q->scaling[i / q->lengths], q->length[i % q->lengths], progress, &out->at[i]));
	return OK;
}

struct err run_diagnose(const struct diagnose_question *q, struct diagnose_answer *out)
{
	int count = q->scalings * q->lengths;
	struct many_progress progress = { .count = count + 1 };
	char what[80];
	*out = (struct diagnose_answer){ .at = calloc((size_t)count, sizeof *out->at) };
	if (!out->at)
		return err_failed("Give fewer --scaling or --multiples.", "no memory for %d diagnoses", count);
	out->count = count;
	snprintf(what, sizeof what, "diagnose %.60s", run_folder_name(q->run->folder));
	progress_start(&progress.progress, what);
	struct err e = all(q, &progress, out);
	progress_end(&progress.progress);
	return e;
}

void diagnose_answer_free(struct diagnose_answer *a)
{
	diagnosis_free(&a->trained);
	for (int i = 0; i < a->count; i++)
		diagnosis_free(&a->at[i]);
	free(a->at);
	*a = (struct diagnose_answer){ 0 };
}

static int best_answer(const struct diagnosis *d)
{
	int best = 0;
	for (int i = 1; i < d->layers * d->heads; i++)
		if (d->head[i].share[KEY_RIGHT] > d->head[best].share[KEY_RIGHT])
			best = i;
	return d->head[best].share[KEY_RIGHT] >= VERDICT_ROLE ? best : -1;
}

static int best_link(const struct diagnosis *d, int answers)
{
	int below = answers < 0 ? 0 : answers / d->heads * d->heads, best = 0;
	for (int i = 1; i < below; i++)
		if (d->head[i].link > d->head[best].link)
			best = i;
	return below > 0 && d->head[best].link >= VERDICT_ROLE ? best : -1;
}

static void find_gainer(const struct diagnosed_head *now, const struct diagnosed_head *then, struct verdict *v)
{
	for (int c = KEY_BEFORE; c < KEY_CLASSES; c++) {
		double gain = now->share[c] - then->share[c];
		if (c > KEY_BEFORE && gain <= v->gain)
			continue;
		v->gain = gain;
		v->gainer = (enum key_class)c;
	}
}

static enum verdict_share compare(double now, double then)
{
	if (now < then / 2)
		return VERDICT_LOST;
	return then - now < VERDICT_SHARE ? VERDICT_KEPT : VERDICT_WEAKER;
}

struct verdict diagnose_verdict(const struct diagnose_answer *a, const struct diagnosis *d)
{
	const struct diagnosis *t = &a->trained;
	struct verdict v = { .cell = &d->result.cell[a->cell], .trained_cell = &t->result.cell[a->cell],
			     .answers = best_answer(t) };
	v.links = best_link(t, v.answers);
	v.scored = v.cell->scored && v.trained_cell->scored;
	double lost = v.scored ? v.trained_cell->accuracy - v.cell->accuracy : 0;
	v.grade = lost < VERDICT_SLIP ? VERDICT_HOLDS : lost < VERDICT_FAIL ? VERDICT_SLIPS : VERDICT_FAILS;
	if (v.trained_cell->accuracy < VERDICT_LEARNED)
		v.grade = VERDICT_UNLEARNED;
	if (v.links >= 0)
		v.link = compare(d->head[v.links].link, t->head[v.links].link);
	if (v.answers < 0)
		return v;
	const struct diagnosed_head *now = &d->head[v.answers], *then = &t->head[v.answers];
	v.match = compare(now->share[KEY_RIGHT], then->share[KEY_RIGHT]);
	v.spread = now->entropy - then->entropy >= VERDICT_ENTROPY;
	find_gainer(now, then, &v);
	return v;
}
