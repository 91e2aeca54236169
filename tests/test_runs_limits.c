#include "tests/program.h"
#include "tests/support.h"

#include "model/base/memory.h"
#include "model/base/safetensors.h"
#include "model/base/threads.h"
#include "runs/command/command.h"
#include "train/loop.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

/* Sizes that are no sizes, sizes that do not fit, and little memory: an error by name, before any work. */

#define SMALL "--width=8 --heads=1 --hidden=8 --layers=1 --batch=2 --steps=1 --threads=1 "

static int start(void **state)
{
	(void)state;
	program_start();
	program_works("train " SMALL "--out=m");
	return 0;
}

/* A line of sh under limits: of ulimit's memory in kB, and of processor time, which an endless loop meets. */
static struct program_run limited(char kind, int kilobytes, const char *line)
{
	char all[400];
	snprintf(all, sizeof all, "ulimit -t 5; ulimit -%c %d; %s", kind, kilobytes, line);
	return program_run_shell(all);
}

/* Works, or says that memory lacks; never ended by a signal. */
static void ends_well(char kind, int kilobytes, const char *line)
{
	struct program_run r = limited(kind, kilobytes, line);
	bool told = r.code >= 1 && r.code <= 2 && !strncmp(r.err, "ropewalk: ", 10) + !!strstr(r.err, "\nropewalk: ");
	if (r.code && (!told || !strstr(r.err, "ulimit -v")))
		fail_msg("%s with ulimit -%c %d: exit %d: %s", line, kind, kilobytes, r.code, r.err);
	program_run_free(&r);
}

static void says(char kind, int kilobytes, const char *line, int code, const char *part)
{
	struct program_run r = limited(kind, kilobytes, line);
	if (r.code != code || !strstr(r.err, part))
		fail_msg("%s with ulimit -%c %d: exit %d, no '%s': %s", line, kind, kilobytes, r.code, part, r.err);
	program_run_free(&r);
}

/* BLAS asks again and again for what it is refused, and OpenMP ends the process. */
static void test_little_address_space(void **state)
{
	static const int kilobytes[] = { 80000, 150000, 250000, 330000, 400000, 700000 };
	(void)state;
	for (size_t i = 0; i < sizeof kilobytes / sizeof *kilobytes; i++) {
		ends_well('v', kilobytes[i], "ropewalk train --steps=1 --batch=2 --threads=2 --force --out=v");
		ends_well('v', kilobytes[i], "ropewalk --version");
	}
	ends_well('v', 250000, "ropewalk eval m --multiples=1 --sequences=2");
	ends_well('d', 60000, "ropewalk --version");
	ends_well('d', 280000, "ropewalk bench --batch=2 --repetitions=1 --multiples=1 --threads=2");
	/* Nothing is computed. */
	says('v', 100000, "ropewalk inspect", 0, "");
	says('v', 100000, "ropewalk list", 0, "");
}

static void test_many_threads(void **state)
{
	(void)state;
	if (!threads_openmp())
		skip();
	says('v', 4000000, "ropewalk train --steps=1 --out=t --threads=1024", 1, "1024 threads of matrix products need");
	says('v', 1000000, "OMP_STACKSIZE=2G ropewalk train --steps=1 --out=t --threads=2", 1, "2 threads");
	says('v', 1000000, "ropewalk train --steps=1 --batch=2 --out=t --threads=2", 0, "");
}

/* Refused under a limit, so that it does not depend on the machine; nothing is written. */
static void refused(const char *arguments, const char *part)
{
	char line[300];
	snprintf(line, sizeof line, "ropewalk %s; code=$?; [ ! -e new ] || echo written >&2; exit $code", arguments);
	struct program_run r = limited('v', 900000, line);
	if (r.code != 2 || !strstr(r.err, part) || strstr(r.err, "written") || *r.out)
		fail_msg("%s: exit %d, no '%s': %s", arguments, r.code, part, r.err);
	program_run_free(&r);
}

static void put_tensors(const char *name, const struct tensor *tensor, int count)
{
	char *path = program_path(name);
	assert_ok(safetensors_write(path, tensor, count, NULL, 0));
	free(path);
}

