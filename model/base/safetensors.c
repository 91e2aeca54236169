#include "safetensors.h"

#include "arena.h"
#include "io.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file's byte order is the machine's");

#define HEADER_MOST 100000000u
#define LENGTH_BYTES 8
#define METADATA_KEY "__metadata__"
#define DAMAGED "The file is damaged or is no safetensors file: make or copy it again."

static const struct {
	const char *name;
	size_t size;
} dtypes[DTYPE_COUNT] = {
	[DTYPE_F64] = { "F64", 8 }, [DTYPE_I64] = { "I64", 8 }, [DTYPE_F32] = { "F32", 4 },
	[DTYPE_I32] = { "I32", 4 }, [DTYPE_U8] = { "U8", 1 },	[DTYPE_BOOL] = { "BOOL", 1 },
};

const char *dtype_name(enum dtype d)
{
	BUG_IF((unsigned)d >= DTYPE_COUNT, "there is no dtype %d", (int)d);
	return dtypes[d].name;
}

size_t dtype_size(enum dtype d)
{
	BUG_IF((unsigned)d >= DTYPE_COUNT, "there is no dtype %d", (int)d);
	return dtypes[d].size;
}

int64_t tensor_items(const struct tensor *t)
{
	int64_t items = 1;
	for (int i = 0; i < t->rank; i++)
		items *= t->shape[i];
	return items;
}

/* Bytes of data; false if they cannot be counted. */
static bool tensor_bytes(const struct tensor *t, int64_t *bytes)
{
	*bytes = (int64_t)dtype_size(t->dtype);
	for (int i = 0; i < t->rank; i++)
		if (t->shape[i] < 0 || __builtin_mul_overflow(*bytes, t->shape[i], bytes))
			return false;
	return true;
}

/* A tensor while it is read: where its data are said to be, in bytes from the start of the data. */
struct extent {
	struct tensor tensor;
	int64_t begin, end;
};

static struct err bad_tensor(const char *name, const char *why)
{
	return err_usage(DAMAGED, "tensor '%.100s': %s", name, why);
}

static struct err read_dtype(const char *name, const json_t *value, enum dtype *out)
{
	const char *text = json_string_value(value);
	if (!text)
		return bad_tensor(name, "its dtype is not a text");
	for (int d = 0; d < DTYPE_COUNT; d++)
		if (!strcmp(text, dtypes[d].name)) {
			*out = (enum dtype)d;
			return OK;
		}
	return err_usage("Convert the file to one of F64, F32, I64, I32, U8, BOOL.",
			 "tensor '%.100s': dtype %.40s is not supported", name, text);
}

static struct err read_shape(const char *name, const json_t *value, struct tensor *t)
{
	if (!json_is_array(value))
		return bad_tensor(name, "its shape is not a list");
	size_t rank = json_array_size(value);
	if (rank > TENSOR_RANK)
		return err_usage(NULL, "tensor '%.100s': %zu dimensions, at most %d are supported", name, rank,
				 TENSOR_RANK);
	t->rank = (int)rank;
	for (int i = 0; i < t->rank; i++) {
		const json_t *item = json_array_get(value, (size_t)i);
		if (!json_is_integer(item) || json_integer_value(item) < 0)
			return bad_tensor(name, "its shape holds something else than whole numbers from 0");
		t->shape[i] = json_integer_value(item);
	}
	return OK;
}

static struct err read_offsets(const char *name, const json_t *value, struct extent *x)
{
	const json_t *begin = json_array_get(value, 0), *end = json_array_get(value, 1);
	if (json_array_size(value) != 2 || !json_is_integer(begin) || !json_is_integer(end))
		return bad_tensor(name, "its data_offsets are not two whole numbers");
	x->begin = json_integer_value(begin);
	x->end = json_integer_value(end);
	if (x->begin < 0 || x->end < x->begin)
		return bad_tensor(name, "its data_offsets are not in order");
	return OK;
}

static struct err read_entry(const char *name, const json_t *entry, int64_t data_size, struct extent *x)
{
	int64_t bytes;
	const json_t *dtype = json_object_get(entry, "dtype"), *shape = json_object_get(entry, "shape");
	const json_t *offsets = json_object_get(entry, "data_offsets");
	if (json_object_size(entry) != 3 || !dtype || !shape || !offsets)
		return bad_tensor(name, "its entry is not made of dtype, shape and data_offsets");
	x->tensor.name = name;
	TRY(read_dtype(name, dtype, &x->tensor.dtype));
	TRY(read_shape(name, shape, &x->tensor));
	TRY(read_offsets(name, offsets, x));
	if (!tensor_bytes(&x->tensor, &bytes))
		return bad_tensor(name, "its shape is too large");
	if (x->end - x->begin != bytes)
		return err_usage(DAMAGED,
				 "tensor '%.100s': its shape takes %" PRId64 " bytes, its data_offsets %" PRId64, name,
				 bytes, x->end - x->begin);
	if (x->end > data_size)
		return err_usage(DAMAGED, "tensor '%.100s': its data end at byte %" PRId64 " of %" PRId64, name, x->end,
				 data_size);
	return OK;
}

