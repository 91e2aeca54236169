#include "runs/loading.h"

#include "model/base/blas.h"
#include "model/base/memory.h"
#include "model/base/threads.h"
#include "runs/executable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* OpenMP's threads wait for each other by spinning, for milliseconds unless told otherwise; beside another busy program
 * each of those waits keeps a processor from the thread that is waited for. So many turns are longer than most waits,
 * and shorter than a time slice. */
#define SPINCOUNT "GOMP_SPINCOUNT=2000"
/* Products run on our threads, one each; BLAS's own would only take memory. */
#define ONE_THREAD "OPENBLAS_NUM_THREADS=1"
/* Which kernels the library takes. */
#define CORETYPE "OPENBLAS_CORETYPE"

/* The C library's getenv may not know the environment yet. */
static const char *value_of(char **envp, const char *name)
{
	size_t length = strlen(name);
	for (; *envp; envp++)
		if (!strncmp(*envp, name, length) && (*envp)[length] == '=')
			return *envp + length + 1;
	return NULL;
}

static bool waiting_told(char **envp)
{
	return !threads_openmp() || value_of(envp, "OMP_WAIT_POLICY") || value_of(envp, "GOMP_SPINCOUNT");
}

static bool one_thread(char **envp)
{
	const char *threads = value_of(envp, "OPENBLAS_NUM_THREADS");
	return threads && !strcmp(threads, "1");
}

/* Known once the library has been initialised: then the program starts a third time, on processors that are newer than
 * the library. */
static const char *core_wanted(char **envp)
{
	return value_of(envp, CORETYPE) ? NULL : blas_core_wanted();
}

/* Returns only where that fails. */
static void start_once_more(const char *path, char **argv, char **envp)
{
	static char spincount[] = SPINCOUNT, threads[] = ONE_THREAD, coretype[64];
	const char *core = core_wanted(envp);
	size_t count = 0, kept = 0;
	while (envp[count])
		count++;
	char **told = malloc((count + 4) * sizeof *told);
	if (!told)
		return;
	for (size_t i = 0; i < count; i++)
		if (strncmp(envp[i], ONE_THREAD, sizeof ONE_THREAD - 2))
			told[kept++] = envp[i];
	told[kept++] = threads;
	if (!waiting_told(envp))
		told[kept++] = spincount;
	if (core) {
		snprintf(coretype, sizeof coretype, CORETYPE "=%s", core);
		told[kept++] = coretype;
	}
	told[kept] = NULL;
	execve(path, argv, told);
	free(told);
}

struct err loading_prepare(char **argv, char **envp)
{
	if (!one_thread(envp) || !waiting_told(envp) || core_wanted(envp)) {
		const char *path = executable_started();
		if (path)
			start_once_more(path, argv, envp);
	}
	size_t need = blas_loading_bytes(value_of(envp, "OPENBLAS_NUM_THREADS"), value_of(envp, "OMP_NUM_THREADS"));
	size_t allowed = memory_allowed();
	char wanted[32], left[32];
	if (need <= allowed)
		return OK;
	return err_failed("Raise the limit, or set OMP_NUM_THREADS to fewer.", "OpenBLAS takes %s of memory while it is "
			  "loaded, and the limit on address space or data (ulimit -v, -d) leaves %s",
			  memory_text(need, wanted), memory_text(allowed, left));
}
