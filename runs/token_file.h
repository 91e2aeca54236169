#ifndef ROPEWALK_TOKEN_FILE_H
#define ROPEWALK_TOKEN_FILE_H

#include "model/base/arena.h"
#include "model/base/safetensors.h"

/* A safetensors file of given sequences: tokens (B,T), or (T) for B = 1; targets and loss_mask or scored of that shape;
 * positions (T). Before each name stands `prefix`. */
struct token_file {
	struct safetensors file;
	const char *path, *prefix;
	int B, T;
	int32_t *token, *target; /* [B][T], set by token_file_check; target -1 where not scored */
	double *positions;       /* [T] */
	struct arena memory;
};

/* Reads the file, the shape of the tokens and the positions; 0, 1, 2 ... where it has none. token_file_free also after
 * an error; it takes a zeroed struct too. */
struct err token_file_read(const char *path, const char *prefix, struct token_file *out);

/* Then the tokens and targets, held to a vocabulary of V. With a mask, targets that it leaves out are not looked at. */
struct err token_file_check(struct token_file *in, int V);

void token_file_free(struct token_file *in);

#endif
