#include "tests/program.h"
#include "tests/support.h"

#include "model/base/stb.h"
#include "runs/show/decompose_tables.h"
#include "runs/run/rows.h"

#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `ropewalk decompose`: tables from numbers set by hand, then the command as users meet it. */

#define SMALL "--width=16 --heads=2 --hidden=16 --layers=1 --batch=2 --train-length=32 "
#define FEW "--multiples=2,3 --sequences=4 "

static void train(const char *name, const char *options)
{
	char line[300];
	snprintf(line, sizeof line, "train " SMALL "--out=%s %s", name, options);
	program_works(line);
}

static int entries(const char *name)
{
	int found = 0;
	char *path = program_path(name);
	DIR *folder = opendir(path);
	assert_non_null(folder);
	while (readdir(folder))
		found++;
	closedir(folder);
	free(path);
	return found;
}

static int within, beside; /* entries of the run's folder, and of that around it */

static int start(void **state)
{
	static const char study[] = "seed = 101, 102\nencoding = rope, nope\nwidth = 16\nheads = 2\nhidden = 16\n"
				    "layers = 1\nbatch = 2\ntrain_length = 32\nsteps = 0\nscaling = none, ntk\n"
				    "multiples = 1\nsequences = 1\n";
	(void)state;
	program_start();
	train("rope", "--steps=3");
	train("rope2", "--steps=3 --seed=102");
	train("nope", "--steps=3 --encoding=nope");
	train("learned", "--steps=0 --encoding=learned");
	program_put("two.study", study, sizeof study - 1);
	program_works("study two.study --out=two");
	within = entries("rope");
	beside = entries(".");
	return 0;
}

static int count(const char *text, const char *part)
{
	int found = 0;
	for (; (text = strstr(text, part)); text++)
		found++;
	return found;
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in:\n%s", part, text);
}

/* ---- By hand ---- */

/* Two seeds, two lengths, four sequences of one scored query each; NLL of each form at each length, one for all
 * sequences, the second seed's 0.2 more. */
static const double nll[2][FORMS] = { { 0.1, 0.3, 0.2, 0.9 }, { 0.1, 0.1, 0.1, 0.105 } };

static struct decomposition result_of(const struct task *task, const double value[FORMS], double more)
{
	struct decomposition d = { .groups = 2, .group = task->groups, .sequences = 4 };
	for (enum form form = 0; form < FORMS; form++) {
		d.possible[form] = true;
		d.tally[form] = TAKE(struct eval_tally, 8);
		memset(d.tally[form], 0, 8 * sizeof *d.tally[form]);
		for (int i = 0; i < 4; i++)
			d.tally[form][2 * i] = (struct eval_tally){ .scored = 1, .correct = i < 3,
								    .nll_sum = value[form] + more };
	}
	return d;
}

static void add_subject(struct decompose_set *set, int64_t seed)
{
	static const struct scope scope = { .command = "decompose", .lists = LIST_TRAINING | LIST_EVAL };
	struct subject s = { .folder = seed == 101 ? "out/one" : "out/two", .label = "rope", .lengths = 2 };
	config_init(&s.config, &scope, NULL);
	s.config.train.seed = seed;
	s.config.eval.sequences = 4;
	s.model.V = 99;
	s.length = TAKE(int, 2);
	s.multiple = TAKE(double, 2);
	for (int l = 0; l < 2; l++) {
		s.multiple[l] = 2 + l;
		s.length[l] = 64 * (2 + l);
	}
	arrput(set->subject, s);
}

static struct decompose_set by_hand(void)
{
	struct decompose_set set = { 0 };
	struct decomposed d = { .scaling = "ntk" };
	for (int i = 0; i < 2; i++) {
		struct decomposition *result = NULL;
		add_subject(&set, 101 + i);
		for (int l = 0; l < 2; l++)
			arrput(result, result_of(task_of(&set.subject[i].config.data.task), nll[l], 0.2 * i));
		arrput(d.subject, i);
		arrput(d.result, result);
	}
	arrput(set.decomposed, d);
	return set;
}

static void assert_cell(const struct sheet *s, int row, int column, const char *first, const char *second)
{
	assert_string_equal(s->row[row].cell[column].line[0], first);
	assert_string_equal(s->row[row].cell[column].line[1], second);
}

