#include "model/base/io.h"
#include "model/base/safetensors.h"
#include "tests/fault_case.h"
#include "tests/support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Files under faults of the disk and losses of power. */

#define OLD "the old content\n"
#define NEW "all of the new content, which is longer\n"

/* In memory, where there is such a place: real disks sync slowly, and nothing here depends on it. */
static int set_up(void **state)
{
	(void)state;
	alarm(120);
	return !getenv("TMPDIR") && !access("/dev/shm", W_OK) ? setenv("TMPDIR", "/dev/shm", 1) : 0;
}

static const char *in(const char *root, const char *name)
{
	static char path[4][FOLDER_PATH + 64];
	static int next;
	next = (next + 1) % 4;
	snprintf(path[next], sizeof path[next], "%s/%s", root, name);
	return path[next];
}

static void all_ways(const struct fault_case *c, int least)
{
	assert_true(fault_sweep(c) >= least);
	fault_short(c);
	assert_true(power_loss(c) > 1);
}

/* ---- io_write ---- */

static void put_old(const char *root)
{
	assert_ok(io_write(in(root, "file"), OLD, strlen(OLD)));
}

static void is_there(const char *root)
{
	assert_true(io_exists(in(root, "file")));
}

static struct err write_new(const char *root)
{
	return io_write(in(root, "file"), NEW, strlen(NEW));
}

static void a_file_is_replaced(void **state)
{
	(void)state;
	all_ways(&(struct fault_case){ .prepare = put_old, .work = write_new, .loads = is_there }, 7);
}

static void a_file_is_written_first(void **state)
{
	(void)state;
	all_ways(&(struct fault_case){ .work = write_new }, 7);
}

static struct err write_parts(const char *root)
{
	const struct io_part part[] = { { "one ", 4 }, { NULL, 0 }, { "two ", 4 }, { "three\n", 6 } };
	return io_write_parts(in(root, "file"), part, 4);
}

static void a_file_of_parts_is_replaced(void **state)
{
	(void)state;
	all_ways(&(struct fault_case){ .prepare = put_old, .work = write_parts, .loads = is_there }, 9);
}

/* ---- Logs ---- */

/* What a log has too much, after a first attempt that failed, is cut back. */
static struct err write_log(const char *root)
{
	const char *path = in(root, "log");
	TRY(io_remove(path));
	TRY(io_append(path, "one\n", 4));
	TRY(io_append(path, "two and more\n", 13));
	return io_sync(path);
}

static void a_log_grows_by_whole_lines(void **state)
{
	(void)state;
	const struct fault_case c = { .work = write_log, .kinds = { .logs = "log" } };
	assert_true(fault_sweep(&c) >= 9);
	fault_short(&c);
	power_loss(&(struct fault_case){ .work = write_log, .kinds = c.kinds });
}

static int no_more_space(const char *operation, const char *path)
{
	static int writes;
	(void)path;
	return !strcmp(operation, "write") && writes++ ? ENOSPC : 0;
}

static size_t half_of_it(const char *operation, const char *path, size_t size)
{
	(void)operation, (void)path;
	return size / 2 + 1;
}

/* The first half of a line found room. */
static void half_a_line_is_cut_off(void **state)
{
	char folder[FOLDER_PATH], *data;
	size_t size;
	(void)state;
	assert_int_equal(folder_make(folder), 0);
	assert_ok(io_append(in(folder, "log"), "one\n", 4));
	io_fault = no_more_space;
	io_most = half_of_it;
	struct err e = io_append(in(folder, "log"), "two and more\n", 13);
	io_fault = NULL;
	io_most = NULL;
	assert_err(e, ERR_FAILED, strerror(ENOSPC));
	assert_ok(io_read(in(folder, "log"), &data, &size));
	assert_string_equal(data, "one\n");
	free(data);
	assert_int_equal(folder_remove(folder), 0);
}

/* ---- Folders ---- */

