#include "data/batch.h"

#include "model/base/phase.h"
#include "model/base/threads.h"

#include <string.h>

static void place(struct arena *a, int count, int length, struct batch *b)
{
	size_t T = (size_t)length, tokens = (size_t)count * T;
	b->positions = ARENA_TAKE(a, double, T);
	b->position = ARENA_TAKE(a, double, tokens);
	b->token = ARENA_TAKE(a, int32_t, tokens);
	b->target = ARENA_TAKE(a, int32_t, tokens);
	b->distance = ARENA_TAKE(a, int32_t, tokens);
	b->group = ARENA_TAKE(a, uint8_t, tokens);
}

size_t batch_bytes(int count, int length)
{
	struct arena measure = { 0 };
	struct batch ignored;
	place(&measure, count, length, &ignored);
	return measure.used;
}

static void learn_positions(struct batch *b)
{
	const struct batch_source *from = &b->source;
	struct sequence first = batch_sequence(b, 0);
	first.position = b->positions;
	task_of(from->task)->make(from->task, from->train_length, from->seed, from->stream, 0, from->length, &first);
}

void batch_resize(struct batch *b, int length)
{
	BUG_IF(length < 1 || length > b->most, "a batch of up to %d tokens resized to %d", b->most, length);
	b->source.length = length;
	learn_positions(b);
}

struct err batch_open(const struct batch_source *source, int count, struct batch *out)
{
	*out = (struct batch){ .source = *source, .count = count, .most = source->length };
	BUG_IF(count < 1 || source->length < 1, "a batch of %d sequences of %d tokens", count, source->length);
	TRY(task_of(source->task)->check(source->task, source->train_length, source->length));
	TRY(arena_reserve(&out->memory, batch_bytes(count, source->length), "a batch"));
	place(&out->memory, count, source->length, out);
	learn_positions(out);
	return OK;
}

void batch_close(struct batch *b)
{
	arena_free(&b->memory);
	*b = (struct batch){ 0 };
}

struct sequence batch_sequence(const struct batch *b, int index)
{
	size_t at = (size_t)index * (size_t)b->source.length;
	return (struct sequence){
		.token = b->token + at,
		.target = b->target + at,
		.group = b->group + at,
		.distance = b->distance + at,
		.position = b->position + at,
	};
}

struct making {
	struct batch *batch;
	uint64_t first;
};

static void make_one(int index, int thread, void *data)
{
	(void)thread;
	phase_enter(PHASE_DATA);
	const struct making *making = data;
	const struct batch_source *from = &making->batch->source;
	struct sequence s = batch_sequence(making->batch, index);
	uint64_t number = making->first + (uint64_t)index;
	task_of(from->task)->make(from->task, from->train_length, from->seed, from->stream, number, from->length, &s);
	BUG_IF(!task_placed(from->task) && memcmp(s.position, making->batch->positions,
						  (size_t)from->length * sizeof *s.position),
	       "%s: sequence %llu has positions of its own", from->task->entry->name, (unsigned long long)number);
}

void batch_make(struct batch *b, uint64_t first, int count)
{
	BUG_IF(count < 1 || count > b->count, "%d sequences in a batch of %d", count, b->count);
	struct making making = { b, first };
	threads_each(count, make_one, &making);
	size_t T = (size_t)b->source.length, made = (size_t)count * T;
	for (size_t t = made; t < (size_t)b->count * T; t++)
		b->target[t] = -1;
}
