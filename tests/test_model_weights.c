#include "model/base/io.h"
#include "model/base/stb.h"
#include "model/weights.h"
#include "tests/model_case.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])

static char folder[FOLDER_PATH], model_path[300], other_path[300];

static int make_folder(void **state)
{
	(void)state;
	if (folder_make(folder))
		return -1;
	snprintf(model_path, sizeof model_path, "%s/model.safetensors", folder);
	snprintf(other_path, sizeof other_path, "%s/other.safetensors", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(model_path);
	unlink(other_path);
	return rmdir(folder);
}

static int entries(void)
{
	int count = -2;
	DIR *d = opendir(folder);
	assert_non_null(d);
	while (readdir(d))
		count++;
	closedir(d);
	return count;
}

static void open_small(const struct model_options *options, struct model *m)
{
	assert_ok(model_open(options, CASE_V, m));
	layout_initialise(&m->layout, 11, m->value);
}

/* ---- what is written is what is read ---- */

static void assert_same_method(const struct method *a, const struct method *b)
{
	struct text_builder one = { 0 }, two = { 0 };
	method_identity(a, &one);
	method_identity(b, &two);
	assert_string_equal(one.data, two.data);
	text_builder_free(&one);
	text_builder_free(&two);
}

static void assert_same_model(const struct model *a, const struct model *b)
{
	const struct model_options *x = &a->options, *y = &b->options;
	assert_int_equal(a->V, b->V);
	assert_int_equal(x->layers, y->layers);
	assert_int_equal(x->width, y->width);
	assert_int_equal(x->heads, y->heads);
	assert_int_equal(x->hidden, y->hidden);
	assert_memory_equal(&x->rms_eps, &y->rms_eps, sizeof x->rms_eps);
	assert_int_equal(x->tied, y->tied);
	assert_int_equal(x->train_length, y->train_length);
	assert_same_method(&x->encoding, &y->encoding);
	assert_int_equal(a->layout.size, b->layout.size);
	assert_memory_equal(a->value, b->value, a->layout.size * sizeof(real));
}

static void assert_same_bytes(const char *a, const char *b)
{
	char *one, *two;
	size_t one_size, two_size;
	assert_ok(io_read(a, &one, &one_size));
	assert_ok(io_read(b, &two, &two_size));
	assert_int_equal(one_size, two_size);
	assert_memory_equal(one, two, one_size);
	free(one);
	free(two);
}

static void check_round_trip(const struct model_options *options)
{
	struct model written, got;
	open_small(options, &written);
	assert_ok(weights_write(&written, model_path, NULL, 0));
	assert_ok(weights_read(model_path, &got));
	assert_same_model(&written, &got);
	assert_ok(weights_write(&got, other_path, NULL, 0));
	assert_same_bytes(model_path, other_path);
	model_close(&written);
	model_close(&got);
}

static void test_round_trip(void **state)
{
	static const char *const encodings[] = {
		"nope", "sinusoidal(scale=0.7)", "learned(overflow=clamp)", "t5(max_distance=9,buckets=6)",
		"alibi(slopes=spread)", "rope(theta=123.456)",
		"rope(layout=half,rotary_dim=6,p_rope=0.4,learned=tempered,nope_every=2,dropped=on)",
	};
	(void)state;
	for (int i = 0; i < COUNT(encodings); i++)
		for (int shape = 0; shape < 4; shape++) {
			struct model_options options = small_options(encodings[i]);
			options.tied = shape & 1;
			options.hidden = shape & 2 ? 0 : 24;
			options.rms_eps = 1.0 / 3e5;
			options.train_length = 13;
			options.ssmax = shape == 3;
			check_round_trip(&options);
		}
}

/* Whatever self-check asks a model of can be written and read: each encoding, with each of its options changed, and each
 * scaling as the one it was trained under. */
static void test_every_method(void **state)
{
	(void)state;
	struct selfcheck_case *all = selfcheck_cases(NULL);
	for (int i = 0; i < arrlen(all); i++) {
		struct model_options options = small_options("nope");
		options.encoding = all[i].encoding;
		options.trained_scaling = all[i].scaling;
		check_round_trip(&options);
	}
	assert_true(arrlen(all) > 50);
	arrfree(all);
}

/* The values that no arithmetic keeps: they are bits, not numbers. */
static void test_odd_values(void **state)
{
	(void)state;
	struct model_options options = small_options("rope");
	struct model written, got;
	open_small(&options, &written);
	written.value[0] = (real)__builtin_nan("7");
	written.value[1] = -(real)__builtin_inf();
	written.value[2] = (real)-0.0;
	written.value[3] = (real)1e-42;
	assert_ok(weights_write(&written, model_path, NULL, 0));
	assert_ok(weights_read(model_path, &got));
	assert_memory_equal(written.value, got.value, written.layout.size * sizeof(real));
	model_close(&written);
	model_close(&got);
}

/* Other programs find the tensors by name, and what the file says about itself. */
static void test_file(void **state)
{
	static const struct metadata extra[] = { { "task", "recall(pairs=8)" }, { "steps", "1500" } };
	(void)state;
	struct model_options options = small_options("t5(buckets=6)");
	struct safetensors file;
	struct model m;
	char sum[33];
	open_small(&options, &m);
	assert_ok(weights_write(&m, model_path, extra, COUNT(extra)));
	assert_ok(safetensors_read(model_path, &file));
	XXH128_hash_t hash = XXH3_128bits(m.value, m.layout.size * sizeof(real));
	snprintf(sum, sizeof sum, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
	assert_true(weights_ours(&file));
	assert_string_equal(safetensors_metadata(&file, "format"), "ropewalk-1");
	assert_string_equal(safetensors_metadata(&file, "rope_layout"), "interleaved");
	assert_string_equal(safetensors_metadata(&file, "vocabulary"), "23");
	assert_string_equal(safetensors_metadata(&file, "xxh3_128"), sum);
	assert_string_equal(safetensors_metadata(&file, "task"), "recall(pairs=8)");
	assert_string_equal(safetensors_metadata(&file, "steps"), "1500");
	assert_string_equal(safetensors_metadata(&file, "options"),
			    "{\"encoding\":\"t5(buckets=6,max_distance=32,per_layer=off)\",\"heads\":\"2\","
			    "\"hidden\":\"24\",\"layers\":\"2\",\"positions\":\"consecutive\",\"positions_most\":\"2048\","
			    "\"rms_eps\":\"1e-05\",\"ssmax\":\"off\",\"tied\":\"off\",\"train_length\":\"16\","
			    "\"trained_scaling\":\"none\",\"width\":\"32\"}");
	assert_int_equal(file.count, layout_count(&m.layout));
	for (int i = 0; i < file.count; i++) {
		const struct parameter *p = &m.layout.parameter[i];
		const struct tensor *t = safetensors_find(&file, p->name);
		assert_non_null(t);
		assert_int_equal(t->dtype, REAL_DTYPE);
		assert_memory_equal(t->data, m.value + p->offset, p->size * sizeof(real));
	}
	safetensors_free(&file);
	model_close(&m);
}

/* ---- a write that fails ---- */

static const char *failing;

static int fail_once_there(const char *operation, const char *path)
{
	(void)path;
	return strcmp(operation, failing) ? 0 : ENOSPC;
}

static void test_failed_write(void **state)
{
	static const char *const operations[] = { "open", "write", "fsync", "close", "rename" };
	(void)state;
	struct model_options options = small_options("rope");
	struct model old, new, got;
	open_small(&options, &old);
	open_small(&options, &new);
	layout_initialise(&new.layout, 12, new.value);
	unlink(other_path);
	assert_ok(weights_write(&old, model_path, NULL, 0));
	for (int i = 0; i < COUNT(operations); i++) {
		failing = operations[i];
		io_fault = fail_once_there;
		struct err e = weights_write(&new, model_path, NULL, 0);
		io_fault = NULL;
		assert_int_equal(e.code, ERR_FAILED);
		assert_non_null(strstr(e.text, model_path));
		assert_int_equal(entries(), 1);
		assert_ok(weights_read(model_path, &got));
		assert_same_model(&old, &got);
		model_close(&got);
	}
	assert_ok(weights_write(&new, model_path, NULL, 0));
	assert_ok(weights_read(model_path, &got));
	assert_same_model(&new, &got);
	model_close(&got);
	model_close(&old);
	model_close(&new);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_every_method),
		cmocka_unit_test(test_odd_values),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_failed_write),
	};
	return cmocka_run_group_tests_name("model weights", tests, make_folder, remove_folder);
}
