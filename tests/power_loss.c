#include "tests/fault_case.h"
#include "tests/support.h"

#include "model/base/io.h"
#include "model/base/stb.h"
#include "model/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

/* A disk that forgets, fed by what the seam of model/base/io.h reports. */

/* A file or folder, whatever its names: the first `synced` bytes are on disk for certain. */
struct inode {
	bool folder;
	char *data;
	size_t size, synced;
};

struct name {
	char *path;
	struct inode *inode;
};

/* Names change by these: where `from` is given that one goes; where `to` is given it names the inode from then on. */
struct change {
	char *from, *to;
	struct inode *inode;
};

static struct disk {
	const char *root;
	struct inode **inode;       /* stb_ds arrays */
	struct name *now, *durable; /* as the program sees them; as they are on disk */
	struct change *pending;
	struct tree *crash;
	uint64_t *seen;
} disk;

enum loss { LOST, KEPT, HALF, GARBAGE, ZEROS, LOSSES };

/* ---- Names ---- */

static ptrdiff_t find(const struct name *names, const char *path)
{
	for (ptrdiff_t i = 0; i < arrlen(names); i++)
		if (!strcmp(names[i].path, path))
			return i;
	return -1;
}

static void forget(struct name **names, const char *path)
{
	ptrdiff_t i = find(*names, path);
	if (i < 0)
		return;
	free((*names)[i].path);
	arrdel(*names, i);
}

static void apply(struct name **names, const struct change *c)
{
	if (c->from)
		forget(names, c->from);
	if (!c->to)
		return;
	forget(names, c->to);
	arrput(*names, ((struct name){ strdup(c->to), c->inode }));
}

static void names_free(struct name **names)
{
	while (arrlen(*names))
		free(arrpop(*names).path);
	arrfree(*names);
}

static struct name *names_copy(const struct name *names)
{
	struct name *copy = NULL;
	for (ptrdiff_t i = 0; i < arrlen(names); i++)
		arrput(copy, ((struct name){ strdup(names[i].path), names[i].inode }));
	return copy;
}

/* ---- Crashes ---- */

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->path, ((const struct name *)b)->path);
}

static bool has_parent(const struct tree *t, const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return true;
	char *parent = strndup(path, (size_t)(slash - path));
	bool there = tree_find(t, parent);
	free(parent);
	return there;
}

static void add_file(struct tree *t, const char *path, const struct inode *n, enum loss loss)
{
	size_t tail = n->size - n->synced, size = n->synced + (loss == LOST ? 0 : loss == HALF ? tail / 2 : tail);
	tree_add(t, path, false, n->data, size);
	char *data = arrlast(t->entry).data;
	for (size_t i = n->synced; i < size && loss >= GARBAGE; i++)
		data[i] = loss == ZEROS ? 0 : (char)(i * 37 + 165);
}

/* Sorted, so that a folder comes before what is in it; what is in a folder that is lost is lost with it. */
static struct tree lay_out(const struct name *names, enum loss loss)
{
	struct tree t = { 0 };
	struct name *sorted = names_copy(names);
	if (arrlen(sorted))
		qsort(sorted, (size_t)arrlen(sorted), sizeof *sorted, by_path);
	for (ptrdiff_t i = 0; i < arrlen(sorted); i++) {
		const struct name *n = &sorted[i];
		if (!has_parent(&t, n->path))
			continue;
		if (n->inode->folder)
			tree_add(&t, n->path, true, NULL, 0);
		else
			add_file(&t, n->path, n->inode, loss);
	}
	names_free(&sorted);
	return t;
}

static uint64_t tree_hash(const struct tree *t)
{
	uint64_t hash = 0;
	for (ptrdiff_t i = 0; i < arrlen(t->entry); i++) {
		hash = XXH3_64bits_withSeed(t->entry[i].path, strlen(t->entry[i].path), hash + 1);
		hash = XXH3_64bits_withSeed(t->entry[i].data, t->entry[i].size, hash + 2);
	}
	return hash;
}

static void keep_new(struct tree t)
{
	uint64_t hash = tree_hash(&t);
	for (ptrdiff_t i = 0; i < arrlen(disk.seen); i++)
		if (disk.seen[i] == hash) {
			tree_free(&t);
			return;
		}
	arrput(disk.seen, hash);
	arrput(disk.crash, t);
}

/* All states in which the disk could be found now. */
static void crash(void)
{
	struct name *names = names_copy(disk.durable);
	for (ptrdiff_t done = 0; done <= arrlen(disk.pending); done++) {
		for (int loss = 0; loss < LOSSES; loss++)
			keep_new(lay_out(names, loss));
		if (done < arrlen(disk.pending))
			apply(&names, &disk.pending[done]);
	}
	names_free(&names);
}

/* ---- Events ---- */

/* Below the root, "" being the root itself; NULL elsewhere. */
static char *below(const char *path)
{
	struct text_builder b = { 0 };
	size_t length = strlen(disk.root);
	if (!path || strncmp(path, disk.root, length) || (path[length] && path[length] != '/'))
		return NULL;
	text_add(&b, "%s", "");
	for (const char *s = path + length + strspn(path + length, "/"); *s; s += strspn(s, "/")) {
		text_add(&b, "%s%.*s", b.size ? "/" : "", (int)strcspn(s, "/"), s);
		s += strcspn(s, "/");
	}
	return b.data;
}

static void change(const char *from, const char *to, struct inode *inode)
{
	struct change c = { from ? strdup(from) : NULL, to ? strdup(to) : NULL, inode };
	apply(&disk.now, &c);
	arrput(disk.pending, c);
}

