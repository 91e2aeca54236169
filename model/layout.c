#include "model/layout.h"

#include "model/base/rng.h"
#include "model/base/stb.h"
#include "model/position/position.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

void layout_add(struct layout *l, enum initialiser initialiser, double deviation, bool decayed, int rows, int columns,
		const char *format, ...)
{
	struct parameter p = {
		.rows = rows, .columns = columns,
		.offset = l->size, .size = (size_t)(rows ? rows : 1) * (size_t)columns,
		.initialiser = initialiser, .deviation = deviation, .decayed = decayed,
	};
	va_list list;
	va_start(list, format);
	vsnprintf(p.name, sizeof p.name, format, list);
	va_end(list);
	BUG_IF(layout_find(l, p.name), "two parameters are called %s", p.name);
	l->size += p.size;
	arrput(l->parameter, p);
}

const struct parameter *layout_find(const struct layout *l, const char *name)
{
	for (int i = 0; i < layout_count(l); i++)
		if (!strcmp(l->parameter[i].name, name))
			return &l->parameter[i];
	return NULL;
}

int layout_count(const struct layout *l)
{
	return (int)arrlen(l->parameter);
}

static bool all_finite(const real *x, size_t count)
{
	bool finite = true;
	for (size_t i = 0; i < count; i++)
		finite &= isfinite(x[i]) != 0;
	return finite;
}

const struct parameter *layout_not_finite(const struct layout *l, const real *slab)
{
	for (int i = 0; i < layout_count(l); i++)
		if (!all_finite(slab + l->parameter[i].offset, l->parameter[i].size))
			return &l->parameter[i];
	return NULL;
}

void layout_free(struct layout *l)
{
	arrfree(l->parameter);
	arrfree(l->layer);
	*l = (struct layout){ 0 };
}

/* Adds a matrix N(0, (gain^2) / columns) that weight decay acts on, and returns where it begins. */
static size_t add_matrix(struct layout *l, double gain, int rows, int columns, int layer, const char *name)
{
	size_t offset = l->size;
	layout_add(l, INIT_NORMAL, gain / sqrt(columns), true, rows, columns, "model.layers.%d.%s.weight", layer, name);
	return offset;
}

static size_t add_norm(struct layout *l, int C, int layer, const char *name)
{
	size_t offset = l->size;
	layout_add(l, INIT_ONES, 0, false, 0, C, "model.layers.%d.%s.weight", layer, name);
	return offset;
}

/* So that the mean of s ln n over the trained length is 1, as without it. */
static double ssmax_initial(const struct model_options *o)
{
	double sum = lgamma((double)o->train_length + 1);
	return sum > 0 ? (double)o->train_length / sum : 1;
}

/* Returns where they begin. */
static size_t add_ssmax(const struct model_options *o, struct layout *l, int layer)
{
	size_t offset = l->size;
	if (o->ssmax)
		layout_add(l, INIT_CONSTANT, ssmax_initial(o), false, 0, (int)o->heads,
			   "model.layers.%d.self_attn.ssmax", layer);
	return offset;
}

static void add_layer(const struct model_options *o, struct layout *l, int layer)
{
	int C = (int)o->width, F = (int)o->hidden;
	/* Two branches a layer add to the residual stream: their last matrices start smaller to keep its variance. */
	double residual = 1 / sqrt(2 * (double)o->layers);
	const struct position *position = position_of(&o->encoding);
	struct layer_layout at = { 0 };
	at.input_norm = add_norm(l, C, layer, "input_layernorm");
	at.q = add_matrix(l, 1, C, C, layer, "self_attn.q_proj");
	at.k = add_matrix(l, 1, C, C, layer, "self_attn.k_proj");
	at.v = add_matrix(l, 1, C, C, layer, "self_attn.v_proj");
	at.o = add_matrix(l, residual, C, C, layer, "self_attn.o_proj");
	at.ssmax = add_ssmax(o, l, layer);
	at.position = l->size;
	if (position->declare)
		position->declare(o, l, layer);
	at.position_reals = l->size - at.position;
	if (F) {
		at.post_norm = add_norm(l, C, layer, "post_attention_layernorm");
		at.gate = add_matrix(l, 1, F, C, layer, "mlp.gate_proj");
		at.up = add_matrix(l, 1, F, C, layer, "mlp.up_proj");
		at.down = add_matrix(l, residual, C, F, layer, "mlp.down_proj");
	}
	arrput(l->layer, at);
}

static struct err check(const struct model_options *o)
{
	const struct position *position = position_of(&o->encoding);
	if (o->width % o->heads)
		return err_usage("Choose a width that is a multiple of the heads.",
				 "heads: %lld does not divide the width %lld", (long long)o->heads,
				 (long long)o->width);
	if (position->check)
		TRY(position->check(o, (int)(o->width / o->heads)));
	return OK;
}

struct err layout_build(const struct model_options *options, int V, struct layout *out)
{
	int C = (int)options->width;
	const struct position *position = position_of(&options->encoding);
	*out = (struct layout){ .V = V };
	TRY(check(options));
	/* A head that shares the embedding sees it as its own: logits of variance 1 need the head's deviation. */
	out->embedding = out->size;
	layout_add(out, INIT_NORMAL, options->tied ? 1 / sqrt(C) : 1, false, V, C, "model.embed_tokens.weight");
	out->position = out->size;
	if (position->declare)
		position->declare(options, out, -1);
	for (int layer = 0; layer < options->layers; layer++)
		add_layer(options, out, layer);
	out->norm = out->size;
	layout_add(out, INIT_ONES, 0, false, 0, C, "model.norm.weight");
	out->head = options->tied ? out->embedding : out->size;
	if (!options->tied)
		layout_add(out, INIT_NORMAL, 1 / sqrt(C), true, V, C, "lm_head.weight");
	return OK;
}

struct err layout_position(const struct model_options *o, struct layout *out)
{
	const struct position *position = position_of(&o->encoding);
	struct layer_layout at = { 0 };
	*out = (struct layout){ 0 };
	TRY(check(o));
	for (int layer = -1; layer <= 0; layer++) {
		at.position = out->size;
		if (position->declare)
			position->declare(o, out, layer);
	}
	at.position_reals = out->size - at.position;
	at.ssmax = add_ssmax(o, out, 0);
	arrput(out->layer, at);
	return OK;
}

static real initial_value(const struct parameter *p, struct rng *rng)
{
	switch (p->initialiser) {
	case INIT_NORMAL:
		return (real)(p->deviation * rng_normal(rng));
	case INIT_UNIFORM:
		return (real)(p->deviation * rng_uniform(rng));
	case INIT_ONES:
		return 1;
	case INIT_ZEROS:
		return 0;
	case INIT_CONSTANT:
		return (real)p->deviation;
	}
	BUG("%s has no initialiser", p->name);
}

void layout_initialise(const struct layout *l, uint64_t seed, real *value)
{
	for (int i = 0; i < layout_count(l); i++) {
		const struct parameter *p = &l->parameter[i];
		struct rng rng = rng_at(seed, STREAM_INIT, XXH3_64bits(p->name, strlen(p->name)));
		for (size_t j = 0; j < p->size; j++)
			value[p->offset + j] = initial_value(p, &rng);
	}
}
