#include "model/base/text.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])

static void reads_numbers(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		double value;
	} good[] = {
		{ "0", 0 }, { "-1", -1 }, { "+2", 2 }, { " 3.5 ", 3.5 }, { ".5", 0.5 }, { "5.", 5 },
		{ "1e-5", 1e-5 }, { "1E+3", 1000 }, { "\t0.1\n", 0.1 }, { "1e-400", 0 }, { "007", 7 },
		{ "4.9e-324", 4.9e-324 }, { "1.7976931348623157e308", DBL_MAX },
	};
	static const char *const bad[] = {
		"", " ", "x", "1x", "1 2", "nan", "-nan", "inf", "infinity", "0x10", "1e309", "-1e309", "1e",
		"1e+", ".", "-", "+-1", "1,5", "--1", "1.2.3", "e5", ".e5", "1_0", "1e5.5",
	};
	for (int i = 0; i < COUNT(good); i++) {
		double value = NAN;
		if (!text_to_number(good[i].text, &value) || value != good[i].value)
			fail_msg("'%s' was read as %g", good[i].text, value);
	}
	for (int i = 0; i < COUNT(bad); i++) {
		double value = 42;
		if (text_to_number(bad[i], &value) || value != 42)
			fail_msg("'%s' was read as %g", bad[i], value);
	}
}

static void reads_integers(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t value;
	} good[] = {
		{ "0", 0 }, { "-0", 0 }, { "0e999999999999999999999", 0 }, { " 12 ", 12 }, { "-7", -7 },
		{ "1e6", 1000000 }, { "2.0", 2 }, { "1.5e1", 15 }, { "1200e-2", 12 }, { "0.001e3", 1 },
		{ "-2.50e2", -250 }, { "10.", 10 }, { "9007199254740993", 9007199254740993 },
		{ "9007199254740993.0", 9007199254740993 }, { "9223372036854775807", INT64_MAX },
		{ "-9223372036854775808", INT64_MIN }, { "0009", 9 },
	};
	static const char *const bad[] = {
		"", "two", "2.5", "1e-1", "9223372036854775808", "-9223372036854775809", "1e19",
		"1e999999999999999999999", "1.00000000000000000000001", "1e-400", "0x10", "1 2", "nan", "3k",
		"-",
	};
	for (int i = 0; i < COUNT(good); i++) {
		int64_t value = 42;
		if (!text_to_integer(good[i].text, &value) || value != good[i].value)
			fail_msg("'%s' was read as %lld", good[i].text, (long long)value);
	}
	for (int i = 0; i < COUNT(bad); i++) {
		int64_t value = 42;
		if (text_to_integer(bad[i], &value))
			fail_msg("'%s' was read as %lld", bad[i], (long long)value);
	}
}

static void prints_shortest_numbers(void **state)
{
	(void)state;
	static const struct {
		double value;
		const char *text;
	} known[] = {
		{ 0, "0" }, { -0.0, "-0" }, { 0.1, "0.1" }, { 1e-5, "1e-05" }, { 0.0001, "0.0001" },
		{ 500, "500" }, { 10000, "10000" }, { 1e15, "1000000000000000" }, { 1e16, "1e+16" },
		{ 64.5, "64.5" }, { 1.0 / 3, "0.3333333333333333" }, { 5e-324, "5e-324" },
		{ DBL_MAX, "1.7976931348623157e+308" }, { NAN, "nan" }, { -NAN, "nan" }, { INFINITY, "inf" },
		{ -INFINITY, "-inf" },
	};
	char text[NUMBER_TEXT];
	for (int i = 0; i < COUNT(known); i++)
		assert_string_equal(number_to_text(known[i].value, text), known[i].text);
}

/* Any bit pattern that is a number comes back to the bit, whole numbers as such. */
static void numbers_come_back(void **state)
{
	(void)state;
	uint64_t bits = 1;
	char text[NUMBER_TEXT];
	for (int i = 0; i < 5000; i++) {
		double value, back;
		bits = bits * 6364136223846793005u + 1442695040888963407u;
		memcpy(&value, &bits, sizeof value);
		if (i % 2)
			value = (double)(int64_t)(bits >> (bits & 63));
		if (isnan(value) || isinf(value))
			continue;
		assert_true(strlen(number_to_text(value, text)) < NUMBER_TEXT);
		if (!text_to_number(text, &back) || memcmp(&value, &back, sizeof value))
			fail_msg("%.17g was printed as %s", value, text);
		if (fabs(value) < 1e16 && value == floor(value))
			assert_null(strchr(text, 'e'));
	}
}

static const char *next_name(int i, const void *data)
{
	return ((const char *const *)data)[i];
}

