#include "runs/help.h"

#include <string.h>

#define WRAP 100

/* Prints words in lines of at most WRAP characters, those after the first indented; `column` is where it begins. */
static void print_wrapped(FILE *to, int column, int indent, const char *text)
{
	for (const char *gap = ""; *text; gap = " ") {
		int length = (int)strcspn(text, " ");
		if (*gap && column + 1 + length > WRAP) {
			fprintf(to, "\n%*s", indent, "");
			column = indent;
			gap = "";
		}
		column += fprintf(to, "%s%.*s", gap, length, text);
		text += length;
		text += strspn(text, " ");
	}
	fputc('\n', to);
}

void help_usage(FILE *to)
{
	const struct command *c;
	fputs("Usage:\n", to);
	for (int i = 0; (c = command_at(i)); i++)
		fprintf(to, "  ropewalk %-7s  %-18s  %s\n", c->name, c->words, c->help);
	fputs("  ropewalk --version, --help, COMMAND --help\n", to);
}

void help_program(FILE *to)
{
	fputs("ropewalk trains tiny Transformers and measures what happens past the training length.\n\n", to);
	help_usage(to);
	fputs("\nOptions are written --name=value or --name value; `-` and `_` are equal. --config=FILE reads\n"
	      "`name = value` lines; what comes later wins. A method with options of its own is written\n"
	      "NAME(option=value,...), quoted from the shell: --scaling='ntk(factor=8)'. Results go to stdout,\n"
	      "everything else to stderr. Exit codes: 0 done, 1 failed, 2 bad usage or input, 3 training diverged.\n",
	      to);
}

static void add_range(const struct option *o, struct text_builder *b)
{
	char least[NUMBER_TEXT], most[NUMBER_TEXT];
	switch (o->kind) {
	case OPTION_SWITCH:
		text_add(b, "on, off");
		break;
	case OPTION_INTEGER:
	case OPTION_NUMBER:
		text_add(b, "%s..%s", number_to_text(o->least, least), number_to_text(o->most, most));
		if (o->choices)
			text_add(b, " or %s", o->choices);
		break;
	case OPTION_CHOICE:
		text_add(b, "%s", o->choices);
		break;
	case OPTION_TEXT:
		break;
	case OPTION_METHOD:
		for (int i = 0; o->family(i); i++)
			text_add(b, "%s%s", i ? ", " : "", o->family(i)->name);
	}
	if (o->unit && *o->unit)
		text_add(b, "%s%s", b->size ? " " : "", o->unit);
}

/* The defaults of methods that share the option's name but not its default. */
static void add_other_defaults(const struct option_name *n, struct text_builder *b)
{
	for (int i = 0; n->family && !n->entry && n->family(i); i++) {
		const struct entry *e = n->family(i);
		int at = method_find(e, n->option->name);
		if (at >= 0 && strcmp(e->options[at].initial, n->option->initial))
			text_add(b, " (%s: %s)", e->name, e->options[at].initial);
	}
}

void help_option(FILE *to, const struct option_name *n)
{
	char flag[80];
	snprintf(flag, sizeof flag, *n->option->initial ? "--%s=%s" : "--%s", n->name, n->option->initial);
	for (char *s = flag; *s && *s != '='; s++)
		*s = *s == '_' ? '-' : *s;
	int column = fprintf(to, "  %-30s  ", flag);
	if (column > 34)
		column = fprintf(to, "\n%34s", "") - 1;
	struct text_builder range = { 0 }, b = { 0 };
	text_add(&range, "%s", "");
	add_range(n->option, &range);
	text_add(&b, "%s", n->option->help);
	if (range.size)
		text_add(&b, " [%s]", range.data);
	add_other_defaults(n, &b);
	if (n->option->aliases)
		text_add(&b, " (also %s)", n->option->aliases);
	print_wrapped(to, column, 34, b.data);
	text_builder_free(&range);
	text_builder_free(&b);
}

/* What the options from here on are about. */
static const char *heading(const struct option_name *n)
{
	if (n->entry)
		return n->entry->name;
	if (n->family)
		return "every chosen method that has it";
	switch (n->list) {
	case LIST_MODEL:
		return "the model";
	case LIST_DATA:
		return "the data";
	case LIST_TRAIN:
		return "training";
	case LIST_EVAL:
		return "evaluation";
	case LIST_OWN:
		return "this command";
	}
	return "the run";
}

void help_command(const struct command *c, FILE *to)
{
	struct scope scope = command_scope(c);
	struct option_name n;
	const char *last = "";
	fprintf(to, "ropewalk %s%s%s [--option=value ...]\n\n", c->name, *c->words ? " " : "", c->words);
	print_wrapped(to, 0, 0, c->help);
	for (int i = 0; option_name_at(&scope, i, &n); i++) {
		if (strcmp(last, heading(&n)))
			fprintf(to, "\nOptions of %s:\n", heading(&n));
		last = heading(&n);
		help_option(to, &n);
	}
	fprintf(to, "\n  %-30s  %s\n", "--config=FILE", "reads options from `name = value` lines");
	if (c->more)
		fprintf(to, "\n%s\n", c->more);
}
