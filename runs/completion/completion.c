#include "runs/completion/completion.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	void (*script)(struct text_builder *b);
} shells[] = { { "bash", completion_bash }, { "zsh", completion_zsh } };
#define SHELLS ((int)(sizeof shells / sizeof shells[0]))

const char *completion_shell_at(int index, const void *unused)
{
	(void)unused;
	return index < SHELLS ? shells[index].name : NULL;
}

void completion_script(int shell, struct text_builder *b)
{
	shells[shell].script(b);
}

const char *completion_flag(const struct option_name *n, char text[FLAG_TEXT])
{
	snprintf(text, FLAG_TEXT, "--%s", n->name);
	for (char *s = text; *s; s++)
		*s = *s == '_' ? '-' : *s;
	return text;
}

static void add_word(struct text_builder *b, const char *word, size_t length)
{
	text_add(b, "%s%.*s", b->size ? " " : "", (int)length, word);
}

void completion_values(const struct option_name *n, struct text_builder *b)
{
	const struct option *o = n->option;
	family_at family = option_family(n->list, o);
	text_add(b, "%s", "");
	for (int i = 0; family && family(i); i++)
		add_word(b, family(i)->name, strlen(family(i)->name));
	if (o->kind == OPTION_SWITCH)
		text_add(b, "on off");
	else
		for (const char *s = o->choices; s && *s; s += strcspn(s, "|"), s += *s == '|')
			add_word(b, s, strcspn(s, "|"));
}

bool completion_is_path(const struct option_name *n)
{
	const char *unit = n->option->unit ? n->option->unit : "";
	return n->option->kind == OPTION_TEXT && (!strcmp(unit, "file") || !strcmp(unit, "folder"));
}

void completion_words(const struct command *c, struct text_builder *b)
{
	const char *word;
	text_add(b, "%s", "");
	for (int i = 0; c->word_at && (word = c->word_at(i, NULL)); i++)
		add_word(b, word, strlen(word));
}
