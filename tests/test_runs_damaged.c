#include "tests/program.h"
#include "tests/support.h"

#include "model/base/safetensors.h"
#include "model/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Files from outside as the commands meet them: exit 2, one line that names the file and what is wrong with it, nothing
 * written, and nothing of the file steers the terminal. */

#define SMALL "--width=8 --heads=2 --hidden=4 --layers=1 --batch=2 --steps=2 --warmup=0 "
#define MODEL "one/model.safetensors"
#define NONE "one/eval-none-afc5064e.csv"
#define EVAL "eval one --multiples=1 --sequences=2 --scaling=none"
#define FORWARD "--tokens=in.safetensors --output=out.safetensors"

/* tokens (2,3), and targets of the same six items in another shape. */
static void put_tokens(int rows, int columns)
{
	static const int32_t token[6] = { 1, 2, 3, 4, 5, 6 };
	const struct tensor given[] = { { "tokens", DTYPE_I32, 2, { 2, 3 }, token },
					{ "targets", DTYPE_I32, 2, { rows, columns }, token } };
	char *path = program_path("in.safetensors");
	assert_ok(safetensors_write(path, given, 2, NULL, 0));
	free(path);
}

static int start(void **state)
{
	(void)state;
	program_start();
	put_tokens(2, 3);
	program_works("train " SMALL "--out=one");
	program_works(EVAL);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	program_stop();
	return 0;
}

static void refuses(const char *name, const void *data, size_t size, const char *line, const char *what)
{
	size_t before_size = 0;
	char *before = program_has(name) ? program_file(name, &before_size) : NULL;
	program_put(name, data, size);
	program_refuses(line, name, what);
	if (before)
		program_put(name, before, before_size);
	free(before);
}

#define NAUGHTY "a\nropewalk: done\x1b[2J"
#define SHOWN "a\\x0aropewalk: done\\x1b[2J"

static void test_texts(void **state)
{
	(void)state;
	static const struct {
		const char *name, *text, *line, *what;
	} file[] = {
		{ "one/config", "wid\x1b[2Jth = 8\n", EVAL, "config:1: wid\\x1b[2Jth: " },
		{ "one/config", "\x1b = 8\n", EVAL, "See `ropewalk train --help`." },
		{ "one/record.json", "{\"a\":\n\x1b[2J}", EVAL, "record.json: damaged: line 2: " },
		{ "one/record.json", "[]", EVAL, "not an object" },
		{ NONE, "a,\x1b[2J\n", EVAL, NONE ":1: not the columns" },
		{ "a.study", "[enc\x07=rope]\n", "study a.study --out=s", "a.study:1: enc\\x07: " },
		{ "a.study", "encoding = ro\x1bpe\n", "study a.study --out=s", "a.study:1: " },
		{ "a.study", "width = 8\nmultiples = 1, x\n", "study a.study --out=s", "a.study:2: multiples: " },
		{ "c", "\nmultiples = 1, x\n", "eval one --config=c", "c:2: multiples: " },
		{ "c", "heads = 1\nwid\tth = 8\n", "train --config=c --out=t", "c:2: wid\\x09th: " },
	};
	for (size_t i = 0; i < sizeof file / sizeof file[0]; i++)
		refuses(file[i].name, file[i].text, strlen(file[i].text), file[i].line, file[i].what);
}

/* A file with one tensor of this name and shape, which may be wrong. */
static size_t one_tensor(char file[300], const char *escaped_name, int items)
{
	char *header = file + 8;
	uint64_t length = (uint64_t)snprintf(header, 280, "{\"%s\":{\"dtype\":\"U8\",\"shape\":[%d],"
					     "\"data_offsets\":[0,1]}} ", escaped_name, items);
	memcpy(file, &length, 8);
	return 8 + length;
}

static void test_tensors(void **state)
{
	(void)state;
	static const struct {
		const char *name, *line;
	} file[] = {
		{ MODEL, EVAL " --force" },
		{ MODEL, "forward " MODEL " " FORWARD },
		{ "in.safetensors", "forward " MODEL " " FORWARD },
		{ "in.safetensors", "scores --encoding=rope --input=in.safetensors --output=out.safetensors" },
	};
	char bytes[300];
	size_t size = one_tensor(bytes, "a\\nropewalk: done\\u001b[2J", 2);
	for (size_t i = 0; i < sizeof file / sizeof file[0]; i++)
		refuses(file[i].name, bytes, size, file[i].line, "'" SHOWN "': its shape takes 2 bytes");
}

