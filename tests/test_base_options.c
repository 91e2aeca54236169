#include "model/base/option.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])

static const struct option ntk_options[] = {
	{ .name = "factor", .kind = OPTION_NUMBER, .initial = "auto", .least = 1, .most = 1000, .choices = "auto" },
	{ .name = "ramp", .kind = OPTION_CHOICE, .initial = "pairs", .choices = "pairs|rotations" },
	{ .name = "beta_fast", .kind = OPTION_NUMBER, .initial = "32", .least = 0.5, .most = 1e6 },
	{ .name = "block", .kind = OPTION_INTEGER, .initial = "0", .least = 0, .most = 4096 },
	{ .name = "truncate", .kind = OPTION_SWITCH, .initial = "on" },
	{ .name = "file", .kind = OPTION_TEXT, .initial = "" },
	{ 0 },
};
static struct err no_twins(const struct method *first)
{
	for (const struct method *m = first->plus; m; m = m->plus)
		if (m->entry == first->entry)
			return err_usage("Name it once.", "%s stands twice", first->entry->name);
	return OK;
}

static const struct entry entries[] = {
	{ .name = "none", .help = "as it is" },
	{ .name = "ntk", .help = "another base", .options = ntk_options, .joins = no_twins },
	{ .name = "ntk_by_parts", .help = "a base for each", .options = ntk_options },
	{ .name = "nothing", .help = "an empty list", .options = ntk_options + COUNT(ntk_options) - 1 },
};

static const struct entry *entry_at(int index)
{
	return index < COUNT(entries) ? &entries[index] : NULL;
}

#define LIST                                                                               \
	INTEGER(width, "64", 1, 65536, "", true, "width of the residual stream")           \
	NUMBER(rms_eps, "1e-5", 0, 1, "", true, "epsilon")                                 \
	NUMBER_OR(factor, "auto", "auto", 1, 1e9, "", true, "length over trained length") \
	SWITCH(tied, "off", true, "one table")                                             \
	CHOICE(overflow, "refuse", "refuse|clamp|fill_in", true, "beyond the table")       \
	TEXT(out, "", "path", false, "where to")                                           \
	METHOD(scaling, "none", entry_at, true, "scaling")

struct test_options {
#include "model/base/option_fields.h"
	LIST
#include "model/base/option_end.h"
};

#define OPTION_STRUCT test_options
static const struct option rows[] = {
#include "model/base/option_rows.h"
	LIST
#include "model/base/option_end.h"
	{ 0 },
};

static const struct option *row(const char *name)
{
	for (const struct option *o = rows; o->name; o++)
		if (!strcmp(o->name, name))
			return o;
	fail_msg("there is no row %s", name);
	return NULL;
}

static void lists_make_a_struct_and_its_rows(void **state)
{
	(void)state;
	static const char *const names[] = { "width", "rms_eps", "factor", "tied", "overflow", "out", "scaling" };
	static const enum option_kind kinds[] = { OPTION_INTEGER, OPTION_NUMBER, OPTION_NUMBER, OPTION_SWITCH,
						  OPTION_CHOICE,  OPTION_TEXT,	 OPTION_METHOD };
	assert_int_equal(COUNT(rows), COUNT(names) + 1);
	for (int i = 0; i < COUNT(names); i++) {
		assert_string_equal(rows[i].name, names[i]);
		assert_int_equal(rows[i].kind, kinds[i]);
	}
	assert_true(row("rms_eps")->offset == offsetof(struct test_options, rms_eps));
	assert_true(row("scaling")->offset == offsetof(struct test_options, scaling));
	assert_true(row("scaling")->family == entry_at);
	assert_true(row("width")->results);
	assert_false(row("out")->results);
	struct test_options o = { .width = 3, .rms_eps = 0.5, .out = "x", .scaling = { .given = 0 } };
	assert_int_equal(*(int64_t *)((char *)&o + row("width")->offset), 3);
	assert_string_equal(*(const char **)((char *)&o + row("out")->offset), "x");
}

