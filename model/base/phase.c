#include "phase.h"

#include "threads.h"

#include <time.h>

/* A thread's clock, on a cache line of its own. */
struct stopwatch {
	_Alignas(64) enum phase phase;
	double since;
	double seconds[PHASES];
};

static struct stopwatch stopwatch_[THREADS_MOST];
static bool running_;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

const char *phase_name(enum phase p)
{
	static const char *const name[] = {
#define PHASE(name, text) [PHASE_##name] = text,
		PHASE_LIST
#undef PHASE
	};
	return name[p];
}

static void charge(struct stopwatch *s)
{
	double at = now();
	s->seconds[s->phase] += at - s->since;
	s->since = at;
}

enum phase phase_enter(enum phase p)
{
	if (!running_)
		return p;
	struct stopwatch *s = &stopwatch_[threads_self()];
	enum phase before = s->phase;
	if (before != p)
		charge(s);
	s->phase = p;
	return before;
}

enum phase phase_enter_within(enum phase p)
{
	if (!running_)
		return p;
	enum phase before = stopwatch_[threads_self()].phase;
	return before == PHASE_ELEMENTWISE ? phase_enter(p) : before;
}

void phases_start(void)
{
	for (int t = 0; t < threads_count(); t++)
		stopwatch_[t] = (struct stopwatch){ .phase = PHASE_WAITING, .since = now() };
	running_ = true;
}

void phases_stop(double seconds[PHASES])
{
	running_ = false;
	for (int p = 0; p < PHASES; p++)
		seconds[p] = 0;
	for (int t = 0; t < threads_count(); t++) {
		charge(&stopwatch_[t]);
		for (int p = 0; p < PHASES; p++)
			seconds[p] += stopwatch_[t].seconds[p];
	}
}
