#include "runs/token_file.h"

#include "runs/model_input.h"

#include <inttypes.h>
#include <stdio.h>

static const struct tensor *find_input(const struct token_file *in, const char *name)
{
	char full[256];
	snprintf(full, sizeof full, "%s%s", in->prefix, name);
	return safetensors_find(&in->file, full);
}

static struct err missing(const struct token_file *in, const char *name)
{
	return err_usage("--prefix names what stands before the names.", "%s: tensor %s%s is missing", in->path,
			 in->prefix, name);
}

/* (B,T), or (T) for B = 1. */
static bool sequences_of(const struct tensor *t, int64_t *B, int64_t *T)
{
	*B = t->rank == 2 ? t->shape[0] : 1;
	*T = t->rank ? t->shape[t->rank - 1] : 0;
	return t->rank == 1 || t->rank == 2;
}

static struct err read_shape(struct token_file *in)
{
	const struct tensor *t = find_input(in, "tokens");
	int64_t B, T;
	if (!t)
		return missing(in, "tokens");
	if (!sequences_of(t, &B, &T) || B < 1 || T < 1 || B > 1048576 || T > 16777216)
		return err_usage("tokens has the shape (B,T), B up to 1048576 and T up to 16777216.",
				 "%s: %s has another shape", in->path, t->name);
	in->B = (int)B;
	in->T = (int)T;
	return OK;
}

static void place(struct arena *a, struct token_file *in)
{
	size_t items = (size_t)in->B * (size_t)in->T;
	in->token = ARENA_TAKE(a, int32_t, items);
	in->target = ARENA_TAKE(a, int32_t, items);
	in->positions = ARENA_TAKE(a, double, (size_t)in->T);
}

static struct err check_shape(const struct token_file *in, const struct tensor *t)
{
	int64_t B, T;
	if (sequences_of(t, &B, &T) && B == in->B && T == in->T)
		return OK;
	return err_usage("It needs the shape of the tokens.",
			 "%s: %s has %d dimensions and %" PRId64 " items where tokens has %d x %d", in->path, t->name,
			 t->rank, tensor_items(t), in->B, in->T);
}

static struct err bad_id(const struct token_file *in, const char *name, int64_t index, int32_t id, int V)
{
	char hint[80];
	snprintf(hint, sizeof hint, "The vocabulary has V = %d: ids 0 to %d.", V, V - 1);
	return err_usage(hint, "%s: %s%s[%" PRId64 "][%" PRId64 "] is %d", in->path, in->prefix, name, index / in->T,
			 index % in->T, id);
}

/* Sets the targets that the mask leaves out to -1; what stood there is not looked at. */
static struct err apply_mask(struct token_file *in, const struct tensor *mask, int V)
{
	TRY(check_shape(in, mask));
	for (int64_t i = 0; i < (int64_t)in->B * in->T; i++) {
		double value = tensor_item(mask, i);
		if (value != 0 && value != 1)
			return err_usage("A mask has the values 0 and 1.", "%s: %s[%" PRId64 "][%" PRId64 "] is %g",
					 in->path, mask->name, i / in->T, i % in->T, value);
		if (value == 0)
			in->target[i] = -1;
		else if (in->target[i] < 0 || in->target[i] >= V)
			return bad_id(in, "targets", i, in->target[i], V);
	}
	return OK;
}

static struct err read_targets(struct token_file *in, int V)
{
	const struct tensor *t = find_input(in, "targets"), *scored = find_input(in, "scored"),
			    *mask = find_input(in, "loss_mask");
	if (!t)
		return missing(in, "targets");
	TRY(check_shape(in, t));
	TRY(err_at(tensor_to_int32(t, in->target), "%s", in->path));
	if (scored && mask)
		return err_usage("Give one of them.", "%s: both scored and loss_mask", in->path);
	if (scored || mask)
		return apply_mask(in, scored ? scored : mask, V);
	for (int64_t i = 0; i < (int64_t)in->B * in->T; i++)
		if (in->target[i] < -1 || in->target[i] >= V)
			return bad_id(in, "targets", i, in->target[i], V);
	return OK;
}

static struct err read_tokens(struct token_file *in, int V)
{
	const struct tensor *t = find_input(in, "tokens");
	TRY(err_at(tensor_to_int32(t, in->token), "%s", in->path));
	for (int64_t i = 0; i < (int64_t)in->B * in->T; i++)
		if (in->token[i] < 0 || in->token[i] >= V)
			return bad_id(in, "tokens", i, in->token[i], V);
	return OK;
}

struct err token_file_read(const char *path, const char *prefix, struct token_file *in)
{
	*in = (struct token_file){ .path = path, .prefix = prefix };
	TRY(safetensors_read(path, &in->file));
	TRY(read_shape(in));
	struct arena measure = { 0 };
	place(&measure, in);
	TRY(arena_reserve(&in->memory, measure.used, "tokens and targets"));
	place(&in->memory, in);
	return input_positions(path, find_input(in, "positions"), in->T, in->positions);
}

struct err token_file_check(struct token_file *in, int V)
{
	TRY(read_tokens(in, V));
	return read_targets(in, V);
}

void token_file_free(struct token_file *in)
{
	safetensors_free(&in->file);
	arena_free(&in->memory);
}
