#ifndef ROPEWALK_TESTS_PROGRAM_H
#define ROPEWALK_TESTS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The program as users meet it: run in a temporary folder of its own, on relative paths. The program is the one that
 * the environment's ROPEWALK names, else build/ropewalk. */

void program_start(void); /* makes the folder */
void program_stop(void);  /* and removes it */

int program_setup(void **state); /* the same as a test's set-up and tear-down */
int program_setup_own(void **state); /* likewise; in the double build the program of doubles is asked */
int program_teardown(void **state);

/* One run. */
struct program_run {
	int code; /* exit code; -1 if a signal ended it */
	char *out, *err;
};
void program_run_free(struct program_run *r);

/* Runs a command line, cut at its spaces. stdout goes to `stdout_path` if given. As `nobody`, if we are root, whom
 * permissions would not stop. */
struct program_run program_run(const char *line);
struct program_run program_run_to(const char *line, const char *stdout_path);
struct program_run program_run_as_nobody(const char *line);

/* Runs a line of sh in the folder, where `ropewalk` is the program. */
struct program_run program_run_shell(const char *line);
void shell(const char *line); /* the same; it exits with 0, or the test fails */

/* One that goes on meanwhile, and its end. */
pid_t program_begin(const char *line);
struct program_run program_end(pid_t pid);

/* Waits until a file of the folder is there, named by a pattern of the shell. */
void program_await(const char *pattern);

/* Exit 0, or the test fails. */
void program_works(const char *line);

/* Exit 2 with an error line that has both texts (the second may be NULL; either may stand in its hint), no more lines
 * after them, no control characters on stderr, nothing on stdout, nothing written. */
void program_refuses(const char *line, const char *first, const char *second);
/* Likewise with this exit code, of a run that may have written; gives the run back. */
void program_failed(const char *line, struct program_run *r, int code, const char *first, const char *second);

/* Files of the folder: path in fresh memory; content in fresh memory, a NUL behind it; writing one; is it there? */
char *program_path(const char *name);
char *program_file(const char *name, size_t *size);
void program_put(const char *name, const void *data, size_t size);
bool program_has(const char *name);

#endif
