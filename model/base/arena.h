#ifndef ROPEWALK_ARENA_H
#define ROPEWALK_ARENA_H

#include "err.h"
#include "memory.h"

#include <stddef.h>

/* One block of memory, handed out front to back. A layout is written once, as a function that takes from an arena,
 * and called twice: on an empty arena it only measures (every pointer is NULL, `used` grows), then on a reserved one
 * it places. So the measure and the placement cannot disagree. */
struct arena {
	char *base;  /* NULL: measuring */
	size_t size; /* bytes reserved */
	size_t used; /* bytes handed out; SIZE_MAX once a sum has overflowed */
};

#define ARENA_ALIGNMENT 64

/* Next `count` items of `item` bytes, aligned to 64; NULL while measuring. Taking past the reserved size is a BUG. */
void *arena_take(struct arena *a, size_t count, size_t item);
#define ARENA_TAKE(a, type, count) ((type *)arena_take(a, count, sizeof(type)))

/* Reserves memory for what was measured. `what` names the plan in the error. arena_free takes it back. Nothing may be
 * read before it is written: the memory is zeroed, but all NaN (as floats and as doubles) where ROPEWALK_POISON is
 * defined (under sanitizers), and as it comes where ROPEWALK_UNFILLED is (under valgrind, which knows what was not
 * written). */
struct err arena_reserve(struct arena *a, size_t bytes, const char *what);
void arena_free(struct arena *a);

#endif
