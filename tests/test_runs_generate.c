#include "tests/program.h"
#include "tests/support.h"

#include "model/decode.h"
#include "model/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `ropewalk generate`, and evaluations with --kv as users run them. */

#define TINY "--layers=2 --width=16 --heads=2 --hidden=16 --batch=2 --train-length=32 --steps=3 --lr=0.01 --threads=1 "
#define PROMPT "--prompt=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30 "

static int start(void **state)
{
	(void)state;
	program_start();
	program_works("train " TINY "--out=run");
	program_works("train " TINY "--encoding=learned --out=learned");
	return 0;
}

static int stop(void **state)
{
	(void)state;
	program_stop();
	return 0;
}

/* stdout of a run that works. */
static char *printed(const char *line)
{
	struct program_run r = program_run(line);
	if (r.code)
		fail_msg("%s: exit %d, %s", line, r.code, r.err);
	free(r.err);
	return r.out;
}

static void assert_same(const char *line, const char *other, bool same)
{
	char *a = printed(line), *b = printed(other);
	if (!strcmp(a, b) != same)
		fail_msg("%s: %s%s: %s", line, a, other, b);
	free(a);
	free(b);
}

/* Greedy tokens of the library's whole sequences, as the program would print them. */
static void by_whole_sequences(const char *scaling, int prompt, int tokens, char *line, size_t room)
{
	struct model m;
	struct method method;
	char *path = program_path("run/model.safetensors");
	int32_t token[64], none[64];
	size_t used = 0;
	assert_ok(weights_read(path, &m));
	assert_ok(method_parse("scaling", scaling_at, scaling, &method));
	for (int t = 0; t < prompt; t++)
		token[t] = t + 1;
	memset(none, 0xff, sizeof none);
	for (int t = prompt; t < prompt + tokens; t++) {
		struct transformer_request q = { .model = &m, .B = 1, .T = t, .scaling = &method };
		struct transformer *whole;
		real *logits = TAKE(real, (size_t)(t * m.V)), *last = logits + (t - 1) * m.V;
		assert_ok(transformer_open(&q, &whole));
		transformer_forward(whole, token, none, logits);
		token[t] = 0;
		for (int v = 1; v < m.V; v++)
			token[t] = last[v] > last[token[t]] ? v : token[t];
		used += (size_t)snprintf(line + used, room - used, "%s%d", t == prompt ? "" : ",", token[t]);
		transformer_close(whole);
		free(logits);
	}
	snprintf(line + used, room - used, "\n");
	free(path);
	model_close(&m);
}

/* From L0 - 2 to L0 + 8, where dynamic's frequencies begin to change. */
static void across_the_trained_length_as_recomputed(void **state)
{
	static const char *const scaling[] = { "none", "dynamic", "ntk(factor=2)" };
	(void)state;
	for (int i = 0; i < 3; i++) {
		char expected[400], line[400];
		by_whole_sequences(scaling[i], 30, 10, expected, sizeof expected);
		snprintf(line, sizeof line, "generate run " PROMPT "--tokens=10 --threads=1 --scaling=%s", scaling[i]);
		char *out = printed(line);
		assert_string_equal(out, expected);
		free(out);
	}
	assert_same("generate run " PROMPT "--tokens=10 --kv=unrotated", "generate run " PROMPT "--tokens=10", true);
	assert_same("generate run " PROMPT "--tokens=10 --kv=rotated", "generate run " PROMPT "--tokens=10", true);
}

/* A draw is a function of the seed and the place; at a temperature near 0 it is the likeliest. */
static void draws_go_by_the_seed(void **state)
{
	(void)state;
	static const char *const drawn = "generate run --prompt=3,4 --sample=1 --seed=5";
	assert_same(drawn, drawn, true);
	assert_same(drawn, "generate run --prompt=3,4 --sample=1 --seed=6", false);
	assert_same("generate run --prompt=3,4 --sample=1e-6", "generate run --prompt=3,4", true);
	assert_same("generate run --prompt=3,4 --seed=9", "generate run --prompt=3,4", true);
}

