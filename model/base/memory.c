#include "memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* What small allocations may take on top of what was asked for. */
#define SLACK ((size_t)8 << 20)

static size_t promised_;

static size_t less(size_t a, size_t b)
{
	return a > b ? a - b : 0;
}

static size_t page_size(void)
{
	long page = sysconf(_SC_PAGESIZE);
	return page > 0 ? (size_t)page : 4096;
}

static size_t physical_available(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	if (f) {
		char line[128];
		unsigned long long kilobytes;
		while (fgets(line, sizeof line, f))
			if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1) {
				fclose(f);
				return (size_t)kilobytes * 1024;
			}
		fclose(f);
	}
	long pages = sysconf(_SC_PHYS_PAGES);
	return pages > 0 ? (size_t)pages * page_size() : SIZE_MAX / 2;
}

/* The number that a file begins with, or that follows `name` at the start of a line; false without one ("max"). */
static bool number_in(const char *folder, const char *file, const char *name, size_t *out)
{
	char path[512], line[128];
	unsigned long long value;
	size_t length = name ? strlen(name) : 0;
	bool found = false;
	FILE *f = snprintf(path, sizeof path, "%s/%s", folder, file) < (int)sizeof path ? fopen(path, "r") : NULL;
	while (f && !found && fgets(line, sizeof line, f))
		found = (!name || (!strncmp(line, name, length) && line[length] == ' ')) &&
			sscanf(line + length, "%llu", &value) == 1;
	if (f)
		fclose(f);
	if (found)
		*out = (size_t)value;
	return found;
}

size_t memory_group(const char *folder)
{
	static const struct {
		const char *limit, *use, *files;
	} version[] = { { "memory.max", "memory.current", "inactive_file" },
			{ "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file" } };
	for (int v = 0; v < 2; v++) {
		size_t limit, use, files = 0;
		if (!number_in(folder, version[v].limit, NULL, &limit) || !number_in(folder, version[v].use, NULL, &use))
			continue;
		number_in(folder, "memory.stat", version[v].files, &files);
		/* Version 1 writes the largest number of pages for no limit. */
		return limit >= SIZE_MAX / 4 ? SIZE_MAX : less(limit, less(use, files));
	}
	return SIZE_MAX;
}

/* The least of a group and those above it. In a container the path may be one of outside; its own group then stands at
 * the root. */
static size_t groups_along(const char *root, char *path)
{
	char folder[400];
	size_t least = SIZE_MAX;
	for (;;) {
		if (snprintf(folder, sizeof folder, "%s%s", root, path) < (int)sizeof folder) {
			size_t left = memory_group(folder);
			least = left < least ? left : least;
		}
		char *slash = strrchr(path, '/');
		if (!slash)
			return least;
		*slash = '\0';
	}
}

static size_t groups_available(void)
{
	char line[400];
	size_t least = SIZE_MAX;
	FILE *f = fopen("/proc/self/cgroup", "r");
	while (f && fgets(line, sizeof line, f)) {
		/* "0::PATH", or "4:memory:PATH" with a hierarchy of its own */
		char *kind = strchr(line, ':'), *path = kind ? strchr(kind + 1, ':') : NULL;
		bool first = path && !strncmp(kind, ":memory:", 8), second = path && path == kind + 1;
		if (!first && !second)
			continue;
		path++;
		path[strcspn(path, "\n")] = '\0';
		size_t left = groups_along(first ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup", path);
		least = left < least ? left : least;
	}
	if (f)
		fclose(f);
	return least;
}

/* Pages of /proc/self/statm: field 0 all that is mapped, 5 data and stack. */
static size_t mapped(int field)
{
	unsigned long long pages[6];
	FILE *f = fopen("/proc/self/statm", "r");
	int read = f ? fscanf(f, "%llu %llu %llu %llu %llu %llu", &pages[0], &pages[1], &pages[2], &pages[3], &pages[4],
			      &pages[5]) : 0;
	if (f)
		fclose(f);
	return read == 6 ? (size_t)pages[field] * page_size() : 0;
}

size_t memory_mapped(void)
{
	return mapped(0);
}

static size_t limit_leaves(int resource, int field)
{
	struct rlimit limit;
	if (getrlimit(resource, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return SIZE_MAX;
	return less((size_t)limit.rlim_cur, mapped(field));
}

size_t memory_allowed(void)
{
	size_t space = limit_leaves(RLIMIT_AS, 0), data = limit_leaves(RLIMIT_DATA, 5);
	return space < data ? space : data;
}

void memory_promise(size_t bytes)
{
	promised_ = bytes;
}

/* As memory_available, and what limits it; "" for the machine. */
static size_t available(const char **limited_by)
{
	size_t least = physical_available(), group = groups_available(), allowed = memory_allowed();
	*limited_by = "";
	if (group < least) {
		*limited_by = " in this control group or container";
		least = group;
	}
	if (allowed < SIZE_MAX)
		allowed = less(less(allowed, promised_), SLACK);
	if (allowed < least) {
		*limited_by = " under the limit on address space or data (ulimit -v, -d)";
		least = allowed;
	}
	return least;
}

size_t memory_available(void)
{
	const char *ignored;
	return available(&ignored);
}

const char *memory_available_text(char text[MEMORY_AVAILABLE_TEXT])
{
	const char *limited_by;
	char have[32];
	size_t bytes = available(&limited_by);
	snprintf(text, MEMORY_AVAILABLE_TEXT, "%s are available%s", memory_text(bytes, have), limited_by);
	return text;
}

const char *memory_text(size_t bytes, char text[32])
{
	static const char *const unit[] = { "bytes", "kB", "MB", "GB", "TB", "PB", "EB" };
	double amount = (double)bytes;
	int u = 0;
	while (amount >= 1000 && u < 6)
		amount /= 1000, u++;
	snprintf(text, 32, u ? "%.1f %s" : "%.0f %s", amount, unit[u]);
	return text;
}
