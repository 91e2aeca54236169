#ifndef ROPEWALK_FILE_NAME_H
#define ROPEWALK_FILE_NAME_H

#include "text.h"

/* How an option names a file that is read when it is parsed (`load` in option.h): PATH, or PATH@HASH, 8 hexadecimal
 * digits of what was read, which is how labels, records and configs have it. */

struct file_name {
	char *path;
	const char *hash; /* into the text it was opened from; NULL: not given */
};

/* err_usage for a path that a label cannot hold: one with a comma, a #, a control character or a single parenthesis.
 * file_name_close it. */
struct err file_name_open(const char *text, struct file_name *out);
void file_name_close(struct file_name *n);

/* err_usage if the hash given is not that of what was read, PATH@HASH. `what` is as in "its lists are". */
struct err file_name_check(const struct file_name *n, const char *what, const char *label);

/* PATH@HASH. Appends. */
void file_name_label(const char *path, uint32_t hash, struct text_builder *b);

#endif
