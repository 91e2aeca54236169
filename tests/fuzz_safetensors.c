#include "tests/hostile.h"

#include "model/base/safetensors.h"
#include "model/weights.h"

#include <stdlib.h>
#include <string.h>

/* Any safetensors file; one that says that it is a model of ours must be one. */

/* Options ask for no more than this: what a machine has too little memory for depends on the machine. */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct metadata *)a)->key, ((const struct metadata *)b)->key);
}

static void same_tensor(const struct tensor *a, const struct tensor *b)
{
	size_t bytes = (size_t)tensor_items(a) * dtype_size(a->dtype);
	BUG_IF(strcmp(a->name, b->name), "tensor '%s' became '%s'", a->name, b->name);
	BUG_IF(a->dtype != b->dtype || a->rank != b->rank || memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape),
	       "tensor '%s' has another shape", a->name);
	BUG_IF(bytes && memcmp(a->data, b->data, bytes), "tensor '%s' has other data", a->name);
}

static void same_contents(struct safetensors *a, struct safetensors *b)
{
	BUG_IF(a->count != b->count || a->metadata_count != b->metadata_count, "%d tensors became %d", a->count, b->count);
	qsort(a->tensor, (size_t)a->count, sizeof *a->tensor, by_name);
	qsort(b->tensor, (size_t)b->count, sizeof *b->tensor, by_name);
	for (int i = 0; i < a->count; i++)
		same_tensor(&a->tensor[i], &b->tensor[i]);
	if (!a->metadata_count)
		return;
	qsort(a->metadata, (size_t)a->metadata_count, sizeof *a->metadata, by_key);
	qsort(b->metadata, (size_t)b->metadata_count, sizeof *b->metadata, by_key);
	for (int i = 0; i < a->metadata_count; i++)
		BUG_IF(strcmp(a->metadata[i].key, b->metadata[i].key) || strcmp(a->metadata[i].value, b->metadata[i].value),
		       "metadata '%s' became '%s'", a->metadata[i].key, b->metadata[i].key);
}

static void survive(struct safetensors *first, const char *again)
{
	struct safetensors second;
	struct err e = safetensors_write(again, first->tensor, first->count, first->metadata, first->metadata_count);
	if (!e.code)
		e = safetensors_read(again, &second);
	BUG_IF(e.code, "what was written is refused: %s", e.text);
	same_contents(first, &second);
	safetensors_free(&second);
}

static struct err read_model(const char *path, const struct safetensors *file, const char *again)
{
	struct model first, second;
	TRY(refusal(weights_open(file, path, &first), path));
	struct err e = weights_write(&first, again, NULL, 0);
	if (!e.code)
		e = weights_read(again, &second);
	BUG_IF(e.code, "what was written is refused: %s", e.text);
	BUG_IF(first.layout.size != second.layout.size ||
		       memcmp(first.value, second.value, first.layout.size * sizeof *first.value),
	       "other weights were read");
	model_close(&first);
	model_close(&second);
	return OK;
}

static struct err read(const char *path, const char *again)
{
	struct safetensors file;
	struct err e = refusal(safetensors_read(path, &file), path);
	if (!e.code && weights_ours(&file))
		e = read_model(path, &file, again);
	if (!e.code)
		survive(&file, again);
	safetensors_free(&file);
	return e;
}

const struct target target_safetensors = { "safetensors", "model.safetensors", read };
FUZZED(target_safetensors)
