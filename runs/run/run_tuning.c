#include "runs/run/run_tuning.h"

#include "model/position/position.h"
#include "model/position/scaling.h"
#include "model/positions.h"
#include "train/course.h"

int64_t tuning_batch(const struct config *base, int64_t length)
{
	int64_t tokens = base->train.batch * course_longest(&base->model, &base->train);
	return tokens / length > 1 ? tokens / length : 1;
}

/* Positions of sequences this long, of a model as it is. */
static struct err check_positions(const struct config *c, int64_t length)
{
	const struct position *position = position_of(&c->model.encoding);
	struct place place = place_of(&c->model);
	struct numbering numbering = course_numbering(&c->model, &c->data);
	TRY(positions_check(&numbering, (int)length));
	return position->reach ? position->reach(&place, (double)(length - 1)) : OK;
}

struct err tuning_config(const struct config *base, const struct method *scaling, int64_t length, int64_t steps,
			 double rate, struct config *out)
{
	*out = *base;
	out->model = course_model(&base->model, &base->train, base->train.steps);
	TRY(check_positions(out, length));
	TRY(scaling_check(scaling, &out->model, (double)length));
	out->model.trained_scaling = scaling_resolved(scaling, &out->model, (double)length);
	out->train.steps = steps;
	out->train.length = length;
	out->train.length_least = 0;
	out->train.drop_rope_at = 0;
	out->train.batch = tuning_batch(base, length);
	out->train.lr = rate * base->train.lr;
	out->train.warmup = (int64_t)(TUNING_WARMUP * (double)steps);
	return OK;
}
