#include "tests/hostile.h"

#include "model/base/io.h"
#include "model/base/text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[256];

static void leave(void)
{
	rmdir(folder);
}

/* A folder of this process, made once: in memory if it can be, since what is accepted is written with every care. */
static const char *own_folder(void)
{
	const char *above = getenv("TMPDIR"), *memory = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
	if (*folder)
		return folder;
	snprintf(folder, sizeof folder, "%s/ropewalk-input-XXXXXX", above && *above ? above : memory);
	BUG_IF(!mkdtemp(folder), "%s: cannot be made", folder);
	atexit(leave);
	return folder;
}

/* Without the care of io_write, which takes longer than most readers. */
static void put(const char *path, const void *data, size_t size)
{
	FILE *f = fopen(path, "wb");
	BUG_IF(!f || fwrite(data, 1, size, f) != size || fclose(f), "%s: cannot be written", path);
}

static int entries(const char *path)
{
	int count = 0;
	DIR *d = opendir(path);
	BUG_IF(!d, "%s: cannot be opened", path);
	for (struct dirent *e; (e = readdir(d));)
		count += e->d_name[0] != '.';
	closedir(d);
	return count;
}

static void one_line(const char *text)
{
	char printable[4 * sizeof((struct err){ 0 }).text];
	text_printable(text, printable, sizeof printable);
	BUG_IF(strcmp(text, printable), "an error is not a line to be printed: %s", printable);
}

struct err refusal(struct err e, const char *path)
{
	if (!e.code)
		return e;
	BUG_IF(e.code != ERR_USAGE || !*e.text, "a refusal has the code %d and the text '%s'", (int)e.code, e.text);
	BUG_IF(path && strncmp(e.text, path, strlen(path)), "a refusal does not name the path: %s", e.text);
	one_line(e.text);
	one_line(e.hint);
	return e;
}

struct err target_feed(const struct target *t, const void *data, size_t size)
{
	char *path = io_join(own_folder(), t->file), *again = io_join(own_folder(), "again");
	put(path, data, size);
	struct err e = refusal(t->read(path, again), NULL);
	BUG_IF(e.code && entries(folder) != 1, "a refusal has written a file: %s", e.text);
	unlink(path);
	unlink(again);
	free(path);
	free(again);
	return e;
}
