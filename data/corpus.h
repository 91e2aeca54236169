#ifndef ROPEWALK_CORPUS_H
#define ROPEWALK_CORPUS_H

#include "data/task.h"

/* Files of text or of tokens, for the tasks that read them. What was read stays as long as the program runs. */

/* `load` of an option (model/base/option.h): reads the file of any bytes that the text names. *out is PATH@HASH, of the
 * XXH3 of its bytes. "" names no file; an empty file is err_usage. */
struct err corpus_load(const char *text, const char **out);

enum corpus_type { CORPUS_BYTES, CORPUS_UINT16, CORPUS_INT32 };

/* Tokens in a row. */
struct corpus_part {
	const char *data;
	size_t tokens;
	enum corpus_type type;
};

/* What a task trains on and is evaluated on. Of n tokens of a file the last floor(held n) are held out, or all of
 * another file, whose first half is the stream `tune` and whose second is `report`. */
enum corpus_use { USE_TRAIN, USE_TUNE, USE_REPORT, USES };

struct corpus_request {
	const char *task;             /* its name, for errors and the flags they name */
	const char *file, *held_file; /* as corpus_load gave them; "" for none */
	double held;
	enum corpus_type type; /* where a file has llm.c's header, that says it */
	int V;                 /* 0: as many as the files need */
	bool predicts;         /* reckon up how often tokens follow tokens, for corpus_follow */
};

struct corpus {
	struct corpus_request request;
	struct corpus_part part[USES];
	int V;
	struct err error; /* what is wrong with the files: they have no parts then */
	struct counts *counts;
};

/* Opens the files of a request, once. Not to be called while others use it, but for requests opened before. */
const struct corpus *corpus_open(const struct corpus_request *request);

/* Can windows of this length be cut out of every part? */
struct err corpus_check(const struct corpus *c, int length);

static inline enum corpus_use corpus_use(enum stream stream)
{
	return stream == STREAM_TUNE ? USE_TUNE : stream == STREAM_REPORT ? USE_REPORT : USE_TRAIN;
}

int32_t corpus_token(const struct corpus_part *p, size_t index);

/* Where window `index` begins: `length` tokens and the one after them stand there. Of STREAM_TRAIN uniform over the
 * part; else spread evenly: the windows' ends are at the multiples of the golden ratio (modulo 1) from a drawn one on,
 * over all but the first eighth of the part, so that windows of any length up to that end at the same tokens. Any
 * number of windows is as evenly spread as can be; once they have more tokens than the part, they overlap. */
size_t corpus_window(const struct corpus *c, uint64_t seed, enum stream stream, uint64_t index, int length);

/* How likely a token is to follow others in the training part, which are counted: of 0 tokens before it, (count + 1) /
 * (N + V); of 1 and 2, interpolated with the probability after one token less (Witten and Bell 1991, method C):
 *	p(v | h) = (count(h v) + kinds(h) p(v | h less its first)) / (count(h) + kinds(h))
 * where kinds(h) is how many different tokens follow h. `before` are the `order` tokens before it, in order. More than
 * 0 of bytes alone. */
#define CORPUS_ORDERS 3
double corpus_follow(const struct corpus *c, const int32_t *before, int order, int32_t token);

/* The hook `floor` of such tasks: NaN, nobody knows. */
double corpus_floor(const struct method *task, int length, int group);

#endif
