#include "runs/study/grid.h"
#include "tests/program.h"
#include "tests/support.h"

#include "model/base/stb.h"

#include <stdio.h>
#include <stdlib.h>

/* Studies that fine-tune their models. */

#define SIZE " --width=16 --hidden=16 --train-length=40 --batch=4 --steps=6 --warmup=2 --seed=7 --threads=1"
#define EVALUATION " --multiples=1,2 --sequences=4"

static int start(void **state)
{
	static const char text[] =
		"encoding = rope\nseed = 7, 8\nwidth = 16\nhidden = 16\ntrain_length = 40\nbatch = 4\nsteps = 6\n"
		"warmup = 2\nmultiples = 1, 2\nsequences = 4\nscaling = none, yarn(factor=2)\nreferences = off\n"
		"finetune = none, yarn\nfinetune_length = 80\nfinetune_steps = 10\n";
	program_setup(state);
	program_put("tune.study", text, sizeof text - 1);
	return 0;
}

/* --- the grid ---------------------------------------------------------------------------------------------------- */

static void build(const char *text, struct study *s, struct grid *g)
{
	assert_ok(study_parse("f", text, s));
	assert_ok(grid_build(s, g));
}

static void test_cells(void **state)
{
	(void)state;
	struct study s;
	struct grid g;
	build("encoding = rope, alibi\nseed = 1, 2\nscaling = none, linear\nfinetune = none, yarn\n", &s, &g);
	assert_int_equal(arrlen(g.cell), 4 + 4 + 2);
	for (int i = 4; i < 10; i++) {
		const struct cell *c = &g.cell[i], *base = &g.cell[c->base];
		assert_non_null(c->tuned);
		assert_null(base->tuned);
		assert_int_equal(c->config.train.seed, base->config.train.seed);
		assert_int_equal(c->config.train.length, 256);
		assert_int_equal(c->config.train.batch, 8);
		assert_int_equal(c->scalings, 1);
		assert_string_equal(c->scaling_label[0], c->tuned);
	}
	assert_string_equal(g.cell[4].label, "rope, fine-tuned at 256");
	assert_string_equal(g.cell[6].label, "alibi, fine-tuned at 256");
	assert_string_equal(g.cell[8].tuned, "yarn(factor=4)");
	assert_int_equal(g.cell[8].group, g.cell[9].group);
	assert_int_not_equal(g.cell[8].group, g.cell[4].group);
	assert_int_equal(g.groups, 5);
	grid_free(&g);
	study_free(&s);
}

/* A model that does not take the length is left out, as one that does not take the scaling is. */
static void test_cells_that_can(void **state)
{
	(void)state;
	struct study s;
	struct grid g;
	build("encoding = rope, learned, learned(overflow=clamp)\nfinetune = none\n", &s, &g);
	assert_int_equal(arrlen(g.cell), 3 + 2);
	assert_string_equal(g.cell[3].label, "rope, fine-tuned at 256");
	assert_string_equal(g.cell[4].label, "learned(overflow=clamp), fine-tuned at 256");
	grid_free(&g);
	study_free(&s);
}

/* Another base is another model, though all else is alike. */
static void test_identity(void **state)
{
	(void)state;
	struct study s[2];
	struct grid g[2];
	build("finetune = none\nsteps = 6\nwarmup = 2\n", &s[0], &g[0]);
	build("finetune = none\nsteps = 7\nwarmup = 2\n", &s[1], &g[1]);
	assert_string_not_equal(g[0].cell[1].identity, g[1].cell[1].identity);
	for (int i = 0; i < 2; i++) {
		grid_free(&g[i]);
		study_free(&s[i]);
	}
}

static void refuse(const char *text, const char *part)
{
	struct study s;
	struct grid g;
	assert_ok(study_parse("f", text, &s));
	assert_err(grid_build(&s, &g), ERR_USAGE, part);
	study_free(&s);
}

static void test_refused(void **state)
{
	(void)state;
	refuse("seed = 1\nfinetune = none\nvariant = default, long\n[variant=long]\nfinetune_length = 512\n",
	       "f:5: finetune_length: is another than that of variant=default, which is the same model");
	refuse("variant = default, more\n[variant=more]\nscaling = none, ntk\n", "f:3: scaling: is another");
	refuse("variant = default, more\n[variant=more]\nsequences = 8\n", "f:3: sequences: is another");
	refuse("finetune = warp\n", "f:1: finetune");
	refuse("encoding = alibi\nfinetune = yarn\n", "f:2: finetune: yarn");
	refuse("encoding = learned\nfinetune = none\n", "f:2: finetune: none: length 256: the learned table has 64");
	refuse("finetune = none\npositions = offset\npositions_most = 128\n",
	       "f:1: finetune: none: positions: a sequence");
	refuse("finetune = none\nfinetune_length = 63\n", "f:2: finetune_length: 63 is less than the 64");
}

