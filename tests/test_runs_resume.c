#include "tests/program.h"
#include "tests/support.h"

#include "model/base/blas.h"
#include "model/base/io.h"
#include "model/weights.h"
#include "runs/run/run_checkpoint.h"
#include "runs/run/run_train.h"

#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A run that was interrupted, and what had become of its files meanwhile: it goes on to the same bytes, or says why it
 * will not. tests/test_runs_stop.c has the signals, and other processes. */

/* Options of methods stand in the files' metadata as they were written. */
#define SMALL \
	"--encoding=rope(theta=900) --task=recall(pairs=8) --layers=1 --width=16 --hidden=16 --batch=2 " \
	"--train-length=20 --warmup=5 --threads=1 "
#define STEPS "--steps=120 --save-every=40 "
#define OLD "checkpoint-0000000080.safetensors"
#define NEW "checkpoint-0000000120.safetensors"

static int start(void **state)
{
	(void)state;
	program_start();
	program_works("train " SMALL STEPS "--out=straight");
	return 0;
}

/* The folder `run` as if the run had been killed after its last checkpoint. */
static void kill_late(void)
{
	shell("rm -rf run; cp -Rp straight run; rm run/model.safetensors\n"
	      "sed 's/finished/running/' straight/record.json >run/record.json");
}

static void assert_same_file(const char *a, const char *b)
{
	size_t size, other_size;
	char *one = program_file(a, &size), *other = program_file(b, &other_size);
	if (size != other_size || memcmp(one, other, size))
		fail_msg("%s and %s differ", a, b);
	free(one);
	free(other);
}

static void assert_as_straight(void)
{
	assert_same_file("run/model.safetensors", "straight/model.safetensors");
	assert_same_file("run/train.jsonl", "straight/train.jsonl");
	assert_same_file("run/" NEW, "straight/" NEW);
	assert_same_file("run/" OLD, "straight/" OLD);
	shell("for d in run straight; do sed '/\"wall_seconds\"/d; /\"started\"/d' $d/record.json >$d.record; done\n"
	      "diff run.record straight.record >&2 && [ ! -e run/lock ]");
}

/* Runs, asserts the exit code and a text on stderr. */
static void answers(const char *line, int code, const char *part)
{
	struct program_run r = program_run(line);
	if (r.code != code || !strstr(r.err, part))
		fail_msg("%s: exit %d, not %d with '%s': %s", line, r.code, code, part, r.err);
	program_run_free(&r);
}

static void goes_on_after(const char *step)
{
	char part[80];
	snprintf(part, sizeof part, "run: goes on after step %s of 120", step);
	answers("train --resume --save-every=40 --threads=1 --out=run", 0, part);
	assert_as_straight();
}

/* ---- Files ---- */

static void test_goes_on(void **state)
{
	(void)state;
	kill_late();
	goes_on_after("120");
	kill_late();
	shell("rm run/" NEW);
	goes_on_after("80");
	kill_late();
	shell("rm run/checkpoint-*");
	answers("train --resume --save-every=40 --threads=1 --out=run", 0, "120 steps of 40 tokens");
	assert_as_straight();
}

static void test_two_newest(void **state)
{
	(void)state;
	shell("[ \"$(ls straight | grep checkpoint)\" = '" OLD "\n" NEW "' ]");
	shell("[ \"$(ls -A straight)\" = '" OLD "\n" NEW "\ncommand\nconfig\nmodel.safetensors\nrecord.json\n"
	      "timing.jsonl\ntrain.jsonl' ]");
}

static void test_log(void **state)
{
	(void)state;
	static const char *const end[] = {
		"printf '{\"step\":121,\"lo' >>run/train.jsonl; printf '\\377\\0 \\n' >>run/timing.jsonl",
		"sed '$s/120/121/' straight/train.jsonl | tail -n 1 >>run/train.jsonl",
		"cat straight/train.jsonl >>run/train.jsonl; cat straight/timing.jsonl >>run/timing.jsonl",
	};
	for (int i = 0; i < (int)(sizeof end / sizeof *end); i++) {
		kill_late();
		shell(end[i]);
		goes_on_after("120");
		assert_same_file("run/timing.jsonl", "straight/timing.jsonl");
	}
}

/* A checkpoint is worth nothing without the lines of its steps. */
static void test_log_too_short(void **state)
{
	(void)state;
	kill_late();
	shell("head -n 90 straight/train.jsonl >run/train.jsonl");
	goes_on_after("80");
	kill_late();
	shell("sed '90s/loss/lass/' straight/train.jsonl >run/train.jsonl");
	answers("train --resume --out=run", 0, "run/" NEW ": train.jsonl ends before it, at step 89");
	assert_as_straight();
	kill_late();
	shell("rm run/train.jsonl");
	goes_on_after("0");
}

