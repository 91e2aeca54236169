#include "model/position/position.h"
#include "runs/completion/completion.h"
#include "tests/program.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>

/* The completion scripts, run by the shells they are for. */

static int start(void **state)
{
	(void)state;
	program_start();
	for (int i = 0; completion_shell_at(i, NULL); i++) {
		char line[80];
		snprintf(line, sizeof line, "completion %s", completion_shell_at(i, NULL));
		struct program_run r = program_run(line);
		assert_int_equal(r.code, 0);
		assert_string_equal(r.err, "");
		program_put(completion_shell_at(i, NULL), r.out, strlen(r.out));
		program_run_free(&r);
	}
	return 0;
}

/* What bash offers, a space before and behind each, for these words (as bash cuts them; quoted for a shell), of which
 * the last is being written. Free it. */
static char *offers(const char *words)
{
	struct text_builder b = { 0 };
	text_add(&b,
		 "bash --norc -c '. ./bash && COMP_WORDS=(ropewalk '\"%s\"') && "
		 "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) && _ropewalk && echo \" ${COMPREPLY[*]} \"'", words);
	struct program_run r = program_run_shell(b.data);
	if (r.code || *r.err)
		fail_msg("%s: exit %d: %s", words, r.code, r.err);
	text_builder_free(&b);
	char *out = strndup(r.out, strlen(r.out) - 1);
	program_run_free(&r);
	return out;
}

static void offers_exactly(const char *words, const char *want)
{
	char *got = offers(words);
	if (strcmp(got, want))
		fail_msg("ropewalk %s: offers '%s', not '%s'", words, got, want);
	free(got);
}

/* Every word of `want`; none of it if `none`. */
static void check_words(const char *words, const char *want, bool none)
{
	char *got = offers(words), *copy = strdup(want), *rest = NULL, spaced[100];
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		snprintf(spaced, sizeof spaced, " %s ", word);
		if (!strstr(got, spaced) != none)
			fail_msg("ropewalk %s: %s %s: %s", words, none ? "offers" : "does not offer", word, got);
	}
	free(copy);
	free(got);
}

static void test_commands(void **state)
{
	const struct command *c;
	(void)state;
	for (int i = 0; (c = command_at(i)); i++) {
		check_words("''", c->name, false);
		check_words("help ''", c->name, false);
	}
	check_words("''", "help --help --version", false);
	offers_exactly("trai", " train ");
	offers_exactly("--ver", " --version ");
	offers_exactly("zzz", "  ");
}

/* Every option of every command, with its `=` unless it may stand alone. */
static void test_options(void **state)
{
	const struct command *c;
	(void)state;
	for (int i = 0; (c = command_at(i)); i++) {
		struct scope scope = command_scope(c);
		struct text_builder want = { 0 }, words = { 0 };
		struct option_name n;
		char flag[FLAG_TEXT];
		text_add(&want, "--config= --help");
		for (int k = 0; option_name_at(&scope, k, &n); k++)
			text_add(&want, " %s%s", completion_flag(&n, flag),
				 n.option->kind == OPTION_SWITCH ? "" : "=");
		text_add(&words, "%s --", c->name);
		check_words(words.data, want.data, false);
		text_builder_free(&want);
		text_builder_free(&words);
	}
	offers_exactly("eval DIR --mul", " --multiples= ");
	offers_exactly("train --tied --alibi", " --alibi-slopes= ");
	offers_exactly("train --alibi_sl", " --alibi-slopes= ");
	check_words("eval DIR --", "--steps= --layers=", true);
}

static void test_values(void **state)
{
	(void)state;
	/* As bash cuts --encoding= and --encoding=al. */
	for (int i = 0; position_at(i); i++)
		check_words("train --encoding =", position_at(i)->name, false);
	offers_exactly("train --encoding = alib", " alibi ");
	offers_exactly("train --encoding alib", " alibi ");
	/* As it does where COMP_WORDBREAKS lacks the sign. */
	offers_exactly("train --encoding=alib", " --encoding=alibi ");
	offers_exactly("train --tied =", " on off ");
	offers_exactly("train --alibi-slopes =", " published spread ");
	offers_exactly("train --alibi_slopes = s", " spread ");
	offers_exactly("check --format = j", " json ");
	offers_exactly("train --layers =", "  ");
	offers_exactly("train --out =", "  ");
	/* A switch takes no word. */
	check_words("train --tied ''", "on off", true);
}

