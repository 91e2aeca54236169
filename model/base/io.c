#include "io.h"

#include "arena.h"
#include "io_seam.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

size_t (*io_space)(const char *folder);

/* What the user can do about it; NULL where nothing general can be said. */
static const char *advice(int error)
{
	switch (error) {
	case ENOSPC:
	case EDQUOT:
		return "Free some space there, or choose a folder on another disk.";
	case EACCES:
	case EPERM:
		return "Check the permissions of the file and of its folder, or choose another place.";
	case EROFS:
		return "That disk is mounted read-only: choose another place.";
	case ENOENT:
		return "Check the path for a typing mistake.";
	case ENOTDIR:
		return "A part of the path that should be a folder is a file: check the path.";
	case ENAMETOOLONG:
		return "Choose a shorter path.";
	case EMFILE:
	case ENFILE:
		return "Too many files are open at once: close other programs or raise the limit (ulimit -n).";
	case EFBIG:
		return "Files may not grow so large: raise the limit (ulimit -f), or choose a folder on another disk.";
	case ELOOP:
		return "Links lead in a circle there: check the path.";
	case EIO:
		return "The disk reports a defect: choose a folder on another disk.";
	default:
		return NULL;
	}
}

struct err io_failure(int error, const char *path, const char *what)
{
	struct err e = err_system(error, advice(error), "%.400s: %s", path, what);
	if (error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG)
		e.code = ERR_USAGE;
	return e;
}

static struct err not_a_file(const char *path, const char *what, mode_t mode)
{
	return err_usage("Give the path of an ordinary file.", "%.400s: %s: it is a %s, not a file", path, what,
			 S_ISDIR(mode) ? "folder" : S_ISFIFO(mode) ? "pipe" : "special file");
}

/* Opens a regular file. A pipe without a partner must not hang, so opening never waits. */
static struct err open_file(const char *path, int flags, const char *what, int *fd, size_t *size)
{
	struct stat status;
	*fd = -1;
	if (!stat(path, &status) && !S_ISREG(status.st_mode))
		return not_a_file(path, what, status.st_mode);
	*fd = seam_open(path, flags | O_NONBLOCK);
	if (*fd < 0)
		return io_failure(errno, path, what);
	struct err e = OK;
	if (fstat(*fd, &status))
		e = io_failure(errno, path, what);
	else if (!S_ISREG(status.st_mode))
		e = not_a_file(path, what, status.st_mode);
	else
		*size = (size_t)status.st_size;
	if (e.code)
		close(*fd);
	return e;
}

/* Bytes for which nobody is asked whether there is memory: that takes longer than to read them. */
#define SMALL ((size_t)1 << 20)

static struct err read_all(int fd, const char *path, char **data, size_t size)
{
	char need[32], have[32];
	size_t done = 0, available = size < SMALL ? SIZE_MAX : memory_available();
	*data = size < available ? malloc(size + 1) : NULL;
	if (!*data)
		return err_failed("Choose a smaller file, or close other programs.",
				  "%.400s: cannot be read: it takes %s of memory, and %s are available", path,
				  memory_text(size, need), memory_text(memory_available(), have));
	while (done < size) {
		ssize_t got = seam_read(fd, path, *data + done, size - done);
		if (got < 0)
			return io_failure(errno, path, "cannot be read");
		if (got == 0)
			return err_failed("Try again when no other program writes to it.",
					  "%.400s: cannot be read: it became shorter meanwhile", path);
		done += (size_t)got;
	}
	(*data)[size] = '\0';
	return OK;
}

struct err io_read(const char *path, char **data, size_t *size)
{
	int fd;
	*data = NULL;
	*size = 0;
	TRY(open_file(path, O_RDONLY, "cannot be read", &fd, size));
	struct err e = read_all(fd, path, data, *size);
	if (!seam_close(fd, path) && !e.code)
		e = io_failure(errno, path, "cannot be read");
	if (e.code) {
		free(*data);
		*data = NULL;
		*size = 0;
	}
	return e;
}

/* The folder a path stands in, in fresh memory. */
static char *folder_of(const char *path)
{
	struct text_builder b = { 0 };
	const char *slash = strrchr(path, '/');
	if (slash)
		text_add(&b, "%.*s", slash == path ? 1 : (int)(slash - path), path);
	else
		text_add(&b, ".");
	return b.data;
}

/* Creates a file that was not there, in `folder`; its path in fresh memory. The name does not grow with that of the
 * file it stands for, which may have the greatest length there is. */
