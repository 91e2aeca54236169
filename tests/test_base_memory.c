#include "tests/support.h"

#include "model/base/io.h"
#include "model/base/memory.h"
#include "model/base/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* How much memory there is to be had. */

#define MB ((size_t)1 << 20)

static void put(const char *folder, const char *name, const char *text)
{
	char *path = io_join(folder, name);
	assert_ok(io_write(path, text, strlen(text)));
	free(path);
}

static void test_group_version_2(void **state)
{
	char folder[FOLDER_PATH];
	(void)state;
	assert_int_equal(folder_make(folder), 0);
	assert_true(memory_group(folder) == SIZE_MAX);
	put(folder, "memory.max", "1000000\n");
	assert_true(memory_group(folder) == SIZE_MAX);
	put(folder, "memory.current", "700000\n");
	assert_int_equal(memory_group(folder), 300000);
	put(folder, "memory.stat", "anon 5\nfile 9\ninactive_files 1\ninactive_file 200000\nactive_file 7\n");
	assert_int_equal(memory_group(folder), 500000);
	put(folder, "memory.current", "1700000\n");
	assert_int_equal(memory_group(folder), 0);
	put(folder, "memory.max", "max\n");
	assert_true(memory_group(folder) == SIZE_MAX);
	assert_int_equal(folder_remove(folder), 0);
}

static void test_group_version_1(void **state)
{
	char folder[FOLDER_PATH];
	(void)state;
	assert_int_equal(folder_make(folder), 0);
	put(folder, "memory.usage_in_bytes", "700000\n");
	put(folder, "memory.limit_in_bytes", "9223372036854771712\n");
	assert_true(memory_group(folder) == SIZE_MAX);
	put(folder, "memory.limit_in_bytes", "1000000\n");
	put(folder, "memory.stat", "inactive_file 1\ntotal_inactive_file 600000\n");
	assert_int_equal(memory_group(folder), 900000);
	assert_int_equal(folder_remove(folder), 0);
}

static void limit(int resource, size_t bytes, struct rlimit *before)
{
	assert_int_equal(getrlimit(resource, before), 0);
	struct rlimit now = *before;
	now.rlim_cur = bytes;
	assert_int_equal(setrlimit(resource, &now), 0);
}

/* What is mapped counts, what was promised too, and the error says what limits. */
static void test_address_space(void **state)
{
	struct rlimit before;
	char text[MEMORY_AVAILABLE_TEXT];
	(void)state;
	assert_true(memory_allowed() == SIZE_MAX);
	size_t mapped = memory_mapped();
	assert_true(mapped > MB / 4);
	limit(RLIMIT_AS, mapped + 100 * MB, &before);
	size_t allowed = memory_allowed(), available = memory_available();
	memory_promise(50 * MB);
	size_t promised = memory_available();
	memory_available_text(text);
	memory_promise(200 * MB);
	size_t none = memory_available();
	memory_promise(0);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_true(allowed > 90 * MB && allowed <= 100 * MB);
	assert_true(available > 80 * MB && available < allowed);
	assert_true(promised > 30 * MB && promised <= available - 50 * MB + MB);
	assert_int_equal(none, 0);
	assert_non_null(strstr(text, " MB are available under the limit on address space or data (ulimit -v, -d)"));
}

static void test_data(void **state)
{
	struct rlimit before;
	(void)state;
	limit(RLIMIT_DATA, MB * MB, &before);
	size_t allowed = memory_allowed();
	assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
	assert_true(allowed > MB * MB / 2 && allowed < MB * MB);
}

static void test_stacks(void **state)
{
	static const struct {
		const char *text;
		size_t bytes;
	} cases[] = { { "100", 100 << 10 }, { "8M", 8 * MB }, { "2 g", 2048 * MB }, { "65536B", 65536 }, { "7k", 7 << 10 } };
	(void)state;
	if (!threads_openmp()) {
		assert_int_equal(threads_stack(), 0);
		skip();
	}
	unsetenv("OMP_STACKSIZE");
	unsetenv("GOMP_STACKSIZE");
	size_t usual = threads_stack();
	assert_true(usual >= 16384);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(setenv("OMP_STACKSIZE", cases[i].text, 1), 0);
		assert_int_equal(threads_stack(), cases[i].bytes);
	}
	assert_int_equal(setenv("OMP_STACKSIZE", "much", 1), 0);
	assert_int_equal(threads_stack(), usual);
	unsetenv("OMP_STACKSIZE");
}

/* The BLAS library's threads map their buffers when it suits them, once the program has begun. */
static __attribute__((unused)) int settle(void **state)
{
	size_t before = 0;
	(void)state;
	for (int same = 0; same < 20; usleep(1000)) {
		size_t now = memory_mapped();
		same = now == before ? same + 1 : 0;
		before = now;
	}
	return 0;
}

/* A sanitizer maps terabytes: no limit can be set below. */
static const struct CMUnitTest under_limits[] __attribute__((unused)) = {
	cmocka_unit_test(test_address_space),
	cmocka_unit_test(test_data),
};

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_group_version_2),
		cmocka_unit_test(test_group_version_1),
		cmocka_unit_test(test_stacks),
	};
	int failed = cmocka_run_group_tests_name("base memory", tests, NULL, NULL);
#ifndef __SANITIZE_ADDRESS__
	failed += cmocka_run_group_tests_name("base memory under limits", under_limits, settle, NULL);
#endif
	return failed;
}
