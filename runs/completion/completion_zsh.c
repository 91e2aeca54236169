#include "runs/completion/completion.h"

#include <string.h>

/* Specifications for zsh's _arguments, in single quotes: '--name=[help]:what:(values)'. */

/* Text between the single quotes, and between the brackets of an explanation. */
static void add_quoted(struct text_builder *b, const char *text)
{
	for (; *text; text++)
		text_add(b, strchr("[]\\", *text) ? "\\%c" : *text == '\'' ? "'\\''" : "%c", *text);
}

/* What completes an option's value. A command that takes lists as axes takes them for every option. */
static void add_action(const struct command *c, const struct option_name *n, struct text_builder *b)
{
	const char *unit = n->option->unit ? n->option->unit : "";
	struct text_builder values = { 0 };
	completion_values(n, &values);
	if (completion_is_path(n))
		text_add(b, "%s", strcmp(unit, "folder") ? "_files" : "_files -/");
	else if (values.size)
		text_add(b, c->set || !strcmp(unit, "list") ? "_sequence compadd - %s" : "(%s)", values.data);
	else
		text_add(b, " ");
	text_builder_free(&values);
}

/* A switch takes a value behind its `=` alone. */
static void add_option(const struct command *c, const struct option_name *n, struct text_builder *b)
{
	char flag[FLAG_TEXT];
	bool is_switch = n->option->kind == OPTION_SWITCH;
	text_add(b, " \\\n\t\t\t'%s=%s[", completion_flag(n, flag), is_switch ? "-" : "");
	add_quoted(b, n->option->help);
	text_add(b, "]%s:%s:", is_switch ? ":" : "", flag + 2);
	add_action(c, n, b);
	text_add(b, "'");
}

static void add_words(const struct command *c, struct text_builder *b)
{
	if (!c->most)
		return;
	text_add(b, " \\\n\t\t\t'%s:%s:", c->most == 1 ? "1" : "*", c->words);
	if (c->word_at && c->or_file)
		text_add(b, " _alternative \"names:name:(");
	else if (c->word_at)
		text_add(b, "(");
	completion_words(c, b);
	if (c->word_at && c->or_file)
		text_add(b, ")\" \"files:file:_files\"'");
	else
		text_add(b, c->word_at ? ")'" : "_files'");
}

static void add_command(const struct command *c, struct text_builder *b)
{
	struct scope scope = command_scope(c);
	struct option_name n;
	text_add(b, "\t%s)\n\t\t_arguments", c->name);
	for (int i = 0; option_name_at(&scope, i, &n); i++)
		add_option(c, &n, b);
	text_add(b, " \\\n\t\t\t'--config=[options from lines of name = value]:file:_files' \\\n\t\t\t'--help[help]'");
	add_words(c, b);
	text_add(b, " ;;\n");
}

static void add_first_words(struct text_builder *b)
{
	const struct command *c;
	for (int i = 0; (c = command_at(i)); i++) {
		text_add(b, "\t\t'%s:", c->name);
		add_quoted(b, c->help);
		text_add(b, "'\n");
	}
	for (int i = 0; command_word_at(i, NULL); i++)
		if (!command_at(i))
			text_add(b, "\t\t'%s'\n", command_word_at(i, NULL));
}

void completion_zsh(struct text_builder *b)
{
	const struct command *c;
	text_add(b, "#compdef ropewalk ropewalk-double\n"
		    "# Completion of ropewalk for zsh: source <(ropewalk completion zsh), after compinit\n\n"
		    "_ropewalk()\n{\n\tlocal command=$words[2]\n\tlocal -a first=(\n");
	add_first_words(b);
	text_add(b, "\t)\n"
		    "\tif ((CURRENT == 2)) || [[ $command == help ]]; then\n"
		    "\t\t_describe command first\n"
		    "\t\treturn\n"
		    "\tfi\n"
		    "\tshift words\n"
		    "\t((CURRENT--))\n"
		    "\tcase $command in\n");
	for (int i = 0; (c = command_at(i)); i++)
		add_command(c, b);
	text_add(b, "\tesac\n}\n\n"
		    "if [[ $funcstack[1] == _ropewalk ]]; then\n"
		    "\t_ropewalk \"$@\"\n"
		    "else\n"
		    "\tcompdef _ropewalk ropewalk ropewalk-double\n"
		    "fi\n");
}
