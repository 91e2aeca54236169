#include "eval/perplexity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct data_options recall(void)
{
	return (struct data_options){ .task = method_default(task_at(0)) };
}

static void test_lengths(void **state)
{
	(void)state;
	struct data_options data = recall();
	int *length, count;
	double *multiple;
	struct err e = eval_lengths("2, 1,1.5 ,1e1,0.578125", 64, &data, &length, &multiple, &count);
	assert_int_equal(e.code, ERR_NONE);
	assert_int_equal(count, 5);
	const int lengths[] = { 128, 64, 96, 640, 37 };
	const double multiples[] = { 2, 1, 1.5, 10, 0.578125 };
	assert_memory_equal(length, lengths, sizeof lengths);
	assert_memory_equal(multiple, multiples, sizeof multiples);
	free(length), free(multiple);

	/* In binary 2.3 times 100 is a little less than 230. */
	e = eval_lengths("2.3", 100, &data, &length, &multiple, &count);
	assert_int_equal(e.code, ERR_NONE);
	assert_int_equal(length[0], 230);
	free(length), free(multiple);
}

static void test_lengths_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *error, *hint;
	} cases[] = {
		{ "1,1.3", "multiples: 1.3 times train_length 64 is not a whole length",
		  "The nearest are 1.296875, length 83, and 1.3125, length 84." },
		{ "0.001", "multiples: 0.001 times train_length 64 is not a whole length",
		  "The least multiple is 0.015625, length 1." },
		{ "1e-30", "multiples: 1e-30 times train_length 64 is not a whole length",
		  "The least multiple is 0.015625, length 1." },
		{ "", "multiples: the list is empty", "--multiples=1,2,4" },
		{ "1,,2", "multiples: '' is not a number", "commas" },
		{ "1,two", "multiples: 'two' is not a number", "commas" },
		{ "nan", "multiples: 'nan' is not a number", "commas" },
		{ "0", "multiples: 0 is not greater than 0", "greater than 0" },
		{ "1,-2", "multiples: -2 is not greater than 0", "greater than 0" },
		{ "2,1,2.0", "multiples: 2.0 is given twice", "once" },
		{ "1e12", "multiples: 1e12 times train_length 64 is more than 1073741824 tokens", "smaller" },
		{ "1,0.25", "multiples: 0.25: recall: length 16 is too short", "greater length" },
	};
	struct data_options data = recall();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int *length = NULL, count = -1;
		double *multiple = NULL;
		struct err e = eval_lengths(cases[i].text, 64, &data, &length, &multiple, &count);
		assert_int_equal(e.code, ERR_USAGE);
		if (strncmp(e.text, cases[i].error, strlen(cases[i].error)))
			fail_msg("'%s' gives '%s'", cases[i].text, e.text);
		if (!strstr(e.hint, cases[i].hint))
			fail_msg("'%s' gives the hint '%s'", cases[i].text, e.hint);
		assert_null(length);
		assert_null(multiple);
		assert_int_equal(count, 0);
	}
}

static void assert_label(const struct method *m, const char *label)
{
	struct text_builder b = { 0 };
	method_label(m, &b);
	assert_string_equal(b.data, label);
	text_builder_free(&b);
}

static void test_scalings(void **state)
{
	(void)state;
	struct method *method;
	int count;
	struct err e = eval_scalings("none, ntk,ntk(factor=8), ntk(factor=4)", &method, &count);
	assert_int_equal(e.code, ERR_NONE);
	assert_int_equal(count, 4);
	assert_label(&method[0], "none");
	assert_label(&method[1], "ntk");
	assert_label(&method[2], "ntk(factor=8)");
	assert_label(&method[3], "ntk(factor=4)");
	free(method);
}

static void test_scalings_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "", "scaling: the list is empty" },
		{ "none,ntk,none", "scaling: none is given twice" },
		{ "ntk(factor=8),ntk(factor=8.0)", "scaling: ntk(factor=8) is given twice" },
		{ "none,linear_ntk", "scaling: linear_ntk mixes two methods" },
		{ "linear-ntk(factor=2)", "scaling: linear_ntk mixes two methods" },
		{ "none,,ntk", "scaling: " },
		{ "nonne", "scaling: " },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct method *method = NULL;
		int count = -1;
		struct err e = eval_scalings(cases[i].text, &method, &count);
		assert_int_equal(e.code, ERR_USAGE);
		if (strncmp(e.text, cases[i].error, strlen(cases[i].error)))
			fail_msg("'%s' gives '%s'", cases[i].text, e.text);
		assert_null(method);
		assert_int_equal(count, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_lengths_refused),
		cmocka_unit_test(test_scalings),
		cmocka_unit_test(test_scalings_refused),
	};
	return cmocka_run_group_tests_name("eval request", tests, NULL, NULL);
}
