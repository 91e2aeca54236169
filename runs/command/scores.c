#include "model/base/io.h"
#include "model/base/stb.h"
#include "model/scores.h"
#include "model/weights.h"
#include "runs/command/command.h"
#include "runs/model_input.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct scores_options {
	const char *input, *output, *prefix;
	int64_t length;
	struct method scaling;
};

#define ROW(n, k, i, u, h) \
	.name = #n, .kind = OPTION_##k, .initial = i, .unit = u, .help = h, \
	.offset = offsetof(struct scores_options, n)
static const struct option own[] = {
	{ ROW(input, TEXT, "", "file", "safetensors with q, k, and where wanted v, x, positions, the encoding's own") },
	{ ROW(output, TEXT, "", "file", "safetensors to write: scores, output, embedded") },
	{ ROW(prefix, TEXT, "", "", "what stands before the names in --input, as L64.") },
	{ ROW(scaling, METHOD, "none", "", "RoPE scaling"), .family = scaling_at },
	{ ROW(length, INTEGER, "0", "tokens", "length an `auto` factor is for; 0: the largest position + 1"),
	  .most = 16777216 },
	{ 0 },
};

enum { Q, K, V, X, POSITIONS, GIVEN };
static const char *const name[GIVEN] = { "q", "k", "v", "x", "positions" };

/* What --input holds, and what is made of it. */
struct work {
	const char *path, *prefix;
	struct safetensors file;
	const struct tensor *tensor[GIVEN]; /* NULL: absent */
	int64_t B, H, T, D, C;
	struct arena memory, position_memory;
	double *positions;
	real *value[POSITIONS];             /* NULL: absent */
	real *scores, *output, *embedded;   /* NULL: not asked for */
};

static struct err missing(const struct work *w, int which, const char *why)
{
	return err_usage("--prefix names what stands before the names.", "%s: tensor %s%s is missing: %s", w->path,
			 w->prefix, name[which], why);
}

static void find_tensors(struct work *w)
{
	char full[256];
	for (int i = 0; i < GIVEN; i++) {
		snprintf(full, sizeof full, "%s%s", w->prefix, name[i]);
		w->tensor[i] = safetensors_find(&w->file, full);
	}
}

/* Which of them are needed depends on the encoding's hooks; an x that none would look at counts as absent. */
static struct err check_presence(struct work *w, const struct position *position)
{
	bool looks = position->embed || position->gate;
	if (!looks)
		w->tensor[X] = NULL;
	if (position->gate && !w->tensor[X])
		return missing(w, X, "the encoding's gates are made of it");
	bool alone = position->embed && w->tensor[X] && !w->tensor[V];
	for (int i = Q; i <= K; i++)
		if (!w->tensor[i] && (w->tensor[Q + K - i] || !alone))
			return missing(w, i, "scores are made of q and k");
	return OK;
}

static struct err read_sizes(struct work *w)
{
	const struct tensor *t = w->tensor[Q] ? w->tensor[Q] : w->tensor[X];
	bool heads = w->tensor[Q];
	int rank = heads ? 4 : 3;
	if (t->rank != rank)
		return err_usage(heads ? "It has the shape (B,H,T,D)." : "It has the shape (B,T,C).",
				 "%s: %s has %d axes, not %d", w->path, t->name, t->rank, rank);
	w->B = t->shape[0];
	w->H = heads ? t->shape[1] : 1;
	w->T = t->shape[rank - 2];
	w->D = t->shape[rank - 1];
	if (w->B < 1 || w->H < 1 || w->T < 1 || w->D < 1 || w->B > 1048576 || w->H > 1024 || w->T > 16777216 ||
	    w->D > 65536 || w->H * w->D > 65536)
		return err_usage("B is 1 to 1048576, H 1 to 1024, T 1 to 16777216 and H D 1 to 65536.",
				 "%s: %s has the sizes B %" PRId64 ", H %" PRId64 ", T %" PRId64 ", D %" PRId64,
				 w->path, t->name, w->B, w->H, w->T, w->D);
	w->C = w->H * w->D;
	return OK;
}

