#include "model/base/io.h"
#include "tests/support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])
#define OLD "the old content\n"

static char folder[FOLDER_PATH];

static char *in_folder(const char *name)
{
	static char path[8][1024];
	static int next;
	next = (next + 1) % 8;
	snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
	return path[next];
}

static int make_folder(void **state)
{
	(void)state;
	/* Nothing here may wait, whatever it opens. */
	alarm(60);
	return folder_make(folder);
}

static int remove_folder(void **state)
{
	(void)state;
	return folder_remove(folder);
}

static int entries(void)
{
	int count = -2;
	DIR *d = opendir(folder);
	assert_non_null(d);
	while (readdir(d))
		count++;
	closedir(d);
	return count;
}

static void assert_error(struct err e, enum err_code code, const char *path, const char *why)
{
	assert_int_equal(e.code, code);
	if (strncmp(e.text, path, strlen(path)) || !strstr(e.text, why))
		fail_msg("'%s' should name '%s' and '%s'", e.text, path, why);
}

static bool holds(const char *path, const void *content, size_t size)
{
	char *data;
	size_t found;
	assert_ok(io_read(path, &data, &found));
	bool same = found == size && !memcmp(data, content, size) && data[size] == '\0';
	free(data);
	return same;
}

/* The plan of faults: operation `fault_at` (and all later ones, if `fault_stays`) fails with `fault_error`. */
static int fault_at, fault_error, operations;
static bool fault_stays;
static char failed_operation[16];

static int fault(const char *operation, const char *path)
{
	assert_non_null(path);
	operations++;
	if (operations != fault_at && !(fault_stays && operations > fault_at))
		return 0;
	if (operations == fault_at)
		snprintf(failed_operation, sizeof failed_operation, "%s", operation);
	return fault_error;
}

static void plan_fault(int at, int error, bool stays)
{
	io_fault = fault;
	fault_at = at;
	fault_error = error;
	fault_stays = stays;
	operations = 0;
	*failed_operation = '\0';
}

/* The number the next file opened would get: grows by what is left open. */
static int next_descriptor(void)
{
	int fd = open("/dev/null", O_RDONLY);
	close(fd);
	return fd;
}

static void writes_and_reads_back(void **state)
{
	(void)state;
	char *path = in_folder("file");
	size_t size = 3000000;
	char *content = malloc(size);
	for (size_t i = 0; i < size; i++)
		content[i] = (char)(i * i >> 5);
	assert_ok(io_write(path, content, size));
	assert_true(holds(path, content, size));
	assert_ok(io_write(path, "short", 5));
	assert_true(holds(path, "short", 5));
	assert_ok(io_write(path, NULL, 0));
	assert_true(holds(path, "", 0));
	assert_int_equal(entries(), 1);
	assert_ok(io_remove(path));
	assert_int_equal(entries(), 0);
	free(content);
}

static void writes_beside_the_program(void **state)
{
	(void)state;
	char before[1024];
	assert_non_null(getcwd(before, sizeof before));
	assert_int_equal(chdir(folder), 0);
	struct err e = io_write("bare", OLD, strlen(OLD));
	assert_int_equal(chdir(before), 0);
	assert_ok(e);
	assert_true(holds(in_folder("bare"), OLD, strlen(OLD)));
	assert_ok(io_remove(in_folder("bare")));
}

static void takes_names_of_any_length(void **state)
{
	(void)state;
	char name[257];
	memset(name, 'n', sizeof name);
	name[255] = '\0';
	assert_ok(io_write(in_folder(name), OLD, strlen(OLD)));
	assert_ok(io_remove(in_folder(name)));
	name[255] = 'n';
	name[256] = '\0';
	assert_error(io_write(in_folder(name), OLD, strlen(OLD)), ERR_USAGE, folder, strerror(ENAMETOOLONG));
	assert_int_equal(entries(), 0);
}