static struct inode *new_inode(bool folder)
{
	struct inode *n = take(1, sizeof *n);
	n->folder = folder;
	arrput(disk.inode, n);
	return n;
}

static struct inode *inode_at(const char *path)
{
	ptrdiff_t i = find(disk.now, path);
	return i < 0 ? NULL : disk.now[i].inode;
}

static void append(struct inode *n, const void *data, size_t size)
{
	n->data = realloc(n->data, n->size + size + 1);
	assert_non_null(n->data);
	if (size)
		memcpy(n->data + n->size, data, size);
	n->size += size;
}

static bool stands_in(const char *path, const char *folder)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	size_t length = slash ? (size_t)(slash - path) : 0;
	return path && strlen(folder) == length && !strncmp(path, folder, length);
}

/* The changes of names in this folder are on disk. */
static void sync_names(const char *folder)
{
	struct change *left = NULL;
	for (ptrdiff_t i = 0; i < arrlen(disk.pending); i++) {
		struct change *c = &disk.pending[i];
		if (!stands_in(c->to ? c->to : c->from, folder)) {
			arrput(left, *c);
			continue;
		}
		apply(&disk.durable, c);
		free(c->from);
		free(c->to);
	}
	arrfree(disk.pending);
	disk.pending = left;
}

static void sync(const char *path)
{
	struct inode *n = inode_at(path);
	crash();
	if (!*path || (n && n->folder))
		sync_names(path);
	else if (n)
		n->synced = n->size;
}

static void happened(const struct io_event *e, const char *path, const char *to, struct inode *n)
{
	if (!strcmp(e->operation, "fsync"))
		sync(path);
	else if (!strcmp(e->operation, "mkdir"))
		change(NULL, path, new_inode(true));
	else if (!strcmp(e->operation, "open") && !n)
		change(NULL, path, new_inode(false));
	else if (!strcmp(e->operation, "write"))
		append(n, e->data, e->size);
	else if (!strcmp(e->operation, "truncate"))
		n->size = e->size, n->synced = n->synced < e->size ? n->synced : e->size;
	else if (!strcmp(e->operation, "rename"))
		change(path, to, n);
	else if (!strcmp(e->operation, "link"))
		change(NULL, to, n);
	else if (!strcmp(e->operation, "unlink"))
		change(path, NULL, NULL);
}

static void watch(const struct io_event *e)
{
	char *path = below(e->path), *to = below(e->to);
	if (path)
		happened(e, path, to, inode_at(path));
	free(path);
	free(to);
}

static void disk_open(const char *root)
{
	struct tree t;
	disk = (struct disk){ .root = root };
	tree_read(root, &t);
	for (ptrdiff_t i = 0; i < arrlen(t.entry); i++) {
		struct inode *n = new_inode(t.entry[i].folder);
		append(n, t.entry[i].data, t.entry[i].size);
		n->synced = n->size;
		apply(&disk.now, &(struct change){ NULL, t.entry[i].path, n });
	}
	disk.durable = names_copy(disk.now);
	tree_free(&t);
}

static void disk_close(void)
{
	for (ptrdiff_t i = 0; i < arrlen(disk.inode); i++) {
		free(disk.inode[i]->data);
		free(disk.inode[i]);
	}
	for (ptrdiff_t i = 0; i < arrlen(disk.pending); i++) {
		free(disk.pending[i].from);
		free(disk.pending[i].to);
	}
	for (ptrdiff_t i = 0; i < arrlen(disk.crash); i++)
		tree_free(&disk.crash[i]);
	arrfree(disk.inode);
	arrfree(disk.pending);
	arrfree(disk.crash);
	arrfree(disk.seen);
	names_free(&disk.now);
	names_free(&disk.durable);
}

/* ---- The case ---- */

static void start_again(const struct fault_case *c, const char *root, const struct tree *found, const struct tree *new)
{
	struct tree now;
	tree_write(found, root);
	if (c->loads)
		c->loads(root);
	struct err e = c->work(root);
	if (e.code)
		fail_msg("after the power was gone: [%d] %s (%s)", e.code, e.text, e.hint);
	tree_read(root, &now);
	assert_tree(&now, new, &c->kinds);
	tree_free(&now);
}

static void say_state(const struct tree *t, ptrdiff_t number)
{
	print_message("# state %d:", (int)number);
	for (ptrdiff_t i = 0; i < arrlen(t->entry); i++)
		print_message(" %s %zu%s", t->entry[i].path, t->entry[i].size, i + 1 < arrlen(t->entry) ? "," : "");
	print_message("\n");
}

int power_loss(const struct fault_case *c)
{
	char folder[FOLDER_PATH], root[FOLDER_PATH + 8];
	struct tree new, kept, nothing = { 0 };
	assert_int_equal(folder_make(folder), 0);
	snprintf(root, sizeof root, "%s/root", folder);
	tree_write(&nothing, root);
	if (c->prepare)
		c->prepare(root);
	disk_open(root);
	io_watch = watch;
	struct err e = c->work(root);
	io_watch = NULL;
	assert_ok(e);
	tree_read(root, &new);
	crash();
	kept = lay_out(disk.durable, LOST);
	for (ptrdiff_t i = 0; i < arrlen(disk.crash); i += fault_stride(c)) {
		say_state(&disk.crash[i], i);
		start_again(c, root, &disk.crash[i], &new);
	}
	assert_tree(&kept, &new, &c->kinds);
	int states = (int)arrlen(disk.crash);
	tree_free(&kept);
	tree_free(&new);
	disk_close();
	assert_int_equal(folder_remove(folder), 0);
	return states;
}
