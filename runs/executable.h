#ifndef ROPEWALK_EXECUTABLE_H
#define ROPEWALK_EXECUTABLE_H

#include "model/base/err.h"

#include <limits.h>

/* The running program's own place, and the programs that lie beside it. */

/* Folder of the running program, "" if the system does not say. */
const char *executable_folder(char path[PATH_MAX]);

/* Path by which the running program can be started once more: executable_started, else its own. */
struct err executable_path(char path[PATH_MAX]);

/* The path by which the system started this program; by it the program keeps its name (ps, pgrep, perf) where it starts
 * once more. NULL if the system does not say, if another file stands there by now, or if the process is that of another
 * program which carries this one: ld.so, valgrind, qemu-user. */
const char *executable_started(void);

/* Runs the program `name` of that folder with these arguments (NULL stands behind the last; its own name before the
 * first is added) and the same standard streams, and waits. `code` receives its exit code. To be called before threads
 * are started. Errors: there is no such program (`hint` says how to get it), it cannot be started, or a signal ended
 * it. */
struct err executable_run(const char *name, char **arguments, const char *hint, int *code);

#endif