/* The rows name the tokens of the line, each with its -ln p. */
static void a_table_of_what_was_likely(void **state)
{
	char *line = printed("generate run --prompt=3,4 --tokens=5");
	char *table = printed("generate run --prompt=3,4 --tokens=5 --logprobs");
	char *row = strtok(table, "\n"), *rest = line;
	int rows = 0, position, id;
	double nats;
	(void)state;
	assert_non_null(strstr(row, "position"));
	while ((row = strtok(NULL, "\n"))) {
		assert_int_equal(sscanf(row, "%d %d %lf", &position, &id, &nats), 3);
		assert_int_equal(position, 2 + rows++);
		assert_int_equal(strtol(rest, &rest, 10), id);
		rest++;
		assert_true(nats > 0 && nats < 5);
	}
	assert_int_equal(rows, 5);
	free(line);
	free(table);
}

static void a_prompt_may_stand_in_a_file(void **state)
{
	(void)state;
	program_put("ids", "3, 4\n5\t6\n", 9);
	assert_same("generate run --prompt-file=ids", "generate run/model.safetensors --prompt=3,4,5,6", true);
	struct program_run r = program_run_shell("ropewalk generate run --prompt=3,4 <&- 2>/dev/null");
	char *open = printed("generate run --prompt=3,4");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.out, open);
	free(open);
	program_run_free(&r);
}

static void what_cannot_be_is_refused(void **state)
{
	(void)state;
	program_put("zero", "3\0004", 3);
	program_put("none", " \n", 2);
	program_refuses("generate run", "--prompt is missing", "--prompt-file");
	program_refuses("generate run --prompt=1 --prompt-file=ids", "both given", NULL);
	program_refuses("generate run --prompt=1,99999", "id 99999 at place 2", "the tokens 0 to");
	program_refuses("generate run --prompt=-1", "id -1 at place 1", NULL);
	program_refuses("generate run --prompt=1,x", "'x' is not a token id", NULL);
	program_refuses("generate run --prompt=,", "no id stands at ','", "single commas");
	program_refuses("generate run --prompt=1,,2", "no id stands at ',2'", "single commas");
	program_refuses("generate run --prompt-file=zero", "zero byte", NULL);
	program_refuses("generate run --prompt-file=none", "none: the prompt is empty", NULL);
	program_refuses("generate run --prompt=1 --tokens=0", "tokens", NULL);
	program_refuses("generate run --prompt=1 --width=32", "says itself what model it is", NULL);
	program_refuses("generate run --prompt=1 --kv=all", "kv", "unrotated");
	program_refuses("generate absent --prompt=1", "absent", NULL);
	program_refuses("generate learned " PROMPT "--tokens=4", "learned table has 32 rows", "--tokens=3 at most");
	program_works("generate learned " PROMPT "--tokens=3");
	program_refuses("generate run --prompt=1 --scaling=dynamic+window --kv=rotated", "dynamic+window",
			"Use recompute");
	program_refuses("generate learned --prompt=1 --scaling=yarn", "learned has none", NULL);
}

/* It stands at other positions than the model was trained at, which is said. */
static void positions_of_a_prompt(void **state)
{
	(void)state;
	program_works("train --out=drawn --width=16 --hidden=16 --steps=1 --batch=2 --train-length=32 "
		      "--positions=randomized");
	struct program_run r = program_run("generate drawn --prompt=1 --tokens=2");
	assert_int_equal(r.code, 0);
	assert_non_null(strstr(r.err, "trained at randomized ones"));
	program_run_free(&r);
	r = program_run("generate run --prompt=1 --tokens=2");
	assert_null(strstr(r.err, "positions"));
	program_run_free(&r);
}

