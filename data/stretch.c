#include "data/stretch.h"

#include <stdio.h>
#include <string.h>

static bool stretchable(const struct task *task)
{
	return task->may_insert && task->filler;
}

static struct err refuse_task(const struct task *task)
{
	char hint[200] = "Tasks that can:";
	for (int i = 0; task_at(i); i++) {
		size_t used = strlen(hint);
		if (stretchable((const struct task *)task_at(i)))
			snprintf(hint + used, sizeof hint - used, " %s", task_at(i)->name);
	}
	return err_usage(hint, "the task %s cannot be stretched by filler", task->entry.name);
}

static struct err check(const struct batch_source *source)
{
	const struct task *task = task_of(source->task);
	if (!stretchable(task))
		return refuse_task(task);
	if (task_placed(source->task))
		return err_usage("Stretch the same task with positions 0, 1, 2 ...",
				 "the task %s cannot be stretched by filler: it gives its tokens positions of their "
				 "own, and filler has none", task->entry.name);
	if (source->length < source->train_length)
		return err_usage("Give multiples of 1 and above.", "length %d is less than train_length %d: filler can "
				 "only be added", source->length, source->train_length);
	return task->check(source->task, source->train_length, source->train_length);
}

static void place_sequence(struct arena *a, size_t T, struct sequence *s)
{
	s->position = ARENA_TAKE(a, double, T);
	s->token = ARENA_TAKE(a, int32_t, T);
	s->target = ARENA_TAKE(a, int32_t, T);
	s->distance = ARENA_TAKE(a, int32_t, T);
	s->group = ARENA_TAKE(a, uint8_t, T);
}

static void place(struct arena *a, struct stretch *s)
{
	size_t L = (size_t)s->source.train_length, T = (size_t)s->source.length;
	place_sequence(a, L, &s->original);
	place_sequence(a, T, &s->sequence);
	s->origin = ARENA_TAKE(a, int, L);
}

struct err stretch_open(const struct batch_source *source, struct stretch *out)
{
	*out = (struct stretch){ .source = *source };
	TRY(check(source));
	struct arena measure = { 0 };
	place(&measure, out);
	TRY(arena_reserve(&out->memory, measure.used, "a stretched sequence"));
	place(&out->memory, out);
	return OK;
}

void stretch_close(struct stretch *s)
{
	arena_free(&s->memory);
	*s = (struct stretch){ 0 };
}

/* `make` draws from the indices below 2^32. */
static struct rng generator(const struct batch_source *from, uint64_t index)
{
	BUG_IF(index >> 32, "no sequence %llu can be stretched", (unsigned long long)index);
	return rng_at(from->seed, from->stream, (uint64_t)from->length << 32 | index);
}

static bool may_insert(const struct stretch *s, int t)
{
	const struct batch_source *from = &s->source;
	return t > 0 && task_of(from->task)->may_insert(from->task, &s->original, from->train_length, t);
}

static int count_places(const struct stretch *s)
{
	int places = 0;
	for (int t = 0; t < s->source.train_length; t++)
		places += may_insert(s, t);
	BUG_IF(places == 0 && s->source.length > s->source.train_length, "%s: no place for filler in a sequence",
	       s->source.task->entry->name);
	return places;
}

static void put_filler(struct stretch *s, int at, struct rng *r)
{
	const struct method *task = s->source.task;
	s->sequence.token[at] = task_of(task)->filler(task, r);
	s->sequence.target[at] = -1;
	s->sequence.group[at] = 0;
	s->sequence.distance[at] = 0;
	s->sequence.position[at] = at;
}

static void put_token(struct stretch *s, int t, int at)
{
	const struct sequence *from = &s->original;
	BUG_IF(from->position[t] != t, "%s: a task that can be stretched numbers its tokens from 0",
	       s->source.task->entry->name);
	s->origin[t] = at;
	s->sequence.token[at] = from->token[t];
	s->sequence.target[at] = from->target[t];
	s->sequence.group[at] = from->group[t];
	s->sequence.distance[at] = from->target[t] >= 0 ? at - s->origin[t - from->distance[t]] : 0;
	s->sequence.position[at] = at;
}

/* Fillers and the tokens that they may precede stand in random order, but for the last of these tokens, which closes
 * it: so the next is filler with probability left / (left + places), places being the tokens before that last one. */
void stretch_make(struct stretch *s, uint64_t index)
{
	const struct batch_source *from = &s->source;
	int L = from->train_length, left = from->length - L, at = 0;
	task_of(from->task)->make(from->task, L, from->seed, from->stream, index, L, &s->original);
	struct rng r = generator(from, index);
	int places = count_places(s);
	for (int t = 0; t < L; t++) {
		if (may_insert(s, t)) {
			places--;
			while (left > 0 && rng_below(&r, (uint32_t)(left + places)) < (uint32_t)left) {
				put_filler(s, at++, &r);
				left--;
			}
		}
		put_token(s, t, at++);
	}
}