static void test_too_large_for_memory(void **state)
{
	enum { B = 8, T = 1 << 17 };
	float *x = TAKE(float, 2 * T);
	int32_t *token = TAKE(int32_t, B * T);
	(void)state;
	memset(x, 0, 2 * T * sizeof *x);
	memset(token, 0, B * T * sizeof *token);
	const struct tensor qk[] = {
		{ .name = "q", .dtype = DTYPE_F32, .rank = 4, .shape = { 1, 1, T, 2 }, .data = x },
		{ .name = "k", .dtype = DTYPE_F32, .rank = 4, .shape = { 1, 1, T, 2 }, .data = x },
	};
	const struct tensor tokens[] = {
		{ .name = "tokens", .dtype = DTYPE_I32, .rank = 2, .shape = { B, T }, .data = token },
		{ .name = "targets", .dtype = DTYPE_I32, .rank = 2, .shape = { B, T }, .data = token },
	};
	put_tensors("qk.safetensors", qk, 2);
	put_tensors("tokens.safetensors", tokens, 2);
	free(x);
	free(token);
	refused("scores --input=qk.safetensors --output=new --threads=1", "T 131072 need 137.5 GB");
	refused("forward m/model.safetensors --tokens=tokens.safetensors --output=new --gradients --threads=1",
		"8 sequences of 131072 tokens need ");
	refused("train " SMALL "--train-length=16777216 --out=new", "training needs ");
	refused("train " SMALL "--width=65536 --out=new", "training needs ");
	refused("train " SMALL "--encoding=learned --width=1024 --train-length=1048576 --out=new", "training needs ");
	refused("train " SMALL "--batch=1048576 --train-length=16777216 --out=new", "may have 2147483647");
	refused("bench --threads=1 --train-length=16777216 --output=new", "training needs ");
	refused("inspect --encoding=sinusoidal --width=4096 --length=1048576", "table needs 34.4 GB");
	refused("inspect '--scaling=dynamic(block=1)' --head-dim=65536 --length=1048576", "the zones needs ");
}

static void test_too_long_an_evaluation(void **state)
{
	(void)state;
	refused("eval m --threads=1 --multiples=1,262144 --sequences=1",
		"none at length 16777216: a length of 16777216 tokens needs ");
	refused("eval m --threads=1 --multiples=16777216", "none at length 1073741824: a length of");
	refused("eval m --threads=1 --multiples=16777217", "more than 1073741824 tokens");
	refused("eval m --threads=1 --multiples=1e30", "more than 1073741824 tokens");
	refused("eval m --threads=1 --multiples=1 --sequences=16777216", "16777216 sequences at 1 length need");
	refused("decompose m --threads=1 --multiples=262144", "a length of 16777216 tokens needs ");
	refused("decompose m --threads=1 --multiples=2 --sequences=16777216", "16777216 sequences need ");
	refused("patch m --threads=1 --scaling=linear --multiple=262144", "a length of 16777216 tokens needs ");
	refused("knockout m --threads=1 --sequences=16777216", "16777216 sequences need ");
	refused("diagnose m --threads=1 --multiples=262144", "a length of 16777216 tokens needs ");
	refused("diagnose m --threads=1 --multiples=1 --sequences=16777216", "16777216 sequences need ");
	refused("oracle m --threads=1 --multiple=2 --sequences=16777216", "16777216 sequences need ");
	refused("oracle m --threads=1 --multiple=64 --batch=100000", "a fit to 100000 sequences of ");
	static const char study[] = "layers = 1\nwidth = 8\nheads = 1\nhidden = 8\nsteps = 1\nmultiples = 1\n";
	program_put("s.study", study, sizeof study - 1);
	refused("study s.study --threads=1 --out=new --multiples=262144", "a length of 16777216 tokens needs ");
	refused("study s.study --threads=1 --out=new --sequences=16777216", "sequences at 1 length need ");
}

/* Every number option of every command takes a value in its range and names itself, with the range, where it is not. */
static void check_number(const struct scope *scope, const struct option_name *n, const char *text, bool finite)
{
	struct config c;
	config_init(&c, scope, NULL);
	double value = strtod(text, NULL);
	bool integer = n->option->kind == OPTION_INTEGER;
	bool inside = finite && value >= n->option->least && value <= n->option->most && (!integer || value < 0x1p63);
	if (n->option->choices && value == 0)
		return;
	struct err e = config_set(&c, n->name, text, NULL);
	if (inside ? e.code != ERR_NONE : e.code != ERR_USAGE)
		fail_msg("%s: %s = %s: [%d] %s", scope->command, n->name, text, e.code, e.text);
	if (inside)
		return;
	char most[NUMBER_TEXT];
	number_to_text(n->option->most, most);
	if (!strstr(e.text, n->name) || (!strstr(e.text, most) && !strstr(e.hint, most)) || strchr(e.text, '\n'))
		fail_msg("%s: %s = %s: no name or range in: %s\n%s", scope->command, n->name, text, e.text, e.hint);
}

