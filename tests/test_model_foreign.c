#include "model/weights.h"
#include "tests/model_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Model files that other programs wrote. */

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])
#define FOREIGN "tests/golden/model_weights.safetensors"

static char folder[FOLDER_PATH], other_path[300];

static int make_folder(void **state)
{
	(void)state;
	if (folder_make(folder))
		return -1;
	snprintf(other_path, sizeof other_path, "%s/other.safetensors", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(other_path);
	return rmdir(folder);
}

/* A model for the golden weights, filled without `exact`. */
static void fill_foreign(const char *encoding, const char *path, const char *prefix, struct model *m,
			 struct text_builder *ignored)
{
	struct model_options options = small_options(encoding);
	struct safetensors file;
	int V;
	options.heads = 4;
	assert_ok(safetensors_read(path, &file));
	assert_ok(weights_sizes(&file, path, prefix, &options, &V));
	assert_ok(model_open(&options, V, m));
	assert_ok(weights_fill(m, &file, path, prefix, false, ignored));
	safetensors_free(&file);
}

static void assert_filled(const struct model *m, const char *name, const char *foreign)
{
	struct safetensors file;
	assert_ok(safetensors_read(FOREIGN, &file));
	const struct parameter *p = layout_find(&m->layout, name);
	const struct tensor *t = safetensors_find(&file, foreign);
	assert_non_null(p);
	assert_non_null(t);
	assert_int_equal(tensor_items(t), p->size);
	for (size_t i = 0; i < p->size; i++)
		assert_true(m->value[p->offset + i] == (real)((const float *)t->data)[i]);
	safetensors_free(&file);
}

static void test_read(void **state)
{
	static const struct {
		const char *encoding, *table, *ignored;
		int train_length;
	} cases[] = {
		{ "rope", NULL,
		  "t5.table, t5.layers.0.table, t5.layers.1.table, pos_emb.weight, tokens, targets, loss_mask", 16 },
		{ "learned", "pos_emb.weight",
		  "t5.table, t5.layers.0.table, t5.layers.1.table, tokens, targets, loss_mask", 20 },
		{ "t5(buckets=8)", "t5.table",
		  "t5.layers.0.table, t5.layers.1.table, pos_emb.weight, tokens, targets, loss_mask", 16 },
	};
	(void)state;
	for (int i = 0; i < COUNT(cases); i++) {
		struct text_builder ignored = { 0 };
		struct model m;
		fill_foreign(cases[i].encoding, FOREIGN, "", &m, &ignored);
		assert_string_equal(ignored.data, cases[i].ignored);
		assert_int_equal(m.options.layers, 2);
		assert_int_equal(m.options.width, 32);
		assert_int_equal(m.options.hidden, 64);
		assert_int_equal(m.options.tied, 0);
		assert_int_equal(m.options.heads, 4);
		assert_int_equal(m.options.train_length, cases[i].train_length);
		assert_int_equal(m.V, 48);
		for (int k = 0; k < layout_count(&m.layout); k++) {
			const char *name = m.layout.parameter[k].name;
			bool table = !strcmp(name, "model.position.table");
			assert_filled(&m, name, table ? cases[i].table : name);
		}
		text_builder_free(&ignored);
		model_close(&m);
	}
}

/* No encoding here has a table a layer; the names are read all the same. */
static void test_layer_tables(void **state)
{
	(void)state;
	struct safetensors file;
	struct model m = { 0 };
	for (int layer = 0; layer < 2; layer++)
		layout_add(&m.layout, INIT_ZEROS, 0, false, 8, 4, "model.layers.%d.self_attn.position.table", layer);
	m.value = TAKE(real, m.layout.size);
	assert_ok(safetensors_read(FOREIGN, &file));
	assert_ok(weights_fill(&m, &file, FOREIGN, "", false, NULL));
	assert_filled(&m, "model.layers.0.self_attn.position.table", "t5.layers.0.table");
	assert_filled(&m, "model.layers.1.self_attn.position.table", "t5.layers.1.table");
	safetensors_free(&file);
	free(m.value);
	model_close(&m);
}

/* The golden weights with another prefix, to other_path; `without` leaves out every tensor with this in its name. */
static void store_foreign(const char *prefix, const char *without)
{
	struct safetensors file;
	struct tensor tensor[64];
	char names[64][160];
	int kept = 0;
	assert_ok(safetensors_read(FOREIGN, &file));
	assert_true(file.count <= COUNT(tensor));
	for (int i = 0; i < file.count; i++) {
		if (without && strstr(file.tensor[i].name, without))
			continue;
		snprintf(names[kept], sizeof names[kept], "%s%s", prefix, file.tensor[i].name);
		tensor[kept] = file.tensor[i];
		tensor[kept].name = names[kept];
		kept++;
	}
	assert_ok(safetensors_write(other_path, tensor, kept, NULL, 0));
	safetensors_free(&file);
}

static void test_prefix(void **state)
{
	(void)state;
	struct model_options options = small_options("learned");
	struct safetensors file;
	struct model m, same;
	int V;
	store_foreign("net.", NULL);
	fill_foreign("learned", other_path, "net.", &m, NULL);
	fill_foreign("learned", FOREIGN, "", &same, NULL);
	assert_int_equal(m.options.train_length, 20);
	assert_int_equal(m.layout.size, same.layout.size);
	assert_memory_equal(m.value, same.value, m.layout.size * sizeof(real));
	assert_ok(safetensors_read(other_path, &file));
	assert_err(weights_sizes(&file, other_path, "", &options, &V), ERR_USAGE, other_path);
	assert_err(weights_sizes(&file, other_path, "nat.", &options, &V), ERR_USAGE, "nat.model.embed_tokens.weight");
	assert_err(weights_sizes(&file, other_path, "nat.", &options, &V), ERR_USAGE, "--prefix");
	assert_err(weights_fill(&m, &file, other_path, "", false, NULL), ERR_USAGE, other_path);
	safetensors_free(&file);
	model_close(&m);
	model_close(&same);
}

static void test_sizes(void **state)
{
	(void)state;
	struct model m;
	store_foreign("", "lm_head");
	fill_foreign("nope", other_path, "", &m, NULL);
	assert_int_equal(m.options.tied, 1);
	model_close(&m);
	store_foreign("", "mlp");
	fill_foreign("nope", other_path, "", &m, NULL);
	assert_int_equal(m.options.hidden, 0);
	model_close(&m);
	store_foreign("", "layers.1");
	fill_foreign("nope", other_path, "", &m, NULL);
	assert_int_equal(m.options.layers, 1);
	model_close(&m);
}

static void test_refused(void **state)
{
	(void)state;
	struct model_options options = small_options("rope");
	struct safetensors file;
	struct model m;
	int V;
	assert_ok(safetensors_read(FOREIGN, &file));
	assert_false(weights_ours(&file));
	assert_err(weights_options(&file, &options, &V), ERR_USAGE, "format pt");
	assert_ok(weights_sizes(&file, FOREIGN, "", &options, &V));
	assert_ok(model_open(&options, V, &m));
	assert_err(weights_fill(&m, &file, FOREIGN, "", true, NULL), ERR_USAGE, FOREIGN);
	assert_err(weights_fill(&m, &file, FOREIGN, "", true, NULL), ERR_USAGE, "tensor t5.table does not belong");
	model_close(&m);
	safetensors_free(&file);
	assert_err(weights_read(FOREIGN, &m), ERR_USAGE, FOREIGN ": it was not written by ropewalk");
	assert_null(m.value);
	store_foreign("", "layers.");
	assert_ok(safetensors_read(other_path, &file));
	assert_err(weights_sizes(&file, other_path, "", &options, &V), ERR_USAGE, "layers.0.self_attn.q_proj.weight");
	safetensors_free(&file);
}

/* A shape from a file is an option like any other: it must be in range. Without data it can be anything. */
static void test_shape_out_of_range(void **state)
{
	static const int64_t rows[] = { 262145, (int64_t)1 << 31, (int64_t)1 << 32 };
	(void)state;
	for (int i = 0; i < COUNT(rows); i++) {
		struct model_options options = small_options("rope");
		real one[4] = { 0 };
		struct tensor tensor[] = {
			{ .name = "model.embed_tokens.weight", .rank = 2, .shape = { 2, 2 }, .data = one },
			{ .name = "model.layers.0.self_attn.q_proj.weight", .rank = 2, .shape = { 2, 2 }, .data = one },
			{ .name = "model.layers.0.mlp.gate_proj.weight", .rank = 2, .shape = { rows[i], 0 } },
		};
		struct safetensors file;
		int V;
		for (int k = 0; k < COUNT(tensor); k++)
			tensor[k].dtype = REAL_DTYPE;
		assert_ok(safetensors_write(other_path, tensor, COUNT(tensor), NULL, 0));
		assert_ok(safetensors_read(other_path, &file));
		assert_err(weights_sizes(&file, other_path, "", &options, &V), ERR_USAGE, other_path);
		safetensors_free(&file);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_layer_tables),
		cmocka_unit_test(test_prefix),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_shape_out_of_range),
	};
	return cmocka_run_group_tests_name("model foreign", tests, make_folder, remove_folder);
}
