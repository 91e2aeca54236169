/* For memmem. */
#define _GNU_SOURCE
#include "data/corpus.h"

#include "data/counts.h"
#include "model/base/file_name.h"
#include "model/base/io.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- Files. ---- */

static struct file {
	struct file *next;
	char *data;
	size_t size;
	const char *name; /* the path, as in the text */
	char text[];
} *files;

static struct file *find_file(const char *text)
{
	struct file *f = files;
	while (f && strcmp(f->text, text))
		f = f->next;
	return f;
}

/* Takes over the data. */
static const char *keep(const char *path, uint32_t hash, char *data, size_t size)
{
	struct text_builder text = { 0 };
	file_name_label(path, hash, &text);
	struct file *f = find_file(text.data);
	if (f) {
		free(data);
	} else {
		f = malloc(sizeof *f + text.size + 1);
		BUG_IF(!f, "out of memory for the name of a file");
		*f = (struct file){ .next = files, .data = data, .size = size, .name = strdup(path) };
		BUG_IF(!f->name, "out of memory for the name of a file");
		memcpy(f->text, text.data, text.size + 1);
		files = f;
	}
	text_builder_free(&text);
	return f->text;
}

static struct err load(const struct file_name *name, const char **out)
{
	char *data;
	size_t size;
	struct err e = io_read(name->path, &data, &size);
	if (e.code && !io_exists(name->path))
		snprintf(e.hint, sizeof e.hint, "Check the path for a typing mistake; one that does not begin with / "
			 "goes from the current folder. The text of the preset `text` is made by `make text`.");
	if (e.code)
		return e;
	uint32_t hash = (uint32_t)XXH3_64bits(data, size);
	if (!size) {
		free(data);
		return err_usage("Name a file that holds something.", "%s: it is empty", name->path);
	}
	*out = keep(name->path, hash, data, size);
	return file_name_check(name, "bytes are", *out);
}

struct err corpus_load(const char *text, const char **out)
{
	struct file_name name;
	*out = "";
	if (!*text)
		return OK;
	TRY(file_name_open(text, &name));
	struct err e = load(&name, out);
	file_name_close(&name);
	return e;
}

/* ---- What they hold. ---- */

/* llm.c's header: 256 int32, of which the first three are a magic number, a version and the number of tokens. */
enum { HEADER = 256 * sizeof(int32_t) };
static const struct header {
	int32_t magic, version;
	enum corpus_type type;
} headers[] = { { 20240520, 1, CORPUS_UINT16 }, { 20240801, 7, CORPUS_INT32 } };

static size_t size_of(enum corpus_type type)
{
	return type == CORPUS_INT32 ? sizeof(int32_t) : type == CORPUS_UINT16 ? sizeof(uint16_t) : 1;
}

static const char *name_of(enum corpus_type type)
{
	return type == CORPUS_INT32 ? "int32" : type == CORPUS_UINT16 ? "uint16" : "bytes";
}

static struct err read_header(const struct file *f, struct corpus_part *out)
{
	int32_t head[3];
	if (f->size < HEADER)
		return OK;
	memcpy(head, f->data, sizeof head);
	for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
		if (head[0] != headers[i].magic)
			continue;
		if (head[1] != headers[i].version)
			return err_usage("Write the file anew by a version of llm.c of which that is known.",
					 "%s: llm.c's header of version %d, where %d is known", f->name, head[1],
					 headers[i].version);
		*out = (struct corpus_part){ f->data + HEADER, (size_t)(uint32_t)head[2], headers[i].type };
		if (f->size != HEADER + out->tokens * size_of(out->type))
			return err_usage("Copy the file anew.",
					 "%s: its header says %zu tokens of %s, and %zu bytes follow it", f->name,
					 out->tokens, name_of(out->type), f->size - HEADER);
		return OK;
	}
	return OK;
}

int32_t corpus_token(const struct corpus_part *p, size_t index)
{
	uint16_t small;
	int32_t large;
	switch (p->type) {
	case CORPUS_BYTES:
		return (unsigned char)p->data[index];
	case CORPUS_UINT16:
		memcpy(&small, p->data + index * sizeof small, sizeof small);
		return small;
	case CORPUS_INT32:
		memcpy(&large, p->data + index * sizeof large, sizeof large);
		return large;
	}
	BUG("tokens of no type");
}