/* They must not count as the newest two, which make those that are written from here on old ones to be removed. */
static void test_later_checkpoints(void **state)
{
	(void)state;
	kill_late();
	shell("cp run/" NEW " run/checkpoint-0000000200.safetensors; mkdir run/checkpoint-9999999999.safetensors\n"
	      "rm run/train.jsonl");
	goes_on_after("0");
	assert_true(program_has("run/" NEW RUN_BROKEN) && program_has("run/checkpoint-0000000200.safetensors" RUN_BROKEN));
}

/* ---- In what order it is written ---- */

static struct {
	int lines;       /* of train.jsonl, handed over and on disk */
	int synced;
	int checkpoints; /* that have come to their names */
	bool wrong;      /* one of them before the lines of its steps */
} seen;

static bool ends_in(const char *text, const char *end)
{
	size_t size = strlen(text), length = strlen(end);
	return size >= length && !strcmp(text + size - length, end);
}

static void watch(const struct io_event *event)
{
	int step;
	const char *name = event->to ? strrchr(event->to, '/') : NULL;
	if (ends_in(event->path, "/train.jsonl")) {
		for (size_t i = 0; !strcmp(event->operation, "write") && i < event->size; i++)
			seen.lines += ((const char *)event->data)[i] == '\n';
		if (!strcmp(event->operation, "fsync"))
			seen.synced = seen.lines;
	}
	if (!strcmp(event->operation, "rename") && name && sscanf(name, "/checkpoint-%d", &step) == 1) {
		seen.checkpoints++;
		seen.wrong |= seen.synced < step;
	}
}

/* A power cut right after a checkpoint must not find it without its log. */
static void test_log_before_checkpoint(void **state)
{
	(void)state;
	static const char *const set[][2] = { { "layers", "1" }, { "width", "16" }, { "batch", "2" }, { "steps", "7" },
					      { "save_every", "2" } };
	struct scope scope = { .command = "train", .lists = LIST_TRAINING | LIST_RUN };
	struct config c;
	struct run_trained trained;
	char *path = program_path("watched");
	config_init(&c, &scope, NULL);
	for (int i = 0; i < (int)(sizeof set / sizeof *set); i++)
		assert_ok(config_set(&c, set[i][0], set[i][1], NULL));
	assert_ok(config_finish(&c, true));
	assert_ok(blas_start(1));
	io_watch = watch;
	struct err e = run_train(path, &c, "", "train", &trained);
	io_watch = NULL;
	free(path);
	assert_ok(e);
	assert_int_equal(seen.checkpoints, 4);
	assert_int_equal(seen.synced, 7);
	assert_false(seen.wrong);
}

/* ---- Damaged checkpoints ---- */

static void change(const char *name, double share, bool metadata)
{
	size_t size;
	uint64_t header;
	char *data = program_file(name, &size);
	memcpy(&header, data, sizeof header);
	char *options = strstr(data + 8, "options");
	assert_non_null(options);
	if (metadata)
		options[40] ^= 1;
	else
		data[8 + header + (size_t)(share * (double)(size - 8 - header - 1))] ^= 1;
	program_put(name, data, size);
	free(data);
}

static void change_first(void) { change("run/" NEW, 0, false); }
static void change_last(void) { change("run/" NEW, 1, false); }
static void change_options(void) { change("run/" NEW, 0, true); }
static void shorten(void) { shell("head -c 9000 straight/" NEW " >run/" NEW); }
static void empty(void) { shell(": >run/" NEW); }
static void misname(void) { shell("cp straight/" OLD " run/" NEW); }
static void put_model(void) { shell("cp straight/model.safetensors run/" NEW); }

/* One weight of a slab becomes what it must not be, under right checksums. */
static void poison(int which)
{
	char *path = program_path("run/" NEW);
	struct safetensors file;
	struct model m = { 0 };
	struct model_options options = { 0 };
	struct metadata kept[5] = { { "step", NULL }, { "data", NULL }, { "training", NULL }, { "products", NULL },
				    { "real", NULL } };
	int V;
	assert_ok(safetensors_read(path, &file));
	assert_ok(weights_format_options(&file, CHECKPOINT_FORMAT, &options, &V));
	assert_ok(model_open(&options, V, &m));
	size_t size = m.layout.size;
	real *moments = TAKE(real, 2 * size);
	const struct weights_slab slab[3] = { { "", m.value }, { "adam.m.", moments }, { "adam.v.", moments + size } };
	assert_ok(weights_fill_slabs(&m, &file, path, slab, 3));
	slab[which].value[size / 2] = (real)NAN;
	for (int i = 0; i < 5; i++)
		kept[i].value = safetensors_metadata(&file, kept[i].key);
	assert_ok(weights_write_slabs(&m, slab, 3, CHECKPOINT_FORMAT, path, kept, 5));
	safetensors_free(&file);
	model_close(&m);
	free(moments);
	free(path);
}

