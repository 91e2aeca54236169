#include "model/base/io.h"
#include "model/weights.h"
#include "tests/model_case.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Model files of our own that were changed after they were written: every one is refused. */

#define METADATA_SUM "xxh3_128_metadata"
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

static void open_small(const struct model_options *options, struct model *m)
{
	assert_ok(model_open(options, CASE_V, m));
	layout_initialise(&m->layout, 11, m->value);
}

static void write_small(const char *encoding)
{
	struct model_options options = small_options(encoding);
	struct model m;
	open_small(&options, &m);
	assert_ok(weights_write(&m, model_path, NULL, 0));
	model_close(&m);
}

/* A file's contents, to be changed and written to other_path. */
struct contents {
	struct safetensors file;
	struct tensor tensor[64];
	struct metadata metadata[16];
	int count, metadata_count;
};

static void load(struct contents *c, const char *path)
{
	*c = (struct contents){ 0 };
	assert_ok(safetensors_read(path, &c->file));
	assert_true(c->file.count < COUNT(c->tensor) && c->file.metadata_count < COUNT(c->metadata));
	c->count = c->file.count;
	c->metadata_count = c->file.metadata_count;
	memcpy(c->tensor, c->file.tensor, (size_t)c->count * sizeof c->tensor[0]);
	memcpy(c->metadata, c->file.metadata, (size_t)c->metadata_count * sizeof c->metadata[0]);
}

static void store(struct contents *c)
{
	assert_ok(safetensors_write(other_path, c->tensor, c->count, c->metadata, c->metadata_count));
	safetensors_free(&c->file);
}

static struct tensor *tensor_named(struct contents *c, const char *name)
{
	for (int i = 0; i < c->count; i++)
		if (!strcmp(c->tensor[i].name, name))
			return &c->tensor[i];
	fail_msg("no tensor %s", name);
	return NULL;
}

/* NULL takes the key away. The metadata's own checksum is another test's. */
static void set_metadata(struct contents *c, const char *key, const char *value)
{
	int i = 0;
	for (int k = 0; k < c->metadata_count; k++)
		if (!strcmp(c->metadata[k].key, METADATA_SUM))
			c->metadata[k] = c->metadata[--c->metadata_count];
	while (i < c->metadata_count && strcmp(c->metadata[i].key, key))
		i++;
	assert_true(i < c->metadata_count);
	if (value)
		c->metadata[i].value = value;
	else
		c->metadata[i] = c->metadata[--c->metadata_count];
}

/* weights_read must refuse with code 2, naming the path and the reason, and hold nothing. */
static void assert_refused(const char *path, const char *reason)
{
	struct model m;
	memset(&m, 0x5a, sizeof m);
	struct err e = weights_read(path, &m);
	if (e.code != ERR_USAGE || !strstr(e.text, path) || !strstr(e.text, reason))
		fail_msg("[%d] %s (%s), wanted [2] with %s and '%s'", e.code, e.text, e.hint, path, reason);
	assert_null(m.value);
	assert_null(m.layout.parameter);
}

static void flip(const char *from, size_t at)
{
	char *data;
	size_t size;
	assert_ok(io_read(from, &data, &size));
	assert_true(at < size);
	data[size - 1 - at] ^= 0x10;
	assert_ok(io_write(other_path, data, size));
	free(data);
}

static void test_flipped_data(void **state)
{
	(void)state;
	write_small("rope");
	struct model_options options = small_options("rope");
	struct model m;
	open_small(&options, &m);
	size_t bytes = m.layout.size * sizeof(real);
	model_close(&m);
	for (size_t at = 0; at < bytes; at += bytes / 41) {
		flip(model_path, at);
		assert_refused(other_path, "checksum");
	}
	flip(model_path, bytes - 1);
	assert_refused(other_path, "checksum");
}

static void test_cut_file(void **state)
{
	(void)state;
	char *data;
	size_t size;
	write_small("rope");
	assert_ok(io_read(model_path, &data, &size));
	for (size_t kept = 0; kept < size; kept += size / 7) {
		assert_ok(io_write(other_path, data, kept));
		assert_refused(other_path, "");
	}
	free(data);
	unlink(other_path);
	assert_refused(other_path, "cannot be read");
}

