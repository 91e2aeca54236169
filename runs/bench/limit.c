#include "runs/bench/limit.h"

#include "model/base/arena.h"
#include "model/base/blas.h"
#include "model/base/threads.h"

#include <string.h>

/* A thread's share and operands. */
struct share {
	int rows, heads;
	real *x;        /* [rows][widest], or a head's [T][T] */
	real *w;        /* the largest matrix, or a head's */
	real *y;        /* as x */
	real *gradient; /* the largest matrix */
	double flop;    /* of the last run */
};

struct limit {
	struct model_options options;
	int V, T, D, threads;
	size_t widest, matrix, head; /* reals of the widest row, the largest matrix, a head's operand */
	struct share *share;
	struct arena memory;
};

static double matrix_weights(const struct model_options *o, int V)
{
	double C = (double)o->width, F = (double)o->hidden;
	return (double)o->layers * (4 * C * C + 3 * C * F) + C * V;
}

double forward_flop(const struct model_options *o, int V, int batch, int length)
{
	double T = length;
	return 2 * matrix_weights(o, V) * batch * T + 4 * (double)o->layers * batch * T * T * (double)o->width;
}

double limit_flop(const struct model_options *o, int V, int batch)
{
	return 3 * forward_flop(o, V, batch, (int)o->train_length);
}

static size_t greater(size_t a, size_t b)
{
	return a > b ? a : b;
}

static size_t widest_of(const struct model_options *o, int V)
{
	return greater(greater(3 * (size_t)o->width, 2 * (size_t)o->hidden), (size_t)V);
}

/* Of `total`, what falls to thread t. */
static int part(int64_t total, int t, int threads)
{
	return (int)(total * (t + 1) / threads - total * t / threads);
}

static struct limit *place(const struct model_options *o, int V, int batch, struct arena *a)
{
	struct limit measured, *placed = ARENA_TAKE(a, struct limit, 1), *l = placed ? placed : &measured;
	*l = (struct limit){ .options = *o, .V = V, .T = (int)o->train_length, .D = (int)(o->width / o->heads),
			     .threads = threads_count(), .widest = widest_of(o, V) };
	l->matrix = l->widest * (size_t)o->width;
	l->head = (size_t)l->T * greater((size_t)l->T, (size_t)l->D);
	l->share = ARENA_TAKE(a, struct share, (size_t)l->threads);
	for (int t = 0; t < l->threads; t++) {
		struct share s = { .rows = part((int64_t)batch * l->T, t, l->threads),
				   .heads = part((int64_t)batch * o->heads, t, l->threads) };
		size_t panel = greater((size_t)s.rows * l->widest, l->head);
		s.x = ARENA_TAKE(a, real, panel);
		s.w = ARENA_TAKE(a, real, greater(l->matrix, l->head));
		s.y = ARENA_TAKE(a, real, panel);
		s.gradient = ARENA_TAKE(a, real, l->matrix);
		if (l->share)
			l->share[t] = s;
	}
	return placed;
}

static void fill(real *x, size_t count, size_t period)
{
	for (size_t i = 0; i < count; i++)
		x[i] = (real)0.001 * (real)(i % period);
}

struct err limit_open(const struct model_options *options, int V, int batch, struct limit **out)
{
	struct arena memory, measure = { 0 };
	*out = NULL;
	place(options, V, batch, &measure);
	TRY(arena_reserve(&memory, measure.used, "the limit's operands"));
	struct limit *l = *out = place(options, V, batch, &memory);
	l->memory = memory; /* NOLINT(clang-analyzer-core.NullDereference): NULL is placed while measuring alone */
	for (int t = 0; t < l->threads; t++) {
		fill(l->share[t].x, greater((size_t)l->share[t].rows * l->widest, l->head), 7);
		fill(l->share[t].w, greater(l->matrix, l->head), 5);
	}
	return OK;
}

void limit_close(struct limit *l)
{
	if (!l)
		return;
	struct arena memory = l->memory;
	arena_free(&memory);
}

static void product(struct share *s, enum blas_kind kind, int m, int n, int k, const real *a, int lda, const real *b,
		    int ldb, real beta, real *c, int ldc)
{
	blas_library(kind, m, n, k, a, lda, b, ldb, beta, c, ldc);
	s->flop += 2.0 * m * n * k;
}

/* One linear layer: forward, gradient of its input, gradient of its weights. */
static void linear_products(struct share *s, int in, int out)
{
	product(s, BLAS_NT, s->rows, out, in, s->x, in, s->w, in, 0, s->y, out);
	product(s, BLAS_NN, s->rows, in, out, s->x, out, s->w, in, 0, s->y, in);
	product(s, BLAS_TN, out, in, s->rows, s->x, out, s->x, in, 1, s->gradient, in);
}

/* One head: q k^T, p v; then d_output v^T, d_logits k, and d_logits^T q, p^T d_output. */
static void head_products(struct share *s, int T, int D)
{
	product(s, BLAS_NT, T, T, D, s->x, D, s->w, D, 0, s->y, T);
	product(s, BLAS_NN, T, D, T, s->x, T, s->w, D, 0, s->y, D);
	product(s, BLAS_NT, T, T, D, s->x, D, s->w, D, 0, s->y, T);
	product(s, BLAS_NN, T, D, T, s->x, T, s->w, D, 0, s->y, D);
	product(s, BLAS_TN, T, D, T, s->x, T, s->w, D, 0, s->y, D);
	product(s, BLAS_TN, T, D, T, s->x, T, s->w, D, 0, s->y, D);
}

static void run_share(int index, int thread, void *data)
{
	struct limit *l = data;
	struct share *s = &l->share[index];
	int C = (int)l->options.width, F = (int)l->options.hidden;
	(void)thread;
	s->flop = 0;
	/* The sums would grow from run to run. */
	memset(s->gradient, 0, l->matrix * sizeof(real));
	for (int layer = 0; layer < l->options.layers; layer++) {
		linear_products(s, C, 3 * C);
		linear_products(s, C, C);
		if (F) {
			linear_products(s, C, 2 * F);
			linear_products(s, F, C);
		}
		for (int h = 0; h < s->heads; h++)
			head_products(s, l->T, l->D);
	}
	linear_products(s, C, l->V);
}

double limit_run(struct limit *l)
{
	double flop = 0;
	threads_each(l->threads, run_share, l);
	for (int t = 0; t < l->threads; t++)
		flop += l->share[t].flop;
	return flop;
}
