/* For dl_iterate_phdr. */
#define _GNU_SOURCE
#include "tests/program.h"
#include "tests/support.h"

#include "model/base/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <link.h>
#endif

/* The program starts once more, so that its threads wait as they should: nobody may notice. */

static void prints(const char *line, const char *part)
{
	struct program_run r = program_run_shell(line);
	if (r.code || !strstr(r.out, part))
		fail_msg("%s: exit %d: no '%s' in:\n%s%s", line, r.code, part, r.out, r.err);
	program_run_free(&r);
}

/* However it is started. */
static void test_ways_to_start(void **state)
{
	static const char *const lines[] = {
		"unset OMP_WAIT_POLICY; ropewalk --version",
		"env -i \"$ROPEWALK_PROGRAM\" --version",
		"ln -s \"$ROPEWALK_PROGRAM\" 'a name'; env -i './a name' --version",
		"mkdir 'a b'; cp \"$ROPEWALK_PROGRAM\" 'a b/c d'; cd 'a b'; unset OMP_WAIT_POLICY; './c d' --version",
		NULL,
	};
	(void)state;
	for (int i = 0; lines[i]; i++)
		prints(lines[i], "ropewalk ");
}

#ifdef __linux__
/* The loader of this process: PT_INTERP of the first object. */
static int loader_of(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_INTERP)
			*(const char **)data = (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return 1;
}

/* The process is then the loader's, and what is started once more must not be the loader. */
static void test_by_its_loader(void **state)
{
	const char *loader = NULL;
	char line[300];
	(void)state;
	dl_iterate_phdr(loader_of, &loader);
	if (!loader)
		skip();
	snprintf(line, sizeof line, "unset OMP_WAIT_POLICY GOMP_SPINCOUNT; %s \"$ROPEWALK_PROGRAM\" --version", loader);
	prints(line, "ropewalk ");
}

/* ps, pgrep, top and perf show a process by this name. It has started once more when its environment says so. */
static void test_keeps_its_name(void **state)
{
	(void)state;
	if (!threads_openmp())
		skip();
	prints("unset OMP_WAIT_POLICY GOMP_SPINCOUNT; cp \"$ROPEWALK_PROGRAM\" walker\n"
	       "./walker bench --repetitions=1000000 >/dev/null 2>&1 &\n"
	       "for i in $(seq 100); do\n"
	       "	! grep -q GOMP_SPINCOUNT /proc/$!/environ || break\n"
	       "	sleep 0.02\n"
	       "done\n"
	       "grep -q GOMP_SPINCOUNT /proc/$!/environ && cat /proc/$!/comm\n"
	       "kill $!",
	       "walker\n");
}
#endif

#ifdef __x86_64__
/* A library that is older than the processor would take kernels without AVX, which are slower by half or more; what the
 * environment says is obeyed. */
static void test_kernels_of_the_processor(void **state)
{
	(void)state;
	struct program_run r = program_run_shell("unset OPENBLAS_CORETYPE; ropewalk --version");
	assert_int_equal(r.code, 0);
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && strstr(r.out, "core Prescott"))
		fail_msg("this processor has AVX2, but:\n%s", r.out);
	program_run_free(&r);
	/* A library built for one processor has no others. */
	r = program_run_shell("OPENBLAS_CORETYPE=Haswell ropewalk --version");
	bool chooses = strstr(r.out, "core Haswell");
	program_run_free(&r);
	if (chooses && __builtin_cpu_supports("avx2"))
		prints("OPENBLAS_CORETYPE=Prescott ropewalk --version", "core Prescott");
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ways_to_start),
#ifdef __x86_64__
		cmocka_unit_test(test_kernels_of_the_processor),
#endif
#ifdef __linux__
		cmocka_unit_test(test_by_its_loader),
		cmocka_unit_test(test_keeps_its_name),
#endif
	};
	return cmocka_run_group_tests_name("runs executable", tests, program_setup, program_teardown);
}