static void test_lists_of_values(void **state)
{
	(void)state;
	offers_exactly("eval DIR --scaling = none,lin", " none,linear ");
	offers_exactly("eval DIR --scaling=none,lin", " --scaling=none,linear ");
	offers_exactly("study scaling --encoding = rope,alib", " rope,alibi ");
	offers_exactly("eval DIR --factor =", " auto ");
}

static void test_words(void **state)
{
	(void)state;
	offers_exactly("list pre", " presets ");
	offers_exactly("list --layers = 3 pre", " presets ");
	offers_exactly("completion ''", " bash zsh ");
	offers_exactly("study smo", " smoke ");
	offers_exactly("eval ''", "  ");
}

/* What is a path is left to bash, and only that. */
static void test_paths(void **state)
{
	static const struct {
		const char *words;
		bool path;
	} cases[] = {
		{ "eval ''", true },	     { "study x", true },	      { "table a ''", true },
		{ "train --out =", true },   { "forward --tokens =", true },  { "train --config =", true },
		{ "train --layers =", false }, { "train --encoding =", false }, { "list ''", false },
		{ "eval --multiples =", false }, { "trai", false },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct text_builder b = { 0 };
		/* The one call that turns paths off. */
		text_add(&b, "bash --norc -c '. ./bash; compopt() { [ \"$1\" = +o ] && echo off; }; "
			     "COMP_WORDS=(ropewalk '\"%s\"'); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _ropewalk; "
			     "complete -p ropewalk'", cases[i].words);
		struct program_run r = program_run_shell(b.data);
		assert_string_equal(r.err, "");
		assert_non_null(strstr(r.out, "complete -o default -F _ropewalk ropewalk"));
		if (!strstr(r.out, "off\n") != cases[i].path)
			fail_msg("ropewalk %s: paths are %soffered", cases[i].words, cases[i].path ? "not " : "");
		text_builder_free(&b);
		program_run_free(&r);
	}
}

static bool runs(const char *line)
{
	struct program_run r = program_run_shell(line);
	bool well = !r.code && !*r.err;
	program_run_free(&r);
	return well;
}

/* zsh is not everywhere; where it is, it reads its script. */
static void test_scripts_parse(void **state)
{
	const struct command *c;
	size_t size;
	(void)state;
	assert_true(runs("bash -n ./bash"));
	assert_true(!runs("command -v zsh >/dev/null") || runs("zsh -n ./zsh"));
	char *zsh = program_file("zsh", &size);
	for (int i = 0; (c = command_at(i)); i++) {
		struct scope scope = command_scope(c);
		struct option_name n;
		char want[120], flag[FLAG_TEXT];
		snprintf(want, sizeof want, "\n\t%s)\n", c->name);
		const char *part = strstr(zsh, want);
		assert_non_null(part);
		for (int k = 0; option_name_at(&scope, k, &n); k++) {
			bool is_switch = n.option->kind == OPTION_SWITCH;
			snprintf(want, sizeof want, "\n\t\t\t'%s=%s[", completion_flag(&n, flag), is_switch ? "-" : "");
			assert_non_null(strstr(part, want));
		}
	}
	/* Outside of quotes a shell would read what a help text says. */
	assert_non_null(strstr(zsh, "AdamW'\\''s"));
	free(zsh);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commands), cmocka_unit_test(test_options),       cmocka_unit_test(test_values),
		cmocka_unit_test(test_words),	 cmocka_unit_test(test_lists_of_values), cmocka_unit_test(test_paths),
		cmocka_unit_test(test_scripts_parse),
	};
	return cmocka_run_group_tests_name("runs completion", tests, start, program_teardown);
}
