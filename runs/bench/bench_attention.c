#include "model/attention.h"
#include "model/base/blas.h"
#include "model/base/stb.h"
#include "model/base/threads.h"
#include "model/scores.h"
#include "runs/bench/bench.h"
#include "runs/options.h"
#include "runs/progress.h"

#include <stdio.h>

enum { PRODUCTS_A_TIME = 4 };

/* One head of one sequence under one encoding and scaling. */
struct head {
	const char *name;
	struct method encoding, scaling;
	struct model model; /* the encoding's own tensors */
	struct place place;
	struct zones zones;
	struct attention *attention;
	double *positions;
	real *x, *qkv, *gate, *output, *lse, *saved;
	struct arena memory;
	struct err refused; /* by the encoding, or for lack of memory; then it is not measured */
	double *forward;    /* seconds by repetition; stb_ds array */
};

struct product {
	real *a, *b, *c;
	struct arena memory;
	double *seconds; /* stb_ds array */
};

double attention_flop(int length, int head_dim)
{
	int blocks = (length + BENCH_TILE - 1) / BENCH_TILE;
	double side = BENCH_TILE;
	return 4.0 * head_dim * side * side * blocks * (blocks + 1.0) / 2;
}

/* Those whose attention differs from that of the list's first, and the request's own. */
static bool takes_part(const struct bench_request *q, int index)
{
	const struct position *p = (const struct position *)position_at(index);
	return index == 0 || &p->entry == q->model.encoding.entry || p->gate || p->rotate || p->logits || p->values;
}

static void place_head(int T, int D, struct head *h, struct arena *a)
{
	const struct position *position = position_of(&h->model.options.encoding);
	size_t rows = (size_t)T, width = (size_t)D;
	h->place = place_of(&h->model.options);
	h->positions = ARENA_TAKE(a, double, rows);
	for (int t = 0; h->positions && t < T; t++)
		h->positions[t] = t;
	h->place.T = T;
	h->place.positions = h->positions;
	scaling_zones(&h->scaling, &h->model.options, &h->place, a, &h->zones);
	struct attention_request request = { .place = &h->place, .zones = &h->zones, .B = 1, .threads = 1,
					     .layers = 1 };
	h->attention = attention_place(&request, a);
	h->x = ARENA_TAKE(a, real, rows * width);
	h->qkv = ARENA_TAKE(a, real, rows * 3 * width);
	h->gate = ARENA_TAKE(a, real, rows * (size_t)position->gate_reals);
	h->output = ARENA_TAKE(a, real, rows * width);
	h->lse = ARENA_TAKE(a, real, rows);
	h->saved = ARENA_TAKE(a, real, rows * (size_t)position->saved_reals);
}

static void fill(real *x, size_t count, uint64_t seed)
{
	struct rng rng = rng_at(seed, STREAM_TUNE, 0);
	for (size_t i = 0; i < count; i++)
		x[i] = (real)rng_normal(&rng);
}

static struct place_parameters own_of(const struct head *h)
{
	return (struct place_parameters){ .shared = h->model.value + h->model.layout.position,
					  .layer = h->model.value + h->model.layout.layer[0].position };
}

static void gate_job(int index, int thread, void *data)
{
	struct head *h = data;
	(void)index, (void)thread;
	h->place.position->gate(&h->place, own_of(h), h->place.T, h->x, h->gate);
}

static struct err open_head(const struct bench_request *q, struct head *h)
{
	int T = q->attention_length, D = q->attention_head_dim;
	struct model_options options = q->model;
	struct arena measure = { 0 };
	options.layers = options.heads = 1;
	options.width = D;
	options.encoding = h->encoding;
	options.ssmax = false;
	TRY(scaling_check(&h->scaling, &options, T));
	TRY(scores_model(&options, &h->model));
	layout_initialise(&h->model.layout, 1, h->model.value);
	place_head(T, D, h, &measure);
	TRY(arena_reserve(&h->memory, measure.used, "attention"));
	place_head(T, D, h, &h->memory);
	fill(h->x, (size_t)T * (size_t)D, 2);
	fill(h->qkv, (size_t)T * 3 * (size_t)D, 3);
	if (h->place.position->gate)
		threads_each(1, gate_job, h);
	return OK;
}

static void close_heads(struct head *head)
{
	for (int i = 0; i < arrlen(head); i++) {
		model_close(&head[i].model);
		arena_free(&head[i].memory);
		arrfree(head[i].forward);
	}
	arrfree(head);
}

static double time_head(struct head *h)
{
	struct attention_layer layer = { .own = own_of(h), .qkv = h->qkv, .gate = h->gate, .output = h->output,
					 .lse = h->lse, .saved = h->saved };
	double start = clock_seconds();
	attention_forward(h->attention, &layer);
	return clock_seconds() - start;
}