/* Fewer pairs of tokens than this may be so by chance. */
enum { LOOKED_AT = 16 };

/* Tokens stored twice as wide have 0 in every second place, but for the largest; no text has. */
static bool looks_wider(const struct corpus_part *p)
{
	size_t zeros[2] = { 0 }, half = p->tokens / 2;
	if (p->type == CORPUS_BYTES || p->tokens % 2 || half < LOOKED_AT)
		return false;
	for (size_t i = 0; i < p->tokens; i++)
		zeros[i % 2] += corpus_token(p, i) == 0;
	return zeros[1] >= half - half / 8 && zeros[0] <= half / 2;
}

static struct err find_tokens(const struct corpus_request *q, const char *text, struct corpus_part *out)
{
	const struct file *f = find_file(text);
	BUG_IF(!f, "%s was not read", text);
	size_t each = size_of(q->type);
	*out = (struct corpus_part){ .type = q->type };
	if (q->type != CORPUS_BYTES)
		TRY(read_header(f, out));
	if (out->data)
		return OK;
	*out = (struct corpus_part){ f->data, f->size / each, q->type };
	if (f->size % each)
		return err_usage("Name a file of tokens, and their --tokens-type.",
				 "%s: %zu bytes are no whole number of %s", f->name, f->size, name_of(q->type));
	if (!looks_wider(out))
		return OK;
	return err_usage(q->type == CORPUS_UINT16 ? "Give --tokens-type=int32." : "Write the tokens as int32.",
			 "%s: every second %s is 0, or nearly: its tokens are stored in twice as many bytes", f->name,
			 name_of(q->type));
}

/* Tokens are drawn by 32 bits. */
#define MOST_TOKENS ((size_t)UINT32_MAX)
/* More would make a model of any width too large. */
enum { MOST_VOCABULARY = 1 << 24 };

static struct err token_wrong(const struct corpus *c, const struct file *f, const struct corpus_part *p, size_t at)
{
	int32_t token = corpus_token(p, at);
	if (c->request.V && token >= 0)
		return err_usage("Give a larger --tokens-vocabulary, or auto.",
				 "%s: token %zu is %d, and the vocabulary has %d", f->name, at, token, c->request.V);
	return err_usage("Name a file of tokens, and their --tokens-type.", "%s: token %zu is %d, out of range 0 to %d",
			 f->name, at, token, MOST_VOCABULARY - 1);
}

/* Are all within the vocabulary? One not given grows to hold them. */
static struct err count_vocabulary(const struct file *f, const struct corpus_part *p, struct corpus *c)
{
	int most = c->request.V ? c->request.V : MOST_VOCABULARY;
	if (p->tokens > MOST_TOKENS)
		return err_usage("Cut it into files of which each is smaller.",
				 "%s: it has %zu tokens, more than the %zu a task takes", f->name, p->tokens,
				 MOST_TOKENS);
	for (size_t i = 0; i < p->tokens && p->type != CORPUS_BYTES; i++) {
		int32_t token = corpus_token(p, i);
		if (token < 0 || token >= most)
			return token_wrong(c, f, p, i);
		c->V = token >= c->V ? token + 1 : c->V;
	}
	return OK;
}

static struct corpus_part part_of(const struct corpus_part *p, size_t first, size_t last)
{
	return (struct corpus_part){ p->data + first * size_of(p->type), last - first, p->type };
}

/* Is every token of it trained on? */
static bool stands_in(const struct corpus_part *part, const struct corpus_part *whole)
{
	return part->type == whole->type && part->tokens && memmem(whole->data, whole->tokens * size_of(whole->type),
								   part->data, part->tokens * size_of(part->type));
}

static struct err find_held(const struct corpus_part *file, struct corpus_part *held, struct corpus *c)
{
	const struct corpus_request *q = &c->request;
	const struct file *f = find_file(q->held_file);
	TRY(find_tokens(q, q->held_file, held));
	TRY(count_vocabulary(f, held, c));
	if (!stands_in(held, file))
		return OK;
	char hint[200];
	snprintf(hint, sizeof hint, "Name a file that is not trained on, or leave --%s-held-file out: then the end of "
		 "the file is held out.", q->task);
	return err_usage(hint, "%s: it cannot be held out: all of it stands in %s, which is trained on", f->name,
			 find_file(q->file)->name);
}

