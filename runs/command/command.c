#include "runs/command/command.h"

#include "model/base/blas.h"
#include "runs/version.h"

#include <stdio.h>
#include <string.h>

/* A command is a file that defines `command_NAME`, and a row here. */
#define COMMANDS                                                                                \
	COMMAND(train) COMMAND(eval) COMMAND(study) COMMAND(table) COMMAND(plot) COMMAND(report)       \
	COMMAND(finetune) COMMAND(decompose) COMMAND(merge) COMMAND(claims)                            \
	COMMAND(diagnose) COMMAND(patch) COMMAND(knockout) COMMAND(oracle)                             \
	COMMAND(inspect) COMMAND(scores) COMMAND(forward) COMMAND(generate) COMMAND(bench) COMMAND(check) \
	COMMAND(list) COMMAND(completion)

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

const char *command_word_at(int index, const void *unused)
{
	static const char *const more[] = { "help", "--help", "--version", NULL };
	int count = sizeof list / sizeof *list;
	(void)unused;
	return index < count ? list[index]->name : more[index - count];
}

void command_names(const struct command *c, struct text_builder *b)
{
	const char *name;
	text_add(b, "There are:");
	for (int i = 0; (name = c->word_at(i, NULL)); i++)
		text_add(b, "%s %s", i ? "," : "", name);
	text_add(b, ".");
}

struct err command_pick(const struct command *c, const char *word, int *index)
{
	const char *name, *nearest = nearest_name(word, c->word_at, NULL);
	struct text_builder hint = { 0 };
	for (*index = 0; (name = c->word_at(*index, NULL)); ++*index)
		if (!strcmp(name, word))
			return OK;
	if (nearest)
		text_add(&hint, "Did you mean %s? ", nearest);
	command_names(c, &hint);
	struct err e = err_usage(hint.data, "%s: '%.60s' is unknown", c->name, word);
	text_builder_free(&hint);
	return e;
}

struct scope command_scope(const struct command *c)
{
	return (struct scope){ .command = c->name, .lists = c->lists, .without = c->without, .own = c->own };
}

struct err command_start(const struct config *c)
{
	char machine[192];
	blas_use((enum blas_products)c->run.products);
	TRY(blas_start((int)c->run.threads));
	fprintf(stderr, "%s\n", version_machine(machine));
	return OK;
}
