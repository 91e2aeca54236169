#include "runs/help.h"

#include "model/base/stb.h"

#include <ctype.h>
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
		fprintf(to, "  ropewalk %-10s  %-17s  %s\n", c->name, c->words, c->help);
	fprintf(to, "  ropewalk %-10s  %-17s  %s\n", "help", "COMMAND", "its options and examples");
	fprintf(to, "  ropewalk %-10s  %-17s  %s\n", "--version", "", "version, commit, compiler, flags, BLAS");
}

void help_program(FILE *to)
{
	fputs("ropewalk trains tiny Transformers and measures what happens past the training length.\n\n", to);
	help_usage(to);
	fputs("\nTo begin with:\n"
	      "  ropewalk study smoke              a small study: trains, evaluates, prints its tables\n"
	      "  ropewalk list                     what can be listed: encodings, scalings, options ...\n"
	      "  ropewalk train --out=runs/out/rope && ropewalk eval runs/out/rope --scaling=none,yarn\n"
	      "\nOptions are written --name=value or --name value; `-` and `_` are equal. --config=FILE reads\n"
	      "`name = value` lines; what comes later wins. A method with options of its own is written\n"
	      "NAME(option=value,...), quoted from the shell: --scaling='ntk(factor=8)'.\n"
	      "\nResults go to stdout, everything else to stderr. Exit codes:\n"
	      "  0  done\n"
	      "  1  failed: the disk, the memory, another program; or a check found something wrong\n"
	      "  2  bad usage or input: nothing was computed\n"
	      "  3  training diverged\n",
	      to);
}

static void add_list(struct text_builder *b, const char *words)
{
	for (; *words; words++)
		text_add(b, *words == '|' ? ", " : "%c", *words);
}

static void add_range(const struct option_name *n, struct text_builder *b)
{
	const struct option *o = n->option;
	char least[NUMBER_TEXT], most[NUMBER_TEXT];
	family_at family = option_family(n->list, o);
	if (o->kind == OPTION_SWITCH)
		text_add(b, "on, off");
	if (o->kind == OPTION_INTEGER || o->kind == OPTION_NUMBER) {
		text_add(b, "%s..%s", number_to_text(o->least, least), number_to_text(o->most, most));
		text_add(b, o->choices ? " or " : "");
	}
	if (o->choices && o->kind != OPTION_SWITCH)
		add_list(b, o->choices);
	for (int i = 0; family && family(i); i++)
		text_add(b, "%s%s", i ? ", " : o->kind == OPTION_TEXT ? "of " : "", family(i)->name);
	if (o->unit && *o->unit && o->kind != OPTION_TEXT)
		text_add(b, "%s%s", b->size ? " " : "", o->unit);
}

/* The defaults of methods that share the option's name but not its default. */
static void add_other_defaults(const struct option_name *n, struct text_builder *b)
{
	for (int i = 0; n->family && !n->entry && n->family(i); i++) {
		const struct entry *e = n->family(i);
		int at = method_find(e, n->option->name);
		if (at >= 0 && e->options[at].shared && strcmp(e->options[at].initial, n->option->initial))
			text_add(b, " (%s: %s)", e->name, e->options[at].initial);
	}
}

/* "--name=default", or "--name=FILE" where there is none. */
static void add_flag(const struct option_name *n, struct text_builder *b)
{
	text_add(b, "--%s=", n->name);
	for (char *s = b->data; *s; s++)
		*s = *s == '_' ? '-' : *s;
	const char *unit = n->option->unit && *n->option->unit ? n->option->unit : "text";
	if (*n->option->initial)
		text_add(b, "%s", n->option->initial);
	else
		for (; *unit; unit++)
			text_add(b, "%c", toupper((unsigned char)*unit));
}

static void add_aliases(const struct option_name *n, struct text_builder *b)
{
	char alias[64];
	for (int i = 0; option_alias_at(n, i, alias); i++) {
		for (char *s = alias; *s; s++)
			*s = *s == '_' ? '-' : *s;
		text_add(b, "%s--%s", i ? ", " : " (also ", alias);
	}
	if (option_alias_at(n, 0, alias))
		text_add(b, ")");
}