/* Texts that an option takes, and how it prints the value: the default's form. */
static void reads_and_prints_values(void **state)
{
	(void)state;
	static const struct {
		const char *option, *text, *printed;
	} known[] = {
		{ "width", "1", "1" },	       { "width", "65536", "65536" },	  { "width", " 1e3 ", "1000" },
		{ "rms_eps", "0.00001", "1e-05" }, { "rms_eps", "0", "0" },	  { "rms_eps", "1", "1" },
		{ "factor", "auto", "auto" },  { "factor", " auto ", "auto" },	  { "factor", "8.0", "8" },
		{ "tied", "on", "on" },	       { "tied", "true", "on" },	  { "tied", "yes", "on" },
		{ "tied", "1", "on" },	       { "tied", "off", "off" },	  { "tied", "false", "off" },
		{ "tied", "no", "off" },       { "tied", "0", "off" },		  { "overflow", "clamp", "clamp" },
		{ "overflow", "fill-in", "fill_in" }, { "out", "a b, c", "a b, c" }, { "out", "", "" },
	};
	for (int i = 0; i < COUNT(known); i++) {
		const struct option *o = row(known[i].option);
		union option_value value = { 0 }, back = { 0 };
		struct text_builder b = { 0 };
		struct err e = option_parse(o, known[i].text, &value);
		if (e.code)
			fail_msg("%s", e.text);
		option_print(o, value, &b);
		assert_string_equal(b.data, known[i].printed);
		assert_false(option_parse(o, b.data, &back).code);
		if (o->kind != OPTION_TEXT)
			assert_memory_equal(&value, &back, sizeof value);
		text_builder_free(&b);
	}
	union option_value value;
	assert_false(option_parse(row("factor"), "auto", &value).code);
	assert_true(value.number == 0);
	assert_false(option_parse(row("overflow"), "clamp", &value).code);
	assert_int_equal(value.integer, 1);
}

static void refuses_values(void **state)
{
	(void)state;
	static const struct {
		const char *option, *text, *error;
	} known[] = {
		{ "width", "70000", "width: 70000: out of range 1 to 65536" },
		{ "width", "0", "width: 0: out of range 1 to 65536" },
		{ "width", "-1", "width: -1: out of range 1 to 65536" },
		{ "width", "1e300", "width: 1e300: out of range 1 to 65536" },
		{ "width", "99999999999999999999", "width: 99999999999999999999: out of range 1 to 65536" },
		{ "width", "two", "width: 'two' is not a whole number (1 to 65536)" },
		{ "width", "2.5", "width: '2.5' is not a whole number (1 to 65536)" },
		{ "width", "64k", "width: '64k' is not a whole number (1 to 65536)" },
		{ "width", "", "width: '' is not a whole number (1 to 65536)" },
		{ "width", "nan", "width: 'nan' is not a whole number (1 to 65536)" },
		{ "rms_eps", "nan", "rms_eps: 'nan' is not a number (0 to 1)" },
		{ "rms_eps", "inf", "rms_eps: 'inf' is not a number (0 to 1)" },
		{ "rms_eps", "0.1x", "rms_eps: '0.1x' is not a number (0 to 1)" },
		{ "rms_eps", "auto", "rms_eps: 'auto' is not a number (0 to 1)" },
		{ "rms_eps", "-1e-9", "rms_eps: -1e-9: out of range 0 to 1" },
		{ "rms_eps", "1.0001", "rms_eps: 1.0001: out of range 0 to 1" },
		{ "factor", "0", "factor: 0: out of range 1 to 1000000000, or auto" },
		{ "factor", "some", "factor: 'some' is not a number (1 to 1000000000, or auto)" },
		{ "tied", "maybe", "tied: 'maybe' is neither on nor off (on, true, yes, 1; off, false, no, 0)" },
		{ "tied", "", "tied: '' is neither on nor off (on, true, yes, 1; off, false, no, 0)" },
		{ "tied", "2", "tied: '2' is neither on nor off (on, true, yes, 1; off, false, no, 0)" },
		{ "overflow", "clam", "overflow: 'clam' is none of refuse, clamp, fill_in" },
		{ "overflow", "1", "overflow: '1' is none of refuse, clamp, fill_in" },
		{ "overflow", "", "overflow: '' is none of refuse, clamp, fill_in" },
	};
	for (int i = 0; i < COUNT(known); i++) {
		union option_value value;
		struct err e = option_parse(row(known[i].option), known[i].text, &value);
		assert_int_equal(e.code, ERR_USAGE);
		assert_string_equal(e.text, known[i].error);
	}
	union option_value value;
	assert_string_equal(option_parse(row("overflow"), "clam", &value).hint, "Did you mean 'clamp'?");
	assert_string_equal(option_parse(row("overflow"), "xyz", &value).hint, "");
}

static void shows_the_start_of_an_endless_value(void **state)
{
	(void)state;
	char text[3000];
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	union option_value value;
	struct err e = option_parse(row("width"), text, &value);
	assert_int_equal(e.code, ERR_USAGE);
	assert_non_null(strstr(e.text, "x...' is not a whole number (1 to 65536)"));
}

static void check_printed(const struct method *m, const char *label, const char *identity)
{
	struct text_builder b = { 0 };
	method_label(m, &b);
	assert_string_equal(b.data, label);
	text_builder_free(&b);
	method_identity(m, &b);
	assert_string_equal(b.data, identity);
	text_builder_free(&b);
}

