#include "runs/bench/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

int64_t resident_now(void)
{
	char line[128];
	long long kilobytes = -1;
	FILE *f = fopen("/proc/self/status", "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof line, f) && sscanf(line, "VmRSS: %lld kB", &kilobytes) != 1)
		;
	fclose(f);
	return kilobytes < 0 ? -1 : kilobytes * 1024;
}

int64_t resident_peak(void)
{
	struct rusage use;
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