/* Each operation in turn fails: the file holds the old content (once renamed, the new one), nothing is left behind. */
static void an_interrupted_write_leaves_the_old_file(void **state)
{
	(void)state;
	char *path = in_folder("file"), new[] = "all of the new content\n";
	char seen[200] = "";
	int descriptor = next_descriptor();
	struct err e = { .code = ERR_FAILED };
	for (int k = 1; e.code; k++) {
		assert_in_range(k, 1, 100);
		io_fault = NULL;
		assert_ok(io_write(path, OLD, strlen(OLD)));
		plan_fault(k, ENOSPC, false);
		e = io_write(path, new, strlen(new));
		io_fault = NULL;
		bool renamed = strstr(seen, "rename");
		snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s ", failed_operation);
		assert_int_equal(entries(), 1);
		assert_int_equal(next_descriptor(), descriptor);
		if (!e.code) {
			assert_string_equal(failed_operation, "");
			break;
		}
		assert_error(e, ERR_FAILED, path, strerror(ENOSPC));
		assert_non_null(strstr(e.hint, "Free some space"));
		assert_true(renamed ? holds(path, new, strlen(new)) : holds(path, OLD, strlen(OLD)));
	}
	assert_string_equal(seen, "open open write fsync close rename fsync close  ");
	assert_true(holds(path, new, strlen(new)));
	assert_ok(io_remove(path));
}

static void a_first_write_that_fails_leaves_nothing(void **state)
{
	(void)state;
	char *path = in_folder("file");
	for (int k = 1; k <= 6; k++) {
		plan_fault(k, EIO, false);
		struct err e = io_write(path, OLD, strlen(OLD));
		io_fault = NULL;
		assert_error(e, ERR_FAILED, path, strerror(EIO));
		assert_int_equal(entries(), 0);
	}
}

static void interruptions_are_no_failures(void **state)
{
	(void)state;
	char *path = in_folder("file");
	for (int k = 1; k <= 8; k++) {
		plan_fault(k, EINTR, false);
		struct err e = io_write(path, OLD, strlen(OLD));
		io_fault = NULL;
		/* The seventh: the folder's, whose fsync cannot be tried on another. */
		if (k == 7)
			assert_error(e, ERR_FAILED, path, strerror(EINTR));
		else
			assert_ok(e);
		assert_true(holds(path, OLD, strlen(OLD)));
		char *data = NULL;
		size_t size;
		plan_fault(k, EINTR, false);
		e = io_read(path, &data, &size);
		io_fault = NULL;
		assert_ok(e);
		assert_string_equal(data, OLD);
		free(data);
	}
	assert_ok(io_remove(path));
}

/* Another process takes the temporary name just before it is opened. */
static char taken[1024];

static int take_name(const char *operation, const char *path)
{
	if (*taken || strcmp(operation, "open") || !strstr(path, ".tmp"))
		return 0;
	snprintf(taken, sizeof taken, "%s", path);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs("theirs", f);
	fclose(f);
	return 0;
}

static void never_writes_into_a_file_it_did_not_make(void **state)
{
	(void)state;
	char *path = in_folder("file");
	io_fault = take_name;
	struct err e = io_write(path, OLD, strlen(OLD));
	io_fault = NULL;
	assert_ok(e);
	assert_true(holds(path, OLD, strlen(OLD)));
	assert_true(holds(taken, "theirs", 6));
	assert_ok(io_remove(taken));
	plan_fault(2, EEXIST, true);
	e = io_write(path, "new", 3);
	io_fault = NULL;
	assert_error(e, ERR_FAILED, path, strerror(EEXIST));
	assert_true(holds(path, OLD, strlen(OLD)));
	assert_int_equal(entries(), 1);
	assert_ok(io_remove(path));
}

