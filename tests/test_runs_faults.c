#include "model/base/io.h"
#include "model/base/safetensors.h"
#include "model/base/stb.h"
#include "runs/arguments.h"
#include "runs/run/run_checkpoint.h"
#include "runs/run/run_folder.h"
#include "runs/run/run_log.h"
#include "runs/run/run_model.h"
#include "runs/study/study_folder.h"
#include "tests/fault_case.h"
#include "tests/support.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Whole commands under faults of the disk and losses of power: a part of the places, all of them with FAULTS=all in the
 * environment. */

#define STEPS 3
#define MODEL "layers = 1\nwidth = 8\nheads = 1\nhidden = 8\nbatch = 1\ntrain_length = 20\nsteps = 3\n"
#define EVALUATION "multiples = 1\nsequences = 2\n"
#define KINDS { "record.json|timing.jsonl", "train.jsonl|timing.jsonl", RUN_CHECKPOINTS }

static int set_up(void **state)
{
	(void)state;
	alarm(120);
	return !getenv("TMPDIR") && !access("/dev/shm", W_OK) ? setenv("TMPDIR", "/dev/shm", 1) : 0;
}

/* ---- Commands, in this process ---- */

struct streams {
	int out, err;
};

static struct streams silence(void)
{
	fflush(NULL);
	struct streams s = { dup(STDOUT_FILENO), dup(STDERR_FILENO) };
	int nowhere = open("/dev/null", O_WRONLY);
	dup2(nowhere, STDOUT_FILENO);
	dup2(nowhere, STDERR_FILENO);
	close(nowhere);
	return s;
}

static void speak(struct streams s)
{
	fflush(NULL);
	dup2(s.out, STDOUT_FILENO);
	dup2(s.err, STDERR_FILENO);
	close(s.out);
	close(s.err);
}

static const struct command *command_named(const char *name)
{
	const struct command *c;
	for (int i = 0; (c = command_at(i)); i++)
		if (!strcmp(c->name, name))
			return c;
	fail_msg("no command %s", name);
	return NULL;
}

