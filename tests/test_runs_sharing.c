#include "model/base/blas.h"
#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/run/run_adopt.h"
#include "runs/run/run_folder.h"
#include "runs/run/run_train.h"
#include "runs/study/study.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support.h"

/* What the models of a study share: one training where only evaluation differs, one folder, one disk. */

#define TINY "layers = 1\nwidth = 16\nheads = 1\nhidden = 16\nbatch = 2\ntrain_length = 32\nsequences = 2\n" \
	     "steps = 3\nmultiples = 1, 2\n"
#define CLAMP "encoding = learned(overflow=clamp)\n"
#define THREE "encoding = learned(overflow=clamp), learned, learned(overflow=random)\n"

static char folder[FOLDER_PATH], other_folder[FOLDER_PATH];
static const char *fail_path; /* writing a model below a path with this in it fails */

static int watch(const char *operation, const char *path)
{
	bool hit = fail_path && !strcmp(operation, "rename") && strstr(path, fail_path) && strstr(path, RUN_MODEL);
	return hit ? ENOSPC : 0;
}

static int set_up(void **state)
{
	(void)state;
	io_fault = watch;
	fail_path = NULL;
	return folder_make(folder) || folder_make(other_folder) || blas_start(1).code;
}

static int tear_down(void **state)
{
	(void)state;
	io_fault = NULL;
	io_space = NULL;
	return folder_remove(folder) | folder_remove(other_folder);
}

/* A study in memory and in a folder. */
struct made {
	const char *folder;
	struct study s;
	struct grid g;
	int failed;
};

static void make(const char *where, const char *text, struct made *m)
{
	*m = (struct made){ .folder = where };
	assert_ok(study_parse("f", text, &m->s));
	assert_ok(grid_build(&m->s, &m->g));
}

static void unmake(struct made *m)
{
	grid_free(&m->g);
	study_free(&m->s);
}

static int silence(void)
{
	fflush(stderr);
	int kept = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY);
	dup2(nowhere, STDERR_FILENO);
	close(nowhere);
	return kept;
}

static void speak(int kept)
{
	fflush(stderr);
	dup2(kept, STDERR_FILENO);
	close(kept);
}

static struct err run(struct made *m, bool force)
{
	struct study_job job = { .folder = m->folder, .study = &m->s, .grid = &m->g, .force = force,
				 .command_line = "ropewalk study x" };
	int kept = silence();
	struct err e = study_run(&job, &m->failed);
	speak(kept);
	return e;
}

static void make_and_run(const char *where, const char *text, struct made *m)
{
	make(where, text, m);
	assert_ok(run(m, false));
	assert_int_equal(m->failed, 0);
}

static char *cell_path(const struct made *m, int cell)
{
	char *path;
	enum cell_status status;
	assert_ok(study_folder_find(m->folder, &m->g.cell[cell], &path, &status));
	return path;
}

static char *file_path(const struct made *m, int cell, const char *name)
{
	char *path = cell_path(m, cell), *file = io_join(path, name);
	free(path);
	return file;
}

static void assert_same_file(const struct made *a, int one, const struct made *b, int other, const char *name)
{
	char *path = file_path(a, one, name), *path_other = file_path(b, other, name), *data, *data_other;
	size_t size, size_other;
	assert_ok(io_read(path, &data, &size));
	assert_ok(io_read(path_other, &data_other, &size_other));
	assert_int_equal(size, size_other);
	assert_memory_equal(data, data_other, size);
	free(path);
	free(path_other);
	free(data);
	free(data_other);
}

/* The run whose weights a finished cell has taken over, kept; "" if it was trained itself. */
static const char *weights_of(const struct made *m, int cell)
{
	json_t *record;
	char *path = cell_path(m, cell);
	assert_ok(run_record_read(path, &record));
	assert_string_equal(json_string_value(json_object_get(record, "status")), "finished");
	assert_string_equal(json_string_value(json_object_get(record, "identity")), m->g.cell[cell].identity);
	assert_int_equal(json_integer_value(json_object_get(record, "steps")), 3);
	const char *name = json_string_value(json_object_get(record, "weights_of"));
	double seconds = json_number_value(json_object_get(record, "wall_seconds"));
	assert_true(name ? seconds == 0 : seconds > 0);
	name = text_keep(name ? name : "");
	json_decref(record);
	free(path);
	return name;
}

