#include "tests/program.h"
#include "tests/records_case.h"
#include "tests/support.h"

#include "model/base/blas.h"
#include "model/base/io.h"
#include "model/base/stb.h"
#include "model/base/text.h"
#include "runs/run/rows.h"
#include "runs/run/run_folder.h"
#include "runs/run/run_model.h"
#include "runs/run/run_oracle.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `ropewalk patch`, `knockout` and `oracle` as users meet them, and what their numbers must be to each other. */

#define SMALL "--width=16 --heads=2 --hidden=16 --layers=2 --batch=4 --train-length=32 "
#define FEW " --sequences=6 "

static int start(void **state)
{
	(void)state;
	program_start();
	program_works("train " SMALL "--out=rope --steps=200 --lr=0.02 --warmup=5");
	program_works("train " SMALL "--out=nope --steps=0 --encoding=nope");
	program_works("train " SMALL "--out=learned --steps=0 --encoding=rope(learned=on)");
	return 0;
}

static bool fits(const json_t *record, const char *name, const char *value)
{
	const json_t *field = json_object_get(record, name);
	char text[40];
	if (json_is_string(field))
		return !strcmp(json_string_value(field), value);
	snprintf(text, sizeof text, "%g", json_number_value(field));
	return json_is_number(field) ? !strcmp(text, value) : !*value;
}

/* The one record in which `setting`, the field `name` and the group have these values. */
static const json_t *one(const json_t *all, const char *setting, const char *name, const char *value, const char *group)
{
	const json_t *found = NULL;
	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *r = json_array_get(all, i);
		if (!fits(r, "setting", setting) || !fits(r, name, value) || !fits(r, "group", group))
			continue;
		assert_null(found);
		found = r;
	}
	if (!found)
		fail_msg("no record of %s, %s %s, %s", setting, name, value, group);
	return found;
}

/* ---- patch ---- */

#define PATCH "patch rope --scaling=linear --multiple=2" FEW

static void test_patch(void **state)
{
	(void)state;
	int shares = 0;
	json_t *all = records("patch rope --scaling=linear(factor=8) --multiple=2 --by=layer --sequences=64 "
			      "--format=json");
	assert_int_equal(json_array_size(all), (2 + 2 * 2) * 5);
	const json_t *none = one(all, "none", "layer", "", "all");
	const json_t *everywhere = one(all, "everywhere", "layer", "", "all");
	const json_t *only = one(all, "only", "layer", "0", "all"), *but = one(all, "all but", "layer", "1", "all");
	double way = json_number(everywhere, "accuracy") - json_number(none, "accuracy");
	assert_close(json_number(everywhere, "change"), way, 1e-12);
	assert_true(way != 0);
	assert_true(json_number(only, "nll") == json_number(but, "nll"));
	assert_true(json_number(only, "nll") != json_number(none, "nll"));
	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *r = json_array_get(all, i), *share = json_object_get(r, "recovered");
		const char *group = json_string_value(json_object_get(r, "group"));
		const json_t *from = one(all, "none", "layer", "", group),
			     *to = one(all, "everywhere", "layer", "", group);
		assert_close(json_number(r, "change"),
			     json_number(r, "accuracy") - json_number(from, "accuracy"), 1e-9);
		if (!json_is_number(share))
			continue;
		shares++;
		double whole = json_number(to, "accuracy") - json_number(from, "accuracy");
		assert_true(fabs(whole) >= 0.01);
		assert_close(json_number_value(share),
			     (json_number(r, "accuracy") - json_number(from, "accuracy")) / whole, 1e-9);
	}
	/* Linear interpolation by 8 costs echo too much to be chance. */
	assert_true(shares > 4);
	json_decref(all);
}