static void test_tensors(void **state)
{
	(void)state;
	struct contents c;
	write_small("learned");
	load(&c, model_path);
	int count = c.count;
	safetensors_free(&c.file);
	for (int i = 0; i < count; i++) {
		char reason[160];
		load(&c, model_path);
		snprintf(reason, sizeof reason, "tensor %s is missing", c.tensor[i].name);
		c.tensor[i] = c.tensor[--c.count];
		store(&c);
		assert_refused(other_path, reason);
	}
	load(&c, model_path);
	c.tensor[c.count] = c.tensor[0];
	c.tensor[c.count++].name = "model.layers.2.input_layernorm.weight";
	store(&c);
	assert_refused(other_path, "tensor model.layers.2.input_layernorm.weight does not belong");
}

/* In a file of ours no other program's names stand for our own. */
static void test_aliases_refused(void **state)
{
	(void)state;
	struct contents c;
	write_small("learned");
	load(&c, model_path);
	tensor_named(&c, "model.position.table")->name = "pos_emb.weight";
	store(&c);
	assert_refused(other_path, "tensor model.position.table is missing");
}

static void test_shapes(void **state)
{
	(void)state;
	struct contents c;
	write_small("rope");
	load(&c, model_path);
	struct tensor *t = tensor_named(&c, "model.layers.1.mlp.up_proj.weight");
	t->shape[0] = 32, t->shape[1] = 24;
	store(&c);
	assert_refused(other_path, "model.layers.1.mlp.up_proj.weight is 32 x 24 where the options ask for 24 x 32");
	load(&c, model_path);
	t = tensor_named(&c, "model.norm.weight");
	t->rank = 2, t->shape[0] = 1, t->shape[1] = 32;
	store(&c);
	assert_refused(other_path, "tensor model.norm.weight is 1 x 32 where");
	load(&c, model_path);
	t = tensor_named(&c, "model.norm.weight");
	t->shape[0] = 31;
	store(&c);
	assert_refused(other_path, "tensor model.norm.weight is 31 where the options ask for 32");
}

static void test_kinds(void **state)
{
	(void)state;
	struct contents c;
	write_small("rope");
	load(&c, model_path);
	tensor_named(&c, "model.norm.weight")->dtype = sizeof(real) == 4 ? DTYPE_I32 : DTYPE_I64;
	store(&c);
	assert_refused(other_path, "model.norm.weight");
	/* Two tensors of one shape under each other's names: nothing but the checksum can tell. */
	load(&c, model_path);
	struct tensor *q = tensor_named(&c, "model.layers.0.self_attn.q_proj.weight");
	struct tensor *k = tensor_named(&c, "model.layers.0.self_attn.k_proj.weight");
	const char *name = q->name;
	q->name = k->name, k->name = name;
	store(&c);
	assert_refused(other_path, "checksum");
}

/* Whatever is changed in the metadata shows, also what is a legal value. */
static void test_metadata_checksum(void **state)
{
	static const char *const key[] = { "options", "vocabulary", "xxh3_128", METADATA_SUM };
	(void)state;
	write_small("rope");
	for (int i = 0; i < COUNT(key); i++) {
		struct contents c;
		load(&c, model_path);
		char *changed = strdup(safetensors_metadata(&c.file, key[i]));
		char *digit = changed + strcspn(changed, "0123456789");
		*digit = *digit == '1' ? '2' : '1';
		for (int k = 0; k < c.metadata_count; k++)
			if (!strcmp(c.metadata[k].key, key[i]))
				c.metadata[k].value = changed;
		store(&c);
		assert_refused(other_path, "its metadata have the checksum");
		free(changed);
	}
}

