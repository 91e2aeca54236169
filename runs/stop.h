#ifndef ROPEWALK_STOP_H
#define ROPEWALK_STOP_H

#include "model/base/err.h"

#include <stdbool.h>

/* Being asked to stop: SIGINT (control-C), SIGTERM and SIGHUP let long work come to a place where it can be saved; a
 * second one ends the program at once, which no file minds. One that comes within STOP_ECHO seconds is the first one
 * told again: `timeout` signals its child and then its group, a closing terminal its jobs by the kernel and by the
 * shell. */
#define STOP_ECHO 0.1

/* From now on. A signal that the caller has had ignored (nohup, a shell's background job) stays ignored. */
void stop_catch(void);

bool stop_asked(void);

/* The error to end work with, if it was asked to stop: ERR_STOPPED + signal, without a hint; OK otherwise. */
struct err stop_error(void);

bool stop_is(const struct err *e); /* is it such an error? */

#endif
