#include "model/base/io.h"
#include "model/base/rng.h"
#include "model/base/stb.h"
#include "model/decode.h"
#include "model/loss.h"
#include "model/positions.h"
#include "runs/command/command.h"
#include "runs/model_input.h"
#include "runs/progress.h"
#include "runs/run/run_folder.h"
#include "runs/stop.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct generate_options {
	const char *prompt, *prompt_file;
	int64_t tokens, kv, seed, logprobs;
	double sample;
	struct method scaling;
};

#define TOKENS_MOST 16777216
#define ROW(n, k, i, u, h) \
	.name = #n, .kind = OPTION_##k, .initial = i, .unit = u, .help = h, \
	.offset = offsetof(struct generate_options, n)
static const struct option own[] = {
	{ ROW(prompt, TEXT, "", "ids", "token ids to continue, with commas between them") },
	{ ROW(prompt_file, TEXT, "", "file", "the same from a file, with commas or white space between them") },
	{ ROW(tokens, INTEGER, "16", "tokens", "how many to add"), .least = 1, .most = TOKENS_MOST },
	{ ROW(scaling, METHOD, "none", "", "RoPE scaling, a factor auto for the whole length; not given: the trained one"),
	  .family = scaling_at },
	/* In the order of enum cache_kind. */
	{ ROW(kv, CHOICE, "recompute", "",
	      "what is kept of earlier tokens: nothing, keys as projected, or keys as first rotated"),
	  .choices = "recompute|unrotated|rotated" },
	{ ROW(sample, NUMBER, "0", "", "temperature to draw tokens at; 0: the likeliest"), .least = 0, .most = 1e6 },
	{ ROW(seed, INTEGER, "1", "", "of the draws"), .least = 0, .most = 9007199254740991 },
	{ ROW(logprobs, SWITCH, "off", "", "print a table of the tokens with their -ln p instead"),
	  .choices = "off|on", .most = 1 },
	{ 0 },
};

/* ---- the prompt ---- */

/* A comma with no id before it; NULL: there is none. */
static const char *empty_id(const char *text)
{
	bool id = false;
	for (const char *at = text; *at; at++) {
		if (*at == ',' && !id)
			return at;
		if (!strchr(" \t\r\n", *at))
			id = *at != ',';
	}
	return NULL;
}

/* Ids in an stb_ds array; V of the model. `from` is where the text stands. */
static struct err parse_ids(char *text, const char *from, int V, int32_t **ids)
{
	char *rest = NULL;
	const char *gap = empty_id(text);
	if (gap)
		return err_usage("Separate ids by single commas.", "%s: no id stands at '%.20s'", from, gap);
	for (char *word = strtok_r(text, ", \t\r\n", &rest); word; word = strtok_r(NULL, ", \t\r\n", &rest)) {
		int64_t id;
		if (!text_to_integer(word, &id))
			return err_usage("Give ids with commas between them, as in --prompt=3,1,4.",
					 "%s: '%.60s' is not a token id", from, word);
		if (id < 0 || id >= V)
			return err_usage("Ids of another vocabulary mean nothing here.",
					 "%s: id %" PRId64 " at place %d: the model has the tokens 0 to %d", from, id,
					 (int)arrlen(*ids) + 1, V - 1);
		if (arrlen(*ids) == TOKENS_MOST)
			return err_usage("Give a shorter one.", "%s: more than %d ids", from, TOKENS_MOST);
		arrput(*ids, (int32_t)id);
	}
	if (!arrlen(*ids))
		return err_usage("Give at least one id.", "%s: the prompt is empty", from);
	return OK;
}

static struct err read_prompt(const struct generate_options *o, int V, int32_t **ids)
{
	char *text = NULL;
	size_t size = 0;
	struct err e = OK;
	if (*o->prompt_file)
		e = io_read(o->prompt_file, &text, &size);
	else
		text = strdup(o->prompt);
	if (!e.code && !text)
		e = err_failed("Give a shorter prompt.", "generate: no memory for the prompt");
	if (!e.code && *o->prompt_file && memchr(text, 0, size))
		e = err_usage("Give ids with commas or white space between them.", "%s: is no text: it has a zero byte",
			      o->prompt_file);
	if (!e.code)
		e = parse_ids(text, *o->prompt_file ? o->prompt_file : "--prompt", V, ids);
	free(text);
	return e;
}