static void reads_methods(void **state)
{
	(void)state;
	static const struct {
		const char *text, *label, *identity;
	} known[] = {
		{ "none", "none", "none" },
		{ "none()", "none", "none" },
		{ "nothing( )", "nothing", "nothing" },
		{ "ntk", "ntk", "ntk(factor=auto,ramp=pairs,beta_fast=32,block=0,truncate=on,file=)" },
		{ "ntk(factor=8)", "ntk(factor=8)", "ntk(factor=8,ramp=pairs,beta_fast=32,block=0,truncate=on,file=)" },
		{ " ntk ( factor = 8.0 ) ", "ntk(factor=8)",
		  "ntk(factor=8,ramp=pairs,beta_fast=32,block=0,truncate=on,file=)" },
		{ "ntk(beta-fast=4, ramp=rotations)", "ntk(beta_fast=4,ramp=rotations)",
		  "ntk(factor=auto,ramp=rotations,beta_fast=4,block=0,truncate=on,file=)" },
		{ "ntk(ntk-block=64,truncate=off)", "ntk(block=64,truncate=off)",
		  "ntk(factor=auto,ramp=pairs,beta_fast=32,block=64,truncate=off,file=)" },
		{ "ntk-by-parts(ntk_by_parts_beta_fast=1,factor=auto)", "ntk_by_parts(beta_fast=1,factor=auto)",
		  "ntk_by_parts(factor=auto,ramp=pairs,beta_fast=1,block=0,truncate=on,file=)" },
		{ "ntk(file= a (b, c).txt )", "ntk(file=a (b, c).txt)",
		  "ntk(factor=auto,ramp=pairs,beta_fast=32,block=0,truncate=on,file=a (b, c).txt)" },
	};
	for (int i = 0; i < COUNT(known); i++) {
		struct method m, back;
		char *text = strdup(known[i].text);
		struct err e = method_parse("scaling", entry_at, text, &m);
		free(text);
		if (e.code)
			fail_msg("%s", e.text);
		check_printed(&m, known[i].label, known[i].identity);
		assert_false(method_parse("scaling", entry_at, known[i].label, &back).code);
		check_printed(&back, known[i].label, known[i].identity);
		assert_false(method_parse("scaling", entry_at, known[i].identity, &back).code);
		struct text_builder b = { 0 };
		method_identity(&back, &b);
		assert_string_equal(b.data, known[i].identity);
		text_builder_free(&b);
	}
}

static void refuses_methods(void **state)
{
	(void)state;
	static const struct {
		const char *text, *error;
	} known[] = {
		{ "", "scaling: a name is missing" },
		{ "(factor=8)", "scaling: a name is missing" },
		{ "ntkk", "scaling: 'ntkk' is unknown, did you mean 'ntk'?" },
		{ "ntk by parts", "scaling: 'ntk by parts' is unknown, did you mean 'ntk_by_parts'?" },
		{ "yarn", "scaling: 'yarn' is unknown" },
		{ "ntk(8)", "scaling: ntk: '8' is a bare value; an option is written NAME=VALUE" },
		{ "none(8)", "scaling: none: '8' is a bare value; an option is written NAME=VALUE" },
		{ "none(factor=8)", "scaling: none: option 'factor' is unknown, 'none' has none" },
		{ "ntk(factr=8)", "scaling: ntk: option: 'factr' is unknown, did you mean 'factor'?" },
		{ "ntk(alpha=8)", "scaling: ntk: option: 'alpha' is unknown" },
		{ "ntk(nope_factor=8)", "scaling: ntk: option: 'nope_factor' is unknown" },
		{ "ntk(xyz_factor=8)", "scaling: ntk: option: 'xyz_factor' is unknown" },
		{ "ntk(=8)", "scaling: ntk: option: a name is missing" },
		{ "ntk(factor=8,factor=8)", "scaling: ntk: option 'factor' is given twice" },
		{ "ntk(beta_fast=8,ntk-beta-fast=9)", "scaling: ntk: option 'ntk-beta-fast' is given twice" },
		{ "ntk(factor=8,)", "scaling: ntk: an option is missing at a comma" },
		{ "ntk(,factor=8)", "scaling: ntk: an option is missing at a comma" },
		{ "ntk(factor=8", "scaling: 'ntk(factor=8' lacks a closing parenthesis" },
		{ "ntk(factor=(8)", "scaling: 'ntk(factor=(8)' lacks a closing parenthesis" },
		{ "ntk)", "scaling: 'ntk)' closes a parenthesis that was not opened" },
		{ "ntk(factor=8)x", "scaling: 'x' follows the closing parenthesis" },
		{ "ntk(factor=8))", "scaling: ')' follows the closing parenthesis" },
		{ "ntk()()", "scaling: '()' follows the closing parenthesis" },
		{ "ntk(factor=)", "scaling: ntk: factor: '' is not a number (1 to 1000, or auto)" },
		{ "ntk(factor=0.5)", "scaling: ntk: factor: 0.5: out of range 1 to 1000, or auto" },
		{ "ntk(factor=2=3)", "scaling: ntk: factor: '2=3' is not a number (1 to 1000, or auto)" },
		{ "ntk(ramp=pair)", "scaling: ntk: ramp: 'pair' is none of pairs, rotations" },
	};
	for (int i = 0; i < COUNT(known); i++) {
		struct method m;
		struct err e = method_parse("scaling", entry_at, known[i].text, &m);
		assert_int_equal(e.code, ERR_USAGE);
		assert_string_equal(e.text, known[i].error);
	}
	struct method m;
	assert_string_equal(method_parse("scaling", entry_at, "ntkk", &m).hint,
			    "There are: none, ntk, ntk_by_parts, nothing.");
	assert_string_equal(method_parse("scaling", entry_at, "ntk(8)", &m).hint,
			    "There are: factor, ramp, beta_fast, block, truncate, file.");
}

