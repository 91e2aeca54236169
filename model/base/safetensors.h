#ifndef ROPEWALK_SAFETENSORS_H
#define ROPEWALK_SAFETENSORS_H

#include "err.h"
#include "real.h"

#include <stddef.h>
#include <stdint.h>

/* The safetensors format: 8-byte little-endian header length, JSON header, raw little-endian row-major data. Reading
 * is strict (whole file accounted for, no gaps or overlaps, known types, sizes that multiply out, names unique);
 * writing is canonical (header padded with spaces to a multiple of 8, tensors by descending size of dtype, then name),
 * so that equal contents are equal bytes. */

enum dtype { DTYPE_F64, DTYPE_I64, DTYPE_F32, DTYPE_I32, DTYPE_U8, DTYPE_BOOL, DTYPE_COUNT };
#define TENSOR_RANK 6

struct tensor {
	const char *name;
	enum dtype dtype;
	int rank;
	int64_t shape[TENSOR_RANK];
	const void *data; /* in the file's memory when read; the caller's when written */
};

struct metadata {
	const char *key, *value;
};

struct safetensors {
	char *file; /* owns everything below */
	struct tensor *tensor; /* in the order of the data */
	int count;
	struct metadata *metadata; /* in the order of the file */
	int metadata_count;
	void *header; /* private */
};

const char *dtype_name(enum dtype d);
size_t dtype_size(enum dtype d);
int64_t tensor_items(const struct tensor *t); /* product of the shape; 1 for a scalar */

/* Reads and checks a whole file. On error nothing is held. safetensors_free also takes a zeroed struct. */
struct err safetensors_read(const char *path, struct safetensors *out);
void safetensors_free(struct safetensors *s);
const struct tensor *safetensors_find(const struct safetensors *s, const char *name);   /* NULL if absent */
const char *safetensors_metadata(const struct safetensors *s, const char *key);         /* NULL if absent */

/* Writes atomically (io_write). The order of `tensor` does not matter; metadata keys are sorted. */
struct err safetensors_write(const char *path, const struct tensor *tensor, int count, const struct metadata *metadata,
			     int metadata_count);

/* Item i of a tensor of any of the types above. */
double tensor_item(const struct tensor *t, int64_t i);

/* Converts every item; the tensor must be F32 or F64 (to_real), I32 or I64 within range (to_int32), else an error that
 * names it. */
struct err tensor_to_real(const struct tensor *t, real *out);
struct err tensor_to_double(const struct tensor *t, double *out);
struct err tensor_to_int32(const struct tensor *t, int32_t *out);

#endif