static void test_every_number(void **state)
{
	static const struct {
		const char *text;
		bool finite;
	} values[] = {
		{ "0", true }, { "-1", true }, { "1", true }, { "2147483647", true }, { "2147483648", true },
		{ "4294967296", true }, { "9223372036854775807", true }, { "18446744073709551616", true },
		{ "1e30", true }, { "-1e308", true }, { "1e309", false }, { "nan", false }, { "inf", false },
	};
	int numbers = 0;
	(void)state;
	for (int i = 0; command_at(i); i++) {
		struct scope scope = command_scope(command_at(i));
		struct option_name n;
		scope.lists &= ~(unsigned)LIST_OWN;
		for (int j = 0; option_name_at(&scope, j, &n); j++) {
			if (n.option->kind != OPTION_INTEGER && n.option->kind != OPTION_NUMBER)
				continue;
			numbers++;
			for (size_t v = 0; v < sizeof values / sizeof *values; v++)
				check_number(&scope, &n, values[v].text, values[v].finite);
		}
	}
	assert_true(numbers > 100);
}

/* The plan's activations are at least those that every encoding has, counted in double. */
static void check_plan(const struct config *c, const char *what)
{
	struct train_plan p;
	const struct model_options *m = &c->model;
	double rows = (double)c->train.batch * (double)m->train_length;
	struct err e = train_plan(m, &c->data, &c->train, &p);
	if (e.code != ERR_NONE && e.code != ERR_USAGE)
		fail_msg("%s: [%d] %s", what, e.code, e.text);
	bool measured = !e.code || strstr(e.text, "training needs");
	if (!measured || p.activations == SIZE_MAX)
		return;
	double least = rows * (double)m->layers * (9.0 * (double)m->width + 3.0 * (double)m->hidden) * sizeof(real);
	double weights = 4.0 * sizeof(real) * (double)m->layers * (double)m->width *
			 (4.0 * (double)m->width + 3.0 * (double)m->hidden);
	if ((double)p.activations < least || (double)p.slabs < weights || (double)p.batch < rows * 21)
		fail_msg("%s: %zu, %zu, %zu bytes are too few", what, p.activations, p.slabs, p.batch);
}

struct row_at {
	const struct option *row;
	unsigned list;
};

static void set_most(struct config *c, const struct row_at *r)
{
	/* A layer is a loop over names. */
	double most = r->row->most > 1000 ? r->row->most : r->row->most > 100 && r->row->least == 1 ? 100 : r->row->most;
	option_put(r->row, config_list(c, r->list), (union option_value){ .integer = (int64_t)most });
}

/* Every pair of sizes at their greatest, where there is little memory, so that nothing large is tried. */
static void test_pairs_of_sizes(void **state)
{
	static const struct scope scope = { .command = "train", .lists = LIST_TRAINING };
	struct row_at row[32];
	struct rlimit before, small;
	int rows = 0, pairs = 0;
	(void)state;
	for (unsigned list = LIST_MODEL; list <= LIST_TRAIN; list *= 2)
		for (const struct option *o = option_rows(&scope, list); o->name; o++)
			if (o->kind == OPTION_INTEGER && o->results && o->most <= 1e9)
				row[rows++] = (struct row_at){ o, list };
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	small = before;
	small.rlim_cur = memory_mapped() + ((size_t)100 << 20);
	assert_int_equal(setrlimit(RLIMIT_AS, &small), 0);
	for (int i = 0; i < rows; i++)
		for (int j = 0; j <= i; j++) {
			struct config c;
			char what[80];
			config_init(&c, &scope, NULL);
			set_most(&c, &row[i]);
			set_most(&c, &row[j]);
			snprintf(what, sizeof what, "%s, %s", row[i].row->name, row[j].row->name);
			check_plan(&c, what);
			pairs++;
		}
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_true(pairs >= 28);
}

/* A sanitizer maps terabytes: no limit can be set below. */
static const struct CMUnitTest under_limits[] __attribute__((unused)) = {
	cmocka_unit_test(test_little_address_space), cmocka_unit_test(test_many_threads),
	cmocka_unit_test(test_too_large_for_memory), cmocka_unit_test(test_too_long_an_evaluation),
	cmocka_unit_test(test_pairs_of_sizes),
};

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_number),
	};
	int failed = cmocka_run_group_tests_name("runs limits", tests, start, program_teardown);
#ifndef __SANITIZE_ADDRESS__
	failed += cmocka_run_group_tests_name("runs under limits", under_limits, start, program_teardown);
#endif
	return failed;
}