static void place_product(struct product *p, struct arena *a)
{
	size_t size = BENCH_PRODUCT * BENCH_PRODUCT;
	p->a = ARENA_TAKE(a, real, size);
	p->b = ARENA_TAKE(a, real, size);
	p->c = ARENA_TAKE(a, real, size);
}

static struct err open_product(struct product *p)
{
	struct arena measure = { 0 };
	place_product(p, &measure);
	TRY(arena_reserve(&p->memory, measure.used, "a product"));
	place_product(p, &p->memory);
	fill(p->a, BENCH_PRODUCT * BENCH_PRODUCT, 4);
	fill(p->b, BENCH_PRODUCT * BENCH_PRODUCT, 5);
	return OK;
}

static void product_job(int index, int thread, void *data)
{
	const struct product *p = data;
	int n = BENCH_PRODUCT;
	(void)index, (void)thread;
	blas_library(BLAS_NN, n, n, n, p->a, n, p->b, n, 0, p->c, n);
}

static double time_product(struct product *p)
{
	double start = clock_seconds();
	threads_each(PRODUCTS_A_TIME, product_job, p);
	return (clock_seconds() - start) / PRODUCTS_A_TIME;
}

/* All in turn, a first run of each thrown away. */
static void measure(const struct bench_request *q, struct head *head, struct product *product)
{
	struct progress progress;
	progress_start(&progress, "attention");
	for (int done = 0; bench_more(q, done, progress.start); done++) {
		for (int i = 0; i < arrlen(head); i++) {
			if (head[i].refused.code)
				continue;
			time_head(&head[i]);
			arrput(head[i].forward, time_head(&head[i]));
		}
		time_product(product);
		arrput(product->seconds, time_product(product));
		bench_progress(q, &progress, done + 1);
	}
	progress_end(&progress);
}

static void summarise(const struct head *own, const struct head *head, const struct product *product,
		      struct bench_attention *out)
{
	out->flop = attention_flop(out->length, out->head_dim);
	out->product = timing_of(product->seconds, (int)arrlen(product->seconds));
	for (int i = 0; i < arrlen(head); i++) {
		int count = (int)arrlen(head[i].forward);
		struct bench_head h = { .name = head[i].name, .refused = head[i].refused,
					.forward = timing_of(head[i].forward, count) };
		if (count && count == arrlen(own->forward))
			h.over_own = ratio_of(head[i].forward, own->forward, count);
		arrput(out->head, h);
	}
}

/* The encodings unscaled, then the request's own under each scaling. */
static void list_heads(const struct bench_request *q, struct head **head)
{
	struct method none = method_default(scaling_at(0)), own = method_default(q->model.encoding.entry);
	for (int i = 0; position_at(i); i++)
		if (takes_part(q, i)) {
			struct method encoding = method_default(position_at(i));
			struct head h = { .name = position_at(i)->name, .encoding = encoding, .scaling = none };
			arrput(*head, h);
		}
	for (int i = 1; scaling_at(i); i++) {
		char name[64];
		snprintf(name, sizeof name, "%s, %s", own.entry->name, scaling_at(i)->name);
		struct head h = { .name = text_keep(name), .encoding = own, .scaling = method_default(scaling_at(i)) };
		arrput(*head, h);
	}
}

/* The request's own encoding, unscaled. */
static const struct head *own_head(const struct bench_request *q, const struct head *head)
{
	for (int i = 0; i < arrlen(head); i++)
		if (head[i].encoding.entry == q->model.encoding.entry)
			return &head[i];
	BUG("the encoding %s takes no part", q->model.encoding.entry->name);
}

static struct err attention_alone(const struct bench_request *q, struct bench_attention *out)
{
	struct head *head = NULL;
	struct product product = { .seconds = NULL };
	struct err e = open_product(&product);
	list_heads(q, &head);
	/* Each is where its attention points to: from here on the array does not move. */
	for (int i = 0; i < arrlen(head); i++)
		head[i].refused = open_head(q, &head[i]);
	if (!e.code) {
		measure(q, head, &product);
		summarise(own_head(q, head), head, &product, out);
	}
	close_heads(head);
	arena_free(&product.memory);
	arrfree(product.seconds);
	return e;
}

struct err bench_attention(const struct bench_request *q, struct bench_attention *out)
{
	int threads = threads_count();
	*out = (struct bench_attention){ .length = q->attention_length, .head_dim = q->attention_head_dim };
	threads_start(1);
	struct err e = attention_alone(q, out);
	threads_start(threads);
	return e;
}
