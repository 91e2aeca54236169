#ifndef ROPEWALK_STB_H
#define ROPEWALK_STB_H

/* stb_ds with a reallocation that never returns NULL: running out of memory for a small table ends the program with a
 * message instead of a crash. Large blocks come from arenas, which report. */

#include <stddef.h>

void *stb_reallocate(void *old, size_t size);

#define STBDS_REALLOC(context, pointer, size) stb_reallocate(pointer, size)
#define STBDS_FREE(context, pointer) free(pointer)
#include <stdlib.h>
#include <stb_ds.h>

#endif
