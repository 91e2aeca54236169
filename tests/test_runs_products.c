#include "tests/program.h"
#include "tests/support.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Our own products against the library's (--products), as users meet them: results within rounding of each other,
 * written down, and with either the same bits for any number of threads. */

#define SMALL "--layers=1 --width=32 --heads=2 --hidden=32 --batch=4 --train_length=20 --steps=20 "
#define NONE "eval-none-afc5064e.csv"
enum { STEPS = 20 };

static void train_and_evaluate(const char *name, const char *products, int threads)
{
	char line[256];
	snprintf(line, sizeof line, "train " SMALL "--products=%s --threads=%d --out=%s", products, threads, name);
	program_works(line);
	snprintf(line, sizeof line, "eval %s --multiples=1,2 --sequences=3 --products=%s --threads=%d", name, products,
		 threads);
	program_works(line);
}

static int start(void **state)
{
	(void)state;
	program_start();
	train_and_evaluate("own/run", "own", 1);
	train_and_evaluate("library/run", "library", 1);
	return 0;
}

static char *file_of(const char *run, const char *name, size_t *size)
{
	char path[128];
	snprintf(path, sizeof path, "%s/%s", run, name);
	return program_file(path, size);
}

static bool same_file(const char *a, const char *b, const char *name)
{
	size_t a_size, b_size;
	char *x = file_of(a, name, &a_size), *y = file_of(b, name, &b_size);
	bool same = a_size == b_size && !memcmp(x, y, a_size);
	free(x), free(y);
	return same;
}

static json_t *json_of(const char *text, size_t size)
{
	json_error_t error;
	json_t *root = json_loadb(text, size, 0, &error);
	if (!root)
		fail_msg("%s", error.text);
	return root;
}

/* The losses of a run's steps. */
static void losses(const char *run, double loss[STEPS])
{
	size_t size;
	char *text = file_of(run, "train.jsonl", &size), *line = text;
	for (int i = 0; i < STEPS; i++) {
		size_t length = strcspn(line, "\n");
		json_t *step = json_of(line, length);
		assert_int_equal(json_number(step, "step"), i + 1);
		loss[i] = json_number(step, "loss");
		line += length + 1;
		json_decref(step);
	}
	assert_int_equal(*line, 0);
	free(text);
}

static void training_is_the_same_but_for_rounding(void **state)
{
	double own[STEPS], library[STEPS];
	(void)state;
	losses("own/run", own);
	losses("library/run", library);
	for (int i = 0; i < STEPS; i++)
		assert_close(library[i], own[i], 1e-5);
	assert_true(fabs(own[0] - own[STEPS - 1]) > 1e-3);
}

/* Every field of a table that is a number, with what is around the same. */
static void evaluation_is_the_same_but_for_rounding(void **state)
{
	size_t size;
	char *own = file_of("own/run", NONE, &size), *library = file_of("library/run", NONE, &size);
	char *x = own, *y = library;
	int numbers = 0;
	(void)state;
	while (*x || *y) {
		char *x_end, *y_end;
		double a = strtod(x, &x_end), b = strtod(y, &y_end);
		if (x_end == x) {
			assert_int_equal(*x++, *y++);
			continue;
		}
		assert_close(b, a, 1e-4);
		numbers++;
		x = x_end, y = y_end;
	}
	assert_true(numbers > 50);
	free(own), free(library);
}

static void check_record(const char *run, const char *products)
{
	size_t size;
	char *text = file_of(run, "record.json", &size);
	json_t *root = json_of(text, size);
	const char *trained = NULL, *evaluated = NULL;
	assert_int_equal(json_unpack(root, "{s:{s:s}, s:{s:{s:{s:s}}}}", "blas", "products", &trained, "evaluations",
				     "none", "blas", "products", &evaluated),
			 0);
	assert_string_equal(trained, products);
	assert_string_equal(evaluated, products);
	json_decref(root);
	free(text);
}

static void record_says_whose(void **state)
{
	(void)state;
	check_record("own/run", "own");
	check_record("library/run", "library");
}

/* The run's name is in the table. */
static void threads_change_no_bit(void **state)
{
	(void)state;
	train_and_evaluate("own-3/run", "own", 3);
	train_and_evaluate("library-3/run", "library", 3);
	static const char *const names[] = { "model.safetensors", "train.jsonl", NONE };
	for (int i = 0; i < 3; i++) {
		assert_true(same_file("own/run", "own-3/run", names[i]));
		assert_true(same_file("library/run", "library-3/run", names[i]));
	}
}

static void only_these_two(void **state)
{
	(void)state;
	program_refuses("train " SMALL "--products=librari --out=other", "products", "library");
}

static int stop(void **state)
{
	(void)state;
	program_stop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(training_is_the_same_but_for_rounding),
		cmocka_unit_test(evaluation_is_the_same_but_for_rounding),
		cmocka_unit_test(record_says_whose),
		cmocka_unit_test(threads_change_no_bit),
		cmocka_unit_test(only_these_two),
	};
	return cmocka_run_group_tests_name("runs products", tests, start, stop);
}
