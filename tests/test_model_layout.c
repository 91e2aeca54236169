#include "model/base/blas.h"
#include "model/transformer.h"
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])
#define VOCABULARY 99 /* of the task recall */

static const char *const encodings[] = { "nope", "sinusoidal", "learned", "t5", "alibi", "rope" };

/* The options as they are when the user gives none. */
static struct model_options default_options(const char *encoding)
{
	struct model_options options = { 0 };
	for (const struct option *o = model_option_rows; o->name; o++) {
		void *field = (char *)&options + o->offset;
		if (o->kind == OPTION_METHOD)
			assert_ok(method_parse(o->name, o->family, o->initial, field));
		else
			assert_ok(option_parse(o, o->initial, field));
	}
	if (encoding)
		assert_ok(method_parse("encoding", position_at, encoding, &options.encoding));
	return options;
}

static struct layout built(const struct model_options *options, int tokens)
{
	struct layout l;
	assert_ok(layout_build(options, tokens, &l));
	return l;
}

static size_t size_of(const struct model_options *options)
{
	struct layout l = built(options, VOCABULARY);
	size_t size = l.size;
	layout_free(&l);
	return size;
}

/* ---- names and places ---- */

/* Hugging Face's names and shapes of a LLaMA with one layer; a table below `position` is our own. */
struct row {
	const char *name;
	int rows, columns;
};

static void assert_rows(const struct layout *l, const struct row *row, int count)
{
	size_t offset = 0;
	assert_int_equal(layout_count(l), count);
	for (int i = 0; i < count; i++) {
		const struct parameter *p = &l->parameter[i];
		assert_string_equal(p->name, row[i].name);
		assert_int_equal(p->rows, row[i].rows);
		assert_int_equal(p->columns, row[i].columns);
		assert_int_equal(p->size, (row[i].rows ? row[i].rows : 1) * row[i].columns);
		assert_int_equal(p->offset, offset);
		offset += p->size;
	}
	assert_int_equal(l->size, offset);
}

static void test_names(void **state)
{
	static const struct row rows[] = {
		{ "model.embed_tokens.weight", 7, 12 },
		{ "model.position.table", 5, 12 },
		{ "model.layers.0.input_layernorm.weight", 0, 12 },
		{ "model.layers.0.self_attn.q_proj.weight", 12, 12 },
		{ "model.layers.0.self_attn.k_proj.weight", 12, 12 },
		{ "model.layers.0.self_attn.v_proj.weight", 12, 12 },
		{ "model.layers.0.self_attn.o_proj.weight", 12, 12 },
		{ "model.layers.0.post_attention_layernorm.weight", 0, 12 },
		{ "model.layers.0.mlp.gate_proj.weight", 10, 12 },
		{ "model.layers.0.mlp.up_proj.weight", 10, 12 },
		{ "model.layers.0.mlp.down_proj.weight", 12, 10 },
		{ "model.norm.weight", 0, 12 },
		{ "lm_head.weight", 7, 12 },
	};
	(void)state;
	struct model_options o = default_options("learned");
	o.layers = 1, o.width = 12, o.heads = 3, o.hidden = 10, o.train_length = 5;
	struct layout l = built(&o, 7);
	assert_rows(&l, rows, COUNT(rows));
	assert_int_equal(l.V, 7);
	assert_ptr_equal(layout_find(&l, "model.norm.weight"), &l.parameter[11]);
	assert_null(layout_find(&l, "model.norm"));
	layout_free(&l);
	assert_null(l.parameter);
	assert_int_equal(l.size, 0);
	layout_free(&l);
}

static void test_bare(void **state)
{
	static const struct row rows[] = {
		{ "model.embed_tokens.weight", 7, 12 },
		{ "model.layers.0.input_layernorm.weight", 0, 12 },
		{ "model.layers.0.self_attn.q_proj.weight", 12, 12 },
		{ "model.layers.0.self_attn.k_proj.weight", 12, 12 },
		{ "model.layers.0.self_attn.v_proj.weight", 12, 12 },
		{ "model.layers.0.self_attn.o_proj.weight", 12, 12 },
		{ "model.norm.weight", 0, 12 },
	};
	(void)state;
	struct model_options o = default_options("nope");
	o.layers = 1, o.width = 12, o.heads = 3, o.hidden = 0, o.tied = 1;
	struct layout l = built(&o, 7);
	assert_rows(&l, rows, COUNT(rows));
	assert_int_equal(l.head, l.embedding);
	layout_free(&l);
}

static size_t offset_of(const struct layout *l, const char *format, int layer)
{
	char name[96];
	snprintf(name, sizeof name, "model.layers.%d.%s.weight", layer, format);
	const struct parameter *p = layout_find(l, name);
	if (!p)
		fail_msg("no %s", name);
	return p->offset;
}

