#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/preset.h"
#include "runs/show/verdicts.h"
#include "runs/study/locate.h"
#include "runs/study/study.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sequence_case.h"

/* The studies that come with the program. */

#define TEXT "runs/out/text.txt"

/* In place of the text that `make text` writes, which need not be there, any file. */
static char *with_a_text(char *preset, const char *file)
{
	char *at = strstr(preset, TEXT);
	if (!at)
		return preset;
	struct text_builder b = { 0 };
	text_add(&b, "%.*s%s%s", (int)(at - preset), preset, file, at + strlen(TEXT));
	free(preset);
	return b.data;
}

static void open_preset(const char *name, struct study *s, struct grid *g)
{
	char *path, *text;
	size_t size;
	assert_ok(study_locate(name, &path));
	assert_ok(io_read(path, &text, &size));
	text = with_a_text(text, sample_file());
	assert_ok(study_parse(path, text, s));
	assert_ok(grid_build(s, g));
	free(text);
	free(path);
}

static void close_preset(struct study *s, struct grid *g)
{
	grid_free(g);
	study_free(s);
}

/* Every model can be trained, and takes every scaling at 1x; the lists of presets show the first line. */
static void test_every_preset(void **state)
{
	(void)state;
	const char *name;
	int count = 0;
	for (; (name = preset_at(count, NULL)); count++) {
		struct study s;
		struct grid g;
		char *path = preset_path(name), *text;
		size_t size;
		assert_ok(io_read(path, &text, &size));
		if (strncmp(text, "# ", 2) || strcspn(text, "\n") > 120)
			fail_msg("%s does not begin with a line that says what it shows", path);
		open_preset(name, &s, &g);
		for (int i = 0; i < arrlen(g.cell); i++)
			for (int j = 0; j < g.cell[i].scalings; j++)
				if (!cell_possible(&g.cell[i], j, (int)g.cell[i].config.model.train_length))
					fail_msg("%s: %s cannot take %s", name, g.cell[i].name,
						 g.cell[i].scaling_label[j]);
		close_preset(&s, &g);
		free(text);
		free(path);
	}
	assert_true(count >= 6);
}

static int trainings(const struct grid *g)
{
	int count = 0;
	for (int i = 0; i < arrlen(g->cell); i++) {
		bool first = true;
		for (int j = 0; j < i; j++)
			first &= strcmp(g->cell[i].trained, g->cell[j].trained) != 0;
		count += first;
	}
	return count;
}

static const struct cell *labelled(const struct grid *g, const char *label)
{
	for (int i = 0; i < arrlen(g->cell); i++)
		if (!strcmp(g->cell[i].label, label))
			return &g->cell[i];
	fail_msg("no cell %s", label);
	return NULL;
}

static void test_encodings(void **state)
{
	(void)state;
	struct study s;
	struct grid g;
	open_preset("encodings", &s, &g);
	assert_int_equal(g.groups, 8);
	assert_int_equal(arrlen(g.cell), 24);
	assert_int_equal(trainings(&g), 21);
	int rope = labelled(&g, "rope")->scalings - labelled(&g, "t5")->scalings;
	assert_int_equal(rope, 2);
	for (int i = 0; i < arrlen(g.cell); i++) {
		const struct config *c = &g.cell[i].config;
		assert_int_equal(c->model.layers, 3);
		assert_int_equal(c->train.steps, 2000);
		assert_int_equal(c->model.heads, strcmp(g.cell[i].label, "alibi(slopes=published)") ? 2 : 4);
	}
	close_preset(&s, &g);
}

static void test_encodings_of_two_layers(void **state)
{
	(void)state;
	struct study s;
	struct grid g;
	open_preset("encodings-2layer", &s, &g);
	assert_int_equal(g.groups, 7);
	assert_int_equal(trainings(&g), 30);
	for (int i = 0; i < arrlen(g.cell); i++) {
		bool nope = !strcmp(g.cell[i].label, "nope");
		assert_int_equal(g.cell[i].config.model.layers, nope ? 3 : 2);
		assert_int_equal(g.cell[i].config.train.steps, nope ? 2000 : 1500);
	}
	close_preset(&s, &g);
}

/* Copy under the scalings of the study of recall, so that the tables can be laid side by side. */
static void test_copy_like_scaling(void **state)
{
	(void)state;
	struct study s, other;
	struct grid g, recall;
	open_preset("copy", &s, &g);
	open_preset("scaling", &other, &recall);
	const struct cell *a = &g.cell[0], *b = &recall.cell[0];
	assert_string_equal(a->config.data.task.entry->name, "copy");
	assert_int_equal(a->scalings, b->scalings);
	for (int i = 0; i < a->scalings; i++)
		assert_string_equal(a->scaling_label[i], b->scaling_label[i]);
	assert_int_equal(a->lengths, b->lengths);
	close_preset(&s, &g);
	close_preset(&other, &recall);
}

