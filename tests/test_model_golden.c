#include "model/base/blas.h"
#include "model/weights.h"
#include "tests/support.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whole models against other programs' numbers: small ones made of upstream sources in float64 (model.json says which),
 * and trained ones token by token (trained_*.json). */

#ifdef ROPEWALK_DOUBLE
#define LOGIT_TOLERANCE 1e-10
#define GRADIENT_TOLERANCE 1e-10
#define NLL_TOLERANCE 1e-9
#define MEAN_TOLERANCE 1e-9
#else
#define LOGIT_TOLERANCE 2e-5
#define GRADIENT_TOLERANCE 5e-6
#define NLL_TOLERANCE 2e-4
#define MEAN_TOLERANCE 1e-5
#endif

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])

static struct safetensors read_golden(const char *name)
{
	char path[256];
	struct safetensors file = { 0 };
	snprintf(path, sizeof path, "tests/golden/%s.safetensors", name);
	assert_ok(safetensors_read(path, &file));
	return file;
}

static const struct tensor *must_find(const struct safetensors *file, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static const struct tensor *must_find(const struct safetensors *file, const char *format, ...)
{
	char name[160];
	va_list list;
	va_start(list, format);
	vsnprintf(name, sizeof name, format, list);
	va_end(list);
	const struct tensor *t = safetensors_find(file, name);
	if (!t)
		fail_msg("no tensor %s", name);
	return t;
}

static double *doubles(const struct tensor *t)
{
	double *values = TAKE(double, (size_t)tensor_items(t));
	assert_ok(tensor_to_double(t, values));
	return values;
}

static int32_t *integers(const struct tensor *t)
{
	int32_t *values = TAKE(int32_t, (size_t)tensor_items(t));
	assert_ok(tensor_to_int32(t, values));
	return values;
}

static int64_t setting(const json_t *settings, const char *name)
{
	const json_t *value = json_object_get(settings, name);
	assert_true(json_is_integer(value));
	return json_integer_value(value);
}

/* Opens the model that a golden file's weights are for. */
static void open_model(const struct safetensors *weights, const char *encoding, struct model_options options,
		       struct model *m)
{
	int V;
	assert_ok(method_parse("encoding", position_at, encoding, &options.encoding));
	assert_ok(weights_sizes(weights, "the golden weights", "", &options, &V));
	assert_ok(model_open(&options, V, m));
	assert_ok(weights_fill(m, weights, "the golden weights", "", false, NULL));
}

/* ---- small models: logits, loss, every gradient ---- */

static const struct small {
	const char *golden, *encoding, *table; /* what the golden file calls model.position.table */
} smalls[] = {
	{ "none", "nope", NULL },
	{ "sinusoidal", "sinusoidal(scale=1)", NULL },
	{ "learned", "learned", "pos_emb.weight" },
	{ "t5", "t5(buckets=8,max_distance=16)", "t5.table" },
	{ "t5_per_layer", "t5(buckets=8,max_distance=16,per_layer=on)", NULL },
	{ "alibi", "alibi", NULL },
	{ "rope", "rope(theta=10000)", NULL },
};

struct small_case {
	const struct small *small;
	json_t *root;
	const json_t *settings, *expected; /* of model.json */
	struct safetensors weights, golden;
	struct model model;
	struct transformer *transformer;
	int32_t *token, *target;
	real *logits, *gradient;
};

static const json_t *expected_of(const json_t *root, const char *encoding)
{
	size_t i;
	const json_t *item;
	json_array_foreach(json_object_get(root, "cases"), i, item) {
		const json_t *name = json_object_get(json_object_get(item, "settings"), "encoding");
		if (!strcmp(json_string_value(name), encoding))
			return json_object_get(item, "expected");
	}
	fail_msg("model.json has no case %s", encoding);
	return NULL;
}

static void open_batch(struct small_case *c)
{
	int B = (int)setting(c->settings, "B"), T = (int)setting(c->settings, "T");
	struct transformer_request q = { .model = &c->model, .B = B, .T = T, .gradients = true };
	double *mask = doubles(must_find(&c->weights, "loss_mask"));
	c->token = integers(must_find(&c->weights, "tokens"));
	c->target = integers(must_find(&c->weights, "targets"));
	for (int n = 0; n < B * T; n++)
		if (mask[n] == 0)
			c->target[n] = -1;
	free(mask);
	assert_ok(transformer_open(&q, &c->transformer));
	c->logits = TAKE(real, (size_t)(B * T * c->model.V));
	c->gradient = TAKE(real, c->model.layout.size);
}

static void open_small(struct small_case *c, const struct small *small)
{
	*c = (struct small_case){ .small = small, .root = golden_json("model") };
	char name[64];
	snprintf(name, sizeof name, "model_%s", small->golden);
	c->settings = json_object_get(c->root, "settings");
	c->expected = expected_of(c->root, small->golden);
	c->weights = read_golden("model_weights");
	c->golden = read_golden(name);
	struct model_options options = { .heads = setting(c->settings, "heads"), .train_length = 20 };
	options.rms_eps = json_number_value(json_object_get(c->settings, "rms_eps"));
	open_model(&c->weights, small->encoding, options, &c->model);
	open_batch(c);
}

static void close_small(struct small_case *c)
{
	free(c->token);
	free(c->target);
	free(c->logits);
	free(c->gradient);
	transformer_close(c->transformer);
	model_close(&c->model);
	safetensors_free(&c->golden);
	safetensors_free(&c->weights);
	json_decref(c->root);
}

/* Every item within the tolerance; how many there were. */
static size_t compare(const struct small_case *c, const struct tensor *golden, const real *ours, double tolerance)
{
	double *theirs = doubles(golden);
	size_t items = (size_t)tensor_items(golden);
	for (size_t i = 0; i < items; i++)
		if (!(fabs((double)ours[i] - theirs[i]) <= tolerance))
			fail_msg("%s: %s[%zu] = %.17g, golden %.17g", c->small->golden, golden->name, i,
				 (double)ours[i], theirs[i]);
	free(theirs);
	return items;
}

static const struct tensor *golden_gradient(const struct small_case *c, const struct parameter *p)
{
	const char *name = p->name;
	char table[64];
	int layer, end = 0;
	if (!strcmp(name, "model.position.table"))
		name = c->small->table;
	else if (sscanf(name, "model.layers.%d.self_attn.position.table%n", &layer, &end) == 1 && end) {
		snprintf(table, sizeof table, "t5.layers.%d.table", layer);
		name = table;
	}
	const struct tensor *t = must_find(&c->golden, "grad.%s", name);
	assert_int_equal(t->rank, p->rows ? 2 : 1);
	assert_int_equal(t->shape[t->rank - 1], p->columns);
	assert_int_equal(tensor_items(t), p->size);
	return t;
}

static void check_forward(struct small_case *c)
{
	struct outcome o = transformer_forward(c->transformer, c->token, c->target, c->logits);
	double loss, stated = json_real_value(json_object_get(c->expected, "loss"));
	assert_ok(tensor_to_double(must_find(&c->golden, "loss"), &loss));
	assert_close(o.nll_sum / (double)o.scored, loss, LOGIT_TOLERANCE);
	assert_close(loss, stated, 1e-14);
	assert_int_equal(compare(c, must_find(&c->golden, "logits"), c->logits, LOGIT_TOLERANCE), 2 * 16 * 48);
	const json_t *first = json_object_get(c->expected, "logits_0_0_first4");
	assert_int_equal(json_array_size(first), 4);
	for (size_t i = 0; i < 4; i++)
		assert_close(c->logits[i], json_real_value(json_array_get(first, i)), LOGIT_TOLERANCE);
}

/* All parameters have a gradient in the golden file, and it has no others. */
static void check_gradients(struct small_case *c)
{
	const struct layout *l = &c->model.layout;
	size_t compared = 0, theirs = 0;
	double sum = 0;
	transformer_backward(c->transformer, c->gradient);
	for (int i = 0; i < layout_count(l); i++) {
		const struct parameter *p = &l->parameter[i];
		compared += compare(c, golden_gradient(c, p), c->gradient + p->offset, GRADIENT_TOLERANCE);
	}
	for (int i = 0; i < c->golden.count; i++)
		if (!strncmp(c->golden.tensor[i].name, "grad.", 5))
			theirs += (size_t)tensor_items(&c->golden.tensor[i]);
	for (size_t i = 0; i < l->size; i++)
		sum += fabs((double)c->gradient[i]);
	assert_int_equal(compared, theirs);
	assert_int_equal(compared, l->size);
	assert_int_equal(json_array_size(json_object_get(c->expected, "grad_names")), layout_count(l));
	assert_close(sum, json_real_value(json_object_get(c->expected, "grad_sum_abs")), GRADIENT_TOLERANCE);
}

static void test_small_models(void **state)
{
	(void)state;
	for (int i = 0; i < COUNT(smalls); i++) {
		struct small_case c;
		open_small(&c, &smalls[i]);
		assert_int_equal(c.model.options.layers, setting(c.settings, "layers"));
		assert_int_equal(c.model.options.width, setting(c.settings, "d_model"));
		assert_int_equal(c.model.options.hidden, setting(c.settings, "ffn"));
		assert_int_equal(c.model.V, setting(c.settings, "vocab"));
		check_forward(&c);
		check_gradients(&c);
		/* The workspace is as good as new. */
		check_forward(&c);
		check_gradients(&c);
		close_small(&c);
	}
}

/* ---- trained models: the loss of every scored token ---- */

static const struct {
	int T, scored; /* 35 and 25 of 100 after the first 17, in each of 8, 4, 3, 2, 1 sequences */
} lengths[] = { { 64, 8 * 27 }, { 128, 4 * 65 }, { 256, 3 * 142 }, { 512, 2 * 296 }, { 2048, 1217 } };

struct scaled {
	const char *golden, *scaling;
};

struct batch {
	int B, T;
	int32_t *token, *target, *distance;
};

static struct batch read_batch(const struct safetensors *golden, int T)
{
	const struct tensor *tokens = must_find(golden, "L%d.tokens", T), *scored = must_find(golden, "L%d.scored", T);
	struct batch b = { .B = (int)tokens->shape[0], .T = (int)tokens->shape[1], .token = integers(tokens),
			   .target = integers(must_find(golden, "L%d.targets", T)),
			   .distance = integers(must_find(golden, "L%d.distance", T)) };
	assert_int_equal(b.T, T);
	assert_int_equal(scored->dtype, DTYPE_U8);
	for (int n = 0; n < b.B * T; n++)
		if (!((const unsigned char *)scored->data)[n])
			b.target[n] = -1;
	return b;
}

static void free_batch(struct batch *b)
{
	free(b->token);
	free(b->target);
	free(b->distance);
}

/* How many tokens were scored and compared. */
static int compare_nll(const struct batch *b, const double *nll, const double *golden, const char *method)
{
	int scored = 0;
	for (int n = 0; n < b->B * b->T; n++) {
		if (!(fabs(nll[n] - golden[n]) <= NLL_TOLERANCE * fmax(1, golden[n])))
			fail_msg("%s, length %d, sequence %d, token %d: nll %.17g, golden %.17g", method, b->T,
				 n / b->T, n % b->T, nll[n], golden[n]);
		scored += b->target[n] >= 0;
	}
	return scored;
}

/* Mean NLL of the scored tokens with distance >= least. */
static double mean_nll(const struct batch *b, const double *nll, int least)
{
	double sum = 0;
	int count = 0;
	for (int n = 0; n < b->B * b->T; n++)
		if (b->target[n] >= 0 && b->distance[n] >= least) {
			sum += nll[n];
			count++;
		}
	return sum / count;
}

static void compare_means(const json_t *root, const struct batch *b, const double *nll, const char *method)
{
	size_t i;
	const json_t *row;
	int found = 0;
	json_array_foreach(json_object_get(root, "mean_nll"), i, row) {
		if (setting(row, "length") != b->T ||
		    strcmp(json_string_value(json_object_get(row, "method")), method))
			continue;
		found++;
		assert_close(mean_nll(b, nll, 0), json_real_value(json_object_get(row, "recall")), MEAN_TOLERANCE);
		assert_close(mean_nll(b, nll, INT32_MIN), json_real_value(json_object_get(row, "all_scored")),
			     MEAN_TOLERANCE);
	}
	assert_int_equal(found, 1);
}

static int check_scaled(const struct model *m, const struct batch *b, const struct safetensors *golden,
			const json_t *root, const struct scaled *s)
{
	struct method scaling;
	struct transformer *t;
	struct transformer_request q = { .model = m, .B = b->B, .T = b->T, .scaling = &scaling };
	double *theirs = doubles(must_find(golden, "L%d.nll.%s", b->T, s->golden));
	assert_ok(method_parse("scaling", scaling_at, s->scaling, &scaling));
	assert_ok(transformer_open(&q, &t));
	struct outcome o = transformer_forward(t, b->token, b->target, NULL);
	int compared = compare_nll(b, o.nll, theirs, s->golden);
	assert_int_equal(o.scored, compared);
	compare_means(root, b, o.nll, s->golden);
	transformer_close(t);
	free(theirs);
	return compared;
}

static void check_trained(const char *name, const char *encoding, const struct scaled *scaled, int count)
{
	char part[64];
	snprintf(part, sizeof part, "trained_%s.weights", name);
	struct safetensors weights = read_golden(part);
	snprintf(part, sizeof part, "trained_%s.nll", name);
	struct safetensors golden = read_golden(part);
	snprintf(part, sizeof part, "trained_%s", name);
	json_t *root = golden_json(part);
	const json_t *config = json_object_get(root, "config");
	struct model_options options = { .heads = setting(config, "heads"),
					 .train_length = setting(config, "train_length"),
					 .rms_eps = json_number_value(json_object_get(config, "rms_eps")) };
	struct model m;
	open_model(&weights, encoding, options, &m);
	assert_int_equal(m.layout.size, 94912);
	for (int i = 0; i < COUNT(lengths); i++) {
		struct batch b = read_batch(&golden, lengths[i].T);
		for (int s = 0; s < count; s++)
			assert_int_equal(check_scaled(&m, &b, &golden, root, &scaled[s]), lengths[i].scored);
		free_batch(&b);
	}
	model_close(&m);
	safetensors_free(&golden);
	safetensors_free(&weights);
	json_decref(root);
}

static void test_trained_rope(void **state)
{
	static const struct scaled scaled[] = {
		{ "none", "none" },
		{ "pi", "linear" },
		{ "ntk", "ntk" },
		{ "parts:1:4", "ntk_by_parts(ramp=rotations,beta_slow=1,beta_fast=4)" },
		{ "yarn:1:4", "yarn(ramp=rotations,beta_slow=1,beta_fast=4)" },
		{ "yarn:1:32", "yarn(ramp=rotations,beta_slow=1,beta_fast=32)" },
		{ "logn", "logn" },
		{ "rerope", "rerope" },
		{ "selfext", "self_extend" },
	};
	(void)state;
	check_trained("rope", "rope(theta=500)", scaled, COUNT(scaled));
}

static void test_trained_alibi(void **state)
{
	static const struct scaled scaled[] = { { "none", "none" }, { "logn", "logn" } };
	(void)state;
	check_trained("alibi", "alibi(slopes=spread)", scaled, COUNT(scaled));
}

static int start(void **state)
{
	(void)state;
	return blas_start(2).code;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_models),
		cmocka_unit_test(test_trained_rope),
		cmocka_unit_test(test_trained_alibi),
	};
	return cmocka_run_group_tests_name("model golden", tests, start, NULL);
}
