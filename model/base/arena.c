#include "arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

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
	char need[32], have[32];
	size_t available = memory_available();
	*a = (struct arena){ 0 };
	if (bytes > available)
		return err_usage("Choose a smaller batch, length, width or number of layers.",
				 "%s needs %s, and %s are available", what, memory_text(bytes, need),
				 memory_text(available, have));
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

static size_t physical_available(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	if (f) {
		char line[128];
		unsigned long long kilobytes;
		while (fgets(line, sizeof line, f))
			if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1) {
				fclose(f);
				return (size_t)kilobytes * 1024;
			}
		fclose(f);
	}
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	return pages > 0 && page > 0 ? (size_t)pages * (size_t)page : SIZE_MAX / 2;
}

size_t memory_available(void)
{
	size_t available = physical_available();
	struct rlimit limit;
	if (!getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < available)
		available = (size_t)limit.rlim_cur;
	return available;
}

const char *memory_text(size_t bytes, char text[32])
{
	static const char *const unit[] = { "bytes", "kB", "MB", "GB", "TB", "PB", "EB" };
	double amount = (double)bytes;
	int u = 0;
	while (amount >= 1000 && u < 6)
		amount /= 1000, u++;
	snprintf(text, 32, u ? "%.1f %s" : "%.0f %s", amount, unit[u]);
	return text;
}
