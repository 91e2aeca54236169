#ifndef ROPEWALK_TESTS_TREE_H
#define ROPEWALK_TESTS_TREE_H

#include <stdbool.h>
#include <stddef.h>

/* All that stands below a folder, in memory: to be compared, and to be put elsewhere. */

struct tree {
	struct tree_entry {
		char *path; /* below the root */
		bool folder;
		char *data;
		size_t size;
	} *entry; /* stb_ds array, folders before what is in them */
};

/* '|'-separated patterns of file names: those whose bytes hold times; logs, of which a beginning may stand alone; and
 * what is written on the way and removed again. */
struct tree_kinds {
	const char *timed, *logs, *passing;
};

void tree_read(const char *root, struct tree *t);
void tree_add(struct tree *t, const char *path, bool folder, const void *data, size_t size); /* copies */
void tree_free(struct tree *t);
const struct tree_entry *tree_find(const struct tree *t, const char *path); /* or NULL */

/* Empties the root, makes it if need be, and puts everything there. A claim (model/base/lease.h) becomes that of a
 * machine that has been silent for long. */
void tree_write(const struct tree *t, const char *root);

/* Equal, but for the bytes of timed files, what passes, and what an interrupted process has left, or the test fails. */
void assert_tree(const struct tree *is, const struct tree *wanted, const struct tree_kinds *kinds);

/* Every file is as in one of both, a log the beginning of one, in whole lines; what an interrupted process leaves
 * behind fails the test unless `rests`. */
void assert_old_or_new(const struct tree *is, const struct tree *old, const struct tree *new,
		       const struct tree_kinds *kinds, bool rests);

bool tree_rest(const char *path); /* a temporary file or a claim? */

#endif