/* The places the model works with are those of the names; what is used as one matrix stands as one. */
static void test_places(void **state)
{
	(void)state;
	for (int e = 0; e < COUNT(encodings); e++) {
		struct model_options o = default_options(encodings[e]);
		o.layers = 3;
		struct layout l = built(&o, VOCABULARY);
		size_t C = 64, F = 128;
		for (int i = 0; i < 3; i++) {
			const struct layer_layout *at = &l.layer[i];
			assert_int_equal(at->input_norm, offset_of(&l, "input_layernorm", i));
			assert_int_equal(at->q, offset_of(&l, "self_attn.q_proj", i));
			assert_int_equal(at->k, offset_of(&l, "self_attn.k_proj", i));
			assert_int_equal(at->v, offset_of(&l, "self_attn.v_proj", i));
			assert_int_equal(at->o, offset_of(&l, "self_attn.o_proj", i));
			assert_int_equal(at->post_norm, offset_of(&l, "post_attention_layernorm", i));
			assert_int_equal(at->gate, offset_of(&l, "mlp.gate_proj", i));
			assert_int_equal(at->up, offset_of(&l, "mlp.up_proj", i));
			assert_int_equal(at->down, offset_of(&l, "mlp.down_proj", i));
			assert_int_equal(at->k, at->q + C * C);
			assert_int_equal(at->v, at->k + C * C);
			assert_int_equal(at->up, at->gate + F * C);
			assert_int_equal(at->position_reals, 0);
		}
		const struct parameter *table = layout_find(&l, "model.position.table");
		assert_int_equal(l.embedding, layout_find(&l, "model.embed_tokens.weight")->offset);
		assert_int_equal(l.norm, layout_find(&l, "model.norm.weight")->offset);
		assert_int_equal(l.head, layout_find(&l, "lm_head.weight")->offset);
		assert_int_equal(!table, !!strcmp(encodings[e], "learned") && !!strcmp(encodings[e], "t5"));
		if (table)
			assert_int_equal(l.position, table->offset);
		layout_free(&l);
	}
}

/* ---- sizes ---- */

static void test_sizes(void **state)
{
	(void)state;
	struct model_options o = default_options(NULL);
	assert_string_equal(o.encoding.entry->name, "rope");
	assert_int_equal(size_of(&o), 94912);
	for (int e = 0; e < COUNT(encodings); e++) {
		size_t own = !strcmp(encodings[e], "learned") ? 64 * 64 : !strcmp(encodings[e], "t5") ? 16 * 2 : 0;
		o = default_options(encodings[e]);
		assert_int_equal(size_of(&o), 94912 + own);
	}
	o = default_options("learned");
	o.train_length = 100;
	assert_int_equal(size_of(&o), 94912 + 100 * 64);
	o = default_options("t5(buckets=10)");
	o.heads = 8;
	assert_int_equal(size_of(&o), 94912 + 10 * 8);
	o = default_options("rope");
	o.layers = 3;
	assert_int_equal(size_of(&o), 94912 + 4 * 64 * 64 + 3 * 128 * 64 + 2 * 64);
	o = default_options("rope");
	o.tied = 1;
	assert_int_equal(size_of(&o), 94912 - 99 * 64);
	o = default_options("rope");
	o.hidden = 0;
	assert_int_equal(size_of(&o), 94912 - 2 * (3 * 128 * 64 + 64));
}

static void test_refused(void **state)
{
	static const int heads[] = { 3, 5, 7, 63, 65, 128 };
	(void)state;
	struct layout l;
	for (int i = 0; i < COUNT(heads); i++) {
		struct model_options o = default_options("nope");
		struct model m;
		o.heads = heads[i];
		assert_err(layout_build(&o, VOCABULARY, &l), ERR_USAGE, "heads");
		layout_free(&l);
		assert_err(model_open(&o, VOCABULARY, &m), ERR_USAGE, "heads");
		assert_null(m.value);
		model_close(&m);
	}
	/* Pairs need an even head_dim; what does not rotate takes an odd one. */
	struct model_options o = default_options("rope");
	o.heads = 64;
	assert_err(layout_build(&o, VOCABULARY, &l), ERR_USAGE, "head_dim");
	layout_free(&l);
	o = default_options("nope");
	o.heads = 64;
	assert_ok(layout_build(&o, VOCABULARY, &l));
	layout_free(&l);
}

