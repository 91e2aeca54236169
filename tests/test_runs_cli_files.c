#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/command/command.h"
#include "tests/program.h"
#include "tests/support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Command lines with what they print, in files: tests/cli/NAME.test is a test. To add one, write such a file:
 *
 *   # A comment, anywhere but between a command and what it prints.
 *   $ ropewalk list tasks
 *   exit 0
 *   > recall  [*]
 *   > ...
 *   $ ropewalk trian
 *   exit 2
 *   ! ropewalk: trian: unknown command
 *   !   Did you mean train?
 *
 * Each file has a fresh folder, in which its commands run one after the other, by sh: quotes, pipes and > work. Behind
 * the command stands its exit code, then every line of stdout behind `> ` and every line of stderr behind `! `, in any
 * mixture. Without such lines it must print nothing there. A line `...` stands for any lines, none too; `[*]` within a
 * line for any text. Use them for what a machine decides: trained numbers, threads, times, the version.
 *
 *   write NAME      makes a file of the lines behind `< ` that follow
 *   cut NAME        leaves the first half of a file */

#define FOLDER "tests/cli"

/* A line of a test, or of what was printed. */
struct line {
	const char *text;
	int number;
};

struct script {
	const char *path;
	struct line *line; /* stb_ds */
	int at;
};

/* Cuts at line ends, in place. */
static struct line *cut_lines(char *text)
{
	struct line *line = NULL;
	for (int number = 1; *text; number++) {
		char *end = text + strcspn(text, "\n"), *next = *end ? end + 1 : end;
		*end = '\0';
		arrput(line, ((struct line){ text, number }));
		text = next;
	}
	return line;
}

/* Does the text match, `[*]` being any? */
static bool line_matches(const char *want, const char *got)
{
	const char *wild = strstr(want, "[*]");
	if (!wild)
		return !strcmp(want, got);
	if (strncmp(want, got, (size_t)(wild - want)))
		return false;
	for (got += wild - want; !line_matches(wild + 3, got); got++)
		if (!*got)
			return false;
	return true;
}

static bool is_any(const struct line *want)
{
	return !strcmp(want->text, "...");
}

/* Do the lines match, `...` being any? `far` is raised to the furthest pair that was compared and differs. */
struct pair {
	int want, got;
};

static bool lines_match(const struct line *want, int w, const struct line *got, int g, struct pair *far)
{
	if (w < arrlen(want) && is_any(&want[w])) {
		for (int next = g; next <= arrlen(got); next++)
			if (lines_match(want, w + 1, got, next, far))
				return true;
		return false;
	}
	bool ends = w == arrlen(want) && g == arrlen(got);
	if (!ends && (w > far->want || (w == far->want && g < far->got) || far->want < 0))
		*far = (struct pair){ w, g };
	if (w == arrlen(want) || g == arrlen(got))
		return ends;
	return line_matches(want[w].text, got[g].text) && lines_match(want, w + 1, got, g + 1, far);
}

static const char *text_at(const struct line *line, int i)
{
	return i < arrlen(line) ? line[i].text : "(nothing more)";
}

/* Adds what differs: where in the file, the two lines, and all that was printed. */
static void compare(const struct script *s, int command, const char *stream, const struct line *want, const char *text,
		    struct text_builder *wrong)
{
	char *copy = strdup(text);
	struct line *got = cut_lines(copy);
	struct pair far = { -1, -1 };
	if (!lines_match(want, 0, got, 0, &far)) {
		int number = far.want < arrlen(want) ? want[far.want].number : command;
		text_add(wrong, "%s:%d: %s differs\n- %s\n+ %s\nAll of it:\n%s", s->path, number, stream,
			 text_at(want, far.want), text_at(got, far.got), text);
	}
	arrfree(got);
	free(copy);
}

/* What a command should do. */
struct wanted {
	int code;
	struct line *out, *err; /* stb_ds */
};

