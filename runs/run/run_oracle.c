#include "runs/run/run_oracle.h"

#include "eval/parts.h"
#include "model/base/stb.h"
#include "runs/run/run_folder.h"
#include "runs/stop.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Ramps by rotations from 1 to 4, the comparable choice where the fastest pair turns ten times in training. */
static const char *const recipes[] = { "none", "linear", "ntk", "ntk_by_parts(ramp=rotations,beta_slow=1,beta_fast=4)",
				       "yarn(ramp=rotations,beta_slow=1,beta_fast=4)" };
static const char *const starts[] = { "none", "yarn" }; /* names of recipes that fits begin with */
enum { RECIPES = sizeof recipes / sizeof *recipes, STARTS = sizeof starts / sizeof *starts };

const char *const oracle_tensors[] = { "model.position.log_ratio", "model.position.log_attention_factor", NULL };

struct train_options oracle_train_options(int64_t steps, int64_t batch, double lr)
{
	static const struct scope scope = { .command = "a fit", .lists = LIST_TRAIN };
	struct config c;
	config_init(&c, &scope, NULL);
	c.train.steps = steps;
	c.train.batch = batch;
	c.train.lr = lr;
	c.train.warmup = steps / 10;
	return c.train;
}

/* The encoding with its frequencies learned; false if it has no such choice. */
static bool learned_options(const struct model_options *o, struct model_options *out)
{
	int index = method_find(o->encoding.entry, "learned");
	union option_value value;
	*out = *o;
	if (index < 0 || option_parse(&o->encoding.entry->options[index], "tempered", &value).code)
		return false;
	method_set(&out->encoding, index, value);
	out->trained_scaling = method_default(scaling_at(0));
	return true;
}

struct err oracle_model(const struct model *m, const double *inv_freq, double attention_factor, struct model *out)
{
	struct model_options options;
	struct place p = place_of(&m->options);
	struct method none = method_default(scaling_at(0));
	BUG_IF(!learned_options(&m->options, &options), "%s learns no frequencies", m->options.encoding.entry->name);
	TRY(model_open(&options, m->V, out));
	model_inherit(out, m);
	const struct parameter *ratio = layout_find(&out->layout, oracle_tensors[0]);
	const struct parameter *factor = layout_find(&out->layout, oracle_tensors[1]);
	BUG_IF(!ratio || !factor || (int)ratio->size != place_pairs(&p), "learned frequencies without their tensors");
	double *trained = calloc(ratio->size + 1, sizeof *trained);
	BUG_IF(!trained, "no memory for %zu frequencies", ratio->size);
	parts_frequencies(m, &none, (double)m->options.train_length, trained);
	/* Pairs that stand still have no ratio. */
	for (size_t i = 0; i < ratio->size; i++)
		out->value[ratio->offset + i] = trained[i] > 0 ? (real)log(inv_freq[i] / trained[i]) : 0;
	out->value[factor->offset] = (real)log(attention_factor);
	free(trained);
	return OK;
}

static struct method none_method(void)
{
	return method_default(scaling_at(0));
}

/* A recipe told the length that is fitted, so that its frequencies are the same at every length. */
static struct err recipe_at(const struct examined *x, int index, struct method *out)
{
	TRY(method_parse("scaling", scaling_at, recipes[index], out));
	struct scaling_request r = scaling_request(out, &x->model.options, x->length);
	int factor = method_find(out->entry, "factor");
	if (factor >= 0)
		method_set(out, factor, (union option_value){ .number = r.factor });
	return scaling_check(out, &x->model.options, x->length);
}

static struct fit_request fit_of(const struct oracle_question *q, struct model *m)
{
	const struct eval_options *eval = &q->run->config->eval;
	/* The first `sequences` of the stream are those that fits are compared on. */
	return (struct fit_request){ .model = m, .data = &q->run->config->data, .train = q->train,
				     .tensor = oracle_tensors, .length = q->run->length, .group = q->group,
				     .stream = STREAM_TUNE, .seed = (uint64_t)eval->eval_seed,
				     .first = (uint64_t)eval->sequences };
}

