#include "model/position/scaling.h"
#include "runs/arguments.h"
#include "runs/run/run_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct scope train = { .command = "train", .lists = LIST_TRAINING | LIST_RUN };
static const struct scope eval = { .command = "eval", .lists = LIST_EVAL | LIST_RUN, .without = "out" };

static struct config config_of(const struct scope *scope)
{
	struct config c;
	config_init(&c, scope, NULL);
	return c;
}

static void good(struct err e)
{
	if (e.code)
		fail_msg("%s\n  %s", e.text, e.hint);
}

static void set(struct config *c, const char *name, const char *text)
{
	good(config_set(c, name, text, NULL));
}

/* The error has this code, and its text or hint has every word. */
static void bad(struct err e, enum err_code code, const char *first, const char *second)
{
	assert_int_equal(e.code, code);
	if (!strstr(e.text, first) && !strstr(e.hint, first))
		fail_msg("no '%s' in: %s\n  %s", first, e.text, e.hint);
	if (second && !strstr(e.text, second) && !strstr(e.hint, second))
		fail_msg("no '%s' in: %s\n  %s", second, e.text, e.hint);
}

static void has_value(const struct config *c, const char *name, const char *want)
{
	struct text_builder b = { 0 };
	config_value(c, name, &b);
	assert_string_equal(b.data, want);
	text_builder_free(&b);
}

static const char *scaling_label(struct config *c, int index)
{
	struct method *m;
	int count;
	good(config_scalings(c, true, &m, &count));
	assert_true(index < count);
	const char *label = label_of(&m[index]);
	free(m);
	return label;
}

static void test_defaults(void **state)
{
	(void)state;
	struct config c = config_of(&train);
	has_value(&c, "layers", "2");
	has_value(&c, "width", "64");
	has_value(&c, "rms_eps", "1e-05");
	has_value(&c, "encoding", "rope");
	has_value(&c, "task", "recall");
	has_value(&c, "steps", "1500");
	has_value(&c, "seed", "101");
	has_value(&c, "out", "");
	assert_false(config_given(&c, "layers"));
}

static void test_spelling_and_order(void **state)
{
	(void)state;
	struct config c = config_of(&train);
	set(&c, "train-length", "128");
	has_value(&c, "train_length", "128");
	set(&c, "train_length", "32");
	has_value(&c, "train_length", "32");
	assert_true(config_given(&c, "train_length"));
	set(&c, "tied", "yes");
	has_value(&c, "tied", "on");
	char text[] = "a/folder";
	set(&c, "out", text);
	text[0] = 'b';
	has_value(&c, "out", "a/folder");
	set(&c, "batch", "1e1");
	has_value(&c, "batch", "10");
}

static void test_aliases(void **state)
{
	(void)state;
	struct config c = config_of(&train), e = config_of(&eval);
	set(&c, "num_hidden_layers", "3");
	set(&c, "hidden-size", "96");
	set(&c, "num-attention-heads", "3");
	set(&c, "intermediate_size", "256");
	set(&c, "learning_rate", "1e-2");
	set(&c, "batch-size", "8");
	set(&c, "max_steps", "7");
	set(&c, "rope-freq-base", "10000");
	good(config_finish(&c, true));
	has_value(&c, "layers", "3");
	has_value(&c, "width", "96");
	has_value(&c, "heads", "3");
	has_value(&c, "hidden", "256");
	has_value(&c, "lr", "0.01");
	has_value(&c, "batch", "8");
	has_value(&c, "steps", "7");
	has_value(&c, "encoding", "rope(theta=10000)");
	set(&e, "rope-scaling", "yarn");
	set(&e, "rope_scale", "8");
	set(&e, "yarn-beta-fast", "4");
	assert_string_equal(scaling_label(&e, 0), "yarn(factor=8,beta_fast=4)");
}

static void test_false_friends(void **state)
{
	(void)state;
	struct config c = config_of(&eval);
	bad(config_set(&c, "rope_freq_scale", "0.5", NULL), ERR_USAGE, "1 / factor", "--factor");
	bad(config_set(&c, "yarn_attn_factor", "1", NULL), ERR_USAGE, "multiplies", "attention-factor");
}