static void a_prompt_past_the_reach_is_too_long(void **state)
{
	char ids[200] = "";
	(void)state;
	for (int i = 0; i < 33; i++)
		strcat(ids, "1 ");
	program_put("long", ids, strlen(ids));
	program_refuses("generate learned --prompt-file=long --tokens=1", "learned table has 32 rows",
			"33 ids are too many already");
}

/* ---- eval --kv ---- */

#define EVAL "eval run --sequences=2 --multiples=1,2 --threads=1 --scaling=dynamic "

static int lines(const char *text, const char *part)
{
	int found = 0;
	for (; (text = strstr(text, part)); text += strlen(part))
		found++;
	return found;
}

/* Each kind has files of its own, which say what they are, and are taken up again. */
static void evaluations_are_kept_apart(void **state)
{
	(void)state;
	program_works(EVAL);
	char *off = program_file("run/eval-dynamic-b7e488a0.csv", NULL);
	program_works(EVAL "--kv=rotated");
	char *still = program_file("run/eval-dynamic-b7e488a0.csv", NULL);
	char *rotated = program_file("run/eval-dynamic-b7e488a0-kv-rotated.csv", NULL);
	assert_string_equal(off, still);
	assert_int_equal(lines(off, "; kv"), 0);
	assert_int_equal(lines(rotated, "; stream report; kv rotated; "), lines(off, "; stream report; "));
	assert_string_not_equal(off, rotated);
	struct program_run again = program_run(EVAL "--kv=rotated");
	assert_int_equal(again.code, 0);
	assert_int_equal(lines(again.out, "token by token with kv rotated"), 1);
	assert_int_equal(lines(again.err, "eval run dynamic"), 0);
	char *record = program_file("run/record.json", NULL);
	assert_int_equal(lines(record, "\"dynamic; kv rotated\""), 1);
	assert_int_equal(lines(record, "\"dynamic\""), 1);
	free(record);
	free(off);
	free(still);
	free(rotated);
	program_run_free(&again);
}

/* A file under another's name is no result of it. */
static void a_file_of_another_kind_is_refused(void **state)
{
	(void)state;
	program_works(EVAL "--kv=unrotated");
	shell("cp run/eval-dynamic-b7e488a0-kv-unrotated.csv run/eval-dynamic-b7e488a0-kv-recompute.csv");
	struct program_run r = program_run(EVAL "--kv=recompute");
	program_failed(EVAL "--kv=recompute", &r, 2, "holds results of another run or stream", NULL);
	shell("rm run/eval-dynamic-b7e488a0-kv-recompute.csv");
}

/* A study takes the option, and its tables name it. */
static void a_study_names_it(void **state)
{
	static const char study[] = "encoding = rope\nscaling = none, dynamic\nkv = rotated\nmultiples = 1, 2\n"
				    "sequences = 2\n"
				    "layers = 1\nwidth = 16\nheads = 1\nhidden = 16\nbatch = 2\n"
				    "train_length = 32\nsteps = 2\n";
	(void)state;
	program_put("a.study", study, strlen(study));
	char *out = printed("study a.study --out=studied --threads=1");
	assert_true(lines(out, "kv rotated") > 0);
	free(out);
	struct program_run again = program_run("study a.study --out=studied --threads=1");
	assert_int_equal(again.code, 0);
	assert_int_equal(lines(again.err, "eval "), 0);
	program_run_free(&again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(across_the_trained_length_as_recomputed),
		cmocka_unit_test(draws_go_by_the_seed),
		cmocka_unit_test(a_table_of_what_was_likely),
		cmocka_unit_test(a_prompt_may_stand_in_a_file),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(positions_of_a_prompt),
		cmocka_unit_test(a_prompt_past_the_reach_is_too_long),
		cmocka_unit_test(evaluations_are_kept_apart),
		cmocka_unit_test(a_file_of_another_kind_is_refused),
		cmocka_unit_test(a_study_names_it),
	};
	return cmocka_run_group_tests(tests, start, stop);
}
