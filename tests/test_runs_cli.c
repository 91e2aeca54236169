#include "tests/program.h"
#include "tests/support.h"

#include "model/base/safetensors.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What users get wrong: the exit code, what the error says, and that nothing was written. */

#define SMALL "--width=16 --heads=2 --hidden=16 --layers=1 --batch=2 "

static int start(void **state)
{
	(void)state;
	program_start();
	program_works("train " SMALL "--steps=3 --out=rope");
	program_works("train " SMALL "--steps=0 --encoding=alibi --out=alibi");
	program_works("train " SMALL "--steps=0 --encoding=learned --out=learned");
	return 0;
}

static void test_bad_words(void **state)
{
	(void)state;
	program_refuses("trian", "trian: unknown command", "Did you mean train?");
	program_refuses("--hepl", "--hepl: unknown option", "--help");
	program_refuses("help me", "me: unknown command", NULL);
	program_refuses("train --out=new --stps=3", "--stps: unknown option", "Did you mean --steps?");
	program_refuses("train --out=new --lr-rate=3", "--lr-rate: unknown option", "Did you mean --lr?");
	program_refuses("train --out=new extra", "'extra' is not expected", "ropewalk train");
	program_refuses("train --out=new --steps", "--steps: the value is missing", NULL);
	program_refuses("train", "--out: a folder is needed", NULL);
	program_refuses("eval", "DIR is missing", NULL);
	program_refuses("eval rope --steps=3", "--steps: not an option of eval", "ropewalk train");
	program_refuses("forward rope/model.safetensors", "--tokens is missing", NULL);
	program_refuses("list encoding", "encoding", "Did you mean encodings?");
	struct program_run r = program_run("");
	assert_int_equal(r.code, 2);
	assert_non_null(strstr(r.err, "Usage:"));
	program_run_free(&r);
}

static void test_bad_values(void **state)
{
	(void)state;
	program_refuses("train --out=new --steps=10x", "--steps: '10x' is not a whole number", "0 to 1000000000");
	program_refuses("train --out=new --steps=-1", "--steps: -1: out of range", "0 to 1000000000");
	program_refuses("train --out=new --lr=nan", "--lr: 'nan' is not a number", NULL);
	program_refuses("train --out=new --lr=inf", "--lr: 'inf' is not a number", NULL);
	program_refuses("train --out=new --heads=0", "--heads: 0: out of range", "1 to 1024");
	program_refuses("train --out=new --tied=maybe", "--tied: 'maybe' is neither on nor off", NULL);
	program_refuses("train --out=new --encoding=ropes", "--encoding: 'ropes' is unknown", "did you mean 'rope'?");
	program_refuses("train --out=new --encoding=RoPE", "--encoding: 'RoPE' is unknown", "did you mean 'rope'?");
	program_refuses("inspect --scaling=logn+YaRN", "--scaling: 'YaRN' is unknown", "did you mean 'yarn'?");
	program_refuses("train --out=new --encoding=rope(thet=3)", "'thet' is unknown", "theta");
	program_refuses("train --out=new --encoding=rope(10000)", "bare value", "theta");
	program_refuses("train --out=new --alibi-slopes=spread", "--alibi-slopes: has no effect: the encoding is rope",
			"alibi");
	program_refuses("train --out=new --task=recal", "--task: 'recal' is unknown", "recall");
	program_refuses("train --out=new --width=30 --heads=4", "heads: 4 does not divide the width 30", NULL);
	program_refuses("train --out=new --width=6 --heads=2", "head_dim: 3", "odd");
	program_refuses("train --out=new --train-length=8", "length 8 is too short", "at least 20");
	program_refuses("train --out=new --batch=1048576 --train-length=1000000", "too large", "smaller batch");
	program_refuses("train --out=new --batch=4096 --train-length=65536", "are available", "--batch");
}

static void test_bad_folders(void **state)
{
	(void)state;
	program_refuses("train --out=rope --steps=1", "rope: is not empty", "--force");
	program_refuses("train --out=rope/config --steps=1", "rope/config: is a file", NULL);
	program_refuses("eval nowhere", "nowhere: no such folder", NULL);
	program_refuses("eval .", "not a run", "record.json");
	program_refuses("train --config=nowhere --out=new", "nowhere", NULL);
	struct program_run o = program_run("train --steps=0 --out=/dev/null/run");
	program_failed("train", &o, 2, "/dev/null", NULL);
}

/* A model that says itself what it is takes no option of the model, one of another encoding or of its own. */
static void test_model_options(void **state)
{
	(void)state;
	program_refuses("inspect learned --learned-overflow=clamp", "--learned-overflow: learned says itself", "Leave");
	program_refuses("inspect rope/model.safetensors --t5-buckets=4", "--t5-buckets: rope/model.safetensors says",
			NULL);
	program_refuses("forward learned/model.safetensors --tokens=x --output=y --learned-overflow=clamp",
			"--learned-overflow: learned/model.safetensors says itself", NULL);
	program_refuses("generate alibi --prompt=1 --alibi-slopes=spread", "--alibi-slopes: alibi says itself", NULL);
	program_refuses("generate alibi --prompt=1 --scaling=nonesuch", "'nonesuch' is unknown", NULL);
}