static void test_values_are_checked(void **state)
{
	(void)state;
	static const char *const wrong[][2] = {
		{ "steps", "10x" }, { "steps", "1.5" }, { "steps", "-1" },  { "steps", "" },	 { "lr", "nan" },
		{ "lr", "inf" },    { "lr", "0x10" },	{ "lr", "1e999" },  { "lr", "0.1 0.2" }, { "tied", "maybe" },
		{ "heads", "0" },   { "heads", "1025" }, { "beta1", "1" },  { "encoding", "rope(theta=abc)" },
		{ "encoding", "rope(10000)" }, { "encoding", "rope(theta=1" }, { "encoding", "rope(theta=2,theta=3)" },
		{ "threads", "1025" }, { "rope_theta", "0" }, { "alibi_slopes", "steep" }, { "t5_buckets", "1" },
	};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		struct config c = config_of(&train), before = c;
		struct err e = config_set(&c, wrong[i][0], wrong[i][1], NULL);
		bad(e, ERR_USAGE, wrong[i][0], NULL);
		assert_memory_equal(&c, &before, sizeof c);
	}
	struct config c = config_of(&train);
	bad(config_set(&c, "heads", "0", NULL), ERR_USAGE, "--heads", "1 to 1024");
	bad(config_set(&c, "encoding", "alibee", NULL), ERR_USAGE, "alibi", "--encoding");
	bad(config_set(&c, "alibi_slopes", "sprad", NULL), ERR_USAGE, "spread", "published");
}

static void test_unknown_names(void **state)
{
	(void)state;
	struct config t = config_of(&train), e = config_of(&eval);
	bad(config_set(&t, "stps", "1", NULL), ERR_USAGE, "--stps", "--steps");
	bad(config_set(&t, "lr_rate", "1", NULL), ERR_USAGE, "unknown", "--lr?");
	bad(config_set(&t, "alibi-slops", "1", NULL), ERR_USAGE, "unknown", "--alibi-slopes?");
	bad(config_set(&t, "zzzzzzzz", "1", NULL), ERR_USAGE, "unknown", "train --help");
	bad(config_set(&e, "steps", "1", NULL), ERR_USAGE, "not an option of eval", "ropewalk train");
	bad(config_set(&t, "multiples", "1", NULL), ERR_USAGE, "not an option of train", "ropewalk eval");
	bad(config_set(&e, "out", "x", NULL), ERR_USAGE, "not an option of eval", NULL);
	bad(config_set(&t, "lrr", "1", "file:3"), ERR_USAGE, "file:3: lrr", "Did you mean lr?");
}

static void test_method_flags(void **state)
{
	(void)state;
	struct config c = config_of(&train);
	set(&c, "alibi-slopes", "spread"); /* before the encoding it belongs to */
	set(&c, "encoding", "alibi");
	set(&c, "recall_pairs", "4");
	good(config_finish(&c, true));
	has_value(&c, "encoding", "alibi(slopes=spread)");
	has_value(&c, "task", "recall(pairs=4)");

	c = config_of(&train);
	set(&c, "encoding", "rope(theta=77)"); /* what stands in the parentheses wins */
	set(&c, "rope_theta", "99");
	good(config_finish(&c, true));
	has_value(&c, "encoding", "rope(theta=77)");

	c = config_of(&train);
	set(&c, "rope-theta", "98");
	set(&c, "rope_theta", "99"); /* later wins */
	good(config_finish(&c, true));
	has_value(&c, "encoding", "rope(theta=99)");
}

static void test_flags_without_effect(void **state)
{
	(void)state;
	struct config c = config_of(&train), lenient;
	set(&c, "alibi-slopes", "spread");
	lenient = c;
	bad(config_finish(&c, true), ERR_USAGE, "--alibi-slopes: has no effect: the encoding is rope", "alibi");
	good(config_finish(&lenient, false));
	has_value(&lenient, "encoding", "rope");

	struct method *m;
	int count;
	c = config_of(&eval);
	set(&c, "factor", "8");
	good(config_finish(&c, true));
	bad(config_scalings(&c, true, &m, &count), ERR_USAGE, "--factor: has no effect", "none");
}

static void test_shared_flags(void **state)
{
	(void)state;
	struct config c = config_of(&eval);
	set(&c, "factor", "8");
	set(&c, "yarn_factor", "16"); /* for yarn alone, so it beats the shared flag */
	set(&c, "dynamic-block", "64");
	set(&c, "scaling", "none, ntk, linear(factor=2), yarn(ramp=rotations), dynamic");
	good(config_finish(&c, true));
	assert_string_equal(scaling_label(&c, 0), "none");
	assert_string_equal(scaling_label(&c, 1), "ntk(factor=8)");
	assert_string_equal(scaling_label(&c, 2), "linear(factor=2)");
	assert_string_equal(scaling_label(&c, 3), "yarn(ramp=rotations,factor=16)");
	assert_string_equal(scaling_label(&c, 4), "dynamic(block=64)");
}

static void test_scaling_lists(void **state)
{
	(void)state;
	struct method *m;
	int count;
	struct config c = config_of(&eval);
	set(&c, "scaling", "linear_ntk(factor=2)");
	bad(config_scalings(&c, true, &m, &count), ERR_USAGE, "linear_ntk", "mixes two methods");
	set(&c, "scaling", "ntk,ntk(factor=8)");
	set(&c, "factor", "8"); /* makes both the same */
	bad(config_scalings(&c, true, &m, &count), ERR_USAGE, "scaling", "ntk(factor=8)");
	good(config_set(&c, "scaling", "none,yarm", "file:9"));
	bad(config_scalings(&c, true, &m, &count), ERR_USAGE, "file:9", "yarn");
}