static void poison_weight(void) { poison(0); }
static void poison_moment(void) { poison(2); }

static void test_damaged_newest(void **state)
{
	(void)state;
	static void (*const damage[])(void) = { change_first, change_last, change_options, shorten, empty,
						misname, put_model, poison_weight, poison_moment };
	for (int i = 0; i < (int)(sizeof damage / sizeof *damage); i++) {
		kill_late();
		damage[i]();
		struct program_run r = program_run("train --resume --out=run");
		if (r.code || !strstr(r.err, "warning: run/" NEW ": ") || !strstr(r.err, NEW RUN_BROKEN " now") ||
		    !strstr(r.err, "goes on after step 80 of 120"))
			fail_msg("damage %d: exit %d: %s", i, r.code, r.err);
		program_run_free(&r);
		assert_true(program_has("run/" NEW RUN_BROKEN));
		assert_as_straight();
	}
}

static void test_damaged_both(void **state)
{
	(void)state;
	kill_late();
	empty();
	change("run/" OLD, 0.3, false);
	goes_on_after("0");
	assert_true(program_has("run/" NEW RUN_BROKEN) && program_has("run/" OLD RUN_BROKEN));
}

/* ---- Other options ---- */

static void test_other_options(void **state)
{
	(void)state;
	kill_late();
	program_refuses("train --resume --out=run --lr=0.5", "run: lr is 0.003 there, and 0.5 here", "Leave the option");
	program_refuses("train --resume --out=run --encoding=nope", ", and nope here",
			NULL);
	program_refuses("train --resume --out=run --steps=121", "steps is 120 there, and 121 here", NULL);
	program_refuses("train --resume --out=run --products=library", "run/" NEW ": products is own there, and library",
			NULL);
	shell("sed 's/^seed = .*/seed = 7/' straight/config >run/config");
	program_refuses("train --resume --out=run", "run/" NEW ": seed is 101 there, and 7 here", NULL);
	shell("cp -p straight/config run/config");
	program_works("train " SMALL "--steps=2 --encoding=alibi --out=alibi");
	program_refuses("train --resume --out=alibi --alibi-slopes=spread", "encoding is alibi(slopes=published) there",
			"alibi(slopes=spread) here");
	goes_on_after("120");
}

/* Options that were given and are the same, and those that change no result, do not stand in the way. */
static void test_same_options(void **state)
{
	(void)state;
	kill_late();
	shell("rm run/" NEW);
	answers("train --resume --out=run --lr=3e-3 --threads=2 --save-every=40 " STEPS, 0, "goes on after step 80");
	shell("sed -i.old 's/\"threads\": 2/\"threads\": 1/' run/record.json; rm run/*.old");
	assert_as_straight();
}

static void test_other_real(void **state)
{
	(void)state;
	char line[PATH_MAX + 100];
	kill_late();
	snprintf(line, sizeof line, "cp run/record.json before; '%s' train --resume --out=run; s=$?\n"
		 "cmp run/record.json before && exit $s", getenv("TEST_DOUBLE"));
	struct program_run r = program_run_shell(line);
	program_failed(line, &r, 2, "run/" NEW ": real is float there, and double here", NULL);
	goes_on_after("120");
}

/* ---- Other folders ---- */

static void test_folders(void **state)
{
	(void)state;
	answers("train --resume " SMALL STEPS "--out=absent", 0, "absent: no run has begun there");
	shell("mkdir empty; cmp absent/model.safetensors straight/model.safetensors");
	answers("train --resume " SMALL "--steps=2 --out=empty", 0, "empty: no run has begun there");
	shell("mkdir foreign; echo >foreign/thesis.tex");
	program_refuses("train --resume --out=foreign", "foreign: holds other things than a run", NULL);
	program_refuses("train --resume --force --out=straight", "--resume, --force: choose one of them", NULL);
	program_refuses("train --resume", "--out", NULL);
	shell("printf 'steps = 2\\nmultiples = 1\\nsequences = 2\\n' >small.study");
	program_works("study small.study " SMALL "--out=studied");
	program_refuses("train --resume --out=studied", "studied: holds other things than a run", NULL);
}

