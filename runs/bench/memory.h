#ifndef ROPEWALK_MEMORY_H
#define ROPEWALK_MEMORY_H

#include <stdint.h>

/* Resident memory of this process, in bytes: now (-1 where the system has no /proc), and the most it ever was. */
int64_t resident_now(void);
int64_t resident_peak(void);

#endif
