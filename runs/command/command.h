#ifndef ROPEWALK_COMMAND_H
#define ROPEWALK_COMMAND_H

#include "runs/config.h"

/* What a command is: one file with one `const struct command`, and one line in the list of command.c. */

struct invocation {
	const struct command *command;
	struct config config; /* options set, config_finish not yet called */
	const char **word;    /* arguments that are no options, least .. most of them */
	int words;
	const char *line; /* the whole command line, quoted for a shell */
	char **argv;      /* and as it came, from the command's name on, NULL behind the last */
};

struct command {
	const char *name;
	const char *words; /* as in "eval DIR [--option=value ...]": "DIR"; "" if it takes none */
	const char *help;  /* one line */
	const char *more;  /* paragraphs after it: what is printed and written, examples; or NULL */
	int least, most;   /* how many words it takes */
	/* Names that its words are one of, NULL past the last; NULL: they are paths. With `or_file` both may be. */
	const char *(*word_at)(int index, const void *unused);
	bool or_file;
	unsigned lists;    /* LIST_... that it takes */
	const char *without;      /* options of these that it does not take, "out|force"; or NULL */
	const struct option *own; /* its own options (LIST_OWN), rows for a struct of own_size bytes; or NULL */
	size_t own_size;

	/* Takes each option instead of config_set, in the order given; NULL: config_set. For lists that are axes. */
	config_setter *set;
	/* Checks everything before it touches the disk. Results go to stdout; errors are returned, main prints them. */
	struct err (*run)(struct invocation *in);
};

/* The list; NULL past the last. */
const struct command *command_at(int index);

/* What may stand first on a command line, for suggestions: the commands, then help, --help and --version. */
const char *command_word_at(int index, const void *unused);

/* Appends "There are: a, b." of a command's names. */
void command_names(const struct command *c, struct text_builder *b);

/* Which of a command's names (word_at) this is; an error names the nearest, or all of them. */
struct err command_pick(const struct command *c, const char *word, int *index);

/* The scope of a command's options. */
struct scope command_scope(const struct command *c);

/* Starts threads and BLAS for a command that computes, and reports them in one line on stderr. */
struct err command_start(const struct config *c);

#endif