static void test_finished(void **state)
{
	(void)state;
	shell("rm -rf run; cp -Rp straight run; cp -Rp run as-it-was; echo >run/lock");
	struct program_run r = program_run("train --resume --out=run"), again = program_run("train --resume --out=run");
	if (r.code || !strstr(r.err, "run: has finished already") || strncmp(r.out, "loss ", 5))
		fail_msg("exit %d: %s%s", r.code, r.out, r.err);
	assert_string_equal(r.out, again.out);
	program_run_free(&r);
	program_run_free(&again);
	shell("rm -f run/lock; diff -r run as-it-was");

	shell("rm run/model.safetensors");
	answers("train --resume --out=run", 0, "model.safetensors: is missing");
	assert_as_straight();
	shell("rm run/model.safetensors run/checkpoint-*");
	program_refuses("train --resume --out=run", "run/model.safetensors: is missing", NULL);
}

/* ---- Divergence ---- */

#define DIVERGES SMALL "--steps=60 --lr=1000 --clip=0 --warmup=0 --weight-decay=1000 --save-every=1 "

static void test_diverged(void **state)
{
	(void)state;
	struct program_run r = program_run("train " DIVERGES "--out=gone");
	program_failed("train " DIVERGES, &r, 3, "ropewalk: step ", ": loss ");
	/* The checkpoint of the last step that was good, and its line of the log, are there and no later ones. */
	shell("[ $(ls gone | grep -c '^checkpoint-') = 2 ] && [ ! -e gone/model.safetensors ]\n"
	      "last=$(ls gone | grep '^checkpoint' | tail -n 1 | sed 's/[^0-9]*0*//; s/[.].*//')\n"
	      "[ \"$last\" = $(wc -l <gone/train.jsonl) ] && grep -q '\"steps\": '$last, gone/record.json &&\n"
	      "grep -q '\"status\": \"diverged\"' gone/record.json && ! grep -iq 'nan\\|inf' gone/train.jsonl\n"
	      "cp -Rp gone before-gone");
	r = program_run("train --resume --out=gone");
	program_failed("train --resume", &r, 3, "gone: has diverged: step ", "or with --force");
	shell("diff -r gone before-gone");
}

static void test_diverged_in_a_study(void **state)
{
	(void)state;
	static const char text[] = "lr = 0.001, 1000\nclip = 0\nweight_decay = 1000\nsteps = 60\nmultiples = 1\n"
				   "sequences = 2\n";
	program_put("diverges.study", text, sizeof text - 1);
	for (int i = 0; i < 2; i++) {
		struct program_run r = program_run("study diverges.study " SMALL "--warmup=0 --save-every=1 --out=both");
		if (r.code != 1 || !strstr(r.err, "1 of 2 models diverged or failed") || !strstr(r.out, "diverged"))
			fail_msg("exit %d: %s%s", r.code, r.out, r.err);
		program_run_free(&r);
	}
	shell("[ $(ls both/lr-1000-*/checkpoint-* | wc -l) = 2 ] && [ -e both/lr-0.001-*/model.safetensors ]");
}

/* ---- --save-every ---- */

static void test_save_every(void **state)
{
	(void)state;
	static const char *const wrong[] = { "0", "-1", "1.5", "s", "0s", "-1s", "1e99s", "nans", "infs", "", "1e10",
					     "500x", "0x10", "1m" };
	struct save_every every;
	for (int i = 0; i < (int)(sizeof wrong / sizeof *wrong); i++)
		if (save_every_parse(wrong[i], &every).code != ERR_USAGE)
			fail_msg("'%s' passes", wrong[i]);
	assert_ok(save_every_parse("500", &every));
	assert_true(every.steps == 500 && every.seconds == 0);
	assert_ok(save_every_parse("60s", &every));
	assert_true(every.steps == 0 && every.seconds == 60);
	assert_ok(save_every_parse("0.5s", &every));
	assert_true(every.steps == 0 && every.seconds == 0.5);
	assert_ok(save_every_parse(NULL, &every));
	assert_true(every.steps || every.seconds);
	program_refuses("train " SMALL "--steps=2 --save-every=0 --out=new", "--save-every: 0: not a number of steps",
			"--save-every=60s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_goes_on),       cmocka_unit_test(test_two_newest),
		cmocka_unit_test(test_log),           cmocka_unit_test(test_log_too_short),
		cmocka_unit_test(test_later_checkpoints),
		cmocka_unit_test(test_log_before_checkpoint),
		cmocka_unit_test(test_damaged_newest), cmocka_unit_test(test_damaged_both),
		cmocka_unit_test(test_other_options), cmocka_unit_test(test_same_options),
		cmocka_unit_test(test_other_real),    cmocka_unit_test(test_folders),
		cmocka_unit_test(test_finished),      cmocka_unit_test(test_diverged),
		cmocka_unit_test(test_diverged_in_a_study), cmocka_unit_test(test_save_every),
	};
	char path[PATH_MAX];
	if (!realpath("build/ropewalk-double", path) || setenv("TEST_DOUBLE", path, 1))
		return 1;
	return cmocka_run_group_tests_name("runs resume", tests, start, program_teardown);
}
