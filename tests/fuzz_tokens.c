#include "tests/hostile.h"

#include "runs/token_file.h"

#include <string.h>

/* The sequences that `forward` is given, for a vocabulary of this size. */
#define V 23

static struct err read_tokens(const char *path, struct token_file *t)
{
	TRY(refusal(token_file_read(path, "", t), path));
	return refusal(token_file_check(t, V), path);
}

static struct err write(const char *path, const struct token_file *t)
{
	const struct tensor tensor[] = {
		{ "tokens", DTYPE_I32, 2, { t->B, t->T }, t->token },
		{ "targets", DTYPE_I32, 2, { t->B, t->T }, t->target },
		{ "positions", DTYPE_F64, 1, { t->T }, t->positions },
	};
	return safetensors_write(path, tensor, 3, NULL, 0);
}

static void same(const struct token_file *a, const struct token_file *b)
{
	size_t items = (size_t)a->B * (size_t)a->T;
	BUG_IF(a->B != b->B || a->T != b->T, "%d x %d became %d x %d", a->B, a->T, b->B, b->T);
	BUG_IF(memcmp(a->token, b->token, items * sizeof *a->token), "other tokens were read");
	BUG_IF(memcmp(a->target, b->target, items * sizeof *a->target), "other targets were read");
	BUG_IF(memcmp(a->positions, b->positions, (size_t)a->T * sizeof *a->positions), "other positions were read");
}

static struct err read(const char *path, const char *again)
{
	struct token_file first = { 0 }, second = { 0 };
	struct err e = read_tokens(path, &first);
	if (!e.code) {
		struct err f = write(again, &first);
		if (!f.code)
			f = read_tokens(again, &second);
		BUG_IF(f.code, "what was written is refused: %s", f.text);
		same(&first, &second);
	}
	token_file_free(&first);
	token_file_free(&second);
	return e;
}

const struct target target_tokens = { "tokens", "in.safetensors", read };
FUZZED(target_tokens)
