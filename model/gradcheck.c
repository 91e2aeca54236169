#include "model/gradcheck.h"

#include "model/base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Length of the step along each direction: truncation grows with its fourth power, rounding falls with it. Over a kink,
 * as where a position meets another row of a table, differences are wrong at any length; those of shorter steps, which
 * meet fewer, are asked until one agrees. A wrong gradient agrees with none. */
static const double steps[] = { 1e-3, 1e-4, 1e-5, 5e-6, 3e-6, 2e-6, 1e-6, 7e-7, 5e-7, 3e-7 };
/* As close as differences of kinked functions come; in float all of them are rough. */
#define ENOUGH (sizeof(real) == sizeof(double) ? 6e-8 : 0.1)
/* No kinks make it as wrong as this. */
#define HOPELESS 0.2
/* A tensor that changes nothing, as a bias that all logits of a row share, has a gradient that is all rounding: errors
 * below this share of the whole gradient are measured against it. In float differences of the loss are no finer. */
#define FLOOR (sizeof(real) == sizeof(double) ? 1e-4 : 1e-2)

struct check {
	struct model *m;
	struct transformer *t;
	const int32_t *token, *target;
	real *kept; /* the tensor's values */
	signed char *sign;
	size_t step; /* which of the steps agreed last: it will do again */
	double floor;
};

static double loss_at(struct check *c, const struct parameter *p, double step)
{
	real *value = c->m->value + p->offset;
	for (size_t i = 0; i < p->size; i++)
		value[i] = (real)((double)c->kept[i] + step * c->sign[i]);
	struct outcome o = transformer_forward(c->t, c->token, c->target, NULL);
	memcpy(value, c->kept, p->size * sizeof *value);
	return o.nll_sum / (double)o.scored;
}

static double difference(struct check *c, const struct parameter *p, double length)
{
	double step = length / sqrt((double)p->size);
	double near = loss_at(c, p, step) - loss_at(c, p, -step);
	double far = loss_at(c, p, 2 * step) - loss_at(c, p, -2 * step);
	return (8 * near - far) / (12 * step);
}

static double tensor_error(struct check *c, const struct parameter *p, const real *gradient, struct rng *rng)
{
	double along = 0, norm = 0;
	memcpy(c->kept, c->m->value + p->offset, p->size * sizeof *c->kept);
	for (size_t i = 0; i < p->size; i++) {
		double g = (double)gradient[p->offset + i];
		c->sign[i] = rng_below(rng, 2) ? 1 : -1;
		along += c->sign[i] * g;
		norm += g * g;
	}
	double least = INFINITY; /* stays so if nothing is finite */
	size_t count = sizeof steps / sizeof *steps, first = c->step;
	for (size_t i = 0; i < count && !(least <= ENOUGH); i++) {
		c->step = (first + i) % count;
		double error = fabs(difference(c, p, steps[c->step]) - along);
		error = error == 0 ? 0 : error / fmax(sqrt(norm), c->floor);
		least = error < least ? error : least;
		if (!(error < HOPELESS))
			break;
	}
	return isfinite(norm) ? least : NAN;
}

static double norm_of(const real *x, size_t size)
{
	double squares = 0;
	for (size_t i = 0; i < size; i++)
		squares += (double)x[i] * (double)x[i];
	return sqrt(squares);
}

struct gradcheck gradcheck(struct model *m, struct transformer *t, const int32_t *token, const int32_t *target,
			   int directions, uint64_t seed, real *gradient)
{
	struct gradcheck worst = { .tensors = layout_count(&m->layout) };
	struct check c = { .m = m, .t = t, .token = token, .target = target,
			   .kept = malloc((m->layout.size + 1) * sizeof(real)), .sign = malloc(m->layout.size + 1) };
	BUG_IF(!c.kept || !c.sign, "no memory for a gradient check");
	transformer_forward(t, token, target, NULL);
	transformer_backward(t, gradient);
	c.floor = FLOOR * norm_of(gradient, m->layout.size);
	for (int i = 0; i < worst.tensors; i++) {
		struct rng rng = rng_at(seed, STREAM_TUNE, (uint64_t)i);
		for (int d = 0; d < directions; d++) {
			double error = tensor_error(&c, &m->layout.parameter[i], gradient, &rng);
			/* Not a number is the worst there is. */
			if (!(error <= worst.error) && !isnan(worst.error)) {
				worst.error = error;
				worst.worst = &m->layout.parameter[i];
			}
		}
	}
	free(c.kept);
	free(c.sign);
	return worst;
}
