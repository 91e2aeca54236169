#include "model/base/blas.h"
#include "model/position/position.h"
#include "runs/arguments.h"
#include "runs/help.h"
#include "runs/loading.h"
#include "runs/version.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A file opened while a standard stream is closed would take its place and be written over. A closed stdout becomes one
 * that cannot be written to, so that results lost are an error. */
static void hold_standard_streams(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 1 ? O_RDONLY : O_RDWR) != fd)
			exit(ERR_FAILED);
}

static const struct command *find_command(const char *name)
{
	const struct command *c;
	for (int i = 0; (c = command_at(i)); i++)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

static struct err unknown_command(const char *name)
{
	const char *nearest = nearest_name(name, command_word_at, NULL);
	char hint[120];
	snprintf(hint, sizeof hint, nearest ? "Did you mean %s?" : "`ropewalk --help` lists the commands.", nearest);
	return err_usage(hint, "%.100s: unknown %s", name, *name == '-' ? "option" : "command");
}

static struct err run_command(int argc, char **argv)
{
	const struct command *c = find_command(argv[0]);
	if (!c)
		return unknown_command(argv[0]);
	if (arguments_help(argc, argv)) {
		help_command(c, stdout);
		return OK;
	}
	struct invocation in;
	TRY(arguments_parse(c, argc, argv, &in));
	struct err e = c->run(&in);
	free(in.word);
	free(in.config.own);
	return e;
}

static struct err run_help(int argc, char **argv)
{
	if (argc > 2)
		return err_usage("Name one command.", "help: '%.100s' is not expected here", argv[2]);
	if (argc < 2 || !strcmp(argv[1], "help") || arguments_help(argc, argv)) {
		help_program(stdout);
		return OK;
	}
	const struct command *c = find_command(argv[1]);
	if (!c)
		return unknown_command(argv[1]);
	help_command(c, stdout);
	return OK;
}

static struct err run(int argc, char **argv)
{
	if (!strcmp(argv[0], "--help") || !strcmp(argv[0], "-h"))
		return run_help(1, argv);
	if (!strcmp(argv[0], "help"))
		return run_help(argc, argv);
	if (!strcmp(argv[0], "--version") || !strcmp(argv[0], "version")) {
		TRY(blas_start(0));
		version_print(stdout);
		return OK;
	}
	return run_command(argc, argv);
}

/* stdio forgets why an earlier write failed: one more fails likewise. */
static int lost_output(void)
{
	return write(STDOUT_FILENO, "\n", 1) < 0 ? errno : EIO;
}

static struct err finish_stdout(void)
{
	static const char hint[] = "What was printed is incomplete.";
	int error = ferror(stdout) ? lost_output() : 0;
	errno = 0;
	if (fclose(stdout) && !error)
		error = errno;
	return error ? err_system(error, hint, "stdout: cannot be written") : OK;
}

static void print_error(const struct err *e)
{
	fprintf(stderr, "ropewalk: %s\n", e->text);
	if (*e->hint)
		fprintf(stderr, "  %s\n", e->hint);
}

#if defined(__linux__) && defined(__ELF__)
/* Before the libraries are initialised, where the loader knows this. */
static void before_libraries(int argc, char **argv, char **envp)
{
	struct err e = loading_prepare(argv, envp);
	(void)argc;
	if (!e.code)
		return;
	print_error(&e);
	_exit((int)e.code);
}
__attribute__((section(".preinit_array"), used)) static void (*const preinit)(int, char **, char **) =
	before_libraries;
#endif

int main(int argc, char **argv, char **envp)
{
	loading_prepare(argv, envp);
	hold_standard_streams();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	position_verify_all();
	if (argc < 2) {
		help_usage(stderr);
		return ERR_USAGE;
	}
	struct err e = run(argc - 1, argv + 1), output = finish_stdout();
	e = e.code ? e : output;
	/* Without a text it was told already, by another program. */
	if (e.code && *e.text)
		print_error(&e);
	return (int)e.code;
}
