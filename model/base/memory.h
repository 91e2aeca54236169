#ifndef ROPEWALK_BASE_MEMORY_H
#define ROPEWALK_BASE_MEMORY_H

#include <stddef.h>

/* How much memory there is to be had: asked before work starts, since some libraries end the process, or wait for ever,
 * where there is none. */

/* Bytes this process may still use: the least of what the machine has available, what the control groups it is in (as a
 * container's) leave, and memory_allowed less what was promised. */
size_t memory_available(void);

/* Bytes it may still map under its own limits, those on address space and data (RLIMIT_AS, RLIMIT_DATA; ulimit -v, -d);
 * SIZE_MAX where there is none. */
size_t memory_allowed(void);

/* Bytes of address space that libraries will map later without asking: kept out of memory_available. Replaces what was
 * promised before. */
void memory_promise(size_t bytes);

/* Bytes of address space mapped now; 0 where the system does not say. */
size_t memory_mapped(void);

/* "12.3 MB" */
const char *memory_text(size_t bytes, char text[32]);

/* memory_available for errors: "12.3 MB are available", and what limits it where it is not the machine. */
#define MEMORY_AVAILABLE_TEXT 112
const char *memory_available_text(char text[MEMORY_AVAILABLE_TEXT]);

/* Bytes that a control group with this folder leaves: those between the limit and the use, files' pages that can go
 * at once not counted; SIZE_MAX where there is no limit. Version 2's names (memory.max) or version 1's. For
 * memory_available and its tests. */
size_t memory_group(const char *folder);

#endif
