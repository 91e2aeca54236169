#include "model/base/safetensors.h"

#include "model/base/io.h"
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])
#define GOLDEN "tests/golden/model_weights.safetensors"

static char folder[FOLDER_PATH], path[300], other[300];

static int make_folder(void **state)
{
	(void)state;
	if (folder_make(folder))
		return 1;
	snprintf(path, sizeof path, "%s/a.safetensors", folder);
	snprintf(other, sizeof other, "%s/b.safetensors", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return io_remove(path).code || io_remove(other).code || remove(folder);
}

/* Puts bytes into the file as they are, without the care of io_write. Some file systems flush a file to disk when it is
 * cut and written again, which takes long, but not a new one. */
static void put(const void *data, size_t size)
{
	remove(path);
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

/* A file of a header and `data_size` bytes 0, 1, 2 ...; returns its size. */
static size_t build(char *file, const char *header, size_t data_size)
{
	uint64_t length = strlen(header);
	memcpy(file, &length, 8);
	memcpy(file + 8, header, length);
	for (size_t i = 0; i < data_size; i++)
		file[8 + length + i] = (char)i;
	return 8 + length + data_size;
}

static void put_header(const char *header, size_t data_size)
{
	static char file[1 << 16];
	put(file, build(file, header, data_size));
}

static void assert_bytes(const char *file, const void *expected, size_t expected_size)
{
	char *data;
	size_t size;
	assert_ok(io_read(file, &data, &size));
	assert_int_equal(size, expected_size);
	assert_memory_equal(data, expected, size);
	free(data);
}

static void knows_its_types(void **state)
{
	(void)state;
	static const size_t size[DTYPE_COUNT] = { 8, 8, 4, 4, 1, 1 };
	static const char *const name[DTYPE_COUNT] = { "F64", "I64", "F32", "I32", "U8", "BOOL" };
	for (int d = 0; d < DTYPE_COUNT; d++) {
		assert_int_equal(dtype_size((enum dtype)d), size[d]);
		assert_string_equal(dtype_name((enum dtype)d), name[d]);
	}
	assert_int_equal(dtype_size(REAL_DTYPE), sizeof(real));
	struct tensor t = { .rank = 3, .shape = { 2, 3, 4 } };
	assert_int_equal(tensor_items(&t), 24);
	t.shape[1] = 0;
	assert_int_equal(tensor_items(&t), 0);
	t.rank = 0;
	assert_int_equal(tensor_items(&t), 1);
}

/* A file written by the reference implementation. */
static void reads_the_golden_file(void **state)
{
	(void)state;
	struct safetensors s;
	assert_ok(safetensors_read(GOLDEN, &s));
	assert_int_equal(s.count, 28);
	assert_string_equal(safetensors_metadata(&s, "format"), "pt");
	assert_string_equal(safetensors_metadata(&s, "set"), "shared");
	assert_null(safetensors_metadata(&s, "sets"));
	assert_null(safetensors_find(&s, "model.embed_tokens"));
	const struct tensor *t = safetensors_find(&s, "model.embed_tokens.weight");
	assert_non_null(t);
	assert_int_equal(t->dtype, DTYPE_F32);
	assert_int_equal(t->rank, 2);
	assert_int_equal(t->shape[0], 48);
	assert_int_equal(t->shape[1], 32);
	for (int i = 1; i < s.count; i++)
		assert_true(s.tensor[i].data >= s.tensor[i - 1].data);
	for (int i = 0; i < s.count; i++)
		assert_int_equal((uintptr_t)s.tensor[i].data % dtype_size(s.tensor[i].dtype), 0);
	safetensors_free(&s);
	assert_null(s.file);
	safetensors_free(&s);
}

/* Every tensor, name and key of the golden file survives, and the second copy has the bytes of the first. */
static void copies_are_canonical(void **state)
{
	(void)state;
	struct safetensors s, again;
	assert_ok(safetensors_read(GOLDEN, &s));
	assert_ok(safetensors_write(path, s.tensor, s.count, s.metadata, s.metadata_count));
	assert_ok(safetensors_read(path, &again));
	assert_ok(safetensors_write(other, again.tensor, again.count, again.metadata, again.metadata_count));
	char *first;
	size_t size;
	assert_ok(io_read(path, &first, &size));
	assert_bytes(other, first, size);
	free(first);
	assert_int_equal(again.count, s.count);
	assert_int_equal(again.metadata_count, s.metadata_count);
	for (int i = 0; i < s.count; i++) {
		const struct tensor *a = &s.tensor[i], *b = safetensors_find(&again, a->name);
		assert_non_null(b);
		assert_int_equal(a->dtype, b->dtype);
		assert_int_equal(a->rank, b->rank);
		assert_memory_equal(a->shape, b->shape, sizeof a->shape[0] * (size_t)a->rank);
		assert_memory_equal(a->data, b->data, (size_t)tensor_items(a) * dtype_size(a->dtype));
	}
	safetensors_free(&s);
	safetensors_free(&again);
}

static void writes_these_very_bytes(void **state)
{
	(void)state;
	static const char header[] = "{\"__metadata__\":{\"a\":\"/1\",\"b\":\"\\\"\xc3\xa9\"},"
				     "\"a\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},"
				     "\"z\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[8,16]},"
				     "\"m\":{\"dtype\":\"F32\",\"shape\":[2,0],\"data_offsets\":[16,16]},"
				     "\"n\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[16,20]},"
				     "\"c\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[20,23]}}";
	const int64_t seven = 7;
	const double half = 0.5;
	const int32_t minus = -1;
	const struct metadata metadata[] = { { "b", "\"\xc3\xa9" }, { "a", "/1" } };
	struct tensor tensor[] = {
		{ .name = "c", .dtype = DTYPE_U8, .rank = 1, .shape = { 3 }, .data = "xyz" },
		{ .name = "n", .dtype = DTYPE_I32, .rank = 1, .shape = { 1 }, .data = &minus },
		{ .name = "z", .dtype = DTYPE_F64, .rank = 0, .data = &half },
		{ .name = "m", .dtype = DTYPE_F32, .rank = 2, .shape = { 2, 0 }, .data = NULL },
		{ .name = "a", .dtype = DTYPE_I64, .rank = 1, .shape = { 1 }, .data = &seven },
	};
	char expected[1024];
	size_t padded = (sizeof header - 1 + 7) / 8 * 8, at = 8 + padded;
	memset(expected, ' ', sizeof expected);
	memcpy(expected, &(uint64_t){ padded }, 8);
	memcpy(expected + 8, header, sizeof header - 1);
	memcpy(expected + at, &seven, 8);
	memcpy(expected + at + 8, &half, 8);
	memcpy(expected + at + 16, &minus, 4);
	memcpy(expected + at + 20, "xyz", 3);
	assert_ok(safetensors_write(path, tensor, COUNT(tensor), metadata, COUNT(metadata)));
	assert_bytes(path, expected, at + 23);
	/* The same contents in another order. */
	struct tensor first = tensor[0];
	memmove(tensor, tensor + 1, sizeof tensor - sizeof first);
	tensor[COUNT(tensor) - 1] = first;
	const struct metadata swapped[] = { metadata[1], metadata[0] };
	assert_ok(safetensors_write(other, tensor, COUNT(tensor), swapped, COUNT(swapped)));
	assert_bytes(other, expected, at + 23);
}

static void writes_and_reads_nothing(void **state)
{
	(void)state;
	struct safetensors s;
	assert_ok(safetensors_write(path, NULL, 0, NULL, 0));
	assert_bytes(path, "\x08\0\0\0\0\0\0\0{}      ", 16);
	assert_ok(safetensors_read(path, &s));
	assert_int_equal(s.count, 0);
	assert_int_equal(s.metadata_count, 0);
	safetensors_free(&s);
}

/* Text that JSON cannot hold is refused, and the file that stands there stays. */
static void refuses_text_that_is_not_utf8(void **state)
{
	(void)state;
	struct safetensors s;
	const struct metadata good = { "path", "a" }, bad[] = { { "path", "a\xff" }, { "a\xff", "path" } };
	const struct tensor tensor = { .name = "a\xff", .dtype = DTYPE_U8, .rank = 1, .shape = { 1 }, .data = "x" };
	assert_ok(safetensors_write(path, NULL, 0, &good, 1));
	for (int i = 0; i < 2; i++) {
		struct err e = safetensors_write(path, NULL, 0, &bad[i], 1);
		assert_int_equal(e.code, ERR_USAGE);
		assert_memory_equal(e.text, path, strlen(path));
	}
	assert_int_equal(safetensors_write(path, &tensor, 1, NULL, 0).code, ERR_USAGE);
	assert_ok(safetensors_read(path, &s));
	assert_string_equal(safetensors_metadata(&s, "path"), "a");
	safetensors_free(&s);
}

#define ENTRY(name, dtype, shape, offsets) \
	"\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define A ENTRY("a", "F32", "[2]", "[0,8]")
#define B ENTRY("b", "U8", "[3]", "[8,11]")
#define SMALL "{\"__metadata__\":{\"k\":\"v\"}," A "," B "}"
#define SMALL_DATA 11

/* What the format allows though we would not write it so. */
static void reads_other_orders_and_alignments(void **state)
{
	(void)state;
	static const struct {
		const char *header;
		size_t data;
		int count;
	} good[] = {
		{ SMALL, 11, 2 },
		{ "{" B "," A "}", 11, 2 },
		{ "{" A "," B ",\"__metadata__\":{}}", 11, 2 },
		{ "{" A "}          ", 8, 1 },
		{ "{ \"a\" : { \"data_offsets\" : [0, 8], \"shape\" : [2], \"dtype\" : \"F32\" } } ", 8, 1 },
		{ "{" ENTRY("a", "F32", "[]", "[0,4]") "}", 4, 1 },
		{ "{" ENTRY("a", "F32", "[1,1,1,1,1,1]", "[0,4]") "}", 4, 1 },
		{ "{" ENTRY("a", "F64", "[0,5]", "[0,0]") "}", 0, 1 },
		{ "{" ENTRY("e", "F64", "[0]", "[8,8]") "," A "," ENTRY("f", "I64", "[0]", "[8,8]") "," B "}", 11, 4 },
		{ "{" ENTRY("", "BOOL", "[1]", "[0,1]") "}", 1, 1 },
	};
	for (int i = 0; i < COUNT(good); i++) {
		struct safetensors s;
		put_header(good[i].header, good[i].data);
		assert_ok(safetensors_read(path, &s));
		assert_int_equal(s.count, good[i].count);
		safetensors_free(&s);
	}
}

/* Whatever the header's length and the tensors before it, numbers can be read where they are. */
static void aligns_numbers(void **state)
{
	(void)state;
	for (int pad = 0; pad < 16; pad++) {
		struct safetensors s;
		char header[400];
		snprintf(header, sizeof header, "%s%*s",
			 "{" ENTRY("u", "U8", "[3]", "[0,3]") "," ENTRY("f", "F64", "[2]", "[3,19]") ","
			 ENTRY("i", "I32", "[1]", "[19,23]") "}", pad, "");
		put_header(header, 23);
		assert_ok(safetensors_read(path, &s));
		assert_string_equal(s.tensor[1].name, "f");
		for (int i = 0; i < 3; i++)
			assert_int_equal((uintptr_t)s.tensor[i].data % dtype_size(s.tensor[i].dtype), 0);
		assert_memory_equal(s.tensor[0].data, "\0\1\2", 3);
		assert_memory_equal(s.tensor[1].data, "\3\4\5\6\7\10\11\12\13\14\15\16\17\20\21\22", 16);
		assert_memory_equal(s.tensor[2].data, "\23\24\25\26", 4);
		safetensors_free(&s);
	}
}

static const struct damage {
	const char *header;
	size_t data;
	const char *error;
} damages[] = {
	{ "", 0, "not a JSON object" },
	{ "[]", 0, "not a JSON object" },
	{ " {}", 0, "not a JSON object" },
	{ "{}\n", 0, "not a JSON object" },
	{ "{}{}", 0, "not JSON" },
	{ "{\"a\":{}", 0, "not JSON" },
	{ "{\"a\xff\":{}}", 0, "not JSON" },
	{ "{\"a\\u0000b\":{}}", 0, "not JSON" },
	{ "{" A "," A "}", 8, "not JSON: duplicate object key" },
	{ "{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}," A "}", 8, "not JSON: duplicate object key" },
	{ "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "duplicate" },
	{ "{\"__metadata__\":[]," A "}", 8, "__metadata__ is not an object" },
	{ "{\"__metadata__\":{\"k\":1}," A "}", 8, "__metadata__: 'k' is not a text" },
	{ "{\"a\":[]}", 0, "tensor 'a': its entry is not made of dtype, shape and data_offsets" },
	{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"offsets\":[0,8]}}", 8, "its entry is not made of" },
	{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}", 8, "its entry is not made of" },
	{ "{\"a\":{\"dtype\":32,\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "its dtype is not a text" },
	{ "{" ENTRY("a", "F16", "[2]", "[0,4]") "}", 4, "tensor 'a': dtype F16 is not supported" },
	{ "{" ENTRY("a", "BF16", "[2]", "[0,4]") "}", 4, "tensor 'a': dtype BF16 is not supported" },
	{ "{" ENTRY("a", "F32", "2", "[0,8]") "}", 8, "its shape is not a list" },
	{ "{" ENTRY("a", "F32", "[1,1,1,1,1,1,2]", "[0,8]") "}", 8, "tensor 'a': 7 dimensions, at most 6" },
	{ "{" ENTRY("a", "F32", "[-2]", "[0,8]") "}", 8, "its shape holds something else" },
	{ "{" ENTRY("a", "F32", "[-1,-2]", "[0,8]") "}", 8, "its shape holds something else" },
	{ "{" ENTRY("a", "F32", "[2.0]", "[0,8]") "}", 8, "its shape holds something else" },
	{ "{" ENTRY("a", "F32", "[18446744073709551618]", "[0,8]") "}", 8, "not JSON: too big integer" },
	{ "{" ENTRY("a", "F32", "[4611686018427387906]", "[0,8]") "}", 8, "its shape is too large" },
	{ "{" ENTRY("a", "U8", "[4294967296,4294967296]", "[0,0]") "}", 0, "its shape is too large" },
	{ "{" ENTRY("a", "F32", "[3]", "[0,8]") "}", 8, "its shape takes 12 bytes, its data_offsets 8" },
	{ "{" ENTRY("a", "F32", "[2]", "[0]") "}", 8, "its data_offsets are not two whole numbers" },
	{ "{" ENTRY("a", "F32", "[2]", "[0,4,8]") "}", 8, "its data_offsets are not two whole numbers" },
	{ "{" ENTRY("a", "F32", "[2]", "[0,8.0]") "}", 8, "its data_offsets are not two whole numbers" },
	{ "{" ENTRY("a", "F32", "[2]", "[8,0]") "}", 8, "its data_offsets are not in order" },
	{ "{" ENTRY("a", "F32", "[2]", "[-8,0]") "}", 8, "its data_offsets are not in order" },
	{ "{" ENTRY("a", "U8", "[1]", "[9223372036854775806,9223372036854775807]") "}", 8, "its data end at byte" },
	{ "{" A "}", 7, "tensor 'a': its data end at byte 8 of 7" },
	{ "{" A "}", 9, "1 bytes at the end belong to no tensor" },
	{ "{" ENTRY("a", "F32", "[2]", "[1,9]") "}", 9, "tensor 'a': there is a gap before its data" },
	{ "{" A "," ENTRY("b", "U8", "[3]", "[9,12]") "}", 12, "tensor 'b': there is a gap before its data" },
	{ "{" A "," ENTRY("b", "U8", "[3]", "[7,10]") "}", 10, "tensor 'b': its data overlap those before it" },
	{ "{" A "," ENTRY("b", "F32", "[2]", "[0,8]") "}", 8, "its data overlap those before it" },
	{ "{" A "," ENTRY("b", "U8", "[0]", "[4,4]") "}", 8, "tensor 'b': its data overlap those before it" },
};

static void assert_refused(const char *error)
{
	struct safetensors s;
	struct err e = safetensors_read(path, &s);
	if (e.code != ERR_USAGE)
		fail_msg("code %d '%s' where '%s' was expected", e.code, e.text, error);
	if (strncmp(e.text, path, strlen(path)) || !strstr(e.text, error))
		fail_msg("'%s' should name the file and '%s'", e.text, error);
	assert_null(s.file);
	assert_null(s.header);
	assert_int_equal(s.count, 0);
}

static void refuses_damaged_files(void **state)
{
	(void)state;
	for (int i = 0; i < COUNT(damages); i++) {
		put_header(damages[i].header, damages[i].data);
		assert_refused(damages[i].error);
	}
}

static void refuses_files_cut_anywhere(void **state)
{
	(void)state;
	char file[512];
	size_t size = build(file, SMALL, SMALL_DATA);
	for (size_t cut = 0; cut < size; cut++) {
		put(file, cut);
		assert_refused(cut < 8			 ? "too few for a header" :
			       cut < size - SMALL_DATA ? "its header is said" :
							 "end at");
	}
}

static void refuses_wrong_header_lengths(void **state)
{
	(void)state;
	char file[512];
	size_t size = build(file, SMALL, SMALL_DATA);
	const uint64_t wrong[] = { 0, 1, size - 8 - SMALL_DATA - 1, size - 8 - SMALL_DATA + 1, size - 8, size - 7,
				   100000001, UINT32_MAX, INT64_MAX, UINT64_MAX - 7, UINT64_MAX };
	for (int i = 0; i < COUNT(wrong); i++) {
		memcpy(file, &wrong[i], 8);
		put(file, size);
		assert_refused("header");
	}
}

/* A header of more than 100 MB is refused for its length, before anything is made of it. */
static void refuses_an_endless_header(void **state)
{
	(void)state;
	const uint64_t length = 100000001;
	remove(path);
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(&length, 8, 1, f), 1);
	assert_true(fputs("{}", f) >= 0);
	assert_int_equal(fseek(f, 8 + 100000001 - 1, SEEK_SET), 0);
	assert_int_equal(fputc(' ', f), ' ');
	assert_int_equal(fclose(f), 0);
	assert_refused("its header is said to have 100000001 bytes");
}

static void refuses_deep_nesting(void **state)
{
	(void)state;
	static char header[40000];
	size_t depth = sizeof header / 2 - 10;
	strcpy(header, "{\"a\":");
	memset(header + 5, '[', depth);
	memset(header + 5 + depth, ']', depth);
	header[5 + 2 * depth] = '}';
	put_header(header, 0);
	assert_refused("not JSON: maximum parsing depth reached");
}

/* Every byte of length and header changed in nine ways: refused, or a file whose tensors can be read to the last. */
static void survives_any_changed_byte(void **state)
{
	(void)state;
	char file[512];
	int refused = 0, taken = 0;
	size_t size = build(file, SMALL, SMALL_DATA);
	for (size_t at = 0; at < size - SMALL_DATA; at++)
		for (int way = 0; way < 9; way++) {
			struct safetensors s;
			char old = file[at];
			file[at] = (char)(old ^ (way < 8 ? 1 << way : 0xff));
			put(file, size);
			file[at] = old;
			struct err e = safetensors_read(path, &s);
			if (e.code && e.code != ERR_USAGE)
				fail_msg("byte %zu: %s", at, e.text);
			unsigned sum = 0;
			size_t bytes = 0;
			for (int i = 0; i < s.count; i++) {
				size_t length = (size_t)tensor_items(&s.tensor[i]) * dtype_size(s.tensor[i].dtype);
				for (size_t k = 0; k < length; k++)
					sum += ((const unsigned char *)s.tensor[i].data)[k];
				bytes += length;
			}
			assert_true(e.code || (bytes == SMALL_DATA && sum == SMALL_DATA * (SMALL_DATA - 1) / 2));
			e.code ? refused++ : taken++;
			safetensors_free(&s);
		}
	/* Other names, and F32 as I32, are taken; nearly all else is not. */
	assert_true(taken > 0 && refused > 20 * taken);
}

static void converts_numbers(void **state)
{
	(void)state;
	const double wide[] = { 0.1, -2, 1e300 };
	const float narrow[] = { 0.1f, -2, INFINITY };
	const struct tensor d = { .name = "d", .dtype = DTYPE_F64, .rank = 1, .shape = { 3 }, .data = wide };
	const struct tensor f = { .name = "f", .dtype = DTYPE_F32, .rank = 1, .shape = { 3 }, .data = narrow };
	const struct tensor u = { .name = "u", .dtype = DTYPE_U8, .rank = 1, .shape = { 3 }, .data = "xyz" };
	double double_d[3], double_f[3];
	real real_d[3], real_f[3];
	assert_ok(tensor_to_double(&d, double_d));
	assert_ok(tensor_to_double(&f, double_f));
	assert_ok(tensor_to_real(&d, real_d));
	assert_ok(tensor_to_real(&f, real_f));
	for (int i = 0; i < 3; i++) {
		assert_true(double_d[i] == wide[i] && double_f[i] == (double)narrow[i]);
		assert_true(real_d[i] == (real)wide[i] && real_f[i] == (real)narrow[i]);
	}
	assert_string_equal(tensor_to_real(&u, real_d).text, "tensor 'u' is U8, not F32 or F64");
	assert_int_equal(tensor_to_double(&u, double_d).code, ERR_USAGE);
}

static void converts_integers(void **state)
{
	(void)state;
	int64_t wide[] = { INT32_MIN, INT32_MAX, -1 };
	const int32_t narrow[] = { INT32_MIN, INT32_MAX, -1 };
	const struct tensor w = { .name = "w", .dtype = DTYPE_I64, .rank = 1, .shape = { 3 }, .data = wide };
	const struct tensor n = { .name = "n", .dtype = DTYPE_I32, .rank = 1, .shape = { 3 }, .data = narrow };
	const struct tensor f = { .name = "f", .dtype = DTYPE_F32, .rank = 1, .shape = { 3 }, .data = narrow };
	int32_t out[3];
	assert_ok(tensor_to_int32(&w, out));
	assert_memory_equal(out, narrow, sizeof narrow);
	memset(out, 0, sizeof out);
	assert_ok(tensor_to_int32(&n, out));
	assert_memory_equal(out, narrow, sizeof narrow);
	wide[1]++;
	struct err e = tensor_to_int32(&w, out);
	assert_int_equal(e.code, ERR_USAGE);
	assert_string_equal(e.text, "tensor 'w': item 1 is 2147483648, beyond 32 bits");
	wide[0]--;
	assert_string_equal(tensor_to_int32(&w, out).text, "tensor 'w': item 0 is -2147483649, beyond 32 bits");
	assert_string_equal(tensor_to_int32(&f, out).text, "tensor 'f' is F32, not I32 or I64");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_its_types), cmocka_unit_test(reads_the_golden_file),
		cmocka_unit_test(copies_are_canonical), cmocka_unit_test(writes_these_very_bytes),
		cmocka_unit_test(writes_and_reads_nothing), cmocka_unit_test(refuses_text_that_is_not_utf8),
		cmocka_unit_test(reads_other_orders_and_alignments), cmocka_unit_test(aligns_numbers),
		cmocka_unit_test(refuses_damaged_files), cmocka_unit_test(refuses_files_cut_anywhere),
		cmocka_unit_test(refuses_wrong_header_lengths), cmocka_unit_test(refuses_an_endless_header),
		cmocka_unit_test(refuses_deep_nesting), cmocka_unit_test(survives_any_changed_byte),
		cmocka_unit_test(converts_numbers), cmocka_unit_test(converts_integers),
	};
	return cmocka_run_group_tests_name("base safetensors", tests, make_folder, remove_folder);
}