static struct err read_metadata(json_t *object, struct safetensors *s)
{
	const char *key;
	json_t *value;
	if (!json_is_object(object))
		return err_usage(DAMAGED, METADATA_KEY " is not an object");
	s->metadata = calloc(json_object_size(object) + 1, sizeof *s->metadata);
	if (!s->metadata)
		return err_failed(NULL, "no memory for the header");
	json_object_foreach(object, key, value) {
		if (!json_is_string(value))
			return err_usage(DAMAGED, METADATA_KEY ": '%.100s' is not a text", key);
		s->metadata[s->metadata_count++] = (struct metadata){ key, json_string_value(value) };
	}
	return OK;
}

static int compare_extents(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return strcmp(x->tensor.name, y->tensor.name);
}

/* The tensors, sorted by place, must follow each other from the first byte to the last. */
static struct err check_cover(const struct extent *x, int count, int64_t data_size)
{
	int64_t reached = 0;
	for (int i = 0; i < count; i++) {
		if (x[i].begin != reached)
			return bad_tensor(x[i].tensor.name, x[i].begin < reached ? "its data overlap those before it" :
										   "there is a gap before its data");
		reached = x[i].end;
	}
	if (reached != data_size)
		return err_usage(DAMAGED, "%" PRId64 " bytes at the end belong to no tensor", data_size - reached);
	return OK;
}

static size_t aligned(size_t offset)
{
	return (offset + 7) & ~(size_t)7;
}

/* Points the tensors at their data. Where one would be misaligned for its dtype, all move to memory of their own. */
static struct err place(struct safetensors *s, const struct extent *x, const char *data)
{
	size_t room = 0;
	bool moves = false;
	for (int i = 0; i < s->count; i++) {
		s->tensor[i] = x[i].tensor;
		s->tensor[i].data = data + x[i].begin;
		moves |= (uintptr_t)s->tensor[i].data % dtype_size(x[i].tensor.dtype) != 0;
		room += aligned((size_t)(x[i].end - x[i].begin));
	}
	if (!moves)
		return OK;
	char *moved = malloc(room + 1), *to = moved;
	if (!moved)
		return err_failed(NULL, "no memory for %zu bytes of tensors", room);
	for (int i = 0; i < s->count; i++) {
		size_t bytes = (size_t)(x[i].end - x[i].begin);
		s->tensor[i].data = memcpy(to, data + x[i].begin, bytes);
		to += aligned(bytes);
	}
	free(s->file);
	s->file = moved;
	return OK;
}

static struct err read_extents(struct extent *x, const char *data, int64_t data_size, struct safetensors *s)
{
	const char *name;
	json_t *entry;
	json_object_foreach((json_t *)s->header, name, entry) {
		if (!strcmp(name, METADATA_KEY))
			TRY(read_metadata(entry, s));
		else
			TRY(read_entry(name, entry, data_size, &x[s->count++]));
	}
	if (s->count)
		qsort(x, (size_t)s->count, sizeof *x, compare_extents);
	TRY(check_cover(x, s->count, data_size));
	return place(s, x, data);
}

static struct err read_tensors(const char *data, int64_t data_size, struct safetensors *s)
{
	size_t entries = json_object_size(s->header);
	struct extent *x = calloc(entries + 1, sizeof *x);
	s->tensor = calloc(entries + 1, sizeof *s->tensor);
	struct err e = x && s->tensor ? read_extents(x, data, data_size, s) :
					err_failed(NULL, "no memory for the header");
	free(x);
	return e;
}

/* Bytes of memory that one of JSON may take, as in "[{},{},...". */
#define JSON_MEMORY 100

static struct err read_header(const char *text, size_t length, struct safetensors *s)
{
	json_error_t error;
	while (length && text[length - 1] == ' ')
		length--;
	if (!length || text[0] != '{' || text[length - 1] != '}')
		return err_usage(DAMAGED, "the header is not a JSON object");
	if (length > memory_available() / JSON_MEMORY)
		return err_failed(NULL, "no memory for a header of %zu bytes", length);
	s->header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
	if (!s->header)
		return err_usage(DAMAGED, "the header is not JSON: %s (byte %d)", error.text, error.position);
	return OK;
}

