#include "train/course.h"

#include "model/base/rng.h"
#include "model/position/scaling.h"

#include <inttypes.h>
#include <string.h>

int course_longest(const struct model_options *model, const struct train_options *train)
{
	return (int)(train->length ? train->length : model->train_length);
}

int course_shortest(const struct model_options *model, const struct train_options *train)
{
	return train->length_least ? (int)train->length_least : course_longest(model, train);
}

int course_length(const struct model_options *model, const struct train_options *train, int64_t step)
{
	int longest = course_longest(model, train), shortest = course_shortest(model, train);
	if (shortest == longest)
		return longest;
	struct rng r = rng_at((uint64_t)train->seed, STREAM_LENGTH, (uint64_t)step);
	return shortest + (int)rng_below(&r, (uint32_t)(longest - shortest) + 1);
}

bool course_tunes(const struct train_options *train)
{
	return train->base && strcmp(train->base, "none") != 0;
}

/* No base has so many steps of so many sequences. */
#define TUNED_FROM ((uint64_t)1 << 62)

uint64_t course_first(const struct train_options *train, int64_t step)
{
	return (course_tunes(train) ? TUNED_FROM : 0) + (uint64_t)step * (uint64_t)train->batch;
}

int64_t course_tokens(const struct model_options *model, const struct train_options *train, int64_t steps)
{
	int64_t length = course_longest(model, train), sum = 0;
	if (course_shortest(model, train) == length)
		return steps * train->batch * length;
	for (int64_t step = 0; step < steps; step++)
		sum += course_length(model, train, step);
	return sum * train->batch;
}

struct model_options course_model(const struct model_options *model, const struct train_options *train, int64_t step)
{
	struct model_options o = *model;
	int dropped = method_find(o.encoding.entry, "dropped");
	if (train->drop_rope_at && step >= train->drop_rope_at && dropped >= 0)
		method_set(&o.encoding, dropped, (union option_value){ .integer = 1 });
	return o;
}

struct numbering course_numbering(const struct model_options *model, const struct data_options *data)
{
	return (struct numbering){ .options = model, .training = true, .task = data->task.entry->name,
				   .placed = task_placed(&data->task) };
}

static struct err check_lengths(const struct model_options *model, const struct data_options *data,
				const struct train_options *train)
{
	const struct task *task = task_of(&data->task);
	int longest = course_longest(model, train);
	TRY(task->check(&data->task, (int)model->train_length, longest));
	if (train->length_least > longest)
		return err_usage("Give a smaller one, or a greater --length.",
				 "length_least: %" PRId64 " is more than the length, %d", train->length_least, longest);
	for (int T = course_shortest(model, train); T < longest; T++)
		TRY(err_at(task->check(&data->task, (int)model->train_length, T), "length_least"));
	return OK;
}

static struct err check_drop(const struct model_options *model, const struct train_options *train)
{
	int dropped = method_find(model->encoding.entry, "dropped");
	if (!train->drop_rope_at)
		return OK;
	if (dropped < 0)
		return err_usage("Leave it out, or choose --encoding=rope.",
				 "drop_rope_at: there is no rope to remove: the encoding is %s",
				 model->encoding.entry->name);
	if (model->encoding.value[dropped].integer)
		return err_usage("Leave one of them out.",
				 "drop_rope_at: rope is dropped from the start, by %s(dropped=on)",
				 model->encoding.entry->name);
	if (train->drop_rope_at >= train->steps)
		return err_usage("Give fewer, or more --steps.",
				 "drop_rope_at: of %" PRId64 " steps none is left after step %" PRId64, train->steps,
				 train->drop_rope_at);
	return OK;
}

struct err course_check(const struct model_options *model, const struct data_options *data,
			const struct train_options *train)
{
	struct numbering numbering = course_numbering(model, data);
	int longest = course_longest(model, train);
	TRY(check_lengths(model, data, train));
	TRY(positions_check(&numbering, longest));
	TRY(err_at(scaling_check(&model->trained_scaling, model, positions_reach(&numbering, longest)),
		   "trained_scaling"));
	return check_drop(model, train);
}