/* Runs a command line, cut at its spaces; a lone '@' in it is the root. */
static struct err command(const char *root, const char *line)
{
	struct text_builder b = { 0 };
	for (const char *s = line; *s; s++)
		text_add(&b, "%.*s", *s == '@' ? (int)strlen(root) : 1, *s == '@' ? root : s);
	char *argv[16], *rest = NULL;
	int argc = 0;
	for (char *word = strtok_r(b.data, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	argv[argc] = NULL;
	const struct command *c = command_named(argv[0]);
	struct streams s = silence();
	struct invocation in;
	struct err e = arguments_parse(c, argc, argv, &in);
	if (!e.code) {
		e = c->run(&in);
		free(in.word);
		free(in.config.own);
	}
	speak(s);
	text_builder_free(&b);
	return e;
}

static void put(const char *root, const char *name, const char *text)
{
	char *path = io_join(root, name);
	assert_ok(io_write(path, text, strlen(text)));
	free(path);
}

/* ---- A run ---- */

static void load_checkpoints(const char *path)
{
	char **name;
	int count;
	if (!io_is_folder(path))
		return;
	assert_ok(io_list(path, &name, &count));
	for (int i = 0; i < count; i++) {
		struct safetensors s;
		assert_null(strstr(name[i], RUN_BROKEN));
		if (fnmatch(RUN_CHECKPOINTS, name[i], 0))
			continue;
		char *file = io_join(path, name[i]);
		assert_ok(safetensors_read(file, &s));
		safetensors_free(&s);
		free(file);
	}
	io_names_free(name, count);
}

static void load_run_in(const char *path)
{
	const char *status = run_folder_status(path);
	load_checkpoints(path);
	assert_string_not_equal(status, "damaged");
	if (strcmp(status, "finished"))
		return;
	struct scope scope = { .command = "a run", .lists = LIST_TRAINING };
	struct config c;
	struct model m;
	char *folder;
	int64_t steps;
	config_init(&c, &scope, NULL);
	assert_ok(run_folder_open(path, &c, &folder));
	assert_ok(run_model_read(path, &c, &m));
	assert_ok(run_log_steps(path, &steps));
	assert_int_equal(steps, STEPS);
	model_close(&m);
	free(folder);
}

static void load_run(const char *root)
{
	char *path = io_join(root, "run");
	load_run_in(path);
	free(path);
}

static void put_model_options(const char *root)
{
	put(root, "options", MODEL "threads = 1\nsave_every = 1\n");
}

static struct err train(const char *root)
{
	return command(root, "train --config=@/options --out=@/run --resume");
}

static void train_first(const char *root)
{
	put_model_options(root);
	assert_ok(train(root));
}

static struct err train_anew(const char *root)
{
	return command(root, "train --config=@/options --out=@/run --seed=102 --force");
}

static const struct fault_case training = { put_model_options, train, load_run, KINDS, false, 17 },
			       training_anew = { train_first, train_anew, load_run, KINDS, false, 37 };

static void training_under_faults(void **state)
{
	(void)state;
	assert_true(fault_sweep(&training) > 80);
	fault_short(&training);
}

static void training_anew_under_faults(void **state)
{
	(void)state;
	fault_sweep(&training_anew);
}

static void training_without_power(void **state)
{
	(void)state;
	assert_true(power_loss(&training) > 40);
	power_loss(&training_anew);
}

/* ---- Evaluation ---- */

static struct err evaluate(const char *root)
{
	return command(root, "eval @/run --scaling=none,linear --multiples=1,2 --sequences=2 --threads=1");
}

static const struct fault_case evaluation = { train_first, evaluate, load_run, KINDS, false, 11 };

static void evaluation_under_faults(void **state)
{
	(void)state;
	assert_true(fault_sweep(&evaluation) > 40);
	fault_short(&evaluation);
}

static void evaluation_without_power(void **state)
{
	(void)state;
	power_loss(&evaluation);
}

/* ---- A study: the second model takes over the weights of the first ---- */

static void put_study(const char *root)
{
	put(root, "a.study", MODEL EVALUATION "encoding = learned(overflow=clamp), learned\n");
}

static struct err study(const char *root)
{
	return command(root, "study @/a.study --out=@/grid --threads=1 --pictures=off");
}

static void load_runs(const char *root, const char *study_folder)
{
	char *folder = io_join(root, study_folder), **name = NULL;
	int count = 0;
	assert_string_not_equal(run_folder_status(folder), "damaged");
	if (io_is_folder(folder))
		assert_ok(io_list(folder, &name, &count));
	for (int i = 0; i < count; i++) {
		char *path = io_join(folder, name[i]);
		if (io_is_folder(path))
			load_run_in(path);
		free(path);
	}
	io_names_free(name, count);
	free(folder);
}

static void load_study(const char *root)
{
	load_runs(root, "grid");
}

static const struct fault_case studying = { put_study, study, load_study, KINDS, true, 101 };

static void study_under_faults(void **state)
{
	(void)state;
	assert_true(fault_sweep(&studying) > 100);
}

static void study_without_power(void **state)
{
	(void)state;
	power_loss(&studying);
}

/* ---- Exports and tables ---- */

static void put_tokens(const char *root)
{
	static const int32_t ids[4] = { 0, 2, 34, 2 };
	struct tensor t[] = { { .name = "tokens", .dtype = DTYPE_I32, .rank = 2, .shape = { 1, 4 }, .data = ids },
			      { .name = "targets", .dtype = DTYPE_I32, .rank = 2, .shape = { 1, 4 }, .data = ids } };
	char *path = io_join(root, "in");
	train_first(root);
	assert_ok(safetensors_write(path, t, 2, NULL, 0));
	free(path);
}

static struct err forward(const char *root)
{
	return command(root, "forward @/run/model.safetensors --tokens=@/in --output=@/out --threads=1");
}

static struct err scores(const char *root)
{
	return command(root, "scores --encoding=rope --heads=1 --input=@/in --output=@/out");
}

static void put_heads(const char *root)
{
	static const float x[16] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct tensor t[] = { { .name = "q", .dtype = DTYPE_F32, .rank = 4, .shape = { 1, 1, 2, 8 }, .data = x },
			      { .name = "k", .dtype = DTYPE_F32, .rank = 4, .shape = { 1, 1, 2, 8 }, .data = x } };
	char *path = io_join(root, "in");
	assert_ok(safetensors_write(path, t, 2, NULL, 0));
	free(path);
}

static struct err table(const char *root)
{
	return command(root, "table @/grid --format=csv");
}

static void put_grid(const char *root)
{
	put_study(root);
	assert_ok(study(root));
}

static void exports_under_faults(void **state)
{
	(void)state;
	const struct fault_case c[] = {
		{ put_tokens, forward, load_run, KINDS, false, 5 },
		{ put_heads, scores, NULL, { 0 }, false, 0 },
	};
	for (int i = 0; i < 2; i++) {
		fault_sweep(&c[i]);
		power_loss(&c[i]);
	}
}

static void tables_under_faults(void **state)
{
	(void)state;
	const struct fault_case c = { put_grid, table, load_study, KINDS, true, 7 };
	fault_sweep(&c);
	fault_short(&c);
}

/* ---- Merging ---- */

static struct err merge(const char *root)
{
	return command(root, "merge @/grid --out=@/joined");
}

static void load_joined(const char *root)
{
	load_runs(root, "joined");
}

static void merging_under_faults(void **state)
{
	(void)state;
	const struct fault_case c = { put_grid, merge, load_joined, KINDS, false, 29 };
	assert_true(fault_sweep(&c) > 100);
	fault_short(&c);
	power_loss(&c);
}

static struct err plot_pictures(const char *root)
{
	return command(root, "plot @/grid --picture=perplexity,frequencies --out=@/drawn");
}

static struct err report(const char *root)
{
	return command(root, "report @/grid --out=@/page.html");
}

/* The page says when its grid was trained, so that those of two grids differ; but it is there as a whole. */
#define PAGE_KINDS { "record.json|timing.jsonl|page.html", "train.jsonl|timing.jsonl", RUN_CHECKPOINTS }

static void load_page(const char *root)
{
	char *path = io_join(root, "page.html"), *text;
	size_t size;
	if (io_exists(path)) {
		assert_ok(io_read(path, &text, &size));
		assert_memory_equal(text, "<!DOCTYPE html>", 15);
		assert_string_equal(text + size - strlen("</html>\n"), "</html>\n");
		free(text);
	}
	free(path);
	load_study(root);
}

static void pictures_under_faults(void **state)
{
	(void)state;
	const struct fault_case c[] = {
		{ put_grid, plot_pictures, load_study, KINDS, true, 13 },
		{ put_grid, report, load_page, PAGE_KINDS, true, 31 },
	};
	for (int i = 0; i < 2; i++) {
		fault_sweep(&c[i]);
		power_loss(&c[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(training_under_faults),
		cmocka_unit_test(training_anew_under_faults),
		cmocka_unit_test(training_without_power),
		cmocka_unit_test(evaluation_under_faults),
		cmocka_unit_test(evaluation_without_power),
		cmocka_unit_test(study_under_faults),
		cmocka_unit_test(study_without_power),
		cmocka_unit_test(exports_under_faults),
		cmocka_unit_test(tables_under_faults),
		cmocka_unit_test(merging_under_faults),
		cmocka_unit_test(pictures_under_faults),
	};
	return cmocka_run_group_tests_name("runs faults", tests, set_up, NULL);
}