static void test_sheet(void **state)
{
	(void)state;
	struct decompose_set set = by_hand();
	struct sheet s;
	decompose_sheet(&set, &set.decomposed[0], 0, &s);
	has(s.title, "rope, scaling ntk: recall, perplexity / accuracy in %\n");
	has(s.title, "4 sequences of 64 tokens (recall, eval_seed 1)");
	has(s.title, "2 runs: one, two");
	assert_string_equal(s.column[0], "2x");
	assert_string_equal(s.column[1], "3x");
	assert_int_equal(arrlen(s.row), 8);
	/* Mean NLLs are those of the first seed and 0.1: exp(0.2) between exp(0.1) and exp(0.3). */
	assert_cell(&s, 0, 0, "1.22 / 75.0", "(1.11 - 1.35)");
	assert_cell(&s, 1, 0, "1.49 / 75.0", "(1.35 - 1.65)");
	assert_cell(&s, 3, 0, "2.72 / 75.0", "(2.46 - 3.00)");
	assert_cell(&s, 4, 0, "0.800", "+- 0.000");
	assert_cell(&s, 5, 0, "0.450 (56 %)", "");
	assert_cell(&s, 6, 0, "0.350 (44 %)", "");
	assert_cell(&s, 7, 0, "0.500", "");
	assert_cell(&s, 4, 1, "0.005", "+- 0.000");
	assert_cell(&s, 5, 1, "no failure", "to divide");
	assert_cell(&s, 6, 1, "-", "");
	assert_true(s.row[4].ruled);
	sheet_free(&s);
	/* Nobody echoes. */
	decompose_sheet(&set, &set.decomposed[0], 1, &s);
	has(s.title, "scaling ntk: echo");
	assert_cell(&s, 0, 0, "n/a", "");
	assert_cell(&s, 4, 0, "n/a", "");
	sheet_free(&s);
	decompose_set_free(&set);
}

static struct field field_of(const struct records *r, int record, const char *column)
{
	for (int j = 0; j < arrlen(r->column); j++)
		if (!strcmp(r->column[j], column))
			return j < arrlen(r->record[record]) ? r->record[record][j] : (struct field){ 0 };
	fail_msg("no column %s", column);
	return (struct field){ 0 };
}

static void test_long(void **state)
{
	(void)state;
	struct decompose_set set = by_hand();
	struct records r = { 0 };
	decompose_long(&set, "recall", &r);
	assert_int_equal(arrlen(r.record), 2 * 3 * FORMS); /* lengths; seeds and both; forms */
	assert_string_equal(field_of(&r, 3, "form").text, "both");
	assert_int_equal(field_of(&r, 3, "seed").integer, 101);
	assert_close(field_of(&r, 3, "nll").number, 0.9, 1e-14);
	assert_close(field_of(&r, 7, "nll").number, 1.1, 1e-14);
	assert_int_equal(field_of(&r, 7, "seed").integer, 102);
	assert_string_equal(field_of(&r, 7, "run").text, "two");
	assert_int_equal(field_of(&r, 11, "seed").kind, FIELD_ABSENT);
	assert_int_equal(field_of(&r, 11, "seeds").integer, 2);
	assert_int_equal(field_of(&r, 11, "scored").integer, 4);
	assert_close(field_of(&r, 11, "nll").number, 1.0, 1e-14);
	assert_close(field_of(&r, 11, "perplexity").number, exp(1.0), 1e-14);
	assert_close(field_of(&r, 11, "failure").number, 0.8, 1e-14);
	assert_close(field_of(&r, 11, "position").number, 0.45, 1e-14);
	assert_close(field_of(&r, 11, "crowding").number, 0.35, 1e-14);
	assert_close(field_of(&r, 11, "interaction").number, 0.5, 1e-14);
	assert_int_equal(field_of(&r, 10, "failure").kind, FIELD_ABSENT); /* stands with `both` alone */
	assert_close(field_of(&r, 23, "failure").number, 0.005, 1e-12);
	assert_int_equal(field_of(&r, 23, "position").kind, FIELD_ABSENT); /* none to divide */
	records_free(&r);
	decompose_long(&set, NULL, &r);
	assert_int_equal(arrlen(r.record), 2 * 2 * 3 * FORMS);
	records_free(&r);
	decompose_set_free(&set);
}

static void test_wide(void **state)
{
	(void)state;
	struct decompose_set set = by_hand();
	struct records r = { 0 };
	set.decomposed[0].result[0][0].possible[FORM_POSITIONS] = false;
	decompose_wide(&set, "recall", &r);
	assert_int_equal(arrlen(r.record), 2 * 3);
	assert_close(field_of(&r, 1, "nll_positions").number, 0.5, 1e-14);
	assert_close(field_of(&r, 1, "failure").number, 0.8, 1e-14);
	assert_int_equal(field_of(&r, 0, "nll_positions").kind, FIELD_ABSENT);
	assert_int_equal(field_of(&r, 0, "failure").kind, FIELD_ABSENT);
	assert_close(field_of(&r, 0, "nll_both").number, 0.9, 1e-14);
	records_free(&r);
	decompose_set_free(&set);
}