static int open_temporary(const char *folder, char **path)
{
	static atomic_uint counter;
	for (int attempt = 0;; attempt++) {
		char name[64];
		snprintf(name, sizeof name, ".ropewalk-%ld-%u.tmp", (long)getpid(), atomic_fetch_add(&counter, 1));
		*path = io_join(folder, name);
		int fd = seam_open(*path, O_WRONLY | O_CREAT | O_EXCL);
		if (fd >= 0 || errno != EEXIST || attempt == 1000)
			return fd;
		free(*path);
	}
}

/* Some file systems have nothing to sync in a folder and say so with EINVAL. */
static bool sync_folder(int fd, const char *folder)
{
	return seam_fsync(fd, folder) || errno == EINVAL;
}

/* The temporary file, complete and on disk; false with errno. */
static bool fill_temporary(int fd, const char *temporary, const struct io_part *part, int parts)
{
	bool filled = true;
	for (int i = 0; i < parts && filled; i++)
		filled = seam_write(fd, temporary, part[i].data, part[i].size);
	filled = filled && seam_fsync(fd, temporary);
	int error = errno;
	bool closed = seam_close(fd, temporary);
	if (!filled)
		errno = error;
	return filled && closed;
}

/* false with errno; the temporary file is gone in any case. */
static bool replace(const char *path, const char *folder, const struct io_part *part, int parts)
{
	char *temporary;
	int fd = open_temporary(folder, &temporary);
	bool done = fd >= 0 && fill_temporary(fd, temporary, part, parts) && seam_rename(temporary, path);
	int error = errno;
	if (fd >= 0 && !done)
		seam_unlink(temporary);
	free(temporary);
	errno = error;
	return done;
}

struct err io_write(const char *path, const void *data, size_t size)
{
	const struct io_part whole = { data, size };
	return io_write_parts(path, &whole, 1);
}

/* Interrupted signal after signal, and no longer believed to succeed. */
enum { INTERRUPTIONS = 100 };

/* A file whose fsync was interrupted is not asked again: another takes its place. */
static bool replace_in_the_end(const char *path, const char *folder, const struct io_part *part, int parts)
{
	bool done;
	int attempt = 0;
	do
		done = replace(path, folder, part, parts);
	while (!done && errno == EINTR && ++attempt < INTERRUPTIONS);
	return done;
}

/* Where a path that may be a link leads, in fresh memory: a link that was replaced would leave its target as it was,
 * and /dev/stdout would be no link any more. NULL with errno. */
static char *target_of(const char *path)
{
	struct stat status;
	return !lstat(path, &status) && S_ISLNK(status.st_mode) ? realpath(path, NULL) : strdup(path);
}

static struct err write_target(const char *path, const char *target, const struct io_part *part, int parts)
{
	char *folder = folder_of(target);
	/* The folder is opened first, so that nearly all that can fail does so while the old content stands. */
	int fd = seam_open(folder, O_RDONLY | O_DIRECTORY);
	bool done = fd >= 0 && replace_in_the_end(target, folder, part, parts) && sync_folder(fd, folder);
	int error = errno;
	if (fd >= 0 && !seam_close(fd, folder) && done) {
		error = errno;
		done = false;
	}
	free(folder);
	return done ? OK : io_failure(error, path, "cannot be written");
}

struct err io_write_parts(const char *path, const struct io_part *part, int parts)
{
	struct stat status;
	if (!stat(path, &status) && !S_ISREG(status.st_mode))
		return not_a_file(path, "cannot be written", status.st_mode);
	char *target = target_of(path);
	if (!target)
		return io_failure(errno, path, "cannot be written");
	struct err e = write_target(path, target, part, parts);
	free(target);
	return e;
}

struct err io_writable(const char *path)
{
	struct stat status;
	bool there = !stat(path, &status);
	if (there && !S_ISREG(status.st_mode))
		return not_a_file(path, "cannot be written", status.st_mode);
	if (!there && (errno != ENOENT || !*path))
		return io_failure(errno, path, "cannot be written");
	char *target = target_of(path);
	if (!target)
		return io_failure(errno, path, "cannot be written");
	char *folder = folder_of(target);
	free(target);
	int fd = seam_open(folder, O_RDONLY | O_DIRECTORY);
	bool reached = fd >= 0 && !access(folder, W_OK | X_OK);
	int error = errno;
	if (fd >= 0)
		seam_close(fd, folder);
	free(folder);
	return reached ? OK : io_failure(error, path, "cannot be written");
}