static void test_bad_evaluations(void **state)
{
	(void)state;
	program_refuses("eval rope --multiples=1,1.3", "1.3 times train_length 64 is not a whole length", "84");
	program_refuses("eval rope --multiples=0", "multiples: 0", "greater than 0");
	program_refuses("eval rope --multiples=1,x", "'x' is not a number", NULL);
	program_refuses("eval rope --multiples=0.25", "length 16 is too short", "at least 20");
	program_refuses("eval rope --scaling=yarm", "'yarm' is unknown", "yarn");
	program_refuses("eval rope --scaling=linear_ntk", "linear_ntk mixes two methods", "linear");
	program_refuses("eval rope --scaling=ntk,ntk", "ntk is given twice", NULL);
	program_refuses("eval rope --factor=8", "--factor: has no effect: the scaling is none", NULL);
	program_refuses("eval rope --scaling=ntk --factor=0.5", "--factor", "1 to");
	program_refuses("eval alibi --scaling=none,ntk --multiples=1", "the encoding alibi has none", NULL);
	program_refuses("eval learned --multiples=1,2", "length 128", "64 rows");
	program_refuses("eval rope --sequences=0", "--sequences: 0: out of range", NULL);
}

/* A tokens file of one sequence. */
static void put_tokens(const char *name, int32_t token, int32_t target, double position)
{
	int32_t tokens[20] = { 0 }, targets[20];
	double positions[20];
	for (int i = 0; i < 20; i++) {
		targets[i] = -1;
		positions[i] = i;
	}
	tokens[7] = token;
	targets[9] = target;
	positions[10] = position;
	const struct tensor tensor[] = {
		{ .name = "x.tokens", .dtype = DTYPE_I32, .rank = 2, .shape = { 1, 20 }, .data = tokens },
		{ .name = "x.targets", .dtype = DTYPE_I32, .rank = 2, .shape = { 1, 20 }, .data = targets },
		{ .name = "x.positions", .dtype = DTYPE_F64, .rank = 1, .shape = { 20 }, .data = positions },
	};
	char *path = program_path(name);
	assert_ok(safetensors_write(path, tensor, 3, NULL, 0));
	free(path);
}

#define FORWARD "forward rope/model.safetensors --output=new --prefix=x. --tokens="

static void test_bad_tokens(void **state)
{
	(void)state;
	put_tokens("good.in", 5, 6, 10);
	put_tokens("token.in", 99, 6, 10);
	put_tokens("target.in", 5, 99, 10);
	put_tokens("unscored.in", 5, -1, 10);
	put_tokens("position.in", 5, 6, 3);
	program_put("text.in", "not a tensor", 12);
	program_refuses(FORWARD "token.in", "token.in: x.tokens[0][7] is 99", "V = 99");
	program_refuses(FORWARD "target.in", "target.in: x.targets[0][9] is 99", "V = 99");
	program_refuses(FORWARD "position.in", "position.in: x.positions[10] is 3", "never decrease");
	program_refuses(FORWARD "text.in", "text.in", NULL);
	program_refuses(FORWARD "nowhere", "nowhere", NULL);
	program_refuses(FORWARD "good.in --prefix=y.", "y.tokens is missing", NULL);
	program_refuses(FORWARD "good.in --heads=1", "--heads", "says itself");
	program_refuses(FORWARD "good.in --scaling=dynamic --length=50", "--length", "dynamic");
	program_refuses("forward good.in --output=new --prefix=x. --tokens=good.in", "good.in", "embed_tokens");
	program_refuses("forward rope/model.safetensors --output=none/new --prefix=x. --tokens=absent.in",
			"none/new: cannot be written", NULL); /* before anything is read */
	struct program_run o = program_run(FORWARD "unscored.in");
	program_failed("forward", &o, 2, "nothing is scored", NULL);
}

static void test_output_is_checked(void **state)
{
	(void)state;
	if (access("/dev/full", W_OK))
		skip();
	struct program_run r = program_run_to("list options", "/dev/full");
	program_failed("list options > /dev/full", &r, 1, "ropewalk: stdout: ", NULL);
}

static void test_read_only_folder(void **state)
{
	(void)state;
	char *path = program_path("locked");
	assert_int_equal(mkdir(path, 0555), 0);
	struct program_run r = program_run_as_nobody("train " SMALL "--steps=0 --out=locked/new");
	program_failed("train --out=locked/new", &r, 1, "locked/new", "Permission denied");
	r = program_run_as_nobody("bench --output=locked/new");
	program_failed("bench --output=locked/new", &r, 1, "locked/new", "Permission denied");
	free(path);
}

static void test_damaged_files(void **state)
{
	(void)state;
	size_t size, other_size;
	char *data = program_file("alibi/model.safetensors", &size);
	program_put("alibi/model.safetensors", data, size / 2);
	program_refuses("eval alibi --multiples=1", "alibi/model.safetensors", NULL);
	data[size - 1] ^= 1;
	program_put("alibi/model.safetensors", data, size);
	program_refuses("eval alibi --multiples=1", "alibi/model.safetensors", "checksum");
	data[size - 1] ^= 1;
	program_put("alibi/model.safetensors", data, size);

	char *other = program_file("learned/config", &other_size);
	program_put("alibi/config", other, other_size);
	program_refuses("eval alibi --multiples=1", "encoding is alibi", "learned");
	program_put("alibi/config", "layers = two\n", 13);
	program_refuses("eval alibi --multiples=1", "alibi/config:1: layers", NULL);
	program_put("alibi/record.json", "{", 1);
	program_refuses("eval alibi --multiples=1", "alibi/record.json", "damaged");
	free(other);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_words),
		cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_bad_folders),
		cmocka_unit_test(test_model_options),
		cmocka_unit_test(test_bad_evaluations),
		cmocka_unit_test(test_bad_tokens),
		cmocka_unit_test(test_output_is_checked),
		cmocka_unit_test(test_read_only_folder),
		cmocka_unit_test(test_damaged_files),
	};
	return cmocka_run_group_tests_name("runs cli", tests, start, program_teardown);
}