static void other_operations_report_faults(void **state)
{
	(void)state;
	char *path = in_folder("file"), *data;
	size_t size;
	int descriptor = next_descriptor();
	assert_ok(io_write(path, OLD, strlen(OLD)));
	for (int k = 1; k <= 3; k++) {
		plan_fault(k, EACCES, false);
		assert_error(io_read(path, &data, &size), ERR_FAILED, path, strerror(EACCES));
		assert_null(data);
		plan_fault(k, EACCES, false);
		struct err e = io_append(path, "", 1);
		assert_error(e, ERR_FAILED, path, strerror(EACCES));
		assert_non_null(strstr(e.hint, "permissions"));
	}
	plan_fault(1, EACCES, false);
	assert_error(io_remove(path), ERR_FAILED, path, strerror(EACCES));
	plan_fault(1, EROFS, false);
	assert_error(io_make_folder(in_folder("new")), ERR_FAILED, folder, strerror(EROFS));
	io_fault = NULL;
	assert_int_equal(next_descriptor(), descriptor);
	assert_true(io_exists(path));
	assert_ok(io_remove(path));
}

/* The limit lets the first part of a write through and refuses the rest. */
static void a_short_write_is_not_taken_for_a_whole_one(void **state)
{
	(void)state;
	static char content[5000];
	char *path = in_folder("file");
	struct rlimit before, limit;
	assert_ok(io_write(path, OLD, strlen(OLD)));
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){ .rlim_cur = 1000, .rlim_max = before.rlim_max };
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	struct err written = io_write(path, content, sizeof content);
	struct err appended = io_append(in_folder("log"), content, sizeof content);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_error(written, ERR_FAILED, path, strerror(EFBIG));
	assert_error(appended, ERR_FAILED, folder, strerror(EFBIG));
	assert_true(holds(path, OLD, strlen(OLD)));
	assert_int_equal(entries(), 2);
	assert_ok(io_remove(path));
	assert_ok(io_remove(in_folder("log")));
}

/* One process writes two contents in turn; another must always find one of them, whole. */
static void a_reader_never_sees_half_a_file(void **state)
{
	(void)state;
	enum { SIZE = 20000, ROUNDS = 30 };
	static char content[2][SIZE];
	char *path = in_folder("file");
	memset(content[0], 'a', SIZE);
	memset(content[1], 'b', SIZE);
	assert_ok(io_write(path, content[0], SIZE));
	pid_t child = fork();
	if (!child) {
		bool failed = false;
		for (int i = 0; i < ROUNDS; i++)
			failed |= io_write(path, content[i % 2], SIZE).code != ERR_NONE;
		_exit(failed);
	}
	int status, reads = 0, torn = 0;
	do {
		char *data = NULL;
		size_t size;
		struct err e = io_read(path, &data, &size);
		torn += e.code || size != SIZE || (memcmp(data, content[0], SIZE) && memcmp(data, content[1], SIZE));
		reads++;
		free(data);
	} while (!waitpid(child, &status, WNOHANG));
	assert_int_equal(status, 0);
	assert_int_equal(torn, 0);
	assert_true(reads > 1);
	assert_int_equal(entries(), 1);
	assert_ok(io_remove(path));
}

static void appends(void **state)
{
	(void)state;
	char *path = in_folder("log");
	assert_ok(io_append(path, "one\n", 4));
	assert_ok(io_append(path, "two\n", 4));
	assert_true(holds(path, "one\ntwo\n", 8));
	assert_ok(io_remove(path));
}