static void test_identities(void **state)
{
	(void)state;
	struct made m;
	make(folder, TINY THREE "seed = 1, 2\n", &m);
	assert_int_equal(arrlen(m.g.cell), 6);
	for (int i = 0; i < 6; i++)
		for (int j = 0; j < i; j++) {
			bool same = m.g.cell[i].config.train.seed == m.g.cell[j].config.train.seed;
			assert_string_not_equal(m.g.cell[i].identity, m.g.cell[j].identity);
			assert_int_equal(!strcmp(m.g.cell[i].trained, m.g.cell[j].trained), same);
		}
	/* The plain one is all defaults. */
	assert_string_equal(m.g.cell[2].identity, m.g.cell[2].trained);
	assert_string_not_equal(m.g.cell[0].identity, m.g.cell[0].trained);
	unmake(&m);
}

static void test_same_as_trained_apart(void **state)
{
	(void)state;
	struct made shared, apart;
	make_and_run(folder, TINY THREE "seed = 1, 2\n", &shared);
	make_and_run(other_folder, TINY "encoding = rope, learned(overflow=random)\nseed = 1, 2\n", &apart);
	for (int i = 0; i < 6; i++)
		assert_string_equal(weights_of(&shared, i), i < 2 ? "" : shared.g.cell[i % 2].name);
	for (int i = 0; i < 2; i++) {
		char *csv = cell_csv(&apart.g.cell[2 + i], "", 0);
		assert_string_equal(weights_of(&apart, 2 + i), "");
		/* Metadata and all: the option of evaluation is the run's own. */
		assert_same_file(&shared, 4 + i, &apart, 2 + i, RUN_MODEL);
		assert_same_file(&shared, 4 + i, &apart, 2 + i, RUN_CONFIG);
		assert_same_file(&shared, 4 + i, &apart, 2 + i, RUN_LOG);
		assert_same_file(&shared, 4 + i, &apart, 2 + i, csv);
		assert_same_file(&shared, 4 + i, &shared, i, RUN_TIMING);
		free(csv);
	}
	unmake(&shared);
	unmake(&apart);
}

static void test_others_are_not_adopted(void **state)
{
	(void)state;
	struct made m;
	make_and_run(folder, TINY "encoding = learned\nseed = 1, 2\nlr = 1e-3, 2e-3\n", &m);
	char *path = io_join(other_folder, "new");
	for (int i = 0; i < 4; i++)
		assert_string_equal(weights_of(&m, i), "");
	for (int i = 1; i < 4; i++) {
		bool adopted;
		struct err why;
		char *from = cell_path(&m, i);
		assert_ok(run_adopt(path, &m.g.cell[0].config, "", from, &adopted, &why));
		assert_false(adopted);
		assert_non_null(strstr(why.text, "trained otherwise"));
		assert_false(io_exists(path));
		free(from);
	}
	free(path);
	unmake(&m);
}

/* Neither a run that stopped on its way nor weights that are gone count. */
static void test_interrupted(void **state)
{
	(void)state;
	struct made m;
	make(folder, TINY THREE, &m);
	fail_path = "overflow-random";
	assert_ok(run(&m, false));
	assert_int_equal(m.failed, 1);
	char *path = cell_path(&m, 2), *model = file_path(&m, 0, RUN_MODEL);
	assert_string_equal(run_folder_status(path), "failed");
	assert_ok(run_record_update(path, json_pack("{s:s}", "status", "running")));
	fail_path = NULL;
	assert_ok(run(&m, false));
	assert_int_equal(m.failed, 0);
	assert_string_equal(weights_of(&m, 2), m.g.cell[0].name);
	assert_ok(run_record_update(path, json_pack("{s:s}", "status", "running")));
	assert_ok(io_remove(model));
	assert_ok(run(&m, false));
	assert_int_equal(m.failed, 0);
	assert_string_equal(weights_of(&m, 2), "");
	free(path);
	free(model);
	unmake(&m);
}

/* Weights of another precision are not what training here would give. */
static void test_other_precision(void **state)
{
	(void)state;
	struct made m;
	make_and_run(folder, TINY THREE, &m);
	char *first = cell_path(&m, 0), *last = cell_path(&m, 2);
	assert_string_equal(weights_of(&m, 2), m.g.cell[0].name);
	assert_ok(run_record_update(first, json_pack("{s:s}", "real", "half")));
	assert_ok(run_record_update(last, json_pack("{s:s}", "status", "running")));
	assert_ok(run(&m, false));
	assert_int_equal(m.failed, 0);
	assert_string_equal(weights_of(&m, 2), "");
	free(first);
	free(last);
	unmake(&m);
}

