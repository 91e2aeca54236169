#ifndef ROPEWALK_IO_H
#define ROPEWALK_IO_H

#include "err.h"

#include <stdbool.h>
#include <stddef.h>

/* The seam between the program and the file system: everything the program reads or writes, standard streams aside,
 * goes through here. */

/* Tests set this to make an operation fail: called before each with its name ("open", "read", "write", "fsync",
 * "rename", "link", "close", "mkdir", "unlink", "truncate", "list") and path; a value other than 0 is the errno it then
 * fails with. */
extern int (*io_fault)(const char *operation, const char *path);

/* Tests set this to let a "read" or "write" come short: called with its size, it returns how many bytes of it are to be
 * done, at least 1. */
extern size_t (*io_most)(const char *operation, const char *path, size_t size);

/* Tests set this to see what has been done to the disk, in order: the operations above that change it, of "open" those
 * that create the file unless it is there. `to` is the new name of "rename" and "link"; the data are those of "write",
 * which stand at the end of the file; "truncate" leaves `size` bytes. */
struct io_event {
	const char *operation, *path, *to;
	const void *data;
	size_t size;
};
extern void (*io_watch)(const struct io_event *event);

/* Tests set this to stand in for what the file system says of the space it has left (io_available). */
extern size_t (*io_space)(const char *folder);

/* The error of a failed operation on a path: what strerror says, with advice. A path that leads nowhere is the user's
 * mistake, all else the machine's. */
struct err io_failure(int error, const char *path, const char *what);

/* What io_write and leases call a file until it is whole, for fnmatch: a killed process may leave one. */
#define IO_TEMPORARY ".ropewalk-*.tmp"

/* A whole file into fresh memory, followed by a NUL byte that `size` does not count; free() it. */
struct err io_read(const char *path, char **data, size_t *size);

/* Writes a whole file so that the path holds either its old content or all of the new one, whatever happens in
 * between: temporary file in the same folder, write, fsync, rename, fsync of the folder. The temporary file is removed
 * on any failure. Of a link what it leads to is written. */
struct err io_write(const char *path, const void *data, size_t size);

/* The same for a file that stands in several pieces, one after the other. */
struct io_part {
	const void *data;
	size_t size;
};
struct err io_write_parts(const char *path, const struct io_part *part, int parts);

/* Would io_write reach the path, as far as can be said before there is something to write? It writes nothing. */
struct err io_writable(const char *path);

/* Adds to the end of a file in one write, creating it if needed; for logs of which one process at a time writes: where
 * only a part could be written, that is cut off again. What is added is on disk for certain after io_sync alone. */
struct err io_append(const char *path, const void *data, size_t size);
struct err io_sync(const char *path); /* a file that does not exist is fine */

/* Makes a folder and, if need be, its parents. An existing folder is fine. */
struct err io_make_folder(const char *path);

/* The names in a folder, sorted; io_names_free them. */
struct err io_list(const char *folder, char ***name, int *count);
void io_names_free(char **name, int count);

/* Bytes that may still be written below a folder, or where it would be made: what its file system, or that of the
 * nearest parent there is, has left for this user. SIZE_MAX if it does not say. */
size_t io_available(const char *folder);

bool io_same(const char *a, const char *b); /* both exist and are one file, whatever the paths */
bool io_exists(const char *path);
bool io_is_folder(const char *path);
struct err io_remove(const char *path); /* a file that does not exist is fine */
struct err io_rename(const char *from, const char *to); /* in one folder; what has the new name goes */

/* "folder/name" in fresh memory; free() it. */
char *io_join(const char *folder, const char *name);

#endif
