#include "train/adamw.h"

#include "model/base/phase.h"
#include "model/base/threads.h"
#include "model/base/vec.h"

#include <math.h>

/* The slab is worked on in spans, stretches of one parameter whose ends depend on the layout alone, some of them at a
 * time so that their partial results need no memory of their own. */
enum { SPAN_REALS = 4096, SPANS = 256 };

struct span {
	size_t offset;
	int size;
	bool decayed;
};

struct walk {
	const struct layout *layout;
	int parameter;
	size_t done; /* reals of that parameter */
};

/* The next spans in order; 0 past the last. */
static int walk_on(struct walk *w, struct span span[SPANS])
{
	int count = 0, parameters = layout_count(w->layout);
	while (count < SPANS && w->parameter < parameters) {
		const struct parameter *p = &w->layout->parameter[w->parameter];
		size_t left = p->size - w->done;
		if (left == 0) {
			w->parameter++;
			w->done = 0;
			continue;
		}
		int size = left < SPAN_REALS ? (int)left : SPAN_REALS;
		span[count++] = (struct span){ p->offset + w->done, size, p->decayed };
		w->done += (size_t)size;
	}
	return count;
}

double adamw_rate(const struct train_options *o, int64_t step)
{
	double i = (double)step, warm = 1;
	if (step + 1 < o->warmup)
		warm = (i + 1) / (double)o->warmup;
	double cosine = 0.5 * (1 + cos(M_PI * i / (double)o->steps));
	return o->lr * warm * (o->lr_floor + (1 - o->lr_floor) * cosine);
}

struct norm_spans {
	const real *gradient;
	struct span span[SPANS];
	double sum[SPANS];
};

static void sum_span(int index, int thread, void *data)
{
	(void)thread;
	phase_enter(PHASE_OPTIMISER);
	struct norm_spans *n = data;
	n->sum[index] = vec_sum_squares(n->gradient + n->span[index].offset, n->span[index].size);
}

double gradient_norm(const struct layout *l, const real *gradient)
{
	struct norm_spans n = { .gradient = gradient };
	struct walk walk = { .layout = l };
	double sum = 0;
	for (int count; (count = walk_on(&walk, n.span)) > 0;) {
		threads_each(count, sum_span, &n);
		for (int i = 0; i < count; i++)
			sum += n.sum[i];
	}
	return sqrt(sum);
}

/* The numbers that all elements of a step share. */
struct step {
	real scale, beta1, beta2, one_minus_beta1, one_minus_beta2;
	real rate;          /* over the first moment's bias correction */
	real root_unbias;   /* 1 / sqrt of the second moment's */
	real eps, keep;     /* keep: what weight decay leaves of a value */
};

static struct step step_of(const struct train_options *o, int64_t step, double scale)
{
	double rate = adamw_rate(o, step), t = (double)step + 1;
	return (struct step){
		.scale = (real)scale,
		.beta1 = (real)o->beta1,
		.beta2 = (real)o->beta2,
		.one_minus_beta1 = (real)(1 - o->beta1),
		.one_minus_beta2 = (real)(1 - o->beta2),
		.rate = (real)(rate / (1 - pow(o->beta1, t))),
		.root_unbias = (real)(1 / sqrt(1 - pow(o->beta2, t))),
		.eps = (real)o->adam_eps,
		.keep = (real)(1 - rate * o->weight_decay),
	};
}

static real square_root(real x)
{
#ifdef ROPEWALK_DOUBLE
	return sqrt(x);
#else
	return sqrtf(x);
#endif
}

static void update(struct step s, real keep, int n, const real *restrict gradient, real *restrict m, real *restrict v,
		   real *restrict value)
{
	for (int i = 0; i < n; i++) {
		real g = s.scale * gradient[i];
		m[i] = s.beta1 * m[i] + s.one_minus_beta1 * g;
		v[i] = s.beta2 * v[i] + s.one_minus_beta2 * g * g;
		value[i] = keep * value[i] - s.rate * m[i] / (square_root(v[i]) * s.root_unbias + s.eps);
	}
}

struct update_spans {
	struct step step;
	const real *gradient;
	real *m, *v, *value;
	struct span span[SPANS];
};

static void update_span(int index, int thread, void *data)
{
	(void)thread;
	phase_enter(PHASE_OPTIMISER);
	const struct update_spans *u = data;
	const struct span *span = &u->span[index];
	size_t at = span->offset;
	update(u->step, span->decayed ? u->step.keep : 1, span->size, u->gradient + at, u->m + at, u->v + at,
	       u->value + at);
}

void adamw_update(const struct layout *l, const struct train_options *o, int64_t step, double scale,
		  const real *gradient, real *m, real *v, real *value)
{
	struct update_spans u = {
		.step = step_of(o, step, scale), .gradient = gradient, .m = m, .v = v, .value = value
	};
	struct walk walk = { .layout = l };
	for (int count; (count = walk_on(&walk, u.span)) > 0;)
		threads_each(count, update_span, &u);
}
