#include "tests/tree.h"

#include "tests/support.h"

#include "model/base/io.h"
#include "model/base/lease.h"
#include "model/base/stb.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void tree_add(struct tree *t, const char *path, bool folder, const void *data, size_t size)
{
	struct tree_entry e = { .path = strdup(path), .folder = folder, .data = take(size + 1, 1), .size = size };
	if (size)
		memcpy(e.data, data, size);
	arrput(t->entry, e);
}

static void read_below(const char *root, const char *below, struct tree *t)
{
	char *path = io_join(root, below), **name;
	int count;
	assert_ok(io_list(path, &name, &count));
	for (int i = 0; i < count; i++) {
		char *inner = io_join(below, name[i]), *full = io_join(root, inner), *data = NULL;
		bool folder = io_is_folder(full);
		size_t size = 0;
		if (!folder)
			assert_ok(io_read(full, &data, &size));
		tree_add(t, inner, folder, data, size);
		if (folder)
			read_below(root, inner, t);
		free(data);
		free(full);
		free(inner);
	}
	io_names_free(name, count);
	free(path);
}

void tree_read(const char *root, struct tree *t)
{
	*t = (struct tree){ 0 };
	read_below(root, "", t);
}

void tree_free(struct tree *t)
{
	for (int i = 0; i < arrlen(t->entry); i++) {
		free(t->entry[i].path);
		free(t->entry[i].data);
	}
	arrfree(t->entry);
}

const struct tree_entry *tree_find(const struct tree *t, const char *path)
{
	for (int i = 0; i < arrlen(t->entry); i++)
		if (!strcmp(t->entry[i].path, path))
			return &t->entry[i];
	return NULL;
}

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static void write_file(const char *path, const struct tree_entry *e)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, e->data, e->size), e->size);
	if (!strcmp(name_of(path), LEASE_FILE)) {
		const char *boot = strstr(e->data, "\nboot_id = ");
		if (boot)
			assert_int_equal(pwrite(fd, "x", 1, boot + 11 - e->data), 1);
		assert_int_equal(futimens(fd, (struct timespec[2]){ { .tv_sec = 1 }, { .tv_sec = 1 } }), 0);
	}
	close(fd);
}

void tree_write(const struct tree *t, const char *root)
{
	if (io_exists(root))
		assert_int_equal(folder_remove(root), 0);
	assert_int_equal(mkdir(root, 0777), 0);
	for (int i = 0; i < arrlen(t->entry); i++) {
		char *path = io_join(root, t->entry[i].path);
		if (t->entry[i].folder)
			assert_int_equal(mkdir(path, 0777), 0);
		else
			write_file(path, &t->entry[i]);
		free(path);
	}
}

bool tree_rest(const char *path)
{
	return !fnmatch(IO_TEMPORARY, name_of(path), 0) || !strcmp(name_of(path), LEASE_FILE);
}

static bool is_one_of(const char *patterns, const char *path)
{
	char text[200], *rest = NULL;
	snprintf(text, sizeof text, "%s", patterns ? patterns : "");
	for (char *one = strtok_r(text, "|", &rest); one; one = strtok_r(NULL, "|", &rest))
		if (!fnmatch(one, name_of(path), 0))
			return true;
	return false;
}

static bool equal(const struct tree_entry *a, const struct tree_entry *b)
{
	return a->folder == b->folder && a->size == b->size && !memcmp(a->data, b->data, a->size);
}

static bool begins(const struct tree_entry *a, const struct tree_entry *b)
{
	return a->size <= b->size && !memcmp(a->data, b->data, a->size) && (!a->size || a->data[a->size - 1] == '\n');
}

/* All of `is` stands in `wanted`. */
static void assert_within(const struct tree *is, const struct tree *wanted, const struct tree_kinds *kinds,
			  const char *otherwise)
{
	for (int i = 0; i < arrlen(is->entry); i++) {
		const struct tree_entry *e = &is->entry[i], *other = tree_find(wanted, e->path);
		if (tree_rest(e->path))
			continue;
		if (!other && is_one_of(kinds->passing, e->path))
			continue;
		if (!other)
			fail_msg("%s: %s", e->path, otherwise);
		else if (!is_one_of(kinds->timed, e->path) && !equal(e, other))
			fail_msg("%s: holds other bytes: %zu, not %zu", e->path, e->size, other->size);
	}
}

void assert_tree(const struct tree *is, const struct tree *wanted, const struct tree_kinds *kinds)
{
	assert_within(wanted, is, kinds, "is missing");
	assert_within(is, wanted, kinds, "should not be there");
}

void assert_old_or_new(const struct tree *is, const struct tree *old, const struct tree *new,
		       const struct tree_kinds *kinds, bool rests)
{
	for (int i = 0; i < arrlen(is->entry); i++) {
		const struct tree_entry *e = &is->entry[i];
		const struct tree_entry *other[2] = { tree_find(old, e->path), tree_find(new, e->path) };
		bool good = (rests && tree_rest(e->path)) || (!other[1] && is_one_of(kinds->passing, e->path));
		for (int k = 0; k < 2 && !good; k++)
			good = other[k] && (is_one_of(kinds->timed, e->path) || equal(e, other[k]) ||
					    (is_one_of(kinds->logs, e->path) && begins(e, other[k])));
		if (!good)
			fail_msg("%s: neither old nor new: %zu bytes: %.60s", e->path, e->size, e->data);
	}
}
