#include "runs/executable.h"

#include "model/base/io.h"
#include "model/base/stb.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif
#ifdef __linux__
#include <sys/auxv.h>
#endif

extern char **environ;

/* Of the program itself; "" if the system does not say. */
static void own_path(char path[PATH_MAX])
{
#ifdef __APPLE__
	uint32_t size = PATH_MAX;
	ssize_t length = _NSGetExecutablePath(path, &size) ? -1 : (ssize_t)strlen(path);
#else
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
#endif
	path[length > 0 ? length : 0] = '\0';
}

const char *executable_folder(char path[PATH_MAX])
{
	own_path(path);
	char *slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	return slash ? path : "";
}

#ifdef __linux__
const char *executable_started(void)
{
	const char *path = (const char *)getauxval(AT_EXECFN);
	/* A loader that is started by name has no base; not every one corrects the path as well. */
	return path && getauxval(AT_BASE) && io_same(path, "/proc/self/exe") ? path : NULL;
}
#else
const char *executable_started(void)
{
	return NULL;
}
#endif

struct err executable_path(char path[PATH_MAX])
{
	const char *started = executable_started();
	if (started)
		snprintf(path, PATH_MAX, "%s", started);
	else
		own_path(path);
	return *path ? OK : err_failed(NULL, "the system does not say where this program lies");
}

static struct err run(char *path, char **arguments, int *code)
{
	pid_t pid;
	char **argv = NULL;
	arrput(argv, path);
	for (int i = 0; arguments[i]; i++)
		arrput(argv, arguments[i]);
	arrput(argv, NULL);
	int status, error = posix_spawn(&pid, path, NULL, NULL, argv, environ);
	arrfree(argv);
	if (error)
		return err_system(error, NULL, "%s: cannot be started", path);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_system(errno, NULL, "%s: cannot be waited for", path);
	if (WIFSIGNALED(status))
		return err_failed(NULL, "%s: ended by signal %d (%s)", path, WTERMSIG(status),
				  strsignal(WTERMSIG(status)));
	*code = WEXITSTATUS(status);
	return OK;
}

struct err executable_run(const char *name, char **arguments, const char *hint, int *code)
{
	char folder[PATH_MAX];
	char *path = io_join(executable_folder(folder), name);
	struct err e = *folder && io_exists(path) ? run(path, arguments, code)
						  : err_failed(hint, "%s: no such program", *folder ? path : name);
	free(path);
	return e;
}
