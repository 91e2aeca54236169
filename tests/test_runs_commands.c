#include "tests/program.h"
#include "tests/support.h"

#include "model/base/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the commands do with runs: their files, what is kept and what is computed. */

#define SMALL "--width=16 --heads=2 --hidden=16 --layers=1 --batch=2 "

static int start(void **state)
{
	(void)state;
	program_start();
	program_works("train " SMALL "--steps=3 --out=rope");
	return 0;
}

static int count(const char *text, const char *part)
{
	int found = 0;
	for (; (text = strstr(text, part)); text++)
		found++;
	return found;
}

static void test_training_files(void **state)
{
	(void)state;
	char *log = program_file("rope/train.jsonl", NULL), *command = program_file("rope/command", NULL);
	char *record = program_file("rope/record.json", NULL), *config = program_file("rope/config", NULL);
	assert_int_equal(count(log, "\n"), 3);
	assert_int_equal(count(log, "{\"step\":3,\"loss\":"), 1);
	assert_int_equal(count(log, "second"), 0); /* equal jobs make equal logs */
	assert_string_equal(command, "ropewalk train " SMALL "--steps=3 --out=rope\n");
	assert_int_equal(count(record, "\"status\": \"finished\""), 1);
	assert_int_equal(count(config, "width = 16\n") + count(config, "seed = 101\n"), 2);
	assert_true(program_has("rope/timing.jsonl"));
	free(log);
	free(command);
	free(record);
	free(config);
}

static bool same_files(const char *one, const char *two)
{
	size_t size, other;
	char *a = program_file(one, &size), *b = program_file(two, &other);
	bool same = size == other && !memcmp(a, b, size);
	free(a);
	free(b);
	return same;
}

/* The folder's config makes the same model again, to the byte; --force removes what was the old run's, and no more. */
static void test_config_reruns(void **state)
{
	(void)state;
	program_works("train --config=rope/config --out=again --threads=1");
	assert_true(same_files("rope/model.safetensors", "again/model.safetensors"));
	assert_true(same_files("rope/train.jsonl", "again/train.jsonl"));
	program_put("again/mine.txt", "x", 1);
	program_works("train " SMALL "--steps=0 --seed=102 --out=again --force");
	assert_false(same_files("rope/model.safetensors", "again/model.safetensors"));
	assert_true(program_has("again/mine.txt"));
	assert_false(program_has("again/train.jsonl"));
}

#define NONE "rope/eval-none-afc5064e"

/* A second evaluation takes what is there, and adds what is new in its place. */
static void test_evaluation_is_kept(void **state)
{
	(void)state;
	program_works("eval rope --multiples=1,4 --sequences=3 --scaling=none");
	char *first = program_file(NONE ".csv", NULL);
	struct program_run again = program_run("eval rope/model.safetensors --multiples=4,1 --sequences=3");
	assert_int_equal(again.code, 0);
	assert_int_equal(count(again.err, "2 of 2 lengths are there already"), 1);
	assert_int_equal(count(again.out, "recall"), 3); /* the heading and two lengths */
	program_run_free(&again);
	char *second = program_file(NONE ".csv", NULL);
	assert_string_equal(first, second);

	program_works("eval rope --multiples=2 --sequences=3");
	char *third = program_file(NONE ".csv", NULL);
	const char *two = strstr(third, ",64,128,2,3,"), *four = strstr(third, ",64,256,4,3,");
	assert_true(two && four && two < four);
	assert_int_equal(count(third, "\n"), 1 + 3 * 5);
	program_works("eval rope --multiples=1,2,4 --sequences=3 --force");
	char *forced = program_file(NONE ".csv", NULL);
	assert_string_equal(third, forced);

	program_works("eval rope --multiples=2 --sequences=3 --eval-seed=2");
	char *seeds = program_file(NONE ".csv", NULL);
	assert_int_equal(count(seeds, "\n"), 1 + 4 * 5);
	free(first);
	free(second);
	free(third);
	free(forced);
	free(seeds);
}

