#include "runs/completion/completion.h"

/* Three tables that print words, and a function that picks from them. @files stands for files and folders, which bash
 * completes itself where the function has nothing to offer. */

static void add_options(const struct command *c, struct text_builder *b)
{
	struct scope scope = command_scope(c);
	struct option_name n;
	char flag[FLAG_TEXT];
	text_add(b, "\t%s) echo '", c->name);
	for (int i = 0; option_name_at(&scope, i, &n); i++)
		text_add(b, "%s%s ", completion_flag(&n, flag), n.option->kind == OPTION_SWITCH ? "" : "=");
	text_add(b, "--config= --help' ;;\n");
}

static void add_values(const struct command *c, struct text_builder *b)
{
	struct scope scope = command_scope(c);
	struct option_name n;
	char flag[FLAG_TEXT];
	for (int i = 0; option_name_at(&scope, i, &n); i++) {
		struct text_builder values = { 0 };
		completion_values(&n, &values);
		if (values.size || completion_is_path(&n))
			text_add(b, "\t%s:%s) echo '%s' ;;\n", c->name, completion_flag(&n, flag),
				 values.size ? values.data : "@files");
		text_builder_free(&values);
	}
}

/* Names of a command that takes files, too, stand before them. */
static void add_words(const struct command *c, struct text_builder *b)
{
	if (!c->most)
		return;
	text_add(b, "\t%s) echo '", c->name);
	completion_words(c, b);
	text_add(b, "%s' ;;\n", c->word_at && !c->or_file ? "" : " @files");
}

static void add_table(struct text_builder *b, const char *name, const char *pick, const char *rest,
		      void (*add)(const struct command *c, struct text_builder *b))
{
	const struct command *c;
	text_add(b, "%s()\n{\n\tcase %s in\n", name, pick);
	for (int i = 0; (c = command_at(i)); i++)
		add(c, b);
	text_add(b, "%s\tesac\n}\n\n", rest);
}

static const char function[] =
	"_ropewalk()\n"
	"{\n"
	"\tlocal IFS=$' \\t\\n' command=${COMP_WORDS[1]} current=${COMP_WORDS[COMP_CWORD]} name= prefix= words word\n"
	"\tlocal before=${COMP_WORDS[COMP_CWORD - 1]}\n"
	"\tCOMPREPLY=()\n"
	"\tif ((COMP_CWORD == 1)); then\n"
	"\t\twords=$(_ropewalk_first)\n"
	"\t# The `=` of --name=value is a word of its own, unless COMP_WORDBREAKS lacks it.\n"
	"\telif [[ $current == --*=* ]]; then\n"
	"\t\tname=${current%%=*} prefix=${current%%=*}= current=${current#*=}\n"
	"\telif [[ $current == = ]]; then\n"
	"\t\tname=$before current=\n"
	"\telif [[ $before == = ]]; then\n"
	"\t\tname=${COMP_WORDS[COMP_CWORD - 2]}\n"
	"\telif [[ \" $(_ropewalk_options \"$command\") \" == *\" ${before//_/-}= \"* ]]; then\n"
	"\t\tname=$before\n"
	"\telif [[ $current == -* ]]; then\n"
	"\t\tcurrent=${current//_/-} words=$(_ropewalk_options \"$command\")\n"
	"\telse\n"
	"\t\twords=$(_ropewalk_words \"$command\")\n"
	"\tfi\n"
	"\tif [[ $name ]]; then\n"
	"\t\twords=$(_ropewalk_values \"$command\" \"${name//_/-}\")\n"
	"\t\t# The last of a list.\n"
	"\t\tif [[ $current == *,* ]]; then\n"
	"\t\t\tprefix+=${current%,*}, current=${current##*,}\n"
	"\t\tfi\n"
	"\tfi\n"
	"\tfor word in $words; do\n"
	"\t\t[[ $word != @files && $word == \"$current\"* ]] && COMPREPLY+=(\"$prefix$word\")\n"
	"\tdone\n"
	"\t[[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null\n"
	"\t[[ \" $words \" == *' @files '* ]] || compopt +o default 2>/dev/null\n"
	"\treturn 0\n"
	"}\n"
	"complete -o default -F _ropewalk ropewalk ropewalk-double\n";

void completion_bash(struct text_builder *b)
{
	const char *word;
	text_add(b, "# Completion of ropewalk for bash: eval \"$(ropewalk completion bash)\"\n\n");
	text_add(b, "_ropewalk_first()\n{\n\techo '");
	for (int i = 0; (word = command_word_at(i, NULL)); i++)
		text_add(b, "%s%s", i ? " " : "", word);
	text_add(b, "'\n}\n\n");
	add_table(b, "_ropewalk_options", "$1", "", add_options);
	add_table(b, "_ropewalk_values", "$1:$2", "\t*:--config) echo @files ;;\n", add_values);
	add_table(b, "_ropewalk_words", "$1", "\thelp) _ropewalk_first ;;\n", add_words);
	text_add(b, "%s", function);
}