static void refuses_what_is_no_file(void **state)
{
	(void)state;
	char *pipe = in_folder("pipe"), *data;
	size_t size;
	assert_int_equal(mkfifo(pipe, 0600), 0);
	const char *const path[] = { pipe, folder, "/dev/zero", "/dev/null" };
	const char *const why[] = { "pipe", "folder", "special file", "special file" };
	for (int i = 0; i < COUNT(path); i++) {
		assert_error(io_read(path[i], &data, &size), ERR_USAGE, path[i], why[i]);
		assert_null(data);
		assert_error(io_write(path[i], "x", 1), ERR_USAGE, path[i], why[i]);
		assert_error(io_append(path[i], "x", 1), ERR_USAGE, path[i], why[i]);
		assert_error(io_writable(path[i]), ERR_USAGE, path[i], why[i]);
		assert_true(io_exists(path[i]));
	}
	assert_error(io_read(in_folder("absent"), &data, &size), ERR_USAGE, folder, strerror(ENOENT));
	assert_error(io_write(in_folder("absent/file"), "x", 1), ERR_USAGE, folder, strerror(ENOENT));
	assert_error(io_read("", &data, &size), ERR_USAGE, "", strerror(ENOENT));
	assert_int_equal(entries(), 1);
	assert_ok(io_remove(pipe));
}

/* Said beforehand as io_write would say it, and nothing is there afterwards. */
static void tells_where_it_could_write(void **state)
{
	(void)state;
	char name[300] = { 0 }, *path = in_folder("file");
	memset(name, 'n', sizeof name - 1);
	assert_ok(io_writable(path));
	assert_ok(io_writable("bare"));
	assert_int_equal(entries(), 0);
	assert_error(io_writable(in_folder("absent/file")), ERR_USAGE, folder, strerror(ENOENT));
	assert_error(io_writable(in_folder("absent/")), ERR_USAGE, folder, strerror(ENOENT));
	assert_error(io_writable(in_folder(name)), ERR_USAGE, folder, strerror(ENAMETOOLONG));
	assert_error(io_writable(""), ERR_USAGE, "", strerror(ENOENT));
	assert_ok(io_write(path, OLD, strlen(OLD)));
	assert_ok(io_writable(path));
	assert_true(holds(path, OLD, strlen(OLD)));
	assert_error(io_writable(in_folder("file/below")), ERR_USAGE, folder, strerror(ENOTDIR));
	assert_ok(io_remove(path));
}

/* Another process puts a pipe in the file's place just before it is opened. */
static int put_pipe(const char *operation, const char *path)
{
	if (!strcmp(operation, "open")) {
		assert_int_equal(unlink(path), 0);
		assert_int_equal(mkfifo(path, 0600), 0);
	}
	return 0;
}

static void never_waits_for_a_pipe(void **state)
{
	(void)state;
	char *path = in_folder("file"), *data;
	size_t size;
	assert_ok(io_write(path, OLD, strlen(OLD)));
	io_fault = put_pipe;
	struct err e = io_read(path, &data, &size);
	io_fault = NULL;
	assert_error(e, ERR_USAGE, path, "pipe");
	assert_null(data);
	assert_ok(io_remove(path));
}

static void refuses_more_than_fits_into_memory(void **state)
{
	(void)state;
	char *path = in_folder("sparse"), *data;
	size_t size;
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)8 << 40), 0);
	close(fd);
	assert_error(io_read(path, &data, &size), ERR_FAILED, path, "8.8 TB of memory");
	assert_null(data);
	assert_ok(io_remove(path));
}

static void makes_folders(void **state)
{
	(void)state;
	assert_ok(io_make_folder(in_folder("a/b//c/")));
	assert_true(io_is_folder(in_folder("a/b/c")));
	assert_ok(io_make_folder(in_folder("a/b/c")));
	assert_ok(io_make_folder("/"));
	assert_ok(io_make_folder("."));
	assert_ok(io_write(in_folder("a/file"), "x", 1));
	assert_false(io_is_folder(in_folder("a/file")));
	assert_true(io_exists(in_folder("a/file")));
	assert_false(io_exists(in_folder("a/none")));
	assert_error(io_make_folder(in_folder("a/file")), ERR_USAGE, folder, "something else has that name");
	assert_error(io_make_folder(in_folder("a/file/b")), ERR_USAGE, folder, "something else has that name");
	assert_error(io_make_folder(""), ERR_USAGE, "", strerror(ENOENT));
}

