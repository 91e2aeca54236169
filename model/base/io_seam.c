#include "io_seam.h"

#include "io.h"
#include "stb.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int (*io_fault)(const char *operation, const char *path);
size_t (*io_most)(const char *operation, const char *path, size_t size);
void (*io_watch)(const struct io_event *event);

/* Some systems refuse more than 2 GB in one call. */
#define CHUNK ((size_t)1 << 30)

static bool faulty(const char *operation, const char *path)
{
	int error = io_fault ? io_fault(operation, path) : 0;
	if (error)
		errno = error;
	return error;
}

static size_t at_most(const char *operation, const char *path, size_t size)
{
	size_t most = size < CHUNK ? size : CHUNK;
	return io_most ? io_most(operation, path, most) : most;
}

static bool done(const char *operation, const char *path, const char *to, const void *data, size_t size)
{
	if (io_watch)
		io_watch(&(struct io_event){ operation, path, to, data, size });
	return true;
}

int seam_open(const char *path, int flags)
{
	int fd;
	do
		fd = faulty("open", path) ? -1 : open(path, flags | O_CLOEXEC | O_NOCTTY, 0666);
	while (fd < 0 && errno == EINTR);
	if (fd >= 0 && (flags & O_CREAT))
		done("open", path, NULL, NULL, 0);
	return fd;
}

ssize_t seam_read(int fd, const char *path, char *data, size_t size)
{
	ssize_t got;
	do
		got = faulty("read", path) ? -1 : read(fd, data, at_most("read", path, size));
	while (got < 0 && errno == EINTR);
	return got;
}

bool seam_write(int fd, const char *path, const char *data, size_t size)
{
	while (size) {
		ssize_t put = faulty("write", path) ? -1 : write(fd, data, at_most("write", path, size));
		if (put < 0 && errno == EINTR)
			continue;
		if (put == 0)
			errno = EIO;
		if (put <= 0)
			return false;
		done("write", path, NULL, data, (size_t)put);
		data += put;
		size -= (size_t)put;
	}
	return true;
}

bool seam_truncate(int fd, const char *path, size_t size)
{
	return !faulty("truncate", path) && !ftruncate(fd, (off_t)size) && done("truncate", path, NULL, NULL, size);
}

bool seam_fsync(int fd, const char *path)
{
	return !faulty("fsync", path) && !fsync(fd) && done("fsync", path, NULL, NULL, 0);
}

/* An interrupted close has closed. */
bool seam_close(int fd, const char *path)
{
	bool fault = faulty("close", path);
	int error = errno;
	if (fault) {
		close(fd);
		errno = error;
		return error == EINTR;
	}
	return !close(fd) || errno == EINTR;
}

bool seam_rename(const char *from, const char *to)
{
	return !faulty("rename", to) && !rename(from, to) && done("rename", from, to, NULL, 0);
}

bool seam_link(const char *from, const char *to)
{
	return !faulty("link", to) && !link(from, to) && done("link", from, to, NULL, 0);
}

bool seam_unlink(const char *path)
{
	return !faulty("unlink", path) && !unlink(path) && done("unlink", path, NULL, NULL, 0);
}

bool seam_mkdir(const char *path)
{
	return !faulty("mkdir", path) && !mkdir(path, 0777) && done("mkdir", path, NULL, NULL, 0);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

char **seam_list(const char *folder, int *count)
{
	char **name = NULL;
	DIR *directory = faulty("list", folder) ? NULL : opendir(folder);
	if (!directory)
		return NULL;
	errno = 0;
	for (struct dirent *e; (e = readdir(directory)); errno = 0)
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) {
			char *copy = strdup(e->d_name);
			if (!copy)
				break;
			arrput(name, copy);
		}
	int error = errno;
	closedir(directory);
	if (error) {
		seam_names_free(name, (int)arrlen(name));
		errno = error;
		return NULL;
	}
	*count = (int)arrlen(name);
	arrput(name, NULL);
	qsort(name, (size_t)*count, sizeof *name, compare_names);
	/* NOLINTNEXTLINE(-Wanalyzer-malloc-leak): the copies are in the array */
	return name;
}

void seam_names_free(char **name, int count)
{
	for (int i = 0; i < count; i++)
		free(name[i]);
	arrfree(name);
}