static bool at_output(const struct script *s)
{
	return s->at < arrlen(s->line) && (*s->line[s->at].text == '>' || *s->line[s->at].text == '!');
}

/* A line without its mark. */
static struct line unmarked(struct line l)
{
	l.text += l.text[1] == ' ' ? 2 : 1;
	return l;
}

static void read_wanted(struct script *s, struct wanted *w)
{
	if (s->at == arrlen(s->line) || sscanf(s->line[s->at].text, "exit %d", &w->code) != 1)
		fail_msg("%s:%d: no `exit N` behind the command", s->path, s->line[s->at - 1].number);
	for (s->at++; at_output(s); s->at++)
		if (*s->line[s->at].text == '>')
			arrput(w->out, unmarked(s->line[s->at]));
		else
			arrput(w->err, unmarked(s->line[s->at]));
}

static void run_command(struct script *s)
{
	struct line command = unmarked(s->line[s->at++]);
	struct wanted w = { 0 };
	struct text_builder wrong = { 0 };
	read_wanted(s, &w);
	struct program_run r = program_run_shell(command.text);
	text_add(&wrong, "%s", "");
	compare(s, command.number, "stdout", w.out, r.out, &wrong);
	compare(s, command.number, "stderr", w.err, r.err, &wrong);
	if (r.code != w.code)
		text_add(&wrong, "%s:%d: exit %d, not %d", s->path, command.number, r.code, w.code);
	if (wrong.size)
		fail_msg("%s\n%s", command.text, wrong.data);
	arrfree(w.out);
	arrfree(w.err);
	program_run_free(&r);
	text_builder_free(&wrong);
}

static void write_file(struct script *s, const char *name)
{
	struct text_builder b = { 0 };
	text_add(&b, "%s", "");
	for (s->at++; s->at < arrlen(s->line) && *s->line[s->at].text == '<'; s->at++)
		text_add(&b, "%s\n", unmarked(s->line[s->at]).text);
	program_put(name, b.data, b.size);
	text_builder_free(&b);
}

static void cut_file(struct script *s, const char *name)
{
	size_t size;
	char *data = program_file(name, &size);
	program_put(name, data, size / 2);
	free(data);
	s->at++;
}

static void run_line(struct script *s)
{
	const char *text = s->line[s->at].text;
	if (!*text || *text == '#')
		s->at++;
	else if (!strncmp(text, "$ ", 2))
		run_command(s);
	else if (!strncmp(text, "write ", 6))
		write_file(s, text + 6);
	else if (!strncmp(text, "cut ", 4))
		cut_file(s, text + 4);
	else
		fail_msg("%s:%d: no line of a test: %s", s->path, s->line[s->at].number, text);
}

static char *read_text(const char *path)
{
	char *text;
	size_t size;
	assert_ok(io_read(path, &text, &size));
	return text;
}

static void test_file(void **state)
{
	struct script s = { .path = *state };
	char *text = read_text(s.path);
	s.line = cut_lines(text);
	while (s.at < arrlen(s.line))
		run_line(&s);
	arrfree(s.line);
	free(text);
}

/* What stands at the top of this file, held to. */
static void test_matching(void **state)
{
	static const struct {
		const char *want, *got;
		bool match;
	} lines[] = {
		{ "a\nb\n", "a\nb\n", true },	     { "a\nb\n", "a\n", false },	   { "a\n", "a\nb\n", false },
		{ "...\n", "", true },		     { "...\nb\n", "a\nb\nb\n", true },	   { "a\n...\n", "a\n", true },
		{ "...\nc\n", "a\nb\n", false },
		{ "x[*]z\n", "xyz\n", true },	   { "x[*]z\n", "xyzy\n", false },
		{ "[*]b[*]\n", "aabb\n", true },     { "a[*]\n", "a\n", true },		   { "[*]\n", "", false },
		{ "a\n...\nb\n", "a\na\nb\n", true }, { "a\n...\nb\n", "a\na\nb\nc\n", false },
	};
	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
		char *want = strdup(lines[i].want), *got = strdup(lines[i].got);
		struct line *w = cut_lines(want), *g = cut_lines(got);
		struct pair far = { -1, -1 };
		assert_true(lines_match(w, 0, g, 0, &far) == lines[i].match);
		arrfree(w);
		arrfree(g);
		free(want);
		free(got);
	}
}