static void removes_files_only(void **state)
{
	(void)state;
	assert_ok(io_remove(in_folder("never there")));
	assert_ok(io_make_folder(in_folder("kept")));
	assert_int_equal(io_remove(in_folder("kept")).code, ERR_FAILED);
	assert_true(io_is_folder(in_folder("kept")));
}

static void joins_paths(void **state)
{
	(void)state;
	static const char *const known[][3] = {
		{ "a", "b", "a/b" },	  { "a/", "b", "a/b" },		{ "", "b", "b" },
		{ "/", "b", "/b" },	  { "a/b", "c/d", "a/b/c/d" },
	};
	for (int i = 0; i < COUNT(known); i++) {
		char *path = io_join(known[i][0], known[i][1]);
		assert_string_equal(path, known[i][2]);
		free(path);
	}
}

static size_t almost_full(const char *path)
{
	return io_is_folder(path) ? 1000 : 0;
}

static void asks_for_space(void **state)
{
	(void)state;
	size_t here = io_available(folder);
	assert_true(here > 0);
	io_space = almost_full;
	assert_int_equal(io_available(in_folder("not/there/yet")), 1000);
	assert_int_equal(io_available("nor/here/"), 1000);
	assert_int_equal(io_available(""), 1000);
	io_space = NULL;
	assert_true(io_available(folder) != 1000);
}

/* A link stays one, and what it leads to is written; where it leads nowhere, nothing is. */
static void writes_what_a_link_leads_to(void **state)
{
	(void)state;
	struct stat status;
	char *text;
	size_t size;
	assert_int_equal(mkdir(in_folder("elsewhere"), 0700), 0);
	assert_ok(io_write(in_folder("elsewhere/target"), OLD, strlen(OLD)));
	assert_int_equal(symlink("elsewhere/target", in_folder("link")), 0);
	assert_ok(io_writable(in_folder("link")));
	assert_ok(io_write(in_folder("link"), "new", 3));
	assert_int_equal(lstat(in_folder("link"), &status), 0);
	assert_true(S_ISLNK(status.st_mode));
	assert_ok(io_read(in_folder("elsewhere/target"), &text, &size));
	assert_string_equal(text, "new");
	free(text);
	assert_int_equal(symlink("nowhere", in_folder("dangling")), 0);
	assert_err(io_writable(in_folder("dangling")), ERR_USAGE, "cannot be written");
	assert_err(io_write(in_folder("dangling"), "new", 3), ERR_USAGE, "cannot be written");
	assert_false(io_exists(in_folder("nowhere")));
	unlink(in_folder("link"));
	unlink(in_folder("dangling"));
	unlink(in_folder("elsewhere/target"));
	rmdir(in_folder("elsewhere"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_and_reads_back),
		cmocka_unit_test(writes_beside_the_program),
		cmocka_unit_test(writes_what_a_link_leads_to),
		cmocka_unit_test(takes_names_of_any_length),
		cmocka_unit_test(an_interrupted_write_leaves_the_old_file),
		cmocka_unit_test(a_first_write_that_fails_leaves_nothing),
		cmocka_unit_test(interruptions_are_no_failures),
		cmocka_unit_test(never_writes_into_a_file_it_did_not_make),
		cmocka_unit_test(other_operations_report_faults),
		cmocka_unit_test(a_short_write_is_not_taken_for_a_whole_one),
		cmocka_unit_test(a_reader_never_sees_half_a_file),
		cmocka_unit_test(appends),
		cmocka_unit_test(refuses_what_is_no_file),
		cmocka_unit_test(tells_where_it_could_write),
		cmocka_unit_test(never_waits_for_a_pipe),
		cmocka_unit_test(refuses_more_than_fits_into_memory),
		cmocka_unit_test(makes_folders),
		cmocka_unit_test(removes_files_only),
		cmocka_unit_test(joins_paths),
		cmocka_unit_test(asks_for_space),
	};
	return cmocka_run_group_tests_name("base io", tests, make_folder, remove_folder);
}