/* ---- The command ---- */

/* Its standard output; exit 0. */
static char *output(const char *line, char **err)
{
	struct program_run r = program_run(line);
	if (r.code)
		fail_msg("%s: exit %d: %s", line, r.code, r.err);
	if (err)
		*err = r.err;
	else
		free(r.err);
	return r.out;
}

static void test_text(void **state)
{
	(void)state;
	char *out = output("decompose rope rope2 " FEW "--scaling=none,ntk", NULL);
	assert_int_equal(count(out, "1 as trained (1x)"), 2); /* a table a scaling, seeds together */
	has(out, "rope, scaling none: recall, perplexity / accuracy in %");
	has(out, "rope, scaling ntk: recall");
	has(out, "2 runs: rope, rope2");
	has(out, "2 positions only: far apart, no filler");
	has(out, "3 tokens only: filler, positions within training");
	has(out, "4 both: the long sequence");
	has(out, "failure (nats)");
	has(out, "Shapley");
	free(out);
	out = output("decompose nope rope " FEW "--group=echo", NULL);
	has(out, "nope, scaling none: echo");
	has(out, "rope, scaling none: echo");
	free(out);
}

/* Records of the output as CSV, and one field by its column. */
static struct csv csv_of(const char *line)
{
	struct csv csv;
	char *out = output(line, NULL);
	assert_ok(csv_parse("stdout", out, &csv));
	free(out);
	return csv;
}

static const char *at(const struct csv *csv, int record, const char *column)
{
	for (int j = 0; j < arrlen(csv->record[0]); j++)
		if (!strcmp(csv->record[0][j], column))
			return csv->record[record][j];
	fail_msg("no column %s", column);
	return NULL;
}

/* Without positions, form 2 is form 1 and form 3 is form 4, to the last digit. */
static void test_csv(void **state)
{
	(void)state;
	struct csv csv = csv_of("decompose nope " FEW "--format=csv");
	assert_int_equal(arrlen(csv.record), 1 + 2 * 2 * FORMS); /* groups, lengths, forms */
	for (int i = 1; i < arrlen(csv.record); i += FORMS) {
		assert_string_equal(at(&csv, i, "form"), "as_is");
		assert_string_equal(at(&csv, i, "nll"), at(&csv, i + 1, "nll"));
		assert_string_equal(at(&csv, i + 2, "nll"), at(&csv, i + 3, "nll"));
		assert_string_not_equal(at(&csv, i, "nll"), at(&csv, i + 3, "nll"));
		assert_string_equal(at(&csv, i, "group"), i < 1 + 2 * FORMS ? "recall" : "echo");
		double failure = atof(at(&csv, i + 3, "nll")) - atof(at(&csv, i, "nll"));
		assert_close(atof(at(&csv, i + 3, "failure")), failure, 1e-14);
	}
	assert_string_equal(at(&csv, 1, "length"), "64");
	assert_string_equal(at(&csv, 1 + FORMS, "multiple"), "3");
	assert_string_equal(at(&csv, 1, "scored"), "20");
	csv_free(&csv);
}

/* Several seeds: their mean NLL. */
static void test_seeds(void **state)
{
	(void)state;
	struct csv csv = csv_of("decompose rope rope2 --multiples=2 --sequences=3 --group=recall --format=csv");
	assert_int_equal(arrlen(csv.record), 1 + 3 * FORMS);
	for (int form = 0; form < FORMS; form++) {
		double one = atof(at(&csv, 1 + form, "nll")), two = atof(at(&csv, 1 + FORMS + form, "nll"));
		assert_true(one != two);
		assert_close(atof(at(&csv, 1 + 2 * FORMS + form, "nll")), (one + two) / 2, 1e-14);
	}
	assert_string_equal(at(&csv, 1, "seed"), "101");
	assert_string_equal(at(&csv, 1 + FORMS, "seed"), "102");
	assert_string_equal(at(&csv, 1 + 2 * FORMS, "seed"), "");
	csv_free(&csv);
}