/* none and everywhere are what `ropewalk eval` finds. */
static void test_patch_is_eval(void **state)
{
	(void)state;
	json_t *all = records(PATCH "--by=pair --format=json");
	json_t *rows = records("eval rope --scaling=none,linear --multiples=2 --format=json" FEW);
	assert_int_equal(json_array_size(all), (2 + 2 * 4) * 5);
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		const char *group = json_string_value(json_object_get(row, "group"));
		const char *setting = fits(row, "scaling", "none") ? "none" : "everywhere";
		const json_t *r = one(all, setting, "pair", "", group);
		assert_true(json_equal(json_object_get(r, "nll"), json_object_get(row, "nll")));
		assert_true(json_equal(json_object_get(r, "accuracy"), json_object_get(row, "accuracy")));
		assert_true(json_equal(json_object_get(r, "protocol"), json_object_get(row, "protocol")));
	}
	json_decref(all);
	json_decref(rows);
	shell("rm rope/eval-*");
}

static void test_patch_text(void **state)
{
	(void)state;
	char *text = output(PATCH);
	has(text, "rope (rope, recall, seed 101): linear in parts, accuracy in % at 2x\n");
	has(text, "6 sequences, eval_seed 1, train_length L = 32; recall(grow=all,pairs=8); stream report; ");
	has(text, "linear everywhere");
	has(text, "only layer 1, head 0 ");
	has(text, "all but pair 3 ");
	assert_int_equal(count(text, "\nonly "), 2 + 4 + 4);
	assert_int_equal(count(text, "\nall but "), 2 + 4 + 4);
	free(text);
}

static void test_patch_wrong(void **state)
{
	(void)state;
	program_refuses("patch rope", "--scaling: is missing", NULL);
	program_refuses("patch rope --scaling=none", "none changes no frequency", "--multiple");
	program_refuses("patch rope --scaling=window", "window changes which keys", "Frequencies alone can be patched");
	program_refuses("patch rope --scaling=logn", "logn scales whole queries", "Frequencies alone can be patched");
	program_refuses("patch nope --scaling=linear", "nope rotates no pairs", "rope");
	program_refuses("patch learned --scaling=linear", "linear", NULL);
	program_refuses("patch rope --scaling=linear --multiple=0.3", "not a whole length", NULL);
	program_refuses("patch rope --scaling=linear --by=pairs", "pairs", "pair");
}

/* ---- knockout ---- */

static void test_knockout(void **state)
{
	(void)state;
	json_t *all = records("knockout rope --format=json" FEW);
	assert_int_equal(json_array_size(all), (1 + 2 * 4) * 5);
	const json_t *intact = one(all, "intact", "pair", "", "echo"),
		     *first = one(all, "removed", "pair", "0", "echo");
	assert_close(json_number(first, "change"),
		     json_number(first, "accuracy") - json_number(intact, "accuracy"), 1e-9);
	assert_close(json_number(first, "wavelength"), 2 * M_PI, 1e-12);
	assert_close(json_number(first, "rotations"), 32 / (2 * M_PI), 1e-12);
	assert_true(json_number(first, "nll") != json_number(intact, "nll"));
	assert_true(json_number(first, "nll") != json_number(one(all, "still", "pair", "0", "echo"), "nll"));
	json_decref(all);
	all = records("knockout rope --by=head --kind=still --multiple=2 --format=json" FEW);
	assert_int_equal(json_array_size(all), (1 + 4) * 5);
	json_decref(all);
	/* Learned frequencies can be knocked out too. */
	free(output("knockout learned --kind=still" FEW));
}

static void test_knockout_text(void **state)
{
	(void)state;
	char *text = output("knockout rope" FEW);
	has(text, "rope (rope, recall, seed 101): pairs that stand still, perplexity / accuracy in % at 1x\n");
	has(text, "pairs removed from the logits, ");
	has(text, "serves");
	assert_int_equal(count(text, "\nintact "), 2);
	assert_int_equal(count(text, "\npair 3 "), 2);
	free(text);
	program_refuses("knockout nope", "nope rotates no pairs", NULL);
	program_refuses("knockout rope --kind=frozen", "frozen", "still");
	program_refuses("knockout rope --scaling=ntk", "--scaling", NULL);
}

/* ---- oracle ---- */

