#include "runs/bench/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Bytes of a line "`name` N kB" of what the system says of this process; -1 if it does not. */
static int64_t status(const char *name)
{
	char line[128];
	long long kilobytes = -1;
	size_t length = strlen(name);
	FILE *f = fopen("/proc/self/status", "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, name, length) && sscanf(line + length, "%lld kB", &kilobytes) == 1)
			break;
	fclose(f);
	return kilobytes < 0 ? -1 : kilobytes * 1024;
}

int64_t resident_now(void)
{
	return status("VmRSS:");
}

/* Linux hands ru_maxrss on from the program that started this one. */
int64_t resident_peak(void)
{
	struct rusage use;
	int64_t peak = status("VmHWM:");
	if (peak >= 0)
		return peak;
	if (getrusage(RUSAGE_SELF, &use))
		return -1;
#ifdef __APPLE__
	return use.ru_maxrss;
#else
	return (int64_t)use.ru_maxrss * 1024;
#endif
}

void resident_trim(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}
