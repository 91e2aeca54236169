#include "tests/hostile.h"

#include "model/base/io.h"
#include "model/base/lease.h"
#include "runs/run/run_folder.h"
#include "runs/run/run_log.h"

#include <stdlib.h>
#include <string.h>

/* What a run is resumed by beside its checkpoints: train.jsonl and timing.jsonl, and the lock that may lie there. The
 * input is given to all three readers; it is accepted if a step can be read from it. None of them may refuse. */

static void copy_to(const char *path, const char *data, size_t size)
{
	struct err e = io_write(path, data, size);
	BUG_IF(e.code, "%s", e.text);
}

/* Whatever lies there, the folder is taken, or somebody has it. */
static void read_lock(const char *folder, const char *data, size_t size)
{
	struct lease *lease;
	char holder[LEASE_HOLDER], *path = io_join(folder, LEASE_FILE);
	copy_to(path, data, size);
	struct err e = lease_try(folder, &lease, holder);
	BUG_IF(e.code, "%s", e.text);
	for (const char *c = holder; !lease && *c; c++)
		BUG_IF(*c < ' ' || *c > '~', "a holder's name would steer a terminal");
	lease_release(lease);
	e = io_remove(path);
	BUG_IF(e.code, "%s", e.text);
	free(path);
}

static int64_t steps_of(const char *folder)
{
	int64_t steps;
	struct err e = run_log_steps(folder, &steps);
	BUG_IF(e.code, "%s", e.text);
	return steps;
}

/* Cut back, a log has what it had, and no more. */
static void read_log(const char *folder, int64_t steps)
{
	struct run_logged logged;
	for (int64_t keep = steps; keep >= 0; keep = keep > 1 ? keep / 2 : keep - 1) {
		struct err e = run_log_cut(folder, keep, &logged);
		BUG_IF(e.code, "%s", e.text);
		BUG_IF(steps_of(folder) != keep, "cut to another length");
	}
}

static struct err read(const char *path, const char *again)
{
	char *folder = strndup(path, strlen(path) - strlen("/" RUN_LOG)), *data;
	char *timing = io_join(folder, RUN_TIMING);
	size_t size;
	(void)again;
	struct err e = io_read(path, &data, &size);
	BUG_IF(e.code, "%s", e.text);
	int64_t steps = steps_of(folder);
	copy_to(timing, data, size);
	read_lock(folder, data, size);
	read_log(folder, steps);
	copy_to(path, data, size);
	e = io_remove(timing);
	BUG_IF(e.code, "%s", e.text);
	free(timing);
	free(folder);
	free(data);
	return steps ? OK : err_usage(NULL, "%s: no step", path);
}

const struct target target_logs = { "logs", RUN_LOG, read };
FUZZED(target_logs)