static struct err check_options(const struct generate_options *o)
{
	if (*o->prompt && *o->prompt_file)
		return err_usage("Give one of them.", "generate: --prompt and --prompt-file are both given");
	if (!*o->prompt && !*o->prompt_file)
		return err_usage("Write --prompt=ID,ID,... or --prompt-file=FILE.", "generate: --prompt is missing");
	return OK;
}

/* ---- what cannot be ---- */

/* Positions past the encoding's reach: how many tokens can be added instead. The last one added is not read. */
static struct err check_reach(const struct model *m, int prompt, int64_t tokens)
{
	struct place p = place_of(&m->options);
	if (!p.position->reach)
		return OK;
	struct err e = p.position->reach(&p, (double)(prompt + tokens - 2));
	if (!e.code)
		return OK;
	while (tokens > 0 && p.position->reach(&p, (double)(prompt + tokens - 2)).code)
		tokens--;
	if (tokens)
		snprintf(e.hint, sizeof e.hint, "Give --tokens=%" PRId64 " at most.", tokens);
	else
		snprintf(e.hint, sizeof e.hint, "Give a shorter prompt: %d ids are too many already.", prompt);
	return err_at(e, "generate");
}

/* ---- tokens ---- */

struct generation {
	const struct generate_options *options;
	const struct model *model;
	struct decoder *decoder;
	real *logits;   /* [V] */
	int32_t *token; /* stb_ds array: the prompt's, then those added */
	double *nats;   /* stb_ds array, of those added */
	int prompt;
};

static int32_t likeliest(const real *logits, int V)
{
	int32_t best = 0;
	for (int32_t v = 1; v < V; v++)
		best = logits[v] > logits[best] ? v : best;
	return best;
}

/* A draw from softmax(logits / temperature), a function of the seed and the place of the token alone. */
static int32_t draw(const struct generation *g, double temperature)
{
	int V = g->model->V;
	double sum = 0, greatest = (double)g->logits[likeliest(g->logits, V)];
	struct rng rng = rng_at((uint64_t)g->options->seed, STREAM_SAMPLE, (uint64_t)arrlen(g->token));
	for (int v = 0; v < V; v++)
		sum += exp(((double)g->logits[v] - greatest) / temperature);
	double left = rng_uniform(&rng) * sum;
	for (int32_t v = 0; v < V; v++) {
		left -= exp(((double)g->logits[v] - greatest) / temperature);
		if (left < 0)
			return v;
	}
	return likeliest(g->logits, V);
}

/* The next token, from the logits. */
static struct err choose(struct generation *g)
{
	double sample = g->options->sample, nats;
	int32_t ignored;
	for (int v = 0; v < g->model->V; v++)
		if (!isfinite((double)g->logits[v]))
			return err_diverged("The weights are too large: train again with a lower --lr.",
					    "generate: a logit of token %d is not finite", (int)arrlen(g->token));
	int32_t next = sample > 0 ? draw(g, sample) : likeliest(g->logits, g->model->V);
	cross_entropy(1, g->model->V, &next, g->logits, &nats, &ignored);
	arrput(g->token, next);
	arrput(g->nats, nats);
	return OK;
}

static struct err generate(struct generation *g)
{
	int64_t total = g->prompt + g->options->tokens - 1;
	struct progress progress;
	struct err e = OK;
	progress_start(&progress, "generate");
	for (int64_t t = 0; t < total && !e.code; t++) {
		bool wanted = t >= g->prompt - 1;
		decoder_step(g->decoder, &g->token[t], wanted ? g->logits : NULL);
		if (wanted)
			e = choose(g);
		if (!e.code)
			e = progress_tokens(&progress, t + 1, total);
	}
	progress_end(&progress);
	return e;
}

static void print_tokens(const struct generation *g)
{
	for (ptrdiff_t i = g->prompt; i < arrlen(g->token); i++)
		printf("%s%" PRId32, i == g->prompt ? "" : ",", g->token[i]);
	printf("\n");
}

static void print_table(const struct generation *g)
{
	char nats[NUMBER_TEXT];
	printf("%8s %8s  %s\n", "position", "id", "nats");
	for (ptrdiff_t i = 0; i < arrlen(g->nats); i++)
		printf("%8td %8" PRId32 "  %s\n", g->prompt + i, g->token[g->prompt + i],
		       number_to_text(g->nats[i], nats));
}

