#include "runs/run/run_examine.h"

#include "runs/run/run_folder.h"
#include "runs/run/run_model.h"
#include "runs/stop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct err take_length(struct examined *x)
{
	char text[NUMBER_TEXT];
	int *length, count;
	double *multiple;
	TRY(eval_lengths(number_to_text(x->multiple, text), (int)x->config->model.train_length, &x->config->data,
			 &length, &multiple, &count));
	x->length = length[0];
	free(length);
	free(multiple);
	return OK;
}

struct err examined_open(const char *path, struct config *c, double multiple, struct examined *out)
{
	*out = (struct examined){ .config = c, .multiple = multiple };
	struct err e = run_folder_open(path, c, &out->folder);
	if (!e.code)
		e = take_length(out);
	if (!e.code)
		e = run_model_read(out->folder, c, &out->model);
	if (e.code)
		examined_close(out);
	return e;
}

void examined_close(struct examined *x)
{
	free(x->folder);
	model_close(&x->model);
	*x = (struct examined){ 0 };
}

struct eval_request examined_request(const struct examined *x, const struct method *scaling, int length)
{
	const struct eval_options *o = &x->config->eval;
	return (struct eval_request){ .model = &x->model, .data = &x->config->data, .scaling = scaling,
				      .length = length, .sequences = (int)o->sequences,
				      .eval_seed = (uint64_t)o->eval_seed };
}

struct err examined_fits(const struct examined *x, int results)
{
	const char *ignored[EVAL_GROUPS];
	size_t groups = (size_t)eval_group_names(task_of(&x->config->data.task), ignored);
	int sequences = (int)x->config->eval.sequences;
	return eval_fits(x->length, x->length, 0, sequences,
			 (size_t)results * (size_t)sequences * groups * sizeof(struct eval_tally));
}

struct err eval_result_finite(const struct eval_result *r, const char *label, int length)
{
	for (int g = 0; g < r->groups; g++)
		if (r->cell[g].scored && (!isfinite(r->cell[g].nll) || !isfinite(r->cell[g].nll_se)))
			return err_diverged("The weights are too large to be measured: train again with a lower --lr.",
					    "%s at length %d: the NLL is not finite", label, length);
	return OK;
}

struct err many_progress_show(void *many, int64_t done, int64_t total)
{
	struct many_progress *m = many;
	progress_show(&m->progress, (m->done + (double)done / (double)total) / m->count, "evaluation %d of %d",
		      m->done + 1, m->count);
	return done == total && m->done + 1 == m->count ? OK : stop_error();
}

static const char *group_at(int i, const void *task)
{
	return i < TASK_GROUPS ? ((const struct task *)task)->groups[i] : NULL;
}

struct err examined_group(const struct method *method, const char *name, int *group)
{
	const struct task *task = task_of(method);
	struct text_builder hint = { 0 };
	const char *at, *nearest = nearest_name(name, group_at, task);
	for (*group = 0; (at = group_at(*group, task)); ++*group)
		if (!strcmp(at, name))
			return OK;
	*group = -1;
	if (!*name)
		return OK;
	text_add(&hint, nearest ? "Did you mean --group=%s? Its groups:" : "Its groups:", nearest);
	for (int g = 0; (at = group_at(g, task)); g++)
		text_add(&hint, "%s %s", g ? "," : "", at);
	struct err e = err_usage(hint.data, "group: the task %s has no group '%s'", task->entry.name, name);
	text_builder_free(&hint);
	return e;
}
