#include "model/base/stb.h"
#include "runs/bench/bench.h"
#include "runs/bench/limit.h"
#include "runs/bench/memory.h"
#include "runs/run/run_folder.h"
#include "runs/version.h"

#include <math.h>
#include <stdlib.h>

/* JSON has no NaN. */
static json_t *number(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

/* 0 where nothing was measured. */
static json_t *ratio_json(double ratio)
{
	return ratio > 0 ? number(ratio) : json_null();
}

static json_t *bytes(int64_t count)
{
	return count < 0 ? json_null() : json_integer(count);
}

static void put(json_t *to, const char *key, json_t *value)
{
	int failed = json_object_set_new(to, key, value);
	BUG_IF(failed, "%s cannot be written as JSON", key);
}

/* Times, the rate of `flop`, and that of tokens unless that is 0; an empty timing is null. */
static json_t *timing_json(const struct timing *t, double flop, double tokens)
{
	if (!t->count)
		return json_null();
	json_t *o = json_object();
	put(o, "best_ms", number(1e3 * t->best));
	put(o, "median_ms", number(1e3 * t->median));
	put(o, "spread", number(t->spread));
	put(o, "repetitions", json_integer(t->count));
	put(o, "gflops_best", number(1e-9 * flop / t->best));
	put(o, "gflops_median", number(1e-9 * flop / t->median));
	if (tokens > 0) {
		put(o, "tokens_per_second_best", number(tokens / t->best));
		put(o, "tokens_per_second_median", number(tokens / t->median));
	}
	return o;
}

/* What in the environment changes how threads wait and which kernels the library takes; null where it is not set. */
static json_t *environment_json(void)
{
	static const char *const name[] = { "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_PROC_BIND", "OPENBLAS_CORETYPE" };
	json_t *o = json_object();
	for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
		const char *value = getenv(name[i]);
		json_t *text = value ? json_string(value) : NULL;
		put(o, name[i], text ? text : json_null());
	}
	return o;
}

static json_t *model_json(const struct bench_request *q, int V)
{
	const struct model_options *m = &q->model;
	json_t *o = json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:b, s:I, s:I, s:i, s:s, s:s}", "layers",
			      (json_int_t)m->layers, "width", (json_int_t)m->width, "heads", (json_int_t)m->heads,
			      "head_dim", (json_int_t)(m->width / m->heads), "hidden", (json_int_t)m->hidden, "rms_eps",
			      m->rms_eps, "tied", (int)m->tied, "train_length", (json_int_t)m->train_length, "batch",
			      (json_int_t)q->train.batch, "vocabulary", V, "encoding", label_of(&m->encoding), "task",
			      label_of(&q->data.task));
	BUG_IF(!o, "a model makes no JSON");
	return o;
}

static json_t *phases_json(const struct bench_training *t)
{
	json_t *o = json_object();
	for (int p = 0; p < PHASES; p++)
		put(o, phase_name((enum phase)p), number(1e3 * t->phase[p]));
	return o;
}

static void add_training(const struct bench_request *q, const struct bench_training *t, int V, json_t *o)
{
	double flop = limit_flop(&q->model, V, (int)q->train.batch);
	double tokens = (double)(q->train.batch * q->model.train_length);
	put(o, "flop_formula", json_string(BENCH_FLOP));
	put(o, "flop", number(flop));
	put(o, "step", timing_json(&t->step, flop, tokens));
	put(o, "limit", timing_json(&t->limit, flop, tokens));
	put(o, "forward", timing_json(&t->forward, flop / 3, tokens));
	put(o, "one_thread", timing_json(&t->one_thread, flop, tokens));
	put(o, "step_over_limit", ratio_json(t->over_limit.paired));
	put(o, "step_over_limit_best", ratio_json(t->over_limit.best));
	put(o, "speedup_threads", ratio_json(t->speedup.paired));
	put(o, "speedup_threads_best", ratio_json(t->speedup.best));
	put(o, "phases_ms", phases_json(t));
	put(o, "phased_step_ms", number(1e3 * t->phased_step));
	put(o, "start_ms", number(1e3 * t->start));
	put(o, "first_step_ms", number(1e3 * t->first_step));
	put(o, "training_resident_bytes", bytes(t->memory));
	put(o, "peak_resident_bytes", bytes(resident_peak()));
}

