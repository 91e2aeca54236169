#ifndef ROPEWALK_IO_SEAM_H
#define ROPEWALK_IO_SEAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The system calls behind io.h and lease.h, one function each: here tests make them fail, come short, or watch them
 * (the hooks stand in io.h). All set errno where they fail. An interrupted call is made again, except fsync. */

int seam_open(const char *path, int flags); /* never waits for a pipe's partner: give O_NONBLOCK */
ssize_t seam_read(int fd, const char *path, char *data, size_t size); /* one call, which may come short */
bool seam_write(int fd, const char *path, const char *data, size_t size); /* all of it */

bool seam_truncate(int fd, const char *path, size_t size);

/* After a failure the kernel may forget what it could not write: calling again could succeed and mean nothing. */
bool seam_fsync(int fd, const char *path);

bool seam_close(int fd, const char *path); /* the descriptor is gone in any case */
bool seam_rename(const char *from, const char *to);
bool seam_link(const char *from, const char *to); /* fails with EEXIST if `to` is there */
bool seam_unlink(const char *path);
bool seam_mkdir(const char *path);

/* Names in a folder other than . and .., in fresh memory, sorted; NULL with errno. The array and the names are freed by
 * seam_names_free. */
char **seam_list(const char *folder, int *count);
void seam_names_free(char **name, int count);

#endif
