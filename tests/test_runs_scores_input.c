#include "tests/program.h"
#include "tests/scores_case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What users get wrong with `scores`: the exit code, what the error says, and that nothing was written. */

static void add_heads_of(const char *name, int rank, int T, int D)
{
	scores_normal(name, 5, rank, 1, 2, T, D);
}

static void refuses(const char *flags, const char *first, const char *second)
{
	char line[300];
	scores_put();
	snprintf(line, sizeof line, "scores --input=in.safetensors --output=new.safetensors %s", flags);
	program_refuses(line, first, second);
	assert_false(program_has("new.safetensors"));
}

static void add_q_and_k(int D)
{
	add_heads_of("q", 4, 3, D);
	add_heads_of("k", 4, 3, D);
}

static void bad_files(void **state)
{
	(void)state;
	add_heads_of("q", 4, 3, 4);
	refuses("", "in.safetensors: tensor k is missing", "q and k");
	add_heads_of("v", 4, 3, 4);
	refuses("", "in.safetensors: tensor q is missing", NULL);
	add_heads_of("q", 3, 3, 0);
	add_heads_of("k", 3, 3, 0);
	refuses("", "q has 3 axes, not 4", "(B,H,T,D)");
	add_heads_of("q", 4, 3, 4);
	add_heads_of("k", 4, 2, 4);
	refuses("", "k needs the shape (1,2,3,4)", NULL);
	add_q_and_k(4);
	add_heads_of("v", 4, 3, 2);
	refuses("", "v needs the shape (1,2,3,4)", NULL);
	add_q_and_k(3);
	refuses("", "head_dim: 3", "odd");
	add_q_and_k(4);
	scores_added(1)[9] = (double)NAN;
	refuses("", "k[0][0][2][1] is nan", NULL);
	add_q_and_k(4);
	scores_positions(3, (double[]){ 0, 2, 1 });
	refuses("", "positions[2] is 1", "never decrease");
	add_q_and_k(4);
	scores_positions(2, (double[]){ 0, 2 });
	refuses("", "positions needs the shape (3)", NULL);
	add_q_and_k(4);
	refuses("--encoding=t5", "tensor model.position.table is missing", NULL);
	add_q_and_k(4);
	scores_add("model.position.table", 2, 5, 2, 0, 0);
	refuses("--encoding=t5", "model.position.table is 5 x 2 where the options ask for 16 x 2", NULL);
	add_q_and_k(4);
	scores_add("model.position.table", 2, 2, 8, 0, 0);
	refuses("--encoding=learned", "length 3: the learned table has 2 rows", "overflow");
}

static void bad_words(void **state)
{
	(void)state;
	add_q_and_k(4);
	refuses("--heads=3", "--heads: in.safetensors has 2 heads", "Leave the option out");
	add_q_and_k(4);
	refuses("--width=9", "--width: the tensors of in.safetensors have a width of 8", NULL);
	add_q_and_k(4);
	refuses("--encoding=alibi --scaling=yarn", "scaling: yarn changes RoPE's frequencies", NULL);
	add_q_and_k(4);
	refuses("--scaling=dynamic --length=9", "--length: dynamic takes its length from the tokens", NULL);
	add_q_and_k(4);
	refuses("--prefix=a.", "tensor a.q is missing", "--prefix");
	program_refuses("scores --output=new.safetensors", "--input is missing", NULL);
	program_refuses("scores --input=in.safetensors", "--output is missing", NULL);
	program_refuses("scores --input=in.safetensors --output=in.safetensors", "would replace the input", NULL);
	program_refuses("scores --input=none.safetensors --output=new.safetensors", "none.safetensors", NULL);
	program_refuses("scores --input=absent.safetensors --output=none/new", "none/new: cannot be written", NULL);
	/* What is not known is named, and the rest goes on. */
	add_q_and_k(4);
	scores_add("position", 1, 3, 0, 0, 0);
	scores_put();
	struct program_run r = program_run("scores" FILES);
	assert_int_equal(r.code, 0);
	assert_non_null(strstr(r.err, "in.safetensors: ignored: position\n"));
	assert_non_null(strstr(r.err, "plan: "));
	program_run_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_files),
		cmocka_unit_test(bad_words),
	};
	return cmocka_run_group_tests_name("input of scores", tests, program_setup, program_teardown);
}
