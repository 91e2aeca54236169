#include "runs/run/run_tuning.h"

#include "model/position/scaling.h"
#include "train/course.h"

int64_t tuning_batch(const struct config *base, int64_t length)
{
	int64_t tokens = base->train.batch * course_longest(&base->model, &base->train);
	return tokens / length > 1 ? tokens / length : 1;
}

struct err tuning_config(const struct config *base, const struct method *scaling, int64_t length, int64_t steps,
			 double rate, struct config *out)
{
	*out = *base;
	out->model = course_model(&base->model, &base->train, base->train.steps);
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
