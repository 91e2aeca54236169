#ifndef ROPEWALK_COMPLETION_H
#define ROPEWALK_COMPLETION_H

#include "runs/command/command.h"

/* Completion scripts for shells, made from the lists of commands and options. */

/* The shells there are; NULL past the last. */
const char *completion_shell_at(int index, const void *unused);

/* Appends the script of the shell of that index. */
void completion_script(int shell, struct text_builder *b);

/* For the scripts of each shell. */

/* "--train-length": how users write an option. */
#define FLAG_TEXT 80
const char *completion_flag(const struct option_name *n, char text[FLAG_TEXT]);
/* The names that an option's value is one of (or made of), with a space between; "" where it is none of a list. */
void completion_values(const struct option_name *n, struct text_builder *b);
/* Is its value a path? */
bool completion_is_path(const struct option_name *n);
/* The names a command's words may be, likewise. */
void completion_words(const struct command *c, struct text_builder *b);

void completion_bash(struct text_builder *b);
void completion_zsh(struct text_builder *b);

#endif
