/* For sched_setaffinity. */
#define _GNU_SOURCE
#include "runs/study/cores.h"

#include "model/base/threads.h"

#ifdef __linux__
#include <sched.h>

static cpu_set_t allowed;
static int core_of[CPU_SETSIZE]; /* number among the cores; -1 for a processor that is not allowed */
static int cores = -1;

static int number_of(const int *name, int cpu)
{
	for (int i = 0; i < cpu; i++)
		if (name[i] == name[cpu])
			return core_of[i];
	return cores++;
}

static void look(void)
{
	int name[CPU_SETSIZE];
	if (cores >= 0)
		return;
	cores = 0;
	if (sched_getaffinity(0, sizeof allowed, &allowed))
		CPU_ZERO(&allowed);
	for (int i = 0; i < CPU_SETSIZE; i++) {
		name[i] = CPU_ISSET(i, &allowed) ? threads_core(i) : -1;
		core_of[i] = name[i] < 0 ? -1 : number_of(name, i);
	}
}

int cores_count(void)
{
	look();
	return cores;
}

bool cores_hold(int first, int count)
{
	cpu_set_t own;
	CPU_ZERO(&own);
	look();
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (core_of[i] >= first && core_of[i] < first + count)
			CPU_SET(i, &own);
	return CPU_COUNT(&own) && !sched_setaffinity(0, sizeof own, &own);
}

void cores_release(void)
{
	if (CPU_COUNT(&allowed))
		sched_setaffinity(0, sizeof allowed, &allowed);
}
#else
int cores_count(void)
{
	return 0;
}

bool cores_hold(int first, int count)
{
	(void)first, (void)count;
	return false;
}

void cores_release(void)
{
}
#endif