static struct err find_parts(struct corpus *c)
{
	const struct corpus_request *q = &c->request;
	struct corpus_part file, held;
	TRY(find_tokens(q, q->file, &file));
	TRY(count_vocabulary(find_file(q->file), &file, c));
	size_t left = (size_t)(q->held * (double)file.tokens);
	size_t trained = *q->held_file ? file.tokens : file.tokens - left;
	held = part_of(&file, trained, file.tokens);
	if (*q->held_file)
		TRY(find_held(&file, &held, c));
	c->part[USE_TRAIN] = part_of(&file, 0, trained);
	c->part[USE_TUNE] = part_of(&held, 0, held.tokens / 2);
	c->part[USE_REPORT] = part_of(&held, held.tokens / 2, held.tokens);
	return OK;
}

static bool same_request(const struct corpus_request *a, const struct corpus_request *b)
{
	return !strcmp(a->file, b->file) && !strcmp(a->held_file, b->held_file) && a->held == b->held &&
	       a->type == b->type && a->V == b->V && !strcmp(a->task, b->task);
}

const struct corpus *corpus_open(const struct corpus_request *request)
{
	static struct opened {
		struct opened *next;
		struct corpus corpus;
	} *all;
	for (struct opened *o = all; o; o = o->next)
		if (same_request(&o->corpus.request, request))
			return &o->corpus;
	struct opened *o = calloc(1, sizeof *o);
	BUG_IF(!o, "out of memory for a corpus");
	struct corpus *c = &o->corpus;
	*c = (struct corpus){ .request = *request, .V = request->V ? request->V : 1 };
	c->error = *request->file ? find_parts(c)
				  : err_usage("Name it.", "%s: no file is named: --%s-file=PATH is missing",
					      request->task, request->task);
	if (!c->error.code && request->predicts)
		c->error = counts_make(&c->part[USE_TRAIN], c->V, &c->counts);
	o->next = all;
	all = o;
	return c;
}

struct err corpus_check(const struct corpus *c, int length)
{
	static const char *const name[USES] = {
		[USE_TRAIN] = "the part that is trained on",
		[USE_TUNE] = "the held-out half of stream tune",
		[USE_REPORT] = "the held-out half of stream report",
	};
	const char *task = c->request.task;
	char hint[200];
	snprintf(hint, sizeof hint, "Give a shorter length, a longer file, or more of it to that part (--%s-held, "
		 "--%s-held-file).", task, task);
	if (c->error.code)
		return c->error;
	if (length < 1)
		return err_usage("Give a greater length.", "%s: length %d is too short: it is at least 1", task,
				 length);
	for (int use = 0; use < USES; use++)
		if (c->part[use].tokens < (size_t)length + 1)
			return err_usage(hint, "%s: length %d is too long: with the target after it, it takes %zu "
					 "tokens, and %s has %zu", task, length, (size_t)length + 1, name[use],
					 c->part[use].tokens);
	return OK;
}

/* The share `fraction` / 2^64 of it, rounded down. */
static size_t share(uint64_t fraction, size_t of)
{
	return (size_t)((unsigned __int128)fraction * of >> 64);
}

size_t corpus_window(const struct corpus *c, uint64_t seed, enum stream stream, uint64_t index, int length)
{
	const struct corpus_part *p = &c->part[corpus_use(stream)];
	size_t T = (size_t)length;
	BUG_IF(p->tokens < T + 1, "length %d was not checked", length);
	if (stream != STREAM_TUNE && stream != STREAM_REPORT) {
		struct rng r = rng_at(seed, stream, index);
		return rng_below(&r, (uint32_t)(p->tokens - T));
	}
	struct rng r = rng_at(seed, stream, 0);
	uint64_t first = (uint64_t)rng_word(&r) << 32, golden = 0x9e3779b97f4a7c15;
	size_t least = p->tokens / 8 > T ? p->tokens / 8 : T;
	return least + share((first | rng_word(&r)) + index * golden, p->tokens - least) - T;
}

double corpus_follow(const struct corpus *c, const int32_t *before, int order, int32_t token)
{
	BUG_IF(!c->counts, "%s: nothing was counted", c->request.task);
	return counts_follow(c->counts, before, order, token);
}

double corpus_floor(const struct method *task, int length, int group)
{
	(void)task, (void)length, (void)group;
	return NAN;
}