static struct err check_encoding(const struct examined *x)
{
	const struct model_options *o = &x->model.options;
	struct model_options ignored;
	struct place p = place_of(o);
	struct method none = none_method();
	if (!learned_options(o, &ignored))
		return err_usage("Take a run with rope.", "encoding: %s has no frequencies that could be fitted",
				 o->encoding.entry->name);
	if (p.position->prepares_inv_freq && p.position->prepares_inv_freq(&p))
		return err_usage("Take a run with --rope-learned=off.",
				 "encoding: the frequencies of this model were learned in training");
	return scaling_check(&none, o, x->length);
}

struct err run_oracle_check(const struct oracle_question *q)
{
	const struct examined *x = q->run;
	struct method none = none_method();
	struct eval_request r = examined_request(x, &none, x->length);
	struct place p = place_of(&x->model.options);
	TRY(check_encoding(x));
	TRY(eval_check(&r));
	TRY(examined_fits(x, (RECIPES + 1) * ORACLE_LENGTHS + 1));
	double *ones = calloc((size_t)place_pairs(&p) + 1, sizeof *ones);
	BUG_IF(!ones, "no memory for frequencies");
	for (int m = 0; m < place_pairs(&p); m++)
		ones[m] = 1;
	struct model m = { 0 };
	struct err e = oracle_model(&x->model, ones, 1, &m);
	struct fit_request fit = fit_of(q, &m);
	if (!e.code)
		e = fit_check(&fit);
	model_close(&m);
	free(ones);
	return e;
}

static struct oracle_row *add_row(struct oracle_answer *a, const char *label)
{
	struct oracle_row row = { .label = label, .inv_freq = calloc((size_t)a->F + 1, sizeof(double)) };
	BUG_IF(!row.inv_freq, "no memory for %d frequencies", a->F);
	arrput(a->row, row);
	return &arrlast(a->row);
} /* NOLINT(-Wanalyzer-malloc-leak): the array holds it */

static struct err evaluate(const struct oracle_question *q, const struct eval_request *r, const char *label,
			   struct eval_result *out)
{
	struct progress progress;
	char what[120];
	snprintf(what, sizeof what, "oracle %.40s %.40s at %d", run_folder_name(q->run->folder), label, r->length);
	progress_start(&progress, what);
	struct err e = eval_run(r, progress_tokens, &progress, out);
	progress_end(&progress);
	TRY(e);
	TRY(stop_error());
	return eval_result_finite(out, label, r->length);
}

/* A model on report sequences of both lengths. */
static struct err measure(const struct oracle_question *q, const struct model *m, const struct method *scaling,
			  const struct oracle_answer *a, struct oracle_row *row)
{
	for (int l = 0; l < ORACLE_LENGTHS; l++) {
		struct eval_request r = examined_request(q->run, scaling, a->length[l]);
		r.model = m;
		TRY(evaluate(q, &r, row->label, &row->result[l]));
	}
	return OK;
}

static struct err measure_recipes(const struct oracle_question *q, struct oracle_answer *a)
{
	const struct examined *x = q->run;
	for (int i = 0; i < RECIPES; i++) {
		struct method scaling;
		struct err e = recipe_at(x, i, &scaling);
		if (e.code) {
			fprintf(stderr, "%s: %s is left out: %s\n", x->folder, recipes[i], e.text);
			continue;
		}
		struct oracle_row *row = add_row(a, label_of(&scaling));
		scaling_frequencies(&scaling, &x->model.options, x->length, row->inv_freq, &row->attention_factor);
		TRY(measure(q, &x->model, &scaling, a, row));
	}
	return OK;
}

/* NLL of the fitted group on the tune sequences that fits are compared on. */
static struct err tune_nll(const struct oracle_question *q, const struct model *m, double *nll)
{
	struct method none = none_method();
	struct eval_request r = examined_request(q->run, &none, q->run->length);
	struct eval_result result;
	const struct task *task = task_of(&q->run->config->data.task);
	const char *group = q->group < 0 ? "all" : task->groups[q->group];
	r.model = m;
	r.tune = true;
	struct err e = evaluate(q, &r, "fit", &result);
	for (int g = 0; g < result.groups && !e.code; g++)
		if (!strcmp(result.group[g], group))
			*nll = result.cell[g].nll;
	eval_result_free(&result);
	return e;
}

static struct err on_step(void *data, const struct step_report *r)
{
	progress_show(data, (double)r->step / (double)r->steps, "step %lld of %lld, loss %.4f", (long long)r->step,
		      (long long)r->steps, r->loss);
	return stop_error();
}

