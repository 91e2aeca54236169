#include "model/base/io.h"
#include "tests/model_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lists of encodings and scalings: nothing in them goes unexplained, and what joins with what. */

static char *documentation(void)
{
	struct text_builder b = { 0 };
	char *text;
	size_t size;
	assert_ok(io_read("model/position/README.md", &text, &size));
	text_add(&b, "%.*s", (int)size, text);
	free(text);
	return b.data;
}

/* "### name", alone or among others with commas. */
static bool has_heading(const char *text, const char *name)
{
	size_t length = strlen(name);
	for (const char *at = text; (at = strstr(at, "\n### ")); at++) {
		const char *end = strchr(at + 1, '\n');
		for (const char *word = at + 5; word < end; word += strcspn(word, ", \n"), word += strspn(word, ", "))
			if (!strncmp(word, name, length) && strchr(", \n", word[length]))
				return true;
	}
	return false;
}

static void check_family(family_at family, const char *text)
{
	const struct entry *e;
	for (int i = 0; (e = family(i)); i++) {
		if (!e->help || !*e->help)
			fail_msg("%s has no line of help", e->name);
		if (!e->paper && strcmp(e->name, "none"))
			fail_msg("%s names no paper", e->name);
		if (!has_heading(text, e->name))
			fail_msg("model/position/README.md says nothing of %s", e->name);
		for (const struct option *o = e->options; o && o->name; o++)
			if (!o->help || !*o->help)
				fail_msg("%s_%s has no help", e->name, o->name);
	}
}

static void test_explained(void **state)
{
	(void)state;
	char *text = documentation();
	check_family(position_at, text);
	check_family(scaling_at, text);
	assert_false(has_heading(text, "rop"));
	free(text);
}

/* Whatever joins at all joins in either order, or is refused in either order with its reason. */
static void test_pairs(void **state)
{
	(void)state;
	int joined = 0, refused = 0;
	for (int i = 0; scaling_at(i); i++)
		for (int j = 0; scaling_at(j); j++) {
			char one[80], other[80];
			struct method m;
			snprintf(one, sizeof one, "%s+%s", scaling_at(i)->name, scaling_at(j)->name);
			snprintf(other, sizeof other, "%s+%s", scaling_at(j)->name, scaling_at(i)->name);
			struct err a = method_parse("scaling", scaling_at, one, &m);
			struct err b = method_parse("scaling", scaling_at, other, &m);
			if (a.code != b.code)
				fail_msg("%s: [%d] %s; %s: [%d] %s", one, a.code, a.text, other, b.code, b.text);
			assert_true(a.code == ERR_NONE || (a.code == ERR_USAGE && *a.hint));
			joined += !a.code;
			refused += a.code != 0;
		}
	assert_true(joined > 100 && refused > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_explained), cmocka_unit_test(test_pairs) };
	return cmocka_run_group_tests_name("model lists", tests, NULL, NULL);
}
