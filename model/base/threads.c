/* For sched_getaffinity. */
#define _GNU_SOURCE
#include "threads.h"

#include "err.h"
#include "phase.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#include <pthread.h>
#endif
#ifdef __linux__
#include <sched.h>
#endif
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

static int count_ = 1;

int threads_core(int processor)
{
	char path[96];
	int first = processor;
	snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", processor);
	FILE *f = fopen(path, "r");
	if (f) {
		if (fscanf(f, "%d", &first) != 1 || first < 0)
			first = processor;
		fclose(f);
	}
	return first;
}

#ifdef __linux__
/* Counts those this process may run on. */
static int physical_cores(void)
{
	cpu_set_t allowed;
	if (sched_getaffinity(0, sizeof allowed, &allowed))
		return 1;
	bool seen[CPU_SETSIZE] = { false };
	int cores = 0;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		int core = threads_core(cpu);
		core = core < CPU_SETSIZE ? core : cpu;
		cores += !seen[core];
		seen[core] = true;
	}
	return cores ? cores : 1;
}
#elif defined(__APPLE__)
static int physical_cores(void)
{
	int cores = 1;
	size_t size = sizeof cores;
	if (sysctlbyname("hw.perflevel0.physicalcpu", &cores, &size, NULL, 0) &&
	    sysctlbyname("hw.physicalcpu", &cores, &size, NULL, 0))
		return 1;
	return cores > 0 ? cores : 1;
}
#else
static int physical_cores(void)
{
	return 1;
}
#endif

/* OMP_NUM_THREADS, its outermost level; 0 where it is not set. OpenMP's own answer would be that of the last
 * omp_set_num_threads. */
static int environment_threads(void)
{
	const char *text = getenv("OMP_NUM_THREADS");
	long count = text ? strtol(text, NULL, 10) : 0;
	return count > 0 && count <= THREADS_MOST ? (int)count : 0;
}

int threads_start(int count)
{
#ifdef _OPENMP
	if (count < 1)
		count = environment_threads();
	if (count < 1)
		count = physical_cores();
	if (count > THREADS_MOST)
		count = THREADS_MOST;
	omp_set_dynamic(0);
	omp_set_num_threads(count);
	count_ = count;
#else
	(void)count;
	(void)physical_cores, (void)environment_threads;
	count_ = 1;
#endif
	return count_;
}

#ifdef _OPENMP
/* "16M": a number of kB, or of bytes (B), MB, GB; 0 where it is not set. */
static size_t environment_stack(const char *name)
{
	const char *text = getenv(name);
	char *unit;
	unsigned long long size = text ? strtoull(text, &unit, 10) : 0;
	if (!size)
		return 0;
	switch (unit[strspn(unit, " \t")] | 0x20) {
	case 'b': return (size_t)size;
	case 'm': return (size_t)size << 20;
	case 'g': return (size_t)size << 30;
	default: return (size_t)size << 10;
	}
}

size_t threads_stack(void)
{
	pthread_attr_t attributes;
	size_t size = environment_stack("OMP_STACKSIZE");
	size = size ? size : environment_stack("GOMP_STACKSIZE");
	if (size || pthread_attr_init(&attributes))
		return size;
	pthread_attr_getstacksize(&attributes, &size);
	pthread_attr_destroy(&attributes);
	return size;
}
#else
size_t threads_stack(void)
{
	return 0;
}
#endif

int threads_count(void)
{
	return count_;
}

int threads_self(void)
{
#ifdef _OPENMP
	return omp_get_thread_num();
#else
	return 0;
#endif
}

bool threads_openmp(void)
{
#ifdef _OPENMP
	return true;
#else
	return false;
#endif
}

/* A thread's share of a loop's indices, on a cache line of its own. */
struct share {
	_Alignas(64) atomic_int next;
	int end;
};
static struct share share_[THREADS_MOST];

/* Is this thread in a loop's body? OpenMP knows of no region where there is one thread. */
static _Thread_local bool working_;

/* Works off its own share, then what is left of the others': the same indices meet the same caches again from loop to
 * loop, and a slow core holds no one up. */
static void work(int thread, void (*body)(int index, int thread, void *data), void *data)
{
	enum phase before = phase_enter(PHASE_ELEMENTWISE);
	working_ = true;
	for (int turn = 0; turn < count_; turn++) {
		struct share *s = &share_[(thread + turn) % count_];
		int index;
		while ((index = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->end)
			body(index, thread, data);
	}
	working_ = false;
	phase_enter(before);
}

static void give_share(int thread, int first, int end)
{
	atomic_store_explicit(&share_[thread].next, first, memory_order_relaxed);
	share_[thread].end = end;
}

static void work_shares(void (*body)(int index, int thread, void *data), void *data)
{
#pragma omp parallel num_threads(count_)
	work(threads_self(), body, data);
}

void threads_each(int count, void (*body)(int index, int thread, void *data), void *data)
{
	BUG_IF(working_, "threads_each inside threads_each");
	for (int t = 0; t < count_; t++)
		give_share(t, (int)((int64_t)count * t / count_), (int)((int64_t)count * (t + 1) / count_));
	work_shares(body, data);
}

void threads_take(int count, void (*body)(int index, int thread, void *data), void *data)
{
	BUG_IF(working_, "threads_take inside threads_each");
	for (int t = 0; t < count_; t++)
		give_share(t, 0, t ? 0 : count);
	work_shares(body, data);
}