static void test_decay(void **state)
{
	(void)state;
	for (int e = 0; e < COUNT(encodings); e++)
		for (int tied = 0; tied < 2; tied++) {
			struct model_options o = default_options(encodings[e]);
			o.tied = tied;
			struct layout l = built(&o, VOCABULARY);
			for (int i = 0; i < layout_count(&l); i++) {
				const char *name = l.parameter[i].name;
				bool matrix = strstr(name, "_proj.weight") || !strcmp(name, "lm_head.weight");
				assert_int_equal(l.parameter[i].decayed, matrix);
			}
			layout_free(&l);
		}
}

/* ---- initialisation ---- */

/* The deviation that study.md states, 0 for what is constant: 1 for norms, 0 for the t5 table. */
static double stated_deviation(const struct parameter *p, const struct model_options *o, double *constant)
{
	bool residual = strstr(p->name, "o_proj") || strstr(p->name, "down_proj");
	double fan_in = strstr(p->name, "down_proj") ? (double)o->hidden : (double)o->width;
	*constant = strstr(p->name, "norm.weight") ? 1 : 0;
	if (strstr(p->name, "norm.weight"))
		return 0;
	if (!strcmp(p->name, "model.position.table"))
		return !strcmp(o->encoding.entry->name, "learned");
	if (!strcmp(p->name, "model.embed_tokens.weight"))
		return o->tied ? 1 / sqrt((double)o->width) : 1;
	return (residual ? 1 / sqrt(2 * (double)o->layers) : 1) / sqrt(fan_in);
}

/* Moments of N(0, 1) within five of their standard errors. */
static void assert_normal(const char *name, const real *value, size_t size, double deviation)
{
	double sum = 0, square = 0, fourth = 0, n = (double)size;
	for (size_t i = 0; i < size; i++) {
		double z = (double)value[i] / deviation;
		sum += z, square += z * z, fourth += z * z * z * z;
	}
	if (!(fabs(sum / n) <= 5 / sqrt(n)) || !(fabs(square / n - 1) <= 5 * sqrt(2 / n)) ||
	    !(fabs(fourth / n - 3) <= 5 * sqrt(96 / n)))
		fail_msg("%s: moments %g, %g, %g of N(0, %g^2)", name, sum / n, square / n, fourth / n, deviation);
}

static void check_initial(const struct model_options *o)
{
	struct model m;
	assert_ok(model_open(o, VOCABULARY, &m));
	layout_initialise(&m.layout, 101, m.value);
	for (int i = 0; i < layout_count(&m.layout); i++) {
		const struct parameter *p = &m.layout.parameter[i];
		double constant, deviation = stated_deviation(p, o, &constant);
		if (deviation > 0)
			assert_normal(p->name, m.value + p->offset, p->size, deviation);
		for (size_t j = 0; j < p->size && !(deviation > 0); j++)
			assert_true((double)m.value[p->offset + j] == constant);
	}
	model_close(&m);
}

static void test_initial(void **state)
{
	(void)state;
	for (int e = 0; e < COUNT(encodings); e++)
		for (int layers = 2; layers < 5; layers++) {
			struct model_options o = default_options(encodings[e]);
			o.layers = layers;
			o.tied = layers == 3;
			check_initial(&o);
		}
}

/* Moments of U(0, 1) within five of their standard errors; a constant is the constant. */
static void test_uniform_and_constant(void **state)
{
	enum { N = 10000 };
	struct layout l = { 0 };
	double sum = 0, square = 0;
	(void)state;
	layout_add(&l, INIT_UNIFORM, 2, false, 100, N / 100, "model.position.p");
	layout_add(&l, INIT_CONSTANT, 0.1, false, 0, 3, "model.position.c");
	real *value = TAKE(real, l.size);
	layout_initialise(&l, 101, value);
	for (int i = 0; i < N; i++) {
		double u = (double)value[i] / 2;
		assert_true(u > 0 && u < 1);
		sum += u, square += u * u;
	}
	assert_close(sum / N, 0.5, 5 * sqrt(1.0 / 12 / N));
	assert_close(square / N, 1.0 / 3, 5 * sqrt(4.0 / 45 / N));
	for (int i = 0; i < 3; i++)
		assert_true(value[N + i] == (real)0.1);
	free(value);
	layout_free(&l);
}

static struct model initialised(const struct model_options *o, uint64_t seed)
{
	struct model m;
	assert_ok(model_open(o, VOCABULARY, &m));
	layout_initialise(&m.layout, seed, m.value);
	return m;
}

