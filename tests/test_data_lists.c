#include "model/base/io.h"
#include "tests/sequence_case.h"

/* No task of the list goes unexplained. */

/* data/README.md with a NUL behind it; free. */
static char *documentation(void)
{
	struct text_builder b = { 0 };
	char *text;
	size_t size;
	assert_ok(io_read("data/README.md", &text, &size));
	text_add(&b, "%.*s", (int)size, text);
	free(text);
	return b.data;
}

/* What stands between the heading "### name" and the next one; NULL without such a heading. Free. */
static char *section(const char *text, const char *name)
{
	struct text_builder heading = { 0 }, b = { 0 };
	text_add(&heading, "\n### %s\n", name);
	const char *at = strstr(text, heading.data);
	if (at) {
		at += strlen(heading.data);
		const char *end = strstr(at, "\n### ");
		text_add(&b, "%.*s", (int)(end ? (size_t)(end - at) : strlen(at)), at);
	}
	free(heading.data);
	return b.data;
}

/* Is it written as code: `name` or `name=...`? */
static bool mentions(const char *section, const char *name)
{
	size_t length = strlen(name);
	for (const char *at = section; (at = strchr(at, '`')); at++)
		if (!strncmp(at + 1, name, length) && strchr("`=", at[1 + length]))
			return true;
	return false;
}

static void assert_explained(const struct entry *e, const char *text)
{
	const struct task *task = (const struct task *)e;
	char *own = section(text, e->name);
	if (!e->help || !*e->help)
		fail_msg("%s has no line of help", e->name);
	if (!own || strlen(own) < 300)
		fail_msg("data/README.md says nothing of %s", e->name);
	for (const struct option *o = e->options; o && o->name; o++) {
		if (!o->help || !*o->help)
			fail_msg("%s_%s has no help", e->name, o->name);
		if (!mentions(own, o->name))
			fail_msg("data/README.md says nothing of the option %s of %s", o->name, e->name);
	}
	for (int g = 0; g < TASK_GROUPS && task->groups[g]; g++)
		if (!mentions(own, task->groups[g]))
			fail_msg("data/README.md says nothing of the group %s of %s", task->groups[g], e->name);
	free(own);
}

static void test_explained(void **state)
{
	(void)state;
	char *text = documentation();
	for (int i = 0; task_at(i); i++)
		assert_explained(task_at(i), text);
	assert_null(section(text, "recal"));
	free(text);
}

/* And nothing is explained that is not in the list. */
static void test_listed(void **state)
{
	(void)state;
	char *text = documentation(), name[40];
	int count = 0, listed = 0;
	for (const char *at = text; (at = strstr(at, "\n### ")); at++, count++) {
		assert_int_equal(sscanf(at, "\n### %39s", name), 1);
		assert_non_null(task_named(name));
	}
	while (task_at(listed))
		listed++;
	assert_int_equal(count, listed);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_explained), cmocka_unit_test(test_listed) };
	return cmocka_run_group_tests_name("data lists", tests, NULL, NULL);
}
