#include "runs/stop.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t asked;

static void on_signal(int signal)
{
	if (asked)
		_exit(ERR_STOPPED + signal);
	asked = signal;
}

void stop_catch(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	for (int i = 0; i < (int)(sizeof signals / sizeof *signals); i++) {
		struct sigaction before, action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
		sigemptyset(&action.sa_mask);
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