static void finds_the_nearest_name(void **state)
{
	(void)state;
	static const char *const names[] = { "rope", "alibi", "kerple", "train_length", "rms_eps", "sinusoidal", NULL };
	static const struct {
		const char *given, *nearest;
	} known[] = {
		{ "rope", "rope" }, { "ropes", "rope" }, { "rpoe", "rope" }, { "alibbi", "alibi" },
		{ "train-lenght", "train_length" }, { "rms-eps", "rms_eps" }, { "sinusodial", "sinusoidal" },
		{ "cosinusoidal", "sinusoidal" }, { "xcosinusoidal", "sinusoidal" }, { "xxcosinusoidal", NULL },
		{ "rp", NULL }, { "", NULL }, { "xyz", NULL }, { "length", NULL },
	};
	for (int i = 0; i < COUNT(known); i++) {
		const char *nearest = nearest_name(known[i].given, next_name, names);
		if (!nearest != !known[i].nearest || (nearest && strcmp(nearest, known[i].nearest)))
			fail_msg("'%s' is nearest to '%s'", known[i].given, nearest ? nearest : "(none)");
	}
	char endless[5000];
	memset(endless, 'r', sizeof endless - 1);
	endless[sizeof endless - 1] = '\0';
	assert_null(nearest_name(endless, next_name, names));
	const char *const long_names[] = { endless, "rope", NULL };
	assert_string_equal(nearest_name("rope", next_name, long_names), "rope");
}

static void dashes_are_equal(void **state)
{
	(void)state;
	assert_true(same_name("train-length", "train_length"));
	assert_true(same_name("", ""));
	assert_false(same_name("train", "train_length"));
	assert_false(same_name("train_length", "train"));
	assert_false(same_name("trainxlength", "train_length"));
}

static void check_list(const char *text, int count, const char *const *piece)
{
	int found = -1;
	char **list = text_list(text, &found);
	assert_int_equal(found, count);
	for (int i = 0; i < count; i++)
		assert_string_equal(list[i], piece[i]);
	assert_null(list[count]);
	text_list_free(list);
}

static void cuts_lists(void **state)
{
	(void)state;
	check_list("", 0, NULL);
	check_list("  ", 0, NULL);
	check_list("a", 1, (const char *const[]){ "a" });
	check_list(" a , b c,d ", 3, (const char *const[]){ "a", "b c", "d" });
	check_list("a,,b", 3, (const char *const[]){ "a", "", "b" });
	check_list("a,", 2, (const char *const[]){ "a", "" });
	check_list("ntk(a=1,b=(2,3)), none", 2, (const char *const[]){ "ntk(a=1,b=(2,3))", "none" });
	check_list("a),b", 2, (const char *const[]){ "a)", "b" });
	check_list("(a,b", 1, (const char *const[]){ "(a,b" });
	text_list_free(NULL);
}

static void check_printable(const char *text, size_t room, const char *expected)
{
	char out[64], again[64];
	memset(out, '~', sizeof out);
	text_printable(text, out, room);
	assert_string_equal(out, expected);
	assert_true(room == sizeof out || out[room] == '~');
	text_printable(out, again, sizeof again);
	assert_string_equal(again, out);
}

static void makes_text_printable(void **state)
{
	(void)state;
	static const char *const text[][2] = {
		{ "", "" },
		{ "a b\\n~", "a b\\n~" },
		{ "a\nb\r\t\x7f\x1b[31m", "a\\x0ab\\x0d\\x09\\x7f\\x1b[31m" },
		{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x8c", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x8c" },
		{ "\xc2\x9b", "\\xc2\\x9b" },             /* a control of its own */
		{ "\xe2\x80\xa8", "\\xe2\\x80\\xa8" },     /* a line's end */
		{ "\xe2\x80\xae", "\\xe2\\x80\\xae" },     /* writes from right to left */
		{ "\xef\xbb\xbf", "\\xef\\xbb\\xbf" },     /* a byte order mark */
		{ "\xe2\x82", "\\xe2\\x82" },             /* cut off */
		{ "\xc0\x8a", "\\xc0\\x8a" },             /* longer than need be */
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80" },     /* a surrogate */
		{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" }, /* past the last */
		{ "\xff\x80", "\\xff\\x80" },
	};
	for (size_t i = 0; i < sizeof text / sizeof text[0]; i++)
		check_printable(text[i][0], 64, text[i][1]);
	check_printable("abc", 3, "ab");
	check_printable("a\n\n", 8, "a\\x0a");
	check_printable("a\xc3\xa9", 3, "a");
	check_printable("a", 1, "");
}

static void builds_texts(void **state)
{
	(void)state;
	struct text_builder b = { 0 };
	text_add(&b, "%s", "");
	assert_string_equal(b.data, "");
	for (int i = 0; i < 1000; i++)
		text_add(&b, "%d,", i % 10);
	assert_int_equal(b.size, 2000);
	assert_int_equal(strlen(b.data), 2000);
	assert_memory_equal(b.data + 1980, "0,1,2,3,4,5,6,7,8,9,", 21);
	text_builder_free(&b);
	assert_null(b.data);
	assert_int_equal(b.size, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_numbers),	  cmocka_unit_test(reads_integers),
		cmocka_unit_test(prints_shortest_numbers), cmocka_unit_test(numbers_come_back),
		cmocka_unit_test(finds_the_nearest_name), cmocka_unit_test(dashes_are_equal),
		cmocka_unit_test(cuts_lists),		  cmocka_unit_test(builds_texts),
		cmocka_unit_test(makes_text_printable),
	};
	return cmocka_run_group_tests_name("base text", tests, NULL, NULL);
}