/* A command line in and an invocation out. */
static struct err parse(const char *command, struct invocation *in, int argc, const char **argv)
{
	const struct command *c = NULL;
	for (int i = 0; command_at(i); i++)
		if (!strcmp(command_at(i)->name, command))
			c = command_at(i);
	assert_non_null(c);
	return arguments_parse(c, argc, (char **)(uintptr_t)argv, in);
}
#define WORDS(...) ((const char *[]){ __VA_ARGS__ })
#define PARSE(in, ...)                                                                                \
	parse(WORDS(__VA_ARGS__)[0], in, (int)(sizeof WORDS(__VA_ARGS__) / sizeof(char *)), WORDS(__VA_ARGS__))

static void invocation_free(struct invocation *in)
{
	free(in->word);
	free(in->config.own);
}

static void test_command_lines(void **state)
{
	(void)state;
	struct invocation in;
	good(PARSE(&in, "eval", "--sequences", "4", "DIR", "--force", "--multiples=1,2"));
	assert_int_equal(in.words, 1);
	assert_string_equal(in.word[0], "DIR");
	has_value(&in.config, "sequences", "4");
	has_value(&in.config, "multiples", "1,2");
	has_value(&in.config, "force", "on");
	assert_string_equal(in.line, "ropewalk eval --sequences 4 DIR --force --multiples=1,2");
	invocation_free(&in);

	good(PARSE(&in, "eval", "--force=off", "--", "--odd 'name"));
	assert_string_equal(in.word[0], "--odd 'name");
	has_value(&in.config, "force", "off");
	assert_string_equal(in.line, "ropewalk eval --force=off -- '--odd '\\''name'");
	invocation_free(&in);

	good(PARSE(&in, "forward", "M", "--gradients", "--scaling=ntk", "--factor", "4", "--tokens=a"));
	good(config_finish(&in.config, true));
	invocation_free(&in);
	good(PARSE(&in, "forward", "M", "--gradients", "--scaling=none", "--factor", "4"));
	bad(config_finish(&in.config, true), ERR_USAGE, "--factor: has no effect: the scaling is none", NULL);
	invocation_free(&in);

	bad(PARSE(&in, "eval", "DIR", "--multiples"), ERR_USAGE, "--multiples: the value is missing", NULL);
	bad(PARSE(&in, "eval", "DIR", "--multiples", "--force"), ERR_USAGE, "--multiples: the value is missing", NULL);
	bad(PARSE(&in, "eval"), ERR_USAGE, "DIR is missing", NULL);
	bad(PARSE(&in, "eval", "A", "B"), ERR_USAGE, "'B' is not expected", NULL);
	bad(PARSE(&in, "train", "-n"), ERR_USAGE, "-n: unknown option", NULL);
	bad(PARSE(&in, "eval", "DIR", "--force", "off"), ERR_USAGE, "'off' is not expected", NULL);
}

static void write_config(char path[64], const char *text)
{
	strcpy(path, "/tmp/ropewalk-options-XXXXXX");
	int file = mkstemp(path);
	assert_true(file >= 0);
	assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
	close(file);
}

static void test_config_files(void **state)
{
	(void)state;
	char path[64], option[80], place[80];
	struct invocation in;
	write_config(path, "# a comment\n\n  layers = 3  # another\nencoding=alibi(slopes=spread)\r\n"
			   "lr = 1e-2\nlr = 2e-2");
	snprintf(option, sizeof option, "--config=%s", path);
	good(PARSE(&in, "train", "--layers=5", option, "--lr=0.5"));
	has_value(&in.config, "layers", "3");
	has_value(&in.config, "encoding", "alibi(slopes=spread)");
	has_value(&in.config, "lr", "0.5");
	invocation_free(&in);
	unlink(path);

	static const char *const wrong[] = { "layers\n", "= 3\n", "layrs = 3\n", "layers = x\n", "[encoding=rope]\n",
					     "[open\n" };
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		char text[100];
		snprintf(text, sizeof text, "width = 32\n%s", wrong[i]);
		write_config(path, text);
		snprintf(option, sizeof option, "--config=%s", path);
		snprintf(place, sizeof place, "%s:2: ", path);
		bad(PARSE(&in, "train", option), ERR_USAGE, place, NULL);
		unlink(path);
	}
	bad(PARSE(&in, "train", "--config=/nonexistent/file"), ERR_USAGE, "/nonexistent/file", NULL);
}