static struct err fits(const struct decoder_request *request)
{
	size_t bytes;
	char need[32], have[MEMORY_AVAILABLE_TEXT];
	TRY(decoder_bytes(request, &bytes));
	if (bytes <= memory_available())
		return OK;
	return err_usage("Give fewer --tokens.", "generate: %d tokens need %s, and %s", request->T,
			 memory_text(bytes, need), memory_available_text(have));
}

/* Evaluations of such a model give it other positions than a prompt has. */
static void note_positions(const struct model_options *o)
{
	if (o->positions == POSITIONS_RANDOMIZED || o->positions == POSITIONS_TASK)
		fprintf(stderr, "generate: the prompt stands at positions 0, 1, 2 ...; the model was trained at %s ones\n",
			o->positions == POSITIONS_TASK ? "its task's" : "randomized");
}

static struct err continue_prompt(struct config *c, struct generation *g)
{
	const struct generate_options *o = g->options;
	const struct method *scaling = config_given(c, "scaling") ? &o->scaling : &g->model->options.trained_scaling;
	struct decoder_request request = { .model = g->model, .B = 1, .T = (int)(g->prompt + o->tokens - 1),
					   .scaling = scaling, .cache = (enum cache_kind)o->kv };
	struct arena memory = { 0 };
	TRY(check_reach(g->model, g->prompt, o->tokens));
	TRY(fits(&request));
	TRY(command_start(c));
	note_positions(&g->model->options);
	TRY(decoder_open(&request, &g->decoder));
	stop_catch();
	struct err e = arena_reserve(&memory, (size_t)g->model->V * sizeof(real), "the logits");
	if (!e.code) {
		g->logits = ARENA_TAKE(&memory, real, (size_t)g->model->V);
		e = generate(g);
		if (arrlen(g->nats))
			(o->logprobs ? print_table : print_tokens)(g);
	}
	decoder_close(g->decoder);
	arena_free(&memory);
	return e;
}

/* The file of a finished run's folder, or what is a file itself; free() it. */
static struct err find_model(const struct config *c, const char *path, char **file)
{
	struct config run = *c;
	char *folder = NULL;
	*file = io_is_folder(path) ? NULL : strdup(path);
	if (*file)
		return OK;
	TRY(input_no_model_option(c, path));
	TRY(run_folder_open(path, &run, &folder));
	*file = io_join(folder, RUN_MODEL);
	free(folder);
	return OK;
}

static struct err run(struct invocation *in)
{
	struct config *c = &in->config;
	const struct generate_options *o = c->own;
	struct generation g = { .options = o };
	struct model m = { 0 };
	char *file = NULL;
	struct err e = input_finish(c, in->word[0]);
	if (!e.code)
		e = check_options(o);
	if (!e.code)
		e = find_model(c, in->word[0], &file);
	if (!e.code)
		e = input_model(c, file, &m);
	g.model = &m;
	if (!e.code)
		e = read_prompt(o, m.V, &g.token);
	g.prompt = (int)arrlen(g.token);
	if (!e.code)
		e = continue_prompt(c, &g);
	arrfree(g.token);
	arrfree(g.nats);
	model_close(&m);
	free(file);
	return e;
}

const struct command command_generate = {
	.name = "generate",
	.words = "MODEL",
	.help = "continue a prompt of token ids",
	.more = "MODEL is a run's folder or a safetensors file. Prints the ids that are added, on one line.\n"
		"With --kv=unrotated or rotated earlier tokens are kept in a cache; recompute runs the whole sequence\n"
		"again at each step where its length changes frequencies, and keeps keys as projected where that is\n"
		"the same. A model that ropewalk wrote knows its options; for others give --heads, --encoding,\n"
		"--rope-theta ...; sizes are read from the shapes.\n"
		"Examples:\n"
		"  ropewalk generate runs/out/rope-101 --prompt=3,14,15,9 --tokens=8\n"
		"  ropewalk generate runs/out/rope-101 --prompt-file=ids --sample=1 --scaling=dynamic --kv=rotated",
	.least = 1,
	.most = 1,
	.lists = LIST_MODEL | LIST_RUN | LIST_OWN,
	.without = "out|force|resume|save_every",
	.own = own,
	.own_size = sizeof(struct generate_options),
	.run = run,
};