static struct err check_shape(const struct work *w, const struct tensor *t, int rank, const int64_t *shape)
{
	char need[100] = "";
	for (int i = 0, n = 0; i < rank; i++)
		n += snprintf(need + n, sizeof need - (size_t)n, "%s%" PRId64, i ? "," : "", shape[i]);
	if (t->rank == rank && !memcmp(t->shape, shape, (size_t)rank * sizeof *shape))
		return OK;
	return err_usage("q, k, v are (B,H,T,D), x is (B,T,C) with C = H D, positions (T).",
			 "%s: %s needs the shape (%s)", w->path, t->name, need);
}

static struct err check_shapes(const struct work *w)
{
	const int64_t heads[4] = { w->B, w->H, w->T, w->D }, rows[3] = { w->B, w->T, w->C };
	for (int i = Q; i <= V; i++)
		if (w->tensor[i])
			TRY(check_shape(w, w->tensor[i], 4, heads));
	if (w->tensor[X])
		TRY(check_shape(w, w->tensor[X], 3, rows));
	return w->tensor[POSITIONS] ? check_shape(w, w->tensor[POSITIONS], 1, &w->T) : OK;
}

/* Heads and width are the tensors'; given by flag they must agree. Without q, heads only have to divide the width. */
static struct err set_options(const struct config *c, const struct work *w, struct model_options *o)
{
	*o = c->model;
	if (config_given(c, "width") && o->width != w->C)
		return err_usage("Leave the option out.", "--width: the tensors of %s have a width of %" PRId64,
				 w->path, w->C);
	if (config_given(c, "heads") && w->tensor[Q] && o->heads != w->H)
		return err_usage("Leave the option out.", "--heads: %s has %" PRId64 " heads", w->path, w->H);
	o->width = w->C;
	if (w->tensor[Q] || !config_given(c, "heads"))
		o->heads = w->H;
	if (!config_given(c, "train_length"))
		weights_rows(&w->file, w->prefix, o);
	return OK;
}

/* Item i of a tensor as name[b][h][t][d]. */
static struct err not_finite(const struct work *w, const char *tensor, const int64_t *shape, int rank, int64_t i,
			     double value)
{
	char index[TENSOR_RANK * 24] = "";
	int64_t below = 1;
	size_t used = 0;
	for (int axis = 1; axis < rank; axis++)
		below *= shape[axis];
	for (int axis = 0; axis < rank; axis++) {
		used += (size_t)snprintf(index + used, sizeof index - used, "[%" PRId64 "]", i / below);
		i %= below;
		below /= axis + 1 < rank ? shape[axis + 1] : 1;
	}
	return err_usage("All items are finite, and in the range of a " REAL_NAME ".", "%s: %s%s is %g", w->path,
			 tensor, index, value);
}

static struct err read_value(const struct work *w, const struct tensor *t, real *value)
{
	TRY(err_at(tensor_to_real(t, value), "%s", w->path));
	for (int64_t i = 0; i < tensor_items(t); i++)
		if (!isfinite(value[i]))
			return not_finite(w, t->name, t->shape, t->rank, i, (double)value[i]);
	return OK;
}

static void place_work(struct arena *a, struct work *w, const struct position *position)
{
	size_t N = (size_t)w->B * (size_t)w->T, items = N * (size_t)w->C;
	bool scored = w->tensor[Q];
	for (int i = 0; i < POSITIONS; i++)
		w->value[i] = w->tensor[i] ? ARENA_TAKE(a, real, items) : NULL;
	w->scores = scored ? ARENA_TAKE(a, real, N * (size_t)w->H * (size_t)w->T) : NULL;
	w->output = w->tensor[V] ? ARENA_TAKE(a, real, items) : NULL;
	w->embedded = w->tensor[X] && position->embed ? ARENA_TAKE(a, real, items) : NULL;
}

