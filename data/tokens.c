#include "data/corpus.h"

#include <math.h>

/* The tokens of a file, as other programs' tokenizers write them: nanoGPT's .bin, uint16 or int32 one after the other,
 * or llm.c's, the same behind a header, which then says the type. A sequence is a window of it, and every target the
 * next token, the last one's being the token after the window. */

enum group { GROUP_TOKENS };

enum { OPTION_FILE, OPTION_TYPE, OPTION_VOCABULARY, OPTION_HELD, OPTION_HELD_FILE };

static const struct option options[] = {
	[OPTION_FILE] = { .name = "file", .kind = OPTION_TEXT, .initial = "", .unit = "path", .results = true,
			  .load = corpus_load, .help = "the tokens, as nanoGPT or llm.c write them" },
	[OPTION_TYPE] = { .name = "type", .kind = OPTION_CHOICE, .initial = "uint16", .choices = "uint16|int32",
			  .unit = "", .results = true, .help = "how a token is stored, where no header says it" },
	[OPTION_VOCABULARY] = { .name = "vocabulary", .kind = OPTION_NUMBER, .initial = "auto", .least = 2,
				.most = 1 << 24, .choices = "auto", .unit = "tokens", .results = true,
				.help = "tokens there are; auto: as many as the largest of the files needs" },
	[OPTION_HELD] = { .name = "held", .kind = OPTION_NUMBER, .initial = "0.1", .least = 0.001, .most = 0.9,
			  .unit = "", .results = true, .help = "share of the file, its end, that is not trained on" },
	[OPTION_HELD_FILE] = { .name = "held_file", .kind = OPTION_TEXT, .initial = "", .unit = "path",
			       .results = true, .load = corpus_load,
			       .help = "evaluate on this file; the other is trained on whole" },
	{ 0 },
};

static const struct corpus *corpus_of(const struct method *task)
{
	struct corpus_request q = {
		.task = task->entry->name, .file = task->value[OPTION_FILE].text,
		.held_file = task->value[OPTION_HELD_FILE].text, .held = task->value[OPTION_HELD].number,
		.type = task->value[OPTION_TYPE].integer ? CORPUS_INT32 : CORPUS_UINT16,
		.V = (int)task->value[OPTION_VOCABULARY].number, .predicts = true,
	};
	return corpus_open(&q);
}

static int tokens_vocabulary(const struct method *task)
{
	int V = corpus_of(task)->V;
	return V > 2 ? V : 2;
}

static struct err tokens_check(const struct method *task, int train_length, int length)
{
	(void)train_length;
	double V = task->value[OPTION_VOCABULARY].number;
	if (V != floor(V))
		return err_usage("Give how many tokens there are, or auto.",
				 "tokens: a vocabulary of %g is not a whole number", V);
	if (*task->value[OPTION_HELD_FILE].text && method_changed(task, OPTION_HELD))
		return err_usage("Leave one of them out.", "tokens: held has no effect beside held_file");
	return corpus_check(corpus_of(task), length);
}

static void tokens_make(const struct method *task, int train_length, uint64_t seed, enum stream stream, uint64_t index,
			int length, struct sequence *out)
{
	(void)train_length;
	const struct corpus *c = corpus_of(task);
	const struct corpus_part *part = &c->part[corpus_use(stream)];
	size_t first = corpus_window(c, seed, stream, index, length);
	for (int t = 0; t < length; t++) {
		out->token[t] = corpus_token(part, first + (size_t)t);
		out->target[t] = corpus_token(part, first + (size_t)t + 1);
		out->group[t] = GROUP_TOKENS;
		out->distance[t] = 1;
		out->position[t] = t;
	}
}

static void tokens_solve(const struct method *task, const int32_t *token, int length, int32_t *target)
{
	(void)task;
	for (int t = 0; t < length; t++)
		target[t] = t + 1 < length ? token[t + 1] : TARGET_BEYOND;
}

static void unigram_probability(const struct method *task, const struct sequence *s, int train_length, int length,
				double *p)
{
	(void)train_length;
	const struct corpus *c = corpus_of(task);
	for (int t = 0; t < length; t++)
		p[t] = s->target[t] >= 0 ? corpus_follow(c, NULL, 0, s->target[t]) : 0;
}

static const struct task_reference references[] = {
	{ "how often the token comes in what is trained on", GROUP_TOKENS, unigram_probability },
	{ 0 },
};

const struct task task_tokens = {
	.entry = { .name = "tokens", .help = "the tokens of a file: the next token", .options = options },
	.groups = { [GROUP_TOKENS] = "tokens" },
	.references = references,
	.vocabulary = tokens_vocabulary,
	.check = tokens_check,
	.make = tokens_make,
	.solve = tokens_solve,
	.floor = corpus_floor,
};