/* A finished sibling serves those before it in the grid; with --force nothing old does. */
static void test_finished_before(void **state)
{
	(void)state;
	struct made first, all;
	make_and_run(folder, TINY "encoding = learned(overflow=random)\n", &first);
	make_and_run(folder, TINY THREE, &all);
	char *path = cell_path(&first, 0);
	assert_string_equal(weights_of(&all, 0), run_folder_name(path));
	assert_string_not_equal(weights_of(&all, 1), "");
	assert_string_equal(weights_of(&all, 2), "");
	free(path);
	assert_ok(run(&all, true));
	assert_int_equal(all.failed, 0);
	assert_string_equal(weights_of(&all, 0), "");
	assert_string_equal(weights_of(&all, 2), all.g.cell[0].name);
	unmake(&first);
	unmake(&all);
}

/* --- the folder -------------------------------------------------------------------------------------------------- */

static void goes_on(const char *text)
{
	struct made m;
	make_and_run(folder, text, &m);
	unmake(&m);
}

static void refuses(const char *text, const char *part)
{
	struct made m;
	char *path = io_join(folder, STUDY_FILE), *before, *after;
	size_t size;
	make(folder, text, &m);
	assert_ok(io_read(path, &before, &size));
	assert_err(run(&m, false), ERR_USAGE, part);
	assert_ok(io_read(path, &after, &size));
	assert_string_equal(before, after);
	free(before);
	free(after);
	free(path);
	unmake(&m);
}

static void test_folder_of_another_study(void **state)
{
	(void)state;
	goes_on(TINY CLAMP "seed = 1\n");
	refuses(TINY CLAMP "seed = 2\n", "another study");
	refuses(TINY CLAMP "seed = 1\nlr = 1e-2\n", "--out");
	refuses(TINY "seed = 1\nencoding = rope\n", "--force");
	goes_on(TINY CLAMP "seed = 1, 2\n");
	goes_on(TINY "encoding = rope, learned(overflow=clamp)\nseed = 2, 3\n");
	goes_on(TINY "encoding = rope\nseed = 3\nscaling = none, ntk\nlr = 1e-2, 3e-3\n");
	goes_on(TINY "encoding = rope\nseed = 3\nscaling = ntk\neval_seed = 4\n");
}

static void test_force_takes_the_folder(void **state)
{
	(void)state;
	struct made m;
	goes_on(TINY CLAMP "seed = 1\n");
	make(folder, TINY "encoding = rope\n", &m);
	assert_ok(run(&m, true));
	assert_int_equal(m.failed, 0);
	unmake(&m);
	goes_on(TINY "encoding = rope\n");
}

/* Nothing of it was made yet; or nobody knows what it was. */
static void test_study_without_models(void **state)
{
	(void)state;
	struct made m;
	make(folder, TINY "seed = 7\n", &m);
	assert_ok(study_folder_write(folder, &m.s, ""));
	unmake(&m);
	goes_on(TINY "seed = 8\n");
	char *path = io_join(folder, STUDY_FILE);
	assert_ok(io_write(path, "seeds = 8\n", 10));
	refuses(TINY "seed = 8\n", "--force");
	free(path);
}

/* --- the disk ---------------------------------------------------------------------------------------------------- */

static size_t space;

static size_t space_left(const char *path)
{
	(void)path;
	return space;
}

static void test_full_disk(void **state)
{
	(void)state;
	struct made m;
	char *path = io_join(folder, "new"), *study = io_join(folder, STUDY_FILE);
	struct run_trained trained;
	make(folder, TINY "seed = 1, 2\n", &m);
	io_space = space_left;
	space = 100000;
	assert_err(run(&m, false), ERR_FAILED, "100.0 kB left");
	assert_false(io_exists(study));
	assert_err(run_train(path, &m.g.cell[0].config, "", "train", &trained), ERR_FAILED, "disk");
	assert_false(io_exists(path));
	/* Room for one model, but not for both. */
	space = 400000;
	assert_err(run(&m, false), ERR_FAILED, "training writes");
	assert_false(io_exists(study));
	space = 4000000;
	assert_ok(run(&m, false));
	assert_int_equal(m.failed, 0);
	/* What is finished needs no room. */
	space = 0;
	assert_ok(run(&m, false));
	assert_int_equal(m.failed, 0);
	free(path);
	free(study);
	unmake(&m);
}

#define RUN_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUN_TEST(test_identities),
		RUN_TEST(test_same_as_trained_apart),
		RUN_TEST(test_others_are_not_adopted),
		RUN_TEST(test_interrupted),
		RUN_TEST(test_other_precision),
		RUN_TEST(test_finished_before),
		RUN_TEST(test_folder_of_another_study),
		RUN_TEST(test_force_takes_the_folder),
		RUN_TEST(test_study_without_models),
		RUN_TEST(test_full_disk),
	};
	return cmocka_run_group_tests_name("runs sharing", tests, NULL, NULL);
}