static struct err read_file(const char *path, struct safetensors *s)
{
	size_t size;
	uint64_t length;
	TRY(io_read(path, &s->file, &size));
	if (size < LENGTH_BYTES)
		return err_usage(DAMAGED, "%.400s: it has %zu bytes, too few for a header", path, size);
	memcpy(&length, s->file, sizeof length);
	if (length > size - LENGTH_BYTES || length > HEADER_MOST)
		return err_usage(DAMAGED, "%.400s: its header is said to have %" PRIu64 " bytes, of %zu in the file",
				 path, length, size);
	struct err e = read_header(s->file + LENGTH_BYTES, length, s);
	if (e.code)
		return err_at(e, "%.300s", path);
	const char *data = s->file + LENGTH_BYTES + length;
	return err_at(read_tensors(data, (int64_t)(size - LENGTH_BYTES - length), s), "%.300s", path);
}

struct err safetensors_read(const char *path, struct safetensors *out)
{
	*out = (struct safetensors){ 0 };
	struct err e = read_file(path, out);
	if (e.code)
		safetensors_free(out);
	return e;
}

void safetensors_free(struct safetensors *s)
{
	free(s->file);
	free(s->tensor);
	free(s->metadata);
	json_decref(s->header);
	*s = (struct safetensors){ 0 };
}

const struct tensor *safetensors_find(const struct safetensors *s, const char *name)
{
	for (int i = 0; i < s->count; i++)
		if (!strcmp(s->tensor[i].name, name))
			return &s->tensor[i];
	return NULL;
}

const char *safetensors_metadata(const struct safetensors *s, const char *key)
{
	for (int i = 0; i < s->metadata_count; i++)
		if (!strcmp(s->metadata[i].key, key))
			return s->metadata[i].value;
	return NULL;
}

static int compare_tensors(const void *a, const void *b)
{
	const struct tensor *x = *(const void *const *)a, *y = *(const void *const *)b;
	size_t p = dtype_size(x->dtype), q = dtype_size(y->dtype);
	return p != q ? (p > q ? -1 : 1) : strcmp(x->name, y->name);
}

static int compare_keys(const void *a, const void *b)
{
	const struct metadata *x = *(const void *const *)a, *y = *(const void *const *)b;
	return strcmp(x->key, y->key);
}

/* Pointers to the items of an array, sorted; NULL without memory. */
static const void **sorted(const void *array, int count, size_t item, int (*compare)(const void *a, const void *b))
{
	const void **list = calloc((size_t)count + 1, sizeof *list);
	if (!list)
		return NULL;
	for (int i = 0; i < count; i++)
		list[i] = (const char *)array + (size_t)i * item;
	qsort(list, (size_t)count, sizeof *list, compare);
	return list;
}

/* Adds a value whose key must be new; what JSON cannot hold is the user's text, as in a path. */
static struct err add(json_t *object, const char *key, json_t *value)
{
	BUG_IF(json_object_get(object, key), "'%s' is written twice", key);
	if (!value || json_object_set_new(object, key, value))
		return err_usage("Use names and paths in UTF-8.", "'%.100s': its name or value is not UTF-8 text", key);
	return OK;
}

static struct err add_metadata(json_t *header, const void **list, int count)
{
	json_t *object = json_object();
	struct err e = add(header, METADATA_KEY, object);
	for (int i = 0; i < count && !e.code; i++) {
		const struct metadata *m = list[i];
		e = add(object, m->key, json_string(m->value));
	}
	return e;
}

/* The tensors one after the other; `size` grows by their bytes. */
static struct err add_tensors(json_t *header, const void **list, int count, int64_t *size)
{
	for (int i = 0; i < count; i++) {
		const struct tensor *t = list[i];
		int64_t bytes, begin = *size;
		BUG_IF(!strcmp(t->name, METADATA_KEY), "a tensor cannot be called %s", t->name);
		BUG_IF(t->rank < 0 || t->rank > TENSOR_RANK, "tensor '%s' has %d dimensions", t->name, t->rank);
		BUG_IF(!tensor_bytes(t, &bytes) || __builtin_add_overflow(begin, bytes, size),
		       "tensor '%s' is too large to be written", t->name);
		json_t *shape = json_array();
		for (int k = 0; k < t->rank; k++)
			json_array_append_new(shape, json_integer(t->shape[k]));
		json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_name(t->dtype), "shape", shape,
					  "data_offsets", (json_int_t)begin, (json_int_t)*size);
		TRY(add(header, t->name, entry));
	}
	return OK;
}