static void test_seeds(void **state)
{
	(void)state;
	struct model_options o = default_options("learned");
	struct model a = initialised(&o, 7), same = initialised(&o, 7), other = initialised(&o, 8);
	assert_memory_equal(a.value, same.value, a.layout.size * sizeof(real));
	for (int i = 0; i < layout_count(&a.layout); i++) {
		const struct parameter *p = &a.layout.parameter[i];
		bool equal = !memcmp(a.value + p->offset, other.value + p->offset, p->size * sizeof(real));
		assert_int_equal(equal, !initialiser_random(p->initialiser));
	}
	/* No two tensors of a model share their numbers. */
	const struct layer_layout *first = &a.layout.layer[0], *second = &a.layout.layer[1];
	assert_memory_not_equal(a.value + first->q, a.value + first->k, 64 * 64 * sizeof(real));
	assert_memory_not_equal(a.value + first->q, a.value + second->q, 64 * 64 * sizeof(real));
	model_close(&a);
	model_close(&same);
	model_close(&other);
}

/* How many tensors of `a` stand at the same place of the table in `b`, up to the first that does not. Their values must
 * be the same. */
static int same_until(const struct model *a, const struct model *b)
{
	int i = 0;
	for (; i < layout_count(&a->layout) && i < layout_count(&b->layout); i++) {
		const struct parameter *p = &a->layout.parameter[i], *q = &b->layout.parameter[i];
		if (strcmp(p->name, q->name))
			break;
		assert_int_equal(p->size, q->size);
		assert_memory_equal(a->value + p->offset, b->value + q->offset, p->size * sizeof(real));
	}
	return i;
}

/* What comes before an added tensor keeps its values. */
static void test_added_tensor(void **state)
{
	(void)state;
	struct model_options plain = default_options("rope"), learned = default_options("learned"), bare = plain;
	struct model_options alibi = default_options("alibi");
	bare.hidden = 0;
	struct model m = initialised(&plain, 3), with_table = initialised(&learned, 3), without = initialised(&bare, 3);
	struct model other = initialised(&alibi, 3);
	/* The embedding; then norm, q, k, v and o; then all of them. */
	assert_int_equal(same_until(&m, &with_table), 1);
	assert_int_equal(same_until(&m, &without), 6);
	assert_int_equal(same_until(&m, &other), layout_count(&m.layout));
	model_close(&m);
	model_close(&with_table);
	model_close(&without);
	model_close(&other);
}

/* ---- the loss of an untrained model ---- */

enum { SEQUENCES = 8, TOKENS = 64, ROWS = SEQUENCES * TOKENS };

/* Mean loss over seeds on random tokens, every position scored. */
static double untrained_loss(const struct model_options *o, int seeds, bool zero_head)
{
	int32_t token[ROWS], target[ROWS];
	double sum = 0;
	for (int seed = 1; seed <= seeds; seed++) {
		struct model m = initialised(o, (uint64_t)seed);
		struct transformer *t;
		struct transformer_request q = { .model = &m, .B = SEQUENCES, .T = TOKENS };
		assert_ok(transformer_open(&q, &t));
		if (zero_head)
			memset(m.value + m.layout.head, 0, VOCABULARY * 64 * sizeof(real));
		fill_below((uint64_t)seed, VOCABULARY, token, ROWS);
		fill_below((uint64_t)seed + 1000, VOCABULARY, target, ROWS);
		struct outcome out = transformer_forward(t, token, target, NULL);
		assert_int_equal(out.scored, ROWS);
		sum += out.nll_sum / (double)out.scored;
		transformer_close(t);
		model_close(&m);
	}
	return sum / seeds;
}

/* Logits are N(0, 1), so ln sum exp is ln V + 1/2 less half the variance of the mean of exp, (e - 1) / (2 V). */
static void test_untrained_loss(void **state)
{
	double expected = log(VOCABULARY) + 0.5 - (exp(1) - 1) / (2 * VOCABULARY);
	(void)state;
	for (int e = 0; e < COUNT(encodings); e++) {
		struct model_options o = default_options(encodings[e]);
		double loss = untrained_loss(&o, 4, false);
		if (!(fabs(loss - expected) < 0.2))
			fail_msg("%s: loss %g of an untrained model, expected %g", encodings[e], loss, expected);
	}
}

static void test_zero_head(void **state)
{
	(void)state;
	for (int e = 0; e < COUNT(encodings); e++) {
		struct model_options o = default_options(encodings[e]);
		assert_close(untrained_loss(&o, 1, true), log(VOCABULARY), sizeof(real) == 4 ? 1e-6 : 1e-14);
	}
}

static int start(void **state)
{
	(void)state;
	return blas_start(2).code;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_bare),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_decay),
		cmocka_unit_test(test_initial),
		cmocka_unit_test(test_uniform_and_constant),
		cmocka_unit_test(test_seeds),
		cmocka_unit_test(test_added_tensor),
		cmocka_unit_test(test_untrained_loss),
		cmocka_unit_test(test_zero_head),
	};
	return cmocka_run_group_tests_name("model layout", tests, start, NULL);
}
