#include "runs/version.h"

#include "model/base/blas.h"
#include "model/base/threads.h"

#ifndef ROPEWALK_VERSION
#define ROPEWALK_VERSION "unknown"
#endif
#ifndef ROPEWALK_COMMIT
#define ROPEWALK_COMMIT "unknown"
#endif
#ifndef ROPEWALK_FLAGS
#define ROPEWALK_FLAGS "unknown"
#endif

const char *version_number(void)
{
	return ROPEWALK_VERSION;
}

const char *version_commit(void)
{
	return ROPEWALK_COMMIT;
}

const char *version_compiler(void)
{
#ifdef __clang__
	return "clang " __clang_version__;
#else
	return "gcc " __VERSION__;
#endif
}

const char *version_flags(void)
{
	return ROPEWALK_FLAGS;
}

const char *version_machine(char text[192])
{
	struct blas_report blas = blas_report();
	snprintf(text, 192, "threads %d (OpenMP %s), %s core %s %s, %s, products %s", threads_count(),
		 threads_openmp() ? "yes" : "no", blas.library, blas.core, blas.flavour, REAL_NAME, blas.products);
	return text;
}

void version_print(FILE *to)
{
	char machine[192];
	fprintf(to, "ropewalk %s\n", version_number());
	fprintf(to, "commit %s\n", version_commit());
	fprintf(to, "compiler %s\n", version_compiler());
	fprintf(to, "flags %s\n", version_flags());
	fprintf(to, "%s\n", version_machine(machine));
}

json_t *version_json(void)
{
	struct blas_report blas = blas_report();
	json_t *library = json_pack("{s:s, s:s, s:s, s:s}", "library", blas.library, "core", blas.core, "flavour",
				    blas.flavour, "products", blas.products);
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:i, s:o}", "version", version_number(), "commit",
			      version_commit(), "compiler", version_compiler(), "flags", version_flags(), "real",
			      REAL_NAME, "openmp", threads_openmp(), "threads", threads_count(), "blas", library);
	BUG_IF(!o, "the version is not UTF-8");
	return o;
}
