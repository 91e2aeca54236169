#ifndef ROPEWALK_IO_H
#define ROPEWALK_IO_H

#include "err.h"

#include <stdbool.h>
#include <stddef.h>

/* The seam between the program and the file system: everything the program reads or writes, standard streams aside,
 * goes through here. */

/* Tests set this to make an operation fail: called before each with its name ("open", "read", "write", "fsync",
 * "rename", "close", "mkdir", "unlink") and path; a value other than 0 is the errno it then fails with. */
extern int (*io_fault)(const char *operation, const char *path);

/* Tests set this to stand in for what the file system says of the space it has left (io_available). */
extern size_t (*io_space)(const char *folder);

/* A whole file into fresh memory, followed by a NUL byte that `size` does not count; free() it. */
struct err io_read(const char *path, char **data, size_t *size);

/* Writes a whole file so that the path holds either its old content or all of the new one, whatever happens in
 * between: temporary file in the same folder, write, fsync, rename, fsync of the folder. The temporary file is removed
 * on any failure. */
struct err io_write(const char *path, const void *data, size_t size);

/* Would io_write reach the path, as far as can be said before there is something to write? It writes nothing. */
struct err io_writable(const char *path);

/* Adds to the end of a file in one write, creating it if needed; for logs. */
struct err io_append(const char *path, const void *data, size_t size);

/* Makes a folder and, if need be, its parents. An existing folder is fine. */
struct err io_make_folder(const char *path);

/* Keeps other processes of this program out of a folder until io_unlock, or until this process ends in whatever way: an
 * error if one of them has it. Where the file system knows no locks, nobody is kept out. */
struct err io_lock(const char *folder, int *lock);
void io_unlock(int lock);

/* Bytes that may still be written below a folder, or where it would be made: what its file system, or that of the
 * nearest parent there is, has left for this user. SIZE_MAX if it does not say. */
size_t io_available(const char *folder);

bool io_same(const char *a, const char *b); /* both exist and are one file, whatever the paths */
bool io_exists(const char *path);
bool io_is_folder(const char *path);
struct err io_remove(const char *path); /* a file that does not exist is fine */

/* "folder/name" in fresh memory; free() it. */
char *io_join(const char *folder, const char *name);

#endif
