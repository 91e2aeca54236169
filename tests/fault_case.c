#include "tests/fault_case.h"

#include "tests/support.h"

#include "model/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- Faults ---- */

static struct {
	int at, error, operations;
	bool stays;
	char operation[16], path[600]; /* that failed first */
} plan;

static bool needs_space(const char *operation, const char *path)
{
	return !strcmp(operation, "write") || !strcmp(operation, "mkdir") || !strcmp(operation, "link") ||
	       (!strcmp(operation, "open") && tree_rest(path));
}

static int fault(const char *operation, const char *path)
{
	plan.operations++;
	bool now = plan.stays ? plan.operations >= plan.at && needs_space(operation, path)
			      : plan.operations == plan.at;
	if (now && !*plan.operation) {
		snprintf(plan.operation, sizeof plan.operation, "%s", operation);
		snprintf(plan.path, sizeof plan.path, "%s", path);
	}
	return now ? plan.error : 0;
}

static struct err work_with_fault(const struct fault_case *c, const char *root, int at, bool stays)
{
	static const int errors[] = { ENOSPC, EIO, EACCES };
	memset(&plan, 0, sizeof plan);
	plan.at = at;
	plan.stays = stays;
	plan.error = stays ? ENOSPC : errors[at % 3];
	io_fault = fault;
	struct err e = c->work(root);
	io_fault = NULL;
	return e;
}

/* The number the next file opened would get: grows by what is left open. */
static int next_descriptor(void)
{
	int fd = open("/dev/null", O_RDONLY);
	close(fd);
	return fd;
}

static void assert_told(const struct fault_case *c, const struct err *e, const char *root)
{
	bool why = c->sums_up || strstr(e->text, strerror(plan.error));
	if (e->code != ERR_FAILED || !strstr(e->text, root) || !why || !*e->hint)
		fail_msg("%s of %s (%d): [%d] %s (%s)", plan.operation, plan.path, plan.at, e->code, e->text,
			 e->hint);
}

/* Says which fault it was where an assertion fails. */
static void note(const char *what)
{
	if (*plan.operation)
		print_message("# fault %d%s: %s of %s: %s\n", plan.at, plan.stays ? " and all later" : "", plan.operation,
			      plan.path, what);
}

struct state {
	char root[FOLDER_PATH + 8];
	struct tree old, new;
};

static void judge(const struct fault_case *c, struct state *s, struct err *e)
{
	struct tree now, again;
	tree_read(s->root, &now);
	if (e->code)
		assert_told(c, e, s->root);
	bool rests = !strcmp(plan.operation, "unlink");
	assert_old_or_new(&now, &s->old, &s->new, &c->kinds, rests);
	if (!e->code && !rests)
		assert_tree(&now, &s->new, &c->kinds);
	if (c->loads)
		c->loads(s->root);
	struct err last = c->work(s->root);
	if (last.code)
		fail_msg("after %s of %s (%d): [%d] %s", plan.operation, plan.path, plan.at, last.code, last.text);
	tree_read(s->root, &again);
	assert_tree(&again, &s->new, &c->kinds);
	tree_free(&now);
	tree_free(&again);
}

int fault_stride(const struct fault_case *c)
{
	const char *which = getenv("FAULTS");
	return c->stride && (!which || strcmp(which, "all")) ? c->stride : 1;
}

static int sweep(const struct fault_case *c, struct state *s, bool stays)
{
	int descriptor = next_descriptor(), at = 1;
	for (;; at += fault_stride(c) * (stays && fault_stride(c) > 1 ? 4 : 1)) {
		tree_write(&s->old, s->root);
		struct err e = work_with_fault(c, s->root, at, stays);
		assert_int_equal(next_descriptor(), descriptor);
		if (!*plan.operation)
			assert_ok(e);
		note(e.text);
		judge(c, s, &e);
		if (!*plan.operation)
			return plan.operations;
	}
}

static void state_open(const struct fault_case *c, char folder[FOLDER_PATH], struct state *s)
{
	const struct tree nothing = { 0 };
	assert_int_equal(folder_make(folder), 0);
	snprintf(s->root, sizeof s->root, "%s/root", folder);
	tree_write(&nothing, s->root);
	if (c->prepare)
		c->prepare(s->root);
	tree_read(s->root, &s->old);
	assert_ok(c->work(s->root));
	tree_read(s->root, &s->new);
}

static void state_close(const char *folder, struct state *s)
{
	tree_free(&s->old);
	tree_free(&s->new);
	assert_int_equal(folder_remove(folder), 0);
}

int fault_sweep(const struct fault_case *c)
{
	char folder[FOLDER_PATH];
	struct state s;
	state_open(c, folder, &s);
	int operations = sweep(c, &s, false);
	sweep(c, &s, true);
	state_close(folder, &s);
	return operations;
}

/* ---- Short reads and writes ---- */

static size_t one(const char *operation, const char *path, size_t size)
{
	(void)operation, (void)path, (void)size;
	return 1;
}

static size_t half(const char *operation, const char *path, size_t size)
{
	(void)operation, (void)path;
	return (size + 1) / 2;
}

void fault_short(const struct fault_case *c)
{
	char folder[FOLDER_PATH];
	struct state s;
	state_open(c, folder, &s);
	for (int i = 0; i < 2; i++) {
		struct tree now;
		tree_write(&s.old, s.root);
		io_most = i ? half : one;
		struct err e = c->work(s.root);
		io_most = NULL;
		assert_ok(e);
		tree_read(s.root, &now);
		assert_tree(&now, &s.new, &c->kinds);
		tree_free(&now);
	}
	state_close(folder, &s);
}
