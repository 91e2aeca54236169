#include "tests/hostile.h"

#include "model/base/io.h"
#include "model/base/stb.h"
#include "model/position/scaling.h"
#include "runs/arguments.h"

#include <stdlib.h>
#include <string.h>

/* A command line, a word a line: the command, then its options and other words. */

#define WORDS 60

static int cut(char *text, char *word[WORDS + 1])
{
	int count = 0;
	char *rest = NULL;
	for (char *w = strtok_r(text, "\n", &rest); w && count < WORDS; w = strtok_r(NULL, "\n", &rest))
		/* Other files are no part of the input. */
		if (strncmp(w, "--config", 8))
			word[count++] = w;
	word[count] = NULL;
	return count;
}

static const struct command *command_of(const char *name)
{
	const struct command *c;
	for (int i = 0; (c = command_at(i)); i++)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

/* Its label is how the user wrote it. */
static void same_method(const struct method *m)
{
	struct method second;
	struct text_builder label = { 0 }, one = { 0 }, two = { 0 };
	method_label(m, &label);
	struct err e = method_parse("scaling", scaling_at, label.data, &second);
	BUG_IF(e.code, "a label is refused: %s", e.text);
	method_identity(m, &one);
	method_identity(&second, &two);
	BUG_IF(strcmp(one.data, two.data), "%s became %s", one.data, two.data);
	text_builder_free(&label);
	text_builder_free(&one);
	text_builder_free(&two);
}

static void same_config(const struct config *c, unsigned lists, const char *again)
{
	struct config second;
	struct text_builder one = { 0 }, two = { 0 };
	text_add(&one, "%s", "");
	text_add(&two, "%s", "");
	config_init(&second, &(struct scope){ .command = "a run", .lists = LIST_TRAINING }, NULL);
	config_print(c, lists, &one);
	struct err e = io_write(again, one.data, one.size);
	if (!e.code)
		e = config_read(&second, again);
	BUG_IF(e.code, "what was written is refused: %s", e.text);
	config_print(&second, lists, &two);
	BUG_IF(strcmp(one.data, two.data), "another config was read:\n%s\n%s", one.data, two.data);
	text_builder_free(&one);
	text_builder_free(&two);
}

static struct err check_config(struct config *c, const char *again)
{
	struct method *scaling;
	int count;
	TRY(config_finish(c, true));
	if (c->scope.lists & LIST_EVAL) {
		TRY(config_scalings(c, true, &scaling, &count));
		for (int i = 0; i < count; i++)
			same_method(&scaling[i]);
		free(scaling);
	}
	same_config(c, c->scope.lists & LIST_TRAINING, again);
	return OK;
}

static struct err parse(int count, char **word, const char *again)
{
	struct invocation in;
	const struct command *c = count ? command_of(word[0]) : NULL;
	if (!c)
		return err_usage("`ropewalk --help` lists the commands.", "no command");
	TRY(arguments_parse(c, count, word, &in));
	struct err e = check_config(&in.config, again);
	free(in.word);
	free(in.config.own);
	return e;
}

static struct err read(const char *path, const char *again)
{
	char *text, *word[WORDS + 1];
	size_t size;
	struct err e = io_read(path, &text, &size);
	BUG_IF(e.code, "%s", e.text);
	e = parse(cut(text, word), word, again);
	free(text);
	return e;
}

const struct target target_options = { "options", "words", read };
FUZZED(target_options)
