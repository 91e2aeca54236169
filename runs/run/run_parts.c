#include "runs/run/run_parts.h"

#include "model/base/stb.h"
#include "runs/run/run_folder.h"

#include <stdio.h>
#include <string.h>

/* The results that must be held at once: settings 0 and 1, and the one at work. */
enum { HELD = 3 };

struct err run_parts_check(const struct parts_question *q)
{
	struct eval_request r = examined_request(q->run, q->scaling, q->run->length);
	TRY(parts_check_encoding(&q->run->model.options));
	TRY(parts_check(&r, q->setting[0]));
	return examined_fits(q->run, HELD);
}

static void add_answer(const struct parts_question *q, const struct eval_result *r, const struct eval_result *held,
		       struct parts_answers *out)
{
	struct parts_answer a = { 0 };
	bool goal = arrlen(out->answer) > 0;
	for (int g = 0; g < r->groups; g++) {
		a.cell[g] = r->cell[g];
		a.change[g] = paired_change(r, &held[0], g, MEASURE_ACCURACY);
		if (q->shares && goal)
			a.share[g] = paired_share(r, &held[0], &held[1], g, MEASURE_ACCURACY);
	}
	arrput(out->answer, a);
}

static struct err run_all(const struct parts_question *q, struct many_progress *progress, struct eval_result *held,
			  struct parts_answers *out)
{
	struct eval_request request = examined_request(q->run, q->scaling, q->run->length);
	for (int i = 0; i < progress->count; i++) {
		struct eval_result *r = &held[i < HELD ? i : HELD - 1];
		eval_result_free(r);
		TRY(parts_run(&request, q->setting[i], many_progress_show, progress, r));
		TRY(eval_result_finite(r, q->what, request.length));
		progress->done = i + 1;
		if (i == 0) {
			out->groups = r->groups;
			out->factor = r->factor;
			memcpy(out->group, r->group, sizeof out->group);
		}
		add_answer(q, r, held, out);
	}
	return OK;
}

struct err run_parts(const struct parts_question *q, struct parts_answers *out)
{
	struct eval_result held[HELD] = { { 0 } };
	struct many_progress progress = { .count = (int)arrlen(q->setting) };
	char what[120];
	*out = (struct parts_answers){ 0 };
	snprintf(what, sizeof what, "%s %.60s at %d", q->what, run_folder_name(q->run->folder), q->run->length);
	progress_start(&progress.progress, what);
	struct err e = run_all(q, &progress, held, out);
	progress_end(&progress.progress);
	for (int i = 0; i < HELD; i++)
		eval_result_free(&held[i]);
	return e;
}

void parts_answers_free(struct parts_answers *a)
{
	arrfree(a->answer);
	*a = (struct parts_answers){ 0 };
}
