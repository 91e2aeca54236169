#include "tests/program.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>

/* What changes while a run trains, and fine-tuning, as a user meets them. */

#define SIZE " --width=16 --hidden=16 --train-length=40 --batch=4 --warmup=2 --threads=1"
#define TUNE "finetune base --scaling=yarn --length=80 --steps=4 --multiples=1,2 --sequences=4 --threads=1 "

static int start(void **state)
{
	program_setup(state);
	program_works("train --steps=6 --out=base" SIZE);
	return 0;
}

static int count(const char *text, const char *part)
{
	int found = 0;
	for (const char *s = text; (s = strstr(s, part)); s++)
		found++;
	return found;
}

static void assert_has(const char *name, const char *part)
{
	size_t size;
	char *text = program_file(name, &size);
	if (!strstr(text, part))
		fail_msg("%s lacks %s", name, part);
	free(text);
}

static void test_table(void **state)
{
	(void)state;
	struct program_run made = program_run(TUNE "--out=tuned"), again = program_run("table base tuned");
	assert_int_equal(made.code, 0);
	assert_int_equal(again.code, 0);
	assert_string_equal(made.out, again.out);
	assert_int_equal(count(made.out, "none, as trained"), 2);
	assert_int_equal(count(made.out, "yarn(factor=2), as trained"), 2);
	assert_int_equal(count(made.out, "yarn(factor=2), fine-tuned"), 2);
	assert_int_equal(count(made.out, "none, fine-tuned"), 2);
	assert_non_null(strstr(made.out, "4 more steps at length 80 (2x) in batches of 2, 640 tokens in all"));
	assert_non_null(strstr(made.err, "batch 2 (160 tokens; 160 in the base)"));
	program_run_free(&made);
	program_run_free(&again);
	again = program_run("table base tuned --format=csv");
	assert_int_equal(count(again.out, "\n"), 1 + 4 * 2 * 5);
	program_run_free(&again);
	program_refuses("table tuned base", "was not fine-tuned from", "base first");
	program_refuses("table base tuned --against=none", "--against", NULL);
	assert_has("tuned/config", "trained_scaling = yarn(factor=2)\n");
	assert_has("tuned/config", "train_length = 40\n");
	assert_has("tuned/config", "length = 80\n");
	assert_has("tuned/none/config", "trained_scaling = none\n");
}

/* Its own scaling is what it is evaluated under, unless another is named. */
static void test_evaluated_as_trained(void **state)
{
	(void)state;
	struct program_run r = program_run("eval tuned --multiples=1 --sequences=4 --format=csv");
	assert_int_equal(count(r.out, ",yarn(factor=2),2,"), 5);
	program_run_free(&r);
	r = program_run("eval tuned --scaling=none --multiples=1 --sequences=4 --format=csv");
	assert_int_equal(count(r.out, ",none,1,"), 5);
	program_run_free(&r);
	r = program_run("eval base --multiples=1 --sequences=4 --format=csv");
	assert_int_equal(count(r.out, ",none,1,"), 5);
	program_run_free(&r);
}

/* Cut off in its middle it ends with the same bytes; without a checkpoint too, from its base. */
static void test_resumed(void **state)
{
	(void)state;
	program_works(TUNE "--save-every=1 --out=whole");
	shell("cp -R whole cut && rm cut/model.safetensors cut/checkpoint-0000000004.safetensors cut/eval*");
	shell("sed -i.old 's/\"finished\"/\"stopped\"/' cut/record.json && rm cut/record.json.old");
	program_works(TUNE "--resume --out=cut");
	shell("cmp whole/model.safetensors cut/model.safetensors && cmp whole/train.jsonl cut/train.jsonl");
	shell("cp -R whole early && rm early/model.safetensors early/checkpoint-* early/eval*");
	shell("sed -i.old 's/\"finished\"/\"stopped\"/' early/record.json && rm early/record.json.old");
	program_refuses("train --resume --out=early", "base", "finetune");
	program_works(TUNE "--resume --out=early");
	shell("cmp whole/model.safetensors early/model.safetensors");
	program_refuses(TUNE "--resume --lr=1 --out=early", "lr is", "here");
	program_refuses(TUNE "--out=early", "is not empty", "--resume");
	program_refuses("finetune base --scaling=ntk --length=80 --steps=4 --resume --out=early",
			"trained_scaling is yarn(factor=2) there, and ntk(factor=2) here", NULL);
	program_refuses("finetune base --scaling=yarn(beta_fast=8,truncate=off) --length=80 --steps=4 --resume "
			"--out=early", "is yarn(beta_fast=32,truncate=on) there, and yarn(beta_fast=8,truncate=off) here",
			NULL);
}