/* The header with its length before it, in fresh memory. */
static struct err frame(const char *header, struct io_part *out)
{
	size_t text = strlen(header);
	uint64_t length = aligned(text);
	BUG_IF(length > HEADER_MOST, "a header of %" PRIu64 " bytes", length);
	char *to = malloc(LENGTH_BYTES + length);
	if (!to)
		return err_failed(NULL, "no memory for the header");
	memcpy(to, &length, LENGTH_BYTES);
	memcpy(to + LENGTH_BYTES, header, text);
	memset(to + LENGTH_BYTES + text, ' ', length - text);
	*out = (struct io_part){ to, LENGTH_BYTES + length };
	return OK;
}

/* The header, then the tensors where they stand. */
static struct err write_parts(const char *path, const char *header, const void **list, int count)
{
	struct io_part *part = calloc((size_t)count + 1, sizeof *part);
	struct err e = part ? frame(header, &part[0]) : err_failed(NULL, "no memory for the header");
	for (int i = 0; i < count && !e.code; i++) {
		const struct tensor *t = list[i];
		part[i + 1] = (struct io_part){ t->data, (size_t)tensor_items(t) * dtype_size(t->dtype) };
	}
	e = e.code ? err_at(e, "%.300s", path) : io_write_parts(path, part, count + 1);
	free(part ? (void *)(uintptr_t)part[0].data : NULL);
	free(part);
	return e;
}

static struct err write_sorted(const char *path, const void **tensor, int count, const void **metadata,
			       int metadata_count, json_t *header)
{
	int64_t data_size = 0;
	if (metadata_count)
		TRY(err_at(add_metadata(header, metadata, metadata_count), "%.300s", path));
	TRY(err_at(add_tensors(header, tensor, count, &data_size), "%.300s", path));
	char *text = json_dumps(header, JSON_COMPACT);
	if (!text)
		return err_failed(NULL, "%.400s: no memory for the header", path);
	struct err e = write_parts(path, text, tensor, count);
	free(text);
	return e;
}

struct err safetensors_write(const char *path, const struct tensor *tensor, int count, const struct metadata *metadata,
			     int metadata_count)
{
	const void **tensors = sorted(tensor, count, sizeof *tensor, compare_tensors);
	const void **keys = sorted(metadata, metadata_count, sizeof *metadata, compare_keys);
	json_t *header = json_object();
	struct err e;
	if (tensors && keys && header)
		e = write_sorted(path, tensors, count, keys, metadata_count, header);
	else
		e = err_failed(NULL, "%.400s: no memory for the header", path);
	free(tensors);
	free(keys);
	json_decref(header);
	return e;
}

static struct err wrong_dtype(const struct tensor *t, const char *wanted)
{
	return err_usage(NULL, "tensor '%.100s' is %s, not %s", t->name, dtype_name(t->dtype), wanted);
}

double tensor_item(const struct tensor *t, int64_t i)
{
	switch (t->dtype) {
	case DTYPE_F64:
		return ((const double *)t->data)[i];
	case DTYPE_F32:
		return ((const float *)t->data)[i];
	case DTYPE_I64:
		return (double)((const int64_t *)t->data)[i];
	case DTYPE_I32:
		return ((const int32_t *)t->data)[i];
	default:
		return ((const uint8_t *)t->data)[i];
	}
}

static bool is_floating(const struct tensor *t)
{
	return t->dtype == DTYPE_F64 || t->dtype == DTYPE_F32;
}

struct err tensor_to_double(const struct tensor *t, double *out)
{
	if (!is_floating(t))
		return wrong_dtype(t, "F32 or F64");
	for (int64_t i = 0; i < tensor_items(t); i++)
		out[i] = tensor_item(t, i);
	return OK;
}

struct err tensor_to_real(const struct tensor *t, real *out)
{
	if (!is_floating(t))
		return wrong_dtype(t, "F32 or F64");
	for (int64_t i = 0; i < tensor_items(t); i++)
		out[i] = (real)tensor_item(t, i);
	return OK;
}

struct err tensor_to_int32(const struct tensor *t, int32_t *out)
{
	int64_t items = tensor_items(t);
	if (t->dtype != DTYPE_I32 && t->dtype != DTYPE_I64)
		return wrong_dtype(t, "I32 or I64");
	for (int64_t i = 0; i < items; i++) {
		int64_t value = t->dtype == DTYPE_I32 ? ((const int32_t *)t->data)[i] : ((const int64_t *)t->data)[i];
		if (value < INT32_MIN || value > INT32_MAX)
			return err_usage(NULL, "tensor '%.100s': item %" PRId64 " is %" PRId64 ", beyond 32 bits",
					 t->name, i, value);
		out[i] = (int32_t)value;
	}
	return OK;
}
