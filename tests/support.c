/* For nftw. */
#define _GNU_SOURCE
#include "tests/support.h"

#include <ftw.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

void assert_bug(void (*body)(void *data), void *data, const char *part)
{
	char said[512];
	int ends[2], status;
	assert_int_equal(pipe(ends), 0);
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (!child) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
		signal(SIGABRT, SIG_DFL);
		alarm(20);
		dup2(ends[1], 2);
		body(data);
		_exit(0);
	}
	close(ends[1]);
	size_t size = 0;
	for (ssize_t got; size < sizeof said - 1 && (got = read(ends[0], said + size, sizeof said - 1 - size)) > 0;)
		size += (size_t)got;
	said[size] = 0;
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
		fail_msg("no BUG: %s", said);
	assert_non_null(strstr(said, "ropewalk: BUG at "));
	assert_non_null(strstr(said, part));
}

void *take(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size);
	assert_non_null(memory);
	return memory;
}

void fill_normal(uint64_t seed, real *x, size_t count)
{
	struct rng rng = rng_at(seed, STREAM_TUNE, 0);
	for (size_t i = 0; i < count; i++)
		x[i] = (real)rng_normal(&rng);
}

void fill_below(uint64_t seed, int limit, int32_t *x, size_t count)
{
	struct rng rng = rng_at(seed, STREAM_TUNE, 1);
	for (size_t i = 0; i < count; i++)
		x[i] = (int32_t)rng_below(&rng, (uint32_t)limit);
}

json_t *golden_json(const char *name)
{
	char path[256];
	json_error_t error;
	snprintf(path, sizeof path, "tests/golden/%s.json", name);
	json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		fail_msg("%s: %s", path, error.text);
	return root;
}

json_t *golden_part(json_t *root, size_t index, const char *name)
{
	json_t *found = json_object_get(json_array_get(json_object_get(root, "cases"), index), name);
	assert_non_null(found);
	return found;
}

double json_at(const json_t *array, size_t i)
{
	const json_t *value = json_array_get(array, i);
	assert_true(json_is_number(value));
	return json_number_value(value);
}

double json_number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	assert_true(json_is_number(value));
	return json_number_value(value);
}

int folder_make(char path[FOLDER_PATH])
{
	const char *below = getenv("TMPDIR");
	snprintf(path, FOLDER_PATH, "%s/ropewalk-test-XXXXXX", below ? below : getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	return !mkdtemp(path);
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	(void)status, (void)kind, (void)place;
	return remove(path);
}

int folder_remove(const char *path)
{
	return nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
