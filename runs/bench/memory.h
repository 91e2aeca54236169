#ifndef ROPEWALK_MEMORY_H
#define ROPEWALK_MEMORY_H

#include <stdint.h>

/* Resident memory of this process, in bytes: now (-1 where the system has no /proc), and the most it ever was. */
int64_t resident_now(void);
int64_t resident_peak(void);

/* Has the allocator give free memory back to the system, where it can, so that the next measure is of what is used. */
void resident_trim(void);

#endif
