#include "runs/command/command.h"

#include "model/base/blas.h"
#include "runs/version.h"

#include <stdio.h>

/* A command is a file that defines `command_NAME`, and a row here. */
#define COMMANDS                                                                                                \
	COMMAND(train) COMMAND(eval) COMMAND(study) COMMAND(table) COMMAND(forward) COMMAND(decompose) COMMAND(list)

#define COMMAND(name) extern const struct command command_##name;
COMMANDS
#undef COMMAND

#define COMMAND(name) &command_##name,
static const struct command *const list[] = { COMMANDS };
#undef COMMAND

const struct command *command_at(int index)
{
	int count = sizeof list / sizeof *list;
	return index >= 0 && index < count ? list[index] : NULL;
}

struct scope command_scope(const struct command *c)
{
	return (struct scope){ .command = c->name, .lists = c->lists, .without = c->without, .own = c->own };
}

struct err command_start(const struct config *c)
{
	char machine[192];
	TRY(blas_start((int)c->run.threads));
	fprintf(stderr, "%s\n", version_machine(machine));
	return OK;
}