static json_t *length_json(const struct bench_request *q, const struct bench_length *l, int V)
{
	json_t *o = json_object();
	bool known = !l->refused.code;
	double flop = forward_flop(&q->model, V, 1, l->length) / l->length;
	put(o, "multiple", number(l->multiple));
	put(o, "length", json_integer(l->length));
	put(o, "sequences", json_integer(l->sequences));
	put(o, "ns_per_token_best", known ? number(1e9 * l->token.best) : json_null());
	put(o, "ns_per_token_median", known ? number(1e9 * l->token.median) : json_null());
	put(o, "spread", known ? number(l->token.spread) : json_null());
	put(o, "repetitions", json_integer(l->token.count));
	put(o, "gflops_best", known ? number(1e-9 * flop / l->token.best) : json_null());
	put(o, "gflops_median", known ? number(1e-9 * flop / l->token.median) : json_null());
	put(o, "resident_bytes", known ? bytes(l->memory) : json_null());
	put(o, "refused", known ? json_null() : json_string(l->refused.text));
	return o;
}

static json_t *evaluation_json(const struct bench_request *q, const struct bench_evaluation *e, int V)
{
	json_t *o = json_object(), *lengths = json_array();
	for (int i = 0; i < arrlen(e->length); i++)
		json_array_append_new(lengths, length_json(q, &e->length[i], V));
	put(o, "scaling", json_string(label_of(&q->scaling)));
	put(o, "tokens", json_integer(q->eval_tokens));
	put(o, "lengths", lengths);
	put(o, "fit_ns", number(1e9 * e->a));
	put(o, "fit_ns_per_token_of_length", number(1e9 * e->b));
	put(o, "resident_longest_over_shortest", number(e->memory_ratio));
	return o;
}

static json_t *encodings_json(const struct bench_request *q, const struct bench_encoding *encoding, int V)
{
	double flop = limit_flop(&q->model, V, (int)q->train.batch);
	double tokens = (double)(q->train.batch * q->model.train_length);
	json_t *all = json_array();
	for (int i = 0; i < arrlen(encoding); i++) {
		const struct bench_encoding *b = &encoding[i];
		json_t *o = json_object();
		put(o, "encoding", json_string(b->name));
		put(o, "step", timing_json(&b->step, flop, tokens));
		put(o, "over_own", ratio_json(b->over_own.paired));
		put(o, "over_own_best", ratio_json(b->over_own.best));
		put(o, "refused", b->refused.code ? json_string(b->refused.text) : json_null());
		json_array_append_new(all, o);
	}
	return all;
}

static json_t *attention_json(const struct bench_attention *a)
{
	json_t *o = json_object(), *heads = json_array();
	for (int i = 0; i < arrlen(a->head); i++) {
		const struct bench_head *h = &a->head[i];
		json_t *one = json_object();
		put(one, "encoding", json_string(h->name));
		put(one, "forward", timing_json(&h->forward, a->flop, 0));
		put(one, "over_own", ratio_json(h->over_own.paired));
		put(one, "over_own_best", ratio_json(h->over_own.best));
		put(one, "refused", h->refused.code ? json_string(h->refused.text) : json_null());
		json_array_append_new(heads, one);
	}
	put(o, "length", json_integer(a->length));
	put(o, "head_dim", json_integer(a->head_dim));
	put(o, "flop_formula", json_string(BENCH_ATTENTION_FLOP));
	put(o, "flop", number(a->flop));
	put(o, "product_size", json_integer(BENCH_PRODUCT));
	put(o, "product", timing_json(&a->product, BENCH_PRODUCT_FLOP, 0));
	put(o, "heads", heads);
	return o;
}

void bench_json(const struct bench_request *q, const struct bench_result *r, struct text_builder *b)
{
	int V = task_of(&q->data.task)->vocabulary(&q->data.task);
	json_t *o = json_object();
	put(o, "version", version_json());
	put(o, "environment", environment_json());
	put(o, "model", model_json(q, V));
	add_training(q, &r->training, V, o);
	put(o, "evaluation", evaluation_json(q, &r->evaluation, V));
	put(o, "encodings", r->encoding ? encodings_json(q, r->encoding, V) : json_null());
	put(o, "attention", r->attention.head ? attention_json(&r->attention) : json_null());
	char *text = json_dumps(o, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
	BUG_IF(!text, "measurements make no JSON");
	text_add(b, "%s\n", text);
	free(text);
	json_decref(o);
}
