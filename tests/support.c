#include "tests/support.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

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