/* --- what comes of it -------------------------------------------------------------------------------------------- */

/* Step for step what `ropewalk finetune` does. */
static void test_as_the_command(void **state)
{
	(void)state;
	program_works("study tune.study --out=study --threads=1");
	program_works("train --out=base" SIZE);
	program_works("finetune base --scaling=yarn --length=80 --steps=10 --out=tuned --threads=1" EVALUATION);
	shell("cmp study/seed-7-tuned-80-yarn*/train.jsonl tuned/train.jsonl");
	shell("cmp study/seed-7-tuned-80-none*/train.jsonl tuned/none/train.jsonl");
}

static void test_tables(void **state)
{
	(void)state;
	struct program_run made = program_run("study tune.study --out=tables --threads=1"), again;
	assert_int_equal(made.code, 0);
	assert_non_null(strstr(made.out, "fine-tuned at 80, none"));
	assert_non_null(strstr(made.out, "fine-tuned at 80, yarn(factor=2)"));
	assert_non_null(strstr(made.out, "10 more steps at length 80 (2x) in batches of 2, 1600 tokens in all (960 before)"));
	again = program_run("table tables");
	assert_string_equal(made.out, again.out);
	program_run_free(&again);
	again = program_run("study tune.study --out=tables --threads=1");
	assert_non_null(strstr(again.err, "models: 6; 0 to train, 0 to evaluate, 6 finished"));
	program_run_free(&again);
	program_run_free(&made);
}

/* Two of the same weights, fine-tuned alike: the second takes over the first's. */
static void test_evaluated_apart(void **state)
{
	(void)state;
	static const char one[] = "apart/learned-overflow-clamp-tuned-80-none-*/";
	static const char other[] = "apart/learned-overflow-interpolate-tuned-80-none-*/";
	program_works("study tune.study --encoding=learned(overflow=clamp),learned(overflow=interpolate) --seed=7 "
		      "--scaling=none --finetune=none --pictures=off --out=apart --threads=1");
	char line[300];
	snprintf(line, sizeof line, "cmp %strain.jsonl %strain.jsonl", one, other);
	shell(line);
	snprintf(line, sizeof line, "grep -q weights_of %srecord.json", other);
	shell(line);
}

/* A base that is gone is trained again; what was made of it stays. */
static void test_base_gone(void **state)
{
	(void)state;
	program_works("study tune.study --out=gone --threads=1");
	shell("mkdir kept; mv gone/seed-7-tuned-80-yarn* kept; cp gone/seed-7-tuned-80-none*/record.json none.json");
	shell("rm -r gone/seed-7-[0-9a-f]*");
	program_works("study tune.study --out=gone --threads=1");
	shell("cmp gone/seed-7-tuned-80-yarn*/train.jsonl kept/*/train.jsonl");
	shell("cat gone/seed-7-tuned-80-yarn*/eval-*.csv >one; cat kept/*/eval-*.csv >other; cmp one other");
	shell("cmp gone/seed-7-tuned-80-none*/record.json none.json");
}

static void answers(const char *line, int code, const char *err, const char *out)
{
	struct program_run r = program_run(line);
	if (r.code != code || !strstr(r.err, err) || !strstr(r.out, out))
		fail_msg("%s: exit %d, %d expected; stderr:\n%s\nstdout:\n%s", line, r.code, code, r.err, r.out);
	program_run_free(&r);
}

/* What was to be made of a model that diverged is no work: not tried, not estimated, not "not computed yet". */
static void test_base_diverged(void **state)
{
	(void)state;
	static const char gone[] = "3 of 6 models diverged or failed";
	shell("(sed s/7,// tune.study; echo variant = default, hot; echo '[variant=hot]'; echo lr = 1000;"
	      "echo clip = 1e9; echo weight_decay = 100) >hot.study");
	answers("study hot.study --out=hot --pictures=off --threads=1", 1, gone, "(2 models) is shown as diverged too");
	shell("test $(ls -d hot/*-tuned-* | wc -l) = 2");
	answers("study hot.study --out=hot --dry-run", 0, "", "; 0 to train, 0 to evaluate, 3 finished, 3 diverged");
	answers("study hot.study --out=hot --pictures=off --threads=2 --jobs=2", 1, gone, "");
	answers("study hot.study --out=hot --pictures=off --force --threads=2 --jobs=2", 1, gone, "");
	answers("merge hot --out=merged", 0, "", "3 of 6 models complete, 3 diverged");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cells),
		cmocka_unit_test(test_cells_that_can),
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_refused),
		cmocka_unit_test_setup_teardown(test_as_the_command, start, program_teardown),
		cmocka_unit_test_setup_teardown(test_tables, start, program_teardown),
		cmocka_unit_test_setup_teardown(test_evaluated_apart, start, program_teardown),
		cmocka_unit_test_setup_teardown(test_base_gone, start, program_teardown),
		cmocka_unit_test_setup_teardown(test_base_diverged, start, program_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