/* Equal to the model in the folder but for one weight, with a checksum that says so. */
static void test_weights_that_are_no_numbers(void **state)
{
	(void)state;
	struct safetensors file;
	struct model m;
	char *path = program_path(MODEL), *other = program_path("changed"), *data;
	size_t size;
	assert_ok(safetensors_read(path, &file));
	assert_ok(weights_read(path, &m));
	const struct metadata extra[] = { { "data", safetensors_metadata(&file, "data") },
					  { "training", safetensors_metadata(&file, "training") } };
	for (int i = 0; i < 2; i++) {
		m.value[m.layout.parameter[1].offset + 3] = i ? INFINITY : NAN;
		assert_ok(weights_write(&m, other, extra, 2));
		data = program_file("changed", &size);
		refuses(MODEL, data, size, EVAL " --force", i ? "item 3 is inf" : "item 3 is nan");
		free(data);
	}
	model_close(&m);
	safetensors_free(&file);
	free(path);
	free(other);
}

/* A model without our metadata may have more tensors than are needed: they are named, on one line. */
static void test_ignored_names(void **state)
{
	(void)state;
	struct safetensors file;
	struct tensor tensor[40];
	char *path = program_path(MODEL), *foreign = program_path("foreign");
	assert_ok(safetensors_read(path, &file));
	assert_true(file.count < 40);
	memcpy(tensor, file.tensor, (size_t)file.count * sizeof *tensor);
	tensor[file.count] = (struct tensor){ .name = NAUGHTY, .dtype = DTYPE_U8, .rank = 1, .shape = { 2 },
					      .data = "xy" };
	assert_ok(safetensors_write(foreign, tensor, file.count + 1, NULL, 0));
	struct program_run r = program_run("forward foreign --heads=2 " FORWARD);
	assert_int_equal(r.code, 0);
	assert_non_null(strstr(r.err, "foreign: ignored: " SHOWN "\n"));
	assert_null(strchr(r.err, '\x1b'));
	program_run_free(&r);
	safetensors_free(&file);
	free(path);
	free(foreign);
}

/* Which layout a model is read with is told where neither its file nor the user says one; what they say must agree. */
static void test_layout_of_foreign_models(void **state)
{
	(void)state;
	static const struct {
		const char *flags;
		bool told, works;
	} cases[] = {
		{ "", true, true },
		{ " --rope-layout=half", false, true },
		{ " --encoding=nope", false, true },
		{ " --encoding=rope(layout=interleaved)", false, true },
		{ "", false, true },
		{ " --rope-layout=half", false, false },
	};
	struct safetensors file;
	char *path = program_path(MODEL), *foreign = program_path("foreign");
	assert_ok(safetensors_read(path, &file));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char line[200];
		const struct metadata says = { "rope_layout", "interleaved" };
		assert_ok(safetensors_write(foreign, file.tensor, file.count, &says, i >= 4));
		snprintf(line, sizeof line, "forward foreign --heads=2%s " FORWARD, cases[i].flags);
		struct program_run r = program_run(line);
		assert_int_equal(r.code, cases[i].works ? 0 : 2);
		assert_true((strstr(r.err, "foreign: its rope layout is unknown; interleaved is taken") != NULL) ==
			    cases[i].told);
		if (!cases[i].works)
			assert_non_null(strstr(r.err, "foreign: rope_layout interleaved where half is read"));
		program_run_free(&r);
	}
	program_refuses("forward " MODEL " --rope-layout=half " FORWARD, MODEL " says itself what model it is", NULL);
	safetensors_free(&file);
	free(path);
	free(foreign);
}

/* Who trained a model is told where it is not us. */
static void test_record_of_another_version(void **state)
{
	(void)state;
	size_t size;
	char *before = program_file("one/record.json", &size), *record = program_file("one/record.json", &size);
	char *commit = strstr(record, "\"commit\": \"");
	assert_non_null(commit);
	memcpy(commit + strlen("\"commit\": \""), "\\u001b", 6);
	program_put("one/record.json", record, size);
	struct program_run r = program_run(EVAL " --force");
	assert_int_equal(r.code, 0);
	assert_non_null(strstr(r.err, "one: trained by commit \\x1b"));
	assert_null(strchr(r.err, '\x1b'));
	program_run_free(&r);
	program_put("one/record.json", before, size);
	free(before);
	free(record);
}

static void test_shapes_of_tokens(void **state)
{
	(void)state;
	put_tokens(3, 2);
	program_refuses("forward " MODEL " " FORWARD, "in.safetensors: targets has 2 dimensions and 6 items",
			"the shape of the tokens");
	put_tokens(2, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_tensors),
		cmocka_unit_test(test_weights_that_are_no_numbers),
		cmocka_unit_test(test_ignored_names),
		cmocka_unit_test(test_layout_of_foreign_models),
		cmocka_unit_test(test_record_of_another_version),
		cmocka_unit_test(test_shapes_of_tokens),
	};
	return cmocka_run_group_tests_name("runs damaged", tests, start, stop);
}