static struct err read_positions(struct work *w)
{
	struct arena measure = { 0 };
	arena_take(&measure, (size_t)w->T, sizeof(double));
	TRY(arena_reserve(&w->position_memory, measure.used, "positions"));
	w->positions = ARENA_TAKE(&w->position_memory, double, (size_t)w->T);
	return input_positions(w->path, w->tensor[POSITIONS], (int)w->T, w->positions);
}

static struct err reserve(struct work *w, const struct position *position)
{
	struct arena measure = { 0 };
	place_work(&measure, w, position);
	TRY(arena_reserve(&w->memory, measure.used, "the tensors"));
	place_work(&w->memory, w, position);
	for (int i = 0; i < POSITIONS; i++)
		if (w->tensor[i])
			TRY(read_value(w, w->tensor[i], w->value[i]));
	return OK;
}

/* The encoding's own tensors, from what is left of the file; what it does not know is named once. */
static struct err read_own(const struct work *w, struct model *m)
{
	struct safetensors rest = w->file;
	struct text_builder ignored = { 0 };
	struct tensor *left = NULL;
	for (int i = 0; i < w->file.count; i++) {
		bool known = false;
		for (int j = 0; j < GIVEN; j++)
			known |= w->tensor[j] == &w->file.tensor[i];
		if (!known)
			arrput(left, w->file.tensor[i]);
	}
	rest.tensor = left;
	rest.count = (int)arrlen(left);
	struct err e = weights_fill(m, &rest, w->path, w->prefix, false, &ignored);
	if (!e.code)
		input_ignored(w->path, &ignored);
	for (int i = 0; !e.code && i < layout_count(&m->layout); i++) {
		const struct parameter *p = &m->layout.parameter[i];
		const int64_t shape[2] = { p->rows ? p->rows : 1, p->columns };
		for (size_t j = 0; !e.code && j < p->size; j++)
			if (!isfinite(m->value[p->offset + j]))
				e = not_finite(w, p->name, shape, 2, (int64_t)j, (double)m->value[p->offset + j]);
	}
	text_builder_free(&ignored);
	arrfree(left);
	return e;
}

static struct err write_output(const struct work *w, const char *path)
{
	struct tensor tensor[3];
	int count = 0;
	if (w->scores)
		tensor[count++] = (struct tensor){ .name = "scores", .dtype = REAL_DTYPE, .rank = 4, .data = w->scores,
						   .shape = { w->B, w->H, w->T, w->T } };
	if (w->output)
		tensor[count++] = (struct tensor){ .name = "output", .dtype = REAL_DTYPE, .rank = 4, .data = w->output,
						   .shape = { w->B, w->H, w->T, w->D } };
	if (w->embedded)
		tensor[count++] = (struct tensor){ .name = "embedded", .dtype = REAL_DTYPE, .rank = 3,
						   .data = w->embedded, .shape = { w->B, w->T, w->C } };
	TRY(safetensors_write(path, tensor, count, NULL, 0));
	for (int i = 0; i < count; i++)
		printf("%s%s", i ? ", " : "", tensor[i].name);
	printf(": %s\n", path);
	return OK;
}

/* Says what will be needed, writing the file included, before anything large is reserved; refuses what is too much. */
static struct err plan(const struct work *w, const struct scores_request *q, const struct position *position)
{
	struct work sizes = *w;
	struct arena measure = { 0 };
	char all[32], scores[32], have[MEMORY_AVAILABLE_TEXT];
	size_t attention = 0, squares, total;
	if (w->tensor[Q])
		TRY(scores_bytes(q, &attention));
	place_work(&measure, &sizes, position);
	if (!w->tensor[Q])
		squares = 0;
	else if (__builtin_mul_overflow((size_t)w->B * (size_t)w->H, (size_t)w->T * (size_t)w->T, &squares) ||
		 __builtin_mul_overflow(squares, sizeof(real), &squares))
		squares = SIZE_MAX;
	if (measure.used == SIZE_MAX || __builtin_add_overflow(measure.used, squares, &total) ||
	    __builtin_add_overflow(total, attention, &total))
		total = SIZE_MAX;
	memory_text(total, all);
	memory_text(squares, scores);
	if (total > memory_available())
		return err_usage("Give fewer sequences or heads at once, or shorter ones.",
				 "scores: B %" PRId64 ", H %" PRId64 ", T %" PRId64 " need %s, and %s", w->B,
				 w->H, w->T, all, memory_available_text(have));
	fprintf(stderr, "plan: %s; scores are %s of it, and as much again while they are written\n", all, scores);
	return OK;
}