#define ORACLE "oracle rope --steps=4 --batch=2 --multiple=2" FEW

static const json_t *method(const json_t *all, const char *scaling, const char *name, const char *value,
			    const char *group)
{
	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *r = json_array_get(all, i);
		const char *label = json_string_value(json_object_get(r, "scaling"));
		if (!strncmp(label, scaling, strlen(scaling)) && fits(r, name, value) && fits(r, "group", group))
			return r;
	}
	fail_msg("no record of %s, %s %s, %s", scaling, name, value, group);
	return NULL;
}

static void test_oracle(void **state)
{
	(void)state;
	json_t *all = records(ORACLE "--format=json");
	/* 6 methods of 2 lengths and 5 groups, and of 4 pairs. */
	assert_int_equal(json_array_size(all), 6 * (2 * 5 + 4));
	assert_close(json_number(method(all, "linear", "pair", "2", ""), "ratio"), 0.5, 1e-12);
	assert_close(json_number(method(all, "none", "pair", "2", ""), "ratio"), 1, 1e-12);
	double moved = 0;
	for (int m = 0; m < 4; m++) {
		char pair[8];
		snprintf(pair, sizeof pair, "%d", m);
		moved += fabs(json_number(method(all, "oracle", "pair", pair, ""), "ratio") -
			      json_number(method(all, "yarn", "pair", pair, ""), "ratio"));
	}
	assert_true(moved > 0);
	json_decref(all);
}

static void test_oracle_text(void **state)
{
	(void)state;
	char *text = output(ORACLE "--group=echo");
	has(text, "perplexity / accuracy in % at 2x\n");
	has(text, "perplexity / accuracy in % at 1x\n");
	has(text, "inverse frequencies, by the trained ones\n");
	has(text, "yarn(ramp=rotations,beta_slow=1,beta_fast=4,");
	has(text, "fitted by AdamW to the NLL of echo at 64");
	has(text, "From none: NLL ");
	free(text);
}

/* The numbers that a fit reports of stream tune. */
static void tune_numbers(const char *line, double before[2], double after[2], char kept[80])
{
	char *text = output(line), flat[4000] = "";
	const char *at = strstr(text, "From none: NLL");
	assert_non_null(at);
	/* Lines are wrapped: every white space becomes one space. */
	for (size_t n = 0; *at && n + 1 < sizeof flat; at++)
		if (*at != '\n' && !(*at == ' ' && n && flat[n - 1] == ' '))
			flat[n++] = *at;
	const char *second = strstr(flat, "From yarn");
	assert_non_null(second);
	assert_int_equal(sscanf(flat, "From none: NLL %lf, then %lf", &before[0], &after[0]), 2);
	assert_int_equal(sscanf(strstr(second, "NLL"), "NLL %lf, then %lf", &before[1], &after[1]), 2);
	snprintf(kept, 80, "%.79s", strstr(flat, "Kept:"));
	free(text);
}

/* At the trained length, where none is what was trained: what is kept is no worse, and no step leaves it as it was. */
static void test_oracle_no_worse(void **state)
{
	(void)state;
	double before[2], after[2];
	char kept[80];
	tune_numbers("oracle rope --steps=0 --multiple=1" FEW, before, after, kept);
	assert_true(before[0] == after[0] && before[1] == after[1]);
	json_t *tune = records("eval rope --scaling=none --multiples=1 --stream=tune --format=json" FEW);
	assert_close(before[0], json_number(json_array_get(tune, json_array_size(tune) - 1), "nll"), 1e-4);
	json_decref(tune);
	shell("rm rope/tune-*");
	has(kept, "what was there before the fit, of none");
	/* So high a rate spoils it. */
	tune_numbers("oracle rope --steps=3 --batch=1 --lr=3 --multiple=1" FEW, before, after, kept);
	assert_true(after[0] > before[0] && after[1] > before[1]);
	has(kept, "what was there before the fit, of none");
	json_t *all = records("oracle rope --steps=3 --batch=1 --lr=3 --multiple=1 --format=json" FEW);
	assert_close(json_number(method(all, "oracle", "multiple", "1", "all"), "nll"),
		     json_number(method(all, "none", "multiple", "1", "all"), "nll"), 1e-5);
	json_decref(all);
}

