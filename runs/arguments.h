#ifndef ROPEWALK_ARGUMENTS_H
#define ROPEWALK_ARGUMENTS_H

#include "runs/command/command.h"

/* The command line of a command, from its name on: argv[0] is "train". */

/* Fills `in`, with all options set but not finished. --config=FILE is read where it stands. free() in->word and
 * in->config.own. On error nothing is held. */
struct err arguments_parse(const struct command *c, int argc, char **argv, struct invocation *in);

/* Does the command line ask for help (--help, -h before any `--`)? */
bool arguments_help(int argc, char **argv);

/* One word quoted for a POSIX shell, if it needs to be. Appends. */
void shell_quote(const char *word, struct text_builder *b);

/* The same, kept: for command lines that messages suggest. */
const char *shell_word(const char *word);

#endif
