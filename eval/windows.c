#include "eval/windows.h"

#include "model/base/threads.h"

#include <string.h>

/* Windows go through the model in lots of about this many tokens: enough to fill the matrix products. Documents may be
 * so many times as long together: of a short window at the end of a long one the rest is only made. */
enum { LOT_TOKENS = 16384, UNSEEN = 16 };

/* Lots of even size: as few as LOT_TOKENS allows, and then as small as that number allows. */
static int lot_size(int64_t count, int64_t tokens)
{
	int64_t most = tokens < LOT_TOKENS ? LOT_TOKENS / tokens : 1;
	int64_t lots = (count - 1) / most + 1;
	return (int)((count - 1) / lots + 1);
}

static int documents_of(const struct cut *cut, int sequences)
{
	int64_t seen = (int64_t)cut->windows * cut->length, made = cut->span / UNSEEN;
	return lot_size(sequences, seen > made ? seen : made);
}

int windows_most(const struct cut *cut, int sequences)
{
	return lot_size((int64_t)documents_of(cut, sequences) * cut->windows, cut->length);
}

/* Whole documents are windows as they are. */
static void place(struct arena *a, struct windows *w)
{
	size_t tokens = w->cut.whole ? 0 : (size_t)w->most * (size_t)w->cut.length;
	w->token = ARENA_TAKE(a, int32_t, tokens);
	w->target = ARENA_TAKE(a, int32_t, tokens);
	w->distance = ARENA_TAKE(a, int32_t, tokens);
	w->group = ARENA_TAKE(a, uint8_t, tokens);
}

static struct windows sized(const struct cut *cut, int sequences)
{
	return (struct windows){ .cut = *cut, .documents = documents_of(cut, sequences),
				 .most = windows_most(cut, sequences) };
}

size_t windows_bytes(const struct cut *cut, int sequences)
{
	struct windows w = sized(cut, sequences);
	struct arena all = { 0 };
	place(&all, &w);
	arena_take(&all, batch_bytes(w.documents, cut->span), 1);
	return all.used;
}

struct err windows_open(const struct batch_source *source, const struct cut *cut, int sequences, struct windows *out)
{
	struct arena measure = { 0 };
	*out = sized(cut, sequences);
	BUG_IF(source->length != cut->span, "documents of %d tokens cut as if of %d", source->length, cut->span);
	TRY(batch_open(source, out->documents, &out->batch));
	place(&measure, out);
	TRY(arena_reserve(&out->memory, measure.used, "windows"));
	place(&out->memory, out);
	if (!cut->whole)
		return OK;
	out->token = out->batch.token;
	out->target = out->batch.target;
	out->distance = out->batch.distance;
	out->group = out->batch.group;
	return OK;
}

void windows_close(struct windows *w)
{
	batch_close(&w->batch);
	arena_free(&w->memory);
	*w = (struct windows){ 0 };
}

void windows_make(struct windows *w, uint64_t first, int count)
{
	batch_make(&w->batch, first, count);
}

int windows_document(const struct windows *w, int index)
{
	return (w->first + index) / w->cut.windows;
}

struct sequence windows_at(const struct windows *w, int index)
{
	size_t at = (size_t)index * (size_t)w->cut.length;
	return (struct sequence){ .token = w->token + at, .target = w->target + at, .group = w->group + at,
				  .distance = w->distance + at,
				  .position = w->cut.whole ? w->batch.position + at : NULL };
}

static int32_t opening_of(const struct windows *w)
{
	const struct method *task = w->batch.source.task;
	return task_of(task)->opening ? task_of(task)->opening(task) : -1;
}

static void take_one(int index, int thread, void *data)
{
	(void)thread;
	const struct windows *w = data;
	int window = (w->first + index) % w->cut.windows, from = cut_from(&w->cut, window);
	size_t length = (size_t)w->cut.length, begin = (size_t)cut_begin(&w->cut, window);
	struct sequence to = windows_at(w, index), all = batch_sequence(&w->batch, windows_document(w, index));
	memcpy(to.token, all.token + begin, length * sizeof *to.token);
	memcpy(to.target, all.target + begin, length * sizeof *to.target);
	memcpy(to.distance, all.distance + begin, length * sizeof *to.distance);
	memcpy(to.group, all.group + begin, length * sizeof *to.group);
	if (opening_of(w) >= 0)
		to.token[0] = opening_of(w);
	for (int t = 0; t < from; t++)
		to.target[t] = -1;
}

void windows_take(struct windows *w, int first, int windows)
{
	w->first = first;
	w->count = windows - first < w->most ? windows - first : w->most;
	BUG_IF(w->count < 1, "windows from %d on of %d", first, windows);
	if (w->cut.whole)
		return;
	threads_each(w->count, take_one, w);
	/* Where no window is, any tokens do. */
	size_t length = (size_t)w->cut.length, rest = (size_t)(w->most - w->count) * length;
	memset(w->token + (size_t)w->count * length, 0, rest * sizeof *w->token);
	memset(w->target + (size_t)w->count * length, 0xff, rest * sizeof *w->target);
}