/* The same sequences, the same numbers, however many threads; another eval_seed, others. */
static void test_pure(void **state)
{
	(void)state;
	char *one = output("decompose rope " FEW "--scaling=ntk --format=csv --threads=1", NULL);
	char *two = output("decompose rope " FEW "--scaling=ntk --format=csv --threads=2", NULL);
	assert_string_equal(one, two);
	free(one);
	free(two);
	struct csv first = csv_of("decompose rope " FEW "--format=csv");
	struct csv other = csv_of("decompose rope " FEW "--format=csv --eval-seed=2");
	for (int form = 0; form < FORMS; form++)
		assert_string_not_equal(at(&first, 1 + form, "nll"), at(&other, 1 + form, "nll"));
	csv_free(&first);
	csv_free(&other);
}

/* Far positions are beyond a learned table, and its rope scalings beyond it altogether. */
static void test_learned(void **state)
{
	(void)state;
	char *err, *out = output("decompose learned " FEW "--scaling=none,ntk", &err);
	assert_int_equal(count(out, "1 as trained (1x)"), 1);
	assert_int_equal(count(out, " n/a"), 2 * (2 + 4));
	has(err, "learned: ntk is left out: scaling: ntk changes RoPE's frequencies");
	free(out);
	free(err);
	program_refuses("decompose learned --scaling=ntk", "nothing to decompose", "--scaling=none");
}

/* A study: all its runs, each under its own scalings, unless some are given. */
static void test_study(void **state)
{
	(void)state;
	char *err, *out = output("decompose two --multiples=2 --sequences=2", &err);
	assert_int_equal(count(out, "1 as trained (1x)"), 3);
	has(out, "rope, scaling none: recall");
	has(out, "rope, scaling ntk: recall");
	has(out, "nope, scaling none: recall");
	assert_int_equal(count(out, "2 runs: "), 3);
	assert_int_equal(count(err, "ntk is left out"), 2);
	free(out);
	free(err);
	out = output("decompose two --multiples=2 --sequences=2 --scaling=none", NULL);
	assert_int_equal(count(out, "1 as trained (1x)"), 2);
	free(out);
}

static void test_formats(void **state)
{
	(void)state;
	char *out = output("decompose rope " FEW "--format=md", NULL);
	has(out, "| | 2x | 3x |");
	has(out, "```\n2: the tokens of 1");
	free(out);
	out = output("decompose rope " FEW "--format=latex", NULL);
	has(out, "\\toprule");
	has(out, "\n% 2: the tokens of 1");
	free(out);
	out = output("decompose rope " FEW "--format=json", NULL);
	json_t *json = json_loads(out, JSON_REJECT_DUPLICATES, NULL);
	assert_int_equal(json_array_size(json), 2 * 2 * FORMS);
	assert_string_equal(json_string_value(json_object_get(json_array_get(json, 1), "form")), "positions");
	json_decref(json);
	free(out);
	struct csv csv = csv_of("decompose rope " FEW "--format=wide");
	assert_int_equal(arrlen(csv.record), 1 + 2 * 2);
	assert_true(atof(at(&csv, 1, "perplexity_tokens")) > 1);
	csv_free(&csv);
}

static void test_wrong(void **state)
{
	(void)state;
	program_refuses("decompose", "decompose", NULL);
	program_refuses("decompose absent", "absent: no such folder", NULL);
	program_refuses("decompose rope --group=ecoh", "no group 'ecoh'", "Did you mean --group=echo?");
	program_refuses("decompose rope --multiples=0.75", "less than train_length 32", "1 and above");
	program_refuses("decompose rope --multiples=2,x", "multiples: 'x' is not a number", NULL);
	program_refuses("decompose rope rope/model.safetensors", "the same model as rope", "once");
	program_refuses("decompose rope --scaling=nkt", "nkt", "ntk");
	program_refuses("decompose rope --factor=2", "factor", NULL);
	program_refuses("decompose rope --format=xml", "xml", NULL);
	program_refuses("decompose rope --stream=tune", "--stream", NULL);
}

/* It only reads: no file more, in the run's folder or beside it. */
static void test_writes_nothing(void **state)
{
	(void)state;
	free(output("decompose rope " FEW, NULL));
	assert_int_equal(entries("rope"), within);
	assert_int_equal(entries("."), beside);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sheet),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_wide),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_csv),
		cmocka_unit_test(test_seeds),
		cmocka_unit_test(test_pure),
		cmocka_unit_test(test_learned),
		cmocka_unit_test(test_study),
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_writes_nothing),
	};
	return cmocka_run_group_tests_name("runs decompose", tests, start, program_teardown);
}
