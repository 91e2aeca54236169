#include "runs/stop.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t asked;
static struct timespec asked_at; /* only signals look at it, and they wait for each other */

static double seconds_since(const struct timespec *then)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - then->tv_sec) + 1e-9 * (double)(now.tv_nsec - then->tv_nsec);
}

static void on_signal(int signal)
{
	if (asked && seconds_since(&asked_at) > STOP_ECHO)
		_exit(ERR_STOPPED + signal);
	if (asked)
		return;
	clock_gettime(CLOCK_MONOTONIC, &asked_at);
	asked = signal;
}

void stop_catch(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	for (int i = 0; i < (int)(sizeof signals / sizeof *signals); i++) {
		struct sigaction before, action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
		sigemptyset(&action.sa_mask);
		for (int j = 0; j < (int)(sizeof signals / sizeof *signals); j++)
			sigaddset(&action.sa_mask, signals[j]);
		if (!sigaction(signals[i], NULL, &before) && before.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	}
}

bool stop_asked(void)
{
	return asked;
}

struct err stop_error(void)
{
	if (!asked)
		return OK;
	return err_stopped(asked, NULL, "stopped by %s",
			   asked == SIGINT ? "SIGINT" : asked == SIGTERM ? "SIGTERM" : "SIGHUP");
}

bool stop_is(const struct err *e)
{
	return e->code > ERR_STOPPED;
}