#define FLAG_COLUMNS 28
#define INDENT (2 + FLAG_COLUMNS + 2)

void help_option(FILE *to, const struct option_name *n)
{
	struct text_builder flag = { 0 }, range = { 0 }, b = { 0 };
	add_flag(n, &flag);
	if (flag.size > FLAG_COLUMNS)
		fprintf(to, "  %s\n%*s", flag.data, INDENT, "");
	else
		fprintf(to, "  %-*s  ", FLAG_COLUMNS, flag.data);
	add_range(n, &range);
	text_add(&b, "%s", n->option->help);
	if (range.size)
		text_add(&b, " [%s]", range.data);
	add_other_defaults(n, &b);
	add_aliases(n, &b);
	print_wrapped(to, INDENT, INDENT, b.data);
	text_builder_free(&flag);
	text_builder_free(&range);
	text_builder_free(&b);
}

/* The names a command takes, in an stb_ds array. */
static struct option_name *names_of(const struct scope *scope)
{
	struct option_name *all = NULL, n;
	for (int i = 0; option_name_at(scope, i, &n); i++)
		arrput(all, n);
	return all;
}

/* What the methods of a family are, by the option that chooses one: "encoding". */
static const char *family_noun(const struct option_name *all, family_at family)
{
	for (int i = 0; i < arrlen(all); i++)
		if (all[i].list && option_family(all[i].list, all[i].option) == family)
			return all[i].option->name;
	BUG("methods that no option chooses");
}

/* What an option is about; options of equal headings stand together. */
static const char *heading(const struct option_name *all, const struct option_name *n, char text[80])
{
	if (n->family && n->entry)
		snprintf(text, 80, "Options of %s %s", family_noun(all, n->family), n->entry->name);
	else if (n->family)
		snprintf(text, 80, "Options of every %s that has them", family_noun(all, n->family));
	else
		snprintf(text, 80, "Options of %s",
			 n->list == LIST_MODEL ? "the model" : n->list == LIST_DATA ? "the data" :
			 n->list == LIST_TRAIN ? "training" : n->list == LIST_EVAL ? "evaluation" :
			 n->list == LIST_OWN ? "this command" : n->list == LIST_STUDY ? "the study" : "the run");
	return text;
}

/* The options under the heading of the first of them. */
static void print_group(FILE *to, const struct option_name *all, int first)
{
	char title[80], other[80];
	heading(all, &all[first], title);
	for (int i = 0; i < first; i++)
		if (!strcmp(heading(all, &all[i], other), title))
			return;
	fprintf(to, "\n%s:\n", title);
	for (int i = first; i < arrlen(all); i++)
		if (!strcmp(heading(all, &all[i], other), title))
			help_option(to, &all[i]);
}

/* A command's own options first, those of every model last. */
static void print_options(FILE *to, const struct option_name *all)
{
	static const unsigned first[] = { LIST_OWN, LIST_STUDY, LIST_EVAL, LIST_RUN, 0 };
	for (int f = 0; f < 5; f++)
		for (int i = 0; i < arrlen(all); i++) {
			bool early = all[i].list & (LIST_OWN | LIST_STUDY | LIST_RUN | LIST_EVAL);
			if (first[f] ? all[i].list == first[f] : !early)
				print_group(to, all, i);
		}
}

void help_command(const struct command *c, FILE *to)
{
	struct scope scope = command_scope(c);
	struct option_name *all = names_of(&scope);
	fprintf(to, "ropewalk %s%s%s [--option=value ...]\n\n", c->name, *c->words ? " " : "", c->words);
	print_wrapped(to, 0, 0, c->help);
	if (c->more)
		fprintf(to, "\n%s\n", c->more);
	print_options(to, all);
	fprintf(to, "\n  %-*s  %s\n", FLAG_COLUMNS, "--config=FILE", "reads options from `name = value` lines");
	fprintf(to, "  %-*s  %s\n", FLAG_COLUMNS, "--help", "prints this");
	arrfree(all);
}
