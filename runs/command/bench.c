#include "eval/perplexity.h"
#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/bench/bench.h"
#include "runs/bench/random_tokens.h"
#include "runs/command/command.h"
#include "runs/progress.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TEXT, JSON };
struct bench_options {
	struct method scaling;
	const char *multiples, *output;
	double seconds;
	int64_t vocab, eval_tokens, repetitions, encodings, attention, attention_length, attention_head_dim, format;
};

#define ROW(n, k, i, u, h) \
	.name = #n, .kind = OPTION_##k, .initial = i, .unit = u, .help = h, .offset = offsetof(struct bench_options, n)
static const struct option own_rows[] = {
	{ ROW(vocab, INTEGER, "99", "tokens", "vocabulary of the random tokens that stand in where no task is given"),
	  .least = 1, .most = RANDOM_VOCABULARY_MOST },
	{ ROW(repetitions, INTEGER, "20", "", "how often each thing is measured"), .least = 1, .most = 1000000 },
	{ ROW(seconds, NUMBER, "0", "s", "bound of each part, checked from the third repetition on; 0: none"),
	  .most = 1e6 },
	{ ROW(multiples, TEXT, "1,2,4,8,16,32", "list", "evaluated lengths as multiples of train_length") },
	{ ROW(scaling, METHOD, "none", "", "RoPE scaling to evaluate under"), .family = scaling_at },
	{ ROW(eval_tokens, INTEGER, "32768", "tokens", "tokens evaluated at each length, but at least one sequence"),
	  .least = 1, .most = 1073741824 },
	{ ROW(encodings, SWITCH, "off", "", "also the training step of every encoding") },
	{ ROW(attention, SWITCH, "off", "", "also attention alone, forward, on one thread") },
	{ ROW(attention_length, INTEGER, "4096", "tokens", "T of attention alone"), .least = 1, .most = 1048576 },
	{ ROW(attention_head_dim, INTEGER, "32", "", "D of attention alone"), .least = 1, .most = 1024 },
	{ ROW(output, TEXT, "", "file", "file that takes the object of --format=json, whatever is printed") },
	{ ROW(format, CHOICE, "text", "", "tables for people, or an object for programs"), .choices = "text|json" },
	{ 0 },
};

/* When the process began: what came before this call was the loader's and the command line's work on one thread. */
static double process_start(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return clock_seconds() - ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec);
}

/* `given` has no effect because of `why`, unless it has. */
static struct err no_effect(const struct config *c, const char *given, bool has_effect, const char *why,
			    const char *unless)
{
	if (has_effect || !config_given(c, given))
		return OK;
	struct text_builder hint = { 0 }, name = { 0 };
	text_add(&hint, "Leave it out, or %s.", unless);
	for (const char *s = given; *s; s++)
		text_add(&name, "%c", *s == '_' ? '-' : *s);
	struct err e = err_usage(hint.data, "--%s: has no effect: %s", name.data, why);
	text_builder_free(&hint);
	text_builder_free(&name);
	return e;
}

static struct err check_own(const struct config *c)
{
	static const char off[] = "attention alone is not measured", on[] = "give --attention=on";
	const struct bench_options *o = c->own;
	if (*o->output)
		TRY(io_writable(o->output));
	TRY(no_effect(c, "vocab", !config_given(c, "task"), "the task has its own", "leave --task out"));
	TRY(no_effect(c, "attention_length", o->attention, off, on));
	return no_effect(c, "attention_head_dim", o->attention, off, on);
}

static struct bench_request request_of(const struct config *c, double start)
{
	const struct bench_options *o = c->own;
	struct bench_request q = { .model = c->model, .data = c->data, .train = c->train, .scaling = o->scaling,
				   .eval_tokens = (int)o->eval_tokens, .repetitions = (int)o->repetitions,
				   .seconds = o->seconds, .encodings = o->encodings, .attention = o->attention,
				   .attention_length = (int)o->attention_length,
				   .attention_head_dim = (int)o->attention_head_dim, .start = start };
	if (!config_given(c, "task"))
		q.data.task = random_tokens((int)o->vocab);
	return q;
}

static struct err show(const struct bench_options *o, const struct bench_request *q, const struct bench_result *r)
{
	struct text_builder json = { 0 }, tables = { 0 };
	bench_json(q, r, &json);
	bench_print(q, r, &tables);
	fputs(o->format == JSON ? json.data : tables.data, stdout);
	struct err e = *o->output ? io_write(o->output, json.data, json.size) : OK;
	text_builder_free(&json);
	text_builder_free(&tables);
	return e;
}

static struct err measure(const struct config *c, const struct bench_request *q)
{
	struct bench_result result = { 0 };
	TRY(bench_check(q));
	TRY(command_start(c));
	struct err e = bench_run(q, &result);
	if (!e.code)
		e = show(c->own, q, &result);
	bench_result_free(&result);
	return e;
}

static struct err run(struct invocation *in)
{
	double start = process_start();
	struct config *c = &in->config;
	int *length = NULL;
	double *multiple = NULL;
	TRY(config_finish(c, true));
	TRY(check_own(c));
	struct bench_request q = request_of(c, start);
	TRY(eval_lengths(((const struct bench_options *)c->own)->multiples, (int)q.model.train_length, &q.data, &length,
			 &multiple, &q.lengths));
	q.length = length;
	q.multiple = multiple;
	struct err e = measure(c, &q);
	free(length);
	free(multiple);
	return e;
}

const struct command command_bench = {
	.name = "bench",
	.words = "",
	.help = "how fast a model trains and evaluates here, beside the matrix products alone",
	.more = "Prints the time of a training step, of the forward pass and of the limit: the step's matrix products\n"
		"alone, as a user of the BLAS library would call them; where the step's time goes; the gain of all\n"
		"threads over one; evaluation at each multiple; memory. Whatever is compared is measured in turn.\n"
		"Unless --task is given, tokens are random and all positions are scored. Only --output is written.\n"
		"Examples:\n"
		"  ropewalk bench --task=recall\n"
		"  ropewalk bench --layers=4 --width=128 --heads=4 --train-length=128 --batch=16 --vocab=64\n"
		"  ropewalk bench --encodings=on --attention=on --format=json",
	.lists = LIST_TRAINING | LIST_RUN | LIST_OWN,
	.without = "steps|lr|lr_floor|warmup|beta1|beta2|adam_eps|weight_decay|clip|out|force|resume|save_every",
	.own = own_rows,
	.own_size = sizeof(struct bench_options),
	.run = run,
};
