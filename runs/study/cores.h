#ifndef ROPEWALK_CORES_H
#define ROPEWALK_CORES_H

#include <stdbool.h>

/* Where processes run: on cores of their own. Only on Linux; elsewhere there are 0 cores to be had. */

/* Cores that this process may use. */
int cores_count(void);

/* What this thread starts from now on runs on cores first .. first + count - 1 of these alone; false: anywhere.
 * cores_release ends it. */
bool cores_hold(int first, int count);
void cores_release(void);

#endif