static struct err compute(struct config *c, struct work *w, const struct model *m)
{
	const struct scores_options *o = c->own;
	const struct position *position = position_of(&m->options.encoding);
	struct method scaling = o->scaling;
	struct scores_request q = { .model = m, .scaling = &scaling, .B = (int)w->B, .T = (int)w->T };
	TRY(read_positions(w));
	double reached = w->positions[w->T - 1] + 1;
	q.positions = w->positions;
	TRY(scaling_check(&scaling, &m->options, reached));
	TRY(input_scaling_length(&scaling, &m->options, reached, o->length));
	TRY(command_start(c));
	TRY(plan(w, &q, position));
	TRY(reserve(w, position));
	q.q = w->value[Q];
	q.k = w->value[K];
	q.v = w->value[V];
	q.x = w->value[X];
	if (w->scores)
		TRY(scores_compute(&q, w->scores, w->output));
	if (w->embedded)
		TRY(scores_embed(&q, w->embedded));
	return write_output(w, o->output);
}

static struct err work(struct config *c, struct work *w, struct model *m)
{
	const struct scores_options *o = c->own;
	struct model_options options;
	w->path = o->input;
	w->prefix = o->prefix;
	TRY(safetensors_read(w->path, &w->file));
	find_tensors(w);
	TRY(check_presence(w, position_of(&c->model.encoding)));
	TRY(read_sizes(w));
	TRY(check_shapes(w));
	TRY(set_options(c, w, &options));
	TRY(scores_model(&options, m));
	TRY(read_own(w, m));
	return compute(c, w, m);
}

static struct err check_files(const struct scores_options *o)
{
	if (!*o->input)
		return err_usage("Write --input=IN.safetensors.", "scores: --input is missing");
	if (!*o->output)
		return err_usage("Write --output=OUT.safetensors.", "scores: --output is missing");
	if (io_same(o->output, o->input))
		return err_usage("Give another --output.", "%s: the output would replace the input", o->output);
	return io_writable(o->output);
}

static struct err run(struct invocation *in)
{
	struct work w = { .path = NULL };
	struct model m = { 0 };
	TRY(config_finish(&in->config, true));
	TRY(check_files(in->config.own));
	struct err e = work(&in->config, &w, &m);
	safetensors_free(&w.file);
	arena_free(&w.memory);
	arena_free(&w.position_memory);
	model_close(&m);
	return e;
}

const struct command command_scores = {
	.name = "scores",
	.words = "",
	.help = "attention's logits for given q and k under an encoding and a scaling",
	.more = "--input has q and k (B,H,T,D) before any rotation. v (the same) adds `output`; x (B,T,C) adds\n"
		"`embedded`, x plus the vectors of an encoding that has them, and may then stand alone. positions (T)\n"
		"are 0, 1, 2 ... unless given. Learned tensors are named as in a model: model.position.table ...\n"
		"Masked scores are -inf.\n"
		"Example:\n  ropewalk scores --encoding=rope --input=in.safetensors --output=out.safetensors",
	.lists = LIST_MODEL | LIST_RUN | LIST_OWN,
	.without = "layers|hidden|rms_eps|tied|out|force|resume|save_every",
	.own = own,
	.own_size = sizeof(struct scores_options),
	.run = run,
};