static void sets_options_of_a_method(void **state)
{
	(void)state;
	struct method m = method_default(&entries[1]);
	assert_int_equal(m.given, 0);
	assert_true(m.value[2].number == 32);
	assert_int_equal(m.value[4].integer, 1);
	assert_int_equal(method_find(m.entry, "beta-fast"), 2);
	assert_int_equal(method_find(m.entry, "beta"), -1);
	assert_int_equal(method_find(&entries[0], "factor"), -1);
	method_set(&m, 3, (union option_value){ .integer = 16 });
	method_set(&m, 0, (union option_value){ .number = 2 });
	method_set(&m, 3, (union option_value){ .integer = 32 });
	assert_int_equal(m.given, 2);
	check_printed(&m, "ntk(block=32,factor=2)",
		      "ntk(factor=2,ramp=pairs,beta_fast=32,block=32,truncate=on,file=)");
}

static void check_parts(const char *text, const char *label, const char *identity)
{
	struct method m, part[METHOD_PARTS];
	struct text_builder b = { 0 };
	struct err e = method_parse("scaling", entry_at, text, &m);
	assert_int_equal(e.code, 0);
	method_label(&m, &b);
	assert_string_equal(b.data, label);
	text_builder_free(&b);
	b = (struct text_builder){ 0 };
	int count = method_split(&m, part);
	struct method again = method_join(part, count);
	method_identity(&again, &b);
	assert_string_equal(b.data, identity);
	/* Kept parts are shared, so that equal methods are equal bytes. */
	assert_ptr_equal(again.plus, m.plus);
	text_builder_free(&b);
}

static void check_refused_parts(const char *text, const char *reason)
{
	struct method m;
	struct err e = method_parse("scaling", entry_at, text, &m);
	if (e.code != ERR_USAGE || !strstr(e.text, reason))
		fail_msg("%s: [%d] %s", text, e.code, e.text);
}

static void methods_join_by_plus(void **state)
{
	(void)state;
	check_parts("ntk + nothing", "ntk+nothing",
		    "ntk(factor=auto,ramp=pairs,beta_fast=32,block=0,truncate=on,file=)+nothing");
	/* A plus inside parentheses is a number's. */
	check_parts("ntk(beta_fast=1e+2)+none+nothing", "ntk(beta_fast=100)+none+nothing",
		    "ntk(factor=auto,ramp=pairs,beta_fast=100,block=0,truncate=on,file=)+none+nothing");
	check_refused_parts("none+ntk", "none takes no part after a +");
	check_refused_parts("ntk+none+ntk", "scaling: ntk stands twice");
	check_refused_parts("ntk+", "a name is missing");
	check_refused_parts("+ntk", "a name is missing");
	check_refused_parts("ntk+ntc", "'ntc' is unknown, did you mean 'ntk'?");
	check_refused_parts("ntk+none+none+none+none+none+none", "more than 6 parts");
	check_refused_parts("ntk(+none", "lacks a closing parenthesis");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_make_a_struct_and_its_rows),
		cmocka_unit_test(reads_and_prints_values),
		cmocka_unit_test(refuses_values),
		cmocka_unit_test(shows_the_start_of_an_endless_value),
		cmocka_unit_test(reads_methods),
		cmocka_unit_test(refuses_methods),
		cmocka_unit_test(sets_options_of_a_method),
		cmocka_unit_test(methods_join_by_plus),
	};
	return cmocka_run_group_tests_name("base options", tests, NULL, NULL);
}