static void test_metadata(void **state)
{
	static const struct {
		const char *key, *value, *reason;
	} damage[] = {
		{ "format", "ropewalk-2", "format ropewalk-2 where ropewalk-1 is read" },
		{ "format", "ropewalk-", "format ropewalk- where" },
		{ "format", "pt", "not written by ropewalk" },
		{ "format", NULL, "not written by ropewalk" },
		{ "rope_layout", "half", "rope_layout half where interleaved" },
		{ "rope_layout", NULL, "lack rope_layout" },
		{ "vocabulary", NULL, "vocabulary" },
		{ "vocabulary", "", "vocabulary" },
		{ "vocabulary", "0", "vocabulary" },
		{ "vocabulary", "-23", "vocabulary" },
		{ "vocabulary", "nan", "vocabulary" },
		{ "vocabulary", "23 tokens", "vocabulary" },
		{ "vocabulary", "99999999999999999999", "vocabulary" },
		{ "vocabulary", "24", "tensor model.embed_tokens.weight is 23 x 32 where the options ask for 24 x 32" },
		{ "options", NULL, "options" },
		{ "options", "", "options" },
		{ "options", "[]", "options" },
		{ "options", "{\"layers\":\"2\"", "options" },
		{ "xxh3_128", NULL, "none was written" },
		{ "xxh3_128", "", "checksum" },
		{ "xxh3_128", "00000000000000000000000000000000", "checksum" },
	};
	(void)state;
	write_small("rope");
	for (int i = 0; i < COUNT(damage); i++) {
		struct contents c;
		load(&c, model_path);
		set_metadata(&c, damage[i].key, damage[i].value);
		store(&c);
		assert_refused(other_path, damage[i].reason);
	}
}

/* The options in the metadata of model_path with one set to another value, NULL taken away; written to other_path. */
static void store_option(const char *name, json_t *value)
{
	struct contents c;
	load(&c, model_path);
	json_t *object = json_loads(safetensors_metadata(&c.file, "options"), 0, NULL);
	assert_non_null(object);
	if (value)
		json_object_set_new(object, name, value);
	else
		json_object_del(object, name);
	char *text = json_dumps(object, 0);
	json_decref(object);
	set_metadata(&c, "options", text);
	store(&c);
	free(text);
}

static void test_options(void **state)
{
	static const struct {
		const char *name, *value, *reason;
	} damage[] = {
		{ "layers", NULL, "lack the option layers" },
		{ "encoding", NULL, "lack the option encoding" },
		{ "dropout", "0.1", "unknown option dropout" },
		{ "layers", "two", "layers" },
		{ "layers", "0", "layers" },
		{ "layers", "1001", "layers" },
		{ "layers", "3", "tensor model.layers.2.input_layernorm.weight is missing" },
		{ "layers", "1", "tensor model.layers.1.input_layernorm.weight does not belong" },
		{ "width", "64", "tensor model.embed_tokens.weight is 23 x 32 where the options ask for 23 x 64" },
		{ "hidden", "0", "does not belong" },
		{ "hidden", "-1", "hidden" },
		{ "rms_eps", "inf", "rms_eps" },
		{ "tied", "perhaps", "tied" },
		{ "tied", "on", "tensor lm_head.weight does not belong" },
		{ "encoding", "rop", "rop" },
		{ "encoding", "rope(thete=3)", "thete" },
		{ "encoding", "rope(theta=3", "rope" },
		{ "encoding", "learned", "tensor model.position.table is missing" },
		/* What no layout can be made of, or none that fits any machine. */
		{ "heads", "3", "heads: 3 does not divide the width 32" },
		{ "heads", "32", "head_dim" },
		{ "hidden", "262144", "" },
	};
	(void)state;
	write_small("rope");
	for (int i = 0; i < COUNT(damage); i++) {
		store_option(damage[i].name, damage[i].value ? json_string(damage[i].value) : NULL);
		assert_refused(other_path, damage[i].reason);
	}
	store_option("layers", json_integer(2));
	assert_refused(other_path, "option layers");
}

static void test_too_large(void **state)
{
	(void)state;
	struct contents c;
	write_small("rope");
	load(&c, model_path);
	set_metadata(&c, "vocabulary", "16777216");
	set_metadata(&c, "options",
		     "{\"encoding\":\"nope\",\"heads\":\"1\",\"hidden\":\"262144\",\"layers\":\"1000\","
		     "\"rms_eps\":\"1e-05\",\"tied\":\"off\",\"train_length\":\"16\",\"width\":\"65536\"}");
	store(&c);
	assert_refused(other_path, "its tensors hold 14432 numbers where the options ask for");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flipped_data),
		cmocka_unit_test(test_cut_file),
		cmocka_unit_test(test_tensors),
		cmocka_unit_test(test_aliases_refused),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_metadata),
		cmocka_unit_test(test_metadata_checksum),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_too_large),
	};
	return cmocka_run_group_tests_name("model damage", tests, make_folder, remove_folder);
}
