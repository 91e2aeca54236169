#ifndef ROPEWALK_HELP_H
#define ROPEWALK_HELP_H

#include "runs/command/command.h"

#include <stdio.h>

/* Help, made from the lists of commands and options. */

void help_usage(FILE *to);                          /* the commands, a line each */
void help_program(FILE *to);                        /* `ropewalk --help` */
void help_command(const struct command *c, FILE *to); /* `ropewalk COMMAND --help` */
void help_option(FILE *to, const struct option_name *n); /* an option, its default (or defaults) and range */

#endif