static void test_config_reads_back(void **state)
{
	(void)state;
	struct config c = config_of(&train), again = config_of(&train);
	struct text_builder text = { 0 }, second = { 0 };
	char path[64], one[IDENTITY_TEXT], two[IDENTITY_TEXT];
	set(&c, "encoding", "t5(max_distance=48)");
	set(&c, "lr", "0.00012345678901234567");
	set(&c, "tied", "on");
	config_print(&c, LIST_TRAINING, &text);
	write_config(path, text.data);
	good(config_read(&again, path));
	unlink(path);
	config_print(&again, LIST_TRAINING, &second);
	assert_string_equal(text.data, second.data);
	assert_string_equal(config_identity(&c, LIST_TRAINING, one), config_identity(&again, LIST_TRAINING, two));
	text_builder_free(&text);
	text_builder_free(&second);
}

static const char *identity_with(const char *name, const char *text, char out[IDENTITY_TEXT])
{
	struct config c = config_of(&train);
	if (name)
		set(&c, name, text);
	good(config_finish(&c, false));
	return config_identity(&c, LIST_TRAINING | LIST_RUN, out);
}

static void test_identity(void **state)
{
	(void)state;
	char plain[IDENTITY_TEXT], other[IDENTITY_TEXT];
	identity_with(NULL, NULL, plain);
	assert_int_equal(strlen(plain), 16);
	/* The same results, written otherwise. */
	assert_string_equal(plain, identity_with("encoding", "rope(theta=500)", other));
	assert_string_equal(plain, identity_with("rope-theta", "5e2", other));
	assert_string_equal(plain, identity_with("lr", "0.003", other));
	assert_string_equal(plain, identity_with("threads", "7", other));
	assert_string_equal(plain, identity_with("out", "elsewhere", other));
	assert_string_equal(plain, identity_with("alibi_slopes", "spread", other));
	/* Other results. */
	assert_string_not_equal(plain, identity_with("rope-theta", "501", other));
	assert_string_not_equal(plain, identity_with("seed", "102", other));
	assert_string_not_equal(plain, identity_with("recall_grow", "filler", other));
	assert_string_not_equal(plain, identity_with("tied", "on", other));
}

static void test_file_names(void **state)
{
	(void)state;
	struct text_builder b = { 0 };
	run_folder_method("yarn(ramp=rotations,beta_fast=4)", &b);
	assert_int_equal(strncmp(b.data, "yarn-ramp-rotations-beta_fast-4--", 33), 0);
	assert_int_equal(b.size, 33 + 8);
	text_builder_free(&b);
	struct text_builder one = { 0 }, two = { 0 };
	run_folder_method("a((,b", &b); /* a run of others is one dash */
	assert_int_equal(strncmp(b.data, "a-b-", 4), 0);
	text_builder_free(&b);
	run_folder_method("ntk(factor=8)", &one);
	run_folder_method("ntk(factor-8)", &two);
	assert_string_not_equal(one.data, two.data);
	text_builder_free(&one);
	text_builder_free(&two);
	assert_string_equal(run_folder_name("runs/out/a-1/"), "a-1");
	assert_string_equal(run_folder_name("a"), "a");
}

static void test_kept_texts(void **state)
{
	(void)state;
	char text[] = "something";
	const char *kept = text_keep(text);
	text[0] = 'S';
	assert_string_equal(kept, "something");
	assert_ptr_equal(kept, text_keep("something"));
	for (int i = 0; i < 1000; i++) {
		char number[16];
		snprintf(number, sizeof number, "%d", i);
		text_keep(number);
	}
	assert_ptr_equal(kept, text_keep("something"));
}

/* Every option of every command is found by each of its names, and none hides another. */
static void test_names_are_unique(void **state)
{
	(void)state;
	for (int i = 0; command_at(i); i++) {
		struct scope scope = command_scope(command_at(i));
		struct option_name n, found;
		for (int k = 0; option_name_at(&scope, k, &n); k++) {
			assert_true(option_lookup(&scope, n.name, &found));
			assert_string_equal(found.name, n.name);
			assert_ptr_equal(found.option, n.option);
			assert_true(n.option->help && *n.option->help);
			assert_true(strspn(n.name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(n.name));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_spelling_and_order),
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_false_friends),
		cmocka_unit_test(test_values_are_checked),
		cmocka_unit_test(test_unknown_names),
		cmocka_unit_test(test_method_flags),
		cmocka_unit_test(test_flags_without_effect),
		cmocka_unit_test(test_shared_flags),
		cmocka_unit_test(test_scaling_lists),
		cmocka_unit_test(test_command_lines),
		cmocka_unit_test(test_config_files),
		cmocka_unit_test(test_config_reads_back),
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_file_names),
		cmocka_unit_test(test_kept_texts),
		cmocka_unit_test(test_names_are_unique),
	};
	return cmocka_run_group_tests_name("runs options", tests, NULL, NULL);
}