static struct err make_folders(const char *root)
{
	TRY(io_make_folder(in(root, "a/b//c")));
	return io_write(in(root, "a/b/c/file"), NEW, strlen(NEW));
}

static void folders_are_made(void **state)
{
	(void)state;
	all_ways(&(struct fault_case){ .work = make_folders }, 12);
}

/* ---- safetensors ---- */

static struct err write_tensors(const char *root)
{
	static const float x[6] = { 1, 2, 3, 4, 5, 6 };
	static const int32_t ids[3] = { 7, 8, 9 };
	const struct tensor t[] = { { .name = "x", .dtype = DTYPE_F32, .rank = 2, .shape = { 2, 3 }, .data = x },
				    { .name = "ids", .dtype = DTYPE_I32, .rank = 1, .shape = { 3 }, .data = ids } };
	const struct metadata m = { "made", "here" };
	return safetensors_write(in(root, "file"), t, 2, &m, 1);
}

static void load_tensors(const char *root)
{
	struct safetensors s;
	if (!io_exists(in(root, "file")))
		return;
	assert_ok(safetensors_read(in(root, "file"), &s));
	assert_int_equal(s.count, 2);
	safetensors_free(&s);
}

static void tensors_are_written(void **state)
{
	(void)state;
	all_ways(&(struct fault_case){ .work = write_tensors, .loads = load_tensors }, 7);
}

/* ---- Reading ---- */

static void put_tensors(const char *root)
{
	assert_ok(write_tensors(root));
}

static struct err read_tensors(const char *root)
{
	struct safetensors s;
	TRY(safetensors_read(in(root, "file"), &s));
	assert_int_equal(s.count, 2);
	assert_true(tensor_item(safetensors_find(&s, "ids"), 2) == 9);
	safetensors_free(&s);
	return OK;
}

static struct err list_them(const char *root)
{
	char **name;
	int count;
	TRY(io_list(root, &name, &count));
	assert_int_equal(count, 1);
	io_names_free(name, count);
	return io_rename(in(root, "file"), in(root, "file"));
}

static void what_is_read_stays(void **state)
{
	(void)state;
	const struct fault_case reads = { .prepare = put_tensors, .work = read_tensors, .loads = load_tensors },
				lists = { .prepare = put_tensors, .work = list_them, .loads = load_tensors };
	assert_true(fault_sweep(&reads) >= 3);
	fault_short(&reads);
	assert_true(fault_sweep(&lists) >= 2);
}

/* ---- fsync ---- */

static int syncs;

static int first_sync_fails(const char *operation, const char *path)
{
	(void)path;
	return !strcmp(operation, "fsync") && !syncs++ ? EIO : 0;
}

/* The kernel may have dropped what it could not write: a second fsync of the file would succeed and mean nothing. */
static void a_failed_sync_is_final(void **state)
{
	char folder[FOLDER_PATH];
	(void)state;
	assert_int_equal(folder_make(folder), 0);
	for (int i = 0; i < 2; i++) {
		const char *path = in(folder, "file");
		put_old(folder);
		syncs = 0;
		io_fault = first_sync_fails;
		struct err e = i ? io_sync(path) : io_write(path, NEW, strlen(NEW));
		io_fault = NULL;
		assert_err(e, ERR_FAILED, strerror(EIO));
		assert_int_equal(syncs, 1);
	}
	assert_int_equal(folder_remove(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_replaced),
		cmocka_unit_test(a_file_is_written_first),
		cmocka_unit_test(a_file_of_parts_is_replaced),
		cmocka_unit_test(a_log_grows_by_whole_lines),
		cmocka_unit_test(half_a_line_is_cut_off),
		cmocka_unit_test(folders_are_made),
		cmocka_unit_test(tensors_are_written),
		cmocka_unit_test(what_is_read_stays),
		cmocka_unit_test(a_failed_sync_is_final),
	};
	return cmocka_run_group_tests_name("base faults", tests, set_up, NULL);
}