/* A fit that begins with a row's numbers; the fitted model is left in `m`. */
static struct err fit_from(const struct oracle_question *q, const struct oracle_row *start, struct model *m,
			   struct oracle_fit *fit)
{
	struct progress progress;
	char what[120];
	fit->start = start->label;
	TRY(oracle_model(&q->run->model, start->inv_freq, start->attention_factor, m));
	TRY(tune_nll(q, m, &fit->nll_before));
	struct fit_request request = fit_of(q, m);
	snprintf(what, sizeof what, "oracle fit from %.40s", start->label);
	progress_start(&progress, what);
	struct err e = fit_run(&request, on_step, &progress);
	progress_end(&progress);
	TRY(e);
	return tune_nll(q, m, &fit->nll_after);
}

/* Keeps the best so far in `best`, whose values alone differ from fit to fit. */
static void keep_better(const struct oracle_fit *fit, int index, struct model *m, struct model *best,
			struct oracle_answer *a, double *least)
{
	if (!(fmin(fit->nll_before, fit->nll_after) < *least))
		return;
	*least = fmin(fit->nll_before, fit->nll_after);
	a->best = index;
	a->unfitted = fit->nll_before <= fit->nll_after;
	model_close(best);
	*best = *m;
	*m = (struct model){ 0 };
}

static const struct oracle_row *row_named(const struct oracle_answer *a, const char *name)
{
	size_t length = strlen(name);
	for (int i = 0; i < arrlen(a->row); i++)
		if (!strncmp(a->row[i].label, name, length) && strchr("(", a->row[i].label[length]))
			return &a->row[i];
	return NULL;
}

static struct err fit_all(const struct oracle_question *q, struct model *best, struct oracle_answer *a)
{
	double least = INFINITY;
	for (int i = 0; i < STARTS; i++) {
		const struct oracle_row *start = row_named(a, starts[i]);
		struct model m = { 0 };
		struct oracle_fit fit = { 0 };
		if (!start)
			continue;
		struct err e = fit_from(q, start, &m, &fit);
		if (!e.code) {
			arrput(a->fit, fit);
			keep_better(&fit, (int)arrlen(a->fit) - 1, &m, best, a, &least);
		}
		model_close(&m);
		TRY(e);
	}
	return OK;
}

/* The oracle's row: the best fit, or where no fit gained anything, what it began with. */
static struct err add_oracle(const struct oracle_question *q, struct model *best, struct oracle_answer *a)
{
	struct method none = none_method();
	const struct oracle_row *start = row_named(a, a->fit[a->best].start);
	const struct parameter *factor = layout_find(&best->layout, oracle_tensors[1]);
	struct model again = { 0 };
	struct oracle_row *row;
	BUG_IF(!start || !best->value || !factor, "no fit was kept");
	if (a->unfitted) {
		TRY(oracle_model(&q->run->model, start->inv_freq, start->attention_factor, &again));
		memcpy(best->value, again.value, best->layout.size * sizeof(real));
		model_close(&again);
	}
	row = add_row(a, "oracle");
	parts_frequencies(best, &none, q->run->length, row->inv_freq);
	row->attention_factor = exp((double)best->value[factor->offset]);
	return measure(q, best, &none, a, row);
}

struct err run_oracle(const struct oracle_question *q, struct oracle_answer *out)
{
	const struct examined *x = q->run;
	struct place p = place_of(&x->model.options);
	struct model best = { 0 };
	*out = (struct oracle_answer){ .F = place_pairs(&p),
				       .length = { x->length, (int)x->model.options.train_length } };
	struct err e = measure_recipes(q, out);
	if (!e.code)
		e = fit_all(q, &best, out);
	if (!e.code)
		e = add_oracle(q, &best, out);
	model_close(&best);
	return e;
}

void oracle_answer_free(struct oracle_answer *a)
{
	for (int i = 0; i < arrlen(a->row); i++) {
		free(a->row[i].inv_freq);
		for (int l = 0; l < ORACLE_LENGTHS; l++)
			eval_result_free(&a->row[i].result[l]);
	}
	arrfree(a->row);
	arrfree(a->fit);
	*a = (struct oracle_answer){ 0 };
}