static void check_layout(const char *command, char *text)
{
	struct line *line = cut_lines(text);
	for (int i = 0; i < arrlen(line); i++) {
		size_t length = strlen(line[i].text);
		if (length > 120 || (length && line[i].text[length - 1] == ' '))
			fail_msg("%s --help: line %d is too long or ends with a space: '%s'", command, line[i].number,
				 line[i].text);
	}
	arrfree(line);
}

static void check_help(const struct command *c)
{
	char line[80], first[160], flag[80];
	struct scope scope = command_scope(c);
	struct option_name n;
	snprintf(line, sizeof line, "%s --help", c->name);
	struct program_run r = program_run(line);
	snprintf(line, sizeof line, "help %s", c->name);
	struct program_run same = program_run(line);
	snprintf(first, sizeof first, "ropewalk %s%s%s [--option=value ...]\n\n%s", c->name, *c->words ? " " : "",
		 c->words, c->help);
	if (r.code || *r.err || strncmp(r.out, first, strlen(first)))
		fail_msg("%s --help: exit %d, %s not '%s'", c->name, r.code, r.out, first);
	assert_string_equal(r.out, same.out);
	for (int i = 0; option_name_at(&scope, i, &n); i++) {
		snprintf(flag, sizeof flag, "\n  --%s=", n.name);
		for (char *s = flag; *s; s++)
			*s = *s == '_' ? '-' : *s;
		const char *there = strstr(r.out, flag);
		if (!there || strstr(there + 1, flag))
			fail_msg("%s --help has not one line for --%s", c->name, n.name);
	}
	check_layout(c->name, r.out);
	program_run_free(&r);
	program_run_free(&same);
}

static void test_help_of_every_command(void **state)
{
	const struct command *c;
	struct program_run all = program_run("--help");
	(void)state;
	for (int i = 0; (c = command_at(i)); i++) {
		char usage[80];
		snprintf(usage, sizeof usage, "\n  ropewalk %s ", c->name);
		assert_non_null(strstr(all.out, usage));
		check_help(c);
	}
	check_layout("", all.out);
	program_run_free(&all);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Paths of the test files, sorted, in an stb_ds array. */
static char **test_files(void)
{
	char **all = NULL;
	DIR *d = opendir(FOLDER);
	for (struct dirent *e; d && (e = readdir(d));) {
		const char *dot = strrchr(e->d_name, '.');
		if (dot && !strcmp(dot, ".test"))
			arrput(all, io_join(FOLDER, e->d_name));
	}
	if (d)
		closedir(d);
	if (all)
		qsort(all, (size_t)arrlen(all), sizeof *all, by_name);
	return all;
}

int main(void)
{
	char **files = test_files();
	struct CMUnitTest *tests = NULL;
	arrput(tests, ((struct CMUnitTest)cmocka_unit_test(test_matching)));
	arrput(tests, ((struct CMUnitTest)cmocka_unit_test_setup_teardown(test_help_of_every_command, program_setup,
									  program_teardown)));
	for (int i = 0; i < arrlen(files); i++)
		arrput(tests, ((struct CMUnitTest){ files[i], test_file, program_setup, program_teardown, files[i] }));
	if (!arrlen(files)) {
		fprintf(stderr, "%s: no tests\n", FOLDER);
		return 1;
	}
	int failed = _cmocka_run_group_tests("runs cli files", tests, (size_t)arrlen(tests), NULL, NULL);
	for (int i = 0; i < arrlen(files); i++)
		free(files[i]);
	arrfree(files);
	arrfree(tests);
	return failed;
}
