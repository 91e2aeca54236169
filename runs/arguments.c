#include "runs/arguments.h"

#include "model/base/stb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void shell_quote(const char *word, struct text_builder *b)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=/.,:@%";
	if (*word && word[strspn(word, plain)] == '\0') {
		text_add(b, "%s", word);
		return;
	}
	text_add(b, "'");
	for (; *word; word++)
		text_add(b, *word == '\'' ? "'\\''" : "%c", *word);
	text_add(b, "'");
}

const char *shell_word(const char *word)
{
	struct text_builder b = { 0 };
	shell_quote(word, &b);
	const char *kept = text_keep(b.data);
	text_builder_free(&b);
	return kept;
}

static const char *quoted_line(int argc, char **argv)
{
	struct text_builder b = { 0 };
	text_add(&b, "ropewalk");
	for (int i = 0; i < argc; i++) {
		text_add(&b, " ");
		shell_quote(argv[i], &b);
	}
	const char *line = text_keep(b.data);
	text_builder_free(&b);
	return line;
}

bool arguments_help(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return true;
	return false;
}

/* An option's value: behind '=', or the next word, which it then uses up. A switch alone is on, and so is a choice that
 * has `on` where no word follows. An unknown option has none: whoever sets it says so. */
static struct err option_value(const struct config *c, const char *name, const char *equals, int argc, char **argv,
			       int *i, const char **value)
{
	if (equals) {
		*value = equals + 1;
		return OK;
	}
	if (config_is_switch(c, name)) {
		*value = "on";
		return OK;
	}
	struct option_name known;
	if (!same_name(name, "config") && !option_lookup(&c->scope, name, &known))
		return OK;
	if (*i + 1 >= argc || !strncmp(argv[*i + 1], "--", 2)) {
		char hint[160];
		if (config_can_be_on(c, name)) {
			*value = "on";
			return OK;
		}
		snprintf(hint, sizeof hint, "Write --%.60s=VALUE.", name);
		return err_usage(hint, "--%s: the value is missing", name);
	}
	*value = argv[++*i];
	return OK;
}

static struct err parse_option(const struct command *command, struct config *c, int argc, char **argv, int *i)
{
	char name[100];
	const char *text = argv[*i] + 2, *equals = strchr(text, '='), *value = "";
	size_t length = equals ? (size_t)(equals - text) : strlen(text);
	snprintf(name, sizeof name, "%.*s", length > 99 ? 99 : (int)length, text);
	TRY(option_value(c, name, equals, argc, argv, i, &value));
	config_setter *set = command->set ? command->set : config_set;
	return same_name(name, "config") ? config_read_by(c, value, set) : set(c, name, value, NULL);
}

static struct err count_words(const struct command *c, const struct invocation *in)
{
	struct text_builder hint = { 0 };
	struct err e = OK;
	text_add(&hint, "Usage: ropewalk %s%s%s [--option=value ...]", c->name, *c->words ? " " : "", c->words);
	if (in->words > c->most) {
		e = err_usage(hint.data, "%s: '%.100s' is not expected here", c->name, in->word[c->most]);
	} else if (in->words < c->least) {
		text_add(&hint, c->word_at ? ". " : "");
		if (c->word_at)
			command_names(c, &hint);
		e = err_usage(hint.data, "%s: %s is missing", c->name, c->words);
	}
	text_builder_free(&hint);
	return e;
}

static struct err parse_words(const struct command *command, int argc, char **argv, struct invocation *in)
{
	bool options = true;
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		if (options && !strcmp(word, "--")) {
			options = false;
		} else if (options && !strncmp(word, "--", 2)) {
			TRY(parse_option(command, &in->config, argc, argv, &i));
		} else if (options && word[0] == '-' && word[1]) {
			return err_usage("Options begin with --.", "%.100s: unknown option", word);
		} else {
			in->word[in->words++] = word;
		}
	}
	return count_words(command, in);
}

struct err arguments_parse(const struct command *c, int argc, char **argv, struct invocation *in)
{
	struct scope scope = command_scope(c);
	void *own = NULL;
	if (c->own_size) {
		own = stb_reallocate(NULL, c->own_size);
		memset(own, 0, c->own_size);
	}
	*in = (struct invocation){ .command = c, .line = quoted_line(argc, argv), .argv = argv };
	config_init(&in->config, &scope, own);
	in->word = stb_reallocate(NULL, sizeof *in->word * (size_t)(argc + 1));
	struct err e = parse_words(c, argc, argv, in);
	if (e.code) {
		free(in->word);
		free(own);
		*in = (struct invocation){ 0 };
	}
	return e;
}