static void test_oracle_wrong(void **state)
{
	static const char spoilt[] = "oracle rope --steps=9 --batch=1 --lr=1000 --multiple=1" FEW;
	(void)state;
	program_refuses("oracle nope", "nope has no frequencies that could be fitted", "rope");
	program_refuses("oracle learned", "were learned in training", NULL);
	program_refuses("oracle rope --group=ecoh", "no group 'ecoh'", "Did you mean --group=echo?");
	program_refuses("oracle rope --steps=-1", "steps", NULL);
	program_refuses("oracle rope --batch=1048576", "batch", NULL);
	struct program_run r = program_run(spoilt);
	program_failed(spoilt, &r, 3, "a fit", "Lower --lr.");
}

/* The model of a fit begins where its recipe stands, with the run's weights. */
static void test_oracle_model(void **state)
{
	struct scope scope = { .command = "a test", .lists = LIST_TRAINING };
	struct config c;
	struct model m, oracle;
	char *path = program_path("rope"), *folder;
	(void)state;
	config_init(&c, &scope, NULL);
	assert_ok(run_folder_open(path, &c, &folder));
	assert_ok(run_model_read(folder, &c, &m));
	const double inv_freq[] = { 1, 0.1, 0.01, 0.001 };
	assert_ok(oracle_model(&m, inv_freq, 1.5, &oracle));
	const struct parameter *ratio = layout_find(&oracle.layout, oracle_tensors[0]);
	for (int i = 0; i < 4; i++)
		assert_close(oracle.value[ratio->offset + (size_t)i], log(inv_freq[i] / pow(500, -i / 4.0)), 1e-6);
	assert_close(oracle.value[layout_find(&oracle.layout, oracle_tensors[1])->offset], log(1.5), 1e-6);
	assert_int_equal(layout_count(&oracle.layout), layout_count(&m.layout) + 2);
	for (int i = 0; i < layout_count(&m.layout); i++) {
		const struct parameter *p = &m.layout.parameter[i], *q = layout_find(&oracle.layout, p->name);
		assert_memory_equal(m.value + p->offset, oracle.value + q->offset, p->size * sizeof(real));
	}
	model_close(&m);
	model_close(&oracle);
	free(folder);
	free(path);
}

/* ---- All of them ---- */

static const char *const lines[] = { PATCH "--by=head --format=csv", "knockout rope --format=csv" FEW,
				     ORACLE "--format=csv" };

/* The same bits for any number of threads, and as JSON; nothing is written. */
static void test_all(void **state)
{
	(void)state;
	shell("ls -lR --time-style=full-iso > ../before.txt");
	for (int i = 0; i < 3; i++) {
		char line[2][200];
		for (int j = 0; j < 2; j++)
			snprintf(line[j], sizeof line[j], "%s --threads=%d", lines[i], 2 * j + 1);
		char *a = output(line[0]), *b = output(line[1]);
		assert_string_equal(a, b);
		assert_int_equal(count(a, "\n"), 1 + count(a, "\nrope,"));
		free(a);
		free(b);
	}
	shell("ls -lR --time-style=full-iso | cmp - ../before.txt && rm ../before.txt");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patch),
		cmocka_unit_test(test_patch_is_eval),
		cmocka_unit_test(test_patch_text),
		cmocka_unit_test(test_patch_wrong),
		cmocka_unit_test(test_knockout),
		cmocka_unit_test(test_knockout_text),
		cmocka_unit_test(test_oracle),
		cmocka_unit_test(test_oracle_text),
		cmocka_unit_test(test_oracle_no_worse),
		cmocka_unit_test(test_oracle_wrong),
		cmocka_unit_test(test_oracle_model),
		cmocka_unit_test(test_all),
	};
	return cmocka_run_group_tests_name("runs explain", tests, start, program_teardown);
}