struct err io_append(const char *path, const void *data, size_t size)
{
	int fd;
	size_t old = 0;
	TRY(open_file(path, O_WRONLY | O_APPEND | O_CREAT, "cannot be written", &fd, &old));
	bool done = seam_write(fd, path, data, size);
	int error = errno;
	if (!done)
		seam_truncate(fd, path, old);
	if (!seam_close(fd, path) && done) {
		error = errno;
		done = false;
	}
	return done ? OK : io_failure(error, path, "cannot be written");
}

/* What is on disk in a file or folder is lost if its name is not. A parent that may be written but not read cannot be
 * asked to keep it. */
static struct err sync_name(const char *path, const char *what)
{
	char *parent = folder_of(path);
	int fd = seam_open(parent, O_RDONLY | O_DIRECTORY);
	bool done = fd >= 0 ? sync_folder(fd, parent) : errno == EACCES;
	int error = errno;
	if (fd >= 0 && !seam_close(fd, parent) && done) {
		error = errno;
		done = false;
	}
	free(parent);
	return done ? OK : io_failure(error, path, what);
}

struct err io_sync(const char *path)
{
	int fd;
	size_t size;
	if (!io_exists(path))
		return OK;
	TRY(open_file(path, O_WRONLY | O_APPEND, "cannot be written", &fd, &size));
	bool done = seam_fsync(fd, path);
	int error = errno;
	if (!seam_close(fd, path) && done) {
		error = errno;
		done = false;
	}
	return done ? sync_name(path, "cannot be written") : io_failure(error, path, "cannot be written");
}

/* One folder whose parent exists. Another process may make it at the same time. */
static struct err make_one(const char *path)
{
	if (io_is_folder(path))
		return OK;
	if (seam_mkdir(path))
		return sync_name(path, "cannot be made a folder");
	int error = errno;
	if (error != EEXIST)
		return io_failure(error, path, "cannot be made a folder");
	if (io_is_folder(path))
		return OK;
	return err_usage("Choose another name, or move what is there.",
			 "%.400s: cannot be made a folder: something else has that name", path);
}

struct err io_make_folder(const char *path)
{
	struct text_builder b = { 0 };
	text_add(&b, "%s", path);
	struct err e = OK;
	for (char *slash = b.data + (*b.data == '/'); !e.code && (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		e = make_one(b.data);
		*slash = '/';
	}
	if (!e.code)
		e = make_one(path);
	text_builder_free(&b);
	return e;
}

/* Some file systems know no sizes and say that they have no blocks at all. */
static size_t space_of(const char *folder)
{
	struct statvfs status;
	if (io_space)
		return io_space(folder);
	if (statvfs(folder, &status) || !status.f_blocks || !status.f_frsize)
		return SIZE_MAX;
	return status.f_bavail > SIZE_MAX / status.f_frsize ? SIZE_MAX : status.f_bavail * status.f_frsize;
}

size_t io_available(const char *folder)
{
	char *path = strdup(folder);
	BUG_IF(!path, "out of memory for a path");
	while (!io_is_folder(path) && strcmp(path, ".") && strcmp(path, "/")) {
		char *parent = folder_of(path);
		free(path);
		path = parent;
	}
	size_t space = space_of(path);
	free(path);
	return space;
}

bool io_same(const char *a, const char *b)
{
	struct stat one, other;
	return !stat(a, &one) && !stat(b, &other) && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool io_exists(const char *path)
{
	struct stat status;
	return !stat(path, &status);
}

bool io_is_folder(const char *path)
{
	struct stat status;
	return !stat(path, &status) && S_ISDIR(status.st_mode);
}

struct err io_remove(const char *path)
{
	return seam_unlink(path) || errno == ENOENT ? OK : io_failure(errno, path, "cannot be removed");
}

struct err io_rename(const char *from, const char *to)
{
	return seam_rename(from, to) ? OK : io_failure(errno, from, "cannot be renamed");
}

struct err io_list(const char *folder, char ***name, int *count)
{
	*count = 0;
	*name = seam_list(folder, count);
	return *name ? OK : io_failure(errno, folder, "cannot be listed");
}

void io_names_free(char **name, int count)
{
	seam_names_free(name, count);
}

char *io_join(const char *folder, const char *name)
{
	struct text_builder b = { 0 };
	size_t length = strlen(folder);
	text_add(&b, "%s%s%s", folder, length && folder[length - 1] != '/' ? "/" : "", name);
	return b.data;
}
