#ifndef ROPEWALK_VERSION_H
#define ROPEWALK_VERSION_H

#include <jansson.h>
#include <stdio.h>

/* Which program this is, for --version and records. The build sets ROPEWALK_VERSION, _COMMIT and _FLAGS. */

const char *version_number(void);   /* "0.1.0" */
const char *version_commit(void);   /* "unknown" outside a repository */
const char *version_compiler(void); /* "gcc 12.2.0" */
const char *version_flags(void);

/* What computes here, in one line: "threads 2 (OpenMP yes), OpenBLAS 0.3.21 core Zen pthread, float". */
const char *version_machine(char text[192]);

/* What --version prints: several lines. Threads must have been started (blas_start). */
void version_print(FILE *to);

/* A new object: version, commit, compiler, flags, real, openmp, threads, blas {library, core, flavour}. */
json_t *version_json(void);

#endif