/* The two files say the same: the sequences add up to the table. */
static void test_sequences_add_up(void **state)
{
	(void)state;
	program_works("eval rope --multiples=3 --sequences=5 --scaling=ntk(factor=3),none --eval-seed=9");
	char *table = program_file(NONE ".csv", NULL), *sequences = program_file(NONE "-sequences.csv", NULL), *rest;
	double sum = 0, nll = 0;
	long long scored = 0, all = 0;
	for (char *line = strtok_r(sequences, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		long long tokens;
		double part;
		if (sscanf(line, "rope,none,recall,all,101,9,192,5,%*d,%lld,%lf,", &tokens, &part) == 2) {
			scored += tokens;
			sum += part;
		}
	}
	for (char *line = strtok_r(table, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (strstr(line, ",recall,all,101,9,64,192,3,5,"))
			assert_int_equal(sscanf(strstr(line, ",192,3,5,"), ",192,3,5,%lld,%lf,", &all, &nll), 2);
	assert_true(scored > 0);
	assert_int_equal(scored, all);
	assert_close(sum / (double)scored, nll, 1e-12);
	free(table);
	free(sequences);
}

#define BY_PARTS "ntk_by_parts(factor=4,beta_fast=1e-6,beta_slow=1e-6)"

/* Scalings that give a length equal zones share one computation (at 1: none, linear, ntk; at 8: ntk, ntk(factor=8)),
 * and yet each one's files are what it gets alone. */
static void test_equal_scalings_keep_their_own_rows(void **state)
{
	(void)state;
	enum { SCALINGS = 5 };
	static const char *const label[SCALINGS] = { "none", "linear", "ntk(factor=8)", "ntk", BY_PARTS };
	static const char *const file[SCALINGS] = {
		"eval-none-afc5064e", "eval-linear-c05a1a59", "eval-ntk-factor-8--8359aed0", "eval-ntk-186f0d19",
		"eval-ntk_by_parts-factor-4-beta_fast-1e-06-beta_slow-1e-06--80798d99",
	};
	char line[256], path[2][128], *together[SCALINGS][2];
	program_works("train --config=rope/config --out=equal");
	program_works("eval equal --multiples=1,8 --sequences=3 --scaling=none,linear,ntk(factor=8),ntk," BY_PARTS);
	for (int again = 0; again < 2; again++)
		for (int i = 0; i < SCALINGS; i++) {
			snprintf(path[0], sizeof path[0], "equal/%s.csv", file[i]);
			snprintf(path[1], sizeof path[1], "equal/%s-sequences.csv", file[i]);
			snprintf(line, sizeof line, "eval equal --multiples=1,8 --sequences=3 --scaling=%s --force",
				 label[i]);
			if (again)
				program_works(line);
			for (int kind = 0; kind < 2; kind++) {
				char *found = program_file(path[kind], NULL);
				if (!again) {
					together[i][kind] = found;
					continue;
				}
				assert_string_equal(found, together[i][kind]);
				free(together[i][kind]);
				free(found);
			}
		}
}

static void test_divergence(void **state)
{
	(void)state;
	struct program_run r = program_run("train " SMALL "--lr=1000 --clip=0 --warmup=0 --steps=500 --out=wild");
	program_failed("train", &r, 3, "ropewalk: step ", NULL);
	assert_false(program_has("wild/model.safetensors"));
	char *record = program_file("wild/record.json", NULL);
	assert_int_equal(count(record, "\"status\": \"diverged\""), 1);
	program_refuses("eval wild", "wild: has no finished model", "diverged");
	free(record);
}

static void put_tokens(const char *name)
{
	int32_t tokens[20] = { 0 }, targets[20];
	uint8_t scored[20] = { [9] = 1 };
	for (int i = 0; i < 20; i++)
		targets[i] = -7; /* not looked at where the mask is 0 */
	targets[9] = 6;
	const struct tensor tensor[] = {
		{ .name = "x.tokens", .dtype = DTYPE_I32, .rank = 2, .shape = { 1, 20 }, .data = tokens },
		{ .name = "x.targets", .dtype = DTYPE_I32, .rank = 2, .shape = { 1, 20 }, .data = targets },
		{ .name = "x.scored", .dtype = DTYPE_U8, .rank = 2, .shape = { 1, 20 }, .data = scored },
	};
	char *path = program_path(name);
	assert_ok(safetensors_write(path, tensor, 3, NULL, 0));
	free(path);
}

static const struct tensor *find(const struct safetensors *s, const char *name, int64_t items)
{
	const struct tensor *t = safetensors_find(s, name);
	if (!t)
		fail_msg("%s is missing", name);
	assert_int_equal(tensor_items(t), items);
	return t;
}

static double forward_loss(const char *options, const char *output)
{
	struct safetensors s;
	char line[256], *path = program_path(output);
	double nll[20], loss;
	snprintf(line, sizeof line, "forward rope/model.safetensors --output=%s --prefix=x. --tokens=in --gradients %s",
		 output, options);
	program_works(line);
	assert_ok(safetensors_read(path, &s));
	find(&s, "logits", 20 * 99);
	find(&s, "grad.model.layers.0.mlp.up_proj.weight", 16 * 16);
	assert_ok(tensor_to_double(find(&s, "nll", 20), nll));
	assert_ok(tensor_to_double(find(&s, "loss", 1), &loss));
	assert_true(nll[9] > 0 && nll[9] == loss && nll[8] == 0);
	safetensors_free(&s);
	free(path);
	return loss;
}

static void test_forward(void **state)
{
	(void)state;
	put_tokens("in");
	double plain = forward_loss("--scaling=linear", "a");
	double longer = forward_loss("--scaling=linear --length=640", "b");
	assert_true(plain == forward_loss("", "c")); /* within train_length the factor is 1 */
	assert_true(plain != longer);
	assert_true(longer == forward_loss("--scaling=linear --factor=10", "d"));
	assert_true(same_files("b", "d"));
}

static void test_answers(void **state)
{
	(void)state;
	static const struct {
		const char *line, *word;
	} answers[] = {
		{ "--version", "commit" },
		{ "--help", "Usage:" },
		{ "help", "Usage:" },
		{ "help train", "--train-length=64" },
		{ "eval --help", "--sequences=64" },
		{ "list encodings", "alibi" },
		{ "list scalings", "yarn" },
		{ "list tasks", "recall" },
		{ "list options", "--rope-theta=500" },
		{ "list params", "94912" },
		{ "list params --encoding=t5 --t5-buckets=8", "(8,2)" },
		{ "list presets", "" },
		{ "list pictures", "perplexity" },
	};
	for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
		struct program_run r = program_run(answers[i].line);
		if (r.code || !strstr(r.out, answers[i].word))
			fail_msg("%s: exit %d: %s%s", answers[i].line, r.code, r.out, r.err);
		program_run_free(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_training_files),
		cmocka_unit_test(test_config_reruns),
		cmocka_unit_test(test_evaluation_is_kept),
		cmocka_unit_test(test_sequences_add_up),
		cmocka_unit_test(test_equal_scalings_keep_their_own_rows),
		cmocka_unit_test(test_divergence),
		cmocka_unit_test(test_forward),
		cmocka_unit_test(test_answers),
	};
	return cmocka_run_group_tests_name("runs commands", tests, start, program_teardown);
}
