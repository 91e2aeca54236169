#include "arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *arena_take(struct arena *a, size_t count, size_t item)
{
	size_t bytes, end;
	if (__builtin_mul_overflow(count, item, &bytes) ||
	    __builtin_add_overflow(bytes, (size_t)ARENA_ALIGNMENT - 1, &bytes) ||
	    __builtin_add_overflow(a->used, bytes & ~(size_t)(ARENA_ALIGNMENT - 1), &end)) {
		a->used = SIZE_MAX;
		return NULL;
	}
	void *taken = a->base ? a->base + a->used : NULL;
	BUG_IF(a->base && end > a->size, "an arena of %zu bytes was asked for %zu", a->size, end);
	a->used = end;
	return taken;
}

/* A NaN for both halves as floats, and for the whole as a double; a huge number as integers. */
static void fill(char *memory, size_t bytes)
{
#ifdef ROPEWALK_POISON
	static const uint64_t poison = 0x7ff4dead7fa0dead;
	for (size_t i = 0; i < bytes; i += sizeof poison)
		memcpy(memory + i, &poison, sizeof poison);
#elif defined ROPEWALK_UNFILLED
	(void)memory, (void)bytes;
#else
	memset(memory, 0, bytes);
#endif
}

struct err arena_reserve(struct arena *a, size_t bytes, const char *what)
{
	char need[32], have[MEMORY_AVAILABLE_TEXT];
	*a = (struct arena){ 0 };
	if (bytes > memory_available())
		return err_usage("Choose a smaller batch, length, width or number of layers.",
				 "%s needs %s, and %s", what, memory_text(bytes, need), memory_available_text(have));
	size_t padded = (bytes + ARENA_ALIGNMENT - 1) & ~(size_t)(ARENA_ALIGNMENT - 1);
	padded += padded == 0 ? ARENA_ALIGNMENT : 0;
	a->base = aligned_alloc(ARENA_ALIGNMENT, padded);
	if (!a->base)
		return err_failed("Choose a smaller batch, length, width or number of layers.",
				  "%s: no memory for %s", what, memory_text(bytes, need));
	fill(a->base, padded);
	a->size = padded;
	return OK;
}

void arena_free(struct arena *a)
{
	free(a->base);
	*a = (struct arena){ 0 };
}
