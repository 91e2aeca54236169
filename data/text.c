#include "data/corpus.h"

/* The bytes of a file. A sequence is a window of it, and every target the next byte, the last one's being the byte
 * after the window. With bos=each, BOS stands first in place of the window's first byte, so that the targets are the
 * same. */

enum { BYTES = 256, BOS = 256 };

enum group { GROUP_BYTES };

enum { OPTION_FILE, OPTION_HELD, OPTION_HELD_FILE, OPTION_BOS };
enum { BOS_NONE, BOS_EACH };

static const struct option options[] = {
	[OPTION_FILE] = { .name = "file", .kind = OPTION_TEXT, .initial = "", .unit = "path", .results = true,
			  .load = corpus_load, .help = "the text, of which every byte is a token" },
	[OPTION_HELD] = { .name = "held", .kind = OPTION_NUMBER, .initial = "0.1", .least = 0.001, .most = 0.9,
			  .unit = "", .results = true, .help = "share of the file, its end, that is not trained on" },
	[OPTION_HELD_FILE] = { .name = "held_file", .kind = OPTION_TEXT, .initial = "", .unit = "path",
			       .results = true, .load = corpus_load,
			       .help = "evaluate on this file; the other is trained on whole" },
	[OPTION_BOS] = { .name = "bos", .kind = OPTION_CHOICE, .initial = "none", .choices = "none|each", .unit = "",
			 .results = true, .help = "each: every window begins with token 256" },
	{ 0 },
};

static bool has_bos(const struct method *task)
{
	return task->value[OPTION_BOS].integer == BOS_EACH;
}

static int32_t text_opening(const struct method *task)
{
	return has_bos(task) ? BOS : -1;
}

static int text_vocabulary(const struct method *task)
{
	return BYTES + has_bos(task);
}

static const struct corpus *corpus_of(const struct method *task)
{
	struct corpus_request q = {
		.task = task->entry->name, .file = task->value[OPTION_FILE].text,
		.held_file = task->value[OPTION_HELD_FILE].text, .held = task->value[OPTION_HELD].number,
		.type = CORPUS_BYTES, .V = BYTES, .predicts = true,
	};
	return corpus_open(&q);
}

static struct err text_check(const struct method *task, int train_length, int length)
{
	(void)train_length;
	if (*task->value[OPTION_HELD_FILE].text && method_changed(task, OPTION_HELD))
		return err_usage("Leave one of them out.", "text: held has no effect beside held_file");
	return corpus_check(corpus_of(task), length);
}

static void text_make(const struct method *task, int train_length, uint64_t seed, enum stream stream, uint64_t index,
		      int length, struct sequence *out)
{
	(void)train_length;
	const struct corpus *c = corpus_of(task);
	const struct corpus_part *part = &c->part[corpus_use(stream)];
	size_t first = corpus_window(c, seed, stream, index, length);
	for (int t = 0; t < length; t++) {
		out->token[t] = t == 0 && has_bos(task) ? BOS : corpus_token(part, first + (size_t)t);
		out->target[t] = corpus_token(part, first + (size_t)t + 1);
		out->group[t] = GROUP_BYTES;
		out->distance[t] = 1;
		out->position[t] = t;
	}
}

static void text_solve(const struct method *task, const int32_t *token, int length, int32_t *target)
{
	(void)task;
	for (int t = 0; t < length; t++)
		target[t] = t + 1 < length ? token[t + 1] : TARGET_BEYOND;
}

/* By the `order` bytes before it, or as many as the window has. */
static void follow(const struct method *task, const struct sequence *s, int length, int order, double *p)
{
	const struct corpus *c = corpus_of(task);
	int first = has_bos(task);
	for (int t = 0; t < length; t++) {
		int known = t + 1 - first < order ? t + 1 - first : order;
		bool byte = s->target[t] >= 0 && s->target[t] < BYTES;
		p[t] = byte ? corpus_follow(c, s->token + t + 1 - known, known, s->target[t]) : 0;
	}
}

static void unigram_probability(const struct method *task, const struct sequence *s, int train_length, int length,
				double *p)
{
	(void)train_length;
	follow(task, s, length, 0, p);
}

static void bigram_probability(const struct method *task, const struct sequence *s, int train_length, int length,
			       double *p)
{
	(void)train_length;
	follow(task, s, length, 1, p);
}

static void trigram_probability(const struct method *task, const struct sequence *s, int train_length, int length,
				double *p)
{
	(void)train_length;
	follow(task, s, length, 2, p);
}

static const struct task_reference references[] = {
	{ "how often the byte comes in what is trained on", GROUP_BYTES, unigram_probability },
	{ "the same after the byte before", GROUP_BYTES, bigram_probability },
	{ "the same after the two bytes before", GROUP_BYTES, trigram_probability },
	{ 0 },
};

const struct task task_text = {
	.entry = { .name = "text", .help = "the bytes of a file: the next byte", .options = options },
	.groups = { [GROUP_BYTES] = "bytes" },
	.bytes = true,
	.references = references,
	.vocabulary = text_vocabulary,
	.check = text_check,
	.make = text_make,
	.solve = text_solve,
	.floor = corpus_floor,
	.opening = text_opening,
};