/* It begins with the base's weights, on data that the base has not seen. */
static void test_starts_from_the_base(void **state)
{
	(void)state;
	program_works("finetune base --scaling=yarn --length=80 --steps=0 --multiples=1 --sequences=2 --control=off "
		      "--out=still");
	assert_false(program_has("still/none"));
	struct program_run r = program_run("finetune base --scaling=yarn --length=80 --steps=0 --multiples=1 "
					   "--sequences=2 --control=off --force --out=still");
	assert_int_equal(count(r.err, "still: 0 steps, the base's weights"), 1);
	assert_int_equal(count(r.err, "loss"), 0);
	program_run_free(&r);
	r = program_run("eval still --scaling=none --multiples=2 --sequences=4 --format=csv");
	struct program_run b = program_run("eval base --scaling=none --multiples=2 --sequences=4 --format=csv");
	const char *one = strstr(r.out, ",none,1,recall"), *other = strstr(b.out, ",none,1,recall");
	assert_true(one && other);
	assert_memory_equal(one, other, strcspn(one, "\n"));
	program_run_free(&r);
	program_run_free(&b);
}

static void test_refused(void **state)
{
	(void)state;
	program_refuses("finetune base --length=80 --out=no", "--scaling: is missing", NULL);
	program_refuses("finetune base --scaling=yarn --out=no", "--length: is missing", NULL);
	program_refuses("finetune base --scaling=yarn --length=80", "--out", NULL);
	program_refuses("finetune base --scaling=none --length=80 --out=no", "is none", "control");
	program_refuses("finetune base --scaling=yarn,ntk --length=80 --out=no", "2 are given", NULL);
	program_refuses("finetune base --scaling=yarn --length=39 --out=no", "less than the 40", NULL);
	program_refuses("finetune nowhere --scaling=yarn --length=80 --out=no", "no such folder", NULL);
	program_refuses("finetune base --scaling=yarn --length=80 --out=base", "the base itself", NULL);
	program_refuses("finetune base --scaling=yarn --length=80 --width=8 --out=no", "--width", NULL);
	program_refuses("finetune tuned/none --scaling=yarn --length=80 --force --out=tuned",
			"tuned/none is the base itself", NULL);
	program_refuses("train --base=00 --out=no", "base", "finetune");
	assert_false(program_has("no"));
}

/* Rope is gone from that step on: the model says so, and what reads it goes by that. */
static void test_dropped(void **state)
{
	(void)state;
	program_works("train --steps=6 --drop-rope-at=3 --save-every=1 --out=drop" SIZE);
	shell("grep -aq dropped=on drop/model.safetensors");
	shell("grep -aq dropped=on drop/checkpoint-0000000005.safetensors");
	shell("ropewalk inspect drop/model.safetensors | grep -q 'do not rotate: 0, 1'");
	shell("cp -R drop late && rm late/model.safetensors late/checkpoint-0000000006.safetensors");
	shell("sed -i.old 's/\"finished\"/\"stopped\"/' late/record.json && rm late/record.json.old");
	program_works("train --resume --out=late");
	shell("cmp drop/model.safetensors late/model.safetensors && cmp drop/train.jsonl late/train.jsonl");
	program_works("eval drop --multiples=1,2 --sequences=2");
	program_refuses("train --drop-rope-at=6 --steps=6 --out=no" SIZE, "none is left", NULL);
	program_refuses("train --drop-rope-at=2 --encoding=nope --out=no" SIZE, "no rope to remove", NULL);
}

/* Each length is logged where lengths are drawn, and only there. */
static void test_lengths(void **state)
{
	(void)state;
	struct program_run r = program_run("train --steps=6 --length=60 --length-least=30 --out=lengths" SIZE);
	assert_int_equal(r.code, 0);
	assert_non_null(strstr(r.err, "6 steps of 120 to 240 tokens"));
	program_run_free(&r);
	size_t size;
	char *log = program_file("lengths/train.jsonl", &size);
	assert_int_equal(count(log, "\"length\":"), 6);
	free(log);
	log = program_file("base/train.jsonl", &size);
	assert_int_equal(count(log, "\"length\":"), 0);
	free(log);
}

static void test_positions(void **state)
{
	(void)state;
	program_works("train --steps=2 --positions=randomized --positions-most=90 --out=randomized" SIZE);
	program_works("eval randomized --multiples=1,2 --sequences=2");
	program_refuses("eval randomized --multiples=4 --sequences=2", "positions_most", NULL);
	program_refuses("eval randomized --scaling=ntk --multiples=1 --sequences=2", "differs from sequence", "factor");
	program_refuses("decompose randomized", "randomized", NULL);
	program_works("train --steps=2 --positions=task --task=copy(coupled=on) --out=coupled" SIZE);
	program_works("eval coupled --multiples=1,2 --sequences=2");
	program_refuses("train --positions=task --out=no" SIZE, "supplies none", "coupled=on");
	program_refuses("train --positions=task --task=copy(coupled=on) --encoding=t5 --out=no" SIZE, "does not take",
			NULL);
	program_refuses("train --positions=offset --encoding=learned --out=no" SIZE, "the learned table has 40 rows",
			"--positions-most");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_evaluated_as_trained),
		cmocka_unit_test(test_resumed),
		cmocka_unit_test(test_starts_from_the_base),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_dropped),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_positions),
	};
	return cmocka_run_group_tests_name("runs finetune", tests, start, program_teardown);
}