/* "| 13 min |", or "| seconds |" below one, ends the row of README.md. */
static void check_minutes(const char *row, const char *name, double minutes)
{
	char cell[40];
	size_t length = strcspn(row, "\n");
	snprintf(cell, sizeof cell, minutes < 1 ? "| seconds |" : "| %g min |", minutes);
	if (length < strlen(cell) || strncmp(row + length - strlen(cell), cell, strlen(cell)) != 0)
		fail_msg("README.md: %s does not take %s", name, cell);
}

/* The last column is held to `minutes` if they are above 0. */
static void check_listed(const char *document, const char *name, double minutes)
{
	struct text_builder cell = { 0 };
	char *text;
	size_t size;
	assert_ok(io_read(document, &text, &size));
	text_add(&cell, "`%s`", name);
	bool listed = false;
	for (const char *row = text; (row = strstr(row, "\n| `")) && !listed; row++) {
		const char *found = strstr(row, cell.data);
		listed = found && found < strchr(row + 1, '\n');
		if (listed && minutes > 0)
			check_minutes(row + 1, name, minutes);
	}
	if (!listed)
		fail_msg("%s has no row of the preset %s", document, name);
	text_builder_free(&cell);
	free(text);
}

/* Every one is told of, says how long it takes, and can give the verdicts that it asks for. */
static void test_what_presets_say(void **state)
{
	(void)state;
	const char *name;
	for (int i = 0; (name = preset_at(i, NULL)); i++) {
		struct study s;
		struct grid g;
		open_preset(name, &s, &g);
		check_listed("README.md", name, s.minutes);
		check_listed("runs/README.md", name, 0);
		if (!(s.minutes > 0))
			fail_msg("%s does not say its minutes", name);
		int seeds = 0;
		for (int j = 0; j < arrlen(g.cell); j++)
			seeds += g.cell[j].group == 0;
		for (int j = 0; j < arrlen(s.claim); j++)
			if (s.claim[j].kind == CLAIM_ORDER && seeds < VERDICT_SEEDS)
				fail_msg("%s: %d seeds give no verdict", name, seeds);
		close_preset(&s, &g);
	}
}

/* What is compared with a paper's models: the same encodings by one recipe, six seeds. */
static void test_press(void **state)
{
	(void)state;
	struct study s;
	struct grid g;
	open_preset("like_press2022", &s, &g);
	assert_int_equal(trainings(&g), 24);
	for (int i = 0; i < arrlen(g.cell); i++)
		assert_true(g.cell[i].config.model.layers == 3 && g.cell[i].config.train.steps == 2000);
	close_preset(&s, &g);
	open_preset("zoology", &s, &g);
	const struct config *c = &g.cell[0].config;
	assert_string_equal(c->data.task.entry->name, "mqar");
	assert_true(c->model.hidden == 0 && c->model.heads == 1 && c->model.width == 64 && c->model.layers == 2);
	assert_int_equal(task_of(&c->data.task)->vocabulary(&c->data.task), 8192);
	assert_string_equal(c->model.encoding.entry->name, "learned");
	close_preset(&s, &g);
}

/* A variant changes what its name says: its models are not the default's. */
static void test_variants(void **state)
{
	(void)state;
	static const char *const names[] = { "sensitivity", "sizes" };
	for (int n = 0; n < 2; n++) {
		struct study s;
		struct grid g;
		open_preset(names[n], &s, &g);
		assert_int_equal(arrlen(g.cell), 3 * g.groups);
		assert_int_equal(trainings(&g), arrlen(g.cell));
		assert_int_equal(s.claim[0].kind, CLAIM_STABILITY);
		close_preset(&s, &g);
	}
}

/* The recipe of the study of text: models of half a million parameters, rope under five scalings. */
static void test_text(void **state)
{
	(void)state;
	struct study s;
	struct grid g;
	open_preset("text", &s, &g);
	assert_int_equal(trainings(&g), 10);
	const struct cell *rope = &g.cell[0];
	assert_int_equal(rope->scalings - rope->references, 5);
	assert_string_equal(rope->config.data.task.entry->name, "text");
	assert_true(rope->config.model.train_length == 128 && rope->config.train.batch == 8);
	close_preset(&s, &g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_preset),
		cmocka_unit_test(test_encodings),
		cmocka_unit_test(test_encodings_of_two_layers),
		cmocka_unit_test(test_copy_like_scaling),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_what_presets_say),
		cmocka_unit_test(test_press),
		cmocka_unit_test(test_variants),
	};
	return cmocka_run_group_tests_name("runs presets", tests, NULL, NULL);
}
